"""A run that starts from a near one is the same run, found in fewer evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.errors import InvalidInput
from selftrain.losses import Logistic

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
PLAIN = Recipe(lambda_l=2e-3, lambda_u=4e-3)


def differ(one: Trajectory, other: Trajectory) -> float:
    """Largest relative difference of the states."""
    names = ("q", "m", "chi", "overlap", "chi_hat")
    pairs = ((getattr(one, name), getattr(other, name)) for name in names)
    return max(float(np.nanmax(np.abs(a - b) / np.abs(b))) for a, b in pairs)


@pytest.mark.parametrize(
    ("recipe", "moved"),
    [
        (PLAIN, {"lambda_u": 4.01e-3}),
        (PLAIN, {"lambda_l": 1e-5, "lambda_u": 0.1}),
        (PLAIN, {"threshold": 0.4}),
        (PLAIN.replace(threshold=0.3), {"threshold": 0.301, "lambda_l": 2.1e-3}),
        (PLAIN.replace(sharpness=1.5), {"sharpness": 3.0}),
        (PLAIN.replace(sharpness=3.0), {"sharpness": 9.0}),
        (PLAIN.replace(sharpness=9.0, fix_bias=True), {"sharpness": float("inf")}),
        (PLAIN.replace(fix_bias=True, annealing=0.1), {"annealing": 0.11}),
        (PLAIN.replace(lambda_u=1e3), {"lambda_u": 1e-4}),
        (PLAIN, {"lambda_u": 1e3}),
    ],
)
def test_the_result_is_the_same(recipe: Recipe, moved: dict[str, float]) -> None:
    near = solve(PROBLEM, recipe, 1e-6)
    there = recipe.replace(**moved)
    assert differ(solve(PROBLEM, there, warm_start=near), solve(PROBLEM, there)) < 1e-8


def test_it_takes_fewer_evaluations() -> None:
    there = PLAIN.replace(lambda_u=4.001e-3)
    fresh = solve(PROBLEM, there)
    near = solve(PROBLEM, there, warm_start=solve(PROBLEM, PLAIN))
    assert near.stats.evaluations[1:].sum() < 0.7 * fresh.stats.evaluations[1:].sum()


def test_a_near_run_may_have_collapsed() -> None:
    collapsing = solve(PROBLEM.replace(rho=0.2), Recipe(0.01, 3.0))
    assert collapsing.collapsed_at is not None
    run = solve(PROBLEM.replace(rho=0.2), PLAIN, warm_start=collapsing)
    assert differ(run, solve(PROBLEM.replace(rho=0.2), PLAIN)) < 1e-8


def test_closed_forms_end_in_the_same_root() -> None:
    """The averages of the squared loss have no error of a rule: the root is the same to rounding,
    wherever Newton's method begins.
    """
    problem = PROBLEM.replace(loss="squared")
    run = solve(problem, PLAIN, warm_start=solve(problem, PLAIN.replace(lambda_u=0.1)))
    assert differ(run, solve(problem, PLAIN)) < 1e-13


def test_losses_without_an_engine_of_their_own() -> None:
    class Own(Logistic):
        name = "own"

    problem = PROBLEM.replace(loss=Own(), steps=6)
    there = PLAIN.replace(lambda_u=4.001e-3)
    fresh = solve(problem, there)
    near = solve(problem, there, warm_start=solve(problem, PLAIN))
    assert differ(near, fresh) < 1e-8
    assert near.stats.evaluations[1:].sum() < 0.7 * fresh.stats.evaluations[1:].sum()


def test_what_is_not_a_run_of_as_many_steps_is_refused() -> None:
    with pytest.raises(InvalidInput, match="warm_start"):
        solve(PROBLEM, PLAIN, warm_start=PLAIN)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="as many steps as the problem has, 16"):
        solve(PROBLEM, PLAIN, warm_start=solve(PROBLEM.replace(steps=4), PLAIN))


@pytest.mark.parametrize(
    ("problem", "recipe", "factor"),
    [
        (Problem(0.64, 5.14, 0.152, 1.85, steps=30), Recipe(0.032, 3.06e-6, sharpness=3.0), 1.0),
        (Problem(9.3, 0.76, 0.335, 1.92, steps=12), Recipe(5e-5, 2.1e-5, sharpness=3.0), 1 + 1e-6),
    ],
)
def test_every_step_is_confirmed(problem: Problem, recipe: Recipe, factor: float) -> None:
    """Runs that once took over what a coarse rule said of steep labels, unconfirmed."""
    moved = recipe.replace(lambda_l=factor * recipe.lambda_l, lambda_u=factor * recipe.lambda_u)
    cold = solve(problem, recipe)
    warm = solve(problem, recipe, warm_start=solve(problem, moved))
    assert cold.collapsed_at == warm.collapsed_at
    for run in (cold, warm):
        assert (run.stats.accuracy[: run.good_steps] <= 1e-10).all()
    assert differ(warm, cold) < 1e-9
