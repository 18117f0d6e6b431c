"""`optimize`: the recipe with the smallest final error, constants or whole schedules, by adjoint
gradients.

`starts` says where a search begins, `search` how it goes down; here is what a user calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..arrays import Array
from ..errors import InvalidInput, NoGradient, StageError, nearest
from ..fields import number
from ..parameters import SEARCH_BOUNDS
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.progress import Progress, ProgressOption, checked_progress
from ..theory.solve import checked_tolerance, solve
from ..theory.tolerances import TOLERANCE
from .optimum import Optimum, active_bounds
from .reuse import ReuseSearch
from .search import ROUGH, ROUGHLY, WORST, Search
from .starts import (
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
from .variables import variables, without_bias

__all__ = ["optimize"]

METHODS = ("l-bfgs-b", "nelder-mead")


def optimize(
    problem: Problem,
    over: Sequence[str] = ("lambda_l", "lambda_u"),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    schedule: Sequence[str] = (),
    start: Recipe | Mapping[str, Any] | None = None,
    method: str = "l-bfgs-b",
    starts: int | None = None,
    tolerance: float | None = None,
    limit: int = 500,
    progress: ProgressOption = None,
) -> Optimum:
    r"""The recipe with the smallest generalisation error at the last step.

    Arguments:
        problem: the data.
        over: constants to optimise: lambda_l, lambda_u, threshold, sharpness, annealing; and
            fix_bias, which is tried both ways.
        bounds: (low, high) by name; default: ridges [1e-13, 0.1], threshold [0, 3], annealing [0,
            10], sharpness [0.1, 100].
        schedule: quantities free at every step: lambda_u, threshold, sharpness; in `over` or not.
        start: where the search begins, and what holds for everything that is not optimised (so
            `Recipe(fix_bias=True)` optimises with a fixed bias); a recipe, or some of its fields.
            The result is never worse than it. Without one the paper's heuristics are tried too, as
            far as they are in `over`; `Optimum.start` says which start won.
        method: "l-bfgs-b" with adjoint gradients, or "nelder-mead", the paper's way (constants
            only).
        starts: how many starts are tried, the given one and others. Default: the given one alone,
            unless it leads to no better an error than that of the labelled points alone; three if
            none is given, and ten while nothing better than the labelled points alone is found.
        tolerance: relative accuracy of the solver; the default is that of `solve`.
        limit: most iterations of a search; `is_minimum` is False where they were too few.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`), which
            has the runs done and the best error so far.

    >>> from selftrain import Problem
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.5, delta=0.75**2, steps=16)
    >>> best = optimize(problem, over=("lambda_l", "lambda_u"))
    >>> round(best.error, 6), round(best.recipe.lambda_u, 4), best.active_bounds
    (0.098222, 0.0496, {})
    """
    starts, limit = _checked(problem, method, starts, limit, progress)
    wanted = None if tolerance is None else checked_tolerance(tolerance)
    over, either = without_bias(over, schedule)
    free, begin = variables(problem, over, schedule, bounds, start)
    _check_schedule(problem, free.schedule, method)
    ridge = free.bounds.get("lambda_l", SEARCH_BOUNDS["lambda_l"])
    tolerance = TOLERANCE if wanted is None or not problem.by_quadrature else wanted
    final = wanted if not problem.by_quadrature else tolerance
    alone = labeled_optimum(problem, ridge, tolerance)
    plan = _Plan(method, starts, DEFAULT if start is None else GIVEN, alone.error, tolerance)
    with Progress(None, "runs", progress) as bar:
        search = (Search if problem.by_quadrature else ReuseSearch)(problem, free, limit, bar)
        found = _best_bias(search, begin, plan) if either else _descended(search, begin, plan)
        x, first, second = _finished(search, found, plan)
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
        active_bounds=active_bounds(free, x),
        first_order=first,
        second_order=second,
        labeled_only=alone,
        start=came_from,
    )


class _Plan(NamedTuple):
    """How to search: what the caller asked for, the name of its start, and the error to beat."""

    method: str
    starts: int | None
    name: str
    alone: float
    tolerance: float

    @property
    def anywhere(self) -> bool:
        """Whether the caller gave no start."""
        return self.name == DEFAULT


def _best_bias(search: Search, begin: Recipe, plan: _Plan) -> Descent:
    """The better of a trained and a fixed bias; the search is left with the variables of it."""
    ways = []
    trouble: NoGradient | None = None
    for fixed in (begin.fix_bias, not begin.fix_bias):
        there = begin.replace(fix_bias=fixed)
        search.variables, search.last = replace(search.variables, base=there), None
        try:
            ways.append((_descended(search, there, plan), search.variables))
        except NoGradient as error:
            trouble = error
    if not ways:
        assert trouble is not None
        raise trouble
    found, search.variables = min(ways, key=lambda way: way[0].value)
    search.last = None
    return found


def _descended(search: Search, begin: Recipe, plan: _Plan) -> Descent:
    """Near the best optimum that was found."""
    there = Start(plan.name, search.variables.coordinates(begin))
    if isinstance(search, ReuseSearch):
        count = plan.starts or (SEVERAL if plan.anywhere else 1)
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


def _finished(search: Search, found: Descent, plan: _Plan) -> tuple[Array, float, float]:
    """The coordinates of the optimum, and its `conditions`."""
    if plan.method == "nelder-mead" and not isinstance(search, ReuseSearch):
        return found.x, *search.conditions(found.x, plan.tolerance)
    return search.finish(found.x, plan.tolerance)


def _start_run(search: Search, begin: Recipe, tolerance: float | None) -> Any:
    """The run with the recipe the search began from, which is a candidate like any other; None if
    it has no end.
    """
    search.solves += 1
    try:
        run = solve(search.problem, begin, tolerance)
    except StageError:
        return None
    finally:
        search.report()
    return run if run.collapsed_at is None else None


def _checked(
    problem: Any, method: Any, starts: Any, limit: Any, progress: Any
) -> tuple[int | None, int]:
    """`starts` and `limit` as whole numbers; `InvalidInput` for what is not accepted."""
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "must be a selftrain.Problem")
    if method not in METHODS:
        raise InvalidInput("method", method, f"unknown method; {nearest(str(method), METHODS)}")
    checked_progress(progress)
    if starts is not None:
        accepted = "must be a whole number from 1 to 100"
        starts = int(number("starts", starts, lambda n: 1 <= n <= 100 and n % 1 == 0, accepted))
    accepted = "must be a whole number from 1 to 100000"
    limit = int(number("limit", limit, lambda n: 1 <= n <= 100_000 and n % 1 == 0, accepted))
    return starts, limit


def _check_schedule(problem: Problem, schedule: tuple[str, ...], method: str) -> None:
    if method == "nelder-mead" and schedule:
        raise InvalidInput(
            "schedule", schedule, "must be empty with nelder-mead: it optimises constants"
        )
    if schedule and not problem.by_quadrature:
        accepted = "must be empty with data reuse or K classes: constants are optimised"
        raise InvalidInput("schedule", schedule, accepted)


def _first_useful(search: Search, begin: Recipe, plan: _Plan) -> Descent:
    """Near the best optimum that so many starts lead to; more are tried while it is no better than
    doing nothing.
    """
    rough = max(ROUGH, plan.tolerance)
    if plan.starts is not None or search.problem.steps == 0:
        return rough_optimum(search, begin, plan.name, plan.starts or 1, rough)
    for count in (SEVERAL, MANY) if plan.anywhere else (1, SEVERAL, MANY):
        found = rough_optimum(search, begin, plan.name, count, rough)
        if found.value < plan.alone - ROUGHLY:
            break
    return found
