r"""A problem and a recipe written out for a finite system: one `StepPlan` per step.

At N features step t has $M = \mathrm{round}(\alpha N)$ rows; the ridge on $c = w/\sqrt N$ is
$\lambda N$.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..losses import Loss
from ..problem import Mixture, Problem
from ..protocol import Protocol, parts_of, protocol_of
from ..recipe import Recipe


class StepPlan(NamedTuple):
    """What one step of a simulation needs to know (threshold and sharpness: nan at step 0)."""

    t: int
    loss: Loss
    rows: int
    rho: float
    delta: float
    ridge: float
    threshold: float
    sharpness: float


class RunPlan(NamedTuple):
    """The steps of a run and what is common to them; `protocol` says what is fitted to what."""

    problem: Problem
    recipe: Recipe
    features: int
    steps: tuple[StepPlan, ...]
    protocol: Protocol

    @property
    def test(self) -> Mixture:
        return self.problem.test_mixture

    @property
    def returns(self) -> bool:
        """Whether some sample is reused."""
        return not self.problem.every_sample_once

    def size(self, group: int) -> int:
        """The samples of a group."""
        return round(self.protocol.groups[group].alpha * self.features)

    def new_groups(self, t: int) -> tuple[int, ...]:
        """The groups that fit t is the first to use."""
        uses = self.protocol.uses
        return tuple(use.group for use in self.protocol.fits[t].uses if min(uses[use.group]) == t)

    def new_rows(self, t: int) -> int:
        """Samples that fit t is the first to use."""
        return sum(self.size(group) for group in self.new_groups(t))

    def is_last_use(self, group: int, t: int) -> bool:
        """Whether no fit after t uses a group."""
        return max(self.protocol.uses[group]) <= t

    @property
    def labels_stay(self) -> bool:
        """Whether every fit has the labelled samples with the weight of fit 0."""
        uses = self.protocol.uses[0]
        return all(t in uses and uses[t].weight == 1 for t in range(len(self.steps)))

    @property
    def alphas(self) -> Array:
        """Rows per feature as drawn, M/N."""
        return np.array([step.rows / self.features for step in self.steps])


MOST_ROWS = 2.0**53
"""Beyond this the number of rows is not exact."""

VARIANCES = (1e-60, 1e60)
"""The simulators keep rows in single precision, whose numbers go from 1e-38 to 1e38."""


def _check_sizes(problem: Problem, rows: Array) -> None:
    """Refuse what a simulation cannot keep: rows beyond counting, noise beyond single precision."""
    if rows.max() > MOST_ROWS:
        name = "alpha_l" if rows.argmax() == 0 else "alpha_u"
        accepted = (
            f"with these features at most {MOST_ROWS:.0e} rows are accepted, not {rows.max():.0e}"
        )
        raise InvalidInput(name, getattr(problem, name), accepted)
    if problem.shaped:
        return
    low, high = VARIANCES
    for name, values in (("delta", problem.delta), ("delta_u", problem.unlabeled.delta)):
        if not np.all((low <= np.asarray(values)) & (np.asarray(values) <= high)):
            accepted = "a simulation accepts variances from 1e-60 to 1e60"
            raise InvalidInput(name, getattr(problem, name) or problem.delta, accepted)


def plan_run(problem: Problem, recipe: Recipe, features: int) -> RunPlan:
    """The plan of a simulation with `features` features, checked.

    >>> problem = Problem(alpha_l=0.5, alpha_u=2, rho=0.4, delta=0.5, steps=2)
    >>> [step.rows for step in plan_run(problem, Recipe(), 100).steps]
    [50, 200, 200]
    """
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    parts = ((), *parts_of(problem.batches, problem.steps))
    count = np.array([max(len(names), 1) for names in parts])
    alphas = np.append(problem.alpha_l, batches.alpha) / count
    _check_sizes(problem, alphas * features)
    rows = np.rint(alphas * features).astype(int)
    if rows.min() < 2:
        least = int(np.ceil(1.5 / alphas.min()))
        least += int(np.rint(least * alphas.min()) < 2)  # a half is rounded to the even number
        raise InvalidInput(
            "features",
            features,
            f"the batch of step {int(rows.argmin())} would have {rows.min()} rows, and 2 are"
            f" needed: {least} features or more are accepted",
        )
    rows = rows * count
    first = StepPlan(
        0, problem.loss_at(0), int(rows[0]), problem.rho, problem.delta, recipe.lambda_l * features,
        np.nan, np.nan,
    )  # fmt: skip
    later = (
        StepPlan(
            t + 1,
            problem.loss_at(t + 1),
            int(rows[t + 1]),
            float(batches.rho[t]),
            float(batches.delta[t]),
            float(values.lambda_u[t]) * features,
            float(values.threshold[t]),
            float(values.sharpness[t]),
        )
        for t in range(problem.steps)
    )
    return RunPlan(problem, recipe, features, (first, *later), protocol_of(problem, recipe))
