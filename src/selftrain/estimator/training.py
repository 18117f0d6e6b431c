"""From prepared samples to a calibrated model of one class against the rest, in user units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from ..arrays import Array
from .anchored import Outcome, Share, TwoClasses, self_train
from .calibration import calibrate
from .gaussian import in_best_metric, in_population
from .prepared import Prepared
from .preprocessing import Basis

FARTHEST = 0.2
"""Standard deviations of the scores by which labelled samples may move the threshold of even odds
from zero. A few samples of a rare class would otherwise move it beyond all samples, and every
sample would get the same class."""


class Fitted(NamedTuple):
    """A model of one class against the rest.

    Attributes:
        coefficients, intercept: of the population log-odds.
        share: estimated proportion of the class.
        even: population log-odds at which the classes have even odds.
        history: one entry per step.
    """

    coefficients: Array
    intercept: float
    share: float
    even: float
    history: list[dict[str, Any]]

    def in_user_units(self, basis: Basis) -> Fitted:
        """Express a model of coordinates in the user's columns."""
        own, intercept = basis.in_user_units(self.coefficients, self.intercept)
        return self._replace(coefficients=own, intercept=intercept)


def train(prepared: Prepared, positive: int, share: Share, neighbours: bool = False) -> Fitted:
    """Self-train one class against the rest, and calibrate its probabilities."""
    problem = prepared.against_rest(positive, share)
    if prepared.constants.gaussian:
        best, found = in_best_metric(problem, prepared.metrics)
        return as_found(prepared, found, best)
    outcome = self_train(problem, prepared.metrics, neighbours)
    return calibrated(problem, outcome).in_user_units(prepared.basis)


def calibrated(problem: TwoClasses, outcome: Outcome) -> Fitted:
    """Return population log-odds of the coordinates, from scores at even odds."""
    labeled, share, slope_spread = problem.labeled, problem.share, problem.constants.slope_spread
    population = outcome.mixture.share
    among_labeled = float(labeled.weights @ labeled.classes / labeled.weights.sum())
    offset = 0.0 if share.from_labeled else float(logit(among_labeled) - logit(population))
    slope, shift = calibrate(
        outcome.held_out, labeled.classes, labeled.weights, population, slope_spread, offset
    )
    most = FARTHEST * slope * outcome.spread
    even = shift - float(np.clip(shift - logit(population), -most, most))
    coefficients, intercept = slope * outcome.coefficients, slope * outcome.bias + shift
    return Fitted(coefficients, intercept, population, even, outcome.history)


def as_found(prepared: Prepared, outcome: Outcome, metric: int) -> Fitted:
    """Return the model of a Gaussian run in one of the metrics, without calibration.

    Its scores are log-odds already; only the class proportion is added.
    """
    share, exponent = outcome.mixture.share, prepared.exponents[metric]
    history = [{"metric": exponent, **entry} for entry in outcome.history]
    found = Fitted(*in_population(outcome), share, float(logit(share)), history)
    return found.in_user_units(prepared.basis)
