"""Replicates that are scrambled independently: how many, and how well their mean is known.

The replicates of a run are alike and independent, and each goes through all steps. So their spread
has the errors of finitely many points in it, with what later steps make of them, and Student's law
says how far their mean may be from the limit.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit

from ...arrays import Array

REPLICATES = 8

CONFIDENCE = 0.99
"""How often a quantity lies within the stated accuracy. In 160 runs of four kinds on replicates of
1,024 points, whose limit 320 replicates gave, 793 of 800 steps had all five quantities within it;
within twice the standard error 730 did.
"""

TWICE = 0.65
"""Twice as many replicates know their mean about this much better: fewer standard errors make the
interval (2.9, not 3.5), each is smaller by the root of two, and a tenth is added for chance.
"""

SMOOTH_GAIN, JUMP_GAIN = 1.0, 0.65
"""The error of a replicate falls about as its size to the minus this: 1.1 was measured for smooth
labels and 8 or 16 steps, 0.65 for a threshold.
"""


def accuracy_of_mean(states: Array, scale: Array) -> Array:
    """Return how far the mean over replicates may be from the limit, relative to `scale`.

    Arguments:
        states: what every replicate found, the replicates along the first axis.

    >>> found = np.array([[1.0], [1.1], [0.9], [1.0]])
    >>> accuracy_of_mean(found, np.ones(1)).round(3)
    array([0.238])
    """
    count = len(states)
    width = float(stdtrit(count - 1, 0.5 + 0.5 * CONFIDENCE)) / math.sqrt(count)
    return np.asarray(width * states.std(axis=0, ddof=1) / scale)


def size_needed(points: int, accuracy: float, tolerance: float, jumps: bool) -> float:
    """Return the points that would reach the tolerance, as far as one can tell from fewer."""
    gain = JUMP_GAIN if jumps else SMOOTH_GAIN
    return float(points * (accuracy / tolerance) ** (1 / gain))
