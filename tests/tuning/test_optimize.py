"""The best recipe: conditions of a minimum, other ways to the same optimum, refusals."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from selftrain import Problem, Recipe, optimize, solve, supervised_optimum
from selftrain.errors import InvalidInput, NoGradient
from selftrain.parameters import SEARCH_BOUNDS
from selftrain.results import ProgressReport
from selftrain.theory.bayes import bayes_error
from selftrain.tuning.variables import derivative, forward, inverse

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.5, delta=0.75**2, steps=16)
UNEVEN = PROBLEM.replace(rho=0.4, steps=8)


def test_no_point_near_the_optimum_is_better() -> None:
    best = optimize(UNEVEN, over=("lambda_l", "lambda_u", "threshold"))
    assert best.is_minimum
    assert best.first_order < 1e-7
    assert best.second_order > 0
    rng = np.random.default_rng(0)
    for _ in range(40):
        moved = best.recipe.replace(
            lambda_l=best.recipe.lambda_l * math.exp(0.1 * rng.normal()),
            lambda_u=best.recipe.lambda_u * math.exp(0.1 * rng.normal()),
            threshold=abs(best.recipe.threshold + 0.02 * rng.normal()),
        )
        assert solve(UNEVEN, moved).error[-1] >= best.error - 1e-12


def test_the_papers_way_ends_no_lower() -> None:
    start = Recipe(lambda_l=0.01, lambda_u=0.01)
    simplex = optimize(PROBLEM, start=start, method="nelder-mead")
    ours = optimize(PROBLEM, start=start, starts=1)
    assert ours.error <= simplex.error + 1e-9
    assert ours.solves < simplex.solves
    assert ours.recipe.lambda_u == pytest.approx(simplex.recipe.lambda_u, rel=1e-3)


def test_a_simplex_leaves_a_threshold_of_zero() -> None:
    problem, start = UNEVEN.replace(steps=4), {"fix_bias": True}
    over = ("lambda_u", "threshold")
    simplex = optimize(problem, over=over, method="nelder-mead", start=start)
    assert simplex.error == pytest.approx(optimize(problem, over=over, start=start).error, abs=1e-7)


def test_an_optimiser_without_gradients_agrees() -> None:
    """Powell's method on the solver itself, with the bias fixed and labels annealed."""

    def error(x: Any) -> float:
        recipe = Recipe(
            lambda_l=0.1, lambda_u=math.exp(x[0]), annealing=math.exp(x[1]), fix_bias=True
        )
        return float(solve(UNEVEN, recipe, tolerance=1e-8).error[-1])

    there = minimize(error, [-3.5, -3.0], method="Powell", options={"xtol": 1e-5, "ftol": 1e-10})
    best = optimize(
        UNEVEN,
        over=("lambda_u", "annealing"),
        start=Recipe(lambda_l=0.1, fix_bias=True, annealing=0.05),
        bounds={"lambda_u": (1e-5, 0.1)},
    )
    assert best.error == pytest.approx(float(there.fun), abs=1e-8)
    assert best.recipe.fix_bias
    assert best.recipe.lambda_l == 0.1


def test_a_schedule_is_at_least_as_good_and_stationary() -> None:
    constant = optimize(PROBLEM)
    free = optimize(PROBLEM, over=("lambda_l",), schedule=("lambda_u",))
    assert free.error < constant.error - 1e-3
    assert free.is_minimum
    assert isinstance(free.recipe.lambda_u, tuple)
    assert free.active_bounds["lambda_u"] == {"upper": (1, 2, 3, 4, 5, 6)}
    assert bayes_error(PROBLEM).semi_supervised < free.error
    again = optimize(
        PROBLEM, over=("lambda_l",), schedule=("lambda_u",), start=free.recipe, starts=1
    )
    assert again.error == pytest.approx(free.error, abs=1e-10)


