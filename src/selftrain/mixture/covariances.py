r"""Covariances as a user gives them: checked, brought to one form, and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..parameters import LARGEST, SMALLEST, SPAN

ASYMMETRY = 1e-8
"""A covariance may differ from its transpose by this much, relative to its largest entry."""

NEGATIVE = 1e-9
"""Eigenvalues down to minus this share of the largest one are rounding, and count as zero."""

VANISHING = 1e-3 * NEGATIVE
"""Up to this share of the largest one a variance counts as zero when a separation is asked for."""

SAME_MEAN = 1e-12
"""By this share of its length a mean may reach where the noise has no variance."""


def finite(field: str, value: Any) -> Array:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(field, value, "numbers are accepted") from None
    if not np.isfinite(array).all():
        raise InvalidInput(field, value, "finite numbers are accepted, without NaN")
    return array


def one_or_two(covariance: Any) -> tuple[Any, ...]:
    """A tuple is a pair; so is an array of two matrices."""
    if isinstance(covariance, tuple):
        if len(covariance) != 2:
            accepted = "a tuple has two covariances, of the negative and the positive class"
            raise InvalidInput("covariance", covariance, accepted)
        return covariance
    if np.ndim(covariance) == 3 and len(covariance) == 2:
        return (covariance[0], covariance[1])
    return (covariance,)


def checked(name: str, value: Any, features: int) -> Array:
    matrix = finite(name, value)
    if matrix.ndim > 2 or any(size != features for size in matrix.shape):
        accepted = (
            f"a number, a vector of {features}, a matrix of {features} by {features}, or a tuple of"
            f" two of these is accepted, not the shape {matrix.shape}"
        )
        raise InvalidInput(name, value, accepted)
    if matrix.ndim == 2:
        largest = float(np.abs(matrix).max())
        if float(np.abs(matrix - matrix.T).max()) > ASYMMETRY * largest:
            raise InvalidInput(name, value, "a symmetric matrix is accepted")
        matrix = 0.5 * (matrix + matrix.T)
        lowest, highest = np.linalg.eigvalsh(matrix)[[0, -1]]
    else:
        lowest, highest = float(matrix.min()), float(matrix.max())
    if (matrix.ndim < 2 and lowest < 0) or lowest < -NEGATIVE * abs(highest):
        accepted = f"variances must not be negative; its smallest one is {lowest:.3g}"
        raise InvalidInput(name, value, accepted)
    if not highest > 0:
        raise InvalidInput(name, value, "some variance has to be greater than zero")
    if not SMALLEST <= highest <= LARGEST:
        raise InvalidInput(name, value, f"must have a largest variance {SPAN}")
    matrix.setflags(write=False)
    return matrix


def widened(matrix: Array, features: int) -> Array:
    """A number as a vector; vectors and matrices as they are."""
    return np.full(features, float(matrix)) if matrix.ndim == 0 else matrix


def eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, rounding below zero removed, and eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, 0.0), vectors
