r"""Design matrices: any object with the two products $X w$ and $X^\top r$.

The fit (`linear/fit.py`) uses a matrix only through these products; w and r are vectors, or
matrices of a few columns. `Stored` wraps a numpy array or a scipy sparse matrix. Two kinds are
composed of others: `Stacked` (one above the other) and `ClusterRows` (noise around class means).
`designs/revealed.py` has a Gaussian matrix that is drawn only as far as needed.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...arrays import Array


class Design(Protocol):
    """A matrix defined by its products."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    def times(self, weights: Array) -> Array:
        """Return X @ weights."""

    def transposed_times(self, rows: Array) -> Array:
        """Return X.T @ rows."""


class Stored:
    """A dense array or a scipy sparse matrix.

    >>> Stored(np.eye(3)).times(np.arange(3.0))
    array([0., 1., 2.])
    """

    def __init__(self, matrix: Any):
        self.matrix = matrix
        self.shape: tuple[int, int] = tuple(matrix.shape)

    def times(self, weights: Array) -> Array:
        return np.asarray(self.matrix @ weights)

    def transposed_times(self, rows: Array) -> Array:
        return np.asarray(self.matrix.T @ rows)


class Stacked:
    """Several designs with the same columns, one above the other."""

    def __init__(self, *parts: Design):
        self.parts = parts
        self.shape = (sum(part.shape[0] for part in parts), parts[0].shape[1])

    def times(self, weights: Array) -> Array:
        return np.concatenate([part.times(weights) for part in self.parts])

    def transposed_times(self, rows: Array) -> Array:
        ends = np.cumsum([part.shape[0] for part in self.parts])[:-1]
        pieces = zip(self.parts, np.split(rows, ends), strict=True)
        return np.asarray(np.sum([part.transposed_times(piece) for part, piece in pieces], axis=0))


class ClusterRows:
    r"""$X = S E + \sqrt\Delta Z$: noise Z around class means that lie in the span of a few
    directions.

    Arguments:
        noise: Z.
        coordinates: S, the coordinates of the class mean of each sample, one row per sample.
        directions: E, one row per direction.
        delta: $\Delta$.
    """

    def __init__(self, noise: Design, coordinates: Array, directions: Array, delta: float):
        self.noise, self.scale = noise, float(np.sqrt(delta))
        self.pairs = list(zip(np.ascontiguousarray(coordinates.T), directions, strict=True))
        self.shape = noise.shape

    def times(self, weights: Array) -> Array:
        means = sum(np.multiply.outer(place, one @ weights) for place, one in self.pairs)
        return np.asarray(means + self.scale * self.noise.times(weights))

    def transposed_times(self, rows: Array) -> Array:
        means = sum(np.multiply.outer(one, place @ rows) for place, one in self.pairs)
        return np.asarray(means + self.scale * self.noise.transposed_times(rows))
