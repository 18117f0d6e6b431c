"""The task "continuum": the limit of small ridges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...fields import number
from ...problem import Problem
from ...recipe import Recipe
from ..computation import Output
from .quantities import RUN, as_number

OUTPUTS = {
    **{name: RUN[name] for name in ("m", "q", "bias", "cosine", "error")},
    "until": Output(r"\tau"),
    "half_aligned": Output(r"\tau_{1/2}"),
    "aligned": Output(r"\tau_{0.99}"),
    "best_tau": Output(r"\tau^*"),
    "best_error": Output(r"\min_\tau \epsilon_g"),
}


def continuous(
    problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any
) -> dict[str, Any]:
    """The end of the path, and its best time."""
    from ... import continuum

    path = continuum(problem, recipe, **options)
    known: dict[str, Callable[[], float]] = {
        "until": lambda: path.until,
        "half_aligned": lambda: as_number(path.half_aligned),
        "aligned": lambda: as_number(path.aligned),
        "best_tau": lambda: path.best.tau,
        "best_error": lambda: path.best.error,
    }
    last = path(path.until)
    return {name: known[name]() if name in known else float(getattr(last, name)) for name in keep}


def check(problem: Problem, recipe: Recipe, **options: Any) -> None:
    """Refuse what `continuum` would refuse."""
    from ...theory.continuum.timeline import check_continuous
    from ...theory.solve import checked_tolerance

    check_continuous(problem, recipe)
    if "tolerance" in options:
        checked_tolerance(options["tolerance"])
    if "until" in options:
        accepted = "a finite number > 0 is accepted"
        number("until", options["until"], lambda value: 0 < value < math.inf, accepted)
