r"""The probability that each score of a Gaussian sample is the largest.

The region in which a class wins is convex, so along a line it is an interval: one Gaussian number
is integrated exactly, the others by quasi-Monte Carlo points. One logit needs no points.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from .draws import normals

POINTS = 2**12


def class_probabilities(basis: Array, mean: Array, covariance: Array) -> Array:
    """Return P(argmax of the scores P u = k) for u of this mean and covariance, (K,).

    >>> from selftrain.protocol import class_basis
    >>> class_probabilities(class_basis(3), np.zeros(2), np.eye(2)).round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    found = np.array([_wins(basis, k, mean, root) for k in range(len(basis))])
    return np.asarray(found / found.sum())


def _wins(basis: Array, k: int, mean: Array, root: Array) -> float:
    """The probability that score k is the largest."""
    gaps = np.delete(basis[k] - basis, k, axis=0)
    slopes, levels = gaps @ root, gaps @ mean
    center = slopes.sum(axis=0)
    norm = float(np.linalg.norm(center))
    if norm == 0.0:
        return float(np.all(levels > 0))
    line = center / norm
    rates = slopes @ line
    across = _complement(line)
    heights = levels + _points(len(mean) - 1) @ (slopes @ across).T
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = -heights / rates
    low = np.where(rates > 0, bounds, -np.inf).max(axis=1)
    high = np.where(rates < 0, bounds, np.inf).min(axis=1)
    inside = np.all((rates != 0) | (heights > 0), axis=1)
    return float(np.mean(np.where(inside & (high > low), ndtr(high) - ndtr(low), 0.0)))


def _complement(line: Array) -> Array:
    """An orthonormal basis of what is orthogonal to a unit vector, (d, d - 1)."""
    return np.linalg.qr(np.column_stack([line, np.eye(line.size)]))[0][:, 1 : line.size]


@lru_cache(maxsize=32)
def _points(dimensions: int) -> Array:
    if dimensions == 0:
        return np.zeros((1, 0))
    return normals(POINTS, dimensions, np.random.SeedSequence(dimensions))
