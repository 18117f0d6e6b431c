"""`--data rows.csv`: the problem of a table of rows, as the API makes it, and refusals as a script
sees them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from selftrain import Clusters, Problem, Recipe, Trajectory, simulate, solve

ROWS = ("--target", "y", "--labels", "60", "--batches", "2x90", "--reduce", "10")
RECIPE = ("--lambda-l", "0.3", "--lambda-u", "0.1")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def file(table: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, y = table
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    names = [*(f"x{i}" for i in range(30)), "same", "y"]
    text = [
        ",".join([*(repr(float(x)) for x in row), "7", str(k)]) for row, k in zip(X, y, strict=True)
    ]
    path.write_text("\n".join([",".join(names), *text]))
    return path


def expected(table: tuple[Any, Any]) -> tuple[Problem, Recipe, Any]:
    X, y = table
    rows = StandardScaler().fit_transform(X)
    clusters = Clusters.from_data(rows, y, directions=10)
    problem = Problem(alpha_l=6.0, alpha_u=9.0, rho=float(y.mean()), clusters=clusters, steps=2)
    return problem, Recipe(0.3, 0.1), rows


def test_solve_is_what_the_api_says(
    selftrain: Call, file: Path, table: tuple[Any, Any], tmp_path: Path
) -> None:
    problem, recipe, _ = expected(table)
    run = solve(problem, recipe)
    plot = tmp_path / "run.png"
    code, out, err = selftrain("solve", "--data", file, *ROWS, *RECIPE, "--json", "--plot", plot)
    told = json.loads(out)
    assert code == 0
    assert plot.stat().st_size > 10_000
    for name in ("error", "balanced_error", "auc", "cosine"):
        found = [step[name] for step in told["steps"]]
        np.testing.assert_allclose(found, getattr(run, name), rtol=1e-6, err_msg=name)
    assert told["bayes"] is None
    assert told["limits"]["best_linear"] == pytest.approx(
        problem.clusters.best_rule(problem.rho).error
    )  # type: ignore[union-attr]
    assert told["limits"]["best_linear"] < told["limits"]["supervised"] < run.error[0]
    assert told["data"]["constant"] == ["same"]
    assert told["data"]["directions"] == 10
    assert "1 constant column left out; 10 leading directions keep" in err
    code, out, _ = selftrain("solve", "--data", file, *ROWS, *RECIPE)
    assert code == 0
    assert "Best linear rule on these clusters" in out
    assert "has no meaning for general covariances" in out


def test_simulate_draws_the_rows_or_synthetic_gaussian_data(
    selftrain: Call, file: Path, table: tuple[Any, Any], tmp_path: Path
) -> None:
    problem, recipe, rows = expected(table)
    plot = tmp_path / "runs.png"
    common = ("simulate", "--data", file, *ROWS, *RECIPE, "--seeds", "3")
    code, out, err = selftrain(*common, "--compare", "--plot", plot)
    assert code == 0, err
    assert "real rows" in out
    assert plot.stat().st_size > 10_000
    for more, given in (((), (rows, table[1])), (("--gaussian",), None)):
        _, out, _ = selftrain(*common, *more, "--json")
        seen = simulate(problem, recipe, seeds=3, rows=given)
        np.testing.assert_allclose(json.loads(out)["error"], seen.error, rtol=1e-6)
        assert json.loads(out)["method"] == seen.method


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--labels", "60", "--batches", "2x90"), "target must be given with --data"),
        (("--target", "y", "--batches", "2x90"), "labels must be given with --data"),
        (("--target", "y", "--labels", "60"), "batches must be given with --data"),
        (("--target", "y", "--labels", "60", "--batches", "2*90"), "steps times rows, as in 6x600"),
        (("--target", "y", "--labels", "0", "--batches", "2x90"), "must be a whole number >= 1"),
        (("--target", "z", "--labels", "60", "--batches", "2x90"), "no such column"),
        ((*ROWS, "--delta", "0.5"), "with --data it follows from the rows"),
        ((*ROWS, "--reduce", "99"), "a whole number from 1 to 30"),
        ((*ROWS, "--raw"), "constant, drop them: same"),
    ],
)
def test_refusals(selftrain: Call, file: Path, arguments: tuple[str, ...], sentence: str) -> None:
    code, out, err = selftrain("solve", "--data", file, *arguments)
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())


def test_the_run_is_stored(
    selftrain: Call, file: Path, table: tuple[Any, Any], tmp_path: Path
) -> None:
    problem, recipe, _ = expected(table)
    path = tmp_path / "run.nc"
    code, out, err = selftrain("solve", "--data", file, *ROWS, *RECIPE, "--save", path)
    assert code == 0, err
    assert "Saved" in out + err
    back = Trajectory.load(path)
    np.testing.assert_allclose(back.error, solve(problem, recipe).error, rtol=1e-9)


def test_more_rows_than_there_are(selftrain: Call, file: Path) -> None:
    code, _, err = selftrain("simulate", "--data", file, *ROWS[:4], "--batches", "9x90")
    assert code == 2
    assert "some must be held out to measure the error" in " ".join(err.split())


def test_flags_of_a_table_without_one(selftrain: Call) -> None:
    for flag in (("--target", "y"), ("--raw",)):
        code, _, err = selftrain("solve", *flag)
        assert code == 2
        assert "needs --data FILE" in " ".join(err.split())
