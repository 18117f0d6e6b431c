"""Cases that failed in silence in earlier attempts, and corners of the range of problems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, simulate, solve
from selftrain.losses import Logistic
from selftrain.paper.algorithm1 import picard

REFERENCE = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)


@pytest.mark.parametrize("ridge", [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_first_step_at_small_ridge_stays_near_the_supervised_one(ridge: float) -> None:
    """Started from the conjugates of step 0, this step wanders to q ~ 1e5 and stays there."""
    run = solve(REFERENCE.replace(steps=1), Recipe(lambda_u=ridge))
    assert run.q[1] == pytest.approx(run.q[0], rel=30 * ridge)
    assert run.m[1] == pytest.approx(run.m[0], rel=10 * ridge)
    assert run.bias[1] == pytest.approx(run.bias[0], rel=2 * ridge)
    assert run.overlap[1] == pytest.approx(run.q[0], rel=20 * ridge)


def test_first_step_at_small_ridge_by_damped_iteration() -> None:
    """The paper's procedure, slow but sure when it starts from no update, agrees."""
    problem, recipe = REFERENCE.replace(steps=1), Recipe(lambda_u=1e-3)
    run, slow = solve(problem, recipe), picard(problem, recipe, start="no-update", tolerance=1e-9)
    for name in ("q", "m", "bias", "chi", "overlap"):
        assert getattr(run, name)[1] == pytest.approx(getattr(slow, name)[1], rel=1e-6)


def test_annealed_step_with_held_bias_as_simulated() -> None:
    """Newton's method on the conjugates walked off to an error of 0.36 here."""
    problem = Problem(alpha_l=0.35, alpha_u=1.6, rho=0.45, delta=0.3, steps=1)
    recipe = Recipe(lambda_l=0.09, lambda_u=0.03, annealing=0.2, fix_bias=True)
    run = solve(problem, recipe)
    assert run.error[1] == pytest.approx(0.081, abs=5e-4)
    ensemble = simulate(problem, recipe, features=2048, seeds=24, probes=0)
    for name in ("q", "m", "error"):
        values = getattr(ensemble, name)[:, 1]
        spread = values.std(ddof=1) / math.sqrt(values.size)
        assert abs(values.mean() - getattr(run, name)[1]) < 4 * spread, name


def test_strong_proximal_map_as_simulated() -> None:
    """A proximal iteration that cycles at c = 39 once made the outer loop settle on nonsense."""
    problem = Problem(alpha_l=0.6, alpha_u=2.0, rho=0.35, delta=0.75**2, steps=0)
    run = solve(problem, Recipe(lambda_l=0.01))
    assert run.chi[0] * problem.delta == pytest.approx(39, abs=1)
    ensemble = simulate(problem, Recipe(lambda_l=0.01), features=2048, seeds=24, probes=0)
    for name in ("q", "m", "bias", "error"):
        values = getattr(ensemble, name)[:, 0]
        spread = values.std(ddof=1) / math.sqrt(values.size)
        assert abs(values.mean() - getattr(run, name)[0]) < 4 * spread, name


def test_hard_labels_collapse_at_step_8() -> None:
    run = solve(REFERENCE, Recipe(sharpness=math.inf))
    assert run.collapsed_at == 8
    assert run.good_steps == 8
    assert run.failure is None
    assert run.bias[7] < 0
    np.testing.assert_array_equal(run.error[8:], 0.4)
    for name in ("q", "m", "v", "bias", "chi", "overlap", "cosine", "train_loss"):
        assert np.isfinite(getattr(run, name)[1:8]).all()
        assert np.isnan(getattr(run, name)[8:]).all()
    mirrored = solve(REFERENCE.replace(rho=0.6), Recipe(sharpness=math.inf))
    assert mirrored.collapsed_at == 8
    assert mirrored.bias[7] > 0
    np.testing.assert_allclose(mirrored.error[8:], 0.4, rtol=1e-15)


def test_collapse_is_that_of_the_test_mixture() -> None:
    run = solve(REFERENCE.replace(test=(0.7, 1.0)), Recipe(sharpness=math.inf))
    np.testing.assert_array_equal(run.error[8:], 0.7)


def test_simulated_runs_collapse_too() -> None:
    """At finite size the last minority label is lost a little earlier than in the limit."""
    ensemble = simulate(REFERENCE, Recipe(sharpness=math.inf), features=1500, seeds=4, probes=0)
    assert np.all((ensemble.collapsed_at >= 5) & (ensemble.collapsed_at <= 8))


