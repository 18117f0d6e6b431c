"""An estimate of the error of q, m and the bias of a fit in the revealed frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from .passes import dot

STEEPEST = 0.91
"""Upper bound of the squared last entry of a column of the inverse Hessian, relative to the squared
column: a single direction says little about the decay of the column along the frame.
"""


class FitPoint(NamedTuple):
    """A point of the fit: coordinates, q, m and the bias."""

    coordinates: Any
    q: float
    m: float
    bias: float


class Outside(NamedTuple):
    r"""Quantities that determine the error from directions outside the frame.

    Attributes:
        slope: gradient along the next direction.
        root: $\sqrt N$.
        faint: norm of the weights below which rounding errors exceed the tolerance.
    """

    slope: float
    root: float
    faint: float


@kernel(nogil=True, error_model="numpy")
def accuracy(now: Any, last: Any, newton: Any, column: Any, frame: Any, off: Any) -> float:
    r"""Return the estimated relative error of q, m and B, from the Newton step within the frame and
    the slope outside it (`off`).

    Directions couple to their neighbours, as in Lanczos' method: along the frame the last column of
    the inverse Hessian decays as $R^j$, with $1 - R^2$ the ratio of its squared last entry to its
    squared norm. If the frame continues in the same way, the column of the next direction is the
    last one times $R/(1-R^2)$, and its norm $\sqrt{1+R^2}/(1-R^2)$ times as large. In addition, the
    given directions and the bias have random overlaps with it, of order $N^{-1/2}$ from each of the
    $1/(1-R^2)$ nearest ones. The last changes of q, m and B, which decay as $R^2$, give a second
    estimate. For weights smaller than `off.faint` the error is relative to that norm, because of
    rounding.
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
