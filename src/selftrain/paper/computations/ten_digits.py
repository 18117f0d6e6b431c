"""Self-training on ten handwritten digits: theory, synthetic Gaussian data, and real samples.

The digits of scikit-learn, standardised and projected on their leading directions; means and the
common covariance come from all samples, so the theory is judged, not an estimate from few labels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ...mixture.clusters import Clusters
from ...problem import Problem
from ...recipe import Recipe
from ...simulation.simulate import simulate
from ...sweeps import Computation, Output
from ...tables import Table, standardised
from ...theory.solve import solve

RECIPE = Recipe(lambda_l=1.0, lambda_u=0.5)
CLASSES = 10


@lru_cache(maxsize=2)
def digits(directions: int) -> tuple[Any, Any, Clusters]:
    """Return samples along their leading directions, digits, and their clusters."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    table = standardised(Table(np.asarray(X, dtype=float), y, tuple(map(str, range(X.shape[1])))))
    rows = Clusters.from_data(table.X, y, directions=directions).project(table.X)
    return rows, y, Clusters.from_data(rows, y)


def problem(directions: int, labels: int, batch: int, steps: int) -> Problem:
    """The problem with these clusters, proportions and numbers of samples."""
    _, y, clusters = digits(directions)
    shares = tuple((np.bincount(y) / len(y)).tolist())
    sizes = labels / clusters.features, batch / clusters.features
    return Problem(*sizes, shares, steps=steps, clusters=clusters)


def ten_digits(**setting: Any) -> dict[str, Any]:
    """The large-system limit: error over the steps, recall of each digit after the last."""
    run = solve(problem(**setting), RECIPE, tolerance=1e-3)
    recall = np.diagonal(run.confusion[-1])
    return {"t": run.t, "digit": np.arange(CLASSES), "error": run.error, "recall": recall}


def ten_digits_run(source: str, seed: int, **setting: Any) -> dict[str, Any]:
    """One run on real samples, with its errors on held-out ones, or on synthetic Gaussian data."""
    rows, y, _ = digits(setting["directions"])
    asked = problem(**setting)
    real = (rows, y) if source == "real" else None
    runs = simulate(
        asked, RECIPE, seeds=[seed], rows=real, probes=0, tolerance=1e-4, progress=False
    )
    recall = np.diagonal(runs.confusion[0, -1])
    made = {"t": np.arange(asked.steps + 1), "digit": np.arange(CLASSES)}
    return {**made, "error": runs.error[0], "recall": recall}


_OUTPUTS = {
    "t": Output("t", ("t",)),
    "digit": Output("digit", ("digit",)),
    "error": Output(r"\epsilon_g^{(t)}", ("t",)),
    "recall": Output("recall", ("digit",)),
}
TEN_DIGITS = Computation(ten_digits, _OUTPUTS, seconds=lambda steps, **_: 10.0 * steps)
TEN_DIGITS_RUN = Computation(ten_digits_run, dict(_OUTPUTS), seconds=lambda steps, **_: 0.1 * steps)
