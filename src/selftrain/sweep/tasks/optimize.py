"""The task "optimize": the best recipe, what it is worth, and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...arrays import Array
from ...errors import InvalidInput, SelfTrainError, nearest
from ...problem import Problem
from ...recipe import Recipe
from ..computation import Output
from .quantities import RUN, as_number, of_run

if TYPE_CHECKING:
    from ...tuning.optimum import Optimum
    from ...tuning.variables import Variables

CHOSEN = {
    "lambda_l": Output(r"\lambda_L^*"),
    "lambda_u": Output(r"\lambda_U^*"),
    "threshold": Output(r"\Gamma^*"),
    "sharpness": Output(r"\gamma^*"),
    "annealing": Output("a^*"),
}
OUTPUTS = {
    **RUN,
    **CHOSEN,
    "labeled_only": Output(r"\epsilon_g^{(L)}"),
    "supervised": Output(r"\epsilon_g^{(SL)}"),
    "gain": Output(r"\epsilon_g^{(L)} - \epsilon_g"),
    "excess": Output(r"\epsilon_g - \epsilon_{Bayes}"),
    "solves": Output("runs of the solver"),
    "first_order": Output(r"\|\nabla\epsilon_g\|_\infty"),
    "second_order": Output("least curvature"),
}


COORDINATES = "coordinates of the optimum"
"""Where the search ended, in its own coordinates: the start of searches nearby."""


def tuned(
    problem: Problem,
    recipe: Recipe,
    keep: Sequence[str],
    near: Sequence[Array] = (),
    **options: Any,
) -> dict[str, Any]:
    """The recipe with the smallest error, what it is worth, and its `COORDINATES`.

    As far as `recipe` differs from the default, the search begins there, and keeps what it does not
    vary; unless there are coordinates of optima `near`, the nearest first: then it begins there.
    """
    free = _variables(problem, recipe, **options)
    best = _beside(problem, free, near, options) if near else None
    best = best or _from_recipe(problem, recipe, options)
    known: dict[str, Callable[[], Any]] = {
        **{name: partial(as_number, getattr(best.recipe, name)) for name in CHOSEN},
        "labeled_only": lambda: best.labeled_only.error,
        "supervised": lambda: best.supervised.error,
        "gain": lambda: best.labeled_only.error - best.error,
        "excess": lambda: best.error - best.bayes.semi_supervised,
        "solves": lambda: float(best.solves),
        "first_order": lambda: best.first_order,
        "second_order": lambda: best.second_order,
    }
    rest = of_run(best.trajectory, [name for name in keep if name not in known])
    found = {name: known[name]() if name in known else rest[name] for name in keep}
    return {**found, COORDINATES: free.coordinates(best.recipe)}


def _from_recipe(problem: Problem, recipe: Recipe, options: Mapping[str, Any]) -> Optimum:
    from ... import optimize

    return optimize(problem, start=_given(recipe), **options)


def _beside(
    problem: Problem, free: Variables, near: Sequence[Array], options: Mapping[str, Any]
) -> Optimum | None:
    """The optimum to which the line through those near it leads; None if that is none."""
    from ... import optimize

    x = near[0] if len(near) == 1 else 2 * near[0] - near[1]
    try:
        best = optimize(problem, start=free.recipe(x), **options)
    except SelfTrainError:
        return None
    return best if best.is_minimum else None


def single_start(problem: Problem, recipe: Recipe, options: Mapping[str, Any]) -> bool:
    """Whether a search has one start, which an optimum nearby can replace.

    Searches that try several starts keep them all, and so do those that add a threshold or a
    schedule to a simpler optimum.
    """
    several = options.get("starts") not in (None, 1) or _given(recipe) is None
    staged = bool(options.get("schedule")) or "threshold" in options.get("over", ())
    simplex = options.get("method", "l-bfgs-b") != "l-bfgs-b"
    return problem.memoryless and not (several or staged or simplex)


def check(problem: Problem, recipe: Recipe, **options: Any) -> None:
    """Refuse what `optimize` would refuse."""
    from ...theory.solve import checked_tolerance
    from ...tuning.optimize import METHODS

    _variables(problem, recipe, **options)
    method = options.get("method", METHODS[0])
    if method not in METHODS:
        raise InvalidInput("method", method, f"unknown method; {nearest(str(method), METHODS)}")
    if "tolerance" in options:
        checked_tolerance(options["tolerance"])


def _variables(
    problem: Problem,
    recipe: Recipe,
    over: Sequence[str] = ("lambda_l", "lambda_u"),
    schedule: Sequence[str] = (),
    bounds: Mapping[str, Any] | None = None,
    **_: Any,
) -> Variables:
    """What a search moves."""
    from ...tuning.variables import variables, without_bias

    return variables(problem, without_bias(over, schedule)[0], schedule, bounds, _given(recipe))[0]


def _given(recipe: Recipe) -> dict[str, Any] | None:
    """Where a recipe differs from the default."""
    default = Recipe()
    return {
        name: getattr(recipe, name)
        for name in Recipe.__dataclass_fields__
        if getattr(recipe, name) != getattr(default, name)
    } or None
