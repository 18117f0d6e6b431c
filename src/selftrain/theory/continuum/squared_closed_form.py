r"""The squared loss without selection: closed forms (Prediction `pred: squared loss`), in
continuous time and at any ridge.

With V the variance of the class coded as ±1, $V = 4\rho(1-\rho)$ (1 if the bias is fixed), the
continuous-time limit is

    m = m_0 e^{-\tau/\tau_m}
    B = B_0 + (2\rho-1)(m_0 - m)
    v = v_0 e^{-\tau/\tau_v}
    M = 1/(1 + (1/M_0 - 1) e^{-\tau/\tau_M})
    \tau_m = (\alpha-1)(\Delta+V)
    \tau_v = \Delta(\alpha-1)/2
    \tau_M = \Delta(\alpha-1)(\Delta+V)/(2V)        1/\tau_M = 1/\tau_v - 2/\tau_m

so $q = m^2 + v$ is a sum of two exponentials. At a given ridge a step is a linear map of $(m^2, v)$
with coefficients that do not depend on the state; the ratio v/m² tends to its fixed point, so more
steps cannot make the misalignment smaller than that.

A step is linear in its labels, so annealing with a trained bias only multiplies the model: by
$\gamma_t$ in step t, by $e^{\kappa\tau^2/2}$ in continuous time ($\kappa = a/\lambda_U^2$).
Direction and error are those of the run without annealing. A fixed bias is not multiplied; then v
is multiplied as before, and

    dm/d\tau = (\kappa\tau - 1/\tau_m) m + \kappa\tau\,u        u = (2\rho-1) B_0/(1+\Delta)

whose solution is a Gaussian integral.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx

from ...arrays import Array
from ...errors import InvalidInput, NoExpansion, StateOverflow
from ...fields import expand, number
from ...losses import Squared
from ...problem import Problem
from ...recipe import Recipe
from .expansion import LARGEST_LOG, check_continuous, start_of
from .linear_response import State
from .path import Points, points_at, times_of

__all__ = ["SquaredClosedForm", "StepMap", "squared_closed_form"]

LARGEST = 1e300
"""The largest valid time."""


class StepMap(NamedTuple):
    r"""One step at ridge $\lambda$ without annealing: $m = g m'$, $v = a m'^2 + b v'$.

    Attributes:
        keep, noise, spread: g, a and b.
        slack: $g^2 - b$, computed without cancellation.
        amplified: increase of v per unit of squared residual of the labels.
    """

    keep: float
    noise: float
    spread: float
    slack: float
    amplified: float


@dataclass(frozen=True, eq=False)
class SquaredClosedForm:
    r"""The run of a squared loss, in continuous time and at its own ridge.

    Attributes:
        start: the supervised model $(m_0, v_0, B_0)$.
        tau_m, tau_v, tau_squared_cosine: time scales $\tau_m$, $\tau_v$, $\tau_M$ of m, $v = q -
            m^2$ and M.
        variance: V.
        sharpens: $\kappa = a/\lambda_U^2$, zero without annealing.
    """

    problem: Problem
    recipe: Recipe
    start: State
    tau_m: float
    tau_v: float
    tau_squared_cosine: float
    variance: float
    sharpens: float

    def __call__(self, tau: float | Array) -> Points:
        """Return the continuous-time limit at one time or several (`eq: continuous squared M`)."""
        last = math.sqrt(2 * LARGEST_LOG / self.sharpens) if self.sharpens else LARGEST
        times = times_of(tau, last)
        grown = 0.5 * self.sharpens * times**2
        if self._bias_is_a_source:
            log_v = math.log(self.start.v) - times / self.tau_v + 2 * grown
            return self._points_of(times, self._driven(times), log_v)
        start = math.log(self.start.v) - 2 * math.log(abs(self.start.m))
        log_ratio = start - times / self.tau_squared_cosine
        return self._points(times, -times / self.tau_m, log_ratio, grown)

    @property
    def _bias_is_a_source(self) -> bool:
        """Whether the equation of m has a term in the bias, which is fixed, from annealing."""
        return self.recipe.fix_bias and self.sharpens > 0 and self.start.bias != 0

    @property
    def _pull(self) -> float:
        r"""The term $u = (2\rho-1) B_0/(1+\Delta)$ of the fixed bias in the equation of m."""
        _, rho, delta = (float(column[0]) for column in self.problem.unlabeled)
        return (2 * rho - 1) * self.start.bias / (1 + delta)

    def _driven(self, times: Array) -> Array:
        r"""Return $m = m_0 e^{\phi(\tau)} + u \int_0^\tau \kappa s\,e^{\phi(\tau) - \phi(s)} ds$
        with $\phi(s) = \kappa s^2/2 - s/\tau_m$.

        Integrated by parts, the integral is $e^{\phi} - 1 + \tau_m^{-1}\int_0^\tau e^{\phi(\tau) -
        \phi(s)} ds$, and the last one is a difference of scaled error functions, which do not
        overflow.
        """
        width, centre = math.sqrt(2 / self.sharpens), 1 / (self.sharpens * self.tau_m)
        phi = (times / width) ** 2 - times / self.tau_m
        difference = erfcx((centre - times) / width) - np.exp(phi) * erfcx(centre / width)
        integral = 0.5 * math.sqrt(math.pi) * width * difference
        m: Array = self.start.m * np.exp(phi) + self._pull * (np.expm1(phi) + integral / self.tau_m)
        return m

    @cached_property
    def discrete(self) -> Points:
        r"""The exact discrete run at its ridge: arrays over t = 0..T at $\tau_t = \sum_{i\le
        t}\lambda_U^{(i)}$.
        """
        ridges, _, sharpness = self.recipe.at_steps(self.problem.steps)
        times = np.append(0.0, np.cumsum(ridges))
        grown = np.append(0.0, np.cumsum(np.log(sharpness)))
        if grown[-1] > LARGEST_LOG:
            t = int(np.argmax(grown > LARGEST_LOG))
            reason = f"the labels were sharpened by a factor of e^{grown[t]:.4g} in all"
            raise StateOverflow(t, reason, asdict(self.start), math.nan)
        if self._bias_is_a_source:
            return self._points_of(times, *self._driven_steps(ridges, sharpness))
        kept, ratio = np.zeros(ridges.size + 1), np.empty(ridges.size + 1)
        ratio[0] = self.start.v / self.start.m**2
        for t, ridge in enumerate(ridges, start=1):
            step = self.step(float(ridge))
            kept[t] = kept[t - 1] + math.log(step.keep)
            ratio[t] = (step.noise + step.spread * ratio[t - 1]) / step.keep**2
        return self._points(times, kept, np.log(ratio), grown)

    def _driven_steps(self, ridges: Array, sharpness: Array) -> tuple[Array, Array]:
        r"""Return m and $\ln v$ of every step with a fixed bias and annealing: $m = g x$ with $x =
        \gamma m' + (\gamma-1) u$; to v the squared residuals of the labels from the constant bias
        are added.
        """
        _, rho, delta = (float(column[0]) for column in self.problem.unlabeled)
        constant = (1 - (2 * rho - 1) ** 2 / (1 + delta)) * self.start.bias**2
        m, v = [self.start.m], [self.start.v]
        for ridge, gamma in zip(ridges.tolist(), sharpness.tolist(), strict=True):
            step = self.step(ridge)
            pulled = gamma * m[-1] + (gamma - 1) * self._pull
            residual = step.noise * pulled**2 + step.amplified * (gamma - 1) ** 2 * constant
            m.append(step.keep * pulled)
            v.append(residual + gamma**2 * step.spread * v[-1])
        return np.array(m), np.log(v)

    def _points(self, times: Array, log_kept: Array, log_ratio: Array, grown: Array) -> Points:
        r"""Return points from $\ln(m/m_0)$ and $\ln(v/m^2)$ without annealing, and the logarithm of
        the factor from annealing. (m and v may underflow, their ratio does not.)
        """
        log_squared_cosine = -np.logaddexp(0.0, log_ratio)
        log_norm = math.log(abs(self.start.m)) + log_kept - 0.5 * log_squared_cosine + grown
        cosine = math.copysign(1.0, self.start.m) * np.exp(0.5 * log_squared_cosine)
        lean = 0.0 if self.recipe.fix_bias else 2 * float(self.problem.unlabeled.rho[0]) - 1
        bias = self.start.bias - lean * self.start.m * np.expm1(log_kept)
        if not self.recipe.fix_bias:
            bias = bias * np.exp(grown)
        misalignment = np.exp(log_ratio + log_squared_cosine)
        return points_at(self.problem, times, log_norm, cosine, misalignment, bias)

    def _points_of(self, times: Array, m: Array, log_v: Array) -> Points:
        r"""Return points from m and $\ln v$ with the bias of the start."""
        norm = np.hypot(m, np.exp(0.5 * log_v))
        bias = np.full_like(times, self.start.bias)
        misalignment = np.exp(log_v - 2 * np.log(norm))
        return points_at(self.problem, times, np.log(norm), m / norm, misalignment, bias)

    def step(self, ridge: float) -> StepMap:
        r"""Return the map of one step at ridge $\lambda$."""
        accepted = "must be a number > 0, at most 1e100"
        ridge = number("ridge", ridge, lambda value: 0 < value <= 1e100, accepted)
        alpha, _, delta = (float(column[0]) for column in self.problem.unlabeled)
        b = ridge + delta * (alpha - 1.0)
        chi = 2.0 / (b + math.sqrt(b * b + 4.0 * ridge * delta))
        q_hat = alpha * delta / (1.0 + chi * delta)
        kept = q_hat * (1.0 + self.variance / delta)
        lost = ridge / (kept + ridge)
        strength = alpha * delta * (chi / (1.0 + chi * delta)) ** 2
        amplified = strength / (1.0 - strength * delta)
        shrunk = ridge * chi
        ahead = shrunk * lost * (q_hat / ridge) * (self.variance / delta)  # shrunk - lost
        fresh = amplified * delta * shrunk**2
        return StepMap(
            kept / (kept + ridge),
            amplified * (self.variance + delta) * lost**2,
            (chi * q_hat) ** 2 + fresh,
            ahead * (2.0 - shrunk - lost) - fresh,
            amplified,
        )

    def floor(self, ridge: float | None = None) -> float:
        r"""Return the limit of $1 - M$ for $t \to \infty$ at a ridge (default: that of the last
        step).

        For small $\lambda$ the limit of v/m² is $\lambda/(2V(\alpha-1)^2)$. The limit of $1 - M$ is
        1 (no alignment) if v shrinks more slowly than m².
        """
        if ridge is None:
            ridge = float(self.recipe.at_steps(self.problem.steps).lambda_u[-1])
        step = self.step(ridge)
        if step.slack <= 0:
            return 1.0
        return step.noise / (step.noise + step.slack)


def squared_closed_form(problem: Problem, recipe: Recipe) -> SquaredClosedForm:
    r"""Return the closed forms of Prediction `pred: squared loss`, and the exact recursion of the
    same run.

    Batches must be the same in all steps (for others use `continuum`); they may differ from the
    labelled set. Without annealing the ridge may depend on the step.

    >>> from selftrain import Problem, Recipe
    >>> problem = Problem(0.5, 2.0, rho=0.4, delta=0.75**2, steps=100, loss="squared")
    >>> form = squared_closed_form(problem, Recipe(lambda_u=0.01))
    >>> round(form.tau_squared_cosine, 4), round(form.tau_m, 4)
    (0.446, 1.5225)
    >>> round(form(1.0).squared_cosine, 4), round(float(form.discrete.squared_cosine[-1]), 4)
    (0.7922, 0.774)
    """
    check_continuous(problem, recipe)
    if type(problem.loss_at(1)) is not Squared:
        accepted = "must be 'squared'; continuum() is for every loss"
        raise InvalidInput("loss", problem.loss_at(1).name, accepted)
    if np.any(recipe.at_steps(problem.steps).threshold != 0):
        accepted = "must be 0; continuum() is for selection too"
        raise InvalidInput("threshold", recipe.threshold, accepted)
    for name, column in zip(("alpha_u", "rho_u", "delta_u"), problem.unlabeled, strict=True):
        if np.any(column != column[0]):
            accepted = "must be the same in every step; continuum() is for schedules too"
            raise InvalidInput(name, getattr(problem, name), accepted)
    annealing = expand("annealing", recipe.annealing, problem.steps).tolist()
    ridges = recipe.at_steps(problem.steps).lambda_u.tolist()
    if any(annealing) and (len(set(annealing)) > 1 or len(set(ridges)) > 1):
        accepted = "must be the same in every step, as must the ridge"
        raise InvalidInput("annealing", recipe.annealing, accepted)
    alpha, rho, delta = (float(column[0]) for column in problem.unlabeled)
    start = start_of(problem, recipe)
    if not alpha > 1:
        raise NoExpansion(alpha, start)
    variance = 1.0 if recipe.fix_bias else 4 * rho * (1 - rho)
    room = alpha - 1.0
    return SquaredClosedForm(
        problem,
        recipe,
        start,
        tau_m=room * (delta + variance),
        tau_v=0.5 * delta * room,
        tau_squared_cosine=0.5 * delta / variance * room * (delta + variance),
        variance=variance,
        sharpens=annealing[0] / ridges[0] / ridges[0],
    )
