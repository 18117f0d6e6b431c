"""Problems that an earlier rule, start or form of the unknowns could not solve; each is confirmed
now.
"""

import math

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve

CASES = {
    "labels nearly of one class, strong ridge after a weak one": (
        Problem(12.4449, 0.305875, 0.0218736, 0.184719, 2, delta_u=(8.23146, 3.02375)),
        Recipe(lambda_l=751.529, lambda_u=(7.63679e-05, 129.363), annealing=0.9701),
    ),
    "weights that fall by ten decades": (
        Problem(0.518741, 1.15766, 0.0652313, 1.383, 7),
        Recipe(lambda_l=0.00666029, lambda_u=424.71, annealing=0.766859),
    ),
    "the same with a fixed bias": (
        Problem(3.77079, 28.6551, 0.0626455, 4.01556, 4),
        Recipe(1.03769e-05, 21.0454, threshold=1.81652, fix_bias=True),
    ),
    "very sharp labels": (
        Problem(0.5, 2.0, 0.4, 0.5625, 3),
        Recipe(sharpness=1e6, fix_bias=True),
    ),
    "very sharp labels far from the plane": (
        Problem(0.258, 5.13, 0.003, 0.434, 1),
        Recipe(lambda_l=2.0, sharpness=1e5, fix_bias=True),
    ),
    "a prox that is free only at the ends": (
        Problem(0.0961521, 1.32802, 0.101443, 2.58788, 4),
        Recipe(0.351796, 1.45796e-06, annealing=0.52745, fix_bias=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_confirmed(name: str) -> None:
    run = solve(*CASES[name])
    solved = run.stats.accuracy[: run.good_steps]
    assert np.nanmax(solved) < 1e-8
    assert run.good_steps == run.problem.steps + 1 or run.collapsed_at == run.good_steps


def test_a_rule_that_is_too_long_is_not_an_empty_selection() -> None:
    run = solve(
        Problem(0.2, 30.0, 0.974, 5.48, 1, rho_u=0.443), Recipe(lambda_l=30.0, sharpness=1e6)
    )
    hard = solve(
        Problem(0.2, 30.0, 0.974, 5.48, 1, rho_u=0.443), Recipe(lambda_l=30.0, sharpness=math.inf)
    )
    assert run.collapsed_at == hard.collapsed_at
