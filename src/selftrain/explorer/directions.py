"""A shape of clusters as a text, which stands in a field of the page and in its address.

Along the directions in which its covariance is diagonal a shape is two numbers per direction: the
mean, and the variance of the noise. Neither theory nor simulation knows more of it, so this text is
the whole shape.
"""

from __future__ import annotations

import numpy as np

from ..errors import InvalidInput
from ..mixture.clusters import Clusters

__all__ = ["MOST_DIRECTIONS", "read_shape", "repeated", "write_shape"]

MOST_DIRECTIONS = 100
"""Directions of a shape: with more, an answer would no longer follow a slider."""

LARGEST_MEAN, SMALLEST_VARIANCE, LARGEST_VARIANCE = 100.0, 1e-4, 1e4

ACCEPTED = (
    f"mean:variance of each direction is accepted, with commas, up to {MOST_DIRECTIONS} of them; "
    f"means up to {LARGEST_MEAN:g}, not all zero, variances from {SMALLEST_VARIANCE:g} to "
    f"{LARGEST_VARIANCE:g}"
)


def read_shape(text: str) -> Clusters | None:
    """The shape that a text describes, or None for nothing.

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
    """Mean and variance of one direction."""
    try:
        mean, variance = (float(number) for number in part.split(":"))
    except ValueError:
        raise InvalidInput("shape", part.strip(), ACCEPTED) from None
    if not (abs(mean) <= LARGEST_MEAN and SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE):
        raise InvalidInput("shape", part.strip(), ACCEPTED)
    return mean, variance


def write_shape(clusters: Clusters) -> str:
    """The text of a shape with one covariance, to five digits.

    >>> write_shape(Clusters(mean=[1.0, 0.3], covariance=[0.5, 2.0]))
    '0.3:2,1:0.5'
    """
    if clusters.pair:
        raise InvalidInput("clusters", clusters, "a shape with one covariance is accepted here")
    if clusters.features > MOST_DIRECTIONS:
        accepted = f"up to {MOST_DIRECTIONS} directions are accepted here: use Clusters.reduce"
        raise InvalidInput("clusters", clusters, accepted)
    variances, means = clusters.spectrum
    return ",".join(f"{m:.5g}:{v:.5g}" for m, v in zip(means, variances, strict=True))


def repeated(clusters: Clusters, times: int) -> Clusters:
    """A system `times` as large with the same theory: every direction comes so often, its mean
    shared between them.
    """
    mean = np.repeat(clusters.mean, times) / np.sqrt(times)
    return Clusters(mean=mean, covariance=np.repeat(clusters.covariance, times))
