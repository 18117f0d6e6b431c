"""The best ridges of a single step are the best of a grid over their whole range, too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve
from selftrain.paper.computations.single_shot import best


@pytest.mark.parametrize(
    ("rho", "delta", "alpha_u"),
    [(0.5, 1.0, 2**-2.5), (0.5, 1.0, 2.0), (0.495, 0.75**2, 0.25), (0.4, 1.0, 1.0)],
)
def test_no_pair_of_a_grid_is_better(rho: float, delta: float, alpha_u: float) -> None:
    problem = Problem(0.5, alpha_u, rho, delta, steps=1)
    pairs = itertools.product(np.logspace(-4, 4, 17), repeat=2)
    least = min(solve(problem, Recipe(*pair), 1e-7).error[-1] for pair in pairs)
    _, run = best(1e4, alpha_l=0.5, alpha_u=alpha_u, rho=rho, delta=delta)
    assert run.error[-1] <= least + 1e-8
