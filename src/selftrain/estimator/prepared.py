"""Samples in their principal directions, labelled and unlabelled ones separate.

Equal labelled samples are merged into one of their total weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from .anchored import Unlabeled
from .blocks import Block, StoredRows, as_rows, is_sparse
from .folds import Labeled, assign_folds
from .preprocessing import Basis, extremes, find_basis, shared_units

FEWEST_DIRECTIONS = 10
ROWS_PER_DIRECTION = 10

MOST_IN_GRAPH = 10_000
"""Largest number of unlabelled samples for which "auto" builds a graph of neighbours, whose time
grows with the number of pairs."""

FILLED_BY_WORDS = 0.05
"""Nonzero entries below which samples are text: 0.3 to 1.6 % on seven tasks of text, 14 to 53 % on
images."""


@dataclass(frozen=True)
class Prepared:
    """Samples in their principal directions, equal labelled ones merged.

    Attributes:
        basis: the directions.
        kind: "table" or "shared".
        labeled: coordinates of distinct labelled samples.
        codes, weights, folds: their classes, weights and folds.
        unlabeled: the other samples.
        filled: fraction of labelled entries that are not zero (not the minimum of their column).
    """

    basis: Basis
    kind: str
    labeled: Array
    codes: Array
    weights: Array
    folds: Array
    unlabeled: Unlabeled
    filled: float = 1.0

    def against_rest(self, positive: int) -> Labeled:
        """Return the labelled samples, one class against all others."""
        return Labeled(self.labeled, (self.codes == positive) * 1.0, self.weights, self.folds)

    def has_neighbours(self, asked: bool | str) -> bool:
        """Return whether to use a graph of neighbours.

        "auto": if columns share a unit and are not words, so that distances are meaningful, and
        samples are in memory and not too many.
        """
        if asked != "auto":
            return bool(asked)
        stored = isinstance(self.unlabeled.coordinates, StoredRows)
        images = self.kind == "shared" and self.filled > FILLED_BY_WORDS
        return images and stored and len(self.unlabeled.weights) <= MOST_IN_GRAPH


def prepare(
    matrix: Any,
    codes: Array,
    weights: Array,
    preprocessing: str,
    clip: float | None,
    directions: int,
    random: np.random.RandomState,
) -> Prepared:
    """Find the directions from all samples, and split these into labelled and unlabelled ones.

    Arguments:
        codes: class of every sample, -1 if unlabelled.
        weights: all positive.
    """
    rows = as_rows(matrix)
    ends = extremes(rows)
    kind = preprocessing
    if kind == "auto":
        kind = "shared" if shared_units(rows, ends) else "table"
    directions = min(directions, most_directions(weights))
    basis = find_basis(rows, weights, ends, kind, clip, directions, random)
    known, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    taken = rows.take(known)
    first, mass = different_rows(taken, codes[known], weights[known])
    labeled = basis.coordinates(taken[first])
    own = codes[known][first]
    folds = assign_folds(labeled, own, random)
    coordinates = rows.project(basis.coordinates, basis.variances.size).part(others)
    unlabeled = Unlabeled(coordinates, weights[others])
    return Prepared(basis, kind, labeled, own, mass, folds, unlabeled, filled(taken, ends.low))


def most_directions(weights: Array) -> int:
    """Return the largest number of directions for samples of these weights."""
    return max(FEWEST_DIRECTIONS, int(np.ceil(weights.sum() / ROWS_PER_DIRECTION)))


def filled(block: Block, low: Array) -> float:
    """Return the fraction of entries that are not zero; in a dense block, not the minimum of their
    column, which is zero unless the columns were shifted.
    """
    count = block.count_nonzero() if is_sparse(block) else np.count_nonzero(block > low)
    return float(count / max(block.shape[0] * block.shape[1], 1))


def different_rows(block: Block, codes: Array, weights: Array) -> tuple[Array, Array]:
    """Return the first positions of distinct samples (content and class), and their weights.

    >>> different_rows(np.array([[1.0], [2.0], [1.0]]), np.array([0, 1, 0]), np.ones(3))
    (array([0, 1]), array([2., 1.]))
    """
    places: dict[tuple[int, bytes], int] = {}
    first: list[int] = []
    mass: list[float] = []
    for index, content in enumerate(contents(block)):
        key = (int(codes[index]), content)
        place = places.setdefault(key, len(first))
        if place == len(first):
            first.append(index)
            mass.append(0.0)
        mass[place] += float(weights[index])
    return np.array(first, dtype=int), np.array(mass)


def contents(block: Block) -> Iterator[bytes]:
    """Yield the content of each row as bytes."""
    if is_sparse(block):
        table = block.tocsr(copy=True)
        table.sum_duplicates()
        table.eliminate_zeros()
        for begin, end in zip(table.indptr[:-1], table.indptr[1:], strict=True):
            yield table.indices[begin:end].tobytes() + table.data[begin:end].tobytes()
        return
    for row in np.ascontiguousarray(block) + 0.0:
        yield row.tobytes()
