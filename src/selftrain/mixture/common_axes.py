"""Coordinates in which the covariances of a shape are diagonal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .covariances import eigen, widened


class Modes(NamedTuple):
    r"""A shape in coordinates in which every covariance is diagonal.

    Attributes:
        variances: $s_{ki}$, one row per covariance (one, or negative and positive), one column per
            mode.
        mean: $\mu_i$.
        copies: features that share the mode: equal variances are one mode, along the mean inside
            it.
        basis: columns are the directions of the modes; None if modes are features or groups of
            them.
        group: the mode of each feature when `basis` is None.
    """

    variances: Array
    mean: Array
    copies: Array
    basis: Array | None
    group: NDArray[np.intp] | None


def modes_of(mean: Array, covariances: tuple[Array, ...]) -> Modes | None:
    """The coordinates in which every covariance is diagonal; None if two matrices have none in
    common.

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
