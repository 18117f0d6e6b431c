"""The task "solve": the large-system limit of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...problem import Problem
from ...recipe import Recipe
from .quantities import RUN, of_run

OUTPUTS = RUN


def solved(problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any) -> dict[str, Any]:
    """The large-system limit, at the end of the run."""
    from ... import solve

    return of_run(solve(problem, recipe, **options), keep)


def check(problem: Problem, recipe: Recipe, **options: Any) -> None:
    """Refuse what `solve` would refuse."""
    from ...theory.solve import checked_tolerance

    if "tolerance" in options:
        checked_tolerance(options["tolerance"])
