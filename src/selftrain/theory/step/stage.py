r"""One step, solved for certain: Newton from several starts, continuation in the ridge, the convex objective.

A `Stage` knows the equations of one step; this module knows how to find their root when the compiled
march could not, and for losses that have no compiled engine. The root is unique, because the equations
are the stationarity conditions of the convex function

    G(a, \eta, B, r) = \max_c \{ \alpha E M_c(h) - r^2\Delta/(2c) \} + \lambda (a^2 + \nu^2\eta^2 + r^2)/2

(M: Moreau envelope of the loss), so whichever way finds it, a Newton step below the tolerance on a refined
rule is proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ..quadrature.rules import LEVELS, REFINED
from .equations import BIAS, ETA, LOG_CHI, LOG_R, A, damping, newton_step


@dataclass(frozen=True)
class Evaluation:
    """Residuals and Jacobian at a point, the nodes used, and E[l] + c E[f^2]/2 summed over groups."""

    residual: Array
    jacobian: Array
    points: int
    envelope: float = math.nan


def finite(at: Evaluation) -> Evaluation | None:
    """The evaluation, or None if it is not made of numbers."""
    return at if np.isfinite(at.residual).all() and np.isfinite(at.jacobian).all() else None


class Stage(Protocol):
    r"""The equations of one step.

    Attributes:
        step: index t, for messages.
        ridge: $\lambda$.
        nu2: $\nu^2$, offset: $\gamma_0\omega$, old_bias: $\gamma_0 B'$, field_scale: $\sqrt\Delta$, omega: $\omega$.
        first: whether this is step 0; fixed_bias: whether B is held.
    """

    step: int
    ridge: float
    nu2: float
    offset: float
    old_bias: float
    field_scale: float
    omega: float
    first: bool
    fixed_bias: bool

    def evaluate(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        """Residuals and Jacobian at z for some ridge on a rule of error exp(-exponent); None if it has too many nodes."""
        ...

    def starts(self) -> Iterator[tuple[str, Array]]:
        """Named starting points, the best first."""
        ...

    def explicit(self, ridge: float) -> Array:
        r"""The state for $\lambda \to \infty$."""
        ...


@dataclass(frozen=True)
class StageSolution:
    """Unknowns of a solved step and how they were found."""

    z: Array
    start: str
    evaluations: int
    points: int
    accuracy: float


class _Counter:
    """Counts evaluations of a stage."""

    def __init__(self, stage: Stage):
        self.stage, self.evaluations, self.points = stage, 0, 0

    def __call__(
        self, z: Array, ridge: float, exponent: float, with_loss: bool = False
    ) -> Evaluation | None:
        self.evaluations += 1
        result = self.stage.evaluate(z, ridge, exponent, with_loss)
        if result is not None:
            self.points = result.points
        return result


def solve_stage(stage: Stage, exponent: float, tolerance: float) -> StageSolution:
    """The root of a step, confirmed on a refined rule, or `ConvergenceError`.

    Arguments:
        stage: the equations.
        exponent: rules err by exp(-exponent) to begin with.
        tolerance: relative accuracy of the unknowns.
    """
    evaluate = _Counter(stage)
    best, best_accuracy, best_start = None, math.inf, ""
    for start, way in _ways(evaluate, exponent, tolerance):
        if way is None:
            continue
        z = way
        for level in range(LEVELS + 1):
            rule = exponent + level * REFINED
            accuracy, refined = _measure(evaluate, z, stage.ridge, rule + REFINED)
            if accuracy < best_accuracy:
                best, best_accuracy, best_start = z, accuracy, start
            if accuracy <= tolerance:
                return StageSolution(z, start, evaluate.evaluations, evaluate.points, accuracy)
            if refined is None:
                break
            better = newton(evaluate, z, stage.ridge, rule + REFINED, _enough(tolerance), limit=8)
            if better is None:
                break
            z = better
        if best_accuracy <= max(1e-8, tolerance):
            break
    if best is not None and best_accuracy <= max(1e-8, tolerance):
        return StageSolution(best, best_start, evaluate.evaluations, evaluate.points, best_accuracy)
    state = (
        {}
        if best is None
        else dict(zip(("a", "eta", "bias", "log_r", "log_chi"), best, strict=True))
    )
    raise ConvergenceError(
        stage.step,
        "no solution was confirmed on the refined rule" + _hint(stage),
        state,
        best_accuracy if best is not None else math.nan,
    )


def newton(
    evaluate: _Counter, start: Array, ridge: float, exponent: float, enough: float, limit: int = 40
) -> Array | None:
    """Newton's method with a bounded step; None if it does not settle."""
    stage = evaluate.stage
    z, step = start.copy(), np.empty(5)
    for _ in range(limit):
        at = evaluate(z, ridge, exponent)
        if at is None:
            return None
        size = _step(stage, z, at, step)
        if not size < math.inf:
            return None
        factor = damping(z, step, stage.nu2, stage.offset, stage.omega) if size > 0.1 else 1.0
        z += factor * step
        if not max(abs(z[LOG_R]), abs(z[LOG_CHI])) < 345:
            return None
        if size <= enough:
            return z
    return None


