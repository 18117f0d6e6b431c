"""`optimize`: the recipe with the smallest final error, constants or whole schedules, by adjoint
gradients.

`starts` says where a search begins, `search` how it goes down; here is what a user calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arrays import Array
from ..errors import InvalidInput, NoGradient, nearest
from ..fields import number
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.progress import Progress, ProgressOption, checked_progress
from ..theory.solve import checked_tolerance, solve
from ..theory.tolerances import TOLERANCE
from .banks import BankSearch
from .bounds import DEFAULT_BOUNDS
from .optimum import Optimum, active_bounds, labeled_optimum
from .search import ROUGH, ROUGHLY, WORST, Search
from .starts import MANY, SEVERAL, rough_optimum, spread
from .supervised import SupervisedFit
from .variables import variables

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
        over: constants to optimise: lambda_l, lambda_u, threshold, sharpness, annealing.
        bounds: (low, high) by name; default: ridges [1e-13, 0.1], threshold [0, 3], annealing [0,
            10], sharpness [0.1, 100].
        schedule: quantities free at every step: lambda_u, threshold, sharpness; in `over` or not.
        start: where the search begins, and what holds for everything that is not optimised (so
            `Recipe(fix_bias=True)` optimises with a fixed bias); a recipe, or some of its fields.
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
    free, begin = variables(problem, over, schedule, bounds, start)
    _check_schedule(problem, free.schedule, method)
    ridge = free.bounds.get("lambda_l", DEFAULT_BOUNDS["lambda_l"])
    tolerance = TOLERANCE if wanted is None or not problem.memoryless else wanted
    alone = labeled_optimum(problem, ridge, tolerance)
    with Progress(None, "runs", progress) as bar:
        search = (Search if problem.memoryless else BankSearch)(problem, free, limit, bar)
        x, first, second = _searched(search, begin, method, starts, start is None, alone, tolerance)
        recipe = free.recipe(x)
        run = solve(problem, recipe, wanted if not problem.memoryless else tolerance)
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
    )


def _searched(
    search: Search,
    begin: Recipe,
    method: str,
    starts: int | None,
    anywhere: bool,
    alone: SupervisedFit,
    tolerance: float,
) -> tuple[Array, float, float]:
    """The coordinates of the best recipe that was found, and its `conditions`."""
    there = search.variables.coordinates(begin)
    if isinstance(search, BankSearch):
        count = starts or (SEVERAL if anywhere else 1)
        value, x = search.follow([there, *spread(search.variables, 2 * (count - 1))], tolerance)
        if not value < WORST:
            raise NoGradient(f"no start leads to a run; the last: {search.trouble}")
        return search.finish(x, tolerance)
    if method == "nelder-mead":
        _, x = search.simplex(there, tolerance)
        return x, *search.conditions(x, tolerance)
    value, x = _first_useful(search, begin, starts, anywhere, alone.error, tolerance)
    if not value < WORST:
        raise NoGradient(f"no start leads to a run with a gradient; the last: {search.trouble}")
    return search.finish(x, tolerance)


def _checked(
    problem: Any, method: Any, starts: Any, limit: Any, progress: Any
) -> tuple[int | None, int]:
    """`starts` and `limit` as whole numbers; `InvalidInput` for what is not accepted."""
    if not isinstance(problem, Problem):
        raise InvalidInput("problem", problem, "a selftrain.Problem is accepted")
    if method not in METHODS:
        raise InvalidInput("method", method, f"unknown method; {nearest(str(method), METHODS)}")
    checked_progress(progress)
    if starts is not None:
        accepted = "a whole number from 1 to 100 is accepted"
        starts = int(number("starts", starts, lambda n: 1 <= n <= 100 and n % 1 == 0, accepted))
    accepted = "a whole number from 1 to 100000 is accepted"
    limit = int(number("limit", limit, lambda n: 1 <= n <= 100_000 and n % 1 == 0, accepted))
    return starts, limit


def _check_schedule(problem: Problem, schedule: tuple[str, ...], method: str) -> None:
    if method == "nelder-mead" and schedule:
        raise InvalidInput("schedule", schedule, "nelder-mead optimises constants only")
    if schedule and not problem.memoryless:
        accepted = "where rows are used again constants are optimised, no schedules"
        raise InvalidInput("schedule", schedule, accepted)


def _first_useful(
    search: Search,
    begin: Recipe,
    starts: int | None,
    anywhere: bool,
    alone: float,
    tolerance: float,
) -> tuple[float, Array]:
    """Near the best optimum that so many starts lead to; more are tried while it is no better than
    doing nothing.
    """
    rough = max(ROUGH, tolerance)
    if starts is not None or search.problem.steps == 0:
        return rough_optimum(search, begin, starts or 1, rough)
    for count in (SEVERAL, MANY) if anywhere else (1, SEVERAL, MANY):
        value, x = rough_optimum(search, begin, count, rough)
        if value < alone - ROUGHLY:
            break
    return value, x
