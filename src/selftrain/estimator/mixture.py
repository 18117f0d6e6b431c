r"""Two Gaussians fitted to the scores of a teacher give soft labels.

The scores of the unlabelled samples are a mixture $\pi N(\mu_1, v_1) + (1-\pi) N(\mu_0, v_0)$,
fitted by expectation-maximisation. Labelled samples take part with their known class, their
*held-out* score and a weight; without them a mixture describes any clusters rather than the
classes. Variances are shrunk towards the pooled one, because few samples determine them poorly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..arrays import Array

TOLERANCE = 1e-6
LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class ScoreMixture:
    """A Gaussian distribution of the score for each of two classes; index 0 is the negative class.

    Attributes:
        means, variances: of the score in each class.
        share: proportion of the positive class.
    """

    means: tuple[float, float]
    variances: tuple[float, float]
    share: float

    @property
    def separation(self) -> float:
        """Distance of the means in units of the pooled standard deviation."""
        pooled = (1 - self.share) * self.variances[0] + self.share * self.variances[1]
        return (self.means[1] - self.means[0]) / float(np.sqrt(pooled))

    @property
    def even_point(self) -> float:
        """The score at which both classes are equally likely if they are equally frequent; NaN if
        the means are in the wrong order or the densities do not cross.
        """
        (low, high), (v0, v1) = self.means, self.variances
        curvature, slope = 0.5 * (1 / v0 - 1 / v1), high / v1 - low / v0
        constant = 0.5 * (low**2 / v0 - high**2 / v1) + 0.5 * np.log(v0 / v1)
        root = slope**2 - 4 * curvature * constant
        if high <= low or root < 0:
            return float("nan")
        # The crossing at which the log-odds increase, in the form that does not cancel.
        if slope >= 0:
            return float(-2 * constant / (slope + np.sqrt(root)))
        return float((np.sqrt(root) - slope) / (2 * curvature)) if curvature else float("nan")

    def log_odds(self, scores: Array) -> Array:
        """Return the log-odds of the positive class, a non-decreasing function of the score.

        With unequal variances the log-odds are a parabola in the score. Beyond its vertex, where a
        larger score would favour the negative class, the value at the vertex is returned.
        """
        (low, high), (v0, v1) = self.means, self.variances
        curvature = 0.5 * (1 / v0 - 1 / v1)
        slope = high / v1 - low / v0
        if abs(curvature) > 1e-12 * (1 / v0 + 1 / v1):
            turn = -slope / (2 * curvature)
            scores = np.minimum(scores, turn) if curvature < 0 else np.maximum(scores, turn)
        constant = 0.5 * (low**2 / v0 - high**2 / v1) + 0.5 * np.log(v0 / v1)
        prior = np.log(self.share / (1 - self.share))
        return np.asarray(curvature * scores**2 + slope * scores + constant + prior)


@dataclass(frozen=True)
class Anchors:
    """Labelled samples in a mixture: held-out scores, classes (0 or 1), weights."""

    scores: Array
    classes: Array
    weights: Array


def fit_mixture(
    scores: Array,
    weights: Array,
    anchors: Anchors,
    shrinkage: float,
    share: float | None = None,
    anchor_share: float = 1.0,
    start: ScoreMixture | None = None,
    limit: int = 200,
) -> ScoreMixture:
    """Fit the mixture of weighted scores and anchors.

    Arguments:
        scores, weights: of the unlabelled samples.
        shrinkage: of the variances towards the pooled one, 0 to 1 (1: equal variances).
        share: proportion of the positive class if it is known.
        anchor_share: weight of the anchors in the proportion: 1 if labelled samples were drawn at
            random, 0 if their classes were chosen.
        start: a mixture of nearly the same scores, to save steps; None starts with the anchors.
        limit: largest number of iterations. With few, the mixture stays near the anchors; with
            many, it follows the distribution of the scores.
    """
    positive = anchors.classes * anchors.weights
    negative = (1 - anchors.classes) * anchors.weights
    fixed = np.array([negative.sum(), positive.sum()])
    firsts = np.array([negative @ anchors.scores, positive @ anchors.scores])
    seconds = np.array([negative @ anchors.scores**2, positive @ anchors.scores**2])
    mixture = _from_sums(fixed, firsts, seconds, fixed * 1.0, shrinkage, share)
    total = float(weights.sum())
    if total == 0:
        return mixture
    mixture = start or mixture
    squares = scores**2
    for _ in range(limit):
        p = weights * expit(mixture.log_odds(scores))
        rest, positive = weights - p, p.sum()
        mass = np.array([total - positive, positive])
        first = np.array([rest @ scores, p @ scores])
        second = np.array([rest @ squares, p @ squares])
        counted = mass + anchor_share * fixed
        updated = _from_sums(
            mass + fixed, firsts + first, seconds + second, counted, shrinkage, share
        )
        moved = max(
            abs(updated.share - mixture.share),
            *(abs(a - b) for a, b in zip(updated.means, mixture.means, strict=True)),
        )
        mixture = updated
        if moved < TOLERANCE:
            break
    return mixture


def _from_sums(
    mass: Array, first: Array, second: Array, counted: Array, shrinkage: float, share: float | None
) -> ScoreMixture:
    """Return the mixture with these sufficient statistics (one entry per class).

    Arguments:
        mass, first, second: sums of the weights, of the scores and of their squares.
        counted: sums of the weights that count in the proportion, unless `share` is known.
    """
    safe = np.maximum(mass, 1e-12)
    means = first / safe
    spread = np.maximum(second / safe - means**2, 0.0)
    pooled = float(mass @ spread / mass.sum())
    floor = 1e-6 * (pooled + float(means[1] - means[0]) ** 2) + 1e-12
    variances = np.maximum((1 - shrinkage) * spread + shrinkage * pooled, floor)
    if share is None:
        share = min(max(float(counted[1] / counted.sum()), LEAST_SHARE), 1 - LEAST_SHARE)
    return ScoreMixture(
        (float(means[0]), float(means[1])), (float(variances[0]), float(variances[1])), share
    )