def _ways(
    evaluate: _Counter, exponent: float, tolerance: float
) -> Iterator[tuple[str, Array | None]]:
    stage = evaluate.stage
    enough = _enough(tolerance)
    for name, z in stage.starts():
        yield name, newton(evaluate, z, stage.ridge, exponent, enough)
    yield "continuation", _continue_in_ridge(evaluate, exponent, enough)
    yield "convex", _minimize(evaluate, exponent, enough)


def _enough(tolerance: float) -> float:
    """Size of a Newton step after which the error, of second order in it, is below the tolerance."""
    return min(1e-4, math.sqrt(0.1 * tolerance))


def _step(stage: Stage, z: Array, at: Evaluation, step: Array) -> float:
    return float(
        newton_step(
            z, at.residual, at.jacobian, stage.nu2, stage.offset, stage.old_bias,
            stage.field_scale, step,
        )
    )  # fmt: skip


def _measure(
    evaluate: _Counter, z: Array, ridge: float, exponent: float
) -> tuple[float, Evaluation | None]:
    at = evaluate(z, ridge, exponent)
    if at is None:
        return math.inf, None
    return _step(evaluate.stage, z, at, np.empty(5)), at


def _continue_in_ridge(evaluate: _Counter, exponent: float, enough: float) -> Array | None:
    r"""Follow the root from large $\lambda$, where it is explicit, down to the ridge of the step."""
    stage = evaluate.stage
    target = math.log(stage.ridge) if stage.ridge > 0 else -30.0
    stiffness = math.exp(-stage.explicit(1e-12)[LOG_CHI])
    here = max(target, math.log(10.0 * stiffness))
    z = None
    while z is None and here < 60.0:
        z = newton(
            evaluate, stage.explicit(math.exp(here)), math.exp(here), exponent, 1e-4, limit=12
        )
        here += 0.0 if z is not None else 2.0
    stride = 1.0
    while z is not None and here > target:
        at = evaluate(z, math.exp(here), exponent)
        if at is None:
            return None
        tangent = _ridge_tangent(stage, z, at, math.exp(here))
        while True:
            there = max(target, here - stride)
            guess = z if tangent is None else z + (there - here) * tangent
            found = newton(evaluate, guess, math.exp(there), exponent, 1e-4, limit=8)
            if found is not None:
                break
            stride *= 0.4
            if stride < 1e-3:
                return None
        z, here, stride = found, there, min(stride * 1.6, 3.0)
    if z is None:
        return None
    return newton(evaluate, z, stage.ridge, exponent, enough, limit=12)


def _ridge_tangent(stage: Stage, z: Array, at: Evaluation, ridge: float) -> Array | None:
    r"""$dz/d\ln\lambda$ along the path of roots."""
    stiffness = math.exp(at.residual[4] - z[LOG_CHI])
    change = np.zeros(5)
    change[0] = 0.0 if stage.first else ridge * (stage.offset + z[A])
    change[1] = ridge * z[ETA]
    change[4] = ridge / stiffness
    try:
        return np.asarray(-np.linalg.solve(at.jacobian, change), dtype=float)
    except np.linalg.LinAlgError:
        return None


