r"""The supervised baseline: what the same data would give with all their labels.

$\epsilon_g^{(SL)}$ of the paper: one fit to $\alpha_L + \sum_t \alpha_U^{(t)}$ labelled points per
feature, at its best ridge; under domain shift every batch keeps its own $(\rho, \Delta)$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..errors import InvalidInput, StageError
from ..fields import number
from ..parameters import LARGEST_RIDGE, LARGEST_SUPERVISED_RIDGE, SMALLEST_RIDGE
from ..problem import Problem
from ..theory.solve import checked_tolerance
from ..theory.supervised import supervised_model

__all__ = ["SupervisedFit", "SupervisedOptimum", "supervised_fit", "supervised_optimum"]


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
    """The fit to all points of the problem with their true labels, at a given ridge.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=2.0, alpha_u=1.0, rho=0.5, delta=0.5, steps=0, loss="squared")
    >>> round(supervised_fit(problem, 0.01).error, 9)
    0.181064673
    """
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "a selftrain.Problem is accepted")
    tolerance = checked_tolerance(tolerance)
    model = supervised_model(problem, ridge, tolerance)
    return SupervisedFit(model.error, ridge, model.cosine)


def supervised_optimum(
    problem: Problem, bounds: tuple[float, float] = (0.0, LARGEST_RIDGE), tolerance: float = 1e-10
) -> SupervisedOptimum:
    """The supervised baseline at its best ridge.

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
    inside = _best(problem, low, high, tolerance)
    wide = _best(problem, SMALLEST_RIDGE, max(LARGEST_SUPERVISED_RIDGE, high), tolerance)
    if inside.error < wide.error:
        wide = inside
    return SupervisedOptimum(
        inside.error,
        inside.ridge,
        inside.cosine,
        inside.active_bound,
        bounds=(float(bounds[0]), float(bounds[1])),
        unbounded=wide,
    )


def _best(problem: Problem, low: float, high: float, tolerance: float) -> SupervisedFit:
    """Scan in the logarithm of the ridge, then a bounded scalar search around the best point."""
    grid = np.linspace(math.log(low), math.log(high), 12)

    def error_at(x: float) -> float:
        try:
            return supervised_fit(problem, math.exp(x), tolerance).error
        except StageError:
            return math.inf  # a ridge too small for this loss to be solved is no candidate

    errors = [error_at(float(x)) for x in grid]
    at = int(np.argmin(errors))
    if not errors[at] < math.inf:
        supervised_fit(problem, high, tolerance)
    left, right = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    found = minimize_scalar(
        error_at,
        bounds=(left, right),
        method="bounded",
        options={"xatol": 1e-6},
    )
    edge = grid[at] if at in (0, len(grid) - 1) else None
    x = float(found.x) if found.fun < errors[at] else float(grid[at])
    best = supervised_fit(problem, math.exp(x), tolerance)
    if edge is None or abs(x - edge) > 1e-5:
        return best
    bound, active = (low, "lower") if at == 0 else (high, "upper")
    best = supervised_fit(problem, bound, tolerance)
    return SupervisedFit(best.error, best.ridge, best.cosine, active)


def _checked(bounds: Any) -> tuple[float, float]:
    accepted = "two numbers 0 <= low < high are accepted"
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidInput("bounds", bounds, accepted) from None
    low = number("bounds[0]", low, lambda value: 0 <= value < math.inf, accepted)
    high = number("bounds[1]", high, lambda value: 0 < value < math.inf, accepted)
    if not low < high:
        raise InvalidInput("bounds", bounds, accepted)
    return max(low, SMALLEST_RIDGE), max(high, 2 * SMALLEST_RIDGE)
