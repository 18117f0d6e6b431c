r"""Step 0 for any loss, in plain numpy: a supervised fit, with averages over one noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ....arrays import Array
from ....errors import ConvergenceError
from ....losses import Loss
from ...gradients.step_derivatives import first_shifts
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, assemble
from ...step.stage import Evaluation, StageSolution, finite, solve_stage
from ..logistic.averages import FF, LOSS
from .averages import gather, noise_averages
from .large_ridge import at_large_ridge


class GenericSupervised:
    r"""Step 0 for any loss; the rows of `groups` are $\alpha, \rho, \Delta$."""

    step, first, fixed_bias = 0, True, False
    nu2, offset, old_bias, omega = 1.0, 0.0, 0.0, 0.0

    def __init__(self, loss: Loss, groups: Array, ridge: float):
        self.loss, self.groups, self.ridge = loss, np.asarray(groups, dtype=float), ridge
        alpha, _, delta = self.groups
        self.field_scale = math.sqrt(float(alpha @ delta / alpha.sum()))

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        alpha, _, delta = self.groups
        moments = self._moments(z, exponent)
        chi = math.exp(z[LOG_CHI])
        residual, jacobian = np.empty(5), np.empty((5, 5))
        assemble(z, moments, alpha, delta, ridge, 0.0, 1.0, 0.0, True, math.nan, residual, jacobian)
        envelope = alpha @ (moments[:, LOSS] + 0.5 * chi * delta * moments[:, FF])
        return finite(Evaluation(residual, jacobian, 2 * len(alpha), float(envelope)))

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage."""
        return solve_stage(self, exponent, tolerance)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a training point at the unknowns z."""
        alpha = self.groups[0]
        return float(alpha @ self._moments(z, exponent)[:, LOSS] / alpha.sum())

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z and in what step 0 is given (one group of points)."""
        at = self.evaluate(z, self.ridge, exponent)
        if at is None:
            raise ConvergenceError(0, "its averages are not finite", {}, math.nan)
        moments = self._moments(z, exponent)[0]
        return at.jacobian, first_shifts(z, self.groups[:, 0], self.ridge, moments)

    def starts(self) -> Iterator[tuple[str, Array]]:
        yield "explicit", self.explicit(self.ridge)

    def explicit(self, ridge: float) -> Array:
        alpha, rho, delta = self.groups
        weight = np.concatenate([alpha * rho, alpha * (1 - rho)])
        sign = np.repeat([1.0, -1.0], alpha.size)
        target = np.repeat([self.loss.classes[1], self.loss.classes[0]], alpha.size)
        return at_large_ridge(
            self.loss, sign, 0 * sign, weight, target, np.tile(delta, 2), ridge, None
        )

    def _moments(self, z: Array, exponent: float) -> Array:
        low, high = self.loss.classes
        sign, target = np.array([1.0, -1.0]), np.array([high, low])
        norm = math.hypot(z[ETA], math.exp(z[LOG_R]))
        rows = []
        for _, rho, delta in self.groups.T:
            inner = noise_averages(
                self.loss, target, sign * z[ETA] + z[BIAS], math.sqrt(delta) * norm,
                math.exp(z[LOG_CHI]) * delta, exponent,
            )  # fmt: skip
            rows.append(gather(sign, 0 * sign, np.array([rho, 1 - rho]), inner))
        return np.array(rows)
