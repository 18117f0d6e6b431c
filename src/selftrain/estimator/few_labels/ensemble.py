"""A table: the weighted sum of three scores, its threshold and its probabilities.

Each score is divided by its standard deviation on the unlabelled samples. Weights are posterior
means on the simplex (`weights.py`), probabilities are calibrated on held-out scores, and the
threshold lies half-way between zero, where each score is at even odds, and the midpoint of the
class means, for which unlabelled samples count with their probabilities.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ...arrays import Array
from ..calibration import calibrate
from ..settings import TABLE
from ..weights import posterior_mean
from .heavy_tails import Ranks
from .samples import Samples
from .scores import Forest, Linear, SelfTrained, forest, linear

NAMES = ("self-training", "forest", "linear")
STEPS = 10
POINTS = np.array([p for p in product(range(STEPS + 1), repeat=3) if sum(p) == STEPS]) / STEPS
"""Weights that are compared: a grid on the simplex, without preference for any of them."""

SAFE = np.array([0.0, 0.0, 0.5])
"""What safe mode adds to the weights: half of the linear score."""

TYPICAL_SLOPE, SLOPE_SPREAD = 2.0, 0.6
"""Log-odds per standard deviation of the sum, and the prior standard deviation of its logarithm."""

TOWARDS_MIDPOINT = 0.5
"""Part of the way from zero to the midpoint of the class means that the threshold moves."""

SMALLEST = 1e-9
"""A score with a smaller standard deviation is constant, and is dropped."""


class Combined(NamedTuple):
    """The sum of scores of one class against the rest.

    Attributes:
        weights: of the three scores, with a sum of 1.
        factors: the weights over the standard deviations of the scores.
        slope, shift: population log-odds = slope * sum + shift.
        even: population log-odds at which the decision is at even odds.
        share: estimated proportion of the class, the mean of its probability.
    """

    weights: Array
    factors: Array
    slope: float
    shift: float
    even: float
    share: float


class Ensemble(NamedTuple):
    """The fitted scores of a table and their sums, one per class against the rest.

    Attributes:
        disagreement: fraction of unlabelled samples to which the linear model and the forest give
            different classes; of all samples if these are fewer than the labelled ones.
    """

    ranks: Ranks
    self_trained: SelfTrained
    forest: Forest
    linear: Linear
    combined: tuple[Combined, ...]
    disagreement: float
    method: str = "ensemble"

    @property
    def even(self) -> Array:
        """Population log-odds at even odds, one per column."""
        return np.array([one.even for one in self.combined])

    @property
    def shares(self) -> Array:
        """Estimated proportions of the classes, one per column."""
        return np.array([one.share for one in self.combined])

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the scores, averaged over the columns."""
        mean = np.mean([one.weights for one in self.combined], axis=0)
        return dict(zip(NAMES, mean.tolist(), strict=True))

    def log_odds(self, rows: Array) -> Array:
        """Return population log-odds, a column per class against the rest."""
        ranked = self.ranks.transform(rows)
        scores = _scores(rows, ranked, self.self_trained, self.forest, self.linear)
        sums = [one.factors @ scores[:, :, k] for k, one in enumerate(self.combined)]
        return np.column_stack(
            [one.slope * total + one.shift for one, total in zip(self.combined, sums, strict=True)]
        )


def fit_ensemble(
    samples: Samples, ranked: Array, ranks: Ranks, trained: SelfTrained, safe: bool, seed: int
) -> Ensemble:
    """Fit the other two scores to the samples, and combine the three.

    Arguments:
        ranked: the samples with `ranks`.
        trained: self-training on these.
    """
    trees = forest(samples._replace(rows=ranked), seed)
    line = linear(samples)
    # Few unlabelled samples do not show how a score is distributed: all samples then do.
    enough = len(samples.unknown) >= len(samples.known)
    others = samples.unknown if enough else np.arange(len(samples.codes))
    scores = _scores(samples.rows[others], ranked[others], trained, trees, line)
    held_out = np.array([trained.held_out, trees.held_out, line.held_out])
    weights = samples.weights[samples.known]
    combined = tuple(
        _combine(held_out[:, :, k], scores[:, :, k], classes, weights, safe)
        for k, classes in enumerate(samples.targets.T)
    )
    return Ensemble(ranks, trained, trees, line, combined, _disagreement(scores[1], scores[2]))


def _scores(rows: Array, ranked: Array, trained: SelfTrained, trees: Forest, line: Linear) -> Array:
    """Return the scores of samples, by score, sample and column."""
    return np.array([trained.score(ranked), trees.score(ranked), line.score(rows)])


def _combine(
    held_out: Array, scores: Array, classes: Array, weights: Array, safe: bool
) -> Combined:
    """Combine the three scores of one class against the rest.

    Arguments:
        held_out: held-out scores of the labelled samples, one row per score.
        scores: scores of the unlabelled samples (of all, if those are few), likewise.
        classes, weights: of the labelled samples; a class is 0 or 1.
        safe: whether to add `SAFE` to the weights of the scores.
    """
    spread = _spread(scores, held_out)
    inverse = np.divide(1.0, spread, out=np.zeros(3), where=spread > SMALLEST)
    found = posterior_mean(POINTS, inverse[:, None] * held_out, classes, weights)
    if safe:
        found = (found + SAFE) / (1 + SAFE.sum())
    factors = found * inverse
    own, total = factors @ held_out, factors @ scores
    scale = TYPICAL_SLOPE / max(float(_spread(total, own)), SMALLEST)
    # One more sample of each side: a class of two labelled samples is rarely that rare.
    share = float(weights @ classes + 1) / float(weights.sum() + 2)
    slope, shift = calibrate(scale * own, classes, weights, share, SLOPE_SPREAD)
    slope *= scale
    positive = expit(slope * total + shift)
    everything, labels = np.append(total, own), np.append(positive, classes)
    mass = np.append(np.ones(len(total)), TABLE.anchor * weights)
    means = [np.average(everything, weights=mass * part) for part in (labels, 1 - labels)]
    even = shift + slope * TOWARDS_MIDPOINT * float(np.mean(means))
    return Combined(found, factors, slope, shift, even, float(positive.mean()))


def _spread(scores: Array, held_out: Array) -> Array:
    """Return the standard deviation of scores, of held-out ones where they are constant."""
    found = scores.std(axis=-1)
    return np.asarray(np.where(found > SMALLEST, found, held_out.std(axis=-1)))


def _disagreement(one: Array, other: Array) -> float:
    """Return the fraction of samples to which two scores give different classes."""
    if one.shape[1] == 1:
        return float(np.mean((one > 0) != (other > 0)))
    return float(np.mean(one.argmax(axis=1) != other.argmax(axis=1)))
