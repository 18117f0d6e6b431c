r"""Self-training of one two-class problem whose rows are two Gaussian clusters.

With one covariance $\Sigma$ the best score is $x^\top \Sigma^{-1} (\mu_1 - \mu_0)$, so soft labels
need no fit: they give the means, the means give the score, and a mixture of the scores gives the
next labels. It is expectation-maximisation, except that every row is scored by means it did not
take part in. With few rows per direction that matters: a row that helped to make a mean looks
closer to it than it is. The total covariance serves in place of $\Sigma$, which changes the length
of the direction only; the metric $\Sigma^{-s}$ shrinks it towards the sphere (s = 0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from ..arrays import Array
from .agreement import left_out_likelihood
from .anchored import Outcome, Share, Unlabeled
from .folds import Labeled, supervised_start
from .mixture import Anchors, ScoreMixture, fit_mixture
from .rows import Block
from .setting import Setting

LEFT_OUT = 6
"""One unlabelled row in so many is left out while the metric is chosen."""

TRIAL_STEPS = 20
"""Most steps of a run that is made to choose a metric: good ones and bad ones differ by then, and a
run in many directions may creep for hundreds of steps."""

TRIALS = 6
"""Most runs of a trial, each from the scores of the one before with a new mixture: stretched
clusters may be found after 80 steps only. A trial in which the gain falls is not continued."""

CLEARLY = 2.0
"""Log-likelihood, in nats, that a metric farther from the sphere must gain: odds of seven to
one.
"""


class Means(NamedTuple):
    """Means of the classes (rows of `centers`, the negative class first) and their masses."""

    centers: Array
    masses: Array


class PerRow(NamedTuple):
    """Per labelled and unlabelled row: its score by means without it, or its squared length."""

    labeled: Array
    unlabeled: Array


def self_train_gaussian(
    labeled: Labeled,
    unlabeled: Unlabeled,
    metric: Array,
    setting: Setting,
    share: Share,
    tolerance: float,
    start: Outcome | None = None,
) -> Outcome:
    """Run Gaussian self-training in one metric.

    Arguments:
        start: a run on a part of the rows to begin with; None: a supervised fit.

    The others are those of `anchored.self_train`.
    """
    if start is None:
        scored = _supervised(labeled, unlabeled, metric)
    else:
        scored = PerRow(start.held_out, start.unlabeled)
    mixture = _mixture(scored, labeled, unlabeled, setting, share)
    labels = expit(mixture.log_odds(scored.unlabeled))
    rows = float(unlabeled.weights.sum())
    history: list[dict[str, Any]] = []
    everything = _everything(labeled, unlabeled, setting.anchor)
    means = _means(labeled, unlabeled, labels, setting.anchor, everything)
    lengths = _lengths(labeled, unlabeled, metric)
    near = None  # the supervised scores that came before are on another scale
    for step in range(setting.steps if rows > 0 else 0):
        sharpness = setting.sharpness * (1 + setting.annealing * step)
        scored = _scored(means, lengths, labeled, unlabeled, labels, metric, setting.anchor)
        near = mixture = _mixture(scored, labeled, unlabeled, setting, share, near)
        previous, labels = labels, expit(sharpness * mixture.log_odds(scored.unlabeled))
        means = _means(labeled, unlabeled, labels, setting.anchor, everything)
        moved = float(unlabeled.weights @ np.abs(labels - previous)) / rows
        history.append(
            {
                "step": step + 1,
                "share": mixture.share,
                "separation": mixture.separation,
                "moved": moved,
            }
        )
        if moved < tolerance:
            break
    return _outcome(means, scored, mixture, metric, history)


def in_best_metric(
    labeled: Labeled,
    unlabeled: Unlabeled,
    metrics: list[Array],
    setting: Setting,
    share: Share,
    tolerance: float,
) -> tuple[int, Outcome]:
    """Which metric is best, and the run on all rows in it.

    How far apart clusters lie cannot choose: with few rows per direction a full covariance finds
    clusters in noise. In rows left out they are gone. So every metric is first tried without a part
    of the rows, and judged there by how much better its mixture describes their scores than one
    Gaussian does. Where no metric gains anything (a part of the rows was too few to find the
    clusters), all rows take part and the labelled ones choose, each left out of a whole run. In
    both cases the first metric that does as well as any is taken, in order from the sphere.
    """
    tried, gains = [], []
    for metric in metrics:
        run, gain = tried_out(labeled, unlabeled, metric, setting, share, tolerance)
        tried.append(run)
        gains.append(gain)
    if max(gains) > CLEARLY:
        best = _first_as_good_as_any(gains)
        start = tried[best]
        return best, self_train_gaussian(
            labeled, unlabeled, metrics[best], setting, share, tolerance, start
        )

    short = setting._replace(steps=min(setting.steps, TRIAL_STEPS))

    def agreement(metric: Array) -> float:
        def fit(part: Labeled) -> tuple[Array, float]:
            return in_population(
                self_train_gaussian(part, unlabeled, metric, short, share, tolerance)
            )

        return left_out_likelihood(labeled, fit)

    best = _first_as_good_as_any([agreement(metric) for metric in metrics])
    return best, self_train_gaussian(labeled, unlabeled, metrics[best], setting, share, tolerance)


def tried_out(
    labeled: Labeled,
    unlabeled: Unlabeled,
    metric: Array,
    setting: Setting,
    share: Share,
    tolerance: float,
    start: Outcome | None = None,
) -> tuple[Outcome, float]:
    """The best of some runs without a part of the unlabelled rows, each from the one before, and
    what its mixture gains in that part.
    """
    outside = np.arange(len(unlabeled.weights)) % LEFT_OUT == 0
    part = Unlabeled(unlabeled.coordinates, unlabeled.weights * ~outside)
    short = setting._replace(steps=min(setting.steps, TRIAL_STEPS))
    best, gain = None, -np.inf
    for _ in range(TRIALS):
        run = self_train_gaussian(labeled, part, metric, short, share, tolerance, best or start)
        reached = _gain(run, unlabeled.weights * outside)
        if best is not None and reached <= gain:
            break
        best, gain = run, reached
        if run.history and run.history[-1]["moved"] < tolerance:
            break
    assert best is not None
    return best, gain


def in_population(run: Outcome) -> tuple[Array, float]:
    """Coefficients and intercept of the population log-odds: the share is added to even odds."""
    share = run.mixture.share
    return run.coefficients, run.bias + float(np.log(share / (1 - share)))


def _first_as_good_as_any(values: list[float]) -> int:
    return next(k for k, value in enumerate(values) if value >= max(values) - CLEARLY)


def _gain(run: Outcome, weights: Array) -> float:
    """Log-likelihood of scores under the run's mixture less that under the Gaussian of their
    own.
    """
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


def _supervised(labeled: Labeled, unlabeled: Unlabeled, metric: Array) -> PerRow:
    start = supervised_start(labeled, metric)
    student = start.student
    scores = unlabeled.coordinates.column(lambda block: block @ student.coefficients + student.bias)
    return PerRow(start.out_of_fold, scores)


def _means(
    labeled: Labeled, unlabeled: Unlabeled, labels: Array, anchor: float, everything: Means
) -> Means:
    """Class means under soft labels; what the positive class does not have, the other one has."""
    own = anchor * labeled.weights * labeled.classes
    others = unlabeled.weights * labels
    sums = own @ labeled.coordinates + _sum(unlabeled, others)
    mass = float(own.sum() + others.sum())
    masses = np.array([everything.masses[0] - mass, mass])
    return Means(np.stack([everything.centers[0] - sums, sums]) / masses[:, None], masses)


def _everything(labeled: Labeled, unlabeled: Unlabeled, anchor: float) -> Means:
    """Sum and mass of all rows, which no step changes."""
    own = anchor * labeled.weights
    sums = own @ labeled.coordinates + _sum(unlabeled, unlabeled.weights)
    mass = float(own.sum() + unlabeled.weights.sum())
    return Means(sums[None, :], np.array([mass]))


def _sum(unlabeled: Unlabeled, weights: Array) -> Array:
    """The weighted sum of the unlabelled rows."""
    if not weights.size:
        return np.zeros(unlabeled.coordinates.shape[1])
    return unlabeled.coordinates.total(lambda block, part: (part @ block,), weights)[0]


def _lengths(labeled: Labeled, unlabeled: Unlabeled, metric: Array) -> PerRow:
    """Squared lengths of the rows, which no step changes."""

    def part(block: Block) -> Array:
        return np.asarray((block**2) @ metric)

    return PerRow(part(labeled.coordinates), unlabeled.coordinates.column(part))


def _scored(
    means: Means,
    lengths: PerRow,
    labeled: Labeled,
    unlabeled: Unlabeled,
    labels: Array,
    metric: Array,
    anchor: float,
) -> PerRow:
    dual = means.centers * metric

    def without(k: int, block: Block, length: Array, taken: Array) -> Array:
        near = block @ dual[k]
        left = np.maximum(means.masses[k] - taken, 1e-3 * means.masses[k])
        return np.asarray(near - taken * (length - near) / left)

    def part(block: Block, length: Array, weight: Array, label: Array) -> Array:
        taken = weight * label
        return without(1, block, length, taken) - without(0, block, length, weight - taken)

    own = part(labeled.coordinates, lengths.labeled, anchor * labeled.weights, labeled.classes)
    others = unlabeled.coordinates.column(part, lengths.unlabeled, unlabeled.weights, labels)
    return PerRow(own, np.asarray(others))


def _mixture(
    scored: PerRow,
    labeled: Labeled,
    unlabeled: Unlabeled,
    setting: Setting,
    share: Share,
    start: ScoreMixture | None = None,
) -> ScoreMixture:
    anchors = Anchors(scored.labeled, labeled.classes, setting.anchor * labeled.weights)
    return fit_mixture(
        scored.unlabeled,
        unlabeled.weights,
        anchors,
        setting.shrinkage,
        share.known,
        1.0 if share.from_labeled else 0.0,
        start,
        setting.mixture_steps,
    )


def _outcome(
    means: Means,
    scored: PerRow,
    mixture: ScoreMixture,
    metric: Array,
    history: list[dict[str, Any]],
) -> Outcome:
    """The score in units of log-odds at even odds: the mixture's line at its pooled variance."""
    pooled = (1 - mixture.share) * mixture.variances[0] + mixture.share * mixture.variances[1]
    slope = (mixture.means[1] - mixture.means[0]) / pooled
    bias = -slope * 0.5 * (mixture.means[1] + mixture.means[0])
    direction = metric * (means.centers[1] - means.centers[0])
    low, high = (slope * center + bias for center in mixture.means)
    v0, v1 = (slope**2 * variance for variance in mixture.variances)
    return Outcome(
        slope * direction,
        bias,
        slope * scored.labeled + bias,
        slope * scored.unlabeled + bias,
        ScoreMixture((low, high), (v0, v1), mixture.share),
        history,
    )
