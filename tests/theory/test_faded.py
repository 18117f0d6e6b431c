"""Runs whose weights fade: the limit against long runs, the closed form of the squared loss, and
one step against `solve`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve
from selftrain.errors import InvalidInput
from selftrain.expansions import squared_closed_form
from selftrain.theory.faded import _Step, faded_limit

DELTA = 0.75**2


@pytest.mark.parametrize(
    ("alpha_u", "error", "chi"), [(0.25, 0.324012, 8.62943), (0.5, 0.185401, 7.44299)]
)
def test_the_limit_by_hand(alpha_u: float, error: float, chi: float) -> None:
    """v/m^2 -> a/(g^2 - b) of the squared loss at ridge 0.4, by the formulas of one page."""
    ridge, b = 0.4, 0.4 + DELTA * (alpha_u - 1)
    susceptibility = 2 / (b + math.sqrt(b * b + 4 * ridge * DELTA))
    q_hat = 1 / susceptibility - ridge
    strength = alpha_u * DELTA / (1 + susceptibility * DELTA) ** 2
    g = 1 - ridge / (q_hat * (1 + 1 / DELTA) + ridge)
    noise = strength / (1 - strength * DELTA * susceptibility**2)
    fresh = susceptibility**2 * noise * (1 + DELTA) * (1 - g) ** 2
    kept = susceptibility**2 * (noise * DELTA * ridge**2 * susceptibility**2 + q_hat**2)
    cosine = 1 / math.sqrt(1 + fresh / (g * g - kept))
    limit = faded_limit(Problem(0.5, alpha_u, 0.5, DELTA, steps=1), Recipe(lambda_u=0.1))
    assert limit.cosine == pytest.approx(cosine, rel=1e-12)
    assert limit.error == pytest.approx(0.5 * math.erfc(cosine / math.sqrt(2 * DELTA)), rel=1e-12)
    assert limit.error == pytest.approx(error, abs=5e-7)
    assert limit.chi == pytest.approx(4 * susceptibility, rel=1e-12)
    assert limit.chi == pytest.approx(chi, abs=5e-6)
    assert limit.kept == pytest.approx(g, rel=1e-10)


@pytest.mark.parametrize(
    ("alpha_u", "recipe"),
    [
        (0.25, Recipe(0.05, 0.1)),
        (0.5, Recipe(0.01, 0.1, threshold=0.3)),
        (0.75, Recipe(0.05, 0.02)),
        (0.6, Recipe(0.05, 0.05, threshold=0.7, sharpness=0.8)),
        (2.0, Recipe(0.05, 0.1)),
    ],
)
def test_long_runs_come_to_the_limit(alpha_u: float, recipe: Recipe) -> None:
    """By the solver of the logistic loss, whether or not their weights underflow."""
    problem = Problem(0.5, alpha_u, 0.5, DELTA, steps=1500)
    run = solve(problem, recipe)
    limit = faded_limit(problem, recipe)
    assert run.log_q[-1] < math.log(1e-40)
    assert run.error[-1] == pytest.approx(limit.error, rel=1e-8)
    assert run.chi[-1] == pytest.approx(limit.chi, rel=1e-8)
    assert run.log_q[-1] - run.log_q[-2] == pytest.approx(2 * math.log(limit.kept), rel=1e-7)


def test_a_step_of_small_weights_is_that_of_the_solver() -> None:
    """Where the direction is still on its way: a start far off, many steps before the limit."""
    recipe = Recipe(1.0, 0.02)
    problem = Problem(0.2, 0.3, 0.5, 0.5, steps=60)
    run = solve(problem, recipe, 1e-12)
    small = np.flatnonzero(run.q < 1e-13)[:3]
    assert small.size == 3
    limit = faded_limit(problem, recipe)
    for t in small:
        assert abs(run.cosine[t] - limit.cosine) > 1e-6
        there = _Step(problem, recipe, int(t) + 1)(run.cosine[t], run.v[t] / run.q[t])
        assert there.cosine == pytest.approx(run.cosine[t + 1], rel=1e-10)
        assert there.chi == pytest.approx(run.chi[t + 1], rel=1e-10)


def test_a_run_goes_on_where_its_weights_are_no_numbers_any_more() -> None:
    """The squared loss in closed form carries the logarithm of the norm, so it knows the end of any
    run.
    """
    problem = Problem(0.5, 1.2, 0.5, 1.0, steps=3000, loss="squared")
    recipe = Recipe(0.05, 0.5)
    run = solve(problem, recipe)
    form = squared_closed_form(problem, recipe)
    step = form.step(0.5)
    assert run.fading is not None
    assert run.log_q[-1] - run.log_q[-2] == pytest.approx(2 * math.log(step.keep), rel=1e-10)
    assert run.cosine[-1] ** 2 == pytest.approx(form.discrete.squared_cosine[-1], rel=1e-10)
    log_m2 = 2 * (math.log(form.start.m) + 3000 * math.log(step.keep))
    assert run.log_q[-1] == pytest.approx(log_m2 - 2 * math.log(run.cosine[-1]), rel=1e-10)


def test_a_direction_that_is_lost() -> None:
    """Large clusters and few points: v shrinks more slowly than m^2, and the error comes to one
    half.
    """
    problem = Problem(0.5, 0.1, 0.5, 20.0, steps=1)
    limit = faded_limit(problem, Recipe(lambda_u=1e-3))
    assert limit.cosine == 0
    assert limit.error == 0.5


def test_the_threshold_of_one_point_per_feature() -> None:
    """As the ridge goes to zero the direction becomes perfect above alpha_U = 1; at 1 v/m^2 is
    1/(3(1 + 1/Delta) - 4).
    """
    recipe = Recipe(lambda_u=1e-11)
    at = {a: faded_limit(Problem(0.5, a, 0.5, DELTA, steps=1), recipe) for a in (0.9, 1.0, 1.1)}
    assert at[1.1].one_minus_cosine < 1e-7
    ratio = 1 / (3 * (1 + 1 / DELTA) - 4)
    assert at[1.0].cosine == pytest.approx(1 / math.sqrt(1 + ratio), rel=1e-4)
    assert at[0.9].one_minus_cosine > at[1.0].one_minus_cosine


@pytest.mark.parametrize(
    ("problem", "recipe", "field"),
    [
        (Problem(0.5, 0.5, 0.4, 1.0, steps=1), Recipe(), "rho_u"),
        (Problem(0.5, 0.5, 0.5, 1.0, steps=1), Recipe(sharpness=math.inf), "labels"),
        (Problem(0.5, 0.5, 0.5, 1.0, steps=0), Recipe(), "steps"),
    ],
)
def test_what_has_no_limit_is_refused(problem: Problem, recipe: Recipe, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        faded_limit(problem, recipe)
