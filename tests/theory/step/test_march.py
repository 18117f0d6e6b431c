"""Steps in compiled code against the slower road, which a run that starts from another takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, solve

NAMES = ("m", "q", "v", "bias", "error", "cosine", "overlap", "chi", "q_hat", "m_hat", "r_hat")


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize(
    "choice",
    [
        {"threshold": 0.4},
        {"annealing": 0.1, "fix_bias": True},
        {"sharpness": math.inf},
        {"lambda_u": 1e-3, "sharpness": 1.2},
    ],
)
def test_both_roads_have_the_same_numbers(choice: dict[str, object], pair: bool) -> None:
    draw = np.random.default_rng(3)
    mean, one, other = draw.normal(size=(3, 12))
    noise = (np.exp(one), np.exp(other)) if pair else np.exp(one)
    problem = Problem(0.8, 2.0, 0.35, clusters=Clusters(0.5 * mean, noise), steps=10)
    recipe = Recipe(**{"lambda_l": 0.05, "lambda_u": 0.05, **choice})
    near = solve(problem, recipe.replace(lambda_l=0.06))
    slow, fast = solve(problem, recipe, warm_start=near), solve(problem, recipe)
    assert fast.collapsed_at == slow.collapsed_at
    for name in NAMES:
        ours, theirs = getattr(fast, name), getattr(slow, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-11, err_msg=name)
    means = fast.weight_means, slow.weight_means
    np.testing.assert_allclose(*means, rtol=1e-7, atol=1e-10)
