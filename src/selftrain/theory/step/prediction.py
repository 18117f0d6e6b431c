"""The unknowns of the next step from those of the steps before, by differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel

LONGEST_HISTORY = 7
"""Steps before t that a prediction may use: the rounding of earlier ones would be magnified."""


def extrapolated(rows: Array, scale: Array) -> Array:
    """The next row of a table: the sum of its backward differences, up to the smallest one.

    The k-th difference is the error that the prediction of order k made for the last row. `scale`
    is what a change of each column is compared with.

    >>> extrapolated(np.array([[1.0], [4.0], [9.0], [16.0]]), np.ones(1))
    array([25.])
    """
    table, ahead = rows.copy(), np.empty(rows.shape[1])
    extrapolate(table, len(table), scale.copy(), ahead)
    return ahead


@kernel(error_model="numpy")
def extrapolate(table: Any, count: int, scale: Any, ahead: Any) -> None:
    """`extrapolated` from the first `count` rows, which become their differences, the last row
    first; `scale` becomes its inverse.
    """
    size = ahead.shape[0]
    best, smallest = 1, math.inf
    for j in range(size):
        scale[j] = 1.0 / scale[j]
    for j in range(size):
        ahead[j] = table[count - 1, j]
    for order in range(1, count):
        largest = 0.0
        for i in range(count - order):
            for j in range(size):
                table[i, j] = table[i + 1, j] - table[i, j]
        for j in range(size):
            largest = max(largest, abs(table[count - 1 - order, j]) * scale[j])
        if largest < smallest:
            best, smallest = order, largest
    if best == count - 1:
        best = count
    for order in range(1, best):
        for j in range(size):
            ahead[j] += table[count - 1 - order, j]
