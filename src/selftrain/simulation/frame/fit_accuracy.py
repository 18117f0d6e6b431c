"""How accurate a fit in the revealed frame is: an estimate of the error of q, m and the bias."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from .passes import dot

STEEPEST = 0.91
"""The last entry of a column, squared, is counted as at most this share of the column's square: one
direction alone says little about how the inverse Hessian falls along the frame.
"""


class FitPoint(NamedTuple):
    """A point of the fit: coordinates, q, m and the bias."""

    coordinates: Any
    q: float
    m: float
    bias: float


class Outside(NamedTuple):
    r"""Directions outside the frame: the slope along the next one, $\sqrt N$, and the norm of
    weights below which rounding exceeds the tolerance.
    """

    slope: float
    root: float
    faint: float


@kernel(nogil=True, error_model="numpy")
def accuracy(now: Any, last: Any, newton: Any, column: Any, frame: Any, off: Any) -> float:
    r"""Estimated relative error of q, m and B: what the Newton step and the slope `off` the frame
    still promise.

    Directions couple to their neighbours, as in Lanczos' method: along the frame the last column of
    the inverse Hessian falls as $R^j$, with $1 - R^2$ its last entry squared over its square. In a
    frame that goes on the same way, the column of the next direction is the last one times
    $R/(1-R^2)$, and its norm $\sqrt{1+R^2}/(1-R^2)$ times as large. Besides, the given directions
    and the bias overlap with it at random, by order $N^{-1/2}$ from each of the $1/(1-R^2)$ nearest
    ones. The last changes, which fall as $R^2$, are the second witness. Weights smaller than
    `off.faint` are measured by it: to know them better is beyond rounding.
    """
    point, q, m, bias = now
    slope, root, faint = off
    size = max(np.sqrt(q), faint)
    square = dot(column, column, frame + 1)
    ending = min(STEEPEST, column[frame] * column[frame] / square)
    along = slope * np.sqrt(1.0 - ending) / ending
    away = slope * np.sqrt(square * (2.0 - ending)) / ending
    random = away / (root * np.sqrt(ending))
    shared, inside = 0.0, 0.0
    for j in range(frame):
        shared += abs(point[j] * column[j + 1])
        inside += point[j] * newton[j + 1]
    second = dot(newton[1:], newton[1:], frame) + away**2
    error = 2.0 * (abs(inside) + along * shared + random * np.sqrt(q)) + second
    error /= size**2
    error = max(error, (abs(newton[1]) + along * abs(column[1]) + random) / size)
    error = max(error, (abs(newton[0]) + along * abs(column[0]) + random) / (size + abs(bias)))
    moved = max(abs(q - last.q) / size**2, abs(m - last.m) / size)
    moved = max(moved, abs(bias - last.bias) / (size + abs(bias)))
    return float(max(error, moved * (1.0 - ending) / ending))
