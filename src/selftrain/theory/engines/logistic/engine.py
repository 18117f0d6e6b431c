"""The engine for the logistic loss: the compiled march, and stages for the steps that need another
way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ....arrays import Array
from ....errors import ConvergenceError
from ....losses import Loss
from ....problem import Problem
from ....recipe import Recipe
from ...gradients.step_derivatives import FIELDS, first_shifts
from ...step.averages import Extra, blank
from ...step.ending import Ending
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, A, frame, frame_first
from ...step.given import Given, Schedule, given_at, schedule
from ...step.solver import solve_stage
from ...step.stage import Evaluation, StageSolution
from ...step.table import Record
from ...tolerances import LEFT_OF_OLD
from ..engine import solve_first
from .derivatives import derivatives_at, derivatives_of_run
from .march import Demands, Near, RunTable, march
from .starts import explicit_start, no_update_start
from .step import evaluate, evaluate_groups, reference_sharpness, workspace

TOO_LONG = "its averages need too long a rule"

PIECE = 8192
"""Steps that are solved in one call, less than a tenth of a second of work: then others may run,
and progress is reported. The last of them is confirmed on the refined rule.
"""


class SupervisedStage:
    r"""Step 0, or a supervised fit to several groups of points $(\alpha, \rho, \Delta)$.

    Arguments:
        groups: rows $\alpha, \rho, \Delta$, one column per group.
        ridge: $\lambda$.
    """

    step = 0

    def __init__(self, groups: Array, ridge: float):
        self.groups = np.ascontiguousarray(groups, dtype=float)
        alpha, _, delta = self.groups
        self.frame = frame_first(ridge, math.sqrt(float(alpha @ delta / alpha.sum())))
        self._work = workspace()._replace(averages=blank(self.groups.shape[1]))

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        work = self._work
        about = self.frame._replace(ridge=ridge)
        points = evaluate_groups(z, self.groups, about, exponent, Extra(with_loss, True), work)
        alpha, _, delta = self.groups
        strength = math.exp(z[LOG_CHI]) * delta
        envelope = alpha @ (work.averages.loss + 0.5 * strength * work.averages.ff)
        system = work.system
        return Evaluation(system.residual.copy(), system.jacobian.copy(), points, float(envelope))

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage."""
        return solve_stage(self, exponent, tolerance)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a training point at the unknowns z."""
        self.evaluate(z, self.frame.ridge, exponent, with_loss=True)
        alpha = self.groups[0]
        return float(alpha @ self._work.averages.loss / alpha.sum())

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z and in what step 0 is given (one group of
        points).
        """
        ridge = self.frame.ridge
        at = self.evaluate(z, ridge, exponent)
        assert at is not None
        return at.jacobian, first_shifts(z, self.groups[:, 0], ridge, self._work.averages[0])

    def starts(self) -> Iterator[tuple[str, Array]]:
        yield "explicit", self.explicit(self.frame.ridge)

    def explicit(self, ridge: float) -> Array:
        alpha, rho, delta = self.groups
        share = float(alpha @ rho / alpha.sum())
        stiffness = ridge + share * (1 - share) * float(alpha @ delta)
        z = np.zeros(5)
        z[BIAS] = math.log(share / (1 - share))
        z[LOG_CHI] = -math.log(stiffness)
        z[ETA] = float(alpha @ (rho * (1 - share) + (1 - rho) * share)) / stiffness
        square = float((alpha * delta) @ (rho * (1 - share) ** 2 + (1 - rho) * share**2))
        z[LOG_R] = 0.5 * math.log(square) - math.log(stiffness)
        return z


