"""Clusters written as text, in the inputs and the address of the page: anisotropic clusters, and
three classes.

A text of anisotropic clusters (a "shape") has two numbers for each principal direction of the
covariance: the mean, and the variance of the noise. Neither theory nor simulation depends on
anything else.
"""

from __future__ import annotations

import numpy as np

from ..errors import InvalidInput
from ..mixture.clusters import Clusters

MOST_DIRECTIONS = 100
"""Largest number of directions: with more, an answer would take too long to follow a slider."""

LARGEST_MEAN, SMALLEST_VARIANCE, LARGEST_VARIANCE = 100.0, 1e-4, 1e4

ACCEPTED = (
    f"must be mean:variance of each direction, with commas, up to {MOST_DIRECTIONS} of them; "
    f"means up to {LARGEST_MEAN:g}, not all zero, variances from {SMALLEST_VARIANCE:g} to "
    f"{LARGEST_VARIANCE:g}"
)

DISTANCE = 2.0
"""Distance between the centres of three classes, the same as that of two classes."""

SMALLEST_PROPORTION = 0.01


def read_shape(text: str) -> Clusters | None:
    """Return the anisotropic clusters that a text describes, or None if it is empty.

    >>> read_shape("1:0.5, 0.3:2")
    Clusters(2 features, one covariance, separation 1.43003)
    """
    if not text.strip():
        return None
    parts = text.split(",")
    if len(parts) > MOST_DIRECTIONS:
        raise InvalidInput("shape", f"{len(parts)} directions", ACCEPTED)
    pairs = np.array([_pair(part) for part in parts])
    if not pairs[:, 0].any():
        raise InvalidInput("shape", text, ACCEPTED)
    return Clusters(mean=pairs[:, 0], covariance=pairs[:, 1])


def _pair(part: str) -> tuple[float, float]:
    """Read mean and variance of one direction."""
    try:
        mean, variance = (float(number) for number in part.split(":"))
    except ValueError:
        raise InvalidInput("shape", part.strip(), ACCEPTED) from None
    if not (abs(mean) <= LARGEST_MEAN and SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE):
        raise InvalidInput("shape", part.strip(), ACCEPTED)
    return mean, variance


def write_shape(clusters: Clusters) -> str:
    """Return clusters with one covariance as text, with five digits.

    >>> write_shape(Clusters(mean=[1.0, 0.3], covariance=[0.5, 2.0]))
    '0.3:2,1:0.5'
    """
    if clusters.pair or clusters.classes > 2:
        raise InvalidInput("clusters", clusters, "must have two classes and one covariance here")
    if clusters.features > MOST_DIRECTIONS:
        accepted = f"must have up to {MOST_DIRECTIONS} directions here: use Clusters.reduce"
        raise InvalidInput("clusters", clusters, accepted)
    variances, means = clusters.spectrum
    return ",".join(f"{m:.5g}:{v:.5g}" for m, v in zip(means, variances, strict=True))


def repeated(clusters: Clusters, times: int) -> Clusters:
    """Return clusters with `times` as many features and the same theory: every direction is
    repeated, and its squared mean is divided equally among the copies.
    """
    mean = np.repeat(clusters.mean, times) / np.sqrt(times)
    return Clusters(mean=mean, covariance=np.repeat(clusters.covariance, times))


def read_classes(text: str) -> list[float] | None:
    """Return the proportions of three classes, or None if the text is empty.

    >>> read_classes("0.5, 0.3, 0.2")
    [0.5, 0.3, 0.2]
    """
    if not text.strip():
        return None
    try:
        proportions = [float(part) for part in text.split(",")]
    except ValueError:
        proportions = []
    large = all(one >= SMALLEST_PROPORTION for one in proportions)
    if not (len(proportions) == 3 and large and abs(sum(proportions) - 1) <= 1e-9):
        accepted = f"must be three numbers from {SMALLEST_PROPORTION:g}, with commas, of sum 1"
        raise InvalidInput("classes", text, accepted)
    return proportions
