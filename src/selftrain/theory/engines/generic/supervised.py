r"""Step 0 for any loss, in plain numpy: a supervised fit, with averages over one noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....arrays import Array
from ....errors import ConvergenceError
from ....losses import Loss
from ...gradients.step_derivatives import first_shifts
from ...step.averages import AVERAGES
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, Groups, assemble, blank_system, frame_first
from ...step.solver import solve_stage
from ...step.stage import Evaluation, StageSolution, finite
from .averages import gather
from .large_ridge import at_large_ridge
from .noise import Effort, Fields, noise_averages


class GenericSupervised:
    r"""Step 0 for any loss; the rows of `groups` are $\alpha, \rho, \Delta$."""

    step = 0

    def __init__(self, loss: Loss, groups: Array, ridge: float):
        self.loss, self.groups = loss, np.ascontiguousarray(groups, dtype=float)
        self.effort = Effort(0)
        alpha, _, delta = self.groups
        self.frame = frame_first(ridge, math.sqrt(float(alpha @ delta / alpha.sum())))

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        alpha, _, delta = self.groups
        averages, system = self._averages(z, exponent), blank_system()
        about = self.frame._replace(ridge=ridge)
        assemble(z, Groups(alpha, delta, averages), about, system)
        strength = math.exp(z[LOG_CHI]) * delta
        envelope = alpha @ (averages.loss + 0.5 * strength * averages.ff)
        return finite(Evaluation(system.residual, system.jacobian, 2 * len(alpha), float(envelope)))

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage."""
        return solve_stage(self, exponent, tolerance)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a training point at the unknowns z."""
        alpha = self.groups[0]
        return float(alpha @ self._averages(z, exponent).loss / alpha.sum())

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z and in what step 0 is given (one group of
        points).
        """
        at = self.evaluate(z, self.frame.ridge, exponent)
        if at is None:
            raise ConvergenceError(0, "its averages are not finite", {}, math.nan)
        averages = self._averages(z, exponent)[0]
        return at.jacobian, first_shifts(z, self.groups[:, 0], self.frame.ridge, averages)

    def starts(self) -> Iterator[tuple[str, Array]]:
        yield "explicit", self.explicit(self.frame.ridge)

    def explicit(self, ridge: float) -> Array:
        alpha, rho, delta = self.groups
        weight = np.concatenate([alpha * rho, alpha * (1 - rho)])
        sign = np.repeat([1.0, -1.0], alpha.size)
        target = np.repeat([self.loss.classes[1], self.loss.classes[0]], alpha.size)
        return at_large_ridge(
            self.loss, sign, 0 * sign, weight, target, np.tile(delta, 2), ridge, None
        )

    def _averages(self, z: Array, exponent: float) -> Any:
        low, high = self.loss.classes
        sign, target = np.array([1.0, -1.0]), np.array([high, low])
        norm = math.hypot(z[ETA], math.exp(z[LOG_R]))
        rows = []
        for _, rho, delta in self.groups.T:
            share = np.array([rho, 1 - rho])
            noise, strength = math.sqrt(delta) * norm, math.exp(z[LOG_CHI]) * delta
            fields = Fields(target, sign * z[ETA] + z[BIAS], share, noise, strength)
            inner, _ = noise_averages(self.loss, fields, exponent, effort=self.effort)
            rows.append(gather(sign, 0 * sign, share, inner))
        return np.array(rows).view(AVERAGES)[:, 0].view(np.recarray)
