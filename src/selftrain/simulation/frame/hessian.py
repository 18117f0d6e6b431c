"""The Hessian of a fit over the bias and the frame: recomputed, or with one more direction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from .newton import newton_step
from .passes import curvatures, project, residuals, reveal, total


class Objective(NamedTuple):
    r"""What a fit minimises: the loss, $\lambda N$, and whether the bias is trained."""

    loss: Any
    ridge: float
    train_bias: bool


class FitArrays(NamedTuple):
    """Arrays over the bias (index 0) and the frame: the Hessian, the gradient now and before the
    last move, that move; `step` is its part in the frame.
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


@kernel(nogil=True, error_model="numpy")
def open_fit(objective: Objective, columns: Any, rows: Any, point: Any) -> OpenFit:
    """Return a fit at zero weights and logits; its first move leads to the starting point."""
    size = columns.x.shape[0] + 1
    rows.logits[:] = 0.0
    rows.base[:] = 0.0
    hessian = np.zeros((size, size))
    step = point.copy()
    work = FitArrays(hessian, np.zeros(size), np.zeros(size), np.zeros(size), step)
    return OpenFit(objective, columns, rows, work)


@kernel(nogil=True, error_model="numpy")
def full_hessian(fit: OpenFit, frame: Any) -> None:
    """Hessian over the bias (the identity if it is fixed) and the frame, at the present logits."""
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


@kernel(nogil=True, error_model="numpy")
def sound_step(fit: OpenFit, frame: Any) -> tuple[Any, Any]:
    """The Newton step and the last column of the inverse Hessian.

    A Hessian with a smaller eigenvalue than the ridge allows has suffered from its corrections: it
    is recomputed.
    """
    hessian, gradient, _, _, _ = fit.work
    floor = 0.5 * fit.objective.ridge
    newton, column, sound = newton_step(hessian, gradient, frame + 1, floor)
    if not sound:
        full_hessian(fit, frame)
        newton, column, sound = newton_step(hessian, gradient, frame + 1, floor)
    return newton, column


@kernel(nogil=True, error_model="numpy")
def append_direction(fit: OpenFit, filled: Any, new: Any) -> None:
    """Reveal the direction `new`, the last of the frame from now on, with its slope and its row of
    the Hessian.
    """
    loss, ridge, train_bias = fit.objective
    hessian, gradient, _, _, _ = fit.work
    last = filled.frame + 1
    row = np.zeros(last)
    with_bias, gradient[last] = reveal(loss, fit.columns, filled, fit.rows, new, row)
    for j in range(last):
        hessian[j + 1, last] = hessian[last, j + 1] = row[j]
    hessian[0, last] = hessian[last, 0] = with_bias if train_bias else 0.0
    hessian[last, last] += ridge
