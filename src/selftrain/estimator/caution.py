r"""The weight of the supervised start in the result of self-training.

The score is $(1-c)$ self-trained $+\ c$ supervised. Self-training can diverge, and if few columns
separate the classes exactly a supervised fit is hard to beat; held-out scores of labelled samples
tell which. If these are few they say little, so $c$ is its posterior mean: a prior around one half,
times the balanced likelihood of the held-out scores.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .folds import Labeled, balanced_targets

PRIOR_MEAN, PRIOR_SPREAD = 0.5, 0.3

COUNTED = 0.5
"""Weight of a held-out sample: the fits without it share all other samples."""

SHARES = np.linspace(0.0, 1.0, 11)
"""Weights that are compared: near 0 and 1 their mean is up to 0.03 off the integral, far less than
the spread of the posterior."""

SLOPES = np.exp(np.linspace(-1.5, 1.5, 13))
SLOPE_SPREAD = 0.5
"""Prior standard deviation of the log-scale of a score: only the order of samples and the threshold
are judged."""


def share_of_start(self_trained: Array, supervised: Array, labeled: Labeled) -> float:
    """Return the weight of the supervised start, from held-out scores at even odds."""
    mass, pull = balanced_targets(labeled.classes, labeled.weights)
    prior = -0.5 * (np.log(SLOPES) / SLOPE_SPREAD) ** 2

    def evidence(share: float) -> float:
        scores = SLOPES[:, None] * ((1 - share) * self_trained + share * supervised)
        return float(np.max(scores @ pull - np.logaddexp(0.0, scores) @ mass + prior))

    found = np.array([COUNTED * evidence(share) for share in SHARES])
    found -= 0.5 * ((SHARES - PRIOR_MEAN) / PRIOR_SPREAD) ** 2
    weights = np.exp(found - found.max())
    return float(weights @ SHARES / weights.sum())
