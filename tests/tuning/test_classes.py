"""The best recipe of three classes, against scans with `solve` that know nothing of the search."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, optimize, solve, sweep
from selftrain.errors import InvalidInput
from selftrain.results import Optimum
from selftrain.sweeps import load

CLUSTERS = Clusters.simplex(3, distance=1.7, delta=0.5)
PROBLEM = Problem(1.0, 3.0, (0.7, 0.2, 0.1), steps=1, loss="squared", clusters=CLUSTERS)
BOUNDS = {"lambda_l": (1e-3, 1.0), "lambda_u": (1e-3, 1.0)}


def test_the_optimum_is_the_lowest_of_a_scan(tmp_path: Path) -> None:
    start = Recipe(lambda_l=0.2)
    best = optimize(PROBLEM, over=("lambda_u",), bounds={"lambda_u": (1e-3, 1.0)}, start=start)
    scan = {
        ridge: solve(PROBLEM, Recipe(lambda_l=0.2, lambda_u=ridge)).error[-1]
        for ridge in np.geomspace(1e-3, 1.0, 25).tolist()
    }
    lowest = min(scan, key=lambda ridge: scan[ridge])
    assert best.error <= scan[lowest] + 1e-9
    assert abs(math.log(best.recipe.lambda_u / lowest)) < math.log(1000) / 24
    alone = PROBLEM.replace(steps=0, test=None)
    ridge = best.labeled_only.ridge
    expected = solve(alone, Recipe(lambda_l=ridge)).error[0]
    assert best.labeled_only.error == pytest.approx(expected, abs=1e-9)
    for factor in (0.5, 2.0):
        assert solve(alone, Recipe(lambda_l=factor * ridge)).error[0] >= expected or (
            best.labeled_only.active_bound is not None
        )
    every = solve(alone.replace(alpha_l=4.0), Recipe(lambda_l=best.supervised.ridge))
    assert best.supervised.error == pytest.approx(every.error[0], abs=1e-9)
    assert best.limit < best.supervised.error < best.error
    assert f"{best.error:.6g}" in best.advice
    back = Optimum.load(best.save(tmp_path / "best.nc"))
    assert repr(back) == repr(best)
    np.testing.assert_array_equal(back.trajectory.confusion, best.trajectory.confusion)


def test_schedules_are_for_two_classes() -> None:
    with pytest.raises(InvalidInput, match="must be empty with data reuse or K classes"):
        optimize(PROBLEM, schedule=("lambda_u",))


def test_the_best_rule_is_that_of_drawn_samples() -> None:
    from selftrain.theory.bayes import best_linear_error

    random = np.random.default_rng(0)
    means = CLUSTERS.means
    kinds = random.choice(3, 400_000, p=PROBLEM.rho)
    samples = means[kinds] + math.sqrt(0.5) * random.normal(size=(kinds.size, 3))
    odds = samples @ means.T / 0.5 - 0.5 * (means**2).sum(axis=1) / 0.5 + np.log(PROBLEM.rho)
    wrong = np.mean(odds.argmax(axis=1) != kinds)
    assert best_linear_error(PROBLEM) == pytest.approx(wrong, abs=3e-3)


def test_a_sweep_keeps_what_three_classes_have(tmp_path: Path) -> None:
    recipe, store = Recipe(lambda_l=0.2, lambda_u=0.1), tmp_path / "runs.db"
    shares = ((0.7, 0.2, 0.1), (0.4, 0.3, 0.3))
    data = sweep(PROBLEM, recipe, {"rho": shares}, store=store, workers=0)
    assert set(data.data_vars) == {"error", "collapsed_at", "status"}
    assert load(store)["error"].equals(data["error"])
    for at, rho in enumerate(shares):
        assert data["error"][at] == solve(PROBLEM.replace(rho=rho), recipe).error[-1]
    keep = ("class_errors", "confusion", "balanced_error", "error_path")
    data = sweep(PROBLEM, recipe, {"alpha_l": (1.0, 2.0)}, keep=keep, workers=0)
    run = solve(PROBLEM.replace(alpha_l=2.0), recipe)
    np.testing.assert_array_equal(data["confusion"][1], run.confusion[-1])
    np.testing.assert_array_equal(data["error_path"][1], run.error)
    assert data["class_errors"].dims == ("alpha_l", "true")
    with pytest.raises(InvalidInput, match=r"'cosine'.* is for two classes only: 3 classes have"):
        sweep(PROBLEM, recipe, {"alpha_l": (1.0,)}, keep=("cosine",), workers=0)
    words = {"features": 60, "seeds": 2, "probes": 0}
    data = sweep(PROBLEM, recipe, {"alpha_l": (1.0,)}, "simulate", options=words, workers=0)
    assert 0 < float(data["error"][0]) < 1
