r"""The engine for the squared loss: every step in closed form, with selection and hard labels too.

With $f = (h - \hat y)/(1+c)$ all averages are truncated Gaussian moments. On one side of the threshold, for one
class, $h - \hat y = d + \kappa g_1 + b g_2$ with constants d and $\kappa$, so with $P, T_1, T_2$ the moments of order 0, 1,
2 of $g_1$ there, $E f = k\langle dP + \kappa T_1\rangle$, $E[g_1 f] = k\langle dT_1 + \kappa T_2\rangle$, $E f^2 = k^2\langle d^2P + 2d\kappa T_1 + \kappa^2T_2 + b^2P\rangle$
and $k = 1/(1+c)$: a quadratic equation gives c, a linear system $(a, \eta, B)$, and then $r^2$ follows.
Classes are coded as -1 and +1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ...arrays import Array
from ...errors import ConvergenceError, EmptySelection, StateOverflow
from ...labelers import HardLabels
from ...losses import Loss
from ...problem import Problem
from ...recipe import Recipe
from ..gradients.step_derivatives import (  # fmt: skip
    E_CLASS,
    E_F,
    E_FF,
    E_K,
    E_OMEGA,
    E_PLACE,
    E_THRESHOLD,
    E_WEIGHT,
    FIELDS,
    first_shifts,
    scaled_label,
    shifts,
)
from ..step.equations import BIAS, ETA, LOG_CHI, LOG_R, A, assemble
from ..step.stage import StageSolution
from ..step.table import Record
from .logistic.averages import (  # fmt: skip
    COUNT,
    FF,
    FFK,
    FK,
    FY,
    GF,
    GFK,
    GFY,
    GGK,
    GGY,
    GK,
    GY,
    KK,
    NFK,
    SF,
    SFF,
    SFK,
    SFY,
    SGF,
    SGK,
    SGY,
    SK,
    SY,
    F,
    K,
    Y,
)
from .logistic.step import Step, reference_sharpness


class ClosedSupervised:
    r"""Step 0, or a supervised fit to several groups of points (rows $\alpha, \rho, \Delta$)."""

    offset = old_bias = 0.0

    def __init__(self, groups: Array, ridge: float):
        self.groups, self.ridge = groups, ridge

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage; exact, so the tolerance is met."""
        return StageSolution(self.unknowns(), "closed form", 1, 0, 0.0)

    def unknowns(self) -> Array:
        """The unknowns z of the stage equations."""
        alpha, rho, delta = self.groups
        chi = _susceptibility(alpha, delta, self.ridge)
        gain = 1.0 / (1.0 + chi * delta)
        weight, lean = alpha * gain, 2.0 * rho - 1.0
        total, tilt = weight.sum(), weight @ lean
        stiffness = (alpha * delta) @ gain + self.ridge
        m, bias = np.linalg.solve([[stiffness + total, tilt], [tilt, total]], [total, tilt])
        square = (1 - m) ** 2 - 2 * lean * (1 - m) * bias + bias**2
        noise = (alpha * delta * gain**2) @ (square + delta * m**2)
        r2 = chi**2 * noise / (1.0 - chi**2 * float((alpha * delta**2) @ gain**2))
        if not 0.0 < r2 < math.inf:
            reason = "the norm of the weights left the range of numbers"
            raise StateOverflow(0, reason, {"chi": float(chi), "bias": float(bias)}, math.nan)
        return np.array([0.0, m, bias, 0.5 * math.log(r2), math.log(chi)])

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z and in what step 0 is given (one group of points)."""
        alpha, rho, delta = (float(value) for value in self.groups[:, 0])
        share, zero = np.array([rho, 1.0 - rho]), np.zeros(2)
        sign = np.array([1.0, -1.0])
        noise = math.sqrt(delta) * math.hypot(z[ETA], math.exp(z[LOG_R]))
        d = sign * (z[ETA] - 1.0) + z[BIAS]
        e = _averages(sign, share, zero, share, d, zero, noise, math.exp(z[LOG_CHI]) * delta)
        jacobian = _jacobian(z, e, alpha, delta, self.ridge, 0.0, 1.0, True, math.nan)
        return jacobian, first_shifts(z, self.groups[:, 0], self.ridge, e)

    def mean_loss(self, z: Array, exponent: float) -> float:
        """Average loss of a training point."""
        alpha, rho, delta = self.groups
        m, bias, r2 = z[1], z[2], math.exp(2 * z[3])
        gain = 1.0 / (1.0 + math.exp(z[4]) * delta)
        square = (1 - m) ** 2 - 2 * (2 * rho - 1) * (1 - m) * bias + bias**2
        return float(0.5 * alpha @ (gain**2 * (square + delta * (m**2 + r2))) / alpha.sum())


class ClosedStage:
    """One self-training step from the state (omega, mu, nu^2, B) of the step before."""

    def __init__(
        self,
        step: int,
        old: Array,
        batch: Array,
        ridge: float,
        threshold: float,
        sharpness: float,
        fixed_bias: bool,
    ):
        self.step, self.old, self.batch = step, old, batch
        self.ridge, self.threshold, self.sharpness = ridge, threshold, sharpness
        self.fixed_bias = fixed_bias
        self.base = float(reference_sharpness(sharpness))
        self.offset, self.old_bias = self.base * float(old[0]), self.base * float(old[3])

    def unknowns(self) -> Array:
        """The unknowns z of the stage equations."""
        _, mu, nu2, old_bias = self.old
        alpha, _, delta = self.batch
        sign, zeroth, first, second, constant, slope = self._sides()
        share = float(zeroth.sum())
        if share < 1e-260:
            reason = f"the threshold {self.threshold:g} rejects every point of the batch"
            raise EmptySelection(self.step, reason, _described(self.old), math.nan)
        root = math.sqrt(delta)
        chi = _susceptibility(np.array([alpha * share]), np.array([delta]), self.ridge)
        gain = 1.0 / (1.0 + chi * delta)
        weight = alpha * gain
        # d and kappa as affine functions of (a - offset, eta, B - gamma0 B')
        d = np.array([mu * sign, nu2 * sign, np.ones_like(sign), constant])
        kappa = np.array([np.full_like(sign, root), 0 * sign, 0 * sign, slope])
        mean = d * zeroth + kappa * first
        along = d * first + kappa * second
        moments = {
            "f": mean.sum(axis=1),
            "sf": (sign * mean).sum(axis=1),
            "gf": along.sum(axis=1),
        }
        matrix = np.empty((3, 3))
        right = np.empty(3)
        rows = (
            weight * (mu * moments["sf"] + root * moments["gf"]),
            weight * moments["sf"],
            moments["f"],
        )
        for i, row in enumerate(rows):
            matrix[i], right[i] = row[:3], -row[3]
        matrix[0, 0] += self.ridge
        right[0] -= self.ridge * self.offset
        matrix[1, 1] += alpha * delta * gain * share + self.ridge
        if self.fixed_bias:
            matrix[2] = 0.0, 0.0, 1.0
            right[2] = old_bias - self.old_bias
        unknown = np.linalg.solve(matrix, right)
        values = np.append(unknown, 1.0)
        d_value, kappa_value = values @ d, values @ kappa
        some = zeroth > 0
        centre = first[some] / zeroth[some]
        spread = np.maximum(second[some] / zeroth[some] - centre**2, 0.0)
        square = (d_value[some] + kappa_value[some] * centre) ** 2 + kappa_value[some] ** 2 * spread
        noise = float(zeroth[some] @ square) + delta * nu2 * unknown[1] ** 2 * share
        strength = alpha * delta * (chi * gain) ** 2
        r2 = strength * noise / (1.0 - strength * delta * share)
        if not 0.0 < r2 < math.inf:
            reason = "the norm of the weights left the range of numbers"
            raise StateOverflow(self.step, reason, _described(self.old), math.nan)
        return np.array([*unknown, 0.5 * math.log(r2), math.log(chi)])

    def mean_loss(self, z: Array, exponent: float) -> float:
        r"""Average loss of a selected training point, $E[f^2]/2 = \hat\chi/(2\alpha\Delta P)$."""
        alpha, _, delta = self.batch
        share = float(self._sides()[1].sum())
        return float(0.5 * math.exp(2 * (z[3] - z[4])) / (alpha * delta * share))

    def derivatives(self, z: Array, exponent: float) -> tuple[Array, Array]:
        """The derivatives of the equations in z (with a and B themselves) and in what the step is given."""
        omega, mu, nu2, old_bias = (float(value) for value in self.old)
        alpha, rho, delta = (float(value) for value in self.batch)
        sign, zeroth, first, second, constant, slope = self._sides()
        root, share = math.sqrt(delta), float(zeroth.sum())
        slide, lift = z[A] - self.offset, z[BIAS] - self.old_bias
        noise = root * math.hypot(math.sqrt(nu2) * z[ETA], math.exp(z[LOG_R]))
        c = math.exp(z[LOG_CHI]) * delta
        d = sign * (mu * slide + nu2 * z[ETA]) + lift + constant
        kappa = root * slide + slope
        e = _averages(
            sign, zeroth / share, first / share, second / share, d, kappa, noise, c
        )  # fmt: skip
        step = Step(
            omega, mu, nu2, old_bias, alpha, rho, delta,
            self.ridge, self.threshold, self.sharpness, self.fixed_bias,
        )  # fmt: skip
        held = old_bias if self.fixed_bias else math.nan
        jacobian = _jacobian(z, e, alpha * share, delta, self.ridge, mu, nu2, False, held)
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
        shifts(z, step, alpha * share, e, gain, sharp, edges, False, move)
        return jacobian, move

    def label_mass(self) -> float:
        """Smaller share of the selected points on one side of the plane."""
        zeroth = self._sides()[1]
        right = float(zeroth[::2].sum())
        return min(right, float(zeroth.sum()) - right) / float(zeroth.sum())

    def _sides(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Class sign, weighted moments of g1, and the constants of d and kappa, for the four (class, side)."""
        omega, mu, _, old_bias = self.old
        _, rho, delta = self.batch
        spread = math.sqrt(delta) * omega
        table = []
        for s, share in ((1.0, rho), (-1.0, 1.0 - rho)):
            centre = s * mu * omega + old_bias
            for side in (1.0, -1.0):
                # the region side * g > edge
                edge = (self.threshold * omega - side * centre) / spread
                density = math.exp(-0.5 * edge * edge) / math.sqrt(2 * math.pi)
                zeroth = float(ndtr(-edge))
                if math.isinf(self.sharpness):
                    constant, slope = -side, 0.0
                else:
                    extra = self.sharpness - self.base
                    constant = -extra * centre
                    slope = -extra * spread
                second = zeroth + edge * density
                table.append(
                    (s, share * zeroth, share * side * density, share * second, constant, slope)
                )
        sign, zeroth, first, second, constant, slope = np.array(table).T
        return sign, zeroth, first, second, constant, slope


