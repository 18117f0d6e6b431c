r"""The start of a stage for any loss: the state for $\lambda \to \infty$, where the weights are
small and the equations explicit.
"""

from __future__ import annotations

import math

import numpy as np

from ....arrays import Array
from ....losses import Loss
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R


def at_large_ridge(
    loss: Loss, s: Array, g: Array, weight: Array, target: Array, delta: Array, ridge: float,
    bias: float | None,
) -> Array:  # fmt: skip
    r"""The state for $\lambda \to \infty$ from weighted points: the gradient at w = 0 over the
    stiffness there.
    """
    if bias is None:
        bias = _best_constant(loss, target, weight)
    at = np.full(s.size, bias)
    slope, curvature = loss.slope(target, at), loss.curvature(target, at)
    stiffness = ridge + float((weight * delta) @ curvature)
    z = np.zeros(5)
    z[ETA] = -float(weight @ (s * slope)) / stiffness
    z[BIAS] = bias
    z[LOG_R] = 0.5 * math.log(float((weight * delta) @ slope**2) + 1e-290) - math.log(stiffness)
    z[LOG_CHI] = -math.log(stiffness)
    return z


def _best_constant(loss: Loss, target: Array, weight: Array) -> float:
    """The bias that minimises the loss of a model without weights."""
    lo, hi = -1.0, 1.0

    def slope(bias: float) -> float:
        return float(weight @ loss.slope(target, np.full(target.size, bias)))

    while slope(lo) > 0 and lo > -600:
        lo *= 2
    while slope(hi) < 0 and hi < 600:
        hi *= 2
    for _ in range(80):
        middle = 0.5 * (lo + hi)
        if slope(middle) > 0:
            hi = middle
        else:
            lo = middle
    return 0.5 * (lo + hi)
