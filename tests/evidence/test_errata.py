"""Statements of the paper that the docs correct, seen in solved steps at small ridge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve


@pytest.mark.parametrize(("fix_bias", "rate"), [(True, -7.27), (False, 8.77)])
def test_direction_can_get_worse_when_the_bias_is_held(fix_bias: bool, rate: float) -> None:
    """C in dM/dtau = C M (1 - M), M the squared cosine: assumed positive, and not always so."""
    problem = Problem(alpha_l=0.5, alpha_u=4.0, rho=0.15, delta=1.2, steps=1)
    ridge = 1e-6
    run = solve(problem, Recipe(lambda_l=0.005, lambda_u=ridge, fix_bias=fix_bias))
    start, end = run.cosine**2
    assert (end - start) / (ridge * start * (1 - start)) == pytest.approx(rate, abs=5e-3)


def test_conjugates_at_vanishing_ridge_are_not_those_of_the_step_before() -> None:
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=1)
    run = solve(problem, Recipe(lambda_u=1e-8))
    assert run.q[1] == pytest.approx(run.q[0], rel=1e-6)
    assert run.chi[1] != pytest.approx(run.chi[0], rel=0.1)
    assert run.m_hat[1] == pytest.approx(0.0, abs=1e-7)
    assert run.chi_hat[1] == pytest.approx(0.0, abs=1e-14)
    assert run.q_hat[1] == pytest.approx(1 / run.chi[1], rel=1e-6)
    assert run.r_hat[1] == pytest.approx(1 / run.chi[1], rel=1e-6)


def test_conjugate_of_the_overlap_has_two_terms() -> None:
    """The derivative of E exp(-b l) in the covariance of its arguments is E[(b^2 l1 l2 - b l12)
    exp(-b l)]: the sign, and the term that the paper leaves out. Both sides by quadrature, l the
    logistic loss to a soft label.
    """
    beta, nodes = 1.7, np.polynomial.hermite_e.hermegauss(60)
    x, weights = nodes[0], np.outer(nodes[1], nodes[1]) / (2 * np.pi)
    p = lambda u: 1 / (1 + np.exp(-u))  # noqa: E731

    def mean(function: Callable[[Any, Any], Any], covariance: float) -> float:
        first, second = np.meshgrid(x, x, indexing="ij")
        other = covariance * first + np.sqrt(1 - covariance**2) * second
        return float((weights * function(first, other)).sum())

    def boltzmann(h: Any, u: Any) -> Any:
        return np.exp(-beta * (np.logaddexp(0, u) - p(h) * u))

    def slope(h: Any, u: Any) -> Any:
        by_label, by_logit, by_both = -p(h) * p(-h) * u, p(u) - p(h), -p(h) * p(-h)
        return (beta**2 * by_label * by_logit - beta * by_both) * boltzmann(h, u)

    step = 1e-5
    difference = (mean(boltzmann, 0.3 + step) - mean(boltzmann, 0.3 - step)) / (2 * step)
    assert mean(slope, 0.3) == pytest.approx(difference, rel=1e-7)


@pytest.mark.parametrize(("alpha_u", "error"), [(0.25, 0.324012), (0.5, 0.185401)])
def test_small_batches_fade_to_a_direction(alpha_u: float, error: float) -> None:
    """Below one point per feature the direction neither aligns nor is lost: it has a limit, that of
    the squared loss at four times the ridge.
    """
    problem = Problem(0.5, alpha_u, 0.5, 0.75**2, steps=120, loss="squared")
    run = solve(problem, Recipe(lambda_l=0.1, lambda_u=0.4))
    assert run.error[-1] == pytest.approx(error, abs=1e-6)
    assert run.q[-1] < 1e-12


def test_odds_of_the_squared_cosine_grow_by_the_integral_of_the_rate() -> None:
    """M/(1-M) grows by exp(int C), and C of the squared loss is 2V/(D(a-1)(D+V)) with V the
    variance of the label coded +-1.
    """
    rho, delta, alpha, ridge, steps = 0.3, 0.75**2, 3.0, 1e-5, 40
    problem = Problem(0.5, alpha, rho, delta, steps=steps, loss="squared")
    run = solve(problem, Recipe(lambda_l=0.05, lambda_u=ridge))
    squared = run.cosine**2
    odds = squared / (1 - squared)
    label = 4 * rho * (1 - rho)
    rate = 2 * label / (delta * (alpha - 1) * (delta + label))
    assert np.log(odds[-1] / odds[0]) / (ridge * steps) == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(("variance", "holds"), [(0.75**2, True), (1.0, False)])
def test_noise_of_the_field_of_step_0_has_the_variance_of_the_batch(
    variance: float, holds: bool
) -> None:
    """The conjugates of step 0 by Gauss-Hermite quadrature, at the printed variance and at that of
    the batch; the signal carries a minus sign.
    """
    alpha, rho, delta = 0.5, 0.4, 0.75**2
    run = solve(Problem(alpha, 2.0, rho, delta, steps=0), Recipe(lambda_l=0.2))
    x, weights = np.polynomial.hermite_e.hermegauss(80)
    p = lambda u: 1 / (1 + np.exp(-u))  # noqa: E731
    q_hat = m_hat = 0.0
    for sign, share in ((1, rho), (-1, 1 - rho)):
        h = sign * run.m[0] + run.bias[0] + np.sqrt(run.q[0] * variance) * x
        u, strength, label = np.zeros_like(h), run.chi[0] * delta, (1 + sign) / 2
        for _ in range(60):
            curve = p(u) * p(-u)
            u = u - (u + strength * (p(u) - label) - h) / (1 + strength * curve)
        share = share / weights.sum()
        q_hat += alpha * delta * share * float(weights @ (curve / (1 + strength * curve)))
        m_hat -= alpha * sign * share * float(weights @ (p(u) - label))
    assert bool(q_hat == pytest.approx(run.q_hat[0], rel=1e-8)) is holds
    assert bool(m_hat == pytest.approx(run.m_hat[0], rel=1e-8)) is holds
    assert m_hat > 0


@pytest.mark.parametrize("fix_bias", [False, True])
def test_signal_of_the_squared_loss_has_no_factor_of_the_noise(fix_bias: bool) -> None:
    """And depends on the step before: m' and B' are in it beside the order parameters of step t."""
    alpha, rho, delta = 2.0, 0.4, 0.75**2
    problem = Problem(0.5, alpha, rho, delta, steps=3, loss="squared")
    run = solve(problem, Recipe(lambda_l=0.05, lambda_u=0.2, fix_bias=fix_bias))
    fall = -np.diff(run.m) - (2 * rho - 1) * np.diff(run.bias)
    expected = alpha / (1 + run.chi[1:] * delta) * fall
    np.testing.assert_allclose(run.m_hat[1:], expected, rtol=1e-9)


def test_off_diagonal_pairs_need_the_whole_multiplier() -> None:
    """Constraints on a pair of replicas, once per pair c <= d: multipliers Q/2 on the diagonal and
    Q off it give the Gaussian with precision Q; halves throughout do not.
    """
    precision = np.array([[2.0, 0.7], [0.7, 1.5]])
    x, weights = np.polynomial.legendre.leggauss(120)
    first, second = np.meshgrid(8 * x, 8 * x, indexing="ij")
    for factor, right in ((1.0, True), (0.5, False)):
        exponent = precision[0, 0] * first**2 / 2 + precision[1, 1] * second**2 / 2
        density = np.exp(-exponent - factor * precision[0, 1] * first * second)
        density = density * np.outer(weights, weights)
        moment = float((density * first * second).sum() / density.sum())
        expected = float(np.linalg.inv(precision)[0, 1])
        assert bool(moment == pytest.approx(expected, rel=1e-9)) is right
