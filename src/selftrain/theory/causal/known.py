"""The steps before any sample is reused: they are those of fresh batches, and known exactly."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from ...problem import Problem
from ...protocol import Protocol, protocol_of
from ...recipe import Recipe
from ..geometry.modes import FIRST, HAT_M
from ..stats import SolverStats
from ..trajectory import Trajectory
from .replicate import Known


def before_reuse(problem: Problem, recipe: Recipe) -> tuple[Problem, Recipe]:
    """Return the problem and recipe of the steps before the first that reuses samples."""
    first = protocol_of(problem, recipe).first_reuse
    assert first is not None
    if first == 1:
        alone = problem.labeled_alone().replace(test=problem.test_pair)
        return alone, Recipe(lambda_l=recipe.lambda_l, labeler=recipe.labeler)
    values = recipe.at_steps(problem.steps)
    ridge, threshold, sharpness = (tuple(column[: first - 1].tolist()) for column in values)
    alpha, rho, delta = (tuple(column[: first - 1].tolist()) for column in problem.unlabeled)
    law = (
        {"clusters_u": problem.batch_clusters[: first - 1]}
        if problem.shaped
        else {"delta_u": delta}
    )
    shorter = problem.replace(
        steps=first - 1, alpha_u=alpha, rho_u=rho, **law, test=problem.test_pair, batches="fresh",
        keep_labeled=0.0,
    )  # fmt: skip
    words = {"lambda_u": ridge, "threshold": threshold, "sharpness": sharpness, "annealing": 0.0}
    return shorter, recipe.replace(**words)


def known_fits(protocol: Protocol, exact: Trajectory) -> tuple[Known, ...]:
    r"""Return the fits of an exact run by their conjugates: the unknowns of its steps are $\hat m$,
    B, and by classes $\gamma\hat Q - \hat R$, $\ln\hat Q$, $\ln\hat\chi$.
    """
    assert exact.unknowns is not None
    assert exact.gammas is not None
    fits = []
    for t in range(exact.good_steps):
        row, gamma = exact.unknowns[t], float(exact.gammas[t])
        tilt, stiff, fresh = row[FIRST:].reshape(3, -1)
        q = np.exp(stiff)
        back = np.zeros_like(q) if t == 0 else tilt - gamma * q
        hats = np.array([q, back, np.exp(fresh)])
        law = protocol.groups[protocol.fits[t].uses[0].group].law
        if not law.pair:  # one covariance for both classes
            hats = hats.sum(axis=1, keepdims=True)
        fits.append(Known(float(exact.bias[t]), float(row[HAT_M]), *hats))
    return tuple(fits)


def ended_early(problem: Problem, recipe: Recipe, first: Trajectory) -> Trajectory:
    """Return a run that collapsed or failed before any sample was reused."""
    missing, size = problem.steps - first.problem.steps, first.problem.steps + 1
    longer: dict[str, Any] = {}
    for entry in fields(first):
        value = getattr(first, entry.name)
        if isinstance(value, np.ndarray) and value.shape[:1] == (size,):
            longer[entry.name] = np.append(value, np.full((missing, *value.shape[1:]), np.nan), 0)
    stats = first.stats
    nothing = np.zeros(missing, dtype=np.int64)
    spent = SolverStats(
        stats.tolerance,
        np.append(stats.evaluations, nothing),
        np.append(stats.nodes, nothing),
        np.append(stats.accuracy, np.full(missing, np.nan)),
        (*stats.start, *[""] * missing),
    )
    return replace(first, problem=problem, recipe=recipe, stats=spent, fading=None, **longer)
