"""`optimize`: find the recipe with the smallest final error, by adjoint gradients.

`search_starts` chooses the starting points of a search, `search` descends from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import InvalidInput, NoGradient, StageError, nearest
from ..fields import whole
from ..parameters import DEFAULT_OVER, SEARCH_BOUNDS
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.progress import Progress, ProgressOption, checked_progress
from ..theory.solve import checked_tolerance, solve
from ..theory.tolerances import TOLERANCE
from .optimum import Optimum
from .reuse_search import ReuseSearch
from .search import ROUGH, ROUGHLY_STATIONARY, WORST, Search
from .search_starts import (
    DEFAULT,
    GIVEN,
    MANY,
    SEVERAL,
    SPREAD,
    Descent,
    Start,
    known_recipes,
    rough_optimum,
    spread,
)
from .supervised import labeled_optimum
from .variables import Variables, variables, without_bias

__all__ = ["optimize"]

METHODS = ("l-bfgs-b", "nelder-mead")


def optimize(
    problem: Problem,
    over: Sequence[str] = DEFAULT_OVER,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    schedule: Sequence[str] = (),
    start: Recipe | Mapping[str, Any] | None = None,
    method: str = "l-bfgs-b",
    starts: int | None = None,
    tolerance: float | None = None,
    limit: int = 500,
    progress: ProgressOption = None,
) -> Optimum:
    r"""Find the recipe with the smallest generalisation error at the last step.

    Arguments:
        problem: the data.
        over: constants to optimise: lambda_l, lambda_u, threshold, sharpness, annealing; and
            fix_bias, for which both values are tried.
        bounds: (low, high) by name; default: ridges [1e-13, 0.1], threshold [0, 3], annealing [0,
            10], sharpness [0.1, 100].
        schedule: quantities optimised at every step separately: lambda_u, threshold, sharpness.
            They need not be in `over`.
        start: where the search starts, as a recipe or some of its fields. Everything that is not
            optimised keeps its value (so `Recipe(fix_bias=True)` optimises with a fixed bias), and
            the result is never worse than the start. Without a start, the paper's heuristics are
            tried too if `over` allows them; `Optimum.start` names the start that led to the result.
        method: "l-bfgs-b" with adjoint gradients, or "nelder-mead" as in the paper (constants
            only).
        starts: number of starts, the given one included. Default: one if a start is given, else
            three; more, up to ten, as long as no result beats the supervised baseline.
        tolerance: relative accuracy of the solver; default: that of `solve`.
        limit: maximum number of iterations of a search; if it is too small, the result may have
            `is_minimum` False.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`) with
            the number of runs and the best error so far.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.5, delta=0.75**2, steps=16)
    >>> best = optimize(problem, over=("lambda_l", "lambda_u"))
    >>> round(best.error, 6), round(best.recipe.lambda_u, 4), best.active_bounds
    (0.098222, 0.0496, {})
    """
    checked_progress(progress)
    wanted = None if tolerance is None else checked_tolerance(tolerance)
    free, either, starts, limit = checked_search(
        problem, over, bounds, schedule, start, method, starts, limit
    )
    begin = free.base
    ridge = free.bounds.get("lambda_l", SEARCH_BOUNDS["lambda_l"])
    tolerance = TOLERANCE if wanted is None or not problem.by_quadrature else wanted
    final = wanted if not problem.by_quadrature else tolerance
    alone = labeled_optimum(problem, ridge, tolerance)
    plan = _Plan(method, starts, DEFAULT if start is None else GIVEN, alone.error, tolerance)
    with Progress(None, "runs", progress) as bar:
        search = (Search if problem.by_quadrature else ReuseSearch)(problem, free, limit, bar)
        found = _best_bias(search, begin, plan) if either else _descended(search, begin, plan)
        if method == "nelder-mead" and problem.by_quadrature:
            x, (first, second) = found.x, search.conditions(found.x, tolerance)
        else:
            x, first, second = search.finish(found.x, tolerance)
        recipe, came_from = search.variables.recipe(x), found.start
        run: Any = solve(problem, recipe, final)
        before = _start_run(search, begin, final)
        if before is not None and not before.error[-1] >= run.error[-1]:
            search.variables = free
            recipe, run, came_from, x = begin, before, plan.name, free.coordinates(begin)
            first, second = search.conditions(x, tolerance)
    if run.collapsed_at is not None:
        raise NoGradient(f"the best run collapses at step {run.collapsed_at}; give another start")
    return Optimum(
        recipe=recipe,
        trajectory=run,
        path=tuple(search.path),
        solves=search.solves,
        bounds=dict(free.bounds),
        schedule=free.schedule,
        active_bounds=free.active_bounds(x),
        first_order=first,
        second_order=second,
        labeled_only=alone,
        start=came_from,
    )


class _Plan(NamedTuple):
    """Options of a search: the method, the number of starts, the name of the first, the error of
    the supervised baseline, to be beaten, and the tolerance of the solver.
    """

    method: str
    starts: int | None
    name: str
    baseline: float
    tolerance: float


def _best_bias(search: Search, begin: Recipe, plan: _Plan) -> Descent:
    """Search with a trained and with a fixed bias, and return the better result.

    The search is left with the variables of that result.
    """
    found_by_bias = []
    trouble: NoGradient | None = None
    for fixed in (begin.fix_bias, not begin.fix_bias):
        there = begin.replace(fix_bias=fixed)
        search.variables, search.last = replace(search.variables, base=there), None
        try:
            found_by_bias.append((_descended(search, there, plan), search.variables))
        except NoGradient as error:
            trouble = error
    if not found_by_bias:
        assert trouble is not None
        raise trouble
    found, search.variables = min(found_by_bias, key=lambda pair: pair[0].value)
    search.last = None
    return found


def _descended(search: Search, begin: Recipe, plan: _Plan) -> Descent:
    """Descend from the starts; return a point near the best optimum found."""
    there = Start(plan.name, search.variables.coordinates(begin))
    if isinstance(search, ReuseSearch):
        count = plan.starts or (SEVERAL if plan.name == DEFAULT else 1)
        others = [Start(SPREAD, x) for x in spread(search.variables, 2 * (count - 1))]
        known = known_recipes(search.variables, begin) if count > 1 else []
        found = search.follow([there, *known, *others], plan.tolerance, count)
        missing = "run"
    elif plan.method == "nelder-mead":
        return Descent(*search.simplex(there.x, plan.tolerance), plan.name)
    else:
        found, missing = _first_useful(search, begin, plan), "run with a gradient"
    if not found.value < WORST:
        raise NoGradient(f"no start leads to a {missing}; the last: {search.trouble}")
    return found


def _start_run(search: Search, begin: Recipe, tolerance: float | None) -> Any:
    """Return the run with the recipe that the search started from, which may be the best; None if
    it fails or collapses.
    """
    search.solves += 1
    try:
        run = solve(search.problem, begin, tolerance)
    except StageError:
        return None
    finally:
        search.report()
    return run if run.collapsed_at is None else None


def checked_search(
    problem: Any,
    over: Any = DEFAULT_OVER,
    bounds: Any = None,
    schedule: Any = (),
    start: Any = None,
    method: Any = METHODS[0],
    starts: Any = None,
    limit: Any = 500,
) -> tuple[Variables, bool, int | None, int]:
    """Validate the arguments of `optimize`.

    Returns:
        The variables, whose base is the recipe to start from; whether both values of `fix_bias` are
        tried; `starts` and `limit`.
    """
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem")
    if method not in METHODS:
        raise InvalidInput("method", method, f"unknown method; {nearest(str(method), METHODS)}")
    if starts is not None:
        accepted = "must be a whole number from 1 to 100"
        starts = whole("starts", starts, lambda n: 1 <= n <= 100, accepted)
    accepted = "must be a whole number from 1 to 100000"
    limit = whole("limit", limit, lambda n: 1 <= n <= 100_000, accepted)
    constants, either = without_bias(over, schedule)
    free = variables(problem, constants, schedule, bounds, start)
    if free.schedule and method == "nelder-mead":
        accepted = "must be empty with nelder-mead: it optimises constants"
        raise InvalidInput("schedule", free.schedule, accepted)
    if free.schedule and not problem.by_quadrature:
        accepted = "must be empty with data reuse or K classes: constants are optimised"
        raise InvalidInput("schedule", free.schedule, accepted)
    return free, either, starts, limit


def _first_useful(search: Search, begin: Recipe, plan: _Plan) -> Descent:
    """Return a point near the best optimum; try more starts until one beats the baseline."""
    rough = max(ROUGH, plan.tolerance)
    if plan.starts is not None or search.problem.steps == 0:
        return rough_optimum(search, begin, plan.name, plan.starts or 1, rough)
    for count in (SEVERAL, MANY) if plan.name == DEFAULT else (1, SEVERAL, MANY):
        found = rough_optimum(search, begin, plan.name, count, rough)
        if found.value < plan.baseline - ROUGHLY_STATIONARY:
            break
    return found
