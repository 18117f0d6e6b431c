"""Runs on clusters with a shape come back from a file as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, Trajectory, gradient, solve
from selftrain.observables import SYMBOLS

MEAN = np.array([1.0, 0.5, 0.2, 0.0])
ONE = np.diag([1.0, 0.5, 2.0, 0.3]) + 0.1
OTHER = np.diag([0.4, 1.5, 0.7, 0.9]) - 0.05
SHAPES = {
    "diagonal": Clusters(
        MEAN, [1.0, 0.5, 2.0, 0.3], midpoint=[1.0, 2.0, 3.0, 4.0], names=tuple("abcd")
    ),
    "one matrix": Clusters(MEAN, ONE),
    "two matrices": Clusters(MEAN, (ONE, OTHER)),
    "reduced": Clusters(MEAN, ONE).reduce(3),
}
WORDS = {"alpha_l": 1.5, "alpha_u": 2.0, "rho": 0.4, "steps": 2}
RECIPE = Recipe(lambda_l=0.1, lambda_u=0.05, annealing=0.2)


def stored(run: Trajectory, folder: Path) -> Trajectory:
    return Trajectory.load(run.save(folder / "run.nc"))


def check(run: Trajectory, back: Trajectory) -> None:
    assert type(back) is type(run)
    assert back.problem == run.problem
    assert back.recipe == run.recipe
    for name in (*SYMBOLS, "accuracy", "class_errors", "auc"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name), err_msg=name)
    assert back.summary() == run.summary()
    assert repr(back) == repr(run)
    direction = np.arange(run.space.features, dtype=float)
    ours, theirs = back.weights.along(direction), run.weights.along(direction)
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    np.testing.assert_array_equal(ours.covariance, theirs.covariance)
    for y in (0, 1):
        for law in ("training_logits", "test_logits"):
            ours, theirs = getattr(back, law)(1), getattr(run, law)(1)
            assert ours.cdf(0.3, y=y) == theirs.cdf(0.3, y=y)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape(name: str, tmp_path: Path) -> None:
    run = solve(Problem(**WORDS, clusters=SHAPES[name]), RECIPE)
    back = stored(run, tmp_path)
    check(run, back)
    assert back.problem.clusters is not None
    assert back.problem.clusters.names == SHAPES[name].names
    assert gradient(back)["lambda_l"] == gradient(run)["lambda_l"]
    warm = solve(run.problem, run.recipe, warm_start=back)
    np.testing.assert_allclose(warm.error, run.error, rtol=1e-9)


def test_domain_shift_and_a_failed_step(tmp_path: Path) -> None:
    moved = Clusters(MEAN[::-1], [0.5, 1.0, 0.5, 2.0])
    problem = Problem(**WORDS, clusters=SHAPES["diagonal"], clusters_u=(SHAPES["diagonal"], moved))
    check(run := solve(problem, RECIPE), stored(run, tmp_path))
    recipe = RECIPE.replace(threshold=(0.0, 60.0))
    run = solve(Problem(**WORDS, clusters=SHAPES["one matrix"]), recipe, on_failure="partial")
    back = stored(run, tmp_path)
    check(run, back)
    assert str(back.failure) == str(run.failure) != "None"


@pytest.mark.parametrize("name", ["one matrix", "two matrices"])
def test_rows_used_again(name: str, tmp_path: Path) -> None:
    problem = Problem(**WORDS, clusters=SHAPES[name], batches="reused", keep_labeled=0.5)
    run = solve(problem, RECIPE, tolerance=1e-3)
    back = stored(run, tmp_path)
    check(run, back)
    np.testing.assert_array_equal(back.overlaps, run.overlaps)
    np.testing.assert_array_equal(back.response, run.response)
    assert 0 < float(np.max(back.accuracy)) <= 1e-3


def test_three_classes(tmp_path: Path) -> None:
    clusters = Clusters.simplex(3, distance=2.0, delta=0.5)
    problem = Problem(1.0, 2.0, (0.5, 0.3, 0.2), steps=1, label_noise=0.1, clusters=clusters)
    run = solve(problem, RECIPE, tolerance=1e-3)
    back = stored(run, tmp_path)
    assert type(back) is type(run)
    assert (back.problem, back.recipe, repr(back)) == (run.problem, run.recipe, repr(run))
    for name in (*run.TABLE, "q_matrix", "covariances", "overlaps", "chi", "error_accuracy"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name), err_msg=name)
    assert back.summary() == run.summary()
    assert back.training_logits(1).cdf(0.3, 1) == run.training_logits(1).cdf(0.3, 1)
    assert back.every(1).to_frame().equals(run.to_frame())
