"""The equations that confirm the solver: they accept what is right and notice what is wrong."""

import math

import numpy as np
import pytest

from benchmarks.confirmation import extended, finite_classes, independent, judging
from benchmarks.confirmation.independent_noise import (
    Label,
    inner_huber,
    inner_logistic,
    prox_hard,
    prox_soft,
)
from benchmarks.confirmation.judging import equations, judged, limited, word
from benchmarks.confirmation.random_problems import draw
from selftrain import Problem, Recipe, solve

PROBLEM = Problem(0.5, 2.0, 0.4, 0.75**2, steps=2)
SMALL = Recipe(lambda_u=1e-3)
"""Little new noise: extended precision is quick."""

RECIPES = (Recipe(), Recipe(threshold=0.5), Recipe(sharpness=math.inf))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("t", [0, 2])
def test_a_solved_step_is_confirmed_and_a_moved_one_is_not(recipe, t):
    step, z = equations(solve(PROBLEM, recipe), t)
    assert judged(step, z, 1e-12)[1] == "confirmed"
    verdict = independent.correction(step, z + np.array([0, 1e-5, 0, 0, 0]))
    assert 1e-7 < verdict.distance < 1e-4
    assert word(verdict, 1e-12) == "wrong"
    assert word(verdict, 1e-4) == "covered"


def test_a_gross_error_is_wrong_even_without_extended_precision(monkeypatch):
    step, z = equations(solve(PROBLEM, RECIPES[0]), 2)
    monkeypatch.setattr(judging, "PATIENCE", 1e-3)
    assert judged(step, z + np.array([0, 1e-4, 0, 0, 0]), 1e-12)[1] == "wrong"
    assert judged(step, z + np.array([0, 1e-7, 0, 0, 0]), 1e-12)[1] == "undecided"


def test_both_engines_find_the_same_root():
    """One has differences and doubles, the other complex steps and long doubles."""
    step, z = equations(solve(PROBLEM, SMALL), 1)
    moved = z * (1 + 1e-6)
    first, second = independent.correction(step, moved), extended.correction(step, moved)
    np.testing.assert_allclose(first.z, second.z.astype(float), atol=1e-9)
    np.testing.assert_allclose(first.z, z, atol=1e-8)


def test_the_derivatives_of_complex_steps_are_those_of_differences():
    step, z = equations(solve(PROBLEM, SMALL), 1)
    exact = extended.at(extended.extended(step), z).jacobian.astype(float)
    np.testing.assert_allclose(exact, independent.jacobian(step, z), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("strength", [0.1, 30.0])
def test_proximal_points_solve_their_equation(strength):
    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    u = prox_soft(0.7, -2.0, strength)
    assert u + strength * (sigmoid(0.7 + u) - sigmoid(0.7)) == pytest.approx(-2.0, abs=1e-13)
    x = prox_hard(1.0, 0.3, strength)
    assert x + strength * (sigmoid(x) - 1.0) == pytest.approx(0.3, abs=1e-13)


@pytest.mark.parametrize("scale", [0.02, 0.2, 0.8, 3.0])
def test_averages_over_the_noise_are_those_of_a_dense_rule(scale):
    """Every rule of `inner_logistic`, against a trapezoid over the noise."""
    noise = np.linspace(-9, 9, 1801)
    weight = np.exp(-0.5 * noise**2)
    x = np.array([prox_hard(1.0, 0.4 + scale * g, 2.0) for g in noise])
    f = 1 / (1 + np.exp(-x)) - 1
    out = np.empty(3)
    inner_logistic(Label(False, 1.0, 0.4, scale, 2.0), 1e-11, out)
    assert out[0] == pytest.approx(float(f @ weight / weight.sum()), rel=1e-10)
    assert out[1] == pytest.approx(float(f**2 @ weight / weight.sum()), rel=1e-10)


def test_hubers_averages_are_those_of_a_dense_rule():
    noise = np.linspace(-9, 9, 200_001)
    weight = np.exp(-0.5 * noise**2)
    f = np.clip((0.3 + 1.4 * noise) / (1 + 0.5), -0.8, 0.8)
    out = np.empty(3)
    inner_huber(0.3, 1.4, 0.5, 0.8, out)
    assert out[0] == pytest.approx(float(f @ weight / weight.sum()), abs=1e-8)
    assert out[1] == pytest.approx(float(f**2 @ weight / weight.sum()), abs=1e-8)


def test_a_random_problem_depends_on_seed_and_number_alone():
    assert draw(3, 5) == draw(3, 5)
    assert draw(3, 5) != draw(3, 6)


def test_the_time_of_a_check_is_limited():
    def endless() -> None:
        while True:
            pass

    with pytest.raises(TimeoutError), limited(0.05):
        endless()


def test_scores_of_finite_systems_leave_out_what_falls_as_one_over_n():
    off = {500: 0.01, 1000: 0.005, 2000: 0.0025}
    rows = [
        {"features": n, "seeds": 16, "off": {"q at 1": one}, "errors": {"q at 1": 1e-4}}
        for n, one in off.items()
    ]
    assert finite_classes.scores(rows)["q at 1"] < 1e-6
    assert finite_classes.scores(rows[:1])["q at 1"] > 4
    for row in rows:
        row["off"]["q at 1"] += 0.01
    assert finite_classes.scores(rows)["q at 1"] > 4
