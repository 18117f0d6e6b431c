r"""Weights of several scores, from held-out scores of labelled samples.

If labelled samples are few they say little, so weights are posterior means over a grid: a prior,
times the balanced likelihood of the weighted held-out scores at even odds.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .folds import Labeled, balanced_targets

COUNTED = 0.5
"""Weight of a held-out sample: the fits without it share all other samples."""

START_MEAN, START_SPREAD = 0.5, 0.3
"""Prior of the weight of the supervised start in the result of self-training."""

PARTS = np.linspace(0.0, 1.0, 11)
"""Weights of the start that are compared: near 0 and 1 their mean is up to 0.03 off the integral,
far less than the spread of the posterior."""

SLOPES = np.exp(np.linspace(-1.5, 1.5, 13))
SLOPE_SPREAD = 0.5
"""Prior standard deviation of the log-scale of a score: only the order of samples and the threshold
are judged."""


def posterior_mean(
    points: Array, held_out: Array, classes: Array, weights: Array, log_prior: Array | float = 0.0
) -> Array:
    """Return the posterior mean of the weights of scores.

    Arguments:
        points: weights that are compared, one row each.
        held_out: scores of the labelled samples at even odds, one row per score.
        classes, weights: of the labelled samples; classes are 0 or 1.
        log_prior: of every row; by default all are equally likely.
    """
    mass, pull = balanced_targets(classes, weights)
    scores = points @ held_out
    evidence = np.full(len(points), -np.inf)
    for slope in SLOPES:
        logits = slope * scores
        prior = -0.5 * (np.log(slope) / SLOPE_SPREAD) ** 2
        evidence = np.maximum(evidence, logits @ pull - np.logaddexp(0.0, logits) @ mass + prior)
    found = COUNTED * evidence + log_prior
    posterior = np.exp(found - found.max())
    return np.asarray(posterior @ points / posterior.sum())


def weight_of_start(self_trained: Array, supervised: Array, labeled: Labeled) -> float:
    """Return the weight of the supervised fit when its score is averaged with the self-trained one.

    It is a posterior mean given held-out scores, in which both classes count the same. The average
    protects against self-training that diverges, and against data of which a few columns separate
    the classes exactly: there a supervised fit is hard to beat.
    """
    points = np.column_stack([1 - PARTS, PARTS])
    prior = -0.5 * ((PARTS - START_MEAN) / START_SPREAD) ** 2
    held_out = np.array([self_trained, supervised])
    return float(posterior_mean(points, held_out, labeled.classes, labeled.weights, prior)[1])
