"""Samples in their principal directions, labelled and unlabelled ones separate.

Equal labelled samples are merged into one of their total weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from .anchored import Share, TwoClasses, Unlabeled
from .blocks import Block, Rows, StoredRows, as_rows, is_sparse
from .checks import GivenRows
from .folds import Labeled, assign_folds
from .preprocessing import Basis, Extremes, extremes, find_basis, shared_units
from .same_samples import per_samples
from .settings import Constants, Settings

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
    """Samples in their principal directions as a method sees them, equal labelled ones merged.

    Attributes:
        constants: of the method.
        basis: the directions.
        kind: "table" or "shared".
        labeled: coordinates of distinct labelled samples.
        codes, weights, folds: their classes, weights and folds.
        unlabeled: the other samples.
        filled: fraction of labelled entries that are not zero (not the minimum of their column).
    """

    constants: Constants
    basis: Basis
    kind: str
    labeled: Array
    codes: Array
    weights: Array
    folds: Array
    unlabeled: Unlabeled
    filled: float

    @property
    def exponents(self) -> list[float]:
        """Exponents of the metrics; the Gaussian method tries them in order from the sphere."""
        given = self.constants.metrics
        return sorted(given) if self.constants.gaussian else list(given)

    @property
    def metrics(self) -> list[Array]:
        """The candidate metrics, each as a weight per direction of the basis."""
        return [self.basis.weights(s) for s in self.exponents]

    def against_rest(self, positive: int, share: Share) -> TwoClasses:
        """Return the problem of one class against all others."""
        classes = (self.codes == positive) * 1.0
        labeled = Labeled(self.labeled, classes, self.weights, self.folds)
        return TwoClasses(labeled, self.unlabeled, self.constants, share)

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
    rows: GivenRows, settings: Settings, constants: Constants, random: np.random.RandomState
) -> Prepared:
    """Find the directions from all samples, and split these into labelled and unlabelled ones."""
    weights, codes, most = rows.weights, rows.target.codes, most_directions(rows.weights)
    if settings.directions is not None and settings.directions > most:
        accepted = f"must be at most {most}, a tenth of the samples (and 10 in any case)"
        raise InvalidInput("directions", settings.directions, accepted)
    found = _in_directions(
        rows.matrix,
        weights,
        settings.preprocessing,
        settings.clip,
        min(constants.directions, most),
        random.get_state(),
    )
    random.set_state(found.state)
    basis = found.basis
    known, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    taken = found.table.take(known)
    first, mass = different_rows(taken, codes[known], weights[known])
    labeled, own = basis.coordinates(taken[first]), codes[known][first]
    folds = assign_folds(labeled, own, random)
    unlabeled = Unlabeled(found.coordinates.part(others), weights[others])
    share = filled(taken, found.ends.low)
    return Prepared(constants, basis, found.kind, labeled, own, mass, folds, unlabeled, share)


class InDirections(NamedTuple):
    """All samples, their extremes and kind of columns, and what they are in their directions.

    Attributes:
        state: of the random numbers after the directions were found.
    """

    table: Rows
    ends: Extremes
    kind: str
    basis: Basis
    coordinates: Rows
    state: Any


@per_samples
def _in_directions(
    matrix: Any, weights: Array, kind: str, clip: float | None, directions: int, state: Any
) -> InDirections:
    """Find the directions of all samples; no label is needed."""
    random = np.random.RandomState()
    random.set_state(state)
    table = as_rows(matrix)
    ends = extremes(table)
    if kind == "auto":
        kind = "shared" if shared_units(table, ends) else "table"
    basis = find_basis(table, weights, ends, kind, clip, directions, random)
    coordinates = table.project(basis.coordinates, basis.variances.size)
    return InDirections(table, ends, kind, basis, coordinates, random.get_state())


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
