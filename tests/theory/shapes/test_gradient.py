"""Derivatives and the best recipe for clusters with a shape: those of the sphere where it is one,
and the conditions of a minimum.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from selftrain import Clusters, InvalidInput, Problem, Recipe, gradient, optimize, solve
from selftrain.theory.shapes.limits import best_linear_error

COMMON: dict[str, Any] = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "steps": 3}
SPHERE = Problem(**COMMON, delta=0.5)
SHAPED = Problem(**COMMON, clusters=Clusters(np.full(4, 0.5), 0.5))
PAIR = Clusters([1.0, 0.3, 0.0], ([1.0, 0.5, 2.0], [0.5, 1.0, 3.0]))


def test_the_gradient_of_the_sphere_is_the_adjoint_one() -> None:
    recipe = Recipe(0.05, 0.03, threshold=0.3, annealing=0.1)
    expected, found = gradient(solve(SPHERE, recipe)), gradient(solve(SHAPED, recipe))
    for name in ("lambda_l", "lambda_u", "threshold", "annealing", "alpha_l", "alpha_u", "rho_u"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-9, err_msg=name)
    with pytest.raises(Exception, match="clusters have a shape in its place"):
        found["delta"]


def test_all_steps_move_together_in_four_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search over constants asks for this at every point it tries."""
    recipe = Recipe(0.05, (0.03, 0.02, 0.05), threshold=0.3, sharpness=1.2, annealing=0.1)
    expected, found = gradient(solve(SPHERE, recipe)), gradient(solve(SHAPED, recipe))
    module = importlib.import_module("selftrain.theory.solve")
    really, runs = module.solve, []
    monkeypatch.setattr(module, "solve", lambda *a, **more: runs.append(a) or really(*a, **more))
    names = ("lambda_u", "threshold", "sharpness")
    for name in names:
        total = float(np.sum(expected[name]))
        assert found.total(name) == pytest.approx(total, rel=1e-6, abs=1e-9), name
        assert expected.total(name) == total
    assert len(runs) == 4 * len(names)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"over": ("lambda_l", "lambda_u")}, 3),
        ({"over": ("lambda_l",), "schedule": ("lambda_u",)}, 3),
        # long enough to start from the optimum of a shorter run
        ({"over": ("lambda_u",), "bounds": {"lambda_u": (1e-4, 2e-4)}}, 16),
    ],
)
def test_the_best_recipe_of_the_sphere(options: dict[str, Any], steps: int) -> None:
    options = options | {"starts": 1}
    expected = optimize(SPHERE.replace(steps=steps), **options)
    found = optimize(SHAPED.replace(steps=steps), **options)
    assert found.error == pytest.approx(expected.error, abs=1e-9)
    assert found.labeled_only.error == pytest.approx(expected.labeled_only.error, rel=1e-7)
    assert found.supervised.error == pytest.approx(expected.supervised.error, rel=1e-7)


def test_limits_of_a_shape_are_linear_and_bayes_is_refused() -> None:
    problem = Problem(alpha_l=2.0, alpha_u=4.0, rho=0.4, clusters=PAIR, steps=2)
    best = optimize(problem, over=("lambda_l", "lambda_u"), starts=1)
    assert best.active_bounds == {"lambda_l": "upper"}
    for near in ({"lambda_l": 0.09}, {"lambda_u": 0.06}, {"lambda_u": 0.07}):
        assert solve(problem, best.recipe.replace(**near)).error[-1] > best.error
    limit = PAIR.best_rule(0.4).error
    assert best.limit == best.against["best linear rule"] == limit < best.error
    assert f"{limit:.6g}" in best.advice
    assert len(best.plot().axes) == 3
    with pytest.raises(InvalidInput, match="spherical clusters only"):
        _ = best.bayes
    free = problem.replace(clusters=Clusters([1.0, 1.0], [1.0, 0.0]))
    assert best_linear_error(free) == 0.0
