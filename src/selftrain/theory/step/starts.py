r"""Where Newton's method begins at small ridges when there is nothing to predict from: nothing
moves. The other end, $\lambda \to \infty$, is in `averages.without_weights`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...runtime.kernels import kernel
from ..averages.batch import At, Labelling, batch_averages
from ..averages.without_weights import TINY
from ..geometry.modes import BIAS, FIRST, HAT_M, mode_sums
from ..tolerances import NO_STIFFNESS, NO_UPDATE, START_RULE, STILL
from .newton import StepSetting, Work

CHANGES = 30
"""Substitutions for the stiffness of a model that does not move."""

SETTLED = 1e-3
"""A start needs the logarithm of the stiffness no better than this."""


@kernel(error_model="numpy", inline="always")  # called once: one level less to compile
def no_update_start(setting: StepSetting, ridge: float, work: Work, x: Any) -> bool:
    r"""The state for $\lambda \to 0$ in place of the explicit one in x; False (and x as it was) if
    the ridge is not small.
    """
    labels, room, fields = setting.labels, work.room, work.fields
    gamma = labels.gamma
    if setting.batch.given or gamma == 0.0:
        return False
    groups = labels.roots.shape[0]
    q0 = FIRST + groups
    z = np.zeros(x.shape[0])
    for k in range(groups):
        z[q0 + k] = x[q0 + k]
    z[BIAS] = 0.0 if math.isnan(setting.fixed_bias) else setting.fixed_bias
    still = np.zeros((1 + 3 * groups, 1))
    small = 1.0
    settled = False
    for _ in range(CHANGES):
        mode_sums(z, ridge, gamma, gamma, setting.noise, setting.old, fields)
        for k in range(groups):
            still[1 + groups + k, 0] = STILL * labels.roots[k]
            still[1 + 2 * groups + k, 0] = fields[1 + 2 * groups + k, 0]
        at = At(z[BIAS], still, gamma)
        if batch_averages(at, labels, setting.batch, START_RULE, None, room) <= 0:
            return False
        stiffness = change = 0.0
        for k in range(groups):
            target = math.log(room.moments[k].share * room.moments[k].k)
            change = max(change, abs(target - z[q0 + k]))
            z[q0 + k] = target
            stiffness += math.exp(target) * setting.softness[k]
        small = ridge / (ridge + stiffness)
        if not small <= NO_UPDATE:
            return False
        if change < SETTLED:
            settled = True
            break
    if not settled:
        return False
    mode_sums(z, ridge, gamma, gamma, setting.noise, setting.old, fields)
    length = 0.0
    for i in range(setting.noise.mean.shape[0]):
        length += setting.noise.mean[i] ** 2
    shrunk_unknowns(z, ridge, small, labels, length, fields)
    for j in range(x.shape[0]):
        x[j] = z[j]
    return True


@kernel(error_model="numpy")
def raise_stiffness(x: Any, ridge: float, softness: Any) -> None:
    """Raise a stiffness that does not matter beside the ridge to where it begins to: a model of a
    large bias alone has hardly any, and Newton's method would have a long way up.
    """
    groups = softness.shape[0]
    for k in range(groups):
        least = NO_STIFFNESS * ridge / softness[k]
        if least > 0.0:
            x[FIRST + groups + k] = max(x[FIRST + groups + k], math.log(least))


@kernel(error_model="numpy")
def shrunk_unknowns(
    z: Any, ridge: float, small: float, labels: Labelling, length: float, fields: Any
) -> None:
    r"""Guess signal and noise of a step that moves by the relative amount `small`, from its
    stiffness; `length` is $|\mu|^2$.
    """
    groups = labels.roots.shape[0]
    q0, x0 = FIRST + groups, FIRST + 2 * groups
    z[HAT_M] = 0.3 * ridge * labels.gamma * labels.m / length
    for k in range(groups):
        width = -fields[1 + 2 * groups + k, 1 + q0 + k]
        spread = (0.5 * small * labels.gamma * labels.roots[k]) ** 2
        z[x0 + k] = math.log(spread * math.exp(z[q0 + k]) / width + TINY)
