r"""A step of self-training with the squared loss, in closed form, with selection and hard labels
too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....arrays import Array
from ...gradients.step_derivatives import (
    E_CLASS,
    E_F,
    E_FF,
    E_K,
    E_OMEGA,
    E_PLACE,
    E_THRESHOLD,
    E_WEIGHT,
    FIELDS,
    LabelMoves,
    scaled_label,
    shifts,
)
from ...step.ending import Ending
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, A, System, frame
from ...step.given import Given
from ...step.stage import StageSolution
from ...tolerances import EMPTY_SHARE
from .closed_form import Sides, averages, confirmed, sides, susceptibility, system


class ClosedStage:
    """One self-training step from the state (omega, mu, nu^2, B) of the step before."""

    def __init__(self, step: int, given: Given):
        self.step, self.given = step, given
        self.old = np.array([given.omega, given.mu, given.nu2, given.bias])
        self.batch = np.array([given.alpha, given.rho, given.delta])
        self.ridge, self.threshold, self.sharpness = given.ridge, given.threshold, given.sharpness
        self.fixed_bias = given.fixed_bias
        # targets are linear in the old logits: a change is exact for any finite sharpness
        self.base = 0.0 if math.isinf(given.sharpness) else given.sharpness
        self.frame = frame(given, self.base)
        self.offset = self.frame.offset

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage, confirmed by the equations that all engines share."""
        return confirmed(self.step, self.unknowns(), self._system, self.frame)

    def _system(self, z: Array) -> System:
        """The equations of the step at z."""
        share, e = self._moments(z, z[A], z[BIAS])
        return system(z, [e], self.batch[:1] * share, self.batch[2:], self.frame)

    def unknowns(self) -> Array:
        """The unknowns z of the stage equations."""
        _, mu, nu2, _ = self.old
        alpha, _, delta = self.batch
        sign, zeroth, first, second, constant, slope = self._sides()
        share = float(zeroth.sum())
        self._check_share(share)
        root = math.sqrt(delta)
        chi = susceptibility(np.array([alpha * share]), np.array([delta]), self.ridge)
        gain = 1.0 / (1.0 + chi * delta)
        weight = alpha * gain
        # d and kappa as affine functions of (a - offset, eta, B - gamma0 B')
        d = np.array([mu * sign, nu2 * sign, np.ones_like(sign), constant])
        kappa = np.array([np.full_like(sign, root), 0 * sign, 0 * sign, slope])
        mean = d * zeroth + kappa * first
        along = d * first + kappa * second
        unknown = self._linear(
            weight, (sign * mean).sum(axis=1), along.sum(axis=1), mean.sum(axis=1)
        )
        values = np.append(unknown, 1.0)
        d_value, kappa_value = values @ d, values @ kappa
        some = zeroth > 0
        centre = first[some] / zeroth[some]
        spread = np.maximum(second[some] / zeroth[some] - centre**2, 0.0)
        square = (d_value[some] + kappa_value[some] * centre) ** 2 + kappa_value[some] ** 2 * spread
        noise = float(zeroth[some] @ square) + delta * nu2 * unknown[1] ** 2 * share
        # 1 - alpha P c^2 gain^2, without its cancellation, is gain (1 + c lambda chi)
        r2 = alpha * delta * chi**2 * gain * noise / (1.0 + chi * delta * self.ridge * chi)
        if not 0.0 < r2 < math.inf:
            ending = Ending.FADED if r2 == 0.0 else Ending.OVERFLOW
            raise ending.error(self.step, _described(self.old))
        return np.array([*unknown, 0.5 * math.log(r2), math.log(chi)])

    def _linear(self, weight: float, sf: Array, gf: Array, f: Array) -> Array:
        r"""$(a - \gamma_0\omega, \eta, B - \gamma_0 B')$ from averages of f that are affine in them
        (the last entry is the constant); `weight` is $\alpha k$.
        """
        _, mu, _, _ = self.old
        delta = self.batch[2]
        rows = np.array([weight * (mu * sf + math.sqrt(delta) * gf), weight * sf, f])
        matrix, right = rows[:, :3], -rows[:, 3]
        matrix[0, 0] += self.ridge
        right[0] -= self.ridge * self.offset
        matrix[1, 1] += weight * delta * float(self._sides()[1].sum()) + self.ridge
        if self.fixed_bias:
            matrix[2] = 0.0, 0.0, 1.0
            right[2] = self.frame.fixed_bias
        return np.linalg.solve(matrix, right)

    def mean_loss(self, z: Array, exponent: float) -> float:
        r"""Average loss of a selected training point, $E[f^2]/2 = \hat\chi/(2\alpha\Delta P)$."""
        alpha, _, delta = self.batch
        share = float(self._sides()[1].sum())
        return float(0.5 * math.exp(2 * (z[3] - z[4])) / (alpha * delta * share))

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z (with a and B themselves) and in what the step is
        given.
        """
        omega, mu, nu2, old_bias = (float(value) for value in self.old)
        alpha, rho, delta = (float(value) for value in self.batch)
        sign, *_, constant, slope = self._sides()
        root = math.sqrt(delta)
        slide, lift = z[A] - self.offset, z[BIAS] - self.frame.old_bias
        share, e = self._moments(z, slide, lift)
        noise = root * math.hypot(math.sqrt(nu2) * z[ETA], math.exp(z[LOG_R]))
        c = math.exp(z[LOG_CHI]) * delta
        d = sign * (mu * slide + nu2 * z[ETA]) + lift + constant
        kappa = root * slide + slope
        step = self.given
        about = frame(step, 0.0)
        jacobian = system(z, [e], self.batch[:1] * share, self.batch[2:], about).jacobian
        sharp, move = np.empty(5), np.empty((5, FIELDS))
        gain = scaled_label(step, e, sharp)
        side = np.array([1.0, -1.0, 1.0, -1.0])
        place = (side * self.threshold - sign * mu - old_bias / omega) / root
        mean = (d + kappa * place) / (1.0 + c)
        weight = np.where(sign > 0, rho, 1.0 - rho) / share / math.sqrt(2 * math.pi)
        edges = np.zeros((4, 9))
        edges[:, E_CLASS], edges[:, E_PLACE] = sign, place
        edges[:, E_WEIGHT] = weight * np.exp(-0.5 * place**2)
        edges[:, E_F], edges[:, E_K] = -side * mean, -side / (1.0 + c)
        edges[:, E_FF] = -side * (mean**2 + (noise / (1.0 + c)) ** 2)
        edges[:, E_OMEGA], edges[:, E_THRESHOLD] = side * self.threshold, side * omega
        shifts(z, step, alpha * share, e, LabelMoves(gain, sharp, edges), move)
        return jacobian, move

    def label_mass(self) -> float:
        """Smaller share of the selected points on one side of the plane."""
        zeroth = self._sides()[1]
        self._check_share(float(zeroth.sum()))
        right = float(zeroth[::2].sum())
        return min(right, float(zeroth.sum()) - right) / float(zeroth.sum())

    def _check_share(self, share: float) -> None:
        if share < EMPTY_SHARE:
            raise Ending.EMPTY.error(self.step, _described(self.old), threshold=self.threshold)

    def _moments(self, z: Array, slide: float, lift: float) -> tuple[float, Any]:
        r"""The selected share and the averages at $a - \gamma_0\omega$ = `slide`, $B - \gamma_0 B'$
        = `lift`.
        """
        mu, nu2, delta = self.given.mu, self.given.nu2, self.given.delta
        sign, zeroth, first, second, constant, slope = self._sides()
        root, share = math.sqrt(delta), float(zeroth.sum())
        noise = root * math.hypot(math.sqrt(nu2) * z[ETA], math.exp(z[LOG_R]))
        d = sign * (mu * slide + nu2 * z[ETA]) + lift + constant
        kappa = root * slide + slope
        c = math.exp(z[LOG_CHI]) * delta
        return share, averages(
            sign, zeroth / share, first / share, second / share, d, kappa, noise, c
        )

    def _sides(self) -> Sides:
        """The four pieces (class, side of the threshold) of the batch."""
        omega, mu, _, old_bias = (float(value) for value in self.old)
        _, rho, delta = (float(value) for value in self.batch)
        spread, limit = math.sqrt(delta) * omega, self.threshold * omega
        return sides(mu * omega, spread, old_bias, rho, limit, self.sharpness, self.base)


def _described(old: Array) -> dict[str, float]:
    return {"q": float(old[0] ** 2), "m": float(old[0] * old[1]), "bias": float(old[3])}
