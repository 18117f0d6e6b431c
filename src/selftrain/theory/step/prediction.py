"""The unknowns of the next step, extrapolated from those before."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.kernels import kernel
from .equations import BIAS, LOG_R

LONGEST_HISTORY = 7
"""Steps before t that a prediction may use: the rounding of earlier ones would be magnified."""


@kernel(error_model="numpy")
def predict(t: int, history: int, unknowns: Any, near: Any, old: Any, z: Any) -> None:
    r"""Extrapolate the difference of the unknowns to `near`, a similar run (zeros: none), from
    `history` steps.

    The k-th difference at step t-1 is the error that the prediction of order k made there. So the
    sum of differences ends before the smallest one. `old` is the state ($\omega, \mu, \nu^2$, B) of
    step t-1.
    """
    count = min(history, LONGEST_HISTORY)
    table = np.empty((LONGEST_HISTORY, 5))
    for i in range(count):
        for j in range(5):
            table[i, j] = unknowns[t - 1 - i, j] - near[t - 1 - i, j]
    size = np.empty(LONGEST_HISTORY)
    best = 1
    for k in range(
        1, count
    ):  # afterwards row k - 1 is the difference of order k - 1, the rest of order k
        for i in range(count - 1, k - 1, -1):
            for j in range(5):
                table[i, j] = table[i - 1, j] - table[i, j]
        size[k] = _size(table[k], old)
        if best == k or size[k] < size[best]:
            best = k
    if best == count - 1:
        best = count
    for j in range(5):
        total = near[t, j]
        for k in range(best):
            total += table[k, j]
        z[j] = total


@kernel(error_model="numpy")
def _size(change: Any, old: Any) -> float:
    """Size of a change of the unknowns against the old state."""
    size = max(abs(change[0]), abs(change[1])) / old[0]
    size = max(size, abs(change[BIAS]) / (abs(old[3]) + old[0]))
    for j in range(LOG_R, 5):
        size = max(size, abs(change[j]))
    return float(size)
