r"""A step as the solvers see it: Protocols, an evaluation of the equations, a solution.

Every engine gives a `Stage` for each step. One that is solved by iteration is an `IterativeStage`:
it evaluates the equations at any point, and `solver.solve_stage` finds their root.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...arrays import Array
from .equations import Frame, System, blank_system, newton_step


@dataclass(frozen=True)
class Evaluation:
    """Residuals and Jacobian at a point, the nodes used, and E[l] + c E[f^2]/2 summed over
    groups.
    """

    residual: Array
    jacobian: Array
    points: int
    envelope: float = math.nan


def finite(at: Evaluation) -> Evaluation | None:
    """The evaluation, or None if it is not made of numbers."""
    return at if np.isfinite(at.residual).all() and np.isfinite(at.jacobian).all() else None


@dataclass(frozen=True)
class StageSolution:
    """Unknowns of a solved step and how they were found."""

    z: Array
    start: str
    evaluations: int
    points: int
    accuracy: float


class Stage(Protocol):
    """The equations of one step.

    Attributes:
        step: index t, for messages.
        frame: what the equations know besides the averages.
    """

    step: int
    frame: Frame

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved step, on rules of error exp(-exponent) to begin with."""
        ...

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a selected training point at the unknowns z."""
        ...

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """Derivatives of the equations in z (with a and B themselves) and in what the step is
        given.
        """
        ...


class IterativeStage(Stage, Protocol):
    """A step without closed form."""

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        """Residuals and Jacobian at z for some ridge on a rule of error exp(-exponent); None if it
        has too many nodes.
        """
        ...

    def starts(self) -> Iterator[tuple[str, Array]]:
        """Named starting points, the best first."""
        ...

    def explicit(self, ridge: float) -> Array:
        r"""The state for $\lambda \to \infty$."""
        ...


class Counter:
    """Evaluates a stage and counts how often."""

    def __init__(self, stage: IterativeStage):
        self.stage, self.evaluations, self.points = stage, 0, 0

    def __call__(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        self.evaluations += 1
        result = self.stage.evaluate(z, ridge, exponent, with_loss)
        if result is not None:
            self.points = result.points
        return result


def step_from(stage: IterativeStage, z: Array, at: Evaluation) -> tuple[float, Array]:
    """Size of the Newton step at z, infinite if there is none, and the step."""
    system = System(at.residual, at.jacobian, blank_system().step)
    return float(newton_step(z, system, stage.frame)), system.step
