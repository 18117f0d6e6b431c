r"""Covariances (numbers, vectors, matrices, or pairs of these): validation, and modes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import InvalidInput
from ..parameters import LARGEST, SMALLEST, SPAN

ASYMMETRY = 1e-8
"""Largest difference of a covariance from its transpose, relative to its largest entry."""

NEGATIVE = 1e-9
"""Negative eigenvalues up to this fraction of the largest are rounding errors and count as zero."""

VANISHING = 1e-3 * NEGATIVE
"""Variances up to this fraction of the largest count as zero in a separation."""

SAME_MEAN = 1e-12
"""Difference of means that counts as zero, relative to their length."""


def finite(field: str, value: Any) -> Array:
    """Return a value as an array of finite numbers, or raise `InvalidInput`."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(field, value, "must be numbers") from None
    if not np.isfinite(array).all():
        raise InvalidInput(field, value, "must be finite numbers, without NaN")
    return array


def checked_covariances(covariance: Any, features: int, classes: int) -> tuple[Array, ...]:
    """Return the validated covariances: one that is common to all classes, or those of the negative
    and the positive class (given as a tuple, or an array of two matrices).
    """
    given = covariance if isinstance(covariance, tuple) else (covariance,)
    if isinstance(covariance, tuple) and len(covariance) != 2:
        accepted = "must have two covariances if it is a tuple: negative and positive class"
        raise InvalidInput("covariance", covariance, accepted)
    if not isinstance(covariance, tuple) and np.ndim(covariance) == 3 and len(covariance) == 2:
        given = (covariance[0], covariance[1])
    if len(given) == 1:
        return (_checked("covariance", given[0], features),)
    if classes > 2:
        accepted = f"must be one covariance for all {classes} classes"
        raise InvalidInput("covariance", covariance, accepted)
    names = ("negative covariance", "positive covariance")
    return tuple(_checked(name, value, features) for name, value in zip(names, given, strict=True))


def _checked(name: str, value: Any, features: int) -> Array:
    """Return a validated covariance, read-only."""
    matrix = finite(name, value)
    if matrix.ndim > 2 or any(size != features for size in matrix.shape):
        accepted = (
            f"must be a number, a vector of {features}, a matrix of {features} by {features}, or a"
            f" tuple of two of these, not of shape {matrix.shape}"
        )
        raise InvalidInput(name, value, accepted)
    if matrix.ndim == 2:
        largest = float(np.abs(matrix).max())
        if float(np.abs(matrix - matrix.T).max()) > ASYMMETRY * largest:
            raise InvalidInput(name, value, "must be a symmetric matrix")
        matrix = 0.5 * (matrix + matrix.T)
        lowest, highest = np.linalg.eigvalsh(matrix)[[0, -1]]
    else:
        lowest, highest = float(matrix.min()), float(matrix.max())
    if (matrix.ndim < 2 and lowest < 0) or lowest < -NEGATIVE * abs(highest):
        accepted = f"must have no negative variances; its smallest one is {lowest:.3g}"
        raise InvalidInput(name, value, accepted)
    if not highest > 0:
        raise InvalidInput(name, value, "must have a variance greater than zero")
    if not SMALLEST <= highest <= LARGEST:
        raise InvalidInput(name, value, f"must have a largest variance {SPAN}")
    matrix.setflags(write=False)
    return matrix


def widened(matrix: Array, features: int) -> Array:
    """Return a single variance of all features as a vector; vectors and matrices unchanged."""
    return np.full(features, float(matrix)) if matrix.ndim == 0 else matrix


def eigen(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues, those below zero set to zero, and the eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, 0.0), vectors


class Modes(NamedTuple):
    r"""Clusters in coordinates (modes) in which every covariance is diagonal.

    Attributes:
        variances: $s_{ki}$, one row per covariance (one, or negative and positive), one column per
            mode.
        mean: $\mu_i$.
        copies: number of features of each mode. Features of equal variances are combined into one
            mode, in the direction of the mean.
        basis: directions of the modes as columns; None if modes are groups of features.
        group: the mode of each feature if `basis` is None.
    """

    variances: Array
    mean: Array
    copies: Array
    basis: Array | None
    group: NDArray[np.intp] | None


def modes_of(mean: Array, covariances: tuple[Array, ...]) -> Modes | None:
    """Return the coordinates in which every covariance is diagonal; None for two covariances that
    are not both diagonal.

    >>> modes = modes_of(np.array([3.0, 4.0, 1.0]), (np.array([1.0, 1.0, 2.0]),))
    >>> modes.variances, modes.mean, modes.copies
    (array([[1., 2.]]), array([5., 1.]), array([2., 1.]))
    """
    if all(matrix.ndim < 2 for matrix in covariances):
        full = np.array([widened(matrix, mean.size) for matrix in covariances])
        kinds, group = np.unique(full, axis=1, return_inverse=True)
        group = group.ravel()
        square = np.bincount(group, mean**2)
        return Modes(kinds, np.sqrt(square), np.bincount(group).astype(float), None, group)
    if len(covariances) > 1:
        return None
    values, vectors = eigen(covariances[0])
    return Modes(values[None], mean @ vectors, np.ones(mean.size), vectors, None)
