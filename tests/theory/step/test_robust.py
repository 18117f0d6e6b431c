"""One step as an object: its Jacobian, where Newton's method begins, and what counts as a root."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, Trajectory, solve
from selftrain.arrays import Array
from selftrain.errors import ConvergenceError
from selftrain.theory.geometry.modes import BIAS, FIRST, HAT_M
from selftrain.theory.step.equations import solve_in_place
from selftrain.theory.step.prediction import unknown_scales
from selftrain.theory.step.robust import StepEquations, solve_step
from selftrain.theory.step_inputs import StepInputs

EXPONENT, TOLERANCE = math.log(1e12), 1e-10
PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=3)
PAIR = Clusters([0.8, 0.5, 0.1], ([0.5, 1.0, 2.0], [0.9, 0.4, 0.3]))
RECIPES = {
    "soft": Recipe(),
    "small ridge": Recipe(lambda_u=1e-4),
    "large ridge": Recipe(lambda_l=50.0, lambda_u=50.0),
    "selection": Recipe(threshold=0.7),
    "hard": Recipe(sharpness=math.inf),
    "annealed, bias held": Recipe(lambda_u=0.01, annealing=1.0, fix_bias=True),
}


def steps(problem: Problem, recipe: Recipe) -> Iterator[tuple[StepEquations, Array]]:
    """Every step of a solved run, and its root."""
    run: Trajectory = solve(problem, recipe)
    inputs = StepInputs(problem, recipe)
    assert run.unknowns is not None
    for t in range(run.good_steps):
        yield inputs.equations(t, *run.model_before(t)), run.unknowns[t]


def assert_same(found: Array, x: Array, equations: StepEquations) -> None:
    logs = slice(FIRST + equations.groups, None)
    np.testing.assert_allclose(found[logs], x[logs], atol=1e-7)
    scale = np.exp(x[equations.log_q]).max() * float(equations.labels.roots.max())
    np.testing.assert_allclose(found[HAT_M], x[HAT_M], rtol=1e-7, atol=1e-8 * scale)
    np.testing.assert_allclose(found[BIAS], x[BIAS], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("geometry", ["sphere", "two covariances"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_jacobian(name: str, geometry: str, loss: str) -> None:
    """Against differences of fourth order of the residuals, a little off the root."""
    problem = PROBLEM.replace(loss=loss, steps=1)
    if geometry != "sphere":
        problem = problem.replace(delta=None, clusters=PAIR)
    for equations, root in steps(problem, RECIPES[name]):
        scale = np.empty(root.size)
        unknown_scales(root, equations.labels, scale)
        x = root + 0.01 * scale

        def residuals(x: Array, equations: StepEquations = equations) -> Array:
            at = equations.evaluate(x, equations.ridge, 32.0)
            assert at is not None
            return at[1][:, 0]

        at = equations.evaluate(x, equations.ridge, 32.0)
        assert at is not None
        found = at[1][:, 1:] * scale
        for j, move in enumerate(1e-5 * np.diag(scale)):
            if equations.t == 0 and FIRST <= j < FIRST + equations.groups:
                continue  # step 0 has no old weights
            near, far = (residuals(x + w * move) - residuals(x - w * move) for w in (1.0, 2.0))
            expected = (8.0 * near - far) / 12e-5
            gap = np.abs(found[:, j] - expected) / np.abs(found).max(axis=1)
            assert gap.max() < 1e-6, (equations.t, j)


@pytest.mark.parametrize("name", RECIPES)
def test_random_starts_end_in_the_same_root(name: str) -> None:
    """The step is convex: whatever Newton's method does from there, only the root is accepted."""
    rng = np.random.default_rng(5)
    for equations, root in steps(PROBLEM, RECIPES[name]):
        for size in (0.3, 3.0, 12.0):
            start = root + size * rng.standard_normal(root.size)
            start[BIAS] = root[BIAS] if not math.isnan(equations.fixed_bias) else start[BIAS]
            found = solve_step(equations, EXPONENT, TOLERANCE, start)
            assert found.accuracy <= TOLERANCE
            assert_same(found.x, root, equations)


@pytest.mark.parametrize("name", RECIPES)
def test_continuation_in_the_ridge(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepEquations, "starts", lambda *_: iter(()))
    for equations, root in steps(PROBLEM.replace(steps=2), RECIPES[name]):
        found = solve_step(equations, EXPONENT, TOLERANCE)
        assert found.start == "continuation"
        assert_same(found.x, root, equations)


