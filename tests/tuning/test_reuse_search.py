"""Tuning with data reuse."""

import numpy as np
import pytest

from selftrain import Problem, Recipe, optimize, solve
from selftrain.errors import InvalidInput

PROBLEM = Problem(
    0.5, 2.0, 0.4, 0.75**2, steps=3, loss="squared", batches="reused", keep_labeled=0.3
)


def test_no_recipe_around_is_better() -> None:
    best = optimize(PROBLEM, ("lambda_l", "lambda_u"), start=Recipe())
    assert best.is_minimum
    factors = np.exp(np.array([-0.3, 0.0, 0.3]))
    for left in factors:
        for right in factors:
            ridges = (best.recipe.lambda_l * left, best.recipe.lambda_u * right)
            if max(ridges) <= 0.1:
                assert solve(PROBLEM, Recipe(*ridges)).error[-1] >= best.error - 1e-9


def test_one_replicate_leads_to_the_optimum_of_many() -> None:
    problem = PROBLEM.replace(loss="logistic", steps=2)
    best = optimize(problem, ("lambda_u",), start=Recipe(), tolerance=1e-4)
    for factor in (0.7, 1.4):
        ridge = best.recipe.lambda_u * factor
        if ridge <= 0.1:
            other = solve(problem, best.recipe.replace(lambda_u=ridge), tolerance=1e-4)
            assert other.error[-1] > best.error


def test_schedules_are_refused() -> None:
    with pytest.raises(InvalidInput, match="with data reuse or K classes: constants are optimised"):
        optimize(PROBLEM, schedule=("lambda_u",))
