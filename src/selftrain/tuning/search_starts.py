r"""Starting points of a search: the given recipe, the heuristics of the paper, the optima of
shorter runs and of fewer variables, points spread over the bounds.

If labels may be both sharpened and selected, the valleys of the error are narrow: from most points
the descent leads to hard labels, where the error no longer depends on the sharpness. So a threshold
is added last, to the optimum without one; and a schedule starts from its best constant.

The constants of recipes that work well are from tuned runs of T = 4 to 256 steps at $\rho$ = 0.2
and 0.4, $\Delta$ = 0.5625 and 1. There the ridge of the steps scales as 1/T. Every step sharpens
labels that earlier steps have sharpened, so annealing scales as 1/T^2 and the logarithm of a
constant sharpness as 1/T.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import qmc

from ..arrays import Array
from ..recipe import Recipe
from .search import ROUGHLY_STATIONARY, WORST, Search
from .variables import Variables, forward

SEVERAL, MANY = 3, 10
"""Number of starts if none is given, and if these do not beat the supervised baseline."""

ROUGHEST = 1e-4
"""Tolerance while candidates are ranked."""

TRIED_THRESHOLDS = (0.0, 0.5, 1.5)
"""Thresholds that are tried when one is added to an optimum without."""

USUAL = {
    "lambda_l": (1e-5, 0.1),
    "lambda_u": (1e-5, 0.1),
    "threshold": (0.0, 1.0),
    "sharpness": (0.5, 3.0),
    "annealing": (0.0, 0.3),
}
"""Ranges in which optima are common; far outside, runs are slow and rarely good."""

GIVEN, DEFAULT = "given", "default"
HEURISTICS, SMALL_RIDGES = "heuristics", "small ridges"
SHORTER, SPREAD = "shorter run", "spread"
"""Names of starts: the recipe of the caller or `Recipe()`, the paper's heuristics, ridges that
scale as 1/T, the optimum of a shorter run, points spread over the bounds.
"""

ELAPSED = (0.06, 0.4)
"""Best values of T lambda_u with the heuristics, for strongly and slightly imbalanced classes."""

SHARPENING = 6.0
"""Best a (T + 1)^2 with the heuristics, a the annealing rate."""

SMALL = ((0.05, 0.05), (1e-3, 1e-2))
"""Values of (T lambda_l, T lambda_u) without sharpening."""

RIDGE = 0.1
"""Ridge of the supervised step with the heuristics: the upper bound of the paper."""


class Start(NamedTuple):
    """A starting point and its name."""

    name: str
    x: Array


class Descent(NamedTuple):
    """The end of a descent: value, coordinates, and the name of the start."""

    value: float
    x: Array
    start: str


def rough_optimum(
    search: Search, begin: Recipe, name: str, starts: int, tolerance: float
) -> Descent:
    """Descend from several starts, `begin` (called `name`) first; return a point near the best
    optimum found.
    """
    free = search.variables
    has_schedule = any(isinstance(getattr(begin, one), tuple) for one in free.schedule)
    if free.schedule and not has_schedule:
        before, recipe = _optimum_of(search, free.names, begin, name, starts, tolerance)
        return descent(search, Start(before.start, free.coordinates(recipe)), tolerance)
    chosen = [Start(name, free.coordinates(begin))]
    if _adds_threshold(free, begin):
        fewer = tuple(name for name in free.names if name != "threshold")
        before, recipe = _optimum_of(search, fewer, begin, name, starts, tolerance)
        most = free.bounds["threshold"][1]
        chosen = [
            Start(before.start, free.coordinates(recipe.replace(threshold=min(tried, most))))
            for tried in TRIED_THRESHOLDS
        ]
    elif starts > 1 and not free.schedule:
        candidates = [
            *chosen,
            *known_recipes(free, begin),
            *(Start(SHORTER, x) for x in _shorter(search, begin, tolerance)),
            *(Start(SPREAD, x) for x in spread(free, 2 * starts)),
        ]
        ranked = sorted(candidates, key=lambda start: search.error(start.x, ROUGHEST)[0])
        chosen = _distinct(ranked, starts - 1)
    found = [descent(search, start, tolerance, 60) for start in chosen]
    return min(found, key=lambda one: one.value)


def descent(search: Search, start: Start, tolerance: float, limit: int | None = None) -> Descent:
    """Descend from a start; return the start itself if its run has no gradient."""
    value, x = search.descend(start.x, tolerance, ROUGHLY_STATIONARY, limit)
    if not value < WORST:
        value, x = search.error(start.x, tolerance)[0], start.x
    return Descent(value, x, start.name)


def known_recipes(free: Variables, begin: Recipe) -> list[Start]:
    """Return recipes that work well, with only the free quantities changed, clipped to their
    bounds.
    """
    known = [(SMALL_RIDGES, recipe) for recipe in small_ridge_recipes(begin, free.steps)]
    if {"annealing", "sharpness"} & set(free.names):
        shaped = heuristic_recipes(begin, free.steps, free.names)
        known = [*((HEURISTICS, recipe) for recipe in shaped), *known]
    low, high = free.box()
    return [Start(name, np.clip(free.coordinates(recipe), low, high)) for name, recipe in known]


def heuristic_recipes(
    base: Recipe, steps: int, free: Container[str] = ("annealing",)
) -> list[Recipe]:
    """Return recipes that sharpen labels slightly: by annealing if that is in `free`, else by a
    constant sharpness. Bias and labeler are as in `base`.
    """
    if "annealing" in free:
        shaped = base.replace(sharpness=1.0, annealing=SHARPENING / (steps + 1) ** 2)
    else:
        shaped = base.replace(sharpness=math.exp(0.5 * SHARPENING / (steps + 1)), annealing=0.0)
    return [
        shaped.replace(threshold=0.0, lambda_l=RIDGE, lambda_u=elapsed / max(steps, 1))
        for elapsed in ELAPSED
    ]


def small_ridge_recipes(base: Recipe, steps: int) -> list[Recipe]:
    """Return recipes without sharpening whose ridges scale as 1/T."""
    plain = base.replace(threshold=0.0, sharpness=1.0, annealing=0.0)
    return [
        plain.replace(lambda_l=labeled / max(steps, 1), lambda_u=unlabeled / max(steps, 1))
        for labeled, unlabeled in SMALL
    ]


def _optimum_of(
    search: Search,
    names: tuple[str, ...],
    begin: Recipe,
    name: str,
    starts: int,
    tolerance: float,
) -> tuple[Descent, Recipe]:
    """Return a point near the optimum over these constants, all else as in `begin`; and its
    recipe.
    """
    free = search.variables
    bounds = {name: free.bounds[name] for name in names}
    search.variables = Variables(begin, names, bounds, (), free.steps)
    found = rough_optimum(search, begin, name, starts, tolerance)
    recipe = search.variables.recipe(found.x)
    search.variables = free
    return found, recipe


def _adds_threshold(free: Variables, begin: Recipe) -> bool:
    """Return whether sharpening and selection are both free, and `begin` has no threshold."""
    shaped = {"sharpness", "annealing"} & set(free.names)
    return bool(shaped) and "threshold" in free.names and begin.threshold == 0


def spread(free: Variables, count: int) -> list[Array]:
    """Return points spread evenly over the part of the bounds where optima are common."""
    low, high = free.box()
    for i, name in enumerate(free.names):
        least, most = USUAL[name]
        if free.bounds[name][0] < most and least < free.bounds[name][1]:
            low[i], high[i] = max(low[i], forward(name, least)), min(high[i], forward(name, most))
    points = qmc.Halton(low.size, scramble=False).random(count + 1)[1:]
    return list(low + points * (high - low))


def _distinct(ranked: list[Start], count: int) -> list[Start]:
    """Return the first `count` starts that are not close to an earlier one."""
    chosen: list[Start] = []
    for start in ranked:
        if all(np.abs(start.x - other.x).max() > 0.5 for other in chosen):
            chosen.append(start)
    return chosen[:count]


def _shorter(search: Search, begin: Recipe, tolerance: float) -> list[Array]:
    """Return the optimum of a run with an eighth of the steps: as it is, and with ridge and
    annealing scaled to the longer run.
    """
    problem, free = search.problem, search.variables
    steps = problem.steps // 8
    if steps < 2:
        return []
    of_steps = {
        name: getattr(problem, name)[:steps]
        for name in ("alpha_u", "rho_u", "delta_u", "clusters_u", "batches", "keep_labeled")
        if isinstance(getattr(problem, name), tuple)
    }
    first = problem.replace(steps=steps, test=problem.test_pair, **of_steps)
    shorter: dict[str, Any] = {
        name: getattr(begin, name)[:steps]
        for name in ("lambda_u", "threshold", "sharpness", "annealing")
        if isinstance(getattr(begin, name), tuple)
    }
    base = begin.replace(**shorter)
    brief = Search(first, Variables(base, free.names, free.bounds, (), steps))
    candidates = [brief.variables.coordinates(base), *_shorter(brief, base, tolerance)]
    ranked = sorted(candidates, key=lambda x: brief.error(x, tolerance)[0])
    value, x = brief.descend(ranked[0], tolerance, 10 * ROUGHLY_STATIONARY, 30)
    search.solves += brief.solves
    if not value < WORST:
        return []
    found = brief.variables.recipe(x)
    values = {name: getattr(found, name) for name in free.names}
    longer = dict(values)
    for name in {"lambda_u", "annealing"} & set(values):
        low, high = free.bounds[name]
        longer[name] = float(np.clip(values[name] / 6, low, high))
    return [free.coordinates(begin.replace(**choice)) for choice in (values, longer)]
