"""Check of a solved step by equations that share no code with the package, and its verdict.

`independent` checks a step; if it does not confirm the step, `extended` does.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from selftrain import Trajectory
from selftrain.losses import Loss

from . import extended, independent
from .user_losses import Huber, Steep

CONFIRMED = 1e-8
"""Largest distance from the root of its equations at which a step is confirmed."""

COVERED = 10.0
"""A reported accuracy covers a distance up to this many times larger, because it is the size of a
Newton step, not a bound.
"""

PATIENCE = 2.0
"""Seconds of processor time that extended precision may take for a step; else it is undecided."""

BEYOND_ROUNDING = 1e-6
"""Distance that rounding in `independent` cannot explain if the averages have converged: the step
is then wrong even if extended precision takes too long to confirm that.
"""

WORDS = ("none", "confirmed", "covered", "undecided", "wrong")
"""Verdicts on a step, from good to bad; "none": not checked."""


def _as_independent(loss: Loss) -> independent.Loss:
    if isinstance(loss, Steep):
        return independent.Loss(independent.LOGISTIC, loss.k)
    if isinstance(loss, Huber):
        return independent.Loss(independent.HUBER, 1.0, loss.width)
    kinds = {"logistic": independent.LOGISTIC, "squared": independent.SQUARED}
    return independent.Loss(kinds[loss.name])


def equations(run: Trajectory, t: int) -> tuple[independent.Step, Any]:
    """Return step t of a run in the form of `independent`, and the solution in its unknowns."""
    problem, recipe, chi = run.problem, run.recipe, run.chi[t]
    loss, eta = _as_independent(problem.loss_at(t)), run.m_hat[t] * chi
    log_r = 0.5 * math.log(run.chi_hat[t]) + math.log(chi)
    if t == 0:
        given = problem.alpha_l, problem.rho, problem.delta, recipe.lambda_l, 0.0, 1.0
        step = independent.Step(
            loss,
            True,
            0.0,
            0.0,
            1.0,
            0.0,
            *given,
            hard=True,
            fixed_bias=False,
            bias=0.0,
            anchor=0.0,
            bias_anchor=0.0,
        )
        return step, np.array([0.0, eta, run.bias[0], log_r, math.log(chi)])
    values, i = recipe.at_steps(problem.steps), t - 1
    omega, bias = math.hypot(run.m[i], math.sqrt(run.v[i])), float(run.bias[i])
    gamma, a = float(values.sharpness[i]), float(run.overlap[t]) / omega
    hard, keep, keep_bias = math.isinf(gamma), 0.0, 0.0
    if hard:
        gamma = 1.0
    else:
        keep = gamma if abs(a - gamma * omega) < 0.5 * gamma * omega else 0.0
        keep_bias = gamma if abs(run.bias[t] - gamma * bias) <= 0.5 * gamma * abs(bias) else 0.0
    alpha, rho, delta = (float(column[i]) for column in problem.unlabeled)
    step = independent.Step(
        loss, False, omega, run.m[i] / omega, run.v[i] / omega**2, bias, alpha, rho, delta,
        float(values.lambda_u[i]), float(values.threshold[i]), gamma, hard, recipe.fix_bias,
        (1.0 - keep_bias) * bias, keep, keep_bias,
    )  # fmt: skip
    z = [a - keep * omega, eta, run.bias[t] - keep_bias * bias, log_r, math.log(chi)]
    return step, np.array(z)


def judged(step: independent.Step, z: Any, said: float) -> tuple[independent.Verdict, str]:
    """Return the distance of a solved step from the root, and the verdict (one of `WORDS`).

    `said` is the accuracy that the solver reported.
    """
    verdict = independent.correction(step, z)
    if word(verdict, said) != "confirmed" and step.loss.kind != independent.HUBER:
        try:
            with limited(PATIENCE):
                verdict = extended.correction(step, z)
        except TimeoutError:
            far = verdict.settled and verdict.distance > max(BEYOND_ROUNDING, COVERED * said)
            return verdict, "wrong" if far else "undecided"
    return verdict, word(verdict, said)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` if the block takes more seconds of processor time."""

    def over(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def word(verdict: independent.Verdict, said: float) -> str:
    """Return the verdict on a step whose reported accuracy is `said`."""
    if not verdict.settled or not math.isfinite(verdict.distance):
        return "undecided"
    if verdict.distance <= CONFIRMED:
        return "confirmed"
    return "covered" if verdict.distance <= COVERED * said else "wrong"
