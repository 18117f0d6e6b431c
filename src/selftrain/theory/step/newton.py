"""Newton's method on the equations of any stage, with a bounded step."""

from __future__ import annotations

import math

from ...arrays import Array
from ..tolerances import DAMPED, LARGEST_LOG
from .equations import LOG_CHI, LOG_R, damping
from .stage import Counter, step_from

LIMIT = 40
"""Newton steps from a start; damped, the way to the root takes 8 to 15."""


def newton(
    evaluate: Counter,
    start: Array,
    ridge: float,
    exponent: float,
    enough: float,
    limit: int = LIMIT,
) -> Array | None:
    """The root of a stage for some ridge, to a last step of size `enough`; None if it does not
    settle.
    """
    stage = evaluate.stage
    z = start.copy()
    for _ in range(limit):
        at = evaluate(z, ridge, exponent)
        if at is None:
            return None
        size, step = step_from(stage, z, at)
        if not size < math.inf:
            return None
        factor = damping(z, step, stage.frame) if size > DAMPED else 1.0
        z += factor * step
        if not max(abs(z[LOG_R]), abs(z[LOG_CHI])) < LARGEST_LOG:
            return None
        if size <= enough:
            return z
    return None
