r"""The averages of a model without weights, and the state for $\lambda \to \infty$ that follows
from them: the weights are small there, and every conjugate is explicit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...runtime.kernels import kernel
from ..geometry.modes import BIAS, FIRST, HAT_M
from ..tolerances import START_RULE, STILL
from .batch import SQUARED, At, Batch, Labelling, Room, batch_averages

TINY = 1e-290
"""Added before a logarithm is taken: a conjugate of zero has one too."""


@kernel(error_model="numpy")
def mean_label(moments: Any) -> float:
    """Minus the mean of f over all groups: at a bias of zero, the mean label off its middle."""
    pull = total = 0.0
    for k in range(moments.shape[0]):
        pull += moments[k].share * moments[k].f
        total += moments[k].share
    return -pull / total


@kernel(error_model="numpy")
def explicit_unknowns(moments: Any, labels: Labelling, bias: float, x: Any) -> None:
    r"""The unknowns for $\lambda \to \infty$ from the averages of a model without weights."""
    groups = labels.roots.shape[0]
    x[HAT_M] = 0.0
    x[BIAS] = bias - labels.gamma * labels.bias
    for k in range(groups):
        e, share = moments[k], moments[k].share
        x[HAT_M] -= share * e.sf
        x[FIRST + k] = labels.gamma * share * e.k + share * e.gf / labels.roots[k]
        x[FIRST + groups + k] = math.log(share * e.k)
        x[FIRST + 2 * groups + k] = math.log(share * e.ff + TINY)


@kernel(error_model="numpy")
def explicit_start(labels: Labelling, batch: Batch, fixed_bias: float, room: Room, x: Any) -> float:
    r"""The state for $\lambda \to \infty$, in x.

    Returns the mass of the rarer class among the selected labels, which shows a collapse; NaN if
    nothing is selected, -1 if the rule would be too long. Soft labels of the squared loss have no
    class to collapse into.
    """
    groups = labels.roots.shape[0]
    fields = np.zeros((1 + 3 * groups, 1))
    for k in range(groups):
        fields[1 + groups + k, 0] = STILL * labels.roots[k]
        fields[1 + 2 * groups + k, 0] = 1e-12
    bias = mass = 0.0
    for best in range(2):  # a bias of zero shows the labels; then the averages at the best one
        at = At(bias - labels.gamma * labels.bias, fields, 0.0)
        used = batch_averages(at, labels, batch, START_RULE, None, room)
        if used <= 0:
            return -1.0 if used < 0 or best else math.nan
        if best:
            break
        mean = mean_label(room.moments)
        if batch.loss == SQUARED:
            mass = 0.5 * (1.0 - abs(mean)) if math.isinf(batch.sharpness) else 0.5
            bias = mean
        else:
            mass = 0.5 - abs(mean)
            positive = min(max(0.5 + mean, 1e-14), 1.0 - 1e-14)
            bias = math.log(positive / (1.0 - positive))
        if not math.isnan(fixed_bias):
            bias = labels.bias
    explicit_unknowns(room.moments, labels, bias, x)
    if batch.given:
        for k in range(groups):
            x[FIRST + k] = 0.0
    return mass
