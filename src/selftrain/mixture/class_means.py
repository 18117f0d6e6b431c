r"""Means of K classes: validated, from a Gram matrix or a simplex, and in the modes of a common
covariance.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..fields import number, whole
from ..parameters import LARGEST, SMALLEST, SPAN
from .covariances import ASYMMETRY, NEGATIVE, SAME_MEAN, eigen, finite, widened

MOST_CLASSES = 1000

ROUNDING = 1e-13
"""Eigenvalues of a Gram matrix below this fraction of its largest entry count as zero."""


class ClassModes(NamedTuple):
    """Means of K classes in coordinates in which the covariance is diagonal.

    Attributes:
        variances: variance of each coordinate, shape (n,).
        means: class means, shape (n, K).
        copies: number of features that each coordinate stands for.
    """

    variances: Array
    means: Array
    copies: Array


def checked_means(field: str, value: Any) -> Array:
    """Return validated class means: a matrix with one row per class, all rows different."""
    means = finite(field, value)
    if means.ndim != 2 or len(means) < 2 or means.shape[1] == 0:
        accepted = "must be a matrix with one row per class and one column per feature"
        raise InvalidInput(field, value, accepted)
    if not SMALLEST <= float(np.abs(means).max()) <= LARGEST:
        raise InvalidInput(field, value, f"the largest entry must be {SPAN}")
    scale = float(np.abs(means).max())
    for one, other in combinations(range(len(means)), 2):
        if float(np.abs(means[one] - means[other]).max()) <= SAME_MEAN * scale:
            accepted = (
                f"classes {one} and {other} have the same mean, so they cannot be told apart: "
                "merge them into one class or give them different means"
            )
            raise InvalidInput(field, value, accepted)
    return means


def means_of_gram(gram: Any) -> Array:
    """Return means with a given Gram matrix: the rows of its symmetric square root.

    >>> means_of_gram([[1.0, 0.0], [0.0, 4.0]])
    array([[1., 0.],
           [0., 2.]])
    """
    matrix = finite("gram", gram)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        accepted = "must be a square matrix, the products of the class means"
        raise InvalidInput("gram", gram, accepted)
    largest = float(np.abs(matrix).max())
    if float(np.abs(matrix - matrix.T).max()) > ASYMMETRY * largest:
        raise InvalidInput("gram", gram, "must be symmetric, as products of vectors are")
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if values[0] < -NEGATIVE * largest:
        accepted = (
            "must be positive semidefinite, as products of vectors are; its smallest eigenvalue is "
            f"{values[0]:.3g}"
        )
        raise InvalidInput("gram", gram, accepted)
    values[values < ROUNDING * largest] = 0.0  # the root of a rounding error is not small
    means = (vectors * np.sqrt(values)) @ vectors.T
    try:
        return checked_means("gram", means)
    except InvalidInput as error:
        raise InvalidInput("gram", gram, error.accepted) from None


def simplex_gram(classes: Any, distance: Any) -> Array:
    """Return the Gram matrix of K means of sum zero, all at the same distance from each other."""
    accepted = f"must be a whole number of classes from 2 to {MOST_CLASSES}"
    count = whole("classes", classes, lambda n: 2 <= n <= MOST_CLASSES, accepted)
    accepted = f"must be a number > 0 ({SPAN})"
    length = number("distance", distance, lambda x: SMALLEST <= x <= LARGEST, accepted)
    return np.asarray(0.5 * length**2 * (np.eye(count) - 1.0 / count))


def class_modes(means: Array, covariance: Array) -> ClassModes:
    """Return the means in the modes (eigenvectors) of a covariance.

    Features of equal variance are combined, because only the directions that the means span matter.

    >>> modes = class_modes(np.array([[3.0, 4.0, 1.0], [0.0, 0.0, 1.0]]), np.array([1.0, 1.0, 2.0]))
    >>> modes.variances, modes.copies
    (array([1., 2.]), array([2., 1.]))
    """
    if covariance.ndim == 2:
        values, vectors = eigen(covariance)
        return ClassModes(values, (means @ vectors).T, np.ones(len(values)))
    variances = widened(covariance, means.shape[1])
    parts = []
    for value in np.unique(variances):
        inside = means[:, variances == value]
        left, sizes, _ = np.linalg.svd(inside, full_matrices=False)
        rank = max(1, int((sizes > SAME_MEAN * sizes[0]).sum())) if sizes[0] > 0 else 1
        along = (left[:, :rank] * sizes[:rank]).T
        parts.append((np.full(rank, value), along, np.full(rank, inside.shape[1] / rank)))
    columns = zip(*parts, strict=True)
    return ClassModes(*(np.concatenate(column) for column in columns))
