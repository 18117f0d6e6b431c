"""One table, one or more two-class problems: shared preparation, a run per class, the result in user's units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from .anchored import Outcome, Share, Unlabeled, self_train
from .calibration import calibrate
from .folds import Labeled, assign_folds
from .gaussian import in_best_metric
from .preprocessing import Basis, find_basis, shared_units
from .rows import Block, as_rows, is_sparse
from .setting import Setting

FEWEST_DIRECTIONS = 10
ROWS_PER_DIRECTION = 10


@dataclass(frozen=True)
class Prepared:
    """Rows in their principal directions, labelled ones gathered.

    Attributes:
        basis: the directions.
        kind: "table" or "shared".
        labeled: coordinates of different labelled rows.
        codes, weights, folds: their classes, weights and folds.
        unlabeled: the other rows.
    """

    basis: Basis
    kind: str
    labeled: Array
    codes: Array
    weights: Array
    folds: Array
    unlabeled: Unlabeled

    def against_rest(self, positive: int) -> Labeled:
        """The labelled rows of one class against all others."""
        return Labeled(self.labeled, (self.codes == positive) * 1.0, self.weights, self.folds)


@dataclass(frozen=True)
class Fitted:
    """One class against the rest.

    Attributes:
        coefficients, intercept: of the population log-odds, in the user's units.
        share: estimated share of the class.
        slope, shift: population log-odds = slope * score + shift.
        held_out: population log-odds of the labelled rows, from models without them.
        history: one entry per step and metric.
    """

    coefficients: Array
    intercept: float
    share: float
    slope: float
    shift: float
    held_out: Array
    history: list[dict[str, Any]]


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
    kind = preprocessing
    if kind == "auto":
        kind = "shared" if shared_units(rows, weights) else "table"
    most = max(FEWEST_DIRECTIONS, int(np.ceil(weights.sum() / ROWS_PER_DIRECTION)))
    basis = find_basis(rows, weights, kind, clip, min(directions, most), random)
    known, others = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
    taken = rows.take(known)
    first, mass = different_rows(taken, codes[known], weights[known])
    labeled = basis.coordinates(taken[first])
    own = codes[known][first]
    folds = assign_folds(labeled, own, random)
    remaining = as_rows(matrix[others]) if len(known) else rows
    coordinates = remaining.project(basis.coordinates, basis.variances.size)
    return Prepared(basis, kind, labeled, own, mass, folds, Unlabeled(coordinates, weights[others]))


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


def train(
    prepared: Prepared,
    positive: int,
    setting: Setting,
    share: Share,
    slope_spread: float,
    tolerance: float,
    neighbours: bool = False,
) -> Fitted:
    """Self-train one class against the rest in every metric, average or choose, and calibrate."""
    labeled = prepared.against_rest(positive)
    if setting.gaussian:
        return _train_gaussian(prepared, labeled, setting, share, tolerance)
    outcomes = [
        self_train(
            labeled,
            prepared.unlabeled,
            prepared.basis.weights(s),
            setting,
            share,
            tolerance,
            neighbours,
        )
        for s in setting.metrics
    ]
    return finish(prepared.basis, labeled, outcomes, setting.metrics, share, slope_spread)


def _train_gaussian(
    prepared: Prepared, labeled: Labeled, setting: Setting, share: Share, tolerance: float
) -> Fitted:
    """Choose the metric, self-train on all rows in it, and keep its log-odds as they are."""
    exponents = sorted(setting.metrics)
    rows, metrics = prepared.unlabeled, [prepared.basis.weights(s) for s in exponents]
    best, found = in_best_metric(labeled, rows, metrics, setting, share, tolerance)
    return as_found(prepared.basis, found, exponents[best])


def finish(
    basis: Basis,
    labeled: Labeled,
    outcomes: list[Outcome],
    metrics: tuple[float, ...],
    share: Share,
    slope_spread: float,
) -> Fitted:
    """The average of runs in several metrics as a calibrated model in user's units."""
    coefficients = np.mean([outcome.coefficients for outcome in outcomes], axis=0)
    bias = float(np.mean([outcome.bias for outcome in outcomes]))
    held_out = np.mean([outcome.held_out for outcome in outcomes], axis=0)
    population = float(np.mean([outcome.mixture.share for outcome in outcomes]))
    among_labeled = float(labeled.weights @ labeled.classes / labeled.weights.sum())
    offset = 0.0 if share.from_labeled else _logit(among_labeled) - _logit(population)
    slope, shift = calibrate(
        held_out, labeled.classes, labeled.weights, population, slope_spread, offset
    )
    own, intercept = basis.in_user_units(slope * coefficients, slope * bias + shift)
    history = [
        {"metric": metric, **entry}
        for metric, outcome in zip(metrics, outcomes, strict=True)
        for entry in outcome.history
    ]
    return Fitted(own, intercept, population, slope, shift, slope * held_out + shift, history)


def as_found(basis: Basis, outcome: Outcome, metric: float) -> Fitted:
    """A run whose scores are log-odds already: the share is all that is added."""
    shift = _logit(outcome.mixture.share)
    own, intercept = basis.in_user_units(outcome.coefficients, outcome.bias + shift)
    history = [{"metric": metric, **entry} for entry in outcome.history]
    share = outcome.mixture.share
    return Fitted(own, intercept, share, 1.0, shift, outcome.held_out + shift, history)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
