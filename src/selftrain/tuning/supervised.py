r"""Supervised fits at their best ridge: of the labelled samples alone, and fully supervised.

Fully supervised is $\epsilon_g^{(SL)}$ of the paper: one fit to $\alpha_L + \sum_t \alpha_U^{(t)}$
labelled samples per feature; under domain shift every batch has its own $(\rho, \Delta)$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..errors import InvalidInput, StageError
from ..fields import number
from ..parameters import LARGEST_RIDGE, LARGEST_SUPERVISED_RIDGE, SMALLEST_RIDGE
from ..problem import Problem
from ..recipe import Recipe
from ..theory.solve import checked_tolerance, solve
from ..theory.supervised import supervised_model

__all__ = [
    "SupervisedFit",
    "SupervisedOptimum",
    "labeled_optimum",
    "supervised_fit",
    "supervised_optimum",
]


@dataclass(frozen=True)
class SupervisedFit:
    r"""A supervised fit and its ridge.

    Attributes:
        error: generalisation error on the test mixture of the problem.
        ridge: $\lambda$.
        cosine: $m/\sqrt q$.
        active_bound: "lower" or "upper" if the best ridge sits on that bound, else None.
    """

    error: float
    ridge: float
    cosine: float
    active_bound: str | None = None


@dataclass(frozen=True)
class SupervisedOptimum(SupervisedFit):
    """The best fit within bounds, and the best one without (up to 1e6) as `unbounded`."""

    bounds: tuple[float, float] = (0.0, LARGEST_RIDGE)
    unbounded: SupervisedFit | None = None


def supervised_fit(problem: Problem, ridge: float, tolerance: float = 1e-10) -> SupervisedFit:
    """Fit all samples of a problem with their true labels, at a given ridge.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=2.0, alpha_u=1.0, rho=0.5, delta=0.5, steps=0, loss="squared")
    >>> round(supervised_fit(problem, 0.01).error, 9)
    0.181064673
    """
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem")
    problem.needs_two_classes("the supervised optimum")
    tolerance = checked_tolerance(tolerance)
    model = supervised_model(problem, ridge, tolerance)
    return SupervisedFit(model.error, ridge, model.cosine)


def supervised_optimum(
    problem: Problem, bounds: tuple[float, float] = (0.0, LARGEST_RIDGE), tolerance: float = 1e-10
) -> SupervisedOptimum:
    """Find the best ridge of the fully supervised fit.

    Arguments:
        problem: the data; all batches count as labelled.
        bounds: range of the ridge, the same as the recipe's it is compared with; a lower bound of 0
            stands for 1e-13.
        tolerance: relative accuracy of each fit.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=16)
    >>> best = supervised_optimum(problem)
    >>> round(best.error, 6), best.active_bound
    (0.072834, 'upper')
    """
    low, high = _checked(bounds)

    def fit(ridge: float) -> SupervisedFit:
        return supervised_fit(problem, ridge, tolerance)

    inside = _best(fit, low, high)
    wide = _best(fit, SMALLEST_RIDGE, max(LARGEST_SUPERVISED_RIDGE, high))
    return SupervisedOptimum(
        **vars(inside),
        bounds=(float(bounds[0]), float(bounds[1])),
        unbounded=inside if inside.error < wide.error else wide,
    )


def labeled_optimum(
    problem: Problem, bounds: tuple[float, float], tolerance: float
) -> SupervisedFit:
    """Find the best ridge of the labelled samples alone, on the test mixture of the problem."""
    alone = problem.labeled_alone().replace(test=problem.test_pair)

    def fit(ridge: float) -> SupervisedFit:
        run = solve(alone, Recipe(lambda_l=ridge), tolerance)
        return SupervisedFit(float(run.error[0]), ridge, float(run.cosine[0]))

    return _best(fit, *bounds)


def _best(fit: Callable[[float], SupervisedFit], low: float, high: float) -> SupervisedFit:
    """Scan the logarithm of the ridge, then search around the best point."""
    grid = np.linspace(math.log(low), math.log(high), 12)

    def error_at(x: float) -> float:
        try:
            return fit(math.exp(x)).error
        except StageError:
            return math.inf  # a ridge too small for this loss to be solved is no candidate

    errors = [error_at(float(x)) for x in grid]
    at = int(np.argmin(errors))
    if not errors[at] < math.inf:
        return fit(high)
    around = (grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)])
    found = minimize_scalar(error_at, bounds=around, method="bounded", options={"xatol": 1e-6})
    x = float(found.x) if found.fun < errors[at] else float(grid[at])
    for bound, end, side in ((low, grid[0], "lower"), (high, grid[-1], "upper")):
        if abs(x - end) <= 1e-5:
            return replace(fit(bound), active_bound=side)
    return fit(math.exp(x))


def _checked(bounds: Any) -> tuple[float, float]:
    accepted = "must be two numbers with 0 <= low < high"
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidInput("bounds", bounds, accepted) from None
    low = number("bounds[0]", low, lambda value: 0 <= value < math.inf, accepted)
    high = number("bounds[1]", high, lambda value: 0 < value < math.inf, accepted)
    if not low < high:
        raise InvalidInput("bounds", bounds, accepted)
    return max(low, SMALLEST_RIDGE), max(high, 2 * SMALLEST_RIDGE)
