"""Supervised learning: published numbers, closed forms, and random-matrix theory."""

from __future__ import annotations

import math

import pytest
from scipy.special import ndtr

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


def test_logistic_loss_as_published() -> None:
    run = supervised(0.9542105263157896, 0.5, 0.01, "logistic")
    assert 0.5 * run.chi[0] == pytest.approx(28.753321848046305, rel=1e-8)
    assert run.m[0] == pytest.approx(2.3991658701865606, rel=1e-8)
    assert 0.5 * run.q[0] == pytest.approx(5.570263207370565, rel=1e-8)
    assert run.error[0] == pytest.approx(0.15468730017801752, rel=1e-8)
    assert run.bias[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("delta", "ridge", "alpha", "q", "chi", "m", "error"),
    [
        (0.5, 1.0, 1.0, 0.196737936722, math.sqrt(3) - 1, 0.348915260374, 0.132966631145),
        (0.5, 0.01, 2.0, 1.056446569613, 1.924474489597, 0.662334475413, 0.181064672945),
        (0.5625, 0.01, 1.0, 2.475441487328, 12.474041225220, 0.608766302243, 0.302963172261),
    ],
)
def test_squared_loss_as_published(
    delta: float, ridge: float, alpha: float, q: float, chi: float, m: float, error: float
) -> None:
    run = supervised(alpha, delta, ridge)
    found = run.q[0], run.chi[0], run.m[0], run.error[0]
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
    assert run.error[0] == pytest.approx(bayes, rel=1e-10)


def test_logistic_loss_at_strong_ridge_as_published() -> None:
    found = supervised(2.0, 0.5, 1e6, "logistic").error[0]
    assert found == pytest.approx(0.10295160536603754, rel=1e-12)
