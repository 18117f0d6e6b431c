r"""Self-training of one two-class problem whose samples are two Gaussian clusters.

With one covariance $\Sigma$ the best score is $x^\top \Sigma^{-1} (\mu_1 - \mu_0)$, so soft labels
need no fit: they give the means, the means give the score, and a mixture of the scores gives the
next labels. This is expectation-maximisation, except that every sample is scored by means without
it: with few samples per direction a sample that contributed to a mean looks closer to it than it
is. The total covariance replaces $\Sigma$, which changes only the length of the direction; the
metric $\Sigma^{-s}$ shrinks it towards the sphere (s = 0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from ..arrays import Array
from .agreement import held_out_likelihood
from .anchored import Outcome, TwoClasses, Unlabeled, history_entry
from .blocks import Block
from .folds import Labeled
from .mixture import ScoreMixture

LEFT_OUT = 6
"""One unlabelled sample in this many is held out while the metric is chosen."""

TRIAL_STEPS = 20
"""Largest number of steps of a run that chooses a metric: good and bad ones differ by then, and a
run in many directions may take hundreds of steps."""

TRIALS = 6
"""Largest number of runs of a trial, each from the scores of the previous one with a new mixture:
stretched clusters may be found after 80 steps only. A trial ends when the gain falls."""

CLEARLY = 2.0
"""Log-likelihood, in nats, that a metric farther from the sphere must gain: odds of 7 to 1."""


class Means(NamedTuple):
    """Means of the classes (rows of `centers`, the negative class first) and their masses."""

    centers: Array
    masses: Array


class PerRow(NamedTuple):
    """One number per labelled and unlabelled sample: its score, or its squared length."""

    labeled: Array
    unlabeled: Array


def self_train_gaussian(
    problem: TwoClasses, metric: Array, start: Outcome | None = None
) -> Outcome:
    """Run Gaussian self-training in one metric, from a run on part of the samples or, by default,
    from a supervised fit.
    """
    unlabeled = problem.unlabeled
    begin = problem.start(metric) if start is None else start
    scored = PerRow(begin.held_out, begin.unlabeled)
    mixture = problem.mixture(*scored)
    labels = np.asarray(expit(mixture.log_odds(scored.unlabeled)))
    rows = float(unlabeled.weights.sum())
    history: list[dict[str, Any]] = []
    everything = _everything(problem)
    means = _means(problem, labels, everything)
    lengths = _lengths(problem, metric)
    near = None  # the supervised scores of the start have another scale
    for step in range(problem.constants.steps if rows > 0 else 0):
        scored = _scored(problem, means, lengths, labels, metric)
        near = mixture = problem.mixture(*scored, near)
        previous, labels = labels, problem.labels(mixture, scored.unlabeled, step)
        means = _means(problem, labels, everything)
        moved = float(unlabeled.weights @ np.abs(labels - previous)) / rows
        history.append(history_entry(step, mixture, moved))
        if moved < problem.constants.tolerance:
            break
    return _outcome(means, scored, mixture, metric, history)


def in_best_metric(problem: TwoClasses, metrics: list[Array]) -> tuple[int, Outcome]:
    """Return the index of the best metric, and the run on all samples in it.

    The distance of the clusters cannot choose: with few samples per direction a full covariance
    finds clusters in noise, which are absent from held-out samples. So every metric is first tried
    without part of the samples, and judged there by how much better its mixture describes their
    scores than one Gaussian does. If no metric gains anything (the rest was too few to find the
    clusters), all samples take part and cross-validation on the labelled ones chooses. In both
    cases the first metric that is as good as any is taken, in order from the sphere.
    """
    tried = [tried_out(problem, metric) for metric in metrics]
    gains = [gain for _, gain in tried]
    if max(gains) > CLEARLY:
        best = _first_as_good_as_any(gains)
        return best, self_train_gaussian(problem, metrics[best], tried[best][0])
    short = _short(problem)

    def agreement(metric: Array) -> float:
        def fit(part: Labeled) -> tuple[Array, float]:
            return in_population(self_train_gaussian(short._replace(labeled=part), metric))

        return held_out_likelihood(problem.labeled, fit)

    best = _first_as_good_as_any([agreement(metric) for metric in metrics])
    return best, self_train_gaussian(problem, metrics[best])


def tried_out(
    problem: TwoClasses, metric: Array, start: Outcome | None = None
) -> tuple[Outcome, float]:
    """Return the best of some runs without part of the unlabelled samples, each from the previous
    one, and what its mixture gains on that part.
    """
    coordinates, weights = problem.unlabeled
    outside = np.arange(len(weights)) % LEFT_OUT == 0
    part = _short(problem)._replace(unlabeled=Unlabeled(coordinates, weights * ~outside))
    best, gain = None, -np.inf
    for _ in range(TRIALS):
        run = self_train_gaussian(part, metric, best or start)
        reached = _gain(run, weights * outside)
        if best is not None and reached <= gain:
            break
        best, gain = run, reached
        if run.history and run.history[-1]["moved"] < problem.constants.tolerance:
            break
    assert best is not None
    return best, gain


def _short(problem: TwoClasses) -> TwoClasses:
    constants = problem.constants
    fewer = constants._replace(steps=min(constants.steps, TRIAL_STEPS))
    return problem._replace(constants=fewer)


def in_population(run: Outcome) -> tuple[Array, float]:
    """Return coefficients and intercept of the population log-odds, from those at even odds."""
    share = run.mixture.share
    return run.coefficients, run.bias + float(np.log(share / (1 - share)))


def _first_as_good_as_any(values: list[float]) -> int:
    return next(k for k, value in enumerate(values) if value >= max(values) - CLEARLY)


def _gain(run: Outcome, weights: Array) -> float:
    """Return the log-likelihood of scores under the run's mixture minus that under one Gaussian."""
    total = float(weights.sum())
    if total == 0:
        return 0.0
    center = float(weights @ run.unlabeled) / total
    spread = float(weights @ (run.unlabeled - center) ** 2) / total
    single = _log_density(run.unlabeled, center, spread)
    mixture, parts = run.mixture, []
    for k, part in enumerate((1 - mixture.share, mixture.share)):
        density = _log_density(run.unlabeled, mixture.means[k], mixture.variances[k])
        parts.append(np.log(part) + density)
    return float(weights @ (np.logaddexp(*parts) - single))


