r"""Class means and covariance when few samples are labelled.

Samples are in principal coordinates, whose covariance C is known from all samples. Soft labels p of
the unlabelled samples give the difference of the class means, $d = \mathrm{Cov}(z,
p)/(\pi(1-\pi))$, which is exact if the score is sufficient for the class. What it misses is in the
labelled samples, in other directions and with much noise; their correction is shrunk by the factor
of James and Stein, which is 0 if it cannot be distinguished from noise. The covariance within the
classes is $C - \pi(1-\pi) d d^T$.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ...arrays import Array
from ...mixture.clusters import Clusters
from ..calibration import calibrate
from ..prepared import Prepared
from .evidence import SLOPE_SPREAD, Evidence, Places

MOST_EXPLAINED = 0.9
"""Largest fraction of the variance in one direction that classes may explain: a separation of 3 for
balanced ones, an error of 0.1 %. What few labels claim beyond is noise."""


@dataclass(frozen=True)
class Shape:
    """Two clusters in principal coordinates, and the proportion of the positive one.

    Attributes:
        corrected: weight of the labelled samples' own difference, 0 to 1.
    """

    clusters: Clusters
    share: float
    corrected: float


def shape_of(
    prepared: Prepared, evidence: Evidence, draw: np.random.Generator | None = None
) -> Shape:
    """Estimate the clusters; with `draw`, sample from those the labelled samples leave possible."""
    soft = _soft_labels(evidence, draw)
    others = prepared.unlabeled.coordinates.take(slice(None))
    mass = prepared.unlabeled.weights / prepared.unlabeled.weights.sum()
    share = float(np.clip(mass @ soft, 1e-3, 1 - 1e-3))
    centred = others - mass @ others
    total = centred.T @ (centred * mass[:, None])
    total += 1e-9 * np.trace(total) / len(total) * np.eye(len(total))
    difference = ((mass * (soft - share)) @ centred) / (share * (1 - share))
    gap = _beside(_means(prepared.labeled, evidence) - difference, difference, total)
    distance = float(gap @ np.linalg.solve(total, gap)) / _noise(evidence)
    factor = _trusted(distance, len(gap) - 1, draw)
    difference = difference + factor * gap
    explained = share * (1 - share) * float(difference @ np.linalg.solve(total, difference))
    difference = difference * min(1.0, np.sqrt(MOST_EXPLAINED / explained))
    within = total - share * (1 - share) * np.outer(difference, difference)
    return Shape(Clusters(0.5 * difference, within), share, factor)


def _means(rows: Array, evidence: Evidence) -> Array:
    """Return the difference of the class means of the labelled samples."""
    positive = evidence.weights * evidence.classes
    negative = evidence.weights - positive
    return np.asarray(positive @ rows / positive.sum() - negative @ rows / negative.sum())


def _noise(evidence: Evidence) -> float:
    """Return the variance of that difference, in units of a sample's."""
    positive = float(evidence.weights @ evidence.classes)
    return 1 / positive + 1 / (float(evidence.weights.sum()) - positive)


def _beside(gap: Array, difference: Array, total: Array) -> Array:
    """Return the part of the gap about which the soft labels say nothing."""
    along = np.linalg.solve(total, difference)
    return np.asarray(gap - difference * float(along @ gap) / float(along @ difference))


def _soft_labels(evidence: Evidence, draw: np.random.Generator | None) -> Array:
    """Return soft labels, calibrated on held-out samples (resampled with `draw`)."""
    chosen = _resampled(evidence.classes, draw)
    odds = float(np.log(evidence.share / (1 - evidence.share)))
    slope, shift = calibrate(
        evidence.held_out.trained[chosen] + odds,
        evidence.classes[chosen],
        evidence.weights[chosen],
        0.5,
        SLOPE_SPREAD,
    )
    return np.asarray(expit(slope * (evidence.unlabeled.trained + odds) + shift))


def _trusted(distance: float, size: int, draw: np.random.Generator | None) -> float:
    """Return the factor of James and Stein for a gap of this squared length in units of its noise,
    which is a noncentral chi-square of `size` degrees of freedom.
    """
    if distance <= 0 or size < 1:
        return 0.0
    real = distance - size + 2
    if draw is not None:
        real += float(np.sqrt(2 * size + 4 * max(real, 0.0)) * draw.standard_normal())
    return float(np.clip(real / distance, 0.0, 1.0))


def _resampled(classes: Array, draw: np.random.Generator | None) -> Places:
    if draw is None:
        return np.arange(len(classes))
    members = [np.flatnonzero(classes == label) for label in (0, 1)]
    return np.concatenate([draw.choice(own, len(own)) for own in members])