def test_a_held_bias_is_solved_on() -> None:
    run = solve(REFERENCE, Recipe(sharpness=math.inf, fix_bias=True))
    assert run.collapsed_at is None
    assert run.good_steps == 17


def test_weights_far_below_one_keep_their_accuracy() -> None:
    """At strong ridge and fixed bias every step divides the weights by 1e4, the cosine still
    grows.
    """
    problem = REFERENCE.replace(steps=20)
    run = solve(problem, Recipe(lambda_u=1e4, fix_bias=True))
    ratio = run.m[1:] / run.m[:-1]
    assert run.q[-1] < 1e-150
    assert ratio[-1] == pytest.approx(ratio[-2], rel=1e-9)
    assert np.all(np.diff(run.cosine) > -1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_balanced_classes_never_collapse(loss: str) -> None:
    """With rho = 1/2 the bias is zero by symmetry, however small the weights become."""
    problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.5, delta=0.75**2, steps=20, loss=loss)
    run = solve(problem, Recipe(lambda_u=1e4))
    assert run.collapsed_at is None
    assert run.error[-1] < run.error[0]


@pytest.mark.parametrize(
    ("rho", "annealing"), [(0.25, 1.0), (0.0625, 0.5)], ids=["rho 1/4", "rho 1/16"]
)
def test_a_step_on_the_verge_of_collapse(rho: float, annealing: float) -> None:
    """Sharpened labels nearly of one class: the new weights are 1e-11 of the old ones."""
    problem = Problem(alpha_l=1.0, alpha_u=1.0, rho=rho, delta=1.0, steps=4)
    run = solve(problem, Recipe(lambda_l=1.0, lambda_u=1.0, annealing=annealing))
    assert run.collapsed_at is not None
    assert np.nanmax(run.stats.accuracy) < 1e-8


@pytest.mark.parametrize(("rho", "log_ridge"), [(0.125, -5.0), (0.1875, -7.0)])
def test_selection_under_strong_noise(rho: float, log_ridge: float) -> None:
    problem = Problem(alpha_l=1.0, alpha_u=1.0, rho=rho, delta=math.exp(2.0), steps=4)
    recipe = Recipe(math.exp(log_ridge), math.exp(-2.0), threshold=1.0, fix_bias=True)
    run = solve(problem, recipe)
    assert run.good_steps == 5
    assert np.nanmax(run.stats.accuracy) < 1e-8


@pytest.mark.parametrize("sharpness", [1e4, 1e5, 1e6])
def test_very_sharp_labels_are_hard_labels(sharpness: float) -> None:
    problem = Problem(alpha_l=1.0, alpha_u=3.0, rho=0.5, delta=0.8, steps=2)
    recipe = Recipe(lambda_l=0.2, lambda_u=math.exp(-4.0))
    hard = solve(problem, recipe.replace(sharpness=math.inf))
    sharp = solve(problem, recipe.replace(sharpness=sharpness))
    np.testing.assert_allclose(sharp.m, hard.m, rtol=2.0 / sharpness)


@pytest.mark.parametrize(
    ("alpha_l", "delta", "steps", "recipe"),
    [
        (0.5, 2.0, 64, Recipe(0.05, 0.05, threshold=1.0, sharpness=math.inf)),
        (0.5, 2.0, 64, Recipe(0.05, 0.5, threshold=0.5, sharpness=2.0)),
        (0.5, 0.75**2, 16, Recipe(0.05, 10.0, sharpness=5.0)),
        (2.0, 0.75**2, 256, Recipe(0.05, 0.1)),
    ],
)
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_balanced_classes_have_no_bias_to_grow(
    alpha_l: float, delta: float, steps: int, recipe: Recipe, loss: str
) -> None:
    """Rounding of B, magnified step by step, once ended in one class."""
    problem = Problem(alpha_l, 2.0, 0.5, delta, steps=steps, loss=loss)
    run = solve(problem, recipe)
    held = solve(problem, recipe.replace(fix_bias=True))
    assert run.collapsed_at is None
    assert not run.bias.any()
    np.testing.assert_allclose(run.error, held.error, rtol=1e-9)


def test_a_loss_that_prefers_a_class_keeps_its_bias() -> None:
    class Skewed(Logistic):
        name = "skewed"

        def value(self, target: Any, logit: Any) -> Any:
            return super().value(target, logit) + 0.1 * logit

        def slope(self, target: Any, logit: Any) -> Any:
            return super().slope(target, logit) + 0.1

    run = solve(Problem(2.0, 2.0, 0.5, 0.75**2, steps=0, loss=Skewed()), Recipe(0.05))
    assert run.bias[0] < -0.1
