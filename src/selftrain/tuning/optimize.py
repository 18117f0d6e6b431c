r"""`optimize`: the recipe with the smallest final error, constants or whole schedules, by adjoint gradients.

A bounded quasi-Newton method (L-BFGS-B) works in the coordinates of `variables`, roughly first: from the best of
several starts, which are the given one, the optimum of a shorter run, and points spread over the bounds. What it finds is
finished by Newton's method on the gradient if the coordinates are few, else by L-BFGS-B again. A schedule is set
free only after its best constant is known. Recipes whose labels collapse, or whose equations have no
solution, count as an error of one: no line search ends there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from ..errors import InvalidInput, NoGradient, StageError, nearest
from ..fields import number
from ..losses import Array
from ..problem import Problem
from ..recipe import Recipe
from ..theory.adjoint import gradient
from ..theory.bayes import bayes_error
from ..theory.solve import checked_tolerance, solve
from ..theory.trajectory import Trajectory
from .optimum import Optimum, Point, active_bounds, labeled_optimum
from .supervised import supervised_optimum
from .variables import DEFAULT_BOUNDS, Variables, forward, variables

Index = NDArray[np.intp]

METHODS = ("l-bfgs-b", "nelder-mead")
ROUGH = 1e-5
"""Tolerance of the solver while starts are compared; the best one is finished at the tolerance asked for."""

ROUGHEST = 1e-4
"""Tolerance while candidates are ranked."""

ROUGHLY = 1e-5
"""A gradient this small ends a rough search."""

STATIONARY = 1e-9
"""A gradient this small, where bounds do not hold it, ends a search."""

WORST = 1.0
"""What a recipe without a final error counts as."""

FULL_HESSIAN = 24
"""Up to so many free coordinates all second derivatives are taken; beyond, those along the smoothest
directions, in which a schedule can still move."""

SEVERAL = 3
"""Starts that are tried if none is given."""

USUAL = {
    "lambda_l": (1e-5, 0.1),
    "lambda_u": (1e-5, 0.1),
    "threshold": (0.0, 1.0),
    "sharpness": (0.5, 3.0),
    "annealing": (0.0, 0.3),
}
"""Where optima are common; far outside, runs are slow and rarely good."""

COLLAPSES = "the labels collapse from every start: fix the bias, or give another start"


@dataclass
class Search:
    """Evaluates recipes and remembers what it saw; with gradients, a run starts from the one before."""

    problem: Problem
    variables: Variables
    limit: int = 500
    progress: Callable[[int, float], None] | None = None
    solves: int = 0
    best: float = math.inf
    last: Trajectory | None = None
    path: list[Point] = field(default_factory=list)

    def error(self, x: Array, tolerance: float) -> tuple[float, Trajectory | None]:
        """The final error at x; no trajectory where it is not a solved state."""
        self.solves += 1
        recipe = self.variables.recipe(x)
        try:
            run = solve(self.problem, recipe, tolerance, near=self.last)
        except StageError:
            return WORST, None
        if run.collapsed_at is not None:
            return WORST, None
        value = float(run.error[-1])
        if tolerance <= ROUGH and value < self.best:
            self.best = value
            self.path.append(Point(self.solves, value, recipe))
        if self.progress is not None:
            self.progress(self.solves, self.best)
        return value, run

    def slope(self, x: Array, tolerance: float) -> tuple[float, Array]:
        """The final error and its gradient in the coordinates."""
        value, run = self.error(x, tolerance)
        if run is None:
            return WORST, np.zeros(x.size)
        self.last = run
        try:
            return value, self.variables.slope(x, gradient(run))
        except (NoGradient, StageError):
            return WORST, np.zeros(x.size)

    def descend(
        self, x: Array, tolerance: float, enough: float = STATIONARY, limit: int | None = None
    ) -> tuple[float, Array]:
        """L-BFGS-B from x until the gradient is `enough`; started again where its line search gives up."""
        low, high = self.variables.box()
        limit = min(self.limit, limit or self.limit)
        value = math.inf
        for _ in range(4):
            with threadpool_limits(
                1
            ):  # threads of linear algebra take longer to wake than to compute
                found = minimize(
                    self.slope,
                    x,
                    args=(tolerance,),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=list(zip(low, high, strict=True)),
                    options={
                        "maxiter": limit, "maxfun": 2 * limit, "ftol": 1e-15, "gtol": enough, "maxcor": 20,
                    },
                )  # fmt: skip
            gain, value, x = value - float(found.fun), float(found.fun), np.asarray(found.x)
            if found.status != 2 or not gain > enough**2:  # 2: the line search found no lower point
                break
        return value, x

    def finish(self, x: Array, tolerance: float) -> tuple[Array, float, float]:
        """From near an optimum to it, and its `conditions`."""
        value, slope = self.slope(x, tolerance)
        free = self.free(x, slope)
        if 0 < free.size <= FULL_HESSIAN:
            hessian = self.hessian(x, slope, free, tolerance)
            x, slope = self._newton(x, value, slope, free, hessian, tolerance)
            left = float(np.abs(slope[self.free(x, slope)]).max(initial=0.0))
            if left <= STATIONARY and np.array_equal(self.free(x, slope), free):
                return x, left, float(np.linalg.eigvalsh(hessian).min())
        _, x = self.descend(x, tolerance)
        return x, *self.conditions(x, tolerance)

    def conditions(self, x: Array, tolerance: float) -> tuple[float, float]:
        """Largest entry of the gradient that no bound holds, and least curvature along free coordinates."""
        value, slope = self.slope(x, tolerance)
        if not value < WORST:
            return math.inf, math.nan
        free = self.free(x, slope)
        first = float(np.abs(slope[free]).max(initial=0.0))
        if free.size == 0:
            return first, math.nan
        return first, float(np.linalg.eigvalsh(self.hessian(x, slope, free, tolerance)).min())

    def _newton(
        self, x: Array, value: float, slope: Array, free: Index, hessian: Array, tolerance: float
    ) -> tuple[Array, Array]:
        """Newton steps on the free coordinates as long as they shrink the gradient; x and the gradient there."""
        low, high = self.variables.box()
        for _ in range(8):
            size = np.abs(slope[free]).max(initial=0.0)
            if size <= STATIONARY or np.linalg.eigvalsh(hessian).min() <= 0:
                break
            there = x.copy()
            there[free] -= np.linalg.solve(hessian, slope[free])
            if np.any(there < low) or np.any(there > high):
                break
            new_value, new_slope = self.slope(there, tolerance)
            if not (new_value <= value + 1e-9 and np.abs(new_slope[free]).max() < 0.5 * size):
                break
            x, value, slope = there, new_value, new_slope
        return x, slope

    def free(self, x: Array, slope: Array) -> Index:
        """Coordinates that no bound holds: off the bounds, or pushed away from them."""
        low, high = self.variables.box()
        held = ((x <= low + 1e-9) & (slope >= 0)) | ((x >= high - 1e-9) & (slope <= 0))
        return np.flatnonzero(~held)

    def hessian(self, x: Array, slope: Array, free: Index, tolerance: float) -> Array:
        """Second derivatives along free coordinates by differences to the gradient at x; smooth directions of many.

        Over the distance of a difference a hundred times the tolerance is good to a few digits.
        """
        low, high = self.variables.box()
        rough = min(100 * tolerance, 1e-3)
        basis = np.eye(free.size)
        if free.size > FULL_HESSIAN:
            waves = np.outer(np.arange(FULL_HESSIAN), np.arange(free.size) + 0.5)
            basis = np.linalg.qr(np.cos(np.pi * waves / free.size).T)[0].T
        columns = []
        for direction in basis:
            move = np.zeros(x.size)
            move[free] = 3e-4 * direction / np.abs(direction).max()
            ahead, behind = np.clip(x + move, low, high), np.clip(x - move, low, high)
            there = max(ahead, behind, key=lambda at: float(np.abs(at - x).sum()))
            length = float((there - x)[free] @ direction)
            columns.append(basis @ (self.slope(there, rough)[1] - slope)[free] / length)
        hessian = np.array(columns).reshape(len(basis), len(basis))
        return np.asarray(0.5 * (hessian + hessian.T))

    def simplex(self, x: Array, tolerance: float) -> tuple[float, Array]:
        """Nelder-Mead from x, as the paper does."""
        low, high = self.variables.box()
        size = np.minimum(0.3, 0.25 * (high - low))
        corners = x + np.diag(np.where(x + size <= high, size, -size))
        found = minimize(
            lambda at: self.error(at, tolerance)[0],
            x,
            method="Nelder-Mead",
            bounds=list(zip(low, high, strict=True)),
            options={
                "xatol": 1e-6, "fatol": 1e-11, "maxfev": 400 * x.size,
                "initial_simplex": np.vstack([x, corners]),
            },  # type: ignore[call-overload]
        )  # fmt: skip
        return float(found.fun), np.asarray(found.x)


def optimize(
    problem: Problem,
    over: Sequence[str] = ("lambda_l", "lambda_u"),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    schedule: Sequence[str] = (),
    start: Recipe | Mapping[str, Any] | None = None,
    method: str = "l-bfgs-b",
    starts: int | None = None,
    tolerance: float = 1e-10,
    limit: int = 500,
    progress: Callable[[int, float], None] | None = None,
) -> Optimum:
    r"""The recipe with the smallest generalisation error at the last step.

    Arguments:
        problem: the data.
        over: constants to optimise: lambda_l, lambda_u, threshold, sharpness, annealing.
        bounds: (low, high) by name; default: ridges [1e-8, 0.1], threshold [0, 3], annealing [0, 10],
            sharpness [0.1, 100].
        schedule: quantities free at every step: lambda_u, threshold, sharpness; in `over` or not.
        start: where the search begins, and what holds for everything that is not optimised (so
            `Recipe(fix_bias=True)` optimises with a fixed bias); a recipe, or some of its fields.
        method: "l-bfgs-b" with adjoint gradients, or "nelder-mead", the paper's way (constants only).
        starts: how many starts are tried, the given one and others. Default: the given one alone, unless
            it leads to no better an error than that of the labelled points alone; three if none is given.
        tolerance: relative accuracy of the solver.
        limit: most iterations of a search; `is_minimum` tells whether they were enough.
        progress: called with the number of solves and the best error so far.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.5, delta=0.75**2, steps=16)
    >>> best = optimize(problem, over=("lambda_l", "lambda_u"))
    >>> round(best.error, 6), round(best.recipe.lambda_u, 4), best.active_bounds
    (0.098222, 0.0496, {})
    """
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "a selftrain.Problem is accepted")
    if method not in METHODS:
        raise InvalidInput("method", method, f"unknown method; {nearest(str(method), METHODS)}")
    if progress is not None and not callable(progress):
        raise InvalidInput("progress", progress, "a function of solves and best error is accepted")
    accepted = "a whole number from 1 to 100 is accepted"
    count = SEVERAL if start is None else 1
    if starts is not None:
        count = int(number("starts", starts, lambda n: 1 <= n <= 100 and n % 1 == 0, accepted))
    accepted = "a whole number from 1 to 100000 is accepted"
    limit = int(number("limit", limit, lambda n: 1 <= n <= 100_000 and n % 1 == 0, accepted))
    tolerance = checked_tolerance(tolerance)
    free, begin = variables(problem, over, schedule, bounds, start)
    if method == "nelder-mead" and free.schedule:
        raise InvalidInput("schedule", free.schedule, "nelder-mead optimises constants only")
    ridge = free.bounds.get("lambda_l", DEFAULT_BOUNDS["lambda_l"])
    alone = labeled_optimum(problem, ridge, tolerance)
    search = Search(problem, free, limit, progress)
    if method == "nelder-mead":
        _, x = search.simplex(free.coordinates(begin), tolerance)
        first, second = search.conditions(x, tolerance)
    else:
        value, x = _rough_optimum(search, begin, count, max(ROUGH, tolerance))
        if starts is None and start is not None and value > alone.error - ROUGHLY and problem.steps:
            value, x = _rough_optimum(search, begin, SEVERAL, max(ROUGH, tolerance))
        if not value < WORST:
            raise NoGradient(COLLAPSES)
        x, first, second = search.finish(x, tolerance)
    recipe = free.recipe(x)
    run = solve(problem, recipe, tolerance)
    if run.collapsed_at is not None:
        raise NoGradient(COLLAPSES)
    return Optimum(
        recipe=recipe,
        trajectory=run,
        path=tuple(search.path),
        solves=search.solves,
        bounds=dict(free.bounds),
        schedule=free.schedule,
        active_bounds=active_bounds(free, x),
        first_order=first,
        second_order=second,
        labeled_only=alone,
        supervised=supervised_optimum(problem, ridge, tolerance),
        bayes=bayes_error(problem),
    )


def _rough_optimum(
    search: Search, begin: Recipe, starts: int, tolerance: float
) -> tuple[float, Array]:
    """Near the best optimum that several starts lead to; a schedule starts from its best constant."""
    free = search.variables
    if free.schedule and not _has_schedule(begin, free):
        search.variables = Variables(free.base, free.names, free.bounds, (), free.steps)
        _, x = _rough_optimum(search, begin, starts, tolerance)
        recipe = search.variables.recipe(x)
        search.variables = free
        return search.descend(free.coordinates(recipe), tolerance, ROUGHLY)
    chosen = [free.coordinates(begin)]
    if starts > 1 and not free.schedule:
        candidates = [*chosen, *_shorter(search, begin, tolerance), *_spread(free, 2 * starts)]
        ranked = sorted(candidates, key=lambda x: search.error(x, ROUGHEST)[0])
        chosen = _distinct(ranked, starts - 1)
    return min((search.descend(x, tolerance, ROUGHLY, 60) for x in chosen), key=_value)


def _spread(free: Variables, count: int) -> list[Array]:
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
    """The optimum of a run of an eighth of the steps: as it is, and with ridge and annealing for the longer run."""
    problem, free = search.problem, search.variables
    steps = problem.steps // 8
    if steps < 2:
        return []
    batches = problem.batches
    first = problem.replace(
        steps=steps,
        alpha_u=tuple(batches.alpha[:steps].tolist()),
        rho_u=tuple(batches.rho[:steps].tolist()),
        delta_u=tuple(batches.delta[:steps].tolist()),
        test=tuple(problem.test_mixture),
    )
    held: dict[str, Any] = {
        name: getattr(begin, name)[:steps]
        for name in ("lambda_u", "threshold", "sharpness", "annealing")
        if isinstance(getattr(begin, name), tuple)
    }
    base = begin.replace(**held)
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
