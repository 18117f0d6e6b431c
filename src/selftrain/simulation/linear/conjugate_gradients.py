r"""Conjugate gradients for $A x = b$ with a symmetric positive operator.

Used by the Newton steps of the fit and by the probes of the susceptibility.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...arrays import Array


class LinearSolution(NamedTuple):
    """A solution of A x = b.

    Attributes:
        x: the solution.
        form: $b^\\top x$, whose relative error is of the order of the square of that of x.
        softest: the smallest curvature $p^\\top A p / p^\\top p$ of all search directions p.
    """

    x: Array
    form: float
    softest: float


def conjugate_gradients(
    apply: Callable[[Array], Array], b: Array, tolerance: float, limit: int
) -> LinearSolution:
    """Solve A x = b until the residual is below `tolerance` times the norm of b, or after `limit`
    products with A (`apply`); b may have any shape.
    """
    x = np.zeros_like(b)
    residual = b.copy()
    square = float(np.vdot(residual, residual))
    goal = tolerance**2 * square
    direction = residual.copy()
    softest = np.inf
    for _ in range(limit):
        if not square > goal:
            break
        image = apply(direction)
        stiffness = float(np.vdot(direction, image))
        if not stiffness > 0:
            break
        softest = min(softest, stiffness / float(np.vdot(direction, direction)))
        step = square / stiffness
        x += step * direction
        residual -= step * image
        before, square = square, float(np.vdot(residual, residual))
        direction *= square / before
        direction += residual
    return LinearSolution(x, float(np.vdot(b, x)), softest)
