r"""The squared loss without selection: every curve in closed form (Prediction `pred: squared
loss`), at any ridge.

With V the variance of the class coded ±1, $V = 4\rho(1-\rho)$ (1 if the bias is fixed), the
continuous-time limit is

    m = m_0 e^{-\tau/\tau_m}        B = B_0 + (2\rho-1)(m_0 - m)        v = v_0 e^{-\tau/\tau_v}
    M = 1/(1 + (1/M_0 - 1) e^{-\tau/\tau_M}) \tau_m = (\alpha-1)(\Delta+V)        \tau_v =
    \Delta(\alpha-1)/2        \tau_M = \Delta(\alpha-1)(\Delta+V)/(2V)        1/\tau_M = 1/\tau_v -
    2/\tau_m

so $q = m^2 + v$ is a sum of two exponentials. At a given ridge a step is a linear map of $(m, v)$
with coefficients that do not depend on the state; its fixed ratio v/m² is the misalignment below
which no number of steps leads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput, NoExpansion
from ...fields import number
from ...losses import Squared
from ...problem import Problem
from ...recipe import Recipe
from ..state import State
from .points import Points, points_at, times_of
from .timeline import check_continuous, start_of

__all__ = ["SquaredClosedForm", "StepMap", "squared_closed_form"]

LARGEST = 1e300
"""The largest time that is accepted."""


class StepMap(NamedTuple):
    r"""One step at ridge $\lambda$: $m = g m'$, $v = a m'^2 + b v'$, and the slack $g^2 - b$
    without cancellation.
    """

    keep: float
    noise: float
    spread: float
    slack: float


@dataclass(frozen=True, eq=False)
class SquaredClosedForm:
    r"""The run of a squared loss, in continuous time and at its own ridge.

    Attributes:
        start: the supervised model $(m_0, v_0, B_0)$.
        tau_m, tau_v, tau_squared_cosine: time scales $\tau_m$, $\tau_v$, $\tau_M$ of m, $v = q -
            m^2$ and M.
        variance: V.
    """

    problem: Problem
    recipe: Recipe
    start: State
    tau_m: float
    tau_v: float
    tau_squared_cosine: float
    variance: float

    def __call__(self, tau: float | Array) -> Points:
        """The continuous-time limit at a time, or at several (`eq: continuous squared M`)."""
        times = times_of(tau, f"one time or more, from 0 to {LARGEST:g}, are accepted", LARGEST)
        start = math.log(self.start.v) - 2 * math.log(abs(self.start.m))
        log_ratio = start - times / self.tau_squared_cosine
        return self._points(times, -times / self.tau_m, log_ratio)

    @cached_property
    def discrete(self) -> Points:
        r"""The run itself, exact at its ridge: arrays over t = 0..T at $\tau_t = \sum_{i\le
        t}\lambda_U^{(i)}$.
        """
        ridges = self.recipe.at_steps(self.problem.steps).lambda_u
        kept, ratio = np.zeros(ridges.size + 1), np.empty(ridges.size + 1)
        ratio[0] = self.start.v / self.start.m**2
        for t, ridge in enumerate(ridges, start=1):
            step = self.step(float(ridge))
            kept[t] = kept[t - 1] + math.log(step.keep)
            ratio[t] = (step.noise + step.spread * ratio[t - 1]) / step.keep**2
        return self._points(np.append(0.0, np.cumsum(ridges)), kept, np.log(ratio))

    def _points(self, times: Array, log_kept: Array, log_ratio: Array) -> Points:
        r"""Points from $\ln(m/m_0)$ and $\ln(v/m^2)$: m and v may be too small for numbers, their
        ratio is not.
        """
        log_squared_cosine = -np.logaddexp(0.0, log_ratio)
        log_norm = math.log(abs(self.start.m)) + log_kept - 0.5 * log_squared_cosine
        cosine = math.copysign(1.0, self.start.m) * np.exp(0.5 * log_squared_cosine)
        lean = 0.0 if self.recipe.fix_bias else 2 * float(self.problem.unlabeled.rho[0]) - 1
        bias = self.start.bias - lean * self.start.m * np.expm1(log_kept)
        misalignment = np.exp(log_ratio + log_squared_cosine)
        return points_at(self.problem, times, log_norm, cosine, misalignment, bias)

    def step(self, ridge: float) -> StepMap:
        r"""The map of one step at ridge $\lambda$."""
        accepted = "a number > 0, at most 1e100, is accepted"
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
        )

    def floor(self, ridge: float | None = None) -> float:
        r"""The limit of $1 - M$ for $t \to \infty$ at a ridge (default: that of the last step).

        For small $\lambda$ the ratio v/m² goes to $\lambda/(2V(\alpha-1)^2)$. It is 1, no alignment
        at all, where v shrinks slower than m².
        """
        if ridge is None:
            ridge = float(self.recipe.at_steps(self.problem.steps).lambda_u[-1])
        step = self.step(ridge)
        if step.slack <= 0:
            return 1.0
        return step.noise / (step.noise + step.slack)


def squared_closed_form(problem: Problem, recipe: Recipe) -> SquaredClosedForm:
    r"""The curves of Prediction `pred: squared loss` and the exact recursion of the same run.

    Batches must be the same in all steps (`continuum` integrates the others); they may differ from
    the labelled set, and the ridge may depend on the step.

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
        accepted = "'squared' is accepted; continuum() is for every loss"
        raise InvalidInput("loss", problem.loss_at(1).name, accepted)
    if np.any(recipe.at_steps(problem.steps).threshold != 0):
        accepted = "0 is accepted; continuum() is for selection too"
        raise InvalidInput("threshold", recipe.threshold, accepted)
    for name, column in zip(("alpha_u", "rho_u", "delta_u"), problem.unlabeled, strict=True):
        if np.any(column != column[0]):
            accepted = "the same value in every step is accepted; continuum() is for schedules too"
            raise InvalidInput(name, getattr(problem, name), accepted)
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
    )
