r"""The weight of the supervised start in the result of self-training.

The score is $(1-c)$ self-trained $+\ c$ supervised. Self-training can diverge, and if few columns
separate the classes exactly a supervised fit is hard to beat; held-out scores of labelled samples
tell which (`weights.py`), with a prior around one half.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .folds import Labeled
from .weights import posterior_mean

PRIOR_MEAN, PRIOR_SPREAD = 0.5, 0.3

SHARES = np.linspace(0.0, 1.0, 11)
"""Weights that are compared: near 0 and 1 their mean is up to 0.03 off the integral, far less than
the spread of the posterior."""


def share_of_start(self_trained: Array, supervised: Array, labeled: Labeled) -> float:
    """Return the weight of the supervised start, from held-out scores at even odds."""
    points = np.column_stack([1 - SHARES, SHARES])
    prior = -0.5 * ((SHARES - PRIOR_MEAN) / PRIOR_SPREAD) ** 2
    held_out = np.array([self_trained, supervised])
    return float(posterior_mean(points, prior, held_out, labeled.classes, labeled.weights)[1])
