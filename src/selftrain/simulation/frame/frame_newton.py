"""Newton's method over the bias (index 0) and the frame, compiled: the state of a fit, its Hessian
(recomputed, corrected, or extended by a direction), and its steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from .passes import curvatures, dot, project, residuals, reveal, total

OVERSHOT, MOST_TAKEN_BACK = 0.9, 40
"""A step has overshot if the slope along it, now uphill, exceeds `OVERSHOT` times the initial
slope. It is then shortened, at most `MOST_TAKEN_BACK` times in a row.
"""

LEAST_KEPT, MOST_KEPT = 0.1, 0.7
"""Bounds of the fraction that is kept of a step that has overshot."""


class Objective(NamedTuple):
    r"""The objective of a fit: the loss, $\lambda N$, and whether the bias is trained."""

    loss: Any
    ridge: float
    train_bias: bool


class FitArrays(NamedTuple):
    """Arrays over the bias (index 0) and the frame: the Hessian, the current gradient, the gradient
    before the last move, and that move; `step` is its part within the frame.
    """

    hessian: Any
    gradient: Any
    before: Any
    move: Any
    step: Any


class OpenFit(NamedTuple):
    """The state of a fit while it runs."""

    objective: Any
    columns: Any
    rows: Any
    work: Any


@kernel(nogil=True)
def open_fit(objective: Objective, columns: Any, rows: Any, point: Any) -> OpenFit:
    """Return a fit at zero weights and logits; its first move will be to the starting point."""
    size = columns.x.shape[0] + 1
    rows.logits[:] = 0.0
    rows.base[:] = 0.0
    hessian = np.zeros((size, size))
    step = point.copy()
    work = FitArrays(hessian, np.zeros(size), np.zeros(size), np.zeros(size), step)
    return OpenFit(objective, columns, rows, work)


@kernel(nogil=True)
def full_hessian(fit: OpenFit, frame: Any) -> None:
    """Compute the Hessian over the bias (identity if it is fixed) and the frame, at the current
    logits.
    """
    loss, ridge, train_bias = fit.objective
    x, hessian = fit.columns.x, fit.work.hessian
    logits, targets, _, _ = fit.rows
    curvature, weighted = np.empty(logits.size), np.empty(logits.size)
    residuals(loss, logits, targets, weighted)
    curvatures(loss, weighted, targets, curvature)
    hessian[0, 0] = total(curvature) if train_bias else 1.0
    for j in range(frame):
        for i in range(logits.size):
            weighted[i] = curvature[i] * x[j, i]
        row = np.zeros(j + 1)
        project(x, j + 1, np.int64(0), weighted, row)
        hessian[0, j + 1] = hessian[j + 1, 0] = total(weighted) if train_bias else 0.0
        for i in range(j + 1):
            hessian[i + 1, j + 1] = hessian[j + 1, i + 1] = row[i]
        hessian[j + 1, j + 1] += ridge


@kernel(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def newton_step(hessian: Any, gradient: Any, size: Any, floor: float) -> tuple[Any, Any, bool]:
    """Solve hessian x = -gradient over the first `size` entries by Cholesky's method.

    Pivots below `floor` (below 0 for the bias, index 0), which the true Hessian cannot have, are
    raised to it.

    Returns:
        x; the last column of the inverse, which is the response of all entries to a slope along the
        newest direction; whether no pivot was raised.
    """
    factor = np.zeros((size, size))
    x = np.empty(size)
    sound = True
    for i in range(size):
        for j in range(i + 1):
            s = hessian[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            if i == j:
                least = floor if i > 0 else 0.0
                sound = sound and s >= least
                factor[i, i] = np.sqrt(max(s, least, 1e-300))
            else:
                factor[i, j] = s / factor[j, j]
    for i in range(size):
        x[i] = -gradient[i]
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]
    column = np.zeros(size)
    column[size - 1] = 1.0 / factor[size - 1, size - 1]
    for i in range(size - 1, -1, -1):
        x[i] /= factor[i, i]
        column[i] /= factor[i, i]
        for k in range(i):
            x[k] -= factor[i, k] * x[i]
            column[k] -= factor[i, k] * column[i]
    return x, column, sound


@kernel(nogil=True)
def secant(hessian: Any, move: Any, gradient: Any, before: Any, size: Any) -> None:
    """Make a BFGS correction, after which hessian @ move is gradient - before."""
    image, change = np.zeros(size), np.empty(size)
    for i in range(size):
        change[i] = gradient[i] - before[i]
        for j in range(size):
            image[i] += hessian[i, j] * move[j]
    stretched, bent = dot(move, change, size), dot(move, image, size)
    if stretched > 1e-8 * bent and bent > 0.0:
        for i in range(size):
            for j in range(size):
                hessian[i, j] += change[i] * change[j] / stretched - image[i] * image[j] / bent


@kernel(nogil=True)
def sound_step(fit: OpenFit, frame: Any) -> tuple[Any, Any]:
    """Return the Newton step and the last column of the inverse Hessian.

    If the Hessian has an eigenvalue below the ridge, which its corrections may cause, it is
    recomputed.
    """
    hessian, gradient, _, _, _ = fit.work
    floor = 0.5 * fit.objective.ridge
    newton, column, sound = newton_step(hessian, gradient, frame + 1, floor)
    if not sound:
        full_hessian(fit, frame)
        newton, column, sound = newton_step(hessian, gradient, frame + 1, floor)
    return newton, column


@kernel(nogil=True)
def append_direction(fit: OpenFit, filled: Any, new: Any) -> None:
    """Append the direction `new` to the frame, with its slope and its row of the Hessian."""
    loss, ridge, train_bias = fit.objective
    hessian, gradient, _, _, _ = fit.work
    last = filled.frame + 1
    row = np.zeros(last)
    with_bias, gradient[last] = reveal(loss, fit.columns, filled, fit.rows, new, row)
    for j in range(last):
        hessian[j + 1, last] = hessian[last, j + 1] = row[j]
    hessian[0, last] = hessian[last, 0] = with_bias if train_bias else 0.0
    hessian[last, last] += ridge


@kernel(nogil=True)
def slopes_at(
    objective: Objective, pull: float, slopes: Any, point: Any, size: Any, out: Any
) -> None:
    """Write the gradient over the bias and the first `size` directions at a point."""
    _, ridge, train_bias = objective
    out[0] = pull if train_bias else 0.0
    for j in range(size):
        out[j + 1] = slopes[j] + ridge * point[j]


@kernel(nogil=True)
def kept_share(descent: float, ahead: float) -> float:
    """Return the fraction of a move to keep: all of it, or less if the move overshot.

    Arguments:
        descent: slope of the objective along the move where it starts.
        ahead: the same slope where it ends; positive behind the minimum.
    """
    downhill = abs(descent)
    if ahead <= OVERSHOT * downhill:
        return 1.0
    return max(LEAST_KEPT, min(MOST_KEPT, downhill / (downhill + ahead)))


@kernel(nogil=True)
def take_back(work: FitArrays, point: Any, size: Any, kept: float) -> float:
    """Undo all but the fraction `kept` of the last move over `size` directions; return the change
    of the bias.
    """
    _, _, _, move, step = work
    for j in range(size):
        step[j] = (kept - 1.0) * move[j + 1]
        point[j] += step[j]
    shift = (kept - 1.0) * move[0]
    for j in range(size + 1):
        move[j] *= kept
    return float(shift)


@kernel(nogil=True)
def make(work: FitArrays, point: Any, size: Any, newton: Any) -> float:
    """Move by a Newton step over `size` directions; return the change of the bias."""
    _, gradient, before, move, step = work
    for j in range(size + 1):
        move[j], before[j] = newton[j], gradient[j]
    for j in range(size):
        step[j] = newton[j + 1]
        point[j] += step[j]
    return float(newton[0])


@kernel(nogil=True)
def shorten(newton: Any, size: Any, scale: float, norm: float, bias: float) -> None:
    """Shorten a move so that the spread of the logits at most doubles: beyond that the quadratic
    model of the loss is poor.
    """
    spread = scale * np.sqrt(dot(newton[1:], newton[1:], size - 1)) + abs(newton[0])
    most = 2.0 + scale * norm + abs(bias)
    if spread > most:
        for j in range(size):
            newton[j] *= most / spread