def test_a_name_in_both_is_a_schedule() -> None:
    short = PROBLEM.replace(steps=3)
    best = optimize(short, over=("lambda_l", "lambda_u"), schedule=("lambda_u",), starts=1)
    assert len(best.recipe.lambda_u) == 3  # type: ignore[arg-type]


def test_all_three_schedules_with_the_bias_fixed() -> None:
    problem = UNEVEN.replace(rho=0.2, steps=4)
    start = Recipe(fix_bias=True)
    few = optimize(problem, over=("lambda_l", "lambda_u", "annealing"), start=start)
    free = ("lambda_u", "sharpness", "threshold")
    many = optimize(problem, over=("lambda_l",), schedule=free, start=start)
    assert many.error < few.error
    assert np.ptp(many.trajectory.bias) < 1e-10


def test_what_it_is_compared_with() -> None:
    best = optimize(PROBLEM, bounds={"lambda_l": (1e-6, 0.05)})
    assert best.against["fully supervised"] == supervised_optimum(PROBLEM, (1e-6, 0.05)).error
    assert best.against["Bayes, all data"] == bayes_error(PROBLEM).semi_supervised
    assert best.against["t=0"] == best.trajectory.error[0]
    alone = optimize(
        PROBLEM.replace(steps=0), over=("lambda_l",), bounds={"lambda_l": (1e-6, 0.05)}
    )
    assert best.labeled_only.error == pytest.approx(alone.error, abs=1e-10)
    assert best.labeled_only.active_bound == "upper"
    assert alone.active_bounds == {"lambda_l": "upper"}
    errors = [point.error for point in best.path]
    assert errors == sorted(errors, reverse=True)
    assert list(best.to_frame().columns) == ["solves", "error", "lambda_l", "lambda_u"]


def test_it_says_when_not_to_self_train() -> None:
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=16)
    naive = optimize(problem)
    assert "hardly worth it" in naive.advice
    held = optimize(problem, bounds={"lambda_u": (1e-5, 0.1)}, start=Recipe(lambda_l=0.01))
    assert held.active_bounds["lambda_u"] == "lower"
    assert "lower bound" in held.advice
    bounded = optimize(PROBLEM, bounds={"lambda_u": (0.06, 0.1)})
    assert bounded.active_bounds["lambda_u"] == "lower"
    assert "lowers the error" in bounded.advice
    good = optimize(
        problem, over=("lambda_l", "lambda_u", "annealing"), start=Recipe(fix_bias=True)
    )
    assert "lowers the error" in good.advice


def test_progress_is_told() -> None:
    seen: list[ProgressReport] = []
    best = optimize(PROBLEM.replace(steps=2), progress=seen.append)
    assert [report.done for report in seen] == list(range(1, best.solves + 1))
    assert seen[-1].best == pytest.approx(best.error, abs=1e-8)


