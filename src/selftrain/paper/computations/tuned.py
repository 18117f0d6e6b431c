r"""The best recipe of a problem: hyperparameters that minimise the error of the last step.

The paper tunes $(\lambda_L, \lambda_U, \Gamma)$, or $(\lambda_L, \lambda_U, a)$ with the
heuristics, for each T separately, with $\lambda \in (0, 0.1]$. The error has several local minima,
so the search starts from several recipes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import NoGradient, StageError
from ...parameters import LARGEST_RIDGE, SMALLEST_RIDGE
from ...problem import Problem
from ...recipe import Recipe
from ...simulation.ensemble import Ensemble
from ...simulation.simulate import simulate
from ...tuning.optimize import optimize
from ...tuning.optimum import Optimum
from ...tuning.search import ROUGH, Search
from ...tuning.search_starts import Start, descent
from ...tuning.variables import variables

TOLERANCE = 1e-9
RAISED = 12
"""Largest number of times that the lower bound of lambda_u is doubled because the solver cannot
confirm the best run of a search."""


def tuned(
    problem: Problem,
    over: Sequence[str],
    starts: Iterable[Recipe],
    largest_ridge: float = LARGEST_RIDGE,
) -> Optimum:
    """Tune a recipe for the error of the last step.

    Rough searches are made from all starts; the best one is finished at full accuracy.

    >>> problem = Problem(0.5, 2.0, 0.5, 0.75**2, steps=1)
    >>> best = tuned(problem, ("lambda_l", "lambda_u"), [Recipe(0.05, 0.05)])
    >>> round(best.recipe.lambda_l, 9), round(best.recipe.lambda_u, 9), sorted(best.active_bounds)
    (0.1, 0.1, ['lambda_l', 'lambda_u'])
    """
    bounds = dict.fromkeys(("lambda_l", "lambda_u"), (SMALLEST_RIDGE, largest_ridge))
    tried: list[tuple[float, Recipe]] = []
    for start in starts:
        free = variables(problem, over, (), bounds, start)
        begin = Start("given", free.coordinates(free.base))
        found = descent(Search(problem, free), begin, ROUGH, 40)
        tried.append((found.value, free.recipe(found.x)))
    _, best = min(tried, key=lambda one: one[0])
    for _ in range(RAISED):
        try:
            return optimize(problem, over, bounds, start=best, starts=1, tolerance=TOLERANCE)
        except StageError:  # the ridges are too small to be confirmed: search above them
            bounds, best = _raised(bounds, best)
    raise NoGradient("no recipe near the best one has a run that is confirmed")


def better(*optima: Optimum) -> Optimum:
    """Return the optimum with the smallest error, the first of equals."""
    return min(optima, key=lambda one: one.error)


def one_system(
    problem: Any, recipe: Recipe | None, features: int, seed: int, **options: Any
) -> Ensemble:
    """Simulate one finite system of N features."""
    return simulate(
        problem, recipe, features=features, seeds=[seed], probes=0, progress=False, **options
    )


def references(best: Optimum) -> dict[str, float]:
    """Return the errors that a tuned run is compared with."""
    return {
        "labeled_only": best.labeled_only.error,
        "supervised": best.supervised.error,
        "bayes": best.bayes.semi_supervised,
    }


def constants(recipe: Recipe, *names: str) -> dict[str, Any]:
    """Return hyperparameters that are the same at every step, as numbers."""
    return {name: constant(recipe, name) for name in names}


def constant(recipe: Recipe, name: str) -> float:
    """Return a hyperparameter that is the same at every step, as a number."""
    return float(np.ravel(getattr(recipe, name))[0])


def _raised(
    bounds: dict[str, tuple[float, float]], best: Recipe
) -> tuple[dict[str, tuple[float, float]], Recipe]:
    """Return bounds with a lower end above lambda_u of the recipe, and the recipe within them."""
    low, high = bounds["lambda_u"]
    floor = min(2 * max(low, float(np.min(best.lambda_u))), 0.5 * high)
    raised = {**bounds, "lambda_u": (floor, high)}
    return raised, best.replace(lambda_u=max(floor, float(np.min(best.lambda_u))))
