"""The slower and surer ways to a step, forced, against the solution of the march."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.arrays import Array
from selftrain.errors import ConvergenceError
from selftrain.theory.engines.logistic.engine import SupervisedStage
from selftrain.theory.solve import stages
from selftrain.theory.state import unknowns_at
from selftrain.theory.step import solver
from selftrain.theory.step.convex import eliminate_chi, objective
from selftrain.theory.step.solver import solve_stage
from selftrain.theory.step.stage import Counter

EXPONENT, TOLERANCE = math.log(1e12), 1e-10
PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=3)
RECIPES = {
    "soft": Recipe(),
    "small ridge": Recipe(lambda_u=1e-4),
    "large ridge": Recipe(lambda_l=50.0, lambda_u=50.0),
    "selection": Recipe(threshold=0.7),
    "hard": Recipe(sharpness=math.inf),
    "annealed, bias held": Recipe(lambda_u=0.01, annealing=1.0, fix_bias=True),
}
WILD = (
    np.array([1e3, -1e3, 50.0, 12.0, -20.0]),
    np.array([300.0, 40.0, -3.0, 5.8, 9.0]),
    np.array([0.0, 0.0, 0.0, -60.0, 40.0]),
)


class Started:
    """A stage whose starting points are given."""

    def __init__(self, stage: Any, *points: Array):
        self._stage, self._points = stage, points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    def starts(self) -> Iterator[tuple[str, Array]]:
        for point in self._points:
            yield "given", point.copy()


def steps(name: str) -> Iterator[tuple[Trajectory, int, Any, Array]]:
    run = solve(PROBLEM, RECIPES[name])
    for t, stage in enumerate(stages(run, range(run.good_steps))):
        yield run, t, stage, unknowns_at(run, t, stage.frame)


def assert_same(found: Array, z: Array, stage: Any) -> None:
    norm = math.hypot(stage.frame.offset + z[0], math.sqrt(stage.frame.nu2) * z[1], math.exp(z[3]))
    np.testing.assert_allclose(found[:3], z[:3], atol=1e-8 * (norm + abs(z[2])))
    np.testing.assert_allclose(found[3:], z[3:], atol=1e-8)


@pytest.mark.parametrize("name", RECIPES)
def test_continuation_in_the_ridge(name: str) -> None:
    for _, _, stage, z in steps(name):
        found = solve_stage(Started(stage), EXPONENT, TOLERANCE)
        assert found.start == "continuation"
        assert found.accuracy <= TOLERANCE
        assert_same(found.z, z, stage)


@pytest.mark.parametrize("name", RECIPES)
def test_newton_on_the_convex_objective(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "WAYS", solver.WAYS[1:])
    for _, _, stage, z in steps(name):
        found = solve_stage(Started(stage), EXPONENT, TOLERANCE)
        assert found.start == "convex"
        assert found.accuracy <= TOLERANCE
        assert_same(found.z, z, stage)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("wild", range(len(WILD)))
def test_a_wild_start_changes_nothing(name: str, wild: int) -> None:
    """Whatever Newton's method does from there, only the root is accepted."""
    for _, t, stage, z in steps(name):
        point = WILD[wild].copy()
        fixed = not math.isnan(stage.frame.fixed_bias)
        point[2] = z[2] if fixed else point[2]
        point[0] = 0.0 if t == 0 else point[0]
        found = solve_stage(Started(stage, point), EXPONENT, TOLERANCE)
        assert_same(found.z, z, stage)


def test_the_objective_is_stationary_at_the_solution_and_larger_elsewhere() -> None:
    """G of the Gaussian min-max form, with chi eliminated, is the convex function it should be."""
    rng = np.random.default_rng(1)
    for name in ("soft", "selection", "hard"):
        for _, _, stage, z in steps(name):
            count = Counter(stage)
            lowest = objective(count, z, EXPONENT)
            for size in (1e-2, 0.3):
                moved = z + size * rng.standard_normal(5)
                moved[0] = z[0] if stage.frame.first else moved[0]
                there = eliminate_chi(count, moved, EXPONENT)
                assert there is not None
                assert objective(count, there, EXPONENT) > lowest


def test_when_every_way_fails_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "WAYS", ())
    _, _, stage, _ = list(steps("soft"))[1]
    with pytest.raises(ConvergenceError, match="no solution was confirmed") as caught:
        solve_stage(Started(stage), EXPONENT, TOLERANCE)
    assert caught.value.step == 1


def test_a_root_of_a_coarse_rule_only_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A way that returns a point which is no solution is overruled by the refined rule."""
    _, _, stage, z = list(steps("soft"))[1]
    wrong = z + np.array([0.1, 0.0, 0.0, 0.2, 0.0])
    monkeypatch.setattr(solver, "newton", lambda *_, **__: wrong)
    monkeypatch.setattr(solver, "WAYS", ())
    with pytest.raises(ConvergenceError):
        solve_stage(Started(stage, wrong), EXPONENT, TOLERANCE)


def test_evaluations_are_counted() -> None:
    _, _, stage, z = next(steps("soft"))
    count = Counter(stage)
    for expected in (1, 2):
        count(z, stage.frame.ridge, EXPONENT)
        assert count.evaluations == expected
    assert count.points > 0


@pytest.mark.parametrize(("ridge", "named"), [(0.0, True), (1.0, False)])
def test_only_without_ridge_the_ridge_is_named(ridge: float, named: bool) -> None:
    stage = SupervisedStage(np.array([[0.5], [0.4], [0.5]]), ridge)
    assert ("lambda_l > 0" in solver._hint(stage)) == named
