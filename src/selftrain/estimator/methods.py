"""Choice of the method for the samples at hand, and how it fits one class against the rest.

"anchored" becomes "gaussian" if the samples pass for Gaussian clusters and cross-validation of
whole runs agrees in every class: the kind of the samples need not be known in advance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.utils import check_random_state

from ..arrays import Array
from ..recipe import Recipe
from .anchored import Share, Unlabeled, self_train
from .blocks import Block
from .checks import GivenRows, known_shares
from .folds import Labeled, held_out_likelihood
from .gaussian import CLEARLY, in_best_metric, in_population, tried_out
from .paper import STEPS, follow_recipe
from .prepared import Prepared, prepare
from .settings import ANCHORED, GAUSSIAN, TABLE, Constants, Settings
from .training import Fitted, as_found, calibrated, train

AGAINST = 5.0
"""Log-likelihood, in nats, by which labelled samples must contradict a fit that the distribution of
all samples supports: odds of 150 to 1. By chance two dozen of them can favour the worse fit by
three."""

FAR = 3.0
"""Standard errors of the labelled proportion beyond which a proportion contradicts it: 1 in 400."""

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


Method = tuple[str, Callable[[int], Fitted]]
"""The name of a method, and the function that fits class k (an index) against the rest."""


def choose_method(
    method: str,
    rows: GivenRows,
    share: Any,
    neighbours: bool | str,
    settings: Settings,
    random: np.random.RandomState,
) -> Method:
    """Return the requested method, or "gaussian" instead of "anchored"."""
    if method == "paper":
        return _paper(rows, settings, random)
    shares = known_shares(share, rows.target.names)

    def prepared_for(constants: Constants) -> Prepared:
        again = check_random_state(random.randint(2**31 - 1))
        return prepare(rows, settings, settings.apply(constants), again)

    def share_of(positive: int) -> Share:
        return Share(shares.get(positive), share != "unlabeled")

    own = prepared_for(GAUSSIAN if method == "gaussian" else TABLE)
    if method == "anchored" and neighbours is not True and _may_change(settings, own):
        other = replace(prepared_for(GAUSSIAN), folds=own.folds)
        found: dict[int, Fitted] = {}
        for positive in rows.positives:
            fitted = _gaussian_if_it_agrees(other, own, positive, share_of(positive))
            if fitted is None:
                break
            found[positive] = fitted
        else:
            return "gaussian", found.__getitem__
    graph = method == "anchored" and own.has_neighbours(neighbours)
    if graph:
        settings.reject_caution()
    return method, lambda positive: train(own, positive, share_of(positive), graph)


def _may_change(settings: Settings, prepared: Prepared) -> bool:
    """Return whether "anchored" may become "gaussian": a table that passes for Gaussian clusters,
    and no constant of the anchored method is set.

    Pixels and words are not Gaussian, although sums of many of them look so.
    """
    if prepared.kind != "table" or any(name in settings.changed for name in ANCHORED):
        return False
    return looks_gaussian(prepared.unlabeled, prepared.basis.variances)


def looks_gaussian(unlabeled: Unlabeled, variances: Array) -> bool:
    """Return whether samples in principal directions with these variances pass for Gaussian
    clusters.

    A test of normality rejects every real table of some thousand samples, and accepts anything if
    there are few. What matters is how large the departure is. Two Gaussian clusters of one
    covariance, in their principal directions and scaled to unit variance, have (1) squared lengths
    that spread like those of one Gaussian (Mardia's coefficient, as a ratio), since the clusters
    differ in one direction of many; (2) hardly any excess kurtosis in the typical direction.
    Projections of any data tend to be Gaussian, lengths do not, so both are checked.
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


def _gaussian_if_it_agrees(
    gaussian: Prepared, anchored: Prepared, positive: int, share: Share
) -> Fitted | None:
    """Return the Gaussian fit of one class, None if held-out labelled samples prefer the anchored
    one.

    Samples can look Gaussian although the classes are not the two clusters, and clusters can be too
    faint to be found. So the clusters must lie as the classes do, the labelled samples must allow
    the proportion, and held-out samples must be described better than by the proportion alone and
    not clearly worse than by the anchored fit.
    """
    problem, other = (each.against_rest(positive, share) for each in (gaussian, anchored))
    labeled, metrics = problem.labeled, gaussian.metrics
    best, found = in_best_metric(problem, metrics)
    if found.history and found.history[-1]["separation"] <= 0:
        return None
    judged = share.known is None and share.from_labeled
    if judged and not _share_agrees(found.mixture.share, labeled):
        return None

    def by_means(part: Labeled) -> tuple[Array, float]:
        some = problem._replace(labeled=part)
        run, gain = tried_out(some, metrics[best])
        if gain <= CLEARLY:  # it may have missed clusters that exist: start at those found
            scores = part.coordinates @ found.coefficients + found.bias
            again, reached = tried_out(some, metrics[best], replace(found, held_out=scores))
            run = again if reached > max(gain, 0.0) + CLEARLY else run
        return in_population(run)

    def by_share(part: Labeled) -> tuple[Array, float]:
        among = part.weights @ part.classes / part.weights.sum()
        return np.zeros(part.coordinates.shape[1]), float(logit(among))

    def by_anchors(part: Labeled) -> tuple[Array, float]:
        some = other._replace(labeled=part)
        fitted = calibrated(some, self_train(some, anchored.metrics))
        return fitted.coefficients, fitted.intercept

    described = held_out_likelihood(labeled, by_means)
    if described <= held_out_likelihood(labeled, by_share):
        return None
    if held_out_likelihood(other.labeled, by_anchors) - described > AGAINST:
        return None
    return as_found(gaussian, found, best)


def _share_agrees(share: float, labeled: Labeled) -> bool:
    """Return whether labelled samples drawn at random could have this class proportion."""
    weights = labeled.weights
    found = float(weights @ labeled.classes / weights.sum())
    count = float(weights.sum() ** 2 / (weights @ weights))
    return abs(found - share) <= FAR * float(np.sqrt(share * (1 - share) / count))


def _paper(rows: GivenRows, settings: Settings, random: np.random.RandomState) -> Method:
    """Return the paper's self-training; every class uses the same batches."""
    steps = STEPS if settings.steps is None else settings.steps
    recipe = Recipe() if settings.recipe is None else settings.recipe
    seed = random.randint(2**31 - 1)
    codes = rows.target.codes

    def fit(positive: int) -> Fitted:
        classes = np.where(codes < 0, -1, codes == positive)
        again = check_random_state(seed)
        return follow_recipe(rows.matrix, classes, rows.weights, recipe, steps, again)

    return "paper", fit
