"""Dense algebra of the few coordinates of the frame, compiled: Newton directions and secant
updates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.kernels import kernel


@kernel(nogil=True, error_model="numpy")
def dot(a: Any, b: Any, size: Any) -> float:
    """The inner product of the first `size` entries."""
    total: float = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@kernel(nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def newton_step(hessian: Any, gradient: Any, size: Any, floor: float) -> tuple[Any, Any, bool]:
    """x with hessian x = -gradient over the first `size` entries, by Cholesky's method.

    The second result is the last column of the inverse: what a slope along the newest direction
    does to all. A pivot below `floor` (below 0 for the bias, in place 0), which the true Hessian
    cannot have, is raised to it; the third result says whether none was.
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


@kernel(nogil=True, error_model="numpy")
def secant(hessian: Any, move: Any, gradient: Any, before: Any, size: Any) -> None:
    """BFGS: after `move` changed the gradient from `before`, make hessian @ move that change."""
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
