"""The engine for the logistic loss: the compiled march, and stages for the steps that resist it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ....arrays import Array
from ....errors import ConvergenceError, EmptySelection, StateOverflow
from ....labelers import HardLabels
from ....losses import Loss
from ....problem import Problem
from ....recipe import Recipe
from ...gradients.step_derivatives import FIELDS, first_shifts, logistic_derivatives
from ...quadrature.rules import CAPACITY
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, A
from ...step.stage import Evaluation, StageSolution, solve_stage
from ...step.table import Record
from .averages import COUNT, FF, LOSS
from .march import COLLAPSED, DONE, EMPTY, HARD_STEP, march
from .starts import explicit_start, no_update_start
from .step import Step, Workspace, evaluate, evaluate_supervised, reference_sharpness


class SupervisedStage:
    r"""Step 0, or a supervised fit to several groups of points $(\alpha, \rho, \Delta)$.

    Arguments:
        groups: rows $\alpha, \rho, \Delta$, one column a group.
        ridge: $\lambda$.
    """

    step, first, fixed_bias = 0, True, False
    nu2, offset, old_bias, omega = 1.0, 0.0, 0.0, 0.0

    def __init__(self, groups: Array, ridge: float):
        self.groups, self.ridge = np.ascontiguousarray(groups, dtype=float), ridge
        alpha, _, delta = self.groups
        self.field_scale = math.sqrt(float(alpha @ delta / alpha.sum()))
        self._nodes = np.zeros((4, 2))
        self._moments = np.zeros((self.groups.shape[1], COUNT))

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        residual, jacobian = np.empty(5), np.empty((5, 5))
        points = evaluate_supervised(
            z,
            self.groups,
            ridge,
            exponent,
            with_loss,
            self._nodes,
            self._moments,
            residual,
            jacobian,
        )
        chi = math.exp(z[LOG_CHI])
        alpha, _, delta = self.groups
        envelope = alpha @ (self._moments[:, LOSS] + 0.5 * chi * delta * self._moments[:, FF])
        return Evaluation(residual, jacobian, points, float(envelope))

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage."""
        return solve_stage(self, exponent, tolerance)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a training point at the unknowns z."""
        self.evaluate(z, self.ridge, exponent, with_loss=True)
        alpha = self.groups[0]
        return float(alpha @ self._moments[:, LOSS] / alpha.sum())

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z and in what step 0 is given (one group of points)."""
        at = self.evaluate(z, self.ridge, exponent)
        assert at is not None
        return at.jacobian, first_shifts(z, self.groups[:, 0], self.ridge, self._moments[0])

    def starts(self) -> Iterator[tuple[str, Array]]:
        yield "explicit", self.explicit(self.ridge)

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

    first = False

    def __init__(self, t: int, given: Step):
        self.step, self.given, self.ridge = t, given, given.ridge
        self.fixed_bias, self.omega, self.nu2 = given.fixed_bias, given.omega, given.nu2
        self.field_scale = math.sqrt(given.delta)
        self._work = Workspace(
            np.empty((4, CAPACITY)),
            np.zeros((1, COUNT)),
            np.empty(5),
            np.empty((5, 5)),
            np.empty(5),
        )
        self.anchor = self._anchor()
        self.offset, self.old_bias = self.anchor * given.omega, self.anchor * given.bias

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        given, work = self.given._replace(ridge=ridge), self._work
        points, log_share = evaluate(z, given, self.anchor, exponent, with_loss, False, work)
        if points <= 0:
            return None
        strength = math.exp(z[LOG_CHI]) * given.delta
        moreau = work.moments[0, LOSS] + 0.5 * strength * work.moments[0, FF]
        envelope = float(given.alpha * math.exp(log_share) * moreau)
        return Evaluation(work.residual.copy(), work.jacobian.copy(), points, envelope)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a selected training point at the unknowns z."""
        self.evaluate(z, self.ridge, exponent, with_loss=True)
        return float(self._work.moments[0, LOSS])

    def starts(self) -> Iterator[tuple[str, Array]]:
        z = np.empty(5)
        if self.anchor > 0 and no_update_start(self.given, self._work.nodes, z):
            yield "no update", z
        yield "explicit", self.explicit(self.ridge)

    def explicit(self, ridge: float) -> Array:
        z = self._zero_based(ridge)
        z[A] -= self.offset
        z[BIAS] -= self.old_bias
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
        return base if abs(self._zero_based(self.ridge)[A]) > 0.05 * base * self.omega else 0.0


def supervised(loss: Loss, groups: Array, ridge: float) -> SupervisedStage:
    r"""The supervised fit to groups of points; rows $\alpha, \rho, \Delta$."""
    return SupervisedStage(groups, ridge)


def self_training(problem: Problem, recipe: Recipe, t: int, old: Array) -> LogisticStage:
    """Step t >= 1 from the state `old` of the step before."""
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    i = t - 1
    omega, mu, nu2, bias = (float(value) for value in old)
    given = Step(
        omega,
        mu,
        nu2,
        bias,
        float(batches.alpha[i]),
        float(batches.rho[i]),
        float(batches.delta[i]),
        float(values.lambda_u[i]),
        float(values.threshold[i]),
        float(_sharpness(recipe, values.sharpness)[i]),
        recipe.fix_bias,
    )
    return LogisticStage(t, given)


def derivatives(
    problem: Problem, recipe: Recipe, states: Array, unknowns: Array, last: int, exponent: float
) -> tuple[Array, Array]:
    """The derivatives of the equations of steps 1..`last` in their unknowns and in what they are given."""
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    alpha, rho, delta = (np.array(column) for column in batches)
    jacobians, moves = np.empty((last + 1, 5, 5)), np.empty((last + 1, 5, FIELDS))
    failed = logistic_derivatives(
        states, unknowns, alpha, rho, delta, np.array(values.lambda_u),
        np.array(values.threshold), np.array(_sharpness(recipe, values.sharpness)),
        recipe.fix_bias, exponent, last, jacobians, moves,
    )  # fmt: skip
    if failed:
        raise ConvergenceError(failed, "its averages need too long a rule", {}, math.nan)
    return jacobians[1:], moves[1:]


def _sharpness(recipe: Recipe, sharpness: Array) -> Array:
    hard = isinstance(recipe.label_function, HardLabels)
    return np.full_like(sharpness, np.inf) if hard else sharpness


def run(record: Record) -> None:
    """Fill the record from step 1 on: march; steps that resist are solved one by one."""
    problem, recipe = record.problem, record.recipe
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    alpha, rho, delta = (np.array(column) for column in batches)
    ridges, thresholds = np.array(values.lambda_u), np.array(values.threshold)
    sharpness = np.array(_sharpness(recipe, values.sharpness))
    nodes = np.empty((4, CAPACITY))
    near, near_anchors = _near(record)
    t, why = 1, DONE
    while t <= problem.steps:
        t, why = march(
            t, record.rows, record.states, record.unknowns, alpha, rho, delta,
            ridges, thresholds, sharpness, recipe.fix_bias,
            record.exponent, record.enough, record.confirmable, record.evaluations, record.points,
            record.accuracy, record.starts, record.anchors, near, near_anchors, nodes,
        )  # fmt: skip
        if why != HARD_STEP:
            break
        record.truncate(t)
        stage = self_training(problem, recipe, t, record.states[t - 1])
        solution = solve_stage(stage, record.exponent, record.confirmable)
        record.store(t, solution, stage.ridge, stage.anchor)
        t += 1
    if t <= problem.steps:
        _end(record, t, why)


def _near(record: Record) -> tuple[Array, Array]:
    r"""Unknowns of the near run and their $\gamma_0$; zero and NaN where there is none."""
    states, unknowns, last = record.near_solution()
    anchors = np.full(len(unknowns), math.nan)
    if record.warm_start is not None:
        recipe, steps = record.warm_start.recipe, record.warm_start.problem.steps
        sharpness = _sharpness(recipe, recipe.at_steps(steps).sharpness)
        for t in range(1, last + 1):
            base = float(reference_sharpness(sharpness[t - 1]))
            omega, _, _, bias = states[t - 1]
            anchors[t] = base if abs(unknowns[t, A]) > 0.05 * base * omega else 0.0
            unknowns[t, A] -= anchors[t] * omega
            unknowns[t, BIAS] -= anchors[t] * bias
    return unknowns, anchors


def _end(record: Record, t: int, why: int) -> None:
    """Mark a collapse at step t, or raise what stopped the march there."""
    record.truncate(t)
    state = record.described(t - 1)
    if why == COLLAPSED:
        record.collapsed_at = t
    elif why == EMPTY:
        threshold = record.recipe.at_steps(record.problem.steps).threshold[t - 1]
        reason = f"the threshold {threshold:g} rejects every point of the batch"
        raise EmptySelection(t, reason, state, math.nan)
    else:
        raise StateOverflow(t, "the norm of the weights left the range of numbers", state, math.nan)
