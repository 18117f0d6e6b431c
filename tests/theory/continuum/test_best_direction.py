"""Proposition 7 as a check: what the plane does, and what the bias does meanwhile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from selftrain import Problem, Recipe, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.expansions import best_direction, squared_closed_form

TURNING = Problem(alpha_l=0.5, alpha_u=4.0, rho=0.15, delta=1.2, steps=1)


def test_with_a_trained_bias_the_plane_turns_to_the_best_direction() -> None:
    found = best_direction(TURNING, Recipe(lambda_l=0.005))
    assert found.proved
    assert found.always_positive
    assert found.reached
    assert np.all(np.diff(found.points.squared_cosine) > 0)
    assert found.points.squared_cosine[-1] > 0.99
    assert "a theorem" in str(found)


def test_with_a_fixed_bias_it_first_turns_away() -> None:
    """Erratum 12: C < 0 at the start; it becomes positive as the weights shrink."""
    found = best_direction(TURNING, Recipe(lambda_l=0.005, fix_bias=True))
    assert not found.proved
    assert not found.always_positive
    assert found.rates[0] == pytest.approx(-7.27, abs=0.005)
    assert found.rates[-1] > 0
    assert found.points.squared_cosine.min() < 0.8 * found.points.squared_cosine[0]
    assert found.reached
    assert "not guaranteed" in str(found)


def test_with_a_fixed_bias_it_can_end_up_facing_the_wrong_way() -> None:
    """M goes to 1 and m is negative; a discrete run and finite systems do the same."""
    problem = Problem(0.5, 4.0, 0.1, 3.0, steps=60)
    recipe = Recipe(lambda_l=0.01, lambda_u=0.005, fix_bias=True)
    found = best_direction(problem, recipe)
    assert found.reversed
    assert not found.reached
    assert found.points.squared_cosine[-1] > 0.99
    assert "facing the wrong way" in str(found)
    run = solve(problem, recipe)
    systems = simulate(
        problem, recipe, features=200, seeds=8, method="dense", probes=0, progress=False
    )
    for cosine in (run.cosine, systems.mean("cosine")):
        assert cosine[0] > 0.15
        assert cosine[-1] < -0.15
    assert not best_direction(problem, recipe.replace(fix_bias=False)).reversed


def test_a_path_that_ends_early_is_reported() -> None:
    problem = TURNING.replace(steps=2, alpha_u=(4.0, 0.5))
    found = best_direction(problem, Recipe(lambda_u=0.01))
    assert not found.reached
    assert found.path.until == pytest.approx(0.01)
    assert "ended early: at tau = 0.01" in str(found)


@pytest.mark.parametrize("fixed", [False, True])
def test_the_odds_of_the_direction_grow_by_the_integral_of_the_rate(fixed: bool) -> None:
    found = best_direction(TURNING, Recipe(lambda_l=0.005, fix_bias=fixed), until=0.5)
    path = found.path

    def rate(tau: float) -> float:
        return path.first_order(tau).alignment_rate

    grown = quad(rate, 0.0, 0.5, epsabs=1e-8, epsrel=1e-8, limit=100)[0]
    first, last = path(0.0), path(0.5)
    odds = math.log(last.m**2 / last.v) - math.log(first.m**2 / first.v)
    assert grown == pytest.approx(odds, abs=1e-6)


def test_imbalance_inflates_the_bias_while_the_direction_improves() -> None:
    found = best_direction(Problem(0.5, 2.0, 0.2, 0.75**2, steps=1), Recipe())
    first, last = found.bias_to_norm
    assert abs(last) > 20 * abs(first)
    assert np.all(np.diff(np.abs(found.points.bias_to_norm)) > 0)
    assert found.points.error[-1] == pytest.approx(0.2, abs=1e-6)
    balanced = best_direction(Problem(0.5, 2.0, 0.5, 0.75**2, steps=1), Recipe())
    assert abs(balanced.bias_to_norm[1]) < 1e-6
    assert balanced.path.best.where == "end"


def test_the_weights_shrink_at_least_exponentially() -> None:
    r"""$\sqrt q \le \sqrt{q_0}\,e^{-\tau/(\alpha l''_{max}(1+\Delta))}$, with $l''_{max} = 1/4$ for
    the logistic loss.
    """
    for fixed in (False, True):
        points = best_direction(TURNING, Recipe(lambda_l=0.005, fix_bias=fixed)).points
        rate = 1 / (4.0 * 0.25 * (1 + 1.2))
        assert np.all(np.sqrt(points.q / points.q[0]) <= np.exp(-rate * points.tau) * (1 + 1e-9))


def test_the_time_scale_is_that_of_prediction_8() -> None:
    for rho in (0.2, 0.5):
        problem = Problem(0.5, 2.0, rho, 0.75**2, steps=1, loss="squared")
        found = best_direction(problem, Recipe())
        form = squared_closed_form(problem, Recipe())
        assert found.time_scale == pytest.approx(form.tau_squared_cosine, rel=1e-6)
        assert found.rates == pytest.approx(1 / form.tau_squared_cosine, rel=1e-9)
    short = best_direction(TURNING, Recipe(), until=0.01)
    assert short.time_scale is None
    assert not short.reached


@pytest.mark.parametrize(("alpha_l", "delta"), [(3.0, 1e-5), (5000.0, 0.5)])
@pytest.mark.parametrize("fixed", [False, True])
def test_a_start_beyond_the_usual_end_is_followed_for_a_decade(
    alpha_l: float, delta: float, fixed: bool
) -> None:
    """The squared loss from M > 0.999: the odds grow tenfold in log(10) of its time scale."""
    problem = Problem(alpha_l, 2.0, 0.3, delta, steps=1, loss="squared")
    found = best_direction(problem, Recipe(lambda_l=1e-3, fix_bias=fixed))
    points = found.points
    assert points.squared_cosine[0] > 0.999
    fallen = points.one_minus_squared_cosine[-1] / points.one_minus_squared_cosine[0]
    assert fallen == pytest.approx(0.1, rel=0.01)
    scale = squared_closed_form(problem, Recipe(fix_bias=fixed)).tau_squared_cosine
    assert found.path.until == pytest.approx(math.log(10) * scale, rel=0.01)
    assert found.reached
    assert found.time_scale is None
    assert found.path.failure is None


def test_without_a_step_there_is_no_batch_to_turn_to() -> None:
    with pytest.raises(InvalidInput, match=r"steps must be 1 or more.*got 0"):
        best_direction(TURNING.replace(steps=0), Recipe())
