"""Problems that are their own mirror images: a bias of zero remains zero."""

from __future__ import annotations

import math

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, solve
from selftrain.theory.geometry.mirror import own_mirrors

RECIPE = Recipe(0.05, 0.1)
FULL = np.array([[0.5, 0.1], [0.1, 0.5]])
ROUND = 0.75**2


@pytest.mark.parametrize("steps", [60, 400])
def test_two_equal_covariances_are_one(steps: int) -> None:
    """Against the sphere, where weights are small and where they underflow."""
    sphere = solve(Problem(0.5, 0.25, 0.5, ROUND, steps=steps), RECIPE)
    clusters = Clusters([1.0], ([ROUND], [ROUND]))
    run = solve(Problem(0.5, 0.25, 0.5, clusters=clusters, steps=steps), RECIPE)
    assert not run.bias.any()
    np.testing.assert_allclose(run.error, sphere.error, rtol=1e-8)
    np.testing.assert_allclose(run.one_minus_cosine, sphere.one_minus_cosine, rtol=1e-8)


def test_test_samples_have_no_part_in_the_training() -> None:
    """Only they have two covariances: the weights are those of the sphere."""
    sphere = solve(Problem(0.5, 0.25, 0.5, ROUND, steps=60), RECIPE)
    test = (0.5, Clusters([1.0], (0.4, 0.7)))
    clusters = Clusters([1.0], [ROUND])
    run = solve(Problem(0.5, 0.25, 0.5, clusters=clusters, steps=60, test=test), RECIPE)
    np.testing.assert_allclose(run.m, sphere.m, rtol=1e-8)
    assert not run.bias.any()


def test_two_equal_matrices_are_one() -> None:
    one, two = (
        solve(Problem(0.5, 0.25, 0.5, clusters=Clusters([1.0, 0.0], shape), steps=60), RECIPE)
        for shape in (FULL, (FULL, FULL))
    )
    np.testing.assert_allclose(two.error, one.error, rtol=1e-8)


@pytest.mark.parametrize(
    "clusters",
    [
        Clusters([1.0, 1.0], ([0.5, 1.0], [1.0, 0.5])),
        Clusters([1.0, -1.0], ([0.5, 1.0], [1.0, 0.5])),
        Clusters([1.0, 0.0, 0.6, 0.8], ([0.5, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.5])),
    ],
    ids=["exchanged", "turned", "copies"],
)
def test_features_exchange_the_classes(clusters: Clusters) -> None:
    """What one class is along one feature, the other is along another: both err alike, and the
    direction has the limit that one batch after another leaves unchanged.
    """
    run = solve(Problem(0.5, 0.25, 0.5, clusters=clusters, steps=120), RECIPE)
    assert run.collapsed_at is None
    assert not run.bias.any()
    negative, positive = run.class_errors[-1]
    assert negative == pytest.approx(positive, rel=1e-9)
    assert run.error[-1] == pytest.approx(run.error[60], rel=1e-9)
    assert run.error[-1] < 0.2
    # a bias that is held at zero is the same run by another way: nothing to round
    held = solve(run.problem, RECIPE.replace(fix_bias=True))
    np.testing.assert_allclose(run.error[1:12], held.error[1:12], rtol=1e-8)


def test_what_is_no_mirror_image() -> None:
    same = Clusters([1.0, 1.0], [0.5, 1.0])
    turned = Clusters([1.0, 1.0], ([0.5, 1.0], [1.0, 0.5]))
    longer = Clusters([1.0, math.sqrt(1.1)], ([0.5, 1.0], [1.0, 0.5]))
    wider = Clusters([1.0, 1.0], ([0.5, 1.0], [1.0, 0.6]))
    assert own_mirrors([turned, turned]).all()
    for other in (longer, wider):
        np.testing.assert_array_equal(own_mirrors([turned, other, turned]), [True, False, False])
    # each is its own image, but not by the same exchange of features
    np.testing.assert_array_equal(own_mirrors([same, turned]), [True, False])
