"""Steps in compiled code against the slower road, which a run that starts from another takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, solve
from selftrain.theory.averages.batch import LOGISTIC, Batch, Labelling, explicit_start, room_for
from selftrain.theory.step.march import _both_classes
from selftrain.theory.tolerances import COLLAPSED_MASS

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


@pytest.mark.parametrize("seed", range(4))
def test_two_classes_of_labels_are_certain_only_if_they_are_there(seed: int) -> None:
    """The bound never contradicts the mass of the rarer class, and is no empty promise."""
    draw, room, x, certain = np.random.default_rng(seed), room_for(1), np.zeros(5), 0
    for _ in range(200):
        m, bias, root = 10.0 ** draw.uniform(-2, 2, 3)
        sharpness = math.inf if draw.random() < 0.3 else 10.0 ** draw.uniform(-0.5, 1)
        limit = 0.0 if draw.random() < 0.3 else 10.0 ** draw.uniform(-2, 1)
        groups = np.array([[2.0], [draw.uniform(0.001, 0.5)]])
        labels = Labelling(m, np.array([root]), -bias, 0.0)
        batch = Batch(groups, limit, sharpness, False, LOGISTIC, np.zeros(2))
        mass = explicit_start(labels, batch, math.nan, room, x)
        if _both_classes.py_func(labels, batch):  # type: ignore[attr-defined]  # of numba
            certain += 1
            assert mass > COLLAPSED_MASS or mass == -1.0, (labels, batch)
    assert certain > 50
