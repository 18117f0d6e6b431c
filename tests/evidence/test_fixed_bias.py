"""A fixed bias stays where it is, whatever the schedule of the labels does to the prediction."""

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve
from selftrain.losses import Logistic

SCHEDULE = [1.0, 1.7, 1.2, 3.0, 2.0, 1.0, 6.0, 1.5, np.inf, 1.1, 1.0, 1.0]


@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_irregular_sharpness(threshold):
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=len(SCHEDULE))
    recipe = Recipe(lambda_u=0.1, sharpness=SCHEDULE, threshold=threshold, fix_bias=True)
    run = solve(problem, recipe)
    assert np.ptp(run.bias) < 1e-12 * abs(run.bias[0])


class Own(Logistic):
    """The logistic loss as a user's: solved by the engine for any loss."""

    name = "own"


def test_engines_agree_on_irregular_sharpness():
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=6)
    recipe = Recipe(lambda_u=0.1, sharpness=SCHEDULE[:6], fix_bias=True)
    compiled = solve(problem, recipe)
    plain = solve(problem.replace(loss=Own()), recipe)
    for name in ("q", "m", "bias", "chi", "overlap", "train_loss"):
        np.testing.assert_allclose(
            getattr(plain, name), getattr(compiled, name), rtol=1e-8, err_msg=name
        )
