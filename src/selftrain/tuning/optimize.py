r"""`optimize`: the recipe with the smallest final error, constants or whole schedules, by adjoint gradients.

A bounded quasi-Newton method (L-BFGS-B) works in the coordinates of `variables`, from several starts: the
given one, the best of a few points spread over the bounds, and the optimum of a shorter run. A
schedule is set free only after its best constant is known. Recipes whose labels collapse, or whose
equations have no solution, count as an error of one: no line search ends there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

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
from .variables import DEFAULT_BOUNDS, Variables, variables

METHODS = ("l-bfgs-b", "nelder-mead")
COARSE = 1e-7
"""Tolerance of the solver while starts are compared; the best one is finished at the tolerance asked for."""

WORST = 1.0
"""What a recipe without a final error counts as."""


@dataclass
class Search:
    """Evaluates recipes and remembers what it saw."""

    problem: Problem
    variables: Variables
    progress: Callable[[int, float], None] | None = None
    solves: int = 0
    best: float = math.inf
    path: list[Point] = field(default_factory=list)

    def error(self, x: Array, tolerance: float) -> tuple[float, Trajectory | None]:
        """The final error at x; no trajectory where it is not a solved state."""
        self.solves += 1
        recipe = self.variables.recipe(x)
        try:
            run = solve(self.problem, recipe, tolerance)
        except StageError:
            return WORST, None
        if run.collapsed_at is not None:
            return WORST, None
        value = float(run.error[-1])
        if value < self.best:
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
        try:
            return value, self.variables.slope(x, gradient(run))
        except NoGradient:
            return WORST, np.zeros(x.size)

    def descend(self, x: Array, tolerance: float, limit: int) -> tuple[float, Array]:
        """L-BFGS-B from x; started again from where it stopped as long as that helps."""
        low, high = self.variables.box()
        value = math.inf
        for _ in range(4):
            found = minimize(
                self.slope,
                x,
                args=(tolerance,),
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(low, high, strict=True)),
                options={
                    "maxiter": limit, "maxfun": 2 * limit, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20,
                },
            )  # fmt: skip
            gain, value, x = value - float(found.fun), float(found.fun), np.asarray(found.x)
            if found.status != 2 or not gain > 1e-12:  # 2: the line search found no lower point
                break
        return value, x

    def simplex(self, x: Array, tolerance: float) -> tuple[float, Array]:
        """Nelder-Mead from x, as the paper does."""
        low, high = self.variables.box()
        found = minimize(
            lambda at: self.error(at, tolerance)[0],
            x,
            method="Nelder-Mead",
            bounds=list(zip(low, high, strict=True)),
            options={"xatol": 1e-6, "fatol": 1e-11, "maxfev": 400 * x.size},  # type: ignore[call-overload]
        )
        return float(found.fun), np.asarray(found.x)


def optimize(
    problem: Problem,
    over: Sequence[str] = ("lambda_l", "lambda_u"),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    schedule: Sequence[str] = (),
    start: Recipe | Mapping[str, Any] | None = None,
    method: str = "l-bfgs-b",
    starts: int = 3,
    tolerance: float = 1e-10,
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
        starts: how many starts are tried; 1: the given one only.
        tolerance: relative accuracy of the solver.
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
    accepted = "a whole number from 1 to 100 is accepted"
    starts = int(number("starts", starts, lambda n: 1 <= n <= 100 and n % 1 == 0, accepted))
    tolerance = checked_tolerance(tolerance)
    free, begin = variables(problem, over, schedule, bounds, start)
    if method == "nelder-mead" and free.schedule:
        raise InvalidInput("schedule", free.schedule, "nelder-mead optimises constants only")
    search = Search(problem, free, progress)
    x = free.coordinates(begin)
    if method == "nelder-mead":
        _, x = search.simplex(x, tolerance)
    else:
        if starts > 1 or (free.schedule and not _has_schedule(begin, free)):
            x = _promising(search, begin, starts, tolerance)
        _, x = search.descend(x, tolerance, 500)
    return _report(search, x, tolerance)


def _promising(search: Search, begin: Recipe, starts: int, tolerance: float) -> Array:
    """Coordinates from which the final descent begins: the best of several, compared coarsely."""
    free = search.variables
    coarse = max(COARSE, tolerance)
    if free.schedule and not _has_schedule(begin, free):
        search.variables = Variables(free.base, free.names, free.bounds, (), free.steps)
        x = _promising(search, begin, starts, tolerance)
        _, x = search.descend(x, coarse, 60)
        recipe = search.variables.recipe(x)
        search.variables = free
        return free.coordinates(recipe)
    candidates = [free.coordinates(begin)]
    if starts > 1:
        candidates += _shorter(search, begin)
    if starts > 2 and not free.schedule:
        candidates += _spread(search, starts - 2, coarse)
    tried = [search.descend(x, coarse, 60) for x in candidates]
    value, x = min(tried, key=lambda pair: pair[0])
    if not value < WORST:
        raise NoGradient(
            "the labels collapse from every start: fix the bias, or give another start"
        )
    return x


def _spread(search: Search, count: int, tolerance: float) -> list[Array]:
    """The best `count` of a few points spread evenly over the bounds."""
    low, high = search.variables.box()
    points = qmc.Halton(low.size, scramble=False).random(4 * count + 1)[1:]
    inside = low + (0.1 + 0.8 * points) * (high - low)
    ranked = sorted(inside, key=lambda x: search.error(x, tolerance)[0])
    return list(ranked[:count])


def _shorter(search: Search, begin: Recipe) -> list[Array]:
    """The optimum of a run of an eighth of the steps: as it is, and with ridge and annealing for the longer run."""
    problem, free = search.problem, search.variables
    if problem.steps < 8 or free.schedule:
        return []
    steps = problem.steps // 8
    batches = problem.batches
    first = problem.replace(
        steps=steps,
        alpha_u=tuple(batches.alpha[:steps].tolist()),
        rho_u=tuple(batches.rho[:steps].tolist()),
        delta_u=tuple(batches.delta[:steps].tolist()),
        test=tuple(problem.test_mixture),
    )
    held: dict[str, Any] = {}
    for name in ("lambda_u", "threshold", "sharpness", "annealing"):
        if isinstance(getattr(begin, name), tuple):
            held[name] = getattr(begin, name)[:steps]
    base = begin.replace(**held)
    brief = Search(first, Variables(base, free.names, free.bounds, (), steps))
    x = brief.variables.coordinates(base)
    if steps >= 8:
        x = min(
            (brief.descend(at, COARSE, 60) for at in (x, *_shorter(brief, base))),
            key=lambda pair: pair[0],
        )[1]
    value, x = brief.descend(x, COARSE, 60)
    search.solves += brief.solves
    if not value < WORST:
        return []
    found = brief.variables.recipe(x)
    values = {name: getattr(found, name) for name in free.names}
    longer = dict(values)
    for name in {"lambda_u", "annealing"} & set(values):
        low, high = free.bounds[name]
        longer[name] = float(np.clip(values[name] / 4, low, high))
    return [free.coordinates(begin.replace(**choice)) for choice in (values, longer)]


def _has_schedule(recipe: Recipe, free: Variables) -> bool:
    return any(isinstance(getattr(recipe, name), tuple) for name in free.schedule)


def _report(search: Search, x: Array, tolerance: float) -> Optimum:
    """The result with its checks and what it is to be compared with."""
    problem, free = search.problem, search.variables
    recipe = free.recipe(x)
    run = solve(problem, recipe, tolerance)
    if run.collapsed_at is not None:
        raise NoGradient(
            "the labels collapse from every start: fix the bias, or give another start"
        )
    ridge = free.bounds.get("lambda_l", DEFAULT_BOUNDS["lambda_l"])
    first, second = _conditions(search, x, tolerance)
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
        labeled_only=labeled_optimum(problem, ridge, tolerance),
        supervised=supervised_optimum(problem, ridge, tolerance),
        bayes=bayes_error(problem),
    )


FULL_HESSIAN = 24
"""Up to so many free coordinates the curvature is the least eigenvalue of the whole Hessian; beyond, it is
that of its projection on smooth directions, along which a schedule can still move."""


def _conditions(search: Search, x: Array, tolerance: float) -> tuple[float, float]:
    """Largest entry of the projected gradient, and least curvature along free directions, in coordinates."""
    low, high = search.variables.box()
    _, slope = search.slope(x, tolerance)
    at_low, at_high = x <= low + 1e-9, x >= high - 1e-9
    held = (at_low & (slope > 0)) | (at_high & (slope < 0))
    first = float(np.abs(np.where(held, 0.0, slope)).max(initial=0.0))
    free = np.flatnonzero(~held & ~at_low & ~at_high)
    if free.size == 0:
        return first, math.nan
    basis = np.eye(free.size)
    if free.size > FULL_HESSIAN:
        index = np.arange(free.size)
        waves = np.cos(np.pi * np.outer(np.arange(FULL_HESSIAN), index + 0.5) / free.size)
        basis = np.linalg.qr(waves.T)[0].T
    columns = []
    for direction in basis:
        move = np.zeros(x.size)
        move[free] = 1e-3 * direction / np.abs(direction).max()
        size = float(np.linalg.norm(move))
        up = search.slope(np.clip(x + move, low, high), tolerance)[1]
        down = search.slope(np.clip(x - move, low, high), tolerance)[1]
        columns.append(basis @ (up - down)[free] / (2 * size))
    hessian = np.array(columns)
    return first, float(np.linalg.eigvalsh(0.5 * (hessian + hessian.T)).min())
