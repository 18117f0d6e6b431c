"""The engine for the squared loss: it solves every step in closed form."""

from __future__ import annotations

import math

from ....arrays import Array
from ....losses import Loss
from ....problem import Problem
from ....recipe import Recipe
from ...step.ending import Ending
from ...step.given import given, given_at, schedule
from ...step.table import Record
from ...tolerances import COLLAPSED_MASS
from ..engine import StepByStep, solve_first
from .stage import ClosedStage
from .supervised import ClosedSupervised


class SquaredEngine(StepByStep):
    """Solves every step in closed form."""

    def supervised(self, loss: Loss, groups: Array, ridge: float) -> ClosedSupervised:
        r"""The supervised fit to groups of points; rows $\alpha, \rho, \Delta$."""
        return ClosedSupervised(groups, ridge)

    def self_training(self, problem: Problem, recipe: Recipe, t: int, old: Array) -> ClosedStage:
        """Step t >= 1 from the state `old` of the step before."""
        return ClosedStage(t, given_at(problem, recipe, t, old))

    def run(self, record: Record, begin: int = 0) -> None:
        """Fill the record, from step `begin` on."""
        if begin == 0:
            solve_first(self, record)
        problem, recipe = record.problem, record.recipe
        plan = schedule(problem, recipe)
        for t in range(1, problem.steps + 1):
            if record.ends_at(t):
                return
            stage = ClosedStage(t, given(plan, t, record.states[t - 1]))
            hard = math.isinf(stage.sharpness)
            if not recipe.fix_bias and hard and stage.label_mass() < COLLAPSED_MASS:
                record.end(t, Ending.COLLAPSED)
                return
            solution = stage.solution(record.exponent, record.confirmable)
            record.store(t, solution, stage.frame, stage.base)
