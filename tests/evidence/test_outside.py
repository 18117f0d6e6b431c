"""Supervised learning: the definition written out, closed forms, and random-matrix theory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import root
from scipy.special import expit, ndtr

from selftrain import Problem, Recipe, Trajectory, solve


def supervised(alpha: float, delta: float, ridge: float, loss: str = "squared") -> Trajectory:
    problem = Problem(alpha_l=alpha, alpha_u=1.0, rho=0.5, delta=delta, steps=0, loss=loss)
    return solve(problem, Recipe(lambda_l=ridge))


def discriminant_analysis_error(alpha: float, delta: float, ridge: float) -> float:
    """Error of regularised discriminant analysis with identity covariance (Dobriban and Wager).

    It comes from the Marchenko-Pastur law of the sample covariance and shares no equation with
    the replica theory.
    """
    gamma, shift = 1.0 / alpha, ridge / (alpha * delta)
    b = 1.0 - gamma + shift
    root = math.sqrt(b * b + 4.0 * gamma * shift)
    # the positive root of gamma l m^2 + b m - 1 = 0 and its derivative, l the shift
    m = (root - b) / (2.0 * gamma * shift) if b < 0 else 2.0 / (root + b)
    slope_m = (gamma * m * m + m) / root  # -dm/dl
    v = gamma * m + (1.0 - gamma) / shift
    slope_v = gamma * slope_m + (1.0 - gamma) / shift**2  # -dv/dl
    signal = 1.0 / delta
    tau = shift * m * v
    eta = (v - shift * slope_v) / gamma
    xi = slope_v / v**2 - 1.0
    return float(ndtr(-signal * tau / math.sqrt(signal * eta + xi)))


def balanced_logistic(alpha: float, delta: float, ridge: float, start: Any) -> Any:
    r"""$\chi\Delta$, m and $q\Delta$ of balanced classes, written out from the definition.

    Integrals are over the trained logit x, $h = x + c(\sigma(x) - 1)$ for the positive class, so
    that no proximal map is solved.
    """
    x = np.linspace(-200.0, 200.0, 400_001)
    slope, curvature = -expit(-x), expit(x) * expit(-x)

    def residual(logs: Any) -> Any:
        c, m, q = np.exp(logs)
        h = x + c * slope
        weight = np.exp(-((h - m) ** 2) / (2 * q)) / np.sqrt(2 * np.pi * q) * (1 + c * curvature)
        q_hat = alpha * delta * trapezoid(weight * curvature / (1 + c * curvature), x)
        chi_hat = alpha * delta * trapezoid(weight * slope**2, x)
        m_hat = -alpha * trapezoid(weight * slope, x)
        chi = 1 / (q_hat + ridge)
        found = [chi * delta, m_hat * chi, delta * (m_hat**2 + chi_hat) * chi**2]
        return np.log(found) - logs

    solution = root(residual, np.log(start), tol=1e-12)
    assert solution.success
    return np.exp(solution.x)


def test_logistic_loss_by_the_definition_written_out() -> None:
    run = supervised(0.9542105263157896, 0.5, 0.01, "logistic")
    strength, m, q = balanced_logistic(0.9542105263157896, 0.5, 0.01, start=(20.0, 2.0, 5.0))
    assert 0.5 * run.chi[0] == pytest.approx(strength, rel=1e-9)
    assert run.m[0] == pytest.approx(m, rel=1e-9)
    assert 0.5 * run.q[0] == pytest.approx(q, rel=1e-9)
    assert run.error[0] == pytest.approx(float(ndtr(-m / math.sqrt(q))), rel=1e-9)
    assert run.bias[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("delta", "ridge", "alpha"), [(0.5, 1.0, 1.0), (0.5, 0.01, 2.0), (0.5625, 0.01, 1.0)]
)
def test_squared_loss_in_closed_form(delta: float, ridge: float, alpha: float) -> None:
    """Ridge regression on labels coded -1 and 1, balanced: c from a quadratic equation, the rest
    follows.
    """
    b = ridge + delta * (alpha - 1)
    chi = 2 / (b + math.sqrt(b * b + 4 * ridge * delta))
    q_hat = 1 / chi - ridge
    m = q_hat / (q_hat + delta / chi)
    noise = alpha * delta / (1 + chi * delta) ** 2
    v = chi**2 * noise * ((1 - m) ** 2 + delta * m**2) / (1 - noise * delta * chi**2)
    q = m**2 + v
    run = supervised(alpha, delta, ridge)
    found = run.q[0], run.chi[0], run.m[0], run.error[0]
    error = float(ndtr(-m / math.sqrt(delta * q)))
    assert found == pytest.approx((q, chi, m, error), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.3, 0.9, 2.0, 10.0])
@pytest.mark.parametrize(("delta", "ridge"), [(0.5, 0.01), (0.5625, 1.0), (2.0, 0.1), (0.1, 30.0)])
def test_squared_loss_by_random_matrices(alpha: float, delta: float, ridge: float) -> None:
    expected = discriminant_analysis_error(alpha, delta, ridge)
    assert supervised(alpha, delta, ridge).error[0] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_strong_ridge_reaches_the_bayes_error_of_balanced_classes(loss: str) -> None:
    run = supervised(2.0, 0.5, 1e6, loss)
    bayes = float(ndtr(-math.sqrt(2.0 / (0.5 * 2.5))))
    assert bayes == pytest.approx(0.1029516053660342, rel=1e-14)
    assert run.error[0] == pytest.approx(bayes, rel=1e-12)
