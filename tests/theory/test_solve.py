"""The function itself: what it refuses, how it fails, what it says about itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve
from selftrain.errors import ConvergenceError, EmptySelection, InvalidInput

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=4)
LOSSES = ("logistic", "squared")


@pytest.mark.parametrize("tolerance", [0.0, -1e-8, 1e-14, 0.1, math.nan, "small", True])
def test_tolerance_out_of_range(tolerance: Any) -> None:
    with pytest.raises(InvalidInput, match=r"tolerance must be between 1e-13 and 1e-3, got"):
        solve(PROBLEM, Recipe(), tolerance=tolerance)


def test_arguments_of_the_wrong_kind() -> None:
    with pytest.raises(InvalidInput, match=r"problem must be a selftrain\.Problem"):
        solve({"alpha_l": 0.5}, Recipe())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"recipe must be a selftrain\.Recipe"):
        solve(PROBLEM, PROBLEM)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"on_failure must be .*got .ignore."):
        solve(PROBLEM, Recipe(), on_failure="ignore")


def test_schedule_of_the_wrong_length() -> None:
    with pytest.raises(InvalidInput, match=r"lambda_u = .*one entry per step: 4, not 3"):
        solve(PROBLEM, Recipe(lambda_u=(0.1, 0.1, 0.1)))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fix_bias", [False, True])
def test_a_threshold_that_rejects_everything(loss: str, fix_bias: bool) -> None:
    recipe = Recipe(threshold=(0.0, 0.0, 60.0, 0.0), fix_bias=fix_bias)
    with pytest.raises(
        EmptySelection, match=r"step 3: the threshold 60 rejects every sample"
    ) as caught:
        solve(PROBLEM.replace(loss=loss), recipe)
    good = solve(PROBLEM.replace(loss=loss, steps=2), recipe.replace(threshold=0.0))
    assert caught.value.step == 3
    assert caught.value.state["m"] == pytest.approx(good.m[2], rel=1e-9)
    assert caught.value.state["bias"] == pytest.approx(good.bias[2], rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_that_fade(loss: str) -> None:
    """Without a bias that would decide, vanishing weights are no collapse: the run continues,
    unless one step takes more of them than rounding leaves.
    """
    problem = PROBLEM.replace(loss=loss, rho=0.5, steps=60)
    assert solve(problem, Recipe(lambda_u=1e4)).log_q[-1] < math.log(1e-280)
    run = solve(problem, Recipe(lambda_u=1e100), on_failure="partial")
    assert isinstance(run.failure, ConvergenceError)
    assert run.failure.step == run.good_steps <= 2
    large = solve(problem.replace(steps=1), Recipe(lambda_u=1e9))
    good = slice(run.good_steps)
    np.testing.assert_allclose(run.cosine[good], large.cosine[good], rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_that_vanish_against_a_held_bias(loss: str) -> None:
    run = solve(PROBLEM.replace(loss=loss, steps=50), Recipe(lambda_u=1e4, fix_bias=True))
    last = run.good_steps - 1
    assert run.collapsed_at == run.good_steps
    assert run.q[last] < 1e-248
    assert run.bias[last] == run.bias[0] < 0
    np.testing.assert_array_equal(run.error[run.collapsed_at :], 0.4)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_minimiser_without_ridge(loss: str) -> None:
    """Fewer points than features: separable (logistic), underdetermined (squared)."""
    with pytest.raises(ConvergenceError, match="without ridge") as caught:
        solve(PROBLEM.replace(loss=loss), Recipe(lambda_l=0.0))
    assert caught.value.step == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_many_points_need_no_ridge_at_step_zero(loss: str) -> None:
    problem = PROBLEM.replace(loss=loss, alpha_l=8.0, steps=0)
    bare, small = (solve(problem, Recipe(lambda_l=ridge)) for ridge in (0.0, 1e-8))
    assert bare.m[0] == pytest.approx(small.m[0], rel=1e-6)
    assert bare.chi[0] == pytest.approx(small.chi[0], rel=1e-5)


def test_partial_results_are_marked() -> None:
    recipe = Recipe(threshold=(0.0, 0.0, 60.0, 0.0))
    run = solve(PROBLEM, recipe, on_failure="partial")
    whole = solve(PROBLEM, Recipe())
    assert isinstance(run.failure, EmptySelection)
    assert run.failure.step == 3
    assert run.good_steps == 3
    assert run.collapsed_at is None
    assert "failed at step 3" in repr(run)
    for name in ("q", "m", "bias", "chi", "error", "cosine"):
        np.testing.assert_allclose(getattr(run, name)[:3], getattr(whole, name)[:3], rtol=1e-9)
        assert np.isnan(getattr(run, name)[3:]).all()
    assert run.stats.evaluations[3:].sum() == 0


def test_partial_result_without_a_single_good_step() -> None:
    run = solve(PROBLEM, Recipe(lambda_l=0.0), on_failure="partial")
    assert run.good_steps == 0
    assert np.isnan(run.error).all()
    assert "failed at step 0" in repr(run)


def test_steps_are_those_of_a_shorter_run() -> None:
    long, short = solve(PROBLEM, Recipe()), solve(PROBLEM.replace(steps=0), Recipe())
    assert short.m.shape == (1,)
    assert short.m[0] == long.m[0]
    assert np.isnan(short.fraction_selected).all()


def test_every_solution_tells_how_it_was_obtained() -> None:
    run = solve(PROBLEM.replace(steps=200), Recipe(lambda_u=1e-3))
    summary = run.stats.summary()
    assert summary["tolerance"] == 1e-10
    assert summary["step_accuracy"] <= 1e-10
    assert summary["confirmed_steps"] == 201
    assert summary["evaluations"] == run.stats.evaluations.sum()
    assert summary["evaluations_per_step"] < 1.4
    assert summary["starts"]["predicted"] > 190
    assert summary["nodes_max"] > 0
    assert (run.stats.accuracy <= 1e-10).all()


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(threshold=0.5), Recipe(sharpness=math.inf)])
def test_tolerance_is_what_it_says(recipe: Recipe) -> None:
    """Relative accuracy of the state, whatever it is asked to be."""
    problem = PROBLEM.replace(steps=6)
    exact = solve(problem, recipe, tolerance=1e-12)
    for tolerance in (1e-4, 1e-7):
        run = solve(problem, recipe, tolerance=tolerance)
        for name in ("m", "v", "chi"):
            np.testing.assert_allclose(
                getattr(run, name), getattr(exact, name), rtol=20 * tolerance
            )


def test_domain_shift_uses_each_batch_as_it_is() -> None:
    """A batch of step 2 that differs leaves steps 0 and 1 alone and changes step 2."""
    plain = solve(PROBLEM.replace(steps=2, test="labeled"), Recipe())
    shifted = solve(
        PROBLEM.replace(steps=2, test="labeled", rho_u=(0.4, 0.1), delta_u=(0.75**2, 2.0)), Recipe()
    )
    np.testing.assert_array_equal(plain.m[:2], shifted.m[:2])
    np.testing.assert_array_equal(plain.error[:2], shifted.error[:2])
    assert abs(plain.m[2] - shifted.m[2]) > 1e-3
