"""One table, one or more two-class problems: shared preparation, a run per class, the result in
user's units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from .agreement import AGAINST, left_out_likelihood, share_agrees
from .anchored import Outcome, Share, Unlabeled, self_train
from .calibration import calibrate
from .folds import Labeled, assign_folds
from .gaussian import in_best_metric, in_population, self_train_gaussian
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
    outcomes = _in_every_metric(prepared, labeled, setting, share, tolerance, neighbours)
    return finish(prepared.basis, labeled, outcomes, setting.metrics, share, slope_spread)


def _in_every_metric(
    prepared: Prepared,
    labeled: Labeled,
    setting: Setting,
    share: Share,
    tolerance: float,
    neighbours: bool = False,
) -> list[Outcome]:
    rows, weights = prepared.unlabeled, prepared.basis.weights
    return [
        self_train(labeled, rows, weights(s), setting, share, tolerance, neighbours)
        for s in setting.metrics
    ]


@dataclass(frozen=True)
class Candidate:
    """Rows as one of the two methods sees them, and its constants."""

    prepared: Prepared
    setting: Setting


def gaussian_if_it_agrees(
    gaussian: Candidate,
    anchored: Candidate,
    positive: int,
    share: Share,
    slope_spread: float,
    tolerance: float,
) -> Fitted | None:
    """The Gaussian fit of one class, None where labelled rows left out speak for the anchored one.

    Rows can look Gaussian without falling into two clusters that are the classes, and clusters can
    be too faint to be found. So the share must be one that the labelled rows allow, and rows left
    out of both fits must not be described clearly worse than by the anchored one.
    """
    rows, setting = gaussian.prepared, gaussian.setting
    labeled, exponents = rows.against_rest(positive), sorted(setting.metrics)
    metrics = [rows.basis.weights(s) for s in exponents]
    best, found = in_best_metric(labeled, rows.unlabeled, metrics, setting, share, tolerance)
    judged = share.known is None and share.from_labeled
    if judged and not share_agrees(found.mixture.share, labeled):
        return None

    def by_means(part: Labeled) -> tuple[Array, float]:
        return in_population(
            self_train_gaussian(part, rows.unlabeled, metrics[best], setting, share, tolerance)
        )

    def by_anchors(part: Labeled) -> tuple[Array, float]:
        outcomes = _in_every_metric(anchored.prepared, part, anchored.setting, share, tolerance)
        average = _averaged(part, outcomes, share, slope_spread)
        return average.coefficients, average.intercept

    other = anchored.prepared.against_rest(positive)
    against = left_out_likelihood(other, by_anchors) - left_out_likelihood(labeled, by_means)
    if against > AGAINST:
        return None
    return as_found(rows.basis, found, exponents[best])


def _train_gaussian(
    prepared: Prepared, labeled: Labeled, setting: Setting, share: Share, tolerance: float
) -> Fitted:
    """Choose the metric, self-train on all rows in it, and keep its log-odds as they are."""
    exponents = sorted(setting.metrics)
    rows, metrics = prepared.unlabeled, [prepared.basis.weights(s) for s in exponents]
    best, found = in_best_metric(labeled, rows, metrics, setting, share, tolerance)
    return as_found(prepared.basis, found, exponents[best])


class Average(NamedTuple):
    """The mean of runs in several metrics, calibrated: population log-odds of coordinates."""

    coefficients: Array
    intercept: float
    share: float
    slope: float
    shift: float
    held_out: Array


def _averaged(
    labeled: Labeled, outcomes: list[Outcome], share: Share, slope_spread: float
) -> Average:
    coefficients = np.mean([outcome.coefficients for outcome in outcomes], axis=0)
    bias = float(np.mean([outcome.bias for outcome in outcomes]))
    held_out = np.mean([outcome.held_out for outcome in outcomes], axis=0)
    population = float(np.mean([outcome.mixture.share for outcome in outcomes]))
    among_labeled = float(labeled.weights @ labeled.classes / labeled.weights.sum())
    offset = 0.0 if share.from_labeled else _logit(among_labeled) - _logit(population)
    slope, shift = calibrate(
        held_out, labeled.classes, labeled.weights, population, slope_spread, offset
    )
    return Average(
        slope * coefficients,
        slope * bias + shift,
        population,
        slope,
        shift,
        slope * held_out + shift,
    )


def finish(
    basis: Basis,
    labeled: Labeled,
    outcomes: list[Outcome],
    metrics: tuple[float, ...],
    share: Share,
    slope_spread: float,
) -> Fitted:
    """The average of runs in several metrics as a calibrated model in user's units."""
    average = _averaged(labeled, outcomes, share, slope_spread)
    own, intercept = basis.in_user_units(average.coefficients, average.intercept)
    history = [
        {"metric": metric, **entry}
        for metric, outcome in zip(metrics, outcomes, strict=True)
        for entry in outcome.history
    ]
    return Fitted(
        own, intercept, average.share, average.slope, average.shift, average.held_out, history
    )


def as_found(basis: Basis, outcome: Outcome, metric: float) -> Fitted:
    """A run whose scores are log-odds already: the share is all that is added."""
    shift = _logit(outcome.mixture.share)
    own, intercept = basis.in_user_units(outcome.coefficients, outcome.bias + shift)
    history = [{"metric": metric, **entry} for entry in outcome.history]
    share = outcome.mixture.share
    return Fitted(own, intercept, share, 1.0, shift, outcome.held_out + shift, history)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
