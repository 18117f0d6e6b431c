"""From prepared samples to a calibrated model of one class against the rest, in user units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from .agreement import AGAINST, held_out_likelihood, share_agrees
from .anchored import Outcome, Share, TwoClasses, self_train
from .calibration import calibrate
from .folds import Labeled
from .gaussian import CLEARLY, in_best_metric, in_population, tried_out
from .prepared import Prepared
from .preprocessing import Basis
from .settings import Constants

FARTHEST = 0.2
"""Standard deviations of the scores by which labelled samples may move the threshold of even odds
from zero. A few samples of a rare class would otherwise move it beyond all samples, and every
sample would get the same class."""


@dataclass(frozen=True)
class Fitted:
    """A model of one class against the rest.

    Attributes:
        coefficients, intercept: of the population log-odds, in the user's units (in those of a
            basis before `in_user_units`).
        share: estimated proportion of the class.
        slope, shift: population log-odds = slope * score + shift.
        even: population log-odds at which the classes have even odds.
        held_out: population log-odds of the labelled samples, from models without them.
        history: one entry per step.
    """

    coefficients: Array
    intercept: float
    share: float
    slope: float
    shift: float
    even: float
    held_out: Array
    history: list[dict[str, Any]]


class Candidate(NamedTuple):
    """Samples as one of the two methods sees them, and its constants."""

    prepared: Prepared
    constants: Constants

    @property
    def exponents(self) -> list[float]:
        """Exponents of the metrics; the Gaussian method tries them in order from the sphere."""
        given = self.constants.metrics
        return sorted(given) if self.constants.gaussian else list(given)

    @property
    def metrics(self) -> list[Array]:
        """Squared lengths of the axes of every metric."""
        return [self.prepared.basis.weights(s) for s in self.exponents]

    def against_rest(self, positive: int, share: Share) -> TwoClasses:
        """Return the problem of one class against all others."""
        labeled = self.prepared.against_rest(positive)
        return TwoClasses(labeled, self.prepared.unlabeled, self.constants, share)


def train(
    candidate: Candidate,
    positive: int,
    share: Share,
    neighbours: bool = False,
) -> Fitted:
    """Self-train one class against the rest, and calibrate its probabilities."""
    problem, basis = candidate.against_rest(positive, share), candidate.prepared.basis
    if candidate.constants.gaussian:
        best, found = in_best_metric(problem, candidate.metrics)
        return _as_found(basis, found, candidate.exponents[best])
    outcome = self_train(problem, candidate.metrics, neighbours)
    return in_user_units(basis, calibrated(problem, outcome))


def gaussian_if_it_agrees(
    gaussian: Candidate,
    anchored: Candidate,
    positive: int,
    share: Share,
) -> Fitted | None:
    """Return the Gaussian fit of one class, None if held-out labelled samples prefer the anchored
    one.

    Samples can look Gaussian although the classes are not the two clusters, and clusters can be too
    faint to be found. So the clusters must lie as the classes do, the labelled samples must allow
    the proportion, and held-out samples must be described better than by the proportion alone and
    not clearly worse than by the anchored fit.
    """
    problem = gaussian.against_rest(positive, share)
    labeled, metrics = problem.labeled, gaussian.metrics
    best, found = in_best_metric(problem, metrics)
    if found.history and found.history[-1]["separation"] <= 0:
        return None
    judged = share.known is None and share.from_labeled
    if judged and not share_agrees(found.mixture.share, labeled):
        return None

    def by_means(part: Labeled) -> tuple[Array, float]:
        some = problem._replace(labeled=part)
        run, gain = tried_out(some, metrics[best])
        if gain <= CLEARLY:  # it may have missed clusters that exist: start at those found
            scores = part.coordinates @ found.coefficients + found.bias
            other, reached = tried_out(some, metrics[best], replace(found, held_out=scores))
            run = other if reached > max(gain, 0.0) + CLEARLY else run
        return in_population(run)

    def by_share(part: Labeled) -> tuple[Array, float]:
        among = float(part.weights @ part.classes / part.weights.sum())
        return np.zeros(part.coordinates.shape[1]), _logit(among)

    other = anchored.against_rest(positive, share)

    def by_anchors(part: Labeled) -> tuple[Array, float]:
        some = other._replace(labeled=part)
        fitted = calibrated(some, self_train(some, anchored.metrics))
        return fitted.coefficients, fitted.intercept

    described = held_out_likelihood(labeled, by_means)
    if described <= held_out_likelihood(labeled, by_share):
        return None
    if held_out_likelihood(other.labeled, by_anchors) - described > AGAINST:
        return None
    return _as_found(gaussian.prepared.basis, found, gaussian.exponents[best])


def calibrated(problem: TwoClasses, outcome: Outcome) -> Fitted:
    """Return population log-odds of the coordinates, from scores at even odds."""
    labeled, share, slope_spread = problem.labeled, problem.share, problem.constants.slope_spread
    population = outcome.mixture.share
    among_labeled = float(labeled.weights @ labeled.classes / labeled.weights.sum())
    offset = 0.0 if share.from_labeled else _logit(among_labeled) - _logit(population)
    slope, shift = calibrate(
        outcome.held_out, labeled.classes, labeled.weights, population, slope_spread, offset
    )
    moved = shift - _logit(population)
    most = FARTHEST * slope * outcome.spread
    return Fitted(
        slope * outcome.coefficients,
        slope * outcome.bias + shift,
        population,
        slope,
        shift,
        shift - float(np.clip(moved, -most, most)),
        slope * outcome.held_out + shift,
        outcome.history,
    )


def in_user_units(basis: Basis, fitted: Fitted) -> Fitted:
    """Express a model of the coordinates in the user's columns."""
    own, intercept = basis.in_user_units(fitted.coefficients, fitted.intercept)
    return replace(fitted, coefficients=own, intercept=intercept)


def _as_found(basis: Basis, outcome: Outcome, metric: float) -> Fitted:
    """Return a run whose scores are log-odds already: only the class proportion is added."""
    share = outcome.mixture.share
    shift = _logit(share)
    own, intercept = basis.in_user_units(outcome.coefficients, outcome.bias + shift)
    history = [{"metric": metric, **entry} for entry in outcome.history]
    return Fitted(own, intercept, share, 1.0, shift, shift, outcome.held_out + shift, history)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
