"""Derivatives where the prox is strong: a small ridge and few rows, near a collapse."""

import numpy as np
import pytest

from selftrain import Problem, Recipe, gradient, solve


def test_derivatives_of_a_strong_prox() -> None:
    """The values are those of `benchmarks/confirmation/independent.py`, carried forward from
    step to step; on the rule of the averages themselves they were off by 6e-6 to 1e-4.
    """
    problem = Problem(
        alpha_l=0.7669465701888776,
        alpha_u=0.1179663039083216,
        rho=0.4177389024165118,
        delta=6.544687795305798,
        steps=6,
        rho_u=0.11005639253417457,
        delta_u=17.237485459733442,
        test="labeled",
    )
    recipe = Recipe(
        lambda_l=0.009193632997782641,
        lambda_u=5.340456630460304e-06,
        threshold=0.1438483773255066,
        sharpness=5.801087730771431,
        annealing=0.5388181062706422,
    )
    run = solve(problem, recipe, tolerance=1e-12)
    assert run.collapsed_at == 5
    slope = gradient(run, "chi", 4)
    assert slope["lambda_l"] == pytest.approx(109.50126642404526, rel=1e-6)
    assert slope["alpha_l"] == pytest.approx(-11.94013650606392, rel=1e-6)
    assert slope["annealing"] == pytest.approx(-0.9951458858656883, rel=1e-6)
    assert np.atleast_1d(slope["sharpness"])[2] == pytest.approx(-0.07369179542615047, rel=1e-6)
