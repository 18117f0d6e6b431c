r"""Self-training of one two-class problem whose samples are two Gaussian clusters.

If both clusters have the covariance $\Sigma$, the best score is
$x^\top \Sigma^{-1} (\mu_1 - \mu_0)$. So no model is fitted: soft labels give the class means, the
means give the scores, and a mixture of two Gaussians fitted to the scores gives the next labels.
This is expectation-maximisation, except that every sample is scored by means computed without it:
with few samples per direction, a sample that contributed to a mean looks closer to it than it is.
The total covariance replaces $\Sigma$, which changes only the length of the direction. A metric
$\Sigma^{-s}$ with s < 1 shrinks it towards the sphere (s = 0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from ..arrays import Array
from .anchored import Outcome, TwoClasses, Unlabeled, history_entry
from .blocks import Stacked
from .folds import Labeled, held_out_likelihood
from .mixture import ScoreMixture

LEFT_OUT = 6
"""While the metric is chosen, one in this many unlabelled samples is held out."""

TRIAL_STEPS = 20
"""Largest number of steps of a run that helps to choose the metric: enough to tell good metrics
from bad ones, while a full run in many directions may take hundreds."""

TRIALS = 6
"""Largest number of runs with which one metric is tried, each from the scores of the previous one:
elongated clusters may be found only after 80 steps. The trial ends when the gain falls."""

CLEARLY = 2.0
"""Log-likelihood, in nats, by which a metric farther from the sphere must be better to be chosen:
odds of 7 to 1."""


class Means(NamedTuple):
    """Means of the classes under soft labels.

    Attributes:
        centers: one row per class, the negative one first.
        masses: total mass of each class.
        positive: contribution of every sample to the mass of the positive class.
    """

    centers: Array
    masses: Array
    positive: Array


class Fixed(NamedTuple):
    """What is the same in all steps of a run.

    Attributes:
        metric: squared lengths of the axes.
        lengths: squared lengths of the samples in the metric.
        along_total: products of the samples with the sum of all of them, in the metric.
    """

    metric: Array
    lengths: Array
    along_total: Array


def self_train_gaussian(
    problem: TwoClasses, metric: Array, start: Outcome | None = None
) -> Outcome:
    """Run Gaussian self-training in one metric.

    Arguments:
        metric: squared lengths of the axes.
        start: an earlier run to start from; a supervised fit by default.
    """
    weights, table = problem.unlabeled.weights, problem.table
    begin = problem.start(metric) if start is None else start
    own, others = begin.held_out, begin.unlabeled
    mixture = problem.mixture(own, others)
    labels = np.asarray(expit(mixture.log_odds(others)))
    total = _sum(table, problem.masses)
    fixed = Fixed(
        metric,
        table.column(lambda block: block**2 @ metric),
        table.column(lambda block: block @ (metric * total)),
    )
    means = _means(problem, labels, total)
    rows = float(weights.sum())
    history: list[dict[str, Any]] = []
    near = None  # the supervised scores of the start have another scale
    for step in range(problem.constants.steps if rows > 0 else 0):
        own, others = np.split(_scored(problem, means, fixed), [len(own)])
        near = mixture = problem.mixture(own, others, near)
        previous, labels = labels, problem.labels(mixture, others, step)
        means = _means(problem, labels, total)
        moved = float(weights @ np.abs(labels - previous)) / rows
        history.append(history_entry(step, mixture, moved))
        if moved < problem.constants.tolerance:
            break
    return _outcome(means, own, others, mixture, metric, history)


def in_best_metric(problem: TwoClasses, metrics: list[Array]) -> tuple[int, Outcome]:
    """Return the index of the best metric, and the run on all samples in it.

    The distance between the clusters is no criterion: with few samples per direction, a full
    covariance finds clusters in noise that held-out samples do not show. So every metric is first
    tried without part of the unlabelled samples, and judged on that part by its gain: how much more
    likely the scores are under the mixture than under one Gaussian. If no metric gains anything
    (too few samples were left to find the clusters), cross-validation on the labelled samples
    chooses. In both cases the first metric within `CLEARLY` of the best is taken.

    Arguments:
        metrics: squared lengths of the axes of every metric, in order from the sphere.
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
    """Try a metric with part of the unlabelled samples held out.

    Returns:
        The best of at most `TRIALS` runs, each from the previous one, and its gain on the held-out
        part (see `in_best_metric`).
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
    """Return coefficients and intercept of the log-odds at the estimated class proportions."""
    return run.coefficients, run.bias + float(logit(run.mixture.share))


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


def _sum(table: Stacked, weights: Array) -> Array:
    """Return the weighted sum of the samples."""
    return table.total(lambda block, part: (part @ block,), weights)[0]


def _means(problem: TwoClasses, labels: Array, total: Array) -> Means:
    """Return class means under soft labels; the negative class has the rest of the `total`."""
    masses = problem.masses
    positive = masses * np.concatenate([problem.labeled.classes, labels])
    sums, mass = _sum(problem.table, positive), float(positive.sum())
    both = np.array([masses.sum() - mass, mass])
    return Means(np.stack([total - sums, sums]) / both[:, None], both, positive)


def _scored(problem: TwoClasses, means: Means, fixed: Fixed) -> Array:
    """Return the leave-one-out score of every sample: the class means are computed without it.

    The samples are read once: products with the other mean are what is left of those with the sum.
    """
    dual = means.centers[1] * fixed.metric
    positive = problem.table.column(lambda block: block @ dual)
    negative = (fixed.along_total - means.masses[1] * positive) / means.masses[0]

    def without(k: int, near: Array, taken: Array) -> Array:
        left = np.maximum(means.masses[k] - taken, 1e-3 * means.masses[k])
        return np.asarray(near - taken * (fixed.lengths - near) / left)

    others = problem.masses - means.positive
    return without(1, positive, means.positive) - without(0, negative, others)


def _outcome(
    means: Means,
    own: Array,
    others: Array,
    mixture: ScoreMixture,
    metric: Array,
    history: list[dict[str, Any]],
) -> Outcome:
    """Return the result of a run, its score scaled to log-odds at equal class proportions.

    With the pooled variance for both classes, the log-odds of the mixture are linear in the score.
    """
    pooled = (1 - mixture.share) * mixture.variances[0] + mixture.share * mixture.variances[1]
    slope = (mixture.means[1] - mixture.means[0]) / pooled
    bias = -slope * 0.5 * (mixture.means[1] + mixture.means[0])
    direction = metric * (means.centers[1] - means.centers[0])
    low, high = (slope * center + bias for center in mixture.means)
    v0, v1 = (slope**2 * variance for variance in mixture.variances)
    found = ScoreMixture((low, high), (v0, v1), mixture.share)
    held_out, unlabeled = slope * own + bias, slope * others + bias
    return Outcome(slope * direction, bias, held_out, unlabeled, found, history)
