"""Central differences of a function of an array, taken only where it changes at all.

A block of entries that can be shaken without effect has derivative zero; a search by halves finds
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput

DIFFERENCE = 1e-5
"""Relative size of a step of the central differences."""

AT_ZERO = 10.0
"""The scale of a threshold, annealing, ... of 0: a one-sided difference over 1e-4 rises above the
rounding of its ends.
"""

QUIET = 1e-12
"""A relative change this small is the error of the averages, which use another rule at 0 than
beside it.
"""

SCALARS = ("alpha_l", "rho", "delta", "lambda_l")
"""Entries of problem and recipe that are one number."""


def differences(function: Callable[[Array], float], at: Array, scale: Array, value: float) -> Array:
    """The gradient of a function of an array, by central differences where it changes at all.

    A zero with a one-sided domain (a threshold, an annealing of 0) takes a difference from above.
    """
    slope = np.zeros(at.size)
    shake = np.random.default_rng(0).uniform(0.5, 1.0, at.size)
    movable = np.isfinite(at) & (scale > 0)

    def search(low: int, high: int) -> None:
        block = np.zeros(at.size, dtype=bool)
        block[low:high] = movable[low:high]
        if not block.any():
            return
        if function(np.where(block, at + DIFFERENCE * shake * scale, at)) == value:
            return
        if high - low > 1:
            middle = (low + high) // 2
            search(low, middle)
            search(middle, high)
            return
        step = DIFFERENCE * scale[low]
        if at[low] == 0.0:
            one, two = (function(_moved(at, low, k * step)) for k in (1, 2))
            if max(abs(one - value), abs(two - value)) > QUIET * abs(value):
                slope[low] = (4 * one - two - 3 * value) / (2 * step)
        else:
            up, down = (function(_moved(at, low, k * step)) for k in (1, -1))
            slope[low] = (up - down) / (2 * step)

    search(0, at.size)
    return slope


def _moved(at: Array, index: int, by: float) -> Array:
    moved = at.copy()
    moved[index] += by
    return moved


def as_number(value: Any) -> float:
    """What a function of a run returned; raises if it is not one finite number."""
    accepted = "a function that returns one finite number is accepted"
    try:
        result = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput("of", value, accepted) from None
    if result.size != 1 or not np.isfinite(result).all():
        raise InvalidInput("of", value, accepted)
    return float(result.reshape(()))
