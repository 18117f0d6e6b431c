r"""Laws of a run with data reuse: weights over the steps, logits of samples that were trained on.

Weights are jointly Gaussian, $w_t = m_t + \sum_k \Lambda_{tk}\zeta_k$. Samples that were trained
on are followed up to the noise of their last step, from where `row_law` has their law. A test
sample has a Gaussian logit (`laws.gaussian_logits`); the gap between the two is how far the samples
have been fitted.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...rows import RowGroup
from ..laws.weights import solved_step
from .bank import scrambled
from .process import Labels, Once, Path, Returning
from .result import Memory
from .row_law import POINTS, RowLaw, SeenRows, groups_asked
from .sums import Layout

if TYPE_CHECKING:
    from ..trajectory import Trajectory


class RowLogitLaw(RowLaw):
    """The law of (class, previous logit, trained logit) of the rows that step t has been fitted to.

    Arguments:
        samples: None: the unlabelled samples of step t (the labelled ones at t = 0); "labeled":
            the labelled samples, if step t uses them.

    >>> from selftrain import Problem, Recipe, solve
    >>> problem = Problem(0.5, 2.0, 0.4, 0.75**2, steps=2, loss="squared", batches="reused")
    >>> run = solve(problem, Recipe())
    >>> seen, fresh = run.training_logits(2), run.test_logits(2)
    >>> bool(seen.cdf(0.0, y=1) != fresh.cdf(0.0, y=1))
    True
    """

    def __init__(self, trajectory: Trajectory, t: int = -1, samples: str | None = None) -> None:
        step = solved_step(trajectory, t)
        problem = trajectory.problem
        assert isinstance(trajectory.reuse, Memory)
        super().__init__(step, samples, problem.loss_function, [])
        values = (trajectory.bias, trajectory.m, trajectory.chi)
        self._path = trajectory.reuse.path(*values, step)
        self._recipe, self._steps = trajectory.recipe, problem.steps
        groups = groups_asked(problem.row_groups, step, samples)
        self._strength = float(trajectory.chi[step]) * groups[0].delta
        self._parts.extend(self._seen(group, seed) for seed, group in enumerate(groups))

    def _seen(self, group: RowGroup, seed: int) -> SeenRows:
        """Follow the rows of a group up to the noise of step t."""
        path, t = self._path, self.t
        draw = scrambled(POINTS, np.random.SeedSequence(seed))
        first = group.steps[0]
        before = Path(**{**vars(path), "live": [k for k in path.live if k < first]})
        if group.steps == (t,) and t > 0:
            once = Once(group, self._loss, before, draw)
            once.set_targets(t, self._labels(t))
            center, spread = once.conditional(*self._unknowns(t))
            return SeenRows(
                once.signs, once.shares, once.logits, once.target, once.weight,
                center, spread, self._strength,
            )  # fmt: skip
        upto = group._replace(weights=(*group.weights[: t + 1],))
        rows = Returning(upto, self._loss, before, draw)
        previous = np.full(rows.signs.size, np.nan)
        for step in range(first, t + 1):
            rows.set_targets(step, self._labels(step))
            z, layout = self._unknowns(step)
            if step > first or first > 0:
                previous = rows.logits
            if step == t:
                center, spread = rows.conditional(z, layout)
                return SeenRows(
                    rows.signs, rows.shares, previous, rows.target, rows.weight,
                    center, spread, self._strength,
                )  # fmt: skip
            rows.begin(step, layout)
            rows.finish(z, layout, step in path.live)
            if (
                step in path.live
            ):  # the reaction along the new direction is part of the row from now on
                rows.settle(layout, np.zeros(layout.past.size), 1.0)
        raise AssertionError("the step is among those of the group")

    def _labels(self, t: int) -> Labels | None:
        if t == 0:
            return None
        values = self._recipe.at_steps(self._steps)
        edge = float(values.threshold[t - 1]) * math.sqrt(self._path.q(t - 1))
        return Labels(self._recipe.label_function, edge, float(values.sharpness[t - 1]))

    def _unknowns(self, t: int) -> tuple[Array, Layout]:
        """The unknowns of step t as `sums` orders them, from the path."""
        path = self._path
        live = [k for k in path.live if k < t]
        layout = Layout.of(len(live))
        z = np.zeros(layout.size)
        z[0], z[1], z[-1] = path.bias[t], path.m[t], math.log(path.kappa[t])
        z[layout.along] = path.loadings[t, live]
        z[layout.past] = path.kappa[t] * path.slopes[t, live]
        z[layout.new] = path.loadings[t, t] ** 2
        return z, layout
