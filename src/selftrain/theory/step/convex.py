r"""The convex objective of a stage, and damped Newton on it: converges from any start.

    G(a, \eta, B, r) = \max_c \{ \alpha E M_c(h) - r^2\Delta/(2c) \}
                       + \lambda (a^2 + \nu^2\eta^2 + r^2)/2

(M: Moreau envelope of the loss). The equations of a step are its stationarity conditions.
"""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Array
from .equations import BIAS, ETA, LOG_CHI, LOG_R, A, damping
from .newton import newton
from .stage import Counter, Evaluation, IterativeStage


def minimize(evaluate: Counter, exponent: float, enough: float) -> Array | None:
    r"""Damped Newton on the convex objective G with $\chi$ eliminated; converges from any start."""
    stage = evaluate.stage
    fixed = not math.isnan(stage.frame.fixed_bias)
    free = [ETA, LOG_R] + ([] if stage.frame.first else [A]) + ([] if fixed else [BIAS])
    start = stage.explicit(max(stage.frame.ridge, 1e-3))
    z = eliminate_chi(evaluate, start, exponent)
    for _ in range(12):
        if z is not None:
            break
        start[LOG_R] -= 1.0  # more noise than any chi explains
        z = eliminate_chi(evaluate, start, exponent)
    value = math.inf
    if z is not None:
        value = objective(evaluate, z, exponent)
    for _ in range(200):
        if z is None:
            return None
        at = evaluate(z, stage.frame.ridge, exponent)
        if at is None:
            return None
        gradient, hessian = _reduced(stage, z, at)
        gradient, hessian = gradient[free], hessian[np.ix_(free, free)]
        scale = np.sqrt(np.abs(np.diag(hessian))) + 1e-300
        with np.errstate(over="ignore", invalid="ignore"):
            curvature = 0.5 * (hessian + hessian.T) / scale / scale[:, None]
        if not np.isfinite(curvature).all():
            return None
        values, vectors = np.linalg.eigh(curvature)
        values = np.maximum(np.abs(values), 1e-10 * np.abs(values).max())
        direction = np.zeros(5)
        direction[free] = -(vectors @ ((vectors.T @ (gradient / scale)) / values)) / scale
        factor = damping(z, direction, stage.frame)
        decrease = float(gradient @ direction[free])
        accepted = None
        while factor > 1e-10:
            trial = eliminate_chi(evaluate, z + factor * direction, exponent)
            if trial is not None:
                new_value = objective(evaluate, trial, exponent)
                if new_value <= value + 1e-4 * factor * decrease + 1e-15 * abs(value):
                    accepted = trial
                    break
            factor *= 0.5
        if accepted is None:
            break
        z, value = accepted, new_value
        if np.max(np.abs(factor * direction[free]) / (1e-3 + np.abs(z[free]))) < 1e-5:
            break
    return None if z is None else newton(evaluate, z, stage.frame.ridge, exponent, enough, limit=20)


def objective(evaluate: Counter, z: Array, exponent: float) -> float:
    """G at z, up to a constant."""
    stage = evaluate.stage
    at = evaluate(z, stage.frame.ridge, exponent, with_loss=True)
    if at is None:
        return math.inf
    r2 = math.exp(2 * z[LOG_R])
    weights = (
        (stage.frame.offset + z[A]) ** 2 * (not stage.frame.first)
        + stage.frame.nu2 * z[ETA] ** 2
        + r2
    )
    tension = 0.5 * r2 * math.exp(-z[LOG_CHI])
    return float(at.envelope - tension + 0.5 * stage.frame.ridge * weights)


def _reduced(stage: IterativeStage, z: Array, at: Evaluation) -> tuple[Array, Array]:
    r"""Gradient and Hessian of G in $(a, \eta, B, \ln r)$ from the residuals, $\chi$ eliminated by
    $r^2 = \chi^2\hat\chi$.
    """
    jacobian = (
        at.jacobian - np.outer(at.jacobian[:, LOG_CHI], at.jacobian[3]) / at.jacobian[3, LOG_CHI]
    )
    tension = math.exp(2 * z[LOG_R] - z[LOG_CHI])
    excess = math.expm1(at.residual[4])
    factor = np.array([1.0, stage.frame.nu2, 1.0, 0.0, 0.0])
    gradient = factor * at.residual
    hessian = factor[:, None] * jacobian
    gradient[LOG_R] = tension * excess
    slope = -at.jacobian[3] / at.jacobian[3, LOG_CHI]
    change = -slope
    change[LOG_R] += 2.0
    hessian[LOG_R] = tension * (math.exp(at.residual[4]) * jacobian[4] + excess * change)
    hessian[:, LOG_CHI] = 0.0
    return gradient, hessian


def eliminate_chi(evaluate: Counter, z: Array, exponent: float) -> Array | None:
    r"""z with $\chi$ such that $r^2 = \chi^2\hat\chi$: the left side of a monotone scalar equation
    in $\ln\chi$.
    """
    z = z.copy()
    lo, hi = -300.0, 300.0
    for _ in range(100):
        at = evaluate(z, evaluate.stage.frame.ridge, exponent)
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
