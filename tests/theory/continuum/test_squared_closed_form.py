"""The squared loss in closed form: against the integrated path, the solver, and its own limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, continuum, solve
from selftrain.errors import InvalidInput, NoExpansion
from selftrain.expansions import squared_closed_form

BASE = Problem(0.5, 2.0, 0.4, 0.75**2, steps=40, loss="squared")

CASES: list[dict[str, Any]] = [
    {},
    {"rho": 0.2, "alpha_u": 1.2},
    {"rho": 0.5, "delta": 2.0, "alpha_u": 7.0},
    {"rho_u": 0.8, "delta_u": 1.1},
]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("changes", CASES)
def test_annealed_paths_and_runs(changes: dict[str, Any], fixed: bool) -> None:
    """Against the integrated path and the solver; with a trained bias the error is that of no
    annealing at all.
    """
    problem = BASE.replace(**changes)
    recipe = Recipe(lambda_u=0.01, annealing=0.004, fix_bias=fixed)
    form, run = squared_closed_form(problem, recipe), solve(problem, recipe)
    times = np.linspace(0, 0.4, 21)
    here, there = form(times), continuum(problem, recipe, tolerance=1e-11)(times)
    for name in ("m", "q", "v", "squared_cosine", "error"):
        assert getattr(here, name) == pytest.approx(getattr(there, name), rel=1e-9), name
        assert getattr(form.discrete, name) == pytest.approx(
            run.m**2 / run.q if name == "squared_cosine" else getattr(run, name), rel=1e-11
        )
    assert here.bias == pytest.approx(there.bias, rel=1e-9, abs=1e-11)
    assert form.discrete.bias == pytest.approx(run.bias, rel=1e-11, abs=1e-13)
    plain = squared_closed_form(problem, recipe.replace(annealing=0.0))
    if not fixed:
        assert here.error == pytest.approx(plain(times).error, rel=1e-12)
        assert form.discrete.error == pytest.approx(plain.discrete.error, rel=1e-12)
    with pytest.raises(InvalidInput, match="from 0 to"):
        form(1e3)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("changes", CASES)
def test_prediction_8_is_the_integrated_path(changes: dict[str, Any], fixed: bool) -> None:
    problem, recipe = BASE.replace(**changes), Recipe(fix_bias=fixed)
    form = squared_closed_form(problem, recipe)
    until = 4 * form.tau_squared_cosine
    path = continuum(problem, recipe, until=until, tolerance=1e-11)
    times = np.linspace(0, until, 41)
    here, there = form(times), path(times)
    for name in ("m", "q", "v", "squared_cosine", "error"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=1e-9), name
    assert there.bias == pytest.approx(here.bias, rel=1e-9, abs=1e-11)
    odds = (1 / here.squared_cosine[0] - 1) * np.exp(-times / form.tau_squared_cosine)
    assert here.squared_cosine == pytest.approx(1 / (1 + odds), rel=1e-12)


@pytest.mark.parametrize("ridge", [1e-4, 0.05, 3.0, [0.3] * 10 + [0.01] * 30])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("changes", CASES)
def test_the_recursion_is_the_solver(changes: dict[str, Any], fixed: bool, ridge: Any) -> None:
    problem, recipe = BASE.replace(**changes), Recipe(lambda_u=ridge, fix_bias=fixed)
    discrete, run = squared_closed_form(problem, recipe).discrete, solve(problem, recipe)
    solved = slice(
        run.good_steps
    )  # weights a billion times smaller than the bias count as collapsed
    assert run.good_steps > 15
    for name in ("m", "q", "v", "error", "cosine"):
        ours, theirs = getattr(discrete, name)[solved], getattr(run, name)[solved]
        assert ours == pytest.approx(theirs, rel=1e-11), name
    assert discrete.bias[solved] == pytest.approx(run.bias[solved], rel=1e-11, abs=1e-13)
    assert discrete.tau[-1] == pytest.approx(np.sum(recipe.at_steps(40).lambda_u))


@pytest.mark.parametrize("fixed", [False, True])
def test_no_number_of_steps_leads_below_the_floor(fixed: bool) -> None:
    problem = BASE.replace(rho=0.2, steps=3000)
    recipe = Recipe(lambda_u=0.02, fix_bias=fixed)
    form, run = squared_closed_form(problem, recipe), solve(problem, recipe)
    last = run.good_steps - 1
    assert form.floor() == pytest.approx(run.v[last] / run.q[last], rel=1e-9)
    for alpha in (1.5, 4.0):
        other = squared_closed_form(problem.replace(alpha_u=alpha), recipe)
        small = 1e-7
        limit = small / (2 * other.variance * (alpha - 1) ** 2)
        assert other.floor(small) == pytest.approx(limit, rel=1e-5)


def test_a_large_ridge_can_undo_the_direction() -> None:
    """Where v shrinks slower than m^2 the direction is lost: the floor is 1, and the run gets
    there.
    """
    problem = BASE.replace(alpha_u=1.02, rho=0.5, delta=3.0, steps=100)
    recipe = Recipe(lambda_u=1.0)
    form, run = squared_closed_form(problem, recipe), solve(problem, recipe)
    assert form.floor() == 1.0
    assert form.floor(0.1) < 1.0
    assert run.cosine[-1] < 0.8 * run.cosine[50] < 0.8 * run.cosine[10]


def test_time_scales_vanish_with_the_room_above_one_point_a_feature() -> None:
    scales = [
        squared_closed_form(BASE.replace(alpha_u=1 + room), Recipe()) for room in (1e-3, 1e-6)
    ]
    for name in ("tau_m", "tau_v", "tau_squared_cosine"):
        wide, narrow = (getattr(form, name) for form in scales)
        assert wide / narrow == pytest.approx(1e3, rel=1e-9)
        assert narrow > 0
    with pytest.raises(NoExpansion, match="must be > 1, got 1 "):
        squared_closed_form(BASE.replace(alpha_u=1.0), Recipe())


@pytest.mark.parametrize(
    ("changes", "recipe", "field"),
    [
        ({"loss": "logistic"}, Recipe(), "loss"),
        ({"steps": 0}, Recipe(), "steps"),
        ({}, Recipe(threshold=0.1), "threshold"),
        ({}, Recipe(sharpness=2.0), "sharpness"),
        ({"steps": 2}, Recipe(lambda_u=(0.1, 0.2), annealing=0.1), "annealing"),
        ({"steps": 2, "alpha_u": (2.0, 3.0)}, Recipe(), "alpha_u"),
        ({"steps": 2, "rho_u": (0.2, 0.3)}, Recipe(), "rho_u"),
    ],
)
def test_refusals_name_the_field(changes: dict[str, Any], recipe: Recipe, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        squared_closed_form(BASE.replace(**changes), recipe)
    assert refused.value.field == field


@pytest.mark.parametrize("ridge", [1e-8, 1e-12, 1e-18, 1e-100])
def test_the_floor_keeps_its_digits_at_tiny_ridges(ridge: float) -> None:
    problem = Problem(0.5, 2.0, rho=0.4, delta=0.75**2, steps=100, loss="squared")
    form = squared_closed_form(problem, Recipe())
    limit = ridge / (2 * 4 * 0.4 * 0.6 * (2.0 - 1.0) ** 2)
    assert form.floor(ridge) == pytest.approx(limit, rel=20 * ridge + 1e-12)


@pytest.mark.parametrize(
    "tau", ["x", None, [], -1.0, float("nan"), float("inf"), [[1.0], [1.0, 2.0]]]
)
def test_times_that_are_none_are_named(tau: Any) -> None:
    form = squared_closed_form(BASE, Recipe())
    with pytest.raises(
        InvalidInput, match="tau must be one time or more, from 0 to 1e\\+300"
    ) as refused:
        form(tau)
    assert refused.value.field == "tau"


def test_the_direction_is_known_when_the_weights_are_too_small_for_numbers() -> None:
    """After 3000 time scales nothing is left of the weights; balanced classes then err by
    H(1/sqrt(delta)).
    """
    balanced = BASE.replace(rho=0.5)
    form = squared_closed_form(balanced, Recipe(fix_bias=True))
    last = form(3000 * form.tau_m)
    assert last.q == 0.0
    assert last.cosine == 1.0
    imbalanced = squared_closed_form(BASE, Recipe())(1e5)
    assert imbalanced.error == pytest.approx(0.4, rel=1e-12)
    odds = np.log(form.start.v / form.start.m**2)
    for tau in (100.0, 250.0):
        exact = odds - tau / form.tau_squared_cosine
        assert np.log(form(tau).one_minus_squared_cosine) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("ridge", [30.0, 1e6, 1e20])
def test_the_discrete_run_keeps_its_direction_however_small_it_becomes(ridge: float) -> None:
    """Weights fall below 1e-308; v/m^2 goes on by its own recursion, whatever the size of m."""
    problem = BASE.replace(steps=400)
    form = squared_closed_form(problem, Recipe(lambda_u=ridge))
    run, step = form.discrete, form.step(ridge)
    assert run.q[-1] == 0.0
    assert np.all((run.one_minus_squared_cosine > 0) & (run.one_minus_squared_cosine <= 1))
    ratio = run.v[1] / run.m[1] ** 2
    start = form.start.v / form.start.m**2
    assert ratio == pytest.approx((step.noise + step.spread * start) / step.keep**2, rel=1e-10)
    alpha, delta = 2.0, 0.75**2
    assert step.keep == pytest.approx(
        alpha * (delta + form.variance) / ridge, rel=10 / ridge + 1e-12
    )
