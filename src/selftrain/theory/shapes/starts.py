r"""Where Newton's method begins when there is nothing to predict from: the two ends of the
ridge.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...runtime.kernels import kernel
from ..tolerances import NO_UPDATE
from .averages import At, logistic_groups, logistic_labelled
from .compiled import StepSetting, Work
from .modes import BIAS, FIRST, HAT_M, mode_sums

START_RULE = 16.0
"""Exponent of the rules of a start: averages to 1e-7."""

CHANGES = 30
"""Substitutions for the stiffness of a model that does not move."""


@kernel(error_model="numpy")
def _without_weights(setting: StepSetting, bias: float, work: Work) -> int:
    """Averages of a model that is a bias alone, left in `work`; the nodes used."""
    labels = setting.labels
    groups = labels.roots.shape[0]
    fields = np.zeros((1 + 3 * groups, 1))
    for k in range(groups):
        fields[1 + groups + k] = 1e-9 * labels.roots[k]
        fields[1 + 2 * groups + k] = 1e-12
    x = np.zeros(2)
    x[BIAS] = bias - labels.gamma * labels.bias
    at = At(x, fields, 0.0)
    if setting.first > 0.0:
        return logistic_labelled(at, setting.points, START_RULE, None, work.room)
    return logistic_groups(at, labels, setting.points, START_RULE, None, work.room)


@kernel(error_model="numpy")
def explicit_start(setting: StepSetting, work: Work, x: Any) -> float:
    r"""The state for $\lambda \to \infty$: the averages of a model without weights.

    Returns the mass of the rarer class among the selected labels, which shows a collapse; NaN if
    nothing is selected, -1 if the rule would be too long.
    """
    labels, room = setting.labels, work.room
    groups = labels.roots.shape[0]
    used = _without_weights(setting, 0.0, work)
    if used <= 0:
        return -1.0 if used < 0 else math.nan
    pull = total = 0.0
    for k in range(groups):
        pull += room.shares[k] * room.moments[k].f
        total += room.shares[k]
    positive = min(max(0.5 - pull / total, 1e-14), 1.0 - 1e-14)
    mass = min(0.5 - pull / total, 0.5 + pull / total)
    bias = math.log(positive / (1.0 - positive))
    if not math.isnan(setting.fixed_bias):
        bias = labels.bias
    if _without_weights(setting, bias, work) <= 0:
        return -1.0
    x[HAT_M] = 0.0
    x[BIAS] = bias - labels.gamma * labels.bias
    for k in range(groups):
        e, share = room.moments[k], room.shares[k]
        x[HAT_M] -= share * e.sf
        x[FIRST + k] = 0.0
        if setting.first == 0.0:
            x[FIRST + k] = labels.gamma * share * e.k + share * e.gf / labels.roots[k]
        x[FIRST + groups + k] = math.log(share * e.k)
        x[FIRST + 2 * groups + k] = math.log(share * e.ff + 1e-290)
    return mass


@kernel(error_model="numpy")
def no_update_start(setting: StepSetting, ridge: float, work: Work, x: Any) -> bool:
    r"""The state for $\lambda \to 0$, where nothing moves, in place of the explicit one in x;
    False (and x as it was) if the ridge is not small.
    """
    labels, room, fields = setting.labels, work.room, work.fields
    gamma = labels.gamma
    if setting.first > 0.0 or gamma == 0.0:
        return False
    groups = labels.roots.shape[0]
    q0, x0 = FIRST + groups, FIRST + 2 * groups
    z = np.zeros(x.shape[0])
    z[q0:x0] = x[q0:x0]
    z[BIAS] = 0.0 if math.isnan(setting.fixed_bias) else setting.fixed_bias
    still = np.zeros((1 + 3 * groups, 1))
    small = 1.0
    settled = False
    for _ in range(CHANGES):
        mode_sums(z, ridge, gamma, gamma, setting.noise, setting.old, fields)
        for k in range(groups):
            still[1 + groups + k, 0] = 1e-9 * labels.roots[k]
            still[1 + 2 * groups + k, 0] = fields[1 + 2 * groups + k, 0]
        at = At(z, still, gamma)
        if logistic_groups(at, labels, setting.points, START_RULE, None, room) <= 0:
            return False
        stiffness = change = 0.0
        for k in range(groups):
            target = math.log(room.shares[k] * room.moments[k].k)
            change = max(change, abs(target - z[q0 + k]))
            z[q0 + k] = target
            stiffness += math.exp(target) * setting.softness[k]
        small = ridge / (ridge + stiffness)
        if not small <= NO_UPDATE:
            return False
        if change < 1e-3:
            settled = True
            break
    if not settled:
        return False
    mode_sums(z, ridge, gamma, gamma, setting.noise, setting.old, fields)
    length = 0.0
    for i in range(setting.noise.mean.shape[0]):
        length += setting.noise.mean[i] ** 2
    z[HAT_M] = 0.3 * ridge * gamma * labels.m / length
    for k in range(groups):
        width = -fields[1 + 2 * groups + k, 1 + q0 + k]
        spread = (0.5 * small * gamma * labels.roots[k]) ** 2
        z[x0 + k] = math.log(spread * math.exp(z[q0 + k]) / width + 1e-290)
    x[:] = z
    return True