@pytest.mark.parametrize("ridge", [1e3, 1e5])
def test_the_start_for_a_large_ridge(ridge: float) -> None:
    """The state without weights is the root, but for terms of order 1/lambda."""
    recipe = Recipe(lambda_l=ridge, lambda_u=ridge, threshold=0.3)
    for equations, root in steps(PROBLEM.replace(steps=1, rho=0.5), recipe):
        start = equations.explicit()
        assert start[HAT_M] == pytest.approx(root[HAT_M], rel=10 / ridge)
        np.testing.assert_allclose(start[FIRST + 2 :], root[FIRST + 2 :], atol=10 / ridge)


@pytest.mark.parametrize("ridge", [1e-3, 1e-5])
@pytest.mark.parametrize("fix_bias", [False, True])
def test_the_start_for_a_small_ridge(ridge: float, fix_bias: bool) -> None:
    """Nothing moves: the stiffness is that of the root, but for terms of order lambda."""
    recipe = Recipe(lambda_u=ridge, fix_bias=fix_bias)
    (first, _), (equations, root) = steps(PROBLEM.replace(alpha_u=3.0, steps=1), recipe)
    assert first.no_update() is None
    start = equations.no_update()
    assert start is not None
    np.testing.assert_allclose(
        start[equations.log_q], root[equations.log_q], atol=2e-3 + 100 * ridge
    )
    assert abs(start[BIAS] - root[BIAS]) < 100 * ridge


def test_a_large_ridge_and_hard_labels_have_no_such_start() -> None:
    for recipe in (Recipe(lambda_u=50.0), Recipe(lambda_u=1e-4, sharpness=math.inf)):
        _, (equations, _) = steps(PROBLEM.replace(steps=1), recipe)
        assert equations.no_update() is None


def test_a_root_of_a_rough_rule_only_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A way that returns a point which is no solution is overruled by the refined rule."""
    _, (equations, root) = steps(PROBLEM.replace(steps=1), Recipe())
    monkeypatch.setattr(StepEquations, "newton", lambda *_, **__: root + 0.1)
    with pytest.raises(ConvergenceError, match="no solution was confirmed") as caught:
        solve_step(equations, EXPONENT, TOLERANCE)
    assert caught.value.step == 1


def test_a_rule_that_lies_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Averages that are wrong on all rules but the refined one: its root is taken, not theirs."""
    _, (equations, root) = steps(PROBLEM.replace(steps=1), Recipe())
    honest = equations.averages.at

    def lying(at: Any, exponent: float, with_loss: bool = False) -> Any:
        found = honest(at, exponent, with_loss)
        if found is not None and exponent < EXPONENT + 5.0:
            found[0].sf *= 1.0 + 1e-6
        return found

    monkeypatch.setattr(equations.averages, "at", lying)
    found = solve_step(equations, EXPONENT, TOLERANCE)
    assert found.accuracy <= TOLERANCE
    assert found.x[HAT_M] == pytest.approx(root[HAT_M], rel=1e-9)


def test_a_refined_rule_without_averages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule a little finer confirms instead."""
    _, (equations, root) = steps(PROBLEM.replace(steps=1), Recipe())
    honest = equations.averages.at
    limited = lambda at, rule, *more: honest(at, rule, *more) if rule < 34.0 else None  # noqa: E731
    monkeypatch.setattr(equations.averages, "at", limited)
    found = solve_step(equations, EXPONENT, TOLERANCE)
    assert found.accuracy <= TOLERANCE
    assert_same(found.x, root, equations)


def test_linear_equations_of_any_scale() -> None:
    """Rows of very different size, and a zero where the first pivot would be."""
    random = np.random.default_rng(3)
    matrix, exact = random.standard_normal((5, 5)), random.standard_normal(5)
    matrix[0, 0] = matrix[3, 1] = 0.0
    matrix *= np.array([[1e-12], [1.0], [1e9], [1e-3], [1.0]])
    system = np.column_stack([matrix @ exact, matrix])
    assert solve_in_place(system)
    np.testing.assert_allclose(system[:, 0], exact, rtol=1e-11)


@pytest.mark.parametrize(
    "matrix",
    [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [1.0, 1.0]], [[np.inf, 1.0], [1.0, 1.0]]],
    ids=["singular", "empty row", "infinite"],
)
def test_what_cannot_be_solved(matrix: list[list[float]]) -> None:
    assert not solve_in_place(np.column_stack([np.ones(2), np.array(matrix)]))