def _minimize(evaluate: _Counter, exponent: float, enough: float) -> Array | None:
    r"""Damped Newton on the convex objective G with $\chi$ eliminated; converges from any start."""
    stage = evaluate.stage
    free = [ETA, LOG_R] + ([] if stage.first else [A]) + ([] if stage.fixed_bias else [BIAS])
    start = stage.explicit(max(stage.ridge, 1e-3))
    z = _eliminate_chi(evaluate, start, exponent)
    for _ in range(12):
        if z is not None:
            break
        start[LOG_R] -= 1.0  # more noise than any chi explains
        z = _eliminate_chi(evaluate, start, exponent)
    value = math.inf
    if z is not None:
        value = _objective(evaluate, z, exponent)
    for _ in range(200):
        if z is None:
            return None
        at = evaluate(z, stage.ridge, exponent)
        if at is None:
            return None
        gradient, hessian = _reduced(stage, z, at)
        gradient, hessian = gradient[free], hessian[np.ix_(free, free)]
        scale = np.sqrt(np.abs(np.diag(hessian))) + 1e-300
        values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T) / np.outer(scale, scale))
        values = np.maximum(np.abs(values), 1e-10 * np.abs(values).max())
        direction = np.zeros(5)
        direction[free] = -(vectors @ ((vectors.T @ (gradient / scale)) / values)) / scale
        factor = damping(z, direction, stage.nu2, stage.offset, stage.omega)
        decrease = float(gradient @ direction[free])
        accepted = None
        while factor > 1e-10:
            trial = _eliminate_chi(evaluate, z + factor * direction, exponent)
            if trial is not None:
                new_value = _objective(evaluate, trial, exponent)
                if new_value <= value + 1e-4 * factor * decrease + 1e-15 * abs(value):
                    accepted = trial
                    break
            factor *= 0.5
        if accepted is None:
            break
        z, value = accepted, new_value
        if np.max(np.abs(factor * direction[free]) / (1e-3 + np.abs(z[free]))) < 1e-5:
            break
    return None if z is None else newton(evaluate, z, stage.ridge, exponent, enough, limit=20)


def _objective(evaluate: _Counter, z: Array, exponent: float) -> float:
    """G at z, up to a constant."""
    stage = evaluate.stage
    at = evaluate(z, stage.ridge, exponent, with_loss=True)
    if at is None:
        return math.inf
    r2 = math.exp(2 * z[LOG_R])
    weights = (stage.offset + z[A]) ** 2 * (not stage.first) + stage.nu2 * z[ETA] ** 2 + r2
    tension = 0.5 * r2 * math.exp(-z[LOG_CHI])
    return float(at.envelope - tension + 0.5 * stage.ridge * weights)


def _reduced(stage: Stage, z: Array, at: Evaluation) -> tuple[Array, Array]:
    r"""Gradient and Hessian of G in $(a, \eta, B, \ln r)$ from the residuals, $\chi$ eliminated by $r^2 = \chi^2\hat\chi$."""
    jacobian = (
        at.jacobian - np.outer(at.jacobian[:, LOG_CHI], at.jacobian[3]) / at.jacobian[3, LOG_CHI]
    )
    tension = math.exp(2 * z[LOG_R] - z[LOG_CHI])
    excess = math.expm1(at.residual[4])
    factor = np.array([1.0, stage.nu2, 1.0, 0.0, 0.0])
    gradient = factor * at.residual
    hessian = factor[:, None] * jacobian
    gradient[LOG_R] = tension * excess
    slope = -at.jacobian[3] / at.jacobian[3, LOG_CHI]
    change = -slope
    change[LOG_R] += 2.0
    hessian[LOG_R] = tension * (math.exp(at.residual[4]) * jacobian[4] + excess * change)
    hessian[:, LOG_CHI] = 0.0
    return gradient, hessian


def _eliminate_chi(evaluate: _Counter, z: Array, exponent: float) -> Array | None:
    r"""z with $\chi$ such that $r^2 = \chi^2\hat\chi$: the left side of a monotone scalar equation in $\ln\chi$."""
    z = z.copy()
    lo, hi = -300.0, 300.0
    for _ in range(100):
        at = evaluate(z, evaluate.stage.ridge, exponent)
        if at is None or not np.isfinite(at.residual[3]):
            return None
        if at.residual[3] > 0:
            hi = z[LOG_CHI]
        else:
            lo = z[LOG_CHI]
        if not at.jacobian[3, LOG_CHI] > 0:
            return None
        step = -at.residual[3] / at.jacobian[3, LOG_CHI]
        if abs(step) < 1e-10:
            z[LOG_CHI] += step
            return z
        proposed = z[LOG_CHI] + float(np.clip(step, -4.0, 4.0))
        if not lo < proposed < hi:
            proposed = 0.5 * (max(lo, z[LOG_CHI] - 8.0) + min(hi, z[LOG_CHI] + 8.0))
        z[LOG_CHI] = proposed
    return None


def _hint(stage: Stage) -> str:
    if stage.first and stage.ridge == 0:
        return "; without ridge the labelled data may be separable, so no finite minimiser exists: use lambda_l > 0"
    return ""
