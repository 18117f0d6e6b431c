"""Clusters with a shape at finite size: the theory describes them; real rows are drawn as
promised.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from selftrain import Clusters, Ensemble, Problem, Recipe, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.protocol import protocol_of
from selftrain.simulation.designs.sample_sources import TableSource, sample_table
from selftrain.simulation.run_plan import plan_run


def shapes() -> dict[str, Clusters]:
    draw = np.random.default_rng(5)
    n = 150
    noise = np.exp(draw.normal(size=n))
    power = 3.0 / np.arange(1, n + 1)
    mean = draw.normal(size=n)
    mean *= 1.3 / np.linalg.norm(mean)
    large, small = np.zeros(n), np.zeros(n)
    large[:10], small[-10:] = 0.5, 0.1
    turn = np.linalg.qr(draw.normal(size=(n, n)))[0]
    return {
        "log-normal": Clusters(mean, noise),
        "power law, mean along large": Clusters(large, power),
        "power law, mean along small": Clusters(turn @ small, (turn * power) @ turn.T),
        "two covariances": Clusters(mean, (noise, (turn * noise) @ turn.T)),
    }


@pytest.mark.parametrize("name", list(shapes()))
@pytest.mark.parametrize(
    "choice",
    [
        {"annealing": 0.2, "fix_bias": True, "threshold": 0.2},
        {"sharpness": float("inf")},
    ],
)
def test_the_theory_describes_shaped_data(name: str, choice: dict[str, Any]) -> None:
    problem = Problem(alpha_l=1.5, alpha_u=3.0, rho=0.4, clusters=shapes()[name], steps=2)
    recipe = Recipe(lambda_l=0.1, lambda_u=0.1, **choice)
    seen = simulate(problem, recipe, seeds=12, probes=0)
    compared = seen.compare(solve(problem, recipe))
    assert compared.consistent() is not False, str(compared)
    z = compared.z
    for quantity in ("m", "q", "bias", "error", "overlap", "fraction_selected", "train_loss"):
        # a mean over 12 seeds: Student's t, and a shift of order 1/N on top
        assert np.nanmax(np.abs(z[quantity])) < 4.0, (quantity, z[quantity])


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_the_first_step_on_rows_is_the_fit_of_scikit_learn() -> None:
    X, y = cancer()
    clusters = Clusters.from_data(X, y)
    problem = Problem(alpha_l=2.0, alpha_u=3.0, rho=0.6, clusters=clusters, steps=1)
    recipe = Recipe(lambda_l=0.1, lambda_u=0.1)
    seen = simulate(problem, recipe, rows=(X, y), seeds=[4], tolerance=1e-8)
    plan = plan_run(protocol_of(problem, recipe), 30)
    source = TableSource(plan, sample_table(plan, (X, y)), 4)
    first = source.draw(0)[0]
    assert first.classes.sum() == 36
    model = LogisticRegression(C=1 / (0.1 * 30), tol=1e-10, max_iter=5000)
    model.fit(first.design.matrix, first.classes)
    assert seen.bias[0, 0] == pytest.approx(model.intercept_[0], rel=1e-4)
    assert seen.m[0, 0] == pytest.approx(clusters.mean @ model.coef_[0], rel=1e-4)
    used = np.concatenate([source.chosen[0], source.chosen[1]])
    assert len(set(used)) == 60 + 90
    rest = np.setdiff1d(np.arange(len(y)), used)
    wrong = model.predict(clusters.project(X)[rest]) != (y[rest] == 1)
    errors = [wrong[y[rest] == side].mean() for side in (0, 1)]
    np.testing.assert_allclose(seen.class_errors[0, 0], errors, atol=1e-12)
    assert seen.error[0, 0] == pytest.approx(0.4 * errors[0] + 0.6 * errors[1])
    assert seen.mean("balanced_error")[0] == pytest.approx(np.mean(errors))
    scores = model.decision_function(clusters.project(X)[rest])
    assert seen.auc[0, 0] == pytest.approx(roc_auc_score(y[rest], scores), abs=1e-12)


def test_a_stored_ensemble_is_the_same(tmp_path: Path) -> None:
    problem = Problem(
        alpha_l=1.5, alpha_u=3.0, rho=0.4, clusters=shapes()["two covariances"], steps=1
    )
    seen = simulate(problem, Recipe(0.1, 0.1), seeds=2)
    again = Ensemble.load(seen.save(tmp_path / "runs.nc"))
    assert again.problem == problem
    for name in seen.names:
        np.testing.assert_array_equal(again.values(name), seen.values(name), err_msg=name)
    np.testing.assert_array_equal(again.class_errors, seen.class_errors)


def test_rows_that_are_not_gaussian_differ_from_the_theory() -> None:
    """Two rows in a hundred lie far out on the wrong side: means and covariances do not show
    that.
    """
    draw = np.random.default_rng(3)
    y = np.arange(6000) % 2
    X = draw.normal(size=(6000, 20))
    X[:, 0] += 2.0 * (2 * y - 1)
    clusters = Clusters.from_data(X, y)
    problem = Problem(alpha_l=10.0, alpha_u=20.0, rho=0.5, clusters=clusters, steps=2)
    recipe = Recipe(lambda_l=0.1, lambda_u=0.1)
    theory = solve(problem, recipe)
    alike = simulate(problem, recipe, rows=(X, y), seeds=8, probes=0).compare(theory, within=0.3)
    assert alike.consistent() is not False, str(alike)
    far = X.copy()
    outer = draw.random(6000) < 0.02
    far[outer, 0] *= -3
    problem = problem.replace(clusters=Clusters.from_data(far, y))
    rows = simulate(problem, recipe, rows=(far, y), seeds=8, probes=0)
    other = rows.compare(solve(problem, recipe), within=0.1)
    assert other.consistent() is False, str(other)
    assert other.note.startswith("real rows")


def test_what_rows_cannot_do_is_said() -> None:
    X, y = cancer()
    clusters = Clusters.from_data(X, y)
    problem = Problem(alpha_l=2.0, alpha_u=8.0, rho=0.6, clusters=clusters, steps=2)
    with pytest.raises(
        InvalidInput, match="some must be held out to measure the error; there are 212"
    ):
        simulate(problem, Recipe(), rows=(X, y))
    with pytest.raises(InvalidInput, match="must have two classes or more"):
        simulate(problem, Recipe(), rows=(X, 0 * y))
    with pytest.raises(InvalidInput, match=r"a pair \(X, y\)"):
        simulate(problem, Recipe(), rows=X)
    with pytest.raises(InvalidInput, match="the clusters have 30 features"):
        simulate(problem, Recipe(), features=100)
    with pytest.raises(InvalidInput, match="samples are drawn for a problem with clusters"):
        simulate(Problem(0.5, 1.0, 0.4, 0.5, steps=1), Recipe(), rows=(X, y))
