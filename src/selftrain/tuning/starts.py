r"""Where a search begins: the given recipe, the optima of shorter runs and of fewer variables,
points spread over the bounds.

Valleys are narrow where labels may be sharpened and selected at once: from most points the way down
leads to hard labels, where the error no longer depends on the sharpness. So a threshold is added
last, to the optimum without one; and a schedule is set free after its best constant is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import qmc

from ..arrays import Array
from ..recipe import Recipe
from .search import ROUGHLY, WORST, Search
from .variables import Variables, forward

SEVERAL, MANY = 3, 10
"""Starts that are tried if none is given; if these lead nowhere."""

ROUGHEST = 1e-4
"""Tolerance while candidates are ranked."""

TRIED_THRESHOLDS = (0.0, 0.5, 1.5)
"""Where the threshold is when it is added to an optimum without one."""

USUAL = {
    "lambda_l": (1e-5, 0.1),
    "lambda_u": (1e-5, 0.1),
    "threshold": (0.0, 1.0),
    "sharpness": (0.5, 3.0),
    "annealing": (0.0, 0.3),
}
"""Where optima are common; far outside, runs are slow and rarely good."""


def rough_optimum(
    search: Search, begin: Recipe, starts: int, tolerance: float
) -> tuple[float, Array]:
    """Near the best optimum that several starts lead to."""
    free = search.variables
    if free.schedule and not _has_schedule(begin, free):
        recipe = _optimum_of(search, free.names, begin, starts, tolerance)
        return search.descend(free.coordinates(recipe), tolerance, ROUGHLY)
    chosen = [free.coordinates(begin)]
    if _adds_threshold(free, begin):
        fewer = tuple(name for name in free.names if name != "threshold")
        recipe = _optimum_of(search, fewer, begin, starts, tolerance)
        most = free.bounds["threshold"][1]
        chosen = [
            free.coordinates(recipe.replace(threshold=min(tried, most)))
            for tried in TRIED_THRESHOLDS
        ]
    elif starts > 1 and not free.schedule:
        candidates = [*chosen, *_shorter(search, begin, tolerance), *spread(free, 2 * starts)]
        ranked = sorted(candidates, key=lambda x: search.error(x, ROUGHEST)[0])
        chosen = _distinct(ranked, starts - 1)
    return min((search.descend(x, tolerance, ROUGHLY, 60) for x in chosen), key=_value)


def _optimum_of(
    search: Search, names: tuple[str, ...], begin: Recipe, starts: int, tolerance: float
) -> Recipe:
    """Near the best recipe with these names constant and everything else as at the beginning."""
    free = search.variables
    bounds = {name: free.bounds[name] for name in names}
    search.variables = Variables(begin, names, bounds, (), free.steps)
    _, x = rough_optimum(search, begin, starts, tolerance)
    recipe = search.variables.recipe(x)
    search.variables = free
    return recipe


def _adds_threshold(free: Variables, begin: Recipe) -> bool:
    """Whether labels are shaped and selected, and the beginning selects nothing."""
    shaped = {"sharpness", "annealing"} & set(free.names)
    return bool(shaped) and "threshold" in free.names and begin.threshold == 0


def spread(free: Variables, count: int) -> list[Array]:
    """A few points spread evenly over the part of the bounds where optima are common."""
    low, high = free.box()
    for i, name in enumerate(free.names):
        least, most = USUAL[name]
        if free.bounds[name][0] < most and least < free.bounds[name][1]:
            low[i], high[i] = max(low[i], forward(name, least)), min(high[i], forward(name, most))
    points = qmc.Halton(low.size, scramble=False).random(count + 1)[1:]
    return list(low + points * (high - low))


def _distinct(ranked: list[Array], count: int) -> list[Array]:
    """The first `count` points that are not close to one before them."""
    chosen: list[Array] = []
    for x in ranked:
        if all(np.abs(x - other).max() > 0.5 for other in chosen):
            chosen.append(x)
    return chosen[:count]


def _value(found: tuple[float, Array]) -> float:
    return found[0]


def _shorter(search: Search, begin: Recipe, tolerance: float) -> list[Array]:
    """The optimum of a run of an eighth of the steps: as it is, and with ridge and annealing for
    the longer run.
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
    value, x = brief.descend(ranked[0], tolerance, 10 * ROUGHLY, 30)
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


def _has_schedule(recipe: Recipe, free: Variables) -> bool:
    return any(isinstance(getattr(recipe, name), tuple) for name in free.schedule)