def _log_density(scores: Array, center: float, spread: float) -> Array:
    return np.asarray(-0.5 * ((scores - center) ** 2 / spread + np.log(spread)))


def _means(problem: TwoClasses, labels: Array, everything: Means) -> Means:
    """Return class means under soft labels; the negative class has the rest."""
    labeled, unlabeled = problem.labeled, problem.unlabeled
    own = problem.constants.anchor * labeled.weights * labeled.classes
    others = unlabeled.weights * labels
    sums = own @ labeled.coordinates + _sum(unlabeled, others)
    mass = float(own.sum() + others.sum())
    masses = np.array([everything.masses[0] - mass, mass])
    return Means(np.stack([everything.centers[0] - sums, sums]) / masses[:, None], masses)


def _everything(problem: TwoClasses) -> Means:
    """Return sum and mass of all samples, which no step changes."""
    labeled, unlabeled = problem.labeled, problem.unlabeled
    own = problem.constants.anchor * labeled.weights
    sums = own @ labeled.coordinates + _sum(unlabeled, unlabeled.weights)
    mass = float(own.sum() + unlabeled.weights.sum())
    return Means(sums[None, :], np.array([mass]))


def _sum(unlabeled: Unlabeled, weights: Array) -> Array:
    """Return the weighted sum of the unlabelled samples."""
    if not weights.size:
        return np.zeros(unlabeled.coordinates.shape[1])
    return unlabeled.coordinates.total(lambda block, part: (part @ block,), weights)[0]


def _lengths(problem: TwoClasses, metric: Array) -> PerRow:
    """Return squared lengths of the samples, which no step changes."""

    def part(block: Block) -> Array:
        return np.asarray((block**2) @ metric)

    return PerRow(part(problem.labeled.coordinates), problem.unlabeled.coordinates.column(part))


def _scored(
    problem: TwoClasses, means: Means, lengths: PerRow, labels: Array, metric: Array
) -> PerRow:
    """Return the score of every sample by means without it."""
    labeled, unlabeled = problem.labeled, problem.unlabeled
    dual = means.centers * metric

    def without(k: int, block: Block, length: Array, taken: Array) -> Array:
        near = block @ dual[k]
        left = np.maximum(means.masses[k] - taken, 1e-3 * means.masses[k])
        return np.asarray(near - taken * (length - near) / left)

    def part(block: Block, length: Array, weight: Array, label: Array) -> Array:
        taken = weight * label
        return without(1, block, length, taken) - without(0, block, length, weight - taken)

    anchored = problem.constants.anchor * labeled.weights
    own = part(labeled.coordinates, lengths.labeled, anchored, labeled.classes)
    others = unlabeled.coordinates.column(part, lengths.unlabeled, unlabeled.weights, labels)
    return PerRow(own, np.asarray(others))


def _outcome(
    means: Means,
    scored: PerRow,
    mixture: ScoreMixture,
    metric: Array,
    history: list[dict[str, Any]],
) -> Outcome:
    """Return the score as log-odds at even odds: the mixture's line at its pooled variance."""
    pooled = (1 - mixture.share) * mixture.variances[0] + mixture.share * mixture.variances[1]
    slope = (mixture.means[1] - mixture.means[0]) / pooled
    bias = -slope * 0.5 * (mixture.means[1] + mixture.means[0])
    direction = metric * (means.centers[1] - means.centers[0])
    low, high = (slope * center + bias for center in mixture.means)
    v0, v1 = (slope**2 * variance for variance in mixture.variances)
    found = ScoreMixture((low, high), (v0, v1), mixture.share)
    own, others = (slope * scores + bias for scores in scored)
    return Outcome(slope * direction, bias, own, others, found, history)
