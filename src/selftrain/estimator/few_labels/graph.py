"""More than two classes: probabilities of a model, smoothed along a graph of nearest neighbours.

The soft labels of a model, normalised per class, spread over the graph; the labelled samples count
ten times. What reaches a sample multiplies its probabilities. A new sample takes the mean of its
nearest training samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ...arrays import Array
from ..blocks import as_rows
from ..neighbours import NEAREST, symmetric_graph
from ..preprocessing import Basis, extremes, find_basis
from ..settings import TABLE

LABELED = 10.0
"""Weight of a labelled sample among unlabelled ones of weight 1."""

SPREAD, ROUNDS = 0.8, 20
"""Weight of the neighbours in each round, and the number of rounds."""

CLIP = 8.0
SMALLEST = 1e-12


class ClassGraph(NamedTuple):
    """What the graph says of the training samples, and how new samples find their neighbours."""

    basis: Basis
    nearest: Any
    spread: Array

    def factors(self, rows: Any) -> Array:
        """Return a factor per class for samples; over the training samples its mean is 1."""
        found = self.nearest.kneighbors(self.basis.coordinates(rows), return_distance=False)
        return np.asarray(np.maximum(self.spread[found].mean(axis=1), SMALLEST))


def class_graph(
    rows: Any, codes: Array, probabilities: Array, preprocessing: str, random: np.random.RandomState
) -> ClassGraph:
    """Spread the probabilities of the training samples along their graph.

    Arguments:
        codes: class of every sample, -1 if unlabelled.
        probabilities: of every sample, by a model.
        preprocessing: "table" or "shared".
    """
    table = as_rows(rows)
    ones = np.ones(len(codes))
    basis = find_basis(table, ones, extremes(table), preprocessing, CLIP, TABLE.directions, random)
    coordinates = basis.coordinates(rows)
    known = np.flatnonzero(codes >= 0)
    source = probabilities.copy()
    source[known] = LABELED * np.eye(probabilities.shape[1])[codes[known]]
    source /= np.maximum(source.sum(axis=0), SMALLEST)
    graph = symmetric_graph(coordinates)
    found = source
    for _ in range(ROUNDS):
        found = SPREAD * (graph @ found) + (1 - SPREAD) * source
    found = found / np.maximum(found.mean(axis=0), SMALLEST)
    nearest = NearestNeighbors(n_neighbors=min(NEAREST, len(coordinates))).fit(coordinates)
    return ClassGraph(basis, nearest, found)
