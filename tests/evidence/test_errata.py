"""Statements of the paper that the docs correct, seen in solved steps at small ridge."""

from __future__ import annotations

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