def supervised(loss: Loss, groups: Array, ridge: float) -> ClosedSupervised:
    r"""The supervised fit to groups of points; rows $\alpha, \rho, \Delta$."""
    return ClosedSupervised(groups, ridge)


def self_training(problem: Problem, recipe: Recipe, t: int, old: Array) -> ClosedStage:
    """Step t >= 1 from the state `old` of the step before."""
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    i = t - 1
    hard = isinstance(recipe.label_function, HardLabels)
    return ClosedStage(
        t,
        old,
        np.array([batches.alpha[i], batches.rho[i], batches.delta[i]]),
        float(values.lambda_u[i]),
        float(values.threshold[i]),
        math.inf if hard else float(values.sharpness[i]),
        recipe.fix_bias,
    )


def run(record: Record) -> None:
    """Fill the record from step 1 on."""
    problem, recipe = record.problem, record.recipe
    for t in range(1, problem.steps + 1):
        old = record.states[t - 1]
        if record.ends_at(t):
            return
        stage = self_training(problem, recipe, t, old)
        if not recipe.fix_bias and math.isinf(stage.sharpness) and stage.label_mass() < 1e-12:
            record.collapsed_at = t
            return
        solution = StageSolution(stage.unknowns(), "closed form", 1, 0, 0.0)
        record.store(t, solution, stage.ridge, stage.base)


