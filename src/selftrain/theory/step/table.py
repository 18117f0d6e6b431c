"""The tables an engine fills while it solves a trajectory, step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...arrays import Array
from ...errors import StageError, StateOverflow
from ...problem import Problem
from ...recipe import Recipe
from ..engines.logistic.march import LARGEST, SMALLEST, vanished
from ..engines.logistic.step import to_state
from ..trajectory import STATE, SolverStats, Trajectory
from .stage import StageSolution

PREDICTED, EXPLICIT, NO_UPDATE, CONTINUATION, CONVEX, CLOSED_FORM = range(6)
START_NAMES = ("predicted", "explicit", "no update", "continuation", "convex", "closed form")


@dataclass
class Record:
    r"""Rows over t = 0..T: observables, state, unknowns, and how each step was found.

    Attributes:
        rows: m, v, B, $\chi$, R, $\hat Q$, $\hat\chi$, $\hat m$, $\hat R$ (the order of `trajectory.STATE`).
        states: $\omega = \sqrt q$, $\mu = m/\omega$, $\nu^2 = v/q$, B: what the next step starts from.
        unknowns: the solution z of each stage, for prediction.
        anchors: $\gamma_0$ of those unknowns.
        warm_start: a similar run, from which to predict.
    """

    problem: Problem
    recipe: Recipe
    tolerance: float
    warm_start: Trajectory | None = None
    rows: Array = field(init=False)
    states: Array = field(init=False)
    unknowns: Array = field(init=False)
    anchors: Array = field(init=False)
    evaluations: Array = field(init=False)
    points: Array = field(init=False)
    accuracy: Array = field(init=False)
    starts: Array = field(init=False)
    collapsed_at: int | None = None
    failure: StageError | None = None

    def __post_init__(self) -> None:
        size = self.problem.steps + 1
        self.rows = np.full((size, len(STATE)), np.nan)
        self.states = np.full((size, 4), np.nan)
        self.unknowns = np.full((size, 5), np.nan)
        self.anchors = np.zeros(size)
        self.evaluations = np.zeros(size, dtype=np.int64)
        self.points = np.zeros(size, dtype=np.int64)
        self.accuracy = np.full(size, np.nan)
        self.starts = np.full(size, -1, dtype=np.int64)

    @cached_property
    def mirrored(self) -> bool:
        """Whether loss and labels treat the two classes alike."""
        loss, labeler = self.problem.loss_function, self.recipe.label_function
        ends = sum(loss.classes)
        logits = np.geomspace(1e-3, 30.0, 25)
        targets = np.linspace(*loss.classes, 5)[:, None]
        slopes = loss.slope(targets, logits), -loss.slope(ends - targets, -logits)
        sharpness = self.recipe.at_steps(self.problem.steps).sharpness
        labels = [
            (labeler.target(logits, value, loss), ends - labeler.target(-logits, value, loss))
            for value in np.unique(sharpness)
        ]
        return all(np.allclose(*pair, rtol=1e-12, atol=1e-14) for pair in (slopes, *labels))

    @property
    def exponent(self) -> float:
        """Rules are sized for an error exp(-exponent), a hundredth of the tolerance."""
        return math.log(100.0 / self.tolerance)

    @property
    def enough(self) -> float:
        """A Newton step this small leaves an error, of second order in it, below the tolerance."""
        return min(1e-4, math.sqrt(0.1 * self.tolerance))

    @property
    def confirmable(self) -> float:
        """What the confirmation may demand: the tolerance, but no less than rounding allows."""
        return max(self.tolerance, 2e-12)

    def store(
        self,
        t: int,
        solution: StageSolution,
        ridge: float,
        anchor: float = 0.0,
        rho: float | None = None,
    ) -> None:
        r"""Enter the solution of step t; `anchor` is $\gamma_0$ of its unknowns.

        `rho` is the share of positives of its points if it is not that of the problem.
        """
        old = self.states[t - 1] if t > 0 else np.array([0.0, 0.0, 1.0, 0.0])
        if rho is None:
            rho = self.problem.rho if t == 0 else float(self.problem.unlabeled.rho[t - 1])
        balanced = bool(rho == 0.5 and old[3] == 0 and self.mirrored)
        to_state(solution.z, old, anchor, ridge, t == 0, balanced, self.rows[t], self.states[t])
        self.unknowns[t] = solution.z
        self.anchors[t] = anchor
        self.evaluations[t] += solution.evaluations
        self.points[t] = solution.points
        self.accuracy[t] = solution.accuracy
        self.starts[t] = START_NAMES.index(solution.start)

    def near_solution(self) -> tuple[Array, Array, int]:
        """States and zero-based unknowns of the near run, zero where there are none, and its last step."""
        states, unknowns = np.zeros_like(self.states), np.zeros_like(self.unknowns)
        last = self.warm_start.good_steps - 1 if self.warm_start is not None else 0
        if self.warm_start is not None and last > 0:
            states[: last + 1], unknowns[: last + 1] = solution(self.warm_start, last)
        return states, unknowns, last

    def ends_at(self, t: int) -> bool:
        """Whether step t has no labelling model left: marks the collapse; raises if the state overflowed."""
        old = self.states[t - 1]
        if vanished(old, self.recipe.fix_bias):
            self.collapsed_at = t
            return True
        if not SMALLEST < old[0] < LARGEST:
            reason = "the norm of the weights left the range of numbers"
            raise StateOverflow(t, reason, self.described(t - 1), math.nan)
        return False

    def described(self, t: int) -> dict[str, float]:
        """The state of step t in words, for an error message."""
        return dict(zip(STATE, self.rows[t].tolist(), strict=True))

    def truncate(self, t: int) -> None:
        """Forget everything from step t on."""
        self.rows[t:] = np.nan
        self.states[t:] = np.nan
        self.evaluations[t:] = 0
        self.points[t:] = 0
        self.accuracy[t:] = np.nan
        self.starts[t:] = -1

    def trajectory(self) -> Trajectory:
        """The finished result."""
        stats = SolverStats(
            self.tolerance,
            self.evaluations,
            self.points,
            self.accuracy,
            tuple(START_NAMES[start] if start >= 0 else "" for start in self.starts),
        )
        columns = {name: self.rows[:, i].copy() for i, name in enumerate(STATE)}
        return Trajectory(
            self.problem,
            self.recipe,
            **columns,
            stats=stats,
            collapsed_at=self.collapsed_at,
            failure=self.failure,
        )


def solution(trajectory: Trajectory, last: int) -> tuple[Array, Array]:
    r"""States ($\omega, \mu, \nu^2$, B) and unknowns ($a, \eta, B, \ln r, \ln\chi$) of steps 0..`last`."""
    upto = slice(last + 1)
    m, v, bias, chi = (getattr(trajectory, name)[upto] for name in ("m", "v", "bias", "chi"))
    norm = np.hypot(m, np.sqrt(v))
    states = np.column_stack([norm, m / norm, v / norm**2, bias])
    along = np.append(0.0, trajectory.overlap[1 : last + 1] / norm[:-1])
    noise = 0.5 * np.log(trajectory.chi_hat[upto]) + np.log(chi)
    unknowns = np.column_stack([along, trajectory.m_hat[upto] * chi, bias, noise, np.log(chi)])
    return states, unknowns
