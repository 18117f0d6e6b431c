"""Whether samples look like Gaussian clusters: the size of the departure, not its significance.

A test of normality rejects every real table of some thousand samples, and accepts anything if there
are few. What matters is how large the departure is. Two Gaussian clusters of one covariance, in
their principal directions and scaled to unit variance, have (1) squared lengths that spread like
those of one Gaussian (Mardia's coefficient, as a ratio), since the clusters differ in one direction
of many; (2) hardly any excess kurtosis in the typical direction. Projections of any data tend to be
Gaussian, lengths do not, so both are checked.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .anchored import Unlabeled
from .blocks import Block

FEWEST_ROWS = 1000
"""With fewer samples the noise of a kurtosis, (24/rows)^(1/2), hides a departure: they count as not
Gaussian, because the anchored method assumes less."""

LENGTHS = 0.03
"""Largest departure of Mardia's ratio from 1. Gaussian clusters of five or more directions: below
.007; 13 of the 15 development tasks: above .05, the others .021 and -.005 (these two have the
kurtosis against them)."""

KURTOSIS = 0.15
"""Largest excess kurtosis of the median direction. Gaussian clusters of 3,200 samples: .07;
development tasks: .24 and more."""


def looks_gaussian(unlabeled: Unlabeled, variances: Array) -> bool:
    """Return whether samples in principal directions with these variances pass for Gaussian
    clusters.
    """
    if len(unlabeled.weights) < FEWEST_ROWS:
        return False

    def part(block: Block, weight: Array) -> tuple[Array, ...]:
        squares = block**2 / variances
        return weight @ squares**2, weight @ squares, np.array([weight @ squares.sum(axis=1) ** 2])

    fourth, second, lengths = unlabeled.coordinates.total(part, unlabeled.weights)
    mass, size = float(unlabeled.weights.sum()), variances.size
    excess = fourth * mass / np.maximum(second, 1e-300) ** 2 - 3.0
    ratio = float(lengths[0]) * mass / float(second.sum()) ** 2 * size / (size + 2)
    return bool(abs(ratio - 1.0) <= LENGTHS and np.median(np.abs(excess)) <= KURTOSIS)