def _averages(
    s: Array, zeroth: Array, first: Array, second: Array, d: Array, kappa: Array, noise: float, c: float
) -> Array:  # fmt: skip
    r"""The averages of `moments` for $f = k(d + \kappa g_1 + b g_2)$ on pieces with the moments of $g_1$ given."""
    k = 1.0 / (1.0 + c)
    f = k * (d * zeroth + kappa * first)
    gf = k * (d * first + kappa * second)
    square = d**2 * zeroth + 2 * d * kappa * first + kappa**2 * second
    ff = k * k * (square + noise**2 * zeroth)
    e = np.zeros(COUNT)
    e[[F, SF, GF, SGF]] = f.sum(), s @ f, gf.sum(), s @ gf
    e[[FF, SFF]] = ff.sum(), s @ ff
    e[[K, SK, GK, SGK, GGK]] = (
        k,
        k * (s @ zeroth),
        k * first.sum(),
        k * (s @ first),
        k * second.sum(),
    )
    e[[FK, SFK, GFK, NFK, FFK, KK]] = (
        k * e[F],
        k * e[SF],
        k * e[GF],
        k * k * noise,
        k * e[FF],
        k * k,
    )
    e[[Y, SY, GY, SGY, GGY]] = -e[[K, SK, GK, SGK, GGK]]
    e[[FY, SFY, GFY]] = -e[[FK, SFK, GFK]]
    return e


