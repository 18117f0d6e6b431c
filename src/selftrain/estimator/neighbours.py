r"""A second teacher: labels spread along a graph of nearest neighbours.

$F = (1 - a) (1 - a S)^{-1} Y$ with the symmetric graph S of the nearest neighbours (Zhou et al.,
2003), both classes of the same total. Its score is added to the student's with weights $\ge 0$ that
held-out scores of the labelled samples choose. It helps if clusters are not linear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from sklearn.neighbors import kneighbors_graph

from ..arrays import Array
from .blocks import Rows, Stacked
from .folds import Labeled, balanced_targets
from .logistic import minimise

NEAREST = 10
"""Neighbours of a sample: enough to connect clusters of some dozens, few enough to stay local."""

SPREAD = 0.97
"""Weight of the neighbours in the score of a sample, in each round of spreading."""

ROUNDS = 60
"""Rounds of spreading: 60 edges, more than any sample is from a label."""

LIMIT = 3.0
"""Largest absolute score: a sample that only one class has reached is likely, not certain."""

RIDGE = 1.0
"""Ridge of the two weights, on scores of unit variance, for the case of few labels."""


@dataclass(frozen=True)
class GraphScores:
    """Scores of the graph: of labelled samples without their own label, and of unlabelled ones."""

    labeled: Array
    unlabeled: Array


def graph_scores(labeled: Labeled, unlabeled: Rows, metric: Array) -> GraphScores:
    """Spread the labels over the graph, with all of them and without each fold."""
    others = np.asarray(unlabeled.take(slice(None)))
    rows = np.vstack([labeled.coordinates, others]) * np.sqrt(metric)
    graph = symmetric_graph(rows)
    everywhere = _spread(graph, labeled, np.ones(len(labeled.classes), dtype=bool))
    own = np.zeros(len(labeled.classes))
    for fold in np.unique(labeled.folds):
        outside = labeled.folds == fold
        own[outside] = _spread(graph, labeled, ~outside)[: len(own)][outside]
    return GraphScores(own, everywhere[len(own) :])


def symmetric_graph(rows: Array) -> scipy.sparse.csr_array:
    """Return the symmetric graph, divided by the square roots of the degrees."""
    count = min(NEAREST, len(rows) - 1)
    near = scipy.sparse.csr_array(kneighbors_graph(rows, count, mode="connectivity"))
    both = near.maximum(near.T)
    root = 1 / np.sqrt(np.maximum(both.sum(axis=1), 1.0))
    return scipy.sparse.csr_array(both.multiply(root[:, None]).multiply(root[None, :]))


def _spread(graph: scipy.sparse.csr_array, labeled: Labeled, used: Array) -> Array:
    """Return the log-odds that reach every sample, both classes of the same total."""
    source = np.zeros((graph.shape[0], 2))
    for label in (0, 1):
        members = np.flatnonzero((labeled.classes == label) & used)
        mass = labeled.weights[members]
        if len(members):
            source[members, label] = mass / mass.sum()
    found = source
    for _ in range(ROUNDS):
        found = SPREAD * (graph @ found) + (1 - SPREAD) * source
    floor = 1e-3 * found.mean(axis=0).max()
    odds = np.log((found[:, 1] + floor) / (found[:, 0] + floor))
    return np.asarray(np.clip(odds, -LIMIT, LIMIT))


def shares_of_teachers(student: Array, graph: Array, labeled: Labeled) -> tuple[float, float]:
    """Return weights >= 0 of the two scores, from a balanced logistic fit on labelled samples.

    If a weight is negative, that teacher is dropped and the other is fitted alone.
    """
    scales = np.array([max(float(np.std(student)), 1e-12), max(float(np.std(graph)), 1e-12)])
    features = np.column_stack([student, graph]) / scales
    targets = balanced_targets(labeled.classes, labeled.weights)
    active = [0, 1]
    while True:
        table, ridge = Stacked(features[:, active]), np.full(len(active), RIDGE)
        found = minimise(table, targets, ridge, tolerance=1e-6).point[:-1]
        if (found >= 0).all() or len(active) == 1:
            break
        active = [0] if found[0] >= found[-1] else [1]
    weights = np.zeros(2)
    weights[active] = np.maximum(found, 0.0)
    if not weights.any():
        return 1.0, 0.0
    a, b = weights / scales
    return float(a), float(b)