@pytest.mark.parametrize("name", list(SEARCH_BOUNDS))
def test_coordinates(name: str) -> None:
    values = np.array([0.11, 0.5, 2.0])
    x = forward(name, values)
    np.testing.assert_allclose(inverse(name, x), values, rtol=1e-14)
    slope = (inverse(name, x + 1e-6) - inverse(name, x - 1e-6)) / 2e-6
    np.testing.assert_allclose(derivative(name, x), slope, rtol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"over": ()}, "at least one of lambda_l"),
        ({"over": ("lamda_u",)}, "did you mean 'lambda_u'"),
        ({"over": ("lambda_u", "lambda_u")}, "over must have each name once"),
        ({"over": 3}, "a sequence of names"),
        ({"schedule": ("lambda_l",)}, "schedule must be one of lambda_u"),
        ({"over": ("annealing",), "schedule": ("sharpness",)}, "must not have annealing"),
        ({"bounds": {"lambda_u": (0.1, 0.01)}}, "low < high"),
        ({"bounds": {"lambda_u": (0.1, 0.1)}}, "low < high"),
        ({"bounds": {"lambda_u": (1e-14, 0.1)}}, "1e-13 <= low"),
        ({"bounds": {"lambda_u": (-1.0, 0.1)}}, "1e-13 <= low"),
        ({"bounds": {"lambda_u": 0.1}}, "two finite numbers"),
        ({"bounds": {"lambda_u": (1e-3, math.inf)}}, "two finite numbers"),
        ({"bounds": {"threshold": (0, 1)}}, "not optimised here"),
        ({"bounds": [1, 2]}, "must map names to pairs"),
        (
            {"start": Recipe(lambda_u=0.5)},
            "lambda_u must be a start within the bounds 1e-13 to 0.1",
        ),
        ({"start": {"lambda_u": 0.5}}, "a start within the bounds"),
        ({"start": Recipe(lambda_u=[0.01] * 16)}, "must be one number"),
        ({"start": "good"}, "a selftrain.Recipe"),
        (
            {"over": ("sharpness",), "start": Recipe(sharpness=math.inf)},
            "must not have sharpness or annealing",
        ),
        (
            {"over": ("annealing",), "start": Recipe(labeler="hard")},
            "must not have sharpness or annealing",
        ),
        (
            {"over": ("fix_bias",)},
            "over must have, besides fix_bias, at least one of lambda_l",
        ),
        ({"over": "fix_bias"}, "over must have, besides fix_bias, at least one of lambda_l"),
        ({"method": "newton"}, "unknown method"),
        ({"method": "nelder-mead", "schedule": ("lambda_u",)}, "it optimises constants"),
        ({"starts": 0}, "whole number from 1"),
        ({"limit": 0}, "whole number from 1"),
        ({"progress": 3}, "a function of a report"),
        ({"tolerance": 0.0}, "tolerance"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        optimize(PROBLEM, **options)


def test_a_default_start_outside_the_bounds_moves_inside() -> None:
    best = optimize(PROBLEM.replace(steps=2), bounds={"lambda_u": (1e-4, 1e-3)})
    assert best.active_bounds["lambda_u"] == "upper"


def test_refusal_without_steps_or_problem() -> None:
    with pytest.raises(InvalidInput, match="must be lambda_l only"):
        optimize(PROBLEM.replace(steps=0))
    with pytest.raises(InvalidInput, match="problem"):
        optimize(Recipe())  # type: ignore[arg-type]


def test_labels_that_collapse_from_every_start() -> None:
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=2.0, steps=60)
    with pytest.raises(
        NoGradient, match="no start leads to a run with a gradient; the last: the labels collapse"
    ):
        optimize(problem, over=("lambda_u",), start=Recipe(labeler="hard", lambda_u=0.05))


def test_more_freedom_is_never_worse() -> None:
    """From most starts the way down leads to hard labels; the optimum without selection leads
    elsewhere.
    """
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=8)
    fixed = Recipe(fix_bias=True)
    ridges = ("lambda_l", "lambda_u")
    shaped = optimize(problem, (*ridges, "sharpness"), start=fixed)
    both = optimize(problem, (*ridges, "sharpness", "threshold"), start=fixed)
    annealed = optimize(problem, (*ridges, "annealing"), start=fixed)
    free = optimize(problem, schedule=("lambda_u", "sharpness", "threshold"), start=fixed, limit=60)
    assert free.error < both.error < shaped.error < annealed.error
    assert both.recipe.sharpness < 3


def test_a_flat_minimum_is_called_flat() -> None:
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=16)
    naive = optimize(problem, ("lambda_u",), bounds={"lambda_u": (0, 1e-7)})
    assert naive.bounds["lambda_u"] == (1e-13, 1e-7)
    round_one = optimize(problem.replace(rho=0.5), ("lambda_l", "lambda_u"))
    assert round_one.is_minimum
    assert not round_one.is_flat


