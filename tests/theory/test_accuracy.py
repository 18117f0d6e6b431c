"""What is said of the accuracy of a run, against runs that show it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.theory.accuracy import BLOCK

SHARPENED = Recipe(0.05, 0.05, threshold=0.7, sharpness=2.0)


def apart(one: Trajectory, other: Trajectory) -> np.ndarray:
    """Relative distance of the states, step by step."""
    norm = np.sqrt(other.q)
    weights = np.maximum(np.abs(one.m - other.m), np.abs(np.sqrt(one.v) - np.sqrt(other.v)))
    logits = np.abs(other.bias) + norm * math.sqrt(other.problem.delta)
    return np.maximum(weights / norm, np.abs(one.bias - other.bias) / logits)


def test_rounding_that_steps_magnify_is_reported() -> None:
    """A bias of 1e-15 that a hundred steps blow up: two runs of the same problem end apart, and the
    run says that they may.
    """
    problem = Problem(0.5, 2.0, 0.5 + 1e-15, 0.75**2, steps=100, test=(0.1, 0.5625))
    run = solve(problem, SHARPENED)
    other = solve(problem, SHARPENED, tolerance=1e-13)
    distance = np.nanmax(apart(run, other))
    assert distance > 1e-3
    assert run.summary()["step_accuracy"] <= 1e-10
    assert np.nanmax(run.accuracy) > distance / 10


@pytest.mark.parametrize(
    ("problem", "recipe"),
    [
        (Problem(0.5, 2.0, 0.4, 0.75**2, steps=16), Recipe()),
        (Problem(0.5, 2.0, 0.4, 0.75**2, steps=300), Recipe(lambda_u=1e-3)),
        (Problem(0.5, 2.0, 0.5, 0.75**2, steps=40), SHARPENED),
        (Problem(0.5, 2.0, 0.3, 0.75**2, steps=12, loss="squared"), Recipe(threshold=0.4)),
        (Problem(1.0, 3.0, 0.3, 1.0, steps=8), Recipe(fix_bias=True, annealing=0.2)),
    ],
    ids=["reference", "long", "balanced", "squared", "fixed bias"],
)
def test_it_holds_and_is_no_scare(problem: Problem, recipe: Recipe) -> None:
    """A loose run is as near to a tight one as it says; a tight one says that it is tight."""
    tight = solve(problem, recipe, tolerance=1e-12)
    loose = solve(problem, recipe, tolerance=1e-6)
    assert (apart(loose, tight) <= loose.accuracy + tight.accuracy).all()
    assert tight.accuracy[-1] < 1e-7


def test_errors_pass_from_block_to_block() -> None:
    """A long run at its fixed point: the errors of thousands of steps add up, and go on doing so at
    a block's end.
    """
    run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=BLOCK + 2), Recipe(lambda_u=1e-5))
    near = run.accuracy[BLOCK - 2 : BLOCK + 2]
    assert near.min() > 100 * run.stats.accuracy.max()
    assert np.abs(np.diff(near) / near[0]).max() < 1e-3


@pytest.mark.parametrize(
    ("problem", "recipe"),
    [
        (Problem(0.5, 2.0, 0.4, 0.75**2, steps=30), Recipe(0.05, 1e-3, sharpness=1e-10)),
        (Problem(0.5, 0.5, 0.5, 0.75**2, steps=600), Recipe(0.05, 0.1, threshold=0.5)),
    ],
    ids=["bias", "balanced"],
)
def test_weights_that_underflow(problem: Problem, recipe: Recipe) -> None:
    """The units of a step are not those of the step before it: where they change, an accuracy is
    still that of the directions and norms of two runs, and no scare.
    """
    tight, loose = (solve(problem, recipe, tolerance=value) for value in (1e-12, 1e-6))
    assert tight.fading is not None
    said = loose.accuracy + tight.accuracy
    assert (np.abs(loose.one_minus_cosine - tight.one_minus_cosine) <= 3 * said).all()
    assert (np.abs(loose.log_q - tight.log_q) <= 3 * said + 1e-15 * np.abs(tight.log_q)).all()
    assert tight.accuracy.max() < 1e-9
