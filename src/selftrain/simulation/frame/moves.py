"""Moves of a fit over the bias (index 0) and the frame, compiled: made, shortened, taken back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.kernels import kernel
from .hessian import FitArrays, Objective
from .newton import dot

OVERSHOT, MOST_TAKEN_BACK = 0.9, 40
"""A move went too far where the slope along it, now uphill, exceeds this share of the slope that it
began with. It is taken back in part, at most so many times in a row.
"""

LEAST_KEPT, MOST_KEPT = 0.1, 0.7
"""The part that remains of a move that went too far lies between these."""


@kernel(nogil=True, error_model="numpy")
def slopes_at(
    objective: Objective, pull: float, slopes: Any, point: Any, size: Any, out: Any
) -> None:
    """Write the gradient over the bias and the first `size` directions at a point."""
    _, ridge, train_bias = objective
    out[0] = pull if train_bias else 0.0
    for j in range(size):
        out[j + 1] = slopes[j] + ridge * point[j]


@kernel(nogil=True, error_model="numpy")
def kept_share(descent: float, ahead: float) -> float:
    """Return the fraction of a move to keep, from the slopes along it at both ends; 1 unless it
    overshot.
    """
    downhill = abs(descent)
    if ahead <= OVERSHOT * downhill:
        return 1.0
    return max(LEAST_KEPT, min(MOST_KEPT, downhill / (downhill + ahead)))


@kernel(nogil=True, error_model="numpy")
def take_back(work: FitArrays, point: Any, size: Any, kept: float) -> float:
    """Undo all but a fraction of the last move over `size` directions; return that of the bias."""
    _, _, _, move, step = work
    for j in range(size):
        step[j] = (kept - 1.0) * move[j + 1]
        point[j] += step[j]
    shift = (kept - 1.0) * move[0]
    for j in range(size + 1):
        move[j] *= kept
    return float(shift)


@kernel(nogil=True, error_model="numpy")
def make(work: FitArrays, point: Any, size: Any, newton: Any) -> float:
    """Move by a Newton step over `size` directions; return the change of the bias."""
    _, gradient, before, move, step = work
    for j in range(size + 1):
        move[j], before[j] = newton[j], gradient[j]
    for j in range(size):
        step[j] = newton[j + 1]
        point[j] += step[j]
    return float(newton[0])


@kernel(nogil=True, error_model="numpy")
def shorten(newton: Any, size: Any, scale: float, norm: float, bias: float) -> None:
    """Shorten a move so that the spread of the logits at most doubles: farther out the loss is not
    quadratic.
    """
    spread = scale * np.sqrt(dot(newton[1:], newton[1:], size - 1)) + abs(newton[0])
    most = 2.0 + scale * norm + abs(bias)
    if spread > most:
        for j in range(size):
            newton[j] *= most / spread
