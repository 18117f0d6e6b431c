"""Trajectories of all kinds as an earlier version of the engines gave them: no rewrite changes a
result.

The file has spheres (tiny and huge ridges, hard, annealed and selected labels, fixed bias, domain
shift, schedules, long, faded and collapsed runs, several losses), general covariances, and data
reuse. Unlike the trajectories of `test_reference`, these come from the package itself; each of them
reports how accurate it is, and what `solve` gives today may not differ by more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.confirmation.user_losses import Huber, Steep
from selftrain import Clusters, Problem, Recipe, Trajectory, solve

FILE = Path(__file__).parents[1] / "reference" / "frozen.json"
CASES: dict[str, Any] = {case["name"]: case for case in json.loads(FILE.read_text())["cases"]}

ACCURATE = 1e-10
"""The default tolerance of a step: what a run of today may add to the accuracy that is stored."""

SMALLEST_LOG_Q = -600.0
"""Below this ln q the state itself underflows; ln q, cosine and error are still exact."""


LOSSES = {"steep": Steep, "huber": Huber}


def clusters(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(clusters(each) for each in value)
    covariance = value["covariance"]
    if isinstance(covariance, dict):
        return Clusters(value["mean"], tuple(np.array(each) for each in covariance["pair"]))
    return Clusters(value["mean"], np.array(covariance))


def loss(value: Any) -> Any:
    if isinstance(value, str):
        return value
    ((name, parameter),) = value.items()
    return LOSSES[name](parameter)


def as_given(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


READERS = {"clusters": clusters, "clusters_u": clusters, "loss": loss, "pseudo_loss": loss}


def words(values: dict[str, Any]) -> dict[str, Any]:
    """Fields of a problem or a recipe from what the file has."""
    return {name: READERS.get(name, as_given)(value) for name, value in values.items()}


def differences(run: Trajectory, case: dict[str, Any]) -> dict[str, np.ndarray]:
    """Relative differences at the stored steps: m and the root of v against that of q, the bias
    against itself and the logits, as accuracies are reported.
    """
    t = np.array(case["t"])
    before = {name: np.array(case[name], dtype=float) for name in case if name in NAMES}
    now = {name: np.asarray(getattr(run, name))[t] for name in NAMES}
    size = np.exp(0.5 * np.maximum(before["log_q"], SMALLEST_LOG_Q))
    last = np.exp(0.5 * np.maximum(run.log_q, SMALLEST_LOG_Q))[np.maximum(t - 1, 0)]
    gaps = {name: np.abs(now[name] - before[name]) for name in NAMES}
    roots = np.abs(np.sqrt(now["v"]) - np.sqrt(before["v"]))
    found = {
        "m": gaps["m"] / size,
        "v": roots / size,
        "bias": gaps["bias"] / (np.abs(before["bias"]) + spread(run, t) * size),
        "log_q": 0.5 * gaps["log_q"],
        "cosine": gaps["cosine"],
        "error": gaps["error"],
        "chi": gaps["chi"] / before["chi"],
        "overlap": 0.5 * gaps["overlap"] / (size * last),  # a product has the errors of both
    }
    for name, gap in found.items():
        assert (np.isnan(gap) == np.isnan(before[name])).all(), name
    return found


NAMES = ("m", "v", "bias", "log_q", "cosine", "error", "chi", "overlap")


def spread(run: Trajectory, t: np.ndarray) -> np.ndarray:
    """The standard deviation of the logits of steps t, in units of the norm of the weights."""
    problem = run.problem
    if problem.clusters is not None:
        return np.ones(len(t))
    return np.sqrt(np.append(problem.delta, problem.unlabeled.delta)[t])


@pytest.mark.parametrize("name", CASES)
def test_results_are_what_they_were(name: str) -> None:
    case = CASES[name]
    run = solve(Problem(**words(case["problem"])), Recipe(**words(case["recipe"])))
    assert run.failure is None
    assert run.collapsed_at == case["end_step"]
    # with data reuse both are estimates, each as accurate as is stored
    estimates = 1 if run.problem.every_sample_once else 2
    allowed = ACCURATE + estimates * np.array(case["accuracy"])
    for quantity, found in differences(run, case).items():
        with np.errstate(invalid="ignore"):
            assert not (found > allowed).any(), (quantity, found.max(), allowed.max())
