r"""Where samples come from: Gaussian clusters, or a table of real samples drawn without
replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.stats import rankdata

from ...arrays import Array
from ...errors import InvalidInput
from ...mixture.from_data import labelled_rows
from ..plan import RunPlan
from ..random.streams import generator
from ..run import Measured, gaussian_rule
from ..seed_record import Mask
from .design import ClusterRows, Design, Stored
from .revealed import RevealedGaussian

Noise = Callable[[int, int, np.random.Generator], Design]


class Samples(NamedTuple):
    """The samples of a group: design matrix, true classes, weights (None: all one)."""

    design: Any
    positive: Mask
    weights: Array | None = None


class SampleSource(Protocol):
    """Where the samples of a run come from."""

    def draw(self, t: int) -> dict[int, Samples]:
        """Return the groups that fit t is the first to use."""
        ...


class TestedSource(SampleSource, Protocol):
    """A source that can test a rule; `mean` is half the difference of the class means."""

    mean: Array

    def test(self, weights: Array, bias: float) -> Measured:
        """Return what a rule does on samples that were not used."""
        ...


def dense_noise(rows: int, columns: int, random: np.random.Generator) -> Design:
    """Draw and store all entries, standard normal."""
    return Stored(random.standard_normal((rows, columns)))


NOISES: dict[str, Noise] = {"dense": dense_noise, "revealed": RevealedGaussian}


class GaussianSource:
    """Samples of the clusters; a rule is tested on their law, without sampling.

    Arguments:
        plan: of the run.
        seed: of the random numbers.
        noise: draws the noise of embedded clusters.
    """

    def __init__(self, plan: RunPlan, seed: int, noise: Noise = dense_noise):
        self.plan, self.seed, self.noise = plan, seed, noise
        self.law = plan.problem.test_clusters
        self.mean = self.law.mean
        if plan.embedded:
            self.mean = np.full(plan.features, plan.features**-0.5)

    def draw(self, t: int) -> dict[int, Samples]:
        random = generator(self.seed, t)
        return {group: self._samples(group, random) for group in self.plan.new_groups(t)}

    def _samples(self, index: int, random: np.random.Generator) -> Samples:
        group, size = self.plan.protocol.groups[index], self.plan.sizes[index]
        positive = random.random(size) < group.proportions[1]
        signs, first, *other = np.where(positive, 1.0, -1.0), *group.law.covariances
        if self.plan.embedded:
            noise = self.noise(size, self.plan.features, random)
            return Samples(ClusterRows(noise, signs, self.mean, float(first)), positive)
        normals = random.standard_normal((size, group.law.features))
        rows = _coloured(normals, first)
        if other:
            rows[positive] = _coloured(normals[positive], other[0])
        return Samples(Stored(rows + signs[:, None] * group.law.mean), positive)

    def test(self, weights: Array, bias: float) -> Measured:
        squares = [_square(weights, covariance) for covariance in self.law.covariances]
        m = float(self.mean @ weights)
        return gaussian_rule(m, bias, np.array([squares[0], squares[-1]]))


class Table(NamedTuple):
    """Real samples relative to the midpoint, and which are of the positive class."""

    rows: Array
    positive: Mask


class TableSource:
    """Real samples, drawn without replacement; a rule is tested on those that no fit uses.

    Arguments:
        plan: of the run.
        table: the samples.
        seed: of the order in which they are drawn.
    """

    def __init__(self, plan: RunPlan, table: Table, seed: int):
        self.plan, self.table, self.mean = plan, table, plan.problem.test_clusters.mean
        random, counts = generator(seed, 0), _counts(plan)
        ends = np.cumsum([(0, 0), *counts], axis=0)
        sides = [
            random.permutation(np.flatnonzero(table.positive == side)) for side in (False, True)
        ]
        self.chosen = [
            np.concatenate([sides[k][ends[t, k] : ends[t + 1, k]] for k in (0, 1)])
            for t in range(len(counts))
        ]
        self.held_out = [sides[k][ends[-1, k] :] for k in (0, 1)]

    def draw(self, t: int) -> dict[int, Samples]:
        new = self.plan.new_groups(t)
        if not new:
            return {}
        # The samples are sorted by class: dealing them out in turn gives every group its share.
        sizes = [self.plan.sizes[group] for group in new]
        places = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes])
        owner = np.repeat(new, sizes)[np.argsort(places, kind="stable")]
        dealt = {group: self.chosen[t][owner == group] for group in new}
        rows, positive = self.table
        return {group: Samples(Stored(rows[one]), positive[one]) for group, one in dealt.items()}

    def test(self, weights: Array, bias: float) -> Measured:
        logits = [self.table.rows[rest] @ weights + bias for rest in self.held_out]
        errors = np.array([np.mean(logits[0] > 0), np.mean(logits[1] <= 0)])
        below, above = (one.size for one in logits)
        ranks = rankdata(np.concatenate(logits))[below:]
        auc = (ranks.sum() - 0.5 * above * (above + 1)) / (below * above)
        return Measured(np.array([one.var() for one in logits]), errors, float(auc))


def sample_table(plan: RunPlan, rows: Any) -> Table:
    """Return the table of `rows=(X, y)`, checked to be large enough for the plan."""
    clusters = plan.problem.clusters
    assert clusters is not None
    if not isinstance(rows, tuple) or len(rows) != 2:
        raise InvalidInput("rows", type(rows).__name__, "a pair (X, y) is needed")
    X, positive, _ = labelled_rows(*rows)
    needed = np.array(_counts(plan)).sum(axis=0)
    for side, name in enumerate(("negative", "positive")):
        there = int((positive == bool(side)).sum())
        if there <= needed[side]:
            accepted = (
                f"the steps need {needed[side]} samples of the {name} class and some must be held "
                f"out to measure the error; there are {there}"
            )
            raise InvalidInput("rows", f"{len(X)} rows", accepted)
    return Table(clusters.project(X), positive)


def _counts(plan: RunPlan) -> list[tuple[int, int]]:
    """Return the samples of the negative and the positive class that every fit is the first to
    use.
    """
    counts = []
    for t in range(len(plan.protocol.fits)):
        new = plan.new_groups(t)
        size = sum(plan.sizes[group] for group in new)
        up = round(plan.protocol.groups[new[0]].proportions[1] * size) if new else 0
        counts.append((size - up, up))
    return counts


def _coloured(normals: Array, covariance: Array) -> Array:
    """Return standard normal rows with this covariance."""
    if covariance.ndim < 2:
        return np.asarray(normals * np.sqrt(covariance), dtype=float)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((normals * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, dtype=float)


def _square(weights: Array, covariance: Array) -> float:
    if covariance.ndim < 2:
        return float((covariance * weights) @ weights)
    return float(weights @ covariance @ weights)
