r"""How much of the supervised start belongs into the result of self-training.

The score is $(1-c)$ self-trained $+\ c$ supervised. Self-training can run away, and where few
columns tell the classes apart exactly a supervised fit is hard to beat; labelled rows know which,
by their held-out scores. They say little when they are few, so $c$ is the mean of its posterior: a
prior around one half, times the balanced likelihood of the held-out scores.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .folds import Labeled, balanced_targets

PRIOR_MEAN, PRIOR_SPREAD = 0.5, 0.3

COUNTED = 0.5
"""A held-out row counts as less than one: the fits it is left out of share all other rows."""

SHARES = np.linspace(0.0, 1.0, 11)
"""Parts that are compared: near 0 and 1 their mean is up to 0.03 off the integral, far less than
the spread of the posterior."""

SLOPES = np.exp(np.linspace(-1.5, 1.5, 13))
SLOPE_SPREAD = 0.5
"""The scale of a score is free within this spread of its logarithm: only the order of rows and the
place of zero are judged."""


def share_of_start(self_trained: Array, supervised: Array, labeled: Labeled) -> float:
    """The part of the supervised start, from held-out scores of the labelled rows at even odds."""
    mass, pull = balanced_targets(labeled.classes, labeled.weights)
    prior = -0.5 * (np.log(SLOPES) / SLOPE_SPREAD) ** 2

    def evidence(share: float) -> float:
        scores = SLOPES[:, None] * ((1 - share) * self_trained + share * supervised)
        return float(np.max(scores @ pull - np.logaddexp(0.0, scores) @ mass + prior))

    found = np.array([COUNTED * evidence(share) for share in SHARES])
    found -= 0.5 * ((SHARES - PRIOR_MEAN) / PRIOR_SPREAD) ** 2
    weights = np.exp(found - found.max())
    return float(weights @ SHARES / weights.sum())
