"""The tables an engine fills while it solves a trajectory, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...errors import StageError
from ...problem import Problem
from ...recipe import Recipe
from ...runtime.progress import Progress, ProgressOption
from ..fading import DEGREES, Fading, is_homogeneous, shift, unscaled
from ..state import solution, to_state
from ..tolerances import confirmable, exponent_of, last_step_of
from ..trajectory import STATE, SolverStats, Trajectory
from .ending import Ending, before_step
from .equations import BIAS, ETA, LOG_R, A, Frame
from .prediction import LONGEST_HISTORY
from .stage import StageSolution
from .symmetry import treats_classes_alike

PREDICTED, EXPLICIT, NO_UPDATE, CONTINUATION, CONVEX, CLOSED_FORM = range(6)
START_NAMES = ("predicted", "explicit", "no update", "continuation", "convex", "closed form")


@dataclass
class Record:
    r"""Rows over t = 0..T: observables, state, unknowns, and how each step was found.

    Attributes:
        rows: m, v, B, $\chi$, R, $\hat Q$, $\hat\chi$, $\hat m$, $\hat R$ (the order of
            `trajectory.STATE`).
        states: $\omega = \sqrt q$, $\mu = m/\omega$, $\nu^2 = v/q$, B: what the next step starts
            from.
        unknowns: the solution z of each stage, for prediction.
        anchors: $\gamma_0$ of those unknowns.
        exponents: rows of step t, and the state it starts from, are in units of $2^{-e_t}$
            (`theory.fading`).
        warm_start: a similar run, from which to predict.
        bar: shows how many steps are solved.
    """

    problem: Problem
    recipe: Recipe
    tolerance: float
    warm_start: Trajectory | None = None
    rows: Array = field(init=False)
    states: Array = field(init=False)
    unknowns: Array = field(init=False)
    anchors: Array = field(init=False)
    exponents: NDArray[np.int64] = field(init=False)
    evaluations: Array = field(init=False)
    points: Array = field(init=False)
    accuracy: Array = field(init=False)
    starts: Array = field(init=False)
    collapsed_at: int | None = None
    failure: StageError | None = None
    bar: Progress | None = None

    def __post_init__(self) -> None:
        size = self.problem.steps + 1
        self.rows = np.full((size, len(STATE)), np.nan)
        self.states = np.full((size, 4), np.nan)
        self.unknowns = np.full((size, 5), np.nan)
        self.anchors = np.zeros(size)
        self.exponents = np.zeros(size, dtype=np.int64)
        self.evaluations = np.zeros(size, dtype=np.int64)
        self.points = np.zeros(size, dtype=np.int64)
        self.accuracy = np.full(size, np.nan)
        self.starts = np.full(size, -1, dtype=np.int64)

    @contextmanager
    def reporting(self, progress: ProgressOption) -> Iterator[None]:
        """A context in which the steps that are solved are reported."""
        with Progress(self.problem.steps + 1, "steps", progress, often=True) as self.bar:
            yield

    def reached(self, t: int) -> None:
        """Step t is solved, and so are those before it."""
        if self.bar is not None:
            self.bar.reach(t + 1)

    @cached_property
    def mirrored(self) -> bool:
        """Whether losses and labels treat the two classes alike."""
        return treats_classes_alike(self.problem, self.recipe)

    @property
    def exponent(self) -> float:
        """Rules are sized for an error exp(-exponent)."""
        return exponent_of(self.tolerance)

    @property
    def enough(self) -> float:
        """Size of the last Newton step."""
        return last_step_of(self.tolerance)

    @property
    def confirmable(self) -> float:
        """What the confirmation demands."""
        return confirmable(self.tolerance)

    def store(
        self,
        t: int,
        solution: StageSolution,
        about: Frame,
        anchor: float = 0.0,
        rho: float | None = None,
    ) -> None:
        r"""Enter the solution of step t; `anchor` is $\gamma_0$ of its unknowns.

        `rho` is the share of positives of its points if it is not that of the problem.
        """
        old_bias = self.states[t - 1, 3] if t > 0 else 0.0
        if rho is None:
            rho = self.problem.rho if t == 0 else float(self.problem.unlabeled.rho[t - 1])
        balanced = bool(rho == 0.5 and old_bias == 0 and self.mirrored)
        to_state(solution.z, about, balanced, self.rows[t], self.states[t])
        self.unknowns[t] = solution.z
        self.anchors[t] = anchor
        self.evaluations[t] += solution.evaluations
        self.points[t] = solution.points
        self.accuracy[t] = solution.accuracy
        self.starts[t] = START_NAMES.index(solution.start)
        self.reached(t)

    def near_solution(self) -> tuple[Array, Array, int]:
        """States and zero-based unknowns of the near run, zero where there are none, and its last
        step.
        """
        states, unknowns = np.zeros_like(self.states), np.zeros_like(self.unknowns)
        last = self.warm_start.good_steps - 1 if self.warm_start is not None else 0
        if self.warm_start is not None and self.warm_start.fading is not None:
            # from the first faded step on its unknowns are in other units
            last = int(np.argmax(self.warm_start.fading.exponents > 0)) - 1
        if self.warm_start is not None and last > 0:
            states[: last + 1], unknowns[: last + 1] = solution(self.warm_start, last)
        return states, unknowns, last

    def ends_at(self, t: int) -> bool:
        """Whether step t has no labelling model left: marks the collapse; raises where there are no
        numbers.
        """
        faded = bool(self.exponents[t] > 0)
        ending = before_step(self.states[t - 1], self.recipe.fix_bias, faded)
        if ending == Ending.SOLVED or self.rescaled(t, Ending(ending)):
            return False
        self.end(t, Ending(ending))
        return True

    def shift(self, t: int, ending: Ending, norm: float) -> int:
        """The power of two by which the state before step t has to be multiplied if that `ending`
        is no end; 0 if it is.
        """
        if ending not in (Ending.FADED, Ending.OVERFLOW) or not self.homogeneous:
            return 0
        power = shift(norm, int(self.exponents[t]))
        self.exponents[t:] += power
        return power

    def rescaled(self, t: int, ending: Ending) -> bool:
        """Whether the state before step t was brought back into range: then the run goes on."""
        power = self.shift(t, ending, float(self.states[t - 1, 0]))
        self.states[t - 1, [0, 3]] *= 2.0**power
        recent = self.unknowns[max(0, t - LONGEST_HISTORY) : t]  # predictions are made from these
        recent[:, [A, ETA, BIAS]] *= 2.0**power
        recent[:, LOG_R] += power * math.log(2.0)
        return power != 0

    @cached_property
    def homogeneous(self) -> bool:
        """Whether steps from small weights are homogeneous."""
        return is_homogeneous(self.problem, self.recipe)

    def end(self, t: int, ending: Ending) -> None:
        """Forget everything from step t on; mark a collapse, raise what else ended the run
        there.
        """
        self.truncate(t)
        if ending == Ending.COLLAPSED:
            self.collapsed_at = t
            return
        threshold = None
        if ending == Ending.EMPTY:
            threshold = float(self.recipe.at_steps(self.problem.steps).threshold[t - 1])
        raise ending.error(t, self.described(t - 1), threshold=threshold)

    def described(self, t: int) -> dict[str, float]:
        """The state of step t by name, for an error message."""
        columns = zip(STATE, self.rows[t : t + 1].T, strict=True)
        exponent = self.exponents[t : t + 1]
        return {name: float(unscaled(name, value, exponent)[0]) for name, value in columns}

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
        return Trajectory(self.problem, self.recipe, **self.finished())

    def finished(self) -> dict[str, Any]:
        """The fields of a finished result, besides problem and recipe."""
        stats = SolverStats(
            self.tolerance,
            self.evaluations,
            self.points,
            self.accuracy,
            tuple(START_NAMES[start] if start >= 0 else "" for start in self.starts),
        )
        columns = {name: self.rows[:, i].copy() for i, name in enumerate(STATE)}
        ended = {"collapsed_at": self.collapsed_at, "failure": self.failure}
        return {**self.in_units(columns), **ended, "stats": stats, "memory": None}

    def in_units(self, columns: dict[str, Array], known: Fading | None = None) -> dict[str, Any]:
        """Quantities over the steps in their own units; where weights have faded, `fading` has them
        as they are, with those of `known`.
        """
        if not self.exponents.any():
            return columns
        scaled = {name: x for name, x in columns.items() if name in DEGREES}
        own = {name: unscaled(name, x, self.exponents) for name, x in columns.items()}
        before = {} if known is None else known.scaled
        return {**own, "fading": Fading(self.exponents, {**before, **scaled})}
