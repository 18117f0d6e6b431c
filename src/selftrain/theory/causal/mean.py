"""The mean over replicates, as a trajectory: exact before any sample is reused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import Array
from ...problem import Problem
from ...recipe import Recipe
from ..geometry.space import space_of
from ..stats import STATE, SolverStats
from ..trajectory import Trajectory
from .replicate import MEASURED, Outcome
from .result import Found, Reuse


def mean_trajectory(
    problem: Problem, recipe: Recipe, exact: Trajectory, parts: Sequence[Found], outcome: Outcome
) -> Trajectory:
    """Return the mean over replicates, with the exact values of the steps before reuse.

    Arguments:
        exact: the run of those steps.
        parts: what each replicate found.
    """
    end, known, test = outcome.end, min(exact.good_steps, outcome.end), problem.test_clusters
    state: dict[str, Any] = dict(_mean_of([part.state for part in parts]))
    stored = _mean_of([part.stored for part in parts])
    means = np.mean([part.means for part in parts], axis=0)
    spreads = np.moveaxis(np.diagonal(stored["crossed"]), -1, 0).copy()
    space = space_of(problem.distinct_clusters)
    _, state["v"], off_best, variances = space.observed(means, spreads, test)
    along = np.outer(state["m"], state["m"]) / test.length**2
    ways = [np.outer(part.state["m"], part.state["m"]) / test.length**2 for part in parts]
    stored["pairs"] += along - np.mean(ways, axis=0)  # the mean of covariances, not of squares
    state["overlap"][1:] = np.diag(stored["pairs"], -1)
    for values, exactly in [
        *((state[name], getattr(exact, name)) for name in STATE),
        *zip(stored["measured"], (getattr(exact, name) for name in MEASURED[:4]), strict=False),
        (stored["shares"], exact.label_shares), (off_best, exact.off_best),
        (variances, exact.logit_variances),
    ]:  # fmt: skip
        values[:known], values[end:] = exactly[:known], np.nan
    stored["measured"][4, end:] = np.nan
    stored["pairs"][:known, :known] = exact.overlaps[:known, :known]
    for values in (stored["pairs"], stored["pairs"].T, means, spreads):
        values[end:] = np.nan
    return Trajectory(
        problem, recipe, **state, stats=_stats(outcome, exact, known),
        collapsed_at=outcome.collapsed_at, failure=outcome.failure,
        reuse=Reuse(**stored, points=outcome.points, replicates=len(parts)),
        off_best=off_best, logit_variances=variances, space=space, weight_means=means,
        weight_spreads=spreads,
    )  # fmt: skip


def _mean_of(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.mean([part[name] for part in parts], axis=0) for name in parts[0]}


def _stats(outcome: Outcome, exact: Trajectory, known: int) -> SolverStats:
    steps, end = np.arange(outcome.accuracy.size), outcome.end
    accuracy = np.where(steps < end, outcome.accuracy, np.nan)
    accuracy[:known] = exact.stats.accuracy[:known]
    nodes = np.where(steps < end, 2.0 * outcome.points, 0.0)
    nodes[:known] = exact.stats.nodes[:known]
    spent = outcome.evaluations.astype(float)
    spent[:known] += exact.stats.evaluations[:known]
    start = "no update" if outcome.points else "closed form"
    starts = [start if t < end else "" for t in steps]
    starts[:known] = exact.stats.start[:known]
    return SolverStats(outcome.tolerance, spent, nodes, accuracy, tuple(starts))
