"""The task "optimize": the best recipe, what it is worth, and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...problem import Problem
from ...recipe import Recipe
from ..computation import Output
from .quantities import RUN, as_number, of_run

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


def tuned(problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any) -> dict[str, Any]:
    """The recipe with the smallest error, and what it is worth.

    As far as `recipe` differs from the default, the search begins there, and keeps what it does not
    vary.
    """
    from ... import optimize

    default = Recipe()
    given = {
        name: getattr(recipe, name)
        for name in Recipe.__dataclass_fields__
        if getattr(recipe, name) != getattr(default, name)
    }
    best = optimize(problem, start=given or None, **options)
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
    return {name: known[name]() if name in known else rest[name] for name in keep}