def _jacobian(
    z: Array, e: Array, share: float, delta: float, ridge: float, mu: float, nu2: float,
    first: bool, held: float,
) -> Array:  # fmt: skip
    residual, jacobian = np.empty(5), np.empty((5, 5))
    groups = np.array([share]), np.array([delta])
    assemble(z, e[None], *groups, ridge, mu, nu2, 0.0, first, held, residual, jacobian)
    return jacobian


def _susceptibility(alpha: Array, delta: Array, ridge: float) -> float:
    r"""$\chi$ with $\chi(\sum\alpha\Delta/(1+\chi\Delta) + \lambda) = 1$; a quadratic equation for a single group."""
    if alpha.size == 1:
        a, d = float(alpha[0]), float(delta[0])
        b = ridge + d * (a - 1.0)
        root = math.sqrt(b * b + 4.0 * ridge * d)
        chi = (
            2.0 / (b + root) if b > 0 else (root - b) / (2.0 * ridge * d) if ridge > 0 else math.inf
        )
    elif ridge == 0.0 and float(alpha.sum()) <= 1.0:
        chi = math.inf
    else:

        def excess(x: float) -> float:
            y = math.exp(x)
            return y * (float((alpha * delta) @ (1.0 / (1.0 + y * delta))) + ridge) - 1.0

        chi = math.exp(brentq(excess, -600.0, 600.0, xtol=1e-15, rtol=1e-15))
    if not chi < 1e300:
        reason = "without ridge and with fewer points than features there is no unique minimiser"
        raise ConvergenceError(0, reason, {}, math.nan)
    return chi


def _described(old: Array) -> dict[str, float]:
    return {"q": float(old[0] ** 2), "m": float(old[0] * old[1]), "bias": float(old[3])}
