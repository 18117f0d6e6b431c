r"""Supervised fits at their best ridge: to the labelled samples only, and fully supervised.

The error of the fully supervised fit is the paper's $\epsilon_g^{(SL)}$: one fit to $\alpha_L +
\sum_t \alpha_U^{(t)}$ labelled samples per feature; under domain shift every batch has its own
$(\rho, \Delta)$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..errors import InvalidInput, StageError
from ..parameters import LARGEST_RIDGE, LARGEST_SUPERVISED_RIDGE, SMALLEST_RIDGE
from ..problem import Problem
from ..protocol import Fit, Protocol, SampleGroup, Use, protocol_of
from ..recipe import Recipe
from ..theory.causal.setting import Setting
from ..theory.causal.solve import run_one_replicate
from ..theory.solve import checked_tolerance, solve
from ..theory.supervised_fit import supervised_model
from .variables import checked_bounds

__all__ = [
    "SupervisedFit", "SupervisedOptimum", "labeled_optimum", "supervised_fit",
    "supervised_optimum",
]  # fmt: skip


SEARCH_POINTS, POINTS = 2**10, 2**13
"""Numbers of points of a fit of K classes, for each class and group: during the search of the
ridge, where errors are accurate to about 1e-3, and at the end, to 1e-4.
"""

SMALLEST_OF_CLASSES = 1e-5
"""Smallest ridge that is tried for K classes: smaller ones take minutes and are no better."""

RIDGE_OF_CLASSES = 1e-2
"""Accuracy of the logarithm of the best ridge of K classes; the error is flat around it."""


@dataclass(frozen=True)
class SupervisedFit:
    r"""A supervised fit and its ridge.

    Attributes:
        error: generalisation error on the test mixture of the problem.
        ridge: $\lambda$.
        cosine: $m/\sqrt q$; NaN for K classes.
        active_bound: "lower" or "upper" if the best ridge is at that bound, else None.
    """

    error: float
    ridge: float
    cosine: float
    active_bound: str | None = None


@dataclass(frozen=True)
class SupervisedOptimum(SupervisedFit):
    """The best fit with a ridge within `bounds`; `unbounded` is that with any ridge up to 1e6."""

    bounds: tuple[float, float] = (0.0, LARGEST_RIDGE)
    unbounded: SupervisedFit | None = None


def supervised_fit(problem: Problem, ridge: float, tolerance: float = 1e-10) -> SupervisedFit:
    """Fit all samples of a problem at a given ridge, as if all had labels with the label noise of
    the labelled ones.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=2.0, alpha_u=1.0, rho=0.5, delta=0.5, steps=0, loss="squared")
    >>> round(supervised_fit(problem, 0.01).error, 9)
    0.181064673
    """
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem")
    tolerance = checked_tolerance(tolerance)
    if problem.classes > 2:
        return _class_fit(problem, ridge, labeled_only=False, points=POINTS)
    model = supervised_model(problem, ridge, tolerance)
    return SupervisedFit(model.error, ridge, model.cosine)


def supervised_optimum(
    problem: Problem, bounds: tuple[float, float] = (0.0, LARGEST_RIDGE), tolerance: float = 1e-10
) -> SupervisedOptimum:
    """Find the best ridge of the fully supervised fit.

    Arguments:
        problem: the data; all batches count as labelled, with the problem's label noise.
        bounds: bounds for the ridge; use those of the recipe that it is compared with. A lower
            bound of 0 means 1e-13.
        tolerance: relative accuracy of each fit.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=16)
    >>> best = supervised_optimum(problem)
    >>> round(best.error, 6), best.active_bound
    (0.072834, 'upper')
    """
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem")
    low, high = checked_bounds("bounds", "lambda_l", bounds)

    def best(low: float, high: float) -> SupervisedFit:
        if problem.classes > 2:
            return _best_of_classes(problem, (low, high), labeled_only=False)
        return _best(lambda ridge: supervised_fit(problem, ridge, tolerance), low, high)

    inside = wide = best(low, high)
    if problem.classes == 2 or inside.active_bound is not None:
        wide = best(SMALLEST_RIDGE, max(LARGEST_SUPERVISED_RIDGE, high))
    return SupervisedOptimum(
        **vars(inside),
        bounds=(float(bounds[0]), float(bounds[1])),
        unbounded=inside if inside.error < wide.error else wide,
    )


def labeled_optimum(
    problem: Problem, bounds: tuple[float, float], tolerance: float
) -> SupervisedFit:
    """Find the best ridge for the labelled samples only, on the test mixture of the problem."""
    if problem.classes > 2:
        return _best_of_classes(problem, bounds, labeled_only=True)
    alone = problem.labeled_alone().replace(test=problem.test_pair)
    near: Any = None

    def fit(ridge: float) -> SupervisedFit:
        recipe = Recipe(lambda_l=ridge)
        try:
            run = solve(alone, recipe, tolerance)
        except StageError:
            run = solve(alone, recipe, tolerance, warm_start=near)
        return SupervisedFit(float(run.error[0]), ridge, float(run.cosine[0]))

    def scanned(ridge: float) -> float:
        nonlocal near  # from scratch, small ridges need a continuation from large ones
        near = solve(alone, Recipe(lambda_l=ridge), tolerance, warm_start=near)
        return float(near.error[0])

    return _best(fit, *bounds, scan=scanned)


def _best_of_classes(
    problem: Problem, bounds: tuple[float, float], *, labeled_only: bool
) -> SupervisedFit:
    """Find the best ridge for K classes on a small quasi-Monte Carlo sample; return its fit on a
    large one.
    """

    def fit(ridge: float) -> SupervisedFit:
        return _class_fit(problem, ridge, labeled_only, SEARCH_POINTS)

    rough = _best(fit, max(bounds[0], SMALLEST_OF_CLASSES), bounds[1], RIDGE_OF_CLASSES)
    best = _class_fit(problem, rough.ridge, labeled_only, POINTS)
    return replace(best, active_bound=rough.active_bound)


def _class_fit(problem: Problem, ridge: float, labeled_only: bool, points: int) -> SupervisedFit:
    """Fit the labelled samples of K classes, or all samples, with the problem's label noise."""
    written = protocol_of(problem, Recipe())
    groups = written.groups[:1] if labeled_only else written.groups
    merged: dict[Any, SampleGroup] = {}  # batches with the same mixture are one group
    for group in groups:
        key = group.law, group.proportions
        alpha = group.alpha + (merged[key].alpha if key in merged else 0.0)
        merged[key] = replace(group, alpha=alpha, label_noise=problem.label_noise)
    uses = tuple(Use(g) for g in range(len(merged)))
    protocol = Protocol(
        tuple(merged.values()), (Fit(ridge, problem.loss_at(0), uses),), written.test
    )
    run = run_one_replicate(Setting.of(protocol), points).trajectory
    return SupervisedFit(float(run.error[0]), ridge, math.nan)


