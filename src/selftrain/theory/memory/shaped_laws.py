"""The law of the logits of training rows on clusters with a shape whose rows are used again.

Rows are followed as the solver follows them (`shaped_rows`), with the fields that its banks agreed
on; from the noise of their last step on `row_law` has their law.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...rows import RowGroup
from ..laws.weights import solved_step
from .algebra import RowFields
from .process import Labels
from .row_law import POINTS, RowLaw, SeenRows, groups_asked
from .shaped_result import ShapedMemory
from .shaped_rows import ClassRows, class_rows

if TYPE_CHECKING:
    from ..trajectory import Trajectory


class ShapedRowLogitLaw(RowLaw):
    """The law of (class, previous logit, trained logit) of the rows that step t has been fitted
    to.

    Arguments:
        samples: None: the unlabelled samples of step t (the labelled ones at t = 0); "labeled":
            the labelled samples, if step t uses them.

    >>> from selftrain import Clusters, Problem, Recipe, solve
    >>> shape = Clusters(mean=[0.8, 0.3, 0.1], covariance=[0.5, 0.3, 0.2])
    >>> problem = Problem(1.0, 3.0, 0.4, clusters=shape, steps=2, batches="reused")
    >>> run = solve(problem, Recipe(), tolerance=1e-3)
    >>> seen, fresh = run.training_logits(2), run.test_logits(2)
    >>> bool(seen.cdf(0.0, y=1) != fresh.cdf(0.0, y=1))
    True
    """

    def __init__(self, trajectory: Trajectory, t: int = -1, samples: str | None = None) -> None:
        step = solved_step(trajectory, t)
        problem = trajectory.problem
        groups = groups_asked(problem.row_groups, step, samples)
        self._run = trajectory
        super().__init__(step, samples, problem.loss_function, [])
        self._parts.extend(part for k, group in enumerate(groups) for part in self._seen(group, k))

    def _seen(self, group: RowGroup, seed: int) -> Iterator[SeenRows]:
        """Both classes of a group, followed up to the noise of step t."""
        t, first = self.t, group.steps[0]
        upto = group._replace(weights=group.weights[: t + 1])
        for rows in class_rows(upto, self._loss, POINTS, np.random.SeedSequence(seed)):
            if first > 0:
                rows.meet(self._fields(first - 1), float(self._run.bias[first - 1]))
            for step in range(first, t):
                rows.set_targets(step, self._labels(step))
                rows.finish(self._fields(step), float(self._run.bias[step]), step)
            rows.set_targets(t, self._labels(t))
            yield self._before_noise(rows, unseen=t == 0)

    def _before_noise(self, rows: ClassRows, unseen: bool) -> SeenRows:
        fields, points = self._fields(self.t), len(rows.noise)
        center, row = rows.expect(fields, float(self._run.bias[self.t]), self.t)
        one = np.ones(points)
        return SeenRows(
            rows.sign * one, rows.share / points * one, np.nan * one if unseen else rows.logits,
            rows.target.copy(), rows.weight, center, float(row[-1]),
            float(fields.kicks[rows.side, self.t]),
        )  # fmt: skip

    def _fields(self, t: int) -> RowFields:
        run = self._run
        m = float(run.m[t])
        part = run.reuse
        assert isinstance(part, ShapedMemory)
        return RowFields(m, part.logit_overlaps[t, :, : t + 1], part.kicks[t, :, : t + 1])

    def _labels(self, t: int) -> Labels | None:
        if t == 0:
            return None
        run = self._run
        sharpness = run.recipe.at_steps(run.problem.steps).sharpness[t - 1]
        edge = float(run.thresholds[t - 1])
        return Labels(run.recipe.label_function, edge, float(sharpness))
