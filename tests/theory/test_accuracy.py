"""What is said of the accuracy of a run, against runs that show it."""

from __future__ import annotations

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, Trajectory, solve
from selftrain.theory.accuracy import ROUNDING, carry_directions

SHARPENED = Recipe(0.05, 0.05, threshold=0.7, sharpness=2.0)
MODES = Clusters(np.linspace(0.6, 0.1, 8), np.geomspace(0.1, 2.0, 8))
PAIR = Clusters(MODES.mean, (MODES.covariance, MODES.covariance[::-1]))
TURNED = np.array([[1.0, 0.4, 0.1], [0.4, 0.8, -0.2], [0.1, -0.2, 0.5]])
MATRICES = Clusters([0.8, 0.5, 0.1], (TURNED, TURNED[::-1, ::-1]))


def apart(one: Trajectory, other: Trajectory) -> np.ndarray:
    """Relative distance of the states, step by step."""
    along = np.abs(one.m - other.m) / other.problem.test_clusters.length
    weights = np.maximum(along, np.abs(np.sqrt(one.v) - np.sqrt(other.v)))
    logits = np.abs(other.bias) + np.sqrt(other.logit_variances).max(axis=1)
    return np.maximum(weights / np.sqrt(other.q), np.abs(one.bias - other.bias) / logits)


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
        (Problem(0.5, 2.0, 0.4, clusters=MODES, steps=100), Recipe(lambda_u=3e-3)),
        (Problem(0.5, 2.0, 0.5, clusters=MODES, steps=40), SHARPENED),
        (Problem(0.5, 2.0, 0.4, clusters=PAIR, steps=16), Recipe(threshold=0.4)),
        (Problem(0.5, 2.0, 0.4, clusters=MATRICES, steps=6), Recipe(annealing=0.2)),
    ],
    ids=[
        "reference", "long", "balanced", "squared", "fixed bias", "modes", "balanced modes",
        "two covariances", "matrices",
    ],
)  # fmt: skip
def test_it_holds_and_is_no_scare(problem: Problem, recipe: Recipe) -> None:
    """A loose run is as near to a tight one as it says; a tight one says that it is tight."""
    tight = solve(problem, recipe, tolerance=1e-12)
    loose = solve(problem, recipe, tolerance=1e-6)
    assert (apart(loose, tight) <= loose.accuracy + tight.accuracy).all()
    assert tight.accuracy[-1] < 1e-7


def test_errors_of_many_steps_add_up() -> None:
    """A long run at its fixed point: the errors of thousands of steps add up, one by one."""
    run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=16386), Recipe(lambda_u=1e-5))
    last = run.accuracy[-4:]
    assert last.min() > 100 * run.stats.accuracy.max()
    assert np.abs(np.diff(last) / last[0]).max() < 1e-3


@pytest.mark.parametrize("tolerance", [1e-12, 1e-6])
@pytest.mark.parametrize("recipe", [Recipe(), SHARPENED, Recipe(fix_bias=True, sharpness=1.5)])
def test_directions_of_one_mode_are_the_state(recipe: Recipe, tolerance: float) -> None:
    """Errors of the law of a single mode, carried along directions, are those of (m, v, B)."""
    run = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=24), recipe, tolerance)
    good = slice(run.good_steps)
    own = np.maximum(run.stats.accuracy[good], ROUNDING)
    found = carry_directions(run, run.good_steps - 1, own)
    np.testing.assert_allclose(found / run.accuracy[good], 1.2, rtol=0.35)


@pytest.mark.parametrize("clusters", [MODES, PAIR, MATRICES], ids=["modes", "pair", "matrices"])
def test_an_error_in_the_law_is_what_the_next_steps_make_of_it(clusters: Clusters) -> None:
    """A change of a first ridge is an error of the first step: the steps after it carry the change
    within what is said of an error of that size, and not far below it.
    """
    problem = Problem(0.5, 2.0, 0.4, clusters=clusters, steps=8)
    run, size = solve(problem, Recipe(), 1e-13), 1e-5
    moved = apart(solve(problem, Recipe(0.05 * (1 + size)), 1e-13), run)
    own = np.where(np.arange(9) == 0, moved[0], 1e-3 * moved[0])
    said = carry_directions(run, 8, own)
    assert (moved <= 2.0 * said).all()
    assert (said <= 30.0 * moved.max()).all()


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
