"""The task "simulate": finite systems, averaged over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput, nearest
from ...fields import number, whole
from ...problem import Problem
from ...recipe import Recipe
from ..computation import Output

STANDARD_ERROR = "_se"
MEANS = {
    "q": "q",
    "m": "m",
    "bias": "B",
    "chi": r"\chi",
    "overlap": "R",
    "error": r"\epsilon_g",
    "cosine": r"m/\sqrt{q}",
    "test_error": "share of errors",
    "fraction_selected": r"P_{sel}",
    "pseudo_label_accuracy": r"P(\hat y = y)",
    "collapsed": "share of collapsed systems",
}
OUTPUTS = {
    **{name: Output(symbol) for name, symbol in MEANS.items()},
    **{name + STANDARD_ERROR: Output(symbol + r"\ (s.e.)") for name, symbol in MEANS.items()},
}


def simulated(
    problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any
) -> dict[str, Any]:
    """Means over the seeds, and their standard errors, at the end of the run.

    A seed that failed raises: a mean over the others would be another quantity.
    """
    from ... import simulate

    ensemble = simulate(problem, recipe, progress=False, on_failure="partial", **options)
    for failure in ensemble.failures.values():
        raise failure
    found: dict[str, Any] = {}
    for name in keep:
        bare = name.removesuffix(STANDARD_ERROR)
        if bare == "collapsed":
            last = (ensemble.collapsed_at >= 0).astype(float)
        else:
            last = np.asarray(getattr(ensemble, bare))[:, -1]
        found[name] = float(last.mean()) if bare == name else _standard_error(last)
    return found


def check(problem: Problem, recipe: Recipe, **options: Any) -> None:
    """Refuse what `simulate` would refuse."""
    from ...simulation import simulate as rules

    if "features" in options:
        size = options["features"]
        whole("features", size, lambda n: 2 <= n <= rules.MOST_FEATURES, rules.FEATURES)
    if "seeds" in options and not isinstance(options["seeds"], tuple):
        whole("seeds", options["seeds"], lambda n: n >= 1, "1 seed or more is needed")
    if "method" in options and options["method"] not in rules.METHODS:
        accepted = f"unknown method; {nearest(str(options['method']), rules.METHODS)}"
        raise InvalidInput("method", options["method"], accepted)
    if "tolerance" in options:
        number("tolerance", options["tolerance"], *rules.TOLERANCE)


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
