"""The task of collapse.toml: hard labels in the large-system limit, and finite systems."""

from __future__ import annotations

import math

from selftrain import Problem, Recipe, simulate, solve


def collapse(
    problem: Problem, recipe: Recipe, every: float, features: int, seeds: int
) -> dict[str, float]:
    """The step at which a run collapses (NaN: it does not), and what finite systems do.

    Arguments:
        every: finite systems are run where rho is a multiple of this.
        features, seeds: their size and number; `collapsed` is the share of them that collapses.
    """
    run = solve(problem, recipe)
    share = math.nan
    if math.isclose(problem.rho / every, round(problem.rho / every), rel_tol=1e-9):
        ensemble = simulate(problem, recipe, features, seeds, probes=0, progress=False)
        share = float((ensemble.collapsed_at >= 0).mean())
    at = math.nan if run.collapsed_at is None else float(run.collapsed_at)
    return {"collapsed_at": at, "collapsed": share, "error": float(run.error[-1])}
