r"""Rows for clusters with a shape: drawn from their Gaussian law, or from a table of real rows
without replacement.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr
from scipy.stats import rankdata

from ...arrays import Array
from ...errors import InvalidInput
from ...mixture.from_data import labelled_rows
from ..fitted_to import GroupSamples
from ..plan import RunPlan, StepPlan
from ..random.streams import generator
from ..seed_record import Mask


class Drawn(NamedTuple):
    """Rows of one step, relative to the midpoint, and which are of the positive class."""

    rows: Array
    positive: Mask


class Measured(NamedTuple):
    """What a linear rule does on test rows.

    Attributes:
        variances: of its logits within each class, negative then positive.
        errors: within each class.
        auc: P(a positive row has the larger logit).
    """

    variances: Array
    errors: Array
    auc: float


class SourceOfRows(Protocol):
    """Where the rows of one seed come from."""

    def draw(self, step: StepPlan) -> Drawn:
        """The rows of a step."""
        ...

    def measure(self, weights: Array, bias: float) -> Measured:
        """A rule on rows that were not used."""
        ...


class GaussianSource:
    """Rows drawn from the clusters themselves; a rule is measured on their law, without
    sampling.
    """

    def __init__(self, plan: RunPlan, seed: int):
        problem = plan.problem
        assert problem.clusters is not None
        self.shapes, self.test = [problem.clusters, *problem.batch_clusters], problem.test_clusters
        self.seed = seed

    def draw(self, step: StepPlan) -> Drawn:
        random, shape = generator(self.seed, step.t), self.shapes[step.t]
        positive = random.random(step.rows) < step.rho
        noise = random.standard_normal((step.rows, shape.features))
        first, *other = shape.covariances
        rows = _coloured(noise, first)
        if other:
            rows[positive] = _coloured(noise[positive], other[0])
        return Drawn(rows + np.where(positive, 1.0, -1.0)[:, None] * shape.mean, positive)

    def measure(self, weights: Array, bias: float) -> Measured:
        shape = self.test
        squares = [_square(weights, covariance) for covariance in shape.covariances]
        variances = np.array([squares[0], squares[-1]])
        m = float(shape.mean @ weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.array([bias - m, -m - bias, 2 * m]) / np.sqrt([*variances, variances.sum()])
        *errors, auc = np.nan_to_num(ndtr(scores), nan=0.5)
        return Measured(variances, np.array(errors), float(auc))


class TableSource:
    """Real rows, drawn without replacement; a rule is measured on the rows that no step has used.

    Arguments:
        plan: of the run.
        table: rows relative to the midpoint, positive class or not.
        seed: of the order in which rows are drawn.
    """

    def __init__(self, plan: RunPlan, table: Drawn, seed: int):
        random = generator(seed, 0)
        self.table = table
        counts = _counts(plan)
        pools = [
            random.permutation(np.flatnonzero(table.positive == side)) for side in (False, True)
        ]
        ends = [np.cumsum([0, *(count[side] for count in counts)]) for side in (0, 1)]
        self._chosen = [
            np.concatenate([pools[side][ends[side][t] : ends[side][t + 1]] for side in (0, 1)])
            for t in range(len(counts))
        ]
        self._rest = [pools[side][ends[side][-1] :] for side in (0, 1)]

    def draw(self, step: StepPlan) -> Drawn:
        chosen = self._chosen[step.t]
        return Drawn(self.table.rows[chosen], self.table.positive[chosen])

    def measure(self, weights: Array, bias: float) -> Measured:
        logits = [self.table.rows[rest] @ weights + bias for rest in self._rest]
        errors = np.array([np.mean(logits[0] > 0), np.mean(logits[1] <= 0)])
        below, above = (one.size for one in logits)
        ranks = rankdata(np.concatenate(logits))[below:]
        auc = (ranks.sum() - 0.5 * above * (above + 1)) / (below * above)
        return Measured(np.array([one.var() for one in logits]), errors, float(auc))


class Pool:
    """The samples of a seed: drawn at their first use, stored until their last."""

    def __init__(self, plan: RunPlan, source: SourceOfRows):
        self._plan, self._source = plan, source
        self._groups: dict[int, GroupSamples] = {}

    def samples(self, group: int) -> GroupSamples:
        """The samples of a group."""
        return self._groups[group]

    def draw(self, step: StepPlan) -> None:
        """Draw the groups that a fit is the first to use; each has its share of both classes."""
        new = self._plan.new_groups(step.t)
        if not new:
            return
        sizes = [self._plan.size(group) for group in new]
        drawn = self._source.draw(step._replace(rows=sum(sizes)))
        places = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes])
        order = np.repeat(new, sizes)[np.argsort(places, kind="stable")]
        for group in new:
            mine = order == group
            self._groups[group] = GroupSamples(drawn.rows[mine], drawn.positive[mine])

    def forget(self, t: int) -> None:
        """Drop the samples that no fit after t uses."""
        for group in [group for group in self._groups if self._plan.is_last_use(group, t)]:
            del self._groups[group]


def row_table(plan: RunPlan, rows: Any) -> Drawn:
    """The table of `rows=(X, y)`, checked to be large enough for the plan."""
    clusters = plan.problem.clusters
    assert clusters is not None
    if not isinstance(rows, tuple) or len(rows) != 2:
        raise InvalidInput("rows", type(rows).__name__, "a pair (X, y) is accepted")
    X, positive, _ = labelled_rows(*rows)
    needed = np.array(_counts(plan)).sum(axis=0)
    for side, name in enumerate(("negative", "positive")):
        there = int((positive == bool(side)).sum())
        if there <= needed[side]:
            accepted = (
                f"the steps need {needed[side]} rows of the {name} class and some must be left to "
                f"measure the error; there are {there}"
            )
            raise InvalidInput("rows", f"{len(X)} rows", accepted)
    return Drawn(clusters.project(X), positive)


def _counts(plan: RunPlan) -> list[tuple[int, int]]:
    """Rows of the negative and the positive class that every step is the first to use."""
    rows = [plan.new_rows(step.t) for step in plan.steps]
    positive = [round(step.rho * count) for step, count in zip(plan.steps, rows, strict=True)]
    return [(count - up, up) for count, up in zip(rows, positive, strict=True)]


def _coloured(noise: Array, covariance: Array) -> Array:
    """Standard normal rows with this covariance."""
    if covariance.ndim < 2:
        return np.asarray(noise * np.sqrt(covariance), dtype=float)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((noise * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, dtype=float)


def _square(weights: Array, covariance: Array) -> float:
    if covariance.ndim < 2:
        return float((covariance * weights) @ weights)
    return float(weights @ covariance @ weights)
