"""The tasks that `sweep` knows by name: "solve", "optimize", "simulate" and "continuum".

Each is a function of a problem, a recipe, the names of the quantities to return, and its own
options. A name stands for the value at the end of the run; with `_path` appended, for the values at
all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, nearest
from ..fields import number, whole
from ..observables import SYMBOLS
from ..parameters import DEFAULT_OVER, PARAMETERS, SEARCH_BOUNDS
from ..problem import Problem
from ..recipe import Recipe
from .computation import Output

if TYPE_CHECKING:
    from ..theory.trajectory import Trajectory

PATH, STANDARD_ERROR = "_path", "_se"
LIMITS = {
    "bayes": ("semi_supervised", r"\epsilon_{Bayes}"),
    "bayes_labeled_only": ("labeled_only", r"\epsilon_{Bayes}^{(L)}"),
    "bayes_all_labeled": ("all_labeled", r"\epsilon_{Bayes}^{(SL)}"),
}
BY_CLASS = {
    "class_errors": Output(r"\epsilon_g^{(k)}", ("true",)),
    "label_shares": Output(r"P(\hat y = k)", ("class",)),
    "confusion": Output(r"P(\hat y \mid y)", ("true", "predicted")),
}
"""Quantities with an entry for each class."""

OF_CLASSES = (
    "error", "balanced_error", "q", "fraction_selected", "pseudo_label_accuracy",
    "selected_label_accuracy", "train_loss", "collapsed_at", "t", "labeled_only", "supervised",
    "gain", "solves", "first_order", "second_order", "collapsed", "test_error", *BY_CLASS,
    *SEARCH_BOUNDS,
)  # fmt: skip
"""Quantities that are also defined for more than two classes."""

RUN = {
    **{name: Output(symbol) for name, symbol in SYMBOLS.items()},
    "balanced_error": Output(r"\epsilon_{balanced}"),
    **BY_CLASS,
    "collapsed_at": Output(r"t_{collapse}"),
    **{name: Output(symbol) for name, (_, symbol) in LIMITS.items()},
    "t": Output("t", ("t",)),
    **{name + PATH: Output(symbol, ("t",)) for name, symbol in SYMBOLS.items()},
}
CHOSEN = {name: Output(f"{PARAMETERS[name].symbol}^*") for name in SEARCH_BOUNDS}
OF_OPTIMUM: dict[str, tuple[str, Callable[[Any], float]]] = {
    "labeled_only": (r"\epsilon_g^{(L)}", lambda best: best.labeled_only.error),
    "supervised": (r"\epsilon_g^{(SL)}", lambda best: best.supervised.error),
    "gain": (r"\epsilon_g^{(L)} - \epsilon_g", lambda best: best.labeled_only.error - best.error),
    "excess": (
        r"\epsilon_g - \epsilon_{Bayes}",
        lambda best: best.error - best.bayes.semi_supervised,
    ),
    "solves": ("runs of the solver", lambda best: float(best.solves)),
    "first_order": (r"\|\nabla\epsilon_g\|_\infty", lambda best: best.first_order),
    "second_order": ("least curvature", lambda best: best.second_order),
}
"""Quantities of an `Optimum` besides those of its run and its recipe: symbol and value."""

OPTIMUM = {**RUN, **CHOSEN, **{name: Output(symbol) for name, (symbol, _) in OF_OPTIMUM.items()}}
MEASURED = (
    "q", "m", "bias", "chi", "overlap", "error", "cosine", "fraction_selected",
    "pseudo_label_accuracy", "balanced_error",
)  # fmt: skip
MEANS = {name: RUN[name].symbol for name in MEASURED} | {
    "test_error": "share of errors",
    "collapsed": "share of collapsed systems",
}
ENSEMBLE = {
    **{name: Output(symbol) for name, symbol in MEANS.items()},
    **BY_CLASS,
    **{name + STANDARD_ERROR: Output(symbol + r"\ (s.e.)") for name, symbol in MEANS.items()},
}
OF_PATH: dict[str, tuple[str, Callable[[Any], float | None]]] = {
    "until": (r"\tau", lambda path: path.until),
    "half_aligned": (r"\tau_{1/2}", lambda path: path.half_aligned),
    "aligned": (r"\tau_{0.99}", lambda path: path.aligned),
    "best_tau": (r"\tau^*", lambda path: path.best.tau),
    "best_error": (r"\min_\tau \epsilon_g", lambda path: path.best.error),
}
"""Quantities of a `ContinuumPath` besides those at its end: symbol and value."""

CONTINUUM = {
    **{name: RUN[name] for name in ("m", "q", "bias", "cosine", "error")},
    **{name: Output(symbol) for name, (symbol, _) in OF_PATH.items()},
}


def solved(problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any) -> dict[str, Any]:
    """Return quantities of `solve`."""
    from .. import solve

    return _of_run(solve(problem, recipe, **options), keep)


def _of_run(run: Trajectory, keep: Sequence[str]) -> dict[str, Any]:
    from .. import bayes_error

    limits = bayes_error(run.problem) if any(name in LIMITS for name in keep) else None
    found: dict[str, Any] = {}
    for name in keep:
        if name == "t":
            found[name] = run.t
        elif name == "collapsed_at":
            found[name] = _as_number(run.collapsed_at)
        elif name in LIMITS:
            found[name] = float(getattr(limits, LIMITS[name][0]))
        elif name.endswith(PATH):
            found[name] = np.asarray(getattr(run, name.removesuffix(PATH)))
        elif name in BY_CLASS:
            found[name] = np.asarray(getattr(run, name)[-1])
        else:
            found[name] = float(getattr(run, name)[-1])
    return found


def plain_name(name: str) -> str:
    """Return the name of a quantity without the suffix of a path or a standard error."""
    return name.removesuffix(PATH).removesuffix(STANDARD_ERROR)


def _as_number(value: Any) -> float:
    """Return a value as one number: NaN for None, the last entry for a schedule."""
    return math.nan if value is None else float(value[-1] if isinstance(value, tuple) else value)


def check_solve(problem: Problem, recipe: Recipe, tolerance: float | None = None) -> None:
    """Raise for options that `solve` would reject."""
    from ..theory.solve import checked_tolerance

    if tolerance is not None:
        checked_tolerance(tolerance)


def tuned(problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any) -> dict[str, Any]:
    """Return quantities of the recipe that `optimize` finds.

    The search starts from those fields of `recipe` that differ from the default; fields that it
    does not vary keep their values.
    """
    from .. import optimize

    best = optimize(problem, start=_given(recipe), **options)
    found = _of_run(best.trajectory, [name for name in keep if name in RUN])
    found |= {name: OF_OPTIMUM[name][1](best) for name in keep if name in OF_OPTIMUM}
    return found | {n: _as_number(getattr(best.recipe, n)) for n in keep if n in CHOSEN}


def check_optimize(
    problem: Problem, recipe: Recipe, tolerance: float | None = None, **options: Any
) -> None:
    """Raise for options that `optimize` would reject."""
    from ..tuning.optimize import checked_search

    check_solve(problem, recipe, tolerance)
    checked_search(problem, start=_given(recipe), **options)


def optimized(options: Mapping[str, Any]) -> set[str]:
    """Return the parameters that `optimize` varies with these options, which may be invalid."""
    both = (options.get("over", DEFAULT_OVER), options.get("schedule", ()))
    listed = [[names] if isinstance(names, str) else names for names in both]
    return {name for names in listed if isinstance(names, Sequence) for name in names}


def _given(recipe: Recipe) -> dict[str, Any] | None:
    """Return the fields in which a recipe differs from the default; None if there are none."""
    given = {name: getattr(recipe, name) for name in Recipe.__dataclass_fields__}
    return {n: value for n, value in given.items() if value != getattr(Recipe(), n)} or None


def simulated(
    problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any
) -> dict[str, Any]:
    """Return means over the seeds of `simulate` and their standard errors, at the end of the run.

    Raises:
        StageError: a seed failed. A mean over the others would be biased.
    """
    from .. import simulate

    ensemble = simulate(problem, recipe, progress=False, on_failure="partial", **options)
    for failure in ensemble.failures.values():
        raise failure
    found: dict[str, Any] = {}
    for name in keep:
        bare = name.removesuffix(STANDARD_ERROR)
        last = ensemble.collapsed_at >= 0 if bare == "collapsed" else getattr(ensemble, bare)[:, -1]
        last = np.asarray(last, dtype=float)
        if bare != name:
            found[name] = last.std(ddof=1) / math.sqrt(last.size) if last.size > 1 else math.nan
        else:
            found[name] = last.mean(axis=0)
    return found


def check_simulate(problem: Problem, recipe: Recipe, **options: Any) -> None:
    """Raise for options that `simulate` would reject."""
    from ..simulation import simulate as rules

    if "features" in options:
        size = options["features"]
        whole("features", size, lambda n: 2 <= n <= rules.MOST_FEATURES, rules.FEATURES)
    if "seeds" in options and not isinstance(options["seeds"], tuple):
        whole("seeds", options["seeds"], lambda n: n >= 1, "must be 1 or more")
    if "method" in options and options["method"] not in rules.METHODS:
        accepted = f"unknown method; {nearest(str(options['method']), rules.METHODS)}"
        raise InvalidInput("method", options["method"], accepted)
    if "tolerance" in options:
        number("tolerance", options["tolerance"], *rules.TOLERANCE)


def continuous(
    problem: Problem, recipe: Recipe, keep: Sequence[str], **options: Any
) -> dict[str, Any]:
    """Return quantities of `continuum` at the end of the path, and at its best time."""
    from .. import continuum

    path = continuum(problem, recipe, **options)
    last = path(path.until)
    found = {name: OF_PATH[name][1](path) for name in keep if name in OF_PATH}
    found |= {name: getattr(last, name) for name in keep if name not in OF_PATH}
    return {name: _as_number(found[name]) for name in keep}


def check_continuum(
    problem: Problem, recipe: Recipe, until: float = 1.0, tolerance: float | None = None
) -> None:
    """Raise for options that `continuum` would reject."""
    from ..theory.continuum.expansion import check_continuous

    check_continuous(problem, recipe)
    check_solve(problem, recipe, tolerance)
    number("until", until, lambda value: 0 < value < math.inf, "must be a finite number > 0")


@dataclass(frozen=True)
class NamedTask:
    """A task that is known by name.

    Attributes:
        function: computes a point.
        check: raises for a point that the function would reject.
        outputs: all quantities that it can return.
        default: the quantities that are stored by default.
        options: names of its arguments besides problem and recipe.
        axes: options that may be axes of the grid.
    """

    function: Callable[..., dict[str, Any]]
    check: Callable[..., None]
    outputs: Mapping[str, Output]
    default: tuple[str, ...]
    options: tuple[str, ...]
    axes: tuple[str, ...] = ()

    def selected(self, keep: Sequence[str], classes: int = 2) -> dict[str, Output]:
        """Return the outputs with these names, or the default ones; raise for an unknown name, or
        for one that is not defined for this number of classes.
        """
        known = [n for n in self.outputs if classes == 2 or plain_name(n) in OF_CLASSES]
        names = tuple(keep) or tuple(name for name in self.default if name in known)
        for name in names:
            if name not in self.outputs:
                plain = [one for one in self.outputs if not one.endswith(PATH)]
                raise InvalidInput("keep", name, f"unknown quantity; {nearest(str(name), plain)}")
            if name not in known:
                some = ", ".join(one for one in OF_CLASSES if one in self.outputs)
                accepted = f"is for two classes only: {classes} classes have {some}"
                raise InvalidInput("keep", name, accepted)
        if any(name.endswith(PATH) for name in names) and "t" not in names:
            names = ("t", *names)
        return {name: self.outputs[name] for name in names}


NAMED_TASKS = {
    "solve": NamedTask(
        solved, check_solve, RUN, ("error", "cosine", "collapsed_at"), ("tolerance",)
    ),
    "optimize": NamedTask(
        tuned, check_optimize, OPTIMUM, ("error", "labeled_only", "bayes"),
        ("over", "bounds", "schedule", "starts", "tolerance", "limit", "method"),
    ),
    "simulate": NamedTask(
        simulated, check_simulate, ENSEMBLE, ("error", "error_se"),
        ("features", "seeds", "method", "probes", "tolerance"), ("features",),
    ),
    "continuum": NamedTask(
        continuous, check_continuum, CONTINUUM, ("error", "cosine"), ("until", "tolerance"),
        ("until",),
    ),
}  # fmt: skip
