r"""Sources of samples: Gaussian clusters, or a table of real samples drawn without replacement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.stats import rankdata

from ...arrays import Array
from ...confusion import confusion_matrix
from ...errors import InvalidInput
from ...mixture.from_data import classified_rows
from ..labels import Classes, given_labels, predicted
from ..random_streams import LABELS, generator
from ..run_plan import RunPlan
from ..seed_run import gaussian_rule
from .design import ClusterRows, Design, Stored
from .revealed import RevealedGaussian

Noise = Callable[[int, int, np.random.Generator], Design]


class Samples(NamedTuple):
    """The samples of a group: design matrix, true classes, given labels, and weights (None if all
    are one).
    """

    design: Design
    classes: Classes
    given: Classes
    weights: Array | None = None


class SampleSource(Protocol):
    """A source of the samples of a run."""

    def draw(self, t: int) -> dict[int, Samples]:
        """Draw the groups of samples that fit t is the first to use; return them by their index."""


def dense_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    return Stored(random.standard_normal((rows, columns)))


NOISES: dict[str, Noise] = {"dense": dense_noise, "revealed": RevealedGaussian}


class GaussianSource:
    """Samples of Gaussian clusters; a rule is tested on their law, without sampling.

    Arguments:
        noise: function that draws the noise matrix of embedded clusters (`RunPlan.embedded`).
    """

    def __init__(self, plan: RunPlan, seed: int, noise: Noise = dense_noise):
        self.plan, self.seed, self.noise = plan, seed, noise
        self.law = plan.protocol.test.law
        self.means = plan.means(self.law)
        self.directions = plan.directions if plan.embedded else self.means

    def draw(self, t: int) -> dict[int, Samples]:
        random, wrong = generator(self.seed, t), generator(self.seed, t, LABELS)
        return {group: self._samples(group, random, wrong) for group in self.plan.new_groups(t)}

    def _samples(
        self, index: int, random: np.random.Generator, wrong: np.random.Generator
    ) -> Samples:
        group, size = self.plan.protocol.groups[index], self.plan.sizes[index]
        classes = drawn_classes(group.proportions, random.random(size))
        given = given_labels(classes, group.label_noise, wrong)
        means, (first, *other) = group.law.means[classes], group.law.covariances
        if self.plan.embedded:
            noise = self.noise(size, self.plan.features, random)
            design = ClusterRows(noise, means, self.directions, float(first))
            return Samples(design, classes, given)
        normals = random.standard_normal((size, group.law.features))
        rows = _coloured(normals, first)
        if other:
            rows[classes == 1] = _coloured(normals[classes == 1], other[0])
        return Samples(Stored(rows + means), classes, given)

    def test(self, weights: Array, bias: Any) -> dict[str, Any]:
        products = [_products(weights, covariance) for covariance in self.law.covariances]
        if weights.ndim > 1:
            confusion = confusion_matrix((weights.T @ self.means.T).T + bias, products[0])
            return {"logit_variances": np.diag(products[0]), "confusion": confusion}
        m = float(self.means[1] @ weights)
        return gaussian_rule(m, bias, np.array([products[0], products[-1]]))


def drawn_classes(shares: tuple[float, ...], uniform: Array) -> Classes:
    """Return random classes with these proportions, from uniform random numbers.

    >>> drawn_classes((0.6, 0.4), np.array([0.1, 0.39, 0.41])).tolist()
    [1, 1, 0]
    """
    ends = np.cumsum(shares[:0:-1])
    return np.asarray(len(shares) - 1 - np.searchsorted(ends, uniform, side="right"))


class Table(NamedTuple):
    """Real samples, relative to the midpoint of the class means, and their classes."""

    rows: Array
    classes: Classes


class TableSource:
    """Real samples, drawn without replacement; a rule is tested on those that no fit uses."""

    def __init__(self, plan: RunPlan, table: Table, seed: int):
        self.plan, self.table, self.seed = plan, table, seed
        self.means = plan.protocol.test.law.means
        random, counts = generator(seed, 0), _counts(plan)
        ends = np.cumsum([np.zeros_like(counts[0]), *counts], axis=0)
        sides = [
            random.permutation(np.flatnonzero(table.classes == k))
            for k in range(plan.protocol.classes)
        ]
        self.chosen = [
            np.concatenate([side[ends[t, k] : ends[t + 1, k]] for k, side in enumerate(sides)])
            for t in range(len(counts))
        ]
        self.held_out = [side[ends[-1, k] :] for k, side in enumerate(sides)]

    def draw(self, t: int) -> dict[int, Samples]:
        new = self.plan.new_groups(t)
        if not new:
            return {}
        # The samples are sorted by class; dealt out in turn, every group gets the right proportion.
        sizes = [self.plan.sizes[group] for group in new]
        places = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes])
        owner = np.repeat(new, sizes)[np.argsort(places, kind="stable")]
        wrong, drawn = generator(self.seed, t, LABELS), {}
        for group in new:
            mine = self.chosen[t][owner == group]
            classes = self.table.classes[mine]
            given = given_labels(classes, self.plan.protocol.groups[group].label_noise, wrong)
            drawn[group] = Samples(Stored(self.table.rows[mine]), classes, given)
        return drawn

    def test(self, weights: Array, bias: Any) -> dict[str, Any]:
        logits = [self.table.rows[rest] @ weights + bias for rest in self.held_out]
        count = len(logits)
        confusion = np.array(
            [np.bincount(predicted(one), minlength=count) / len(one) for one in logits]
        )
        if count > 2:
            own = np.array([one[:, k].var() for k, one in enumerate(logits)])
            return {"confusion": confusion, "logit_variances": own}
        below, above = (one.size for one in logits)
        ranks = rankdata(np.concatenate(logits))[below:]
        auc = (ranks.sum() - 0.5 * above * (above + 1)) / (below * above)
        variances = np.array([one.var() for one in logits])
        return {"confusion": confusion, "logit_variances": variances, "auc": float(auc)}


def sample_table(plan: RunPlan, rows: Any) -> Table:
    """Return the table of `rows=(X, y)`; raise if it is too small for the plan."""
    if not isinstance(rows, tuple) or len(rows) != 2:
        raise InvalidInput("rows", type(rows).__name__, "a pair (X, y) is needed")
    X, classes, _ = classified_rows(*rows)
    count, there = plan.protocol.classes, np.bincount(classes)
    if len(there) != count:
        accepted = f"y must have {count} classes, as the clusters; it has {len(there)}"
        raise InvalidInput("rows", f"{len(X)} rows", accepted)
    needed = np.sum(_counts(plan), axis=0)
    for k in np.flatnonzero(there <= needed):
        name = ("negative class", "positive class")[k] if count == 2 else f"class {k}"
        accepted = (
            f"the steps need {needed[k]} samples of the {name} and some must be held out to measure"
            f" the error; there are {there[k]}"
        )
        raise InvalidInput("rows", f"{len(X)} rows", accepted)
    return Table(plan.protocol.groups[0].law.project(X), classes)


def _counts(plan: RunPlan) -> list[Any]:
    """Return, for every fit, the number of samples of each class that it is the first to use."""
    counts = []
    for t in range(len(plan.protocol.fits)):
        new = plan.new_groups(t)
        size = sum(plan.sizes[group] for group in new)
        shares = plan.protocol.groups[new[0] if new else 0].proportions
        ends = np.rint(np.cumsum((0.0, *shares[:0:-1])) * size).astype(int)
        counts.append(np.diff(np.append(ends, size))[::-1])
    return counts


def _coloured(normals: Array, covariance: Array) -> Array:
    """Return Gaussian rows with this covariance, made from standard normal ones."""
    if covariance.ndim < 2:
        return np.asarray(normals * np.sqrt(covariance), dtype=float)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((normals * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, dtype=float)


def _products(weights: Array, covariance: Array) -> Any:
    """Return the variance of the logit with these weights, or the covariance of several logits."""
    if covariance.ndim == 2:
        return weights.T @ covariance @ weights
    return (covariance * weights.T) @ weights
