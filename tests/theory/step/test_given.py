"""What a step is given does not depend on how it is asked for."""

import numpy as np
import pytest

from selftrain import Problem, Recipe
from selftrain.theory.step.given import given, given_at, schedule


@pytest.mark.parametrize("sharpness", [(1.0, 1.5, 2.0), np.inf])
def test_one_step_of_a_schedule(sharpness):
    problem = Problem(0.5, (2.0, 3.0, 4.0), 0.4, 0.5, steps=3, rho_u=(0.1, 0.2, 0.3), delta_u=0.7)
    recipe = Recipe(lambda_u=(0.3, 0.2, 0.1), threshold=(0.0, 0.4, 0.8), sharpness=sharpness)
    old, plan = np.array([1.2, 0.6, 0.64, -0.3]), schedule(problem, recipe)
    gamma = np.broadcast_to(sharpness, 3)
    for t in (1, 2, 3):
        i = t - 1
        batch = ((2.0, 3.0, 4.0)[i], (0.1, 0.2, 0.3)[i], 0.7)
        own = ((0.3, 0.2, 0.1)[i], (0.0, 0.4, 0.8)[i], gamma[i])
        expected = (*old, *batch, *own, False)
        assert given_at(problem, recipe, t, old) == pytest.approx(expected)
        assert given(plan, t, old) == pytest.approx(expected)
    assert (plan.alpha[0], plan.rho[0], plan.delta[0]) == (0.5, 0.4, 0.5)
    assert plan.ridge[0] == recipe.lambda_l