class LogisticStage:
    """One self-training step with soft or hard labels."""

    def __init__(self, t: int, given: Given):
        self.step, self.given = t, given
        self._work = workspace()
        self.anchor = self._anchor()
        self.frame = frame(given, self.anchor)

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        given, work = self.given._replace(ridge=ridge), self._work
        extra = Extra(loss=True, labels=False) if with_loss else None
        points, log_share = evaluate(z, given, self.anchor, exponent, extra, work)
        if points <= 0:
            return None
        strength = math.exp(z[LOG_CHI]) * given.delta
        moreau = work.averages[0].loss + 0.5 * strength * work.averages[0].ff
        envelope = float(given.alpha * math.exp(log_share) * moreau)
        system = work.system
        return Evaluation(system.residual.copy(), system.jacobian.copy(), points, envelope)

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage."""
        return solve_stage(self, exponent, tolerance)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a selected training point at the unknowns z."""
        self.evaluate(z, self.given.ridge, exponent, with_loss=True)
        return float(self._work.averages[0].loss)

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z (with a and B themselves) and in what the step is
        given.
        """
        jacobian, move = np.empty((5, 5)), np.empty((5, FIELDS))
        if not derivatives_at(z.copy(), self.given, exponent, self._work, jacobian, move):
            raise ConvergenceError(self.step, TOO_LONG, {}, math.nan)
        return jacobian, move

    def starts(self) -> Iterator[tuple[str, Array]]:
        z = np.empty(5)
        if self.anchor > 0 and no_update_start(self.given, self._work.nodes, z):
            yield "no update", z
        yield "explicit", self.explicit(self.frame.ridge)

    def explicit(self, ridge: float) -> Array:
        z = self._zero_based(ridge)
        z[A] -= self.frame.offset
        z[BIAS] -= self.frame.old_bias
        return z

    def _zero_based(self, ridge: float) -> Array:
        z = np.empty(5)
        explicit_start(self.given._replace(ridge=ridge), self._work.nodes, z)
        return z

    def _anchor(self) -> float:
        r"""$\gamma_0$: the sharpness if much of the old weights will be left, else 0."""
        base = float(reference_sharpness(self.given.sharpness))
        if no_update_start(self.given, self._work.nodes, np.empty(5)):
            return base
        return (
            base
            if abs(self._zero_based(self.given.ridge)[A]) > LEFT_OF_OLD * base * self.given.omega
            else 0.0
        )


class LogisticEngine:
    """Solves the steps of a run in compiled code, and differentiates them all at once."""

    def supervised(self, loss: Loss, groups: Array, ridge: float) -> SupervisedStage:
        r"""The supervised fit to groups of points; rows $\alpha, \rho, \Delta$."""
        return SupervisedStage(groups, ridge)

    def self_training(self, problem: Problem, recipe: Recipe, t: int, old: Array) -> LogisticStage:
        """Step t >= 1 from the state `old` of the step before."""
        return LogisticStage(t, given_at(problem, recipe, t, old))

    def run(self, record: Record, begin: int = 0) -> None:
        """Fill the record from step `begin` on: march; steps that do not converge are solved one by
        one.
        """
        problem, recipe = record.problem, record.recipe
        plan, near, work = schedule(problem, recipe), _near(record), workspace()
        table = RunTable(
            record.rows, record.states, record.unknowns, record.anchors, record.evaluations,
            record.points, record.accuracy, record.starts,
        )  # fmt: skip
        t, ending = begin, Ending.SOLVED
        while t <= problem.steps:
            piece = min(t + PIECE, problem.steps + 1)
            faded = bool(record.exponents[t] > 0)
            limits = Demands(record.exponent, record.enough, record.confirmable, faded)
            t, ending = march(t, _until(plan, piece), table, near, limits, work)
            record.reached(t - 1)
            if ending == Ending.SOLVED:
                continue
            if record.rescaled(t, Ending(ending)):
                near.anchors[t:] = math.nan  # the run nearby is in other units
                continue
            if ending != Ending.UNCONFIRMED:
                break
            record.truncate(t)
            if t == 0:
                solve_first(self, record)
            else:
                stage = self.self_training(problem, recipe, t, record.states[t - 1])
                solution = stage.solution(record.exponent, record.confirmable)
                record.store(t, solution, stage.frame, stage.anchor)
            t += 1
        if t <= problem.steps:
            record.end(t, Ending(ending))

    def derivatives(
        self, problem: Problem, recipe: Recipe, states: Array, unknowns: Array, steps: range,
        exponent: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        """The derivatives of the equations of `steps` (from 1 on) in their unknowns and in what
        they are given.
        """
        count, part = len(steps) + 1, slice(steps.start - 1, steps.stop)
        jacobians, moves = np.empty((count, 5, 5)), np.empty((count, 5, FIELDS))
        whole = schedule(problem, recipe)
        parts = {name: getattr(whole, name)[part] for name in Schedule._fields[:-1]}
        plan = whole._replace(**parts)
        failed = derivatives_of_run(
            plan, states[part], unknowns[part], exponent, workspace(), jacobians, moves
        )
        if failed:
            raise ConvergenceError(part.start + failed, TOO_LONG, {}, math.nan)
        return jacobians[1:], moves[1:]


def _until(plan: Schedule, end: int) -> Schedule:
    """A schedule that ends before step `end`."""
    if end == len(plan.alpha):
        return plan
    return plan._replace(**{name: getattr(plan, name)[:end] for name in Schedule._fields[:-1]})


def _near(record: Record) -> Near:
    r"""Unknowns of the run to start from and their $\gamma_0$; zero and NaN where there is none."""
    states, unknowns, last = record.near_solution()
    anchors = np.full(len(unknowns), math.nan)
    if record.warm_start is not None:
        sharpness = schedule(record.warm_start.problem, record.warm_start.recipe).sharpness
        if last > 0:
            anchors[0] = 0.0
        for t in range(1, last + 1):
            base = float(reference_sharpness(sharpness[t]))
            omega, _, _, bias = states[t - 1]
            anchors[t] = base if abs(unknowns[t, A]) > LEFT_OF_OLD * base * omega else 0.0
            unknowns[t, A] -= anchors[t] * omega
            unknowns[t, BIAS] -= anchors[t] * bias
    return Near(unknowns, anchors)
