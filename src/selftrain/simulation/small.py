"""Dense algebra of the few coordinates of the frame, compiled: Newton directions and secant updates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def dot(a: Any, b: Any, size: Any) -> float:
    """The inner product of the first `size` entries."""
    total: float = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def solve_symmetric(matrix: Any, right: Any, size: Any) -> Any:
    """x with matrix x = -right over the first `size` entries, by Cholesky's method.

    A pivot that rounding has made too small is raised: the direction stays one of descent.
    """
    factor = np.zeros((size, size))
    x = np.empty(size)
    for i in range(size):
        for j in range(i + 1):
            s = matrix[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            if i == j:
                factor[i, i] = np.sqrt(max(s, 1e-13 * matrix[i, i]))
            else:
                factor[i, j] = s / factor[j, j]
    for i in range(size):
        x[i] = -right[i]
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            x[i] -= factor[k, i] * x[k]
        x[i] /= factor[i, i]
    return x


@njit(cache=True, nogil=True, error_model="numpy")
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
