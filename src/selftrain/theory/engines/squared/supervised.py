"""The supervised fit with the squared loss, in closed form; step 0 is one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....arrays import Array
from ...gradients.step_derivatives import first_shifts
from ...step.ending import Ending
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, System, frame_first
from ...step.stage import StageSolution
from .closed_form import averages, confirmed, susceptibility, system


class ClosedSupervised:
    r"""Step 0, or a supervised fit to several groups of points (rows $\alpha, \rho, \Delta$)."""

    step = 0

    def __init__(self, groups: Array, ridge: float):
        self.groups, self.ridge = groups, ridge
        alpha, _, delta = groups
        self.frame = frame_first(ridge, math.sqrt(float(alpha @ delta / alpha.sum())))

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage, confirmed by the equations that all engines share."""
        return confirmed(0, self.unknowns(), self._system, self.frame)

    def _system(self, z: Array) -> System:
        """The equations of the fit at z."""
        alpha, rho, delta = (np.ascontiguousarray(row) for row in self.groups)
        found = [self._moments(z, *group) for group in zip(rho, delta, strict=True)]
        return system(z, found, alpha, delta, self.frame)

    def _moments(self, z: Array, rho: float, delta: float) -> Any:
        """The averages over one group of points."""
        share, zero, sign = np.array([rho, 1.0 - rho]), np.zeros(2), np.array([1.0, -1.0])
        noise = math.sqrt(delta) * math.hypot(z[ETA], math.exp(z[LOG_R]))
        d = sign * (z[ETA] - 1.0) + z[BIAS]
        return averages(sign, share, zero, share, d, zero, noise, math.exp(z[LOG_CHI]) * delta)

    def unknowns(self) -> Array:
        """The unknowns z of the stage equations."""
        alpha, rho, delta = self.groups
        chi = susceptibility(alpha, delta, self.ridge)
        gain = 1.0 / (1.0 + chi * delta)
        weight, lean = alpha * gain, 2.0 * rho - 1.0
        total, tilt = weight.sum(), weight @ lean
        stiffness = (alpha * delta) @ gain + self.ridge
        m, bias = np.linalg.solve([[stiffness + total, tilt], [tilt, total]], [total, tilt])
        square = (1 - m) ** 2 - 2 * lean * (1 - m) * bias + bias**2
        noise = (alpha * delta * gain**2) @ (square + delta * m**2)
        r2 = chi**2 * noise / (1.0 - chi**2 * float((alpha * delta**2) @ gain**2))
        if not 0.0 < r2 < math.inf:
            ending = Ending.FADED if r2 == 0.0 else Ending.OVERFLOW
            raise ending.error(0, {"chi": float(chi), "bias": float(bias)})
        return np.array([0.0, m, bias, 0.5 * math.log(r2), math.log(chi)])

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z and in what step 0 is given (one group of
        points).
        """
        e = self._moments(z, *self.groups[1:, 0])
        jacobian: Array = self._system(z).jacobian
        return jacobian, first_shifts(z, self.groups[:, 0], self.ridge, e)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a training point."""
        alpha, rho, delta = self.groups
        m, bias, r2 = z[1], z[2], math.exp(2 * z[3])
        gain = 1.0 / (1.0 + math.exp(z[4]) * delta)
        square = (1 - m) ** 2 - 2 * (2 * rho - 1) * (1 - m) * bias + bias**2
        return float(0.5 * alpha @ (gain**2 * (square + delta * (m**2 + r2))) / alpha.sum())
