"""Rows as the methods see them: in their principal directions, labelled and unlabelled ones apart.

Labelled rows that are equal are gathered into one row of their total weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from .anchored import Unlabeled
from .folds import Labeled, assign_folds
from .preprocessing import Basis, extremes, find_basis, shared_units
from .rows import Block, StoredRows, as_rows, is_sparse

FEWEST_DIRECTIONS = 10
ROWS_PER_DIRECTION = 10

MOST_IN_GRAPH = 10_000
"""Unlabelled rows up to which "auto" builds a graph of neighbours: all pairs are compared, which
for more rows would take longer than everything else."""

FILLED_BY_WORDS = 0.05
"""Counts of words are zero in all but a few columns: 0.3 to 1.6 % of the entries of seven tasks of
text are not zero, 14 to 53 % of those of images."""


@dataclass(frozen=True)
class Prepared:
    """Rows in their principal directions, labelled ones gathered.

    Attributes:
        basis: the directions.
        kind: "table" or "shared".
        labeled: coordinates of different labelled rows.
        codes, weights, folds: their classes, weights and folds.
        unlabeled: the other rows.
        filled: share of the labelled rows' entries that are not zero (not at the smallest value
            of their column).
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
        """The labelled rows of one class against all others."""
        return Labeled(self.labeled, (self.codes == positive) * 1.0, self.weights, self.folds)

    def has_neighbours(self, asked: bool | str) -> bool:
        """Whether a graph of neighbours teaches.

        "auto": where columns share a unit and are not words, so that distances mean something, and
        rows are in memory and not too many.
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
    """Find the directions from all rows, and split these into labelled and unlabelled ones.

    Arguments:
        codes: class of every row, -1 for none.
        weights: all positive.
    """
    rows = as_rows(matrix)
    ends = extremes(rows)
    kind = preprocessing
    if kind == "auto":
        kind = "shared" if shared_units(rows, ends) else "table"
    most = max(FEWEST_DIRECTIONS, int(np.ceil(weights.sum() / ROWS_PER_DIRECTION)))
    basis = find_basis(rows, weights, ends, kind, clip, min(directions, most), random)
    known, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    taken = rows.take(known)
    first, mass = different_rows(taken, codes[known], weights[known])
    labeled = basis.coordinates(taken[first])
    own = codes[known][first]
    folds = assign_folds(labeled, own, random)
    coordinates = rows.project(basis.coordinates, basis.variances.size).part(others)
    unlabeled = Unlabeled(coordinates, weights[others])
    return Prepared(basis, kind, labeled, own, mass, folds, unlabeled, _filled(taken, ends.low))


def _filled(block: Block, low: Array) -> float:
    """Share of entries that are not zero; of a dense block, not the smallest value of their column,
    which is zero unless somebody has moved the columns.
    """
    count = block.count_nonzero() if is_sparse(block) else np.count_nonzero(block > low)
    return float(count / max(block.shape[0] * block.shape[1], 1))


def different_rows(block: Block, codes: Array, weights: Array) -> tuple[Array, Array]:
    """Rows that differ in content or class: where each first stands, and its total weight.

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
    """What each row contains, as bytes: equal rows have equal ones."""
    if is_sparse(block):
        table = block.tocsr(copy=True)
        table.sum_duplicates()
        table.eliminate_zeros()
        for begin, end in zip(table.indptr[:-1], table.indptr[1:], strict=True):
            yield table.indices[begin:end].tobytes() + table.data[begin:end].tobytes()
        return
    for row in np.ascontiguousarray(block) + 0.0:
        yield row.tobytes()
