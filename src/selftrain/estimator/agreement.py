"""Whether a fit agrees with labelled rows that had no part in it.

Leaving a row out of the last fit alone is not enough where directions are many: the soft labels of
the other rows have seen its class, and the scores of two useless models then look well separated.
Here the whole self-training is run again without a fold of labelled rows, and these judge the
result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Array
from .folds import Labeled

AGAINST = 5.0
"""Log-likelihood, in nats, by which labelled rows must speak against a fit that the shape of all
rows speaks for: odds of 150 to 1. By chance two dozen of them can speak for the worse fit by three.
"""

FAR = 3.0
"""Standard errors of the labelled rows' share beyond which a share contradicts them: one sample
in 400."""


def left_out_likelihood(labeled: Labeled, fit: Callable[[Labeled], tuple[Array, float]]) -> float:
    """Log-likelihood of the classes of labelled rows, each under a fit without its fold.

    Arguments:
        fit: labelled rows to coefficients and intercept of the population log-odds.
    """
    total = 0.0
    for fold in np.unique(labeled.folds):
        outside = labeled.folds == fold
        remaining = _some(labeled, ~outside)
        if len(np.unique(remaining.classes)) < 2:
            continue
        coefficients, intercept = fit(remaining)
        odds = labeled.coordinates[outside] @ coefficients + intercept
        losses = np.logaddexp(0.0, odds) - labeled.classes[outside] * odds
        total -= float(labeled.weights[outside] @ losses)
    return total


def share_agrees(share: float, labeled: Labeled) -> bool:
    """Whether labelled rows drawn at random could well come from classes of this share."""
    weights = labeled.weights
    found = float(weights @ labeled.classes / weights.sum())
    count = float(weights.sum() ** 2 / (weights @ weights))
    return abs(found - share) <= FAR * float(np.sqrt(share * (1 - share) / count))


def _some(labeled: Labeled, which: Array) -> Labeled:
    return Labeled(
        labeled.coordinates[which],
        labeled.classes[which],
        labeled.weights[which],
        labeled.folds[which],
    )
