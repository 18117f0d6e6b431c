"""Whether a fit agrees with labelled samples that had no part in it.

Leaving a sample out of the last fit alone is not enough if there are many directions: the soft
labels of the other samples have seen its class, and the scores of two useless models then look well
separated. Here the whole self-training is repeated without a fold of labelled samples, which then
judge the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Array
from .folds import Labeled

AGAINST = 5.0
"""Log-likelihood, in nats, by which labelled samples must contradict a fit that the distribution of
all samples supports: odds of 150 to 1. By chance two dozen of them can favour the worse fit by
three.
"""

FAR = 3.0
"""Standard errors of the labelled proportion beyond which a proportion contradicts it: 1 in 400."""


def held_out_likelihood(labeled: Labeled, fit: Callable[[Labeled], tuple[Array, float]]) -> float:
    """Return the log-likelihood of the labelled classes, each under a fit without its fold.

    Arguments:
        fit: labelled samples to coefficients and intercept of the population log-odds.
    """
    total = 0.0
    for fold in np.unique(labeled.folds):
        outside = labeled.folds == fold
        remaining = Labeled(*(values[~outside] for values in labeled))
        if len(np.unique(remaining.classes)) < 2:
            continue
        coefficients, intercept = fit(remaining)
        odds = labeled.coordinates[outside] @ coefficients + intercept
        losses = np.logaddexp(0.0, odds) - labeled.classes[outside] * odds
        total -= float(labeled.weights[outside] @ losses)
    return total


def share_agrees(share: float, labeled: Labeled) -> bool:
    """Return whether labelled samples drawn at random could have this class proportion."""
    weights = labeled.weights
    found = float(weights @ labeled.classes / weights.sum())
    count = float(weights.sum() ** 2 / (weights @ weights))
    return abs(found - share) <= FAR * float(np.sqrt(share * (1 - share) / count))
