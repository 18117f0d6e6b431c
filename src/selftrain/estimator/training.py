"""From prepared rows to a calibrated model of one class against the rest, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import Array
from .agreement import AGAINST, left_out_likelihood, share_agrees
from .anchored import Outcome, Share, self_train
from .calibration import calibrate
from .folds import Labeled
from .gaussian import CLEARLY, in_best_metric, in_population, tried_out
from .prepared import Prepared
from .preprocessing import Basis
from .setting import Setting

FARTHEST = 0.2
"""Standard deviations of the scores by which labelled rows may move the place of even odds from the
zero of the score. With a few rows of a rare class and scores of a small scale they would otherwise
move it beyond all rows, and every row would be called the same."""


@dataclass(frozen=True)
class Fitted:
    """One class against the rest.

    Attributes:
        coefficients, intercept: of the population log-odds, in the user's units (in those of a
            basis before `in_user_units`).
        share: estimated share of the class.
        slope, shift: population log-odds = slope * score + shift.
        even: population log-odds at which the classes have even odds.
        held_out: population log-odds of the labelled rows, from models without them.
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


@dataclass(frozen=True)
class Candidate:
    """Rows as one of the two methods sees them, and its constants."""

    prepared: Prepared
    setting: Setting


def train(
    candidate: Candidate,
    positive: int,
    share: Share,
    slope_spread: float,
    tolerance: float,
    neighbours: bool = False,
) -> Fitted:
    """Self-train one class against the rest, and calibrate its probabilities."""
    prepared, setting = candidate.prepared, candidate.setting
    labeled = prepared.against_rest(positive)
    if setting.gaussian:
        return _train_gaussian(prepared, labeled, setting, share, tolerance)
    outcome = _anchored(candidate, labeled, share, tolerance, neighbours)
    return in_user_units(prepared.basis, calibrated(labeled, outcome, share, slope_spread))


def _anchored(
    candidate: Candidate,
    labeled: Labeled,
    share: Share,
    tolerance: float,
    neighbours: bool = False,
) -> Outcome:
    prepared, setting = candidate.prepared, candidate.setting
    metrics = [prepared.basis.weights(s) for s in setting.metrics]
    return self_train(labeled, prepared.unlabeled, metrics, setting, share, tolerance, neighbours)


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
    be too faint to be found. So the clusters must lie as the classes do, the share must be one that
    the labelled rows allow, and rows left out must be described better than by the share alone and
    not clearly worse than by the anchored fit.
    """
    rows, setting = gaussian.prepared, gaussian.setting
    labeled, exponents = rows.against_rest(positive), sorted(setting.metrics)
    metrics = [rows.basis.weights(s) for s in exponents]
    best, found = in_best_metric(labeled, rows.unlabeled, metrics, setting, share, tolerance)
    if found.history and found.history[-1]["separation"] <= 0:
        return None
    judged = share.known is None and share.from_labeled
    if judged and not share_agrees(found.mixture.share, labeled):
        return None

    def by_means(part: Labeled) -> tuple[Array, float]:
        given = (part, rows.unlabeled, metrics[best], setting, share, tolerance)
        run, gain = tried_out(*given)
        if gain <= CLEARLY:  # it may have missed clusters that are there: begin where they are
            scores = part.coordinates @ found.coefficients + found.bias
            other, reached = tried_out(*given, replace(found, held_out=scores))
            run = other if reached > max(gain, 0.0) + CLEARLY else run
        return in_population(run)

    def by_share(part: Labeled) -> tuple[Array, float]:
        among = float(part.weights @ part.classes / part.weights.sum())
        return np.zeros(part.coordinates.shape[1]), _logit(among)

    def by_anchors(part: Labeled) -> tuple[Array, float]:
        outcome = _anchored(anchored, part, share, tolerance)
        found = calibrated(part, outcome, share, slope_spread)
        return found.coefficients, found.intercept

    described = left_out_likelihood(labeled, by_means)
    if described <= left_out_likelihood(labeled, by_share):
        return None
    other = anchored.prepared.against_rest(positive)
    if left_out_likelihood(other, by_anchors) - described > AGAINST:
        return None
    return _as_found(rows.basis, found, exponents[best])


def _train_gaussian(
    prepared: Prepared, labeled: Labeled, setting: Setting, share: Share, tolerance: float
) -> Fitted:
    """Choose the metric, self-train on all rows in it, and keep its log-odds as they are."""
    exponents = sorted(setting.metrics)
    rows, metrics = prepared.unlabeled, [prepared.basis.weights(s) for s in exponents]
    best, found = in_best_metric(labeled, rows, metrics, setting, share, tolerance)
    return _as_found(prepared.basis, found, exponents[best])


def calibrated(labeled: Labeled, outcome: Outcome, share: Share, slope_spread: float) -> Fitted:
    """Population log-odds of the coordinates, from scores at even odds."""
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
    """A model of the coordinates as one of the user's columns."""
    own, intercept = basis.in_user_units(fitted.coefficients, fitted.intercept)
    return replace(fitted, coefficients=own, intercept=intercept)


def _as_found(basis: Basis, outcome: Outcome, metric: float) -> Fitted:
    """A run whose scores are log-odds already: the share is all that is added."""
    shift = _logit(outcome.mixture.share)
    own, intercept = basis.in_user_units(outcome.coefficients, outcome.bias + shift)
    history = [{"metric": metric, **entry} for entry in outcome.history]
    share = outcome.mixture.share
    return Fitted(own, intercept, share, 1.0, shift, shift, outcome.held_out + shift, history)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
