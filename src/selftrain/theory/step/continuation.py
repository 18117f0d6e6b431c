"""The root of a stage followed in the ridge, from where it is explicit down to the ridge of the
step.
"""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Array
from .equations import ETA, LOG_CHI, A
from .newton import newton
from .stage import Counter, Evaluation, IterativeStage

FOLLOWED = 1e-4
"""Last Newton step on the way: the next one begins with a tangent anyway."""

NO_RIDGE = -30.0
"""A ridge of zero is approached as exp(-30)."""

WELL_ABOVE, LARGEST_RIDGE = 10.0, 60.0
"""The way begins at ten times the stiffness of the data, later where that fails, at exp(60) at the
latest.
"""

SHORTEST = 1e-3
"""The shortest stride in ln(ridge)."""


def continue_in_ridge(evaluate: Counter, exponent: float, enough: float) -> Array | None:
    r"""Follow the root from large $\lambda$, where it is explicit, down to the ridge of the
    step.
    """
    stage = evaluate.stage
    ridge = stage.frame.ridge
    target = math.log(ridge) if ridge > 0 else NO_RIDGE
    stiffness = math.exp(-stage.explicit(1e-12)[LOG_CHI])
    here = max(target, math.log(WELL_ABOVE * stiffness))
    z = None
    while z is None and here < LARGEST_RIDGE:
        z = newton(
            evaluate, stage.explicit(math.exp(here)), math.exp(here), exponent, FOLLOWED, limit=12
        )
        here += 0.0 if z is not None else 2.0
    stride = 1.0
    while z is not None and here > target:
        at = evaluate(z, math.exp(here), exponent)
        if at is None:
            return None
        tangent = _ridge_tangent(stage, z, at, math.exp(here))
        while True:
            there = max(target, here - stride)
            guess = z if tangent is None else z + (there - here) * tangent
            found = newton(evaluate, guess, math.exp(there), exponent, FOLLOWED, limit=8)
            if found is not None:
                break
            stride *= 0.4
            if stride < SHORTEST:
                return None
        z, here, stride = found, there, min(stride * 1.6, 3.0)
    if z is None:
        return None
    return newton(evaluate, z, ridge, exponent, enough, limit=12)


def _ridge_tangent(stage: IterativeStage, z: Array, at: Evaluation, ridge: float) -> Array | None:
    r"""$dz/d\ln\lambda$ along the path of roots."""
    stiffness = math.exp(at.residual[4] - z[LOG_CHI])
    change = np.zeros(5)
    change[0] = 0.0 if stage.frame.first else ridge * (stage.frame.offset + z[A])
    change[1] = ridge * z[ETA]
    change[4] = ridge / stiffness
    try:
        return np.asarray(-np.linalg.solve(at.jacobian, change), dtype=float)
    except np.linalg.LinAlgError:
        return None
