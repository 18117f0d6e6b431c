r"""The best recipe of a problem: hyperparameters that minimise the error of the last step.

The paper tunes $(\lambda_L, \lambda_U, \Gamma)$, or $(\lambda_L, \lambda_U, a)$ with the heuristics, for every T apart, with
$\lambda \in (0, 0.1]$. The error has more than one valley, so the search begins at several recipes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...losses import Array
from ...problem import Problem
from ...recipe import Recipe
from ...theory.solve import solve
from ...theory.trajectory import Trajectory

LARGEST_RIDGE = 0.1
BOUNDS = {"threshold": (0.0, 3.0), "annealing": (0.0, 10.0)}
SMALLEST_RIDGE = 1e-8


@dataclass(frozen=True)
class Tuned:
    """The best recipe found, what it does, and which hyperparameters ended at a bound."""

    recipe: Recipe
    run: Trajectory
    active: tuple[str, ...]

    @property
    def error(self) -> float:
        return float(self.run.error[-1])


def tuned(
    problem: Problem,
    over: Sequence[str],
    starts: Sequence[Recipe],
    largest_ridge: float = LARGEST_RIDGE,
) -> Tuned:
    """The recipe of lowest last error, the best of what the searches from all starts find.

    >>> problem = Problem(0.5, 2.0, 0.5, 0.75**2, steps=1)
    >>> best = tuned(problem, ("lambda_l", "lambda_u"), [Recipe(0.05, 0.05)])
    >>> best.recipe.lambda_l, best.recipe.lambda_u, best.active
    (0.1, 0.1, ('lambda_l', 'lambda_u'))
    """
    return min(
        (_search(problem, tuple(over), start, largest_ridge) for start in starts),
        key=lambda found: found.error,
    )


def _search(problem: Problem, over: tuple[str, ...], start: Recipe, largest_ridge: float) -> Tuned:
    from scipy.optimize import Bounds, minimize

    bounds = {name: BOUNDS.get(name, (SMALLEST_RIDGE, largest_ridge)) for name in over}

    def recipe_at(place: Array) -> Recipe:
        values = zip(over, place, strict=True)
        return start.replace(
            **{
                name: float(np.clip(np.exp(x) if name not in BOUNDS else x, *bounds[name]))
                for name, x in values
            }
        )

    def last_error(place: Array) -> float:
        error = solve(problem, recipe_at(place), 1e-8, on_failure="partial").error[-1]
        return 1.0 if np.isnan(error) else float(error)

    ends = np.array([bounds[n] if n in BOUNDS else np.log(bounds[n]) for n in over])
    first = [getattr(start, n) if n in BOUNDS else np.log(getattr(start, n)) for n in over]
    found = minimize(
        last_error,
        np.clip(first, ends[:, 0], ends[:, 1]),
        method="Nelder-Mead",
        bounds=Bounds(ends[:, 0], ends[:, 1]),
        options={"xatol": 1e-3, "fatol": 1e-9, "maxfev": 250},
    )
    recipe = recipe_at(found.x)
    active = tuple(
        name
        for name, x, (low, high) in zip(over, found.x, ends, strict=True)
        if not low + 1e-6 < x < high - 1e-6
    )
    return Tuned(recipe, solve(problem, recipe), active)