def test_not_self_training_is_an_answer() -> None:
    """A batch smaller than the dimension makes a good fit worse, whatever the ridges."""
    problem = Problem(alpha_l=4.0, alpha_u=0.3, rho=0.3, delta=0.3, steps=1, loss="squared")
    best = optimize(problem, starts=1)
    assert best.error > best.labeled_only.error
    assert not best.self_training
    assert best.advice.startswith("Do not self-train: fit the labelled samples alone")
    assert repr(best).startswith("Optimum(do not self-train: ")
    assert best.answer.steps == 0
    alone = solve(problem.labeled_alone().replace(test=problem.test_pair), best.answer.recipe)
    assert alone.error[-1] == pytest.approx(best.answer.error, rel=1e-9)
    good = optimize(PROBLEM.replace(steps=2), starts=1)
    assert good.self_training
    assert good.answer.recipe == good.recipe
    assert good.answer.steps == 2


def test_the_heuristics_are_found_without_a_start() -> None:
    """Tuned by hand from Recipe(0.1, 0.00372, annealing=0.0223, fix_bias=True) the error is
    0.0834; with ridges alone 0.1527.
    """
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=16)
    best = optimize(problem, over=("lambda_l", "lambda_u", "annealing", "fix_bias"))
    assert best.error == pytest.approx(0.08341, abs=2e-5)
    assert best.recipe.fix_bias
    assert best.start == "heuristics"
    assert best.is_minimum
    ridges = optimize(problem)
    assert not ridges.recipe.fix_bias  # what is not optimised stays
    assert ridges.recipe.annealing == 0
    assert "annealing and fix_bias" in ridges.advice


def test_a_rate_that_may_be_zero_is_no_worse_than_none() -> None:
    """Every point spread over the bounds collapses here; small ridges without annealing do not."""
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=64)
    known = Recipe(2.63704e-05, 0.000788477)
    annealed = optimize(problem, over=("lambda_l", "lambda_u", "annealing"))
    assert annealed.error < solve(problem, known).error[-1]


def test_a_search_says_where_it_began() -> None:
    few = PROBLEM.replace(steps=2)
    assert optimize(few, start=Recipe(0.05, 0.02)).start == "given"
    assert optimize(few, starts=1).start == "default"


def test_a_start_without_a_gradient_stands_as_it_is() -> None:
    """Every sample is put into one class: no recipe near it has another error."""
    problem = Problem(2.48429, 1.57431, 0.117935, 0.943076, steps=5)
    start = Recipe(
        5.38551e-06, 0.00392516, threshold=1, sharpness=0.7, annealing=0.1, fix_bias=True
    )
    best = optimize(problem, over=("annealing", "lambda_u"), start=start, starts=1)
    assert best.error <= solve(problem, start).error[-1]
    assert not best.is_minimum


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6])
def test_a_search_is_never_worse_than_its_start(seed: int) -> None:
    """Whatever problem, recipe and variables."""
    rng = np.random.default_rng(seed)
    problem = Problem(
        *rng.uniform((0.2, 0.3, 0.1, 0.2), (3, 4, 0.5, 1.5)).tolist(), steps=1 + seed % 4
    )
    start = Recipe(
        *(10 ** rng.uniform(-6, -1, 2)).tolist(),
        threshold=float(rng.choice([0, 0.3])),
        sharpness=float(rng.choice([0.7, 1, 2])),
        annealing=float(rng.choice([0, 0.1, 1])),
        fix_bias=bool(rng.integers(2)),
    )
    names = ("lambda_l", "lambda_u", "sharpness", "annealing")
    over = tuple(str(name) for name in rng.choice(names, 2, replace=False))
    before = solve(problem, start)
    best = optimize(problem, over=over, start=start, limit=10)
    assert best.error <= before.error[-1] + 1e-10
    fixed = {"threshold", "fix_bias", *names} - set(over)
    assert all(getattr(best.recipe, name) == getattr(start, name) for name in fixed)
