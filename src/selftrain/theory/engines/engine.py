"""What an engine is, and which one solves a problem.

The engines share the equations of `step` and differ in how the averages are taken: `logistic`
compiled and by adaptive quadrature, `squared` in closed form, `generic` for any other loss or
labeler in numpy.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...arrays import Array
from ...labelers import HardLabels, Labeler, SoftLabels
from ...losses import Logistic, Loss, Squared
from ...problem import Problem
from ...recipe import Recipe
from ..step.stage import Stage
from ..step.table import Record

__all__ = ["Engine", "Stage", "StepByStep", "labeled_group", "select", "solve_first"]


class Engine(Protocol):
    """Solves the steps of a run for one kind of loss and labels."""

    def supervised(self, loss: Loss, groups: Array, ridge: float) -> Stage:
        r"""The supervised fit to groups of points; rows $\alpha, \rho, \Delta$. Step 0 is one."""
        ...

    def self_training(self, problem: Problem, recipe: Recipe, t: int, old: Array) -> Stage:
        r"""Step t >= 1 from the state ($\omega, \mu, \nu^2$, B) of the step before."""
        ...

    def run(self, record: Record, begin: int = 0) -> None:
        """Fill the record, from step `begin` on: 0, or 1 where it has step 0."""
        ...

    def derivatives(
        self, problem: Problem, recipe: Recipe, states: Array, unknowns: Array, steps: range,
        exponent: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Derivatives of the equations of `steps` (from 1 on) in their unknowns and in what they
        are given.

        The unknowns are zero-based: they hold a and B themselves.
        """
        ...


class StepByStep:
    """An engine without a compiled path through the steps: it differentiates them one after the
    other.
    """

    def supervised(self, loss: Loss, groups: Array, ridge: float) -> Stage:
        """The supervised fit to groups of points."""
        raise NotImplementedError

    def self_training(self, problem: Problem, recipe: Recipe, t: int, old: Array) -> Stage:
        """Step t >= 1 from the state of the step before."""
        raise NotImplementedError

    def derivatives(
        self, problem: Problem, recipe: Recipe, states: Array, unknowns: Array, steps: range,
        exponent: float,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Derivatives of the equations of `steps`, from the stage of each."""
        found = [
            self.self_training(problem, recipe, t, states[t - 1]).derivatives(unknowns[t], exponent)
            for t in steps
        ]
        return np.array([each[0] for each in found]), np.array([each[1] for each in found])


class TwoLosses:
    """Step 0 by the engine of one loss, the steps of self-training by that of another."""

    def __init__(self, labeled: Engine, later: Engine):
        self._labeled, self._later = labeled, later
        self.supervised = labeled.supervised
        self.self_training = later.self_training
        self.derivatives = later.derivatives

    def run(self, record: Record, begin: int = 0) -> None:
        """Fill the record, from step `begin` on."""
        if begin == 0:
            solve_first(self._labeled, record)
        self._later.run(record, 1)


def solve_first(engine: Engine, record: Record) -> None:
    """Solve step 0, apart from the others."""
    problem, ridge = record.problem, record.recipe.lambda_l
    stage = engine.supervised(problem.loss_function, labeled_group(problem), ridge)
    record.store(0, stage.solution(record.exponent, record.confirmable), stage.frame)


def labeled_group(problem: Problem) -> Array:
    r"""The labelled set as one group of points: a column ($\alpha, \rho, \Delta$)."""
    return np.array([[problem.alpha_l], [problem.rho], [problem.delta]])


def select(problem: Problem, recipe: Recipe) -> Engine:
    """The engine that takes the averages of this loss and labeler.

    >>> type(select(Problem(0.5, 2.0, 0.4, 0.5, steps=1, loss="squared"), Recipe())).__name__
    'SquaredEngine'
    """
    later = _engine_of(problem.loss_at(1), recipe.label_function)
    if problem.pseudo_loss is None:
        return later
    return TwoLosses(_engine_of(problem.loss_at(0), SoftLabels()), later)


def _engine_of(loss: Loss, labeler: Labeler) -> Engine:
    plain = type(labeler) in (SoftLabels, HardLabels)
    if plain and type(loss) is Logistic:
        from .logistic.engine import LogisticEngine

        return LogisticEngine()
    if plain and type(loss) is Squared:
        from .squared.engine import SquaredEngine

        return SquaredEngine()
    from .generic.engine import GenericEngine

    return GenericEngine()
