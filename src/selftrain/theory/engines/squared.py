r"""The engine for the squared loss: every step in closed form, with selection and hard labels too.

With $f = (h - \hat y)/(1+c)$ all averages are truncated Gaussian moments. On one side of the
threshold, for one class, $h - \hat y = d + \kappa g_1 + b g_2$ with constants d and $\kappa$, so
with $P, T_1, T_2$ the moments of order 0, 1, 2 of $g_1$ there, $E f = k\langle dP + \kappa
T_1\rangle$, $E[g_1 f] = k\langle dT_1 + \kappa T_2\rangle$, $E f^2 = k^2\langle d^2P + 2d\kappa T_1
+ \kappa^2T_2 + b^2P\rangle$ and $k = 1/(1+c)$: a quadratic equation gives c, a linear system $(a,
\eta, B)$, and then $r^2$ follows. Classes are coded as -1 and +1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ...arrays import Array
from ...errors import ConvergenceError
from ...losses import Loss
from ...problem import Problem
from ...recipe import Recipe
from ..gradients.step_derivatives import (
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
    first_shifts,
    scaled_label,
    shifts,
)
from ..step.averages import blank
from ..step.ending import Ending
from ..step.equations import (
    BIAS,
    ETA,
    LOG_CHI,
    LOG_R,
    A,
    Frame,
    Groups,
    System,
    assemble,
    blank_system,
    frame,
    frame_first,
    newton_step,
)
from ..step.given import Given, given, given_at, schedule
from ..step.stage import StageSolution
from ..step.table import Record
from ..tolerances import ACCEPTED, COLLAPSED_MASS, EMPTY_SHARE
from .engine import StepByStep, solve_first

CLOSED = 1e-13
"""A closed form this near to its equations is as good as rounding allows."""


class ClosedSupervised:
    r"""Step 0, or a supervised fit to several groups of points (rows $\alpha, \rho, \Delta$)."""

    step = 0

    def __init__(self, groups: Array, ridge: float):
        self.groups, self.ridge = groups, ridge
        alpha, _, delta = groups
        self.frame = frame_first(ridge, math.sqrt(float(alpha @ delta / alpha.sum())))

    def solution(self, exponent: float, tolerance: float) -> StageSolution:
        """The solved stage, confirmed by the equations that all engines share."""
        return _confirmed(0, self.unknowns(), self._system, self.frame)

    def _system(self, z: Array) -> System:
        """The equations of the fit at z."""
        alpha, rho, delta = (np.ascontiguousarray(row) for row in self.groups)
        averages = [self._moments(z, *group) for group in zip(rho, delta, strict=True)]
        return _system(z, averages, alpha, delta, self.frame)

    def _moments(self, z: Array, rho: float, delta: float) -> Any:
        """The averages over one group of points."""
        share, zero, sign = np.array([rho, 1.0 - rho]), np.zeros(2), np.array([1.0, -1.0])
        noise = math.sqrt(delta) * math.hypot(z[ETA], math.exp(z[LOG_R]))
        d = sign * (z[ETA] - 1.0) + z[BIAS]
        return _averages(sign, share, zero, share, d, zero, noise, math.exp(z[LOG_CHI]) * delta)

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
        return _confirmed(self.step, self.unknowns(), self._system, self.frame)

    def _system(self, z: Array) -> System:
        """The equations of the step at z."""
        share, e = self._moments(z, z[A], z[BIAS])
        return _system(z, [e], self.batch[:1] * share, self.batch[2:], self.frame)

    def unknowns(self) -> Array:
        """The unknowns z of the stage equations."""
        _, mu, nu2, _ = self.old
        alpha, _, delta = self.batch
        sign, zeroth, first, second, constant, slope = self._sides()
        share = float(zeroth.sum())
        self._check_share(share)
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
            right[2] = self.frame.fixed_bias
        unknown = np.linalg.solve(matrix, right)
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
        jacobian = _system(z, [e], self.batch[:1] * share, self.batch[2:], about).jacobian
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
        return share, _averages(
            sign, zeroth / share, first / share, second / share, d, kappa, noise, c
        )

    def _sides(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Class sign, weighted moments of g1, and the constants of d and kappa, for the four
        (class, side).
        """
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


def _averages(
    s: Array,
    zeroth: Array,
    first: Array,
    second: Array,
    d: Array,
    kappa: Array,
    noise: float,
    c: float,
) -> Any:
    r"""The averages for $f = k(d + \kappa g_1 + b g_2)$ on pieces with the moments of $g_1$
    given.
    """
    k = 1.0 / (1.0 + c)
    f = k * (d * zeroth + kappa * first)
    gf = k * (d * first + kappa * second)
    square = d**2 * zeroth + 2 * d * kappa * first + kappa**2 * second
    ff = k * k * (square + noise**2 * zeroth)
    e = blank()[0]
    e.f, e.sf, e.gf, e.sgf = f.sum(), s @ f, gf.sum(), s @ gf
    e.ff, e.sff = ff.sum(), s @ ff
    e.k, e.sk, e.kk = k, k * (s @ zeroth), k * k
    e.gk, e.sgk, e.ggk = k * first.sum(), k * (s @ first), k * second.sum()
    e.fk, e.sfk, e.gfk, e.nfk, e.ffk = k * e.f, k * e.sf, k * e.gf, k * k * noise, k * e.ff
    e.y, e.sy, e.gy, e.sgy, e.ggy = -e.k, -e.sk, -e.gk, -e.sgk, -e.ggk
    e.fy, e.sfy, e.gfy = -e.fk, -e.sfk, -e.gfk
    return e


def _system(z: Array, averages: list[Any], alpha: Array, delta: Array, about: Frame) -> System:
    """The equations that all engines share, at z."""
    system, table = blank_system(), blank(len(averages))
    for i, row in enumerate(averages):
        table[i] = row
    assemble(z, Groups(alpha, delta, table), about, system)
    return system


def _confirmed(
    t: int, z: Array, equations: Callable[[Array], System], about: Frame
) -> StageSolution:
    """A closed form with its distance from the equations, improved by a Newton step where rounding
    shows.
    """
    for evaluations in (1, 2):
        system = equations(z)
        accuracy = float(newton_step(z, system, about))
        if not CLOSED < accuracy < math.inf or evaluations == 2:
            break
        z = z + system.step
    if not accuracy <= ACCEPTED:
        reason = "the closed form does not satisfy the equations"
        raise ConvergenceError(t, reason, {"chi": math.exp(z[LOG_CHI])}, accuracy)
    return StageSolution(z, "closed form", evaluations, 0, accuracy)


def _susceptibility(alpha: Array, delta: Array, ridge: float) -> float:
    r"""$\chi$ with $\chi(\sum\alpha\Delta/(1+\chi\Delta) + \lambda) = 1$; a quadratic equation for
    a single group.
    """
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
    if not chi < 1e150:  # its square must be a number
        reason = "without ridge and with fewer points than features there is no unique minimiser"
        raise ConvergenceError(0, reason, {}, math.nan)
    return chi


def _described(old: Array) -> dict[str, float]:
    return {"q": float(old[0] ** 2), "m": float(old[0] * old[1]), "bias": float(old[3])}