def _best(
    fit: Callable[[float], SupervisedFit],
    low: float,
    high: float,
    apart: float = 1e-6,
    scan: Callable[[float], float] | None = None,
) -> SupervisedFit:
    """Return the fit with the best ridge: scan its logarithm from above, then search around the
    best point to the accuracy `apart`; `scan` may return the errors of the scan faster than `fit`.
    """
    grid = np.linspace(math.log(low), math.log(high), 12)

    def error_at(x: float, error: Callable[[float], float] = lambda at: fit(at).error) -> float:
        try:
            return error(math.exp(x))
        except StageError:
            return math.inf  # the ridge is too small for this loss

    scanned = error_at if scan is None else partial(error_at, error=scan)
    errors = [scanned(float(x)) for x in grid[::-1]][::-1]
    at = int(np.argmin(errors))
    if not errors[at] < math.inf:
        return fit(high)
    around = (grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)])
    found = minimize_scalar(error_at, bounds=around, method="bounded", options={"xatol": apart})
    x = float(found.x) if found.fun < errors[at] else float(grid[at])
    for bound, end, side in ((low, grid[0], "lower"), (high, grid[-1], "upper")):
        if abs(x - end) <= 10 * apart:
            return replace(fit(bound), active_bound=side)
    return fit(math.exp(x))
