"""`selftrain optimize`: the recipe with the smallest final error, as a table, JSON or a figure."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput
from ..parameters import SEARCH_BOUNDS
from .options import AsJson, Plot, Save, Tolerance, completes, option, read_value, takes
from .output import (
    OutputFiles,
    StepRows,
    print_json,
    print_table,
    remark,
    terminal,
)

if TYPE_CHECKING:
    from ..problem import Problem
    from ..tuning.optimum import Optimum

_NAMES = f"{', '.join(SEARCH_BOUNDS)}; fix_bias to try both"


FREE = ("lambda_u", "threshold", "sharpness")
"""Hyperparameters that may have their own value at every step."""


@takes("problem", "start")
def optimize(
    problem: "Problem",
    start: dict[str, Any],
    over: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME...]",
            help=f"Constants to optimise: {_NAMES}.",
            autocompletion=completes(lambda: (*SEARCH_BOUNDS, "fix_bias")),
        ),
    ] = "lambda_l,lambda_u",
    schedule: Annotated[
        str,
        option(f"Free at every step: {', '.join(FREE)}.", "NAME[,NAME...]", values=FREE),
    ] = "",
    bounds: Annotated[
        list[str] | None,
        option("Bounds of a name; may be repeated, or separated by commas.", "NAME=LOW:HIGH"),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="l-bfgs-b, or nelder-mead (as in the paper).",
            autocompletion=completes(lambda: ("l-bfgs-b", "nelder-mead")),
        ),
    ] = "l-bfgs-b",
    starts: Annotated[
        str | None,
        option("Number of starts. Default: the given one, 3 if none is given.", "N"),
    ] = None,
    tolerance: Tolerance = None,
    json: AsJson = False,
    plot: Plot = None,
    save: Save = None,
) -> None:
    """Find the best recipe for a problem; the flags of the recipe set the start, and the values of
    what is not optimised.
    """
    files = OutputFiles(plot, save, quiet=json).check()
    from ..tuning.optimize import optimize as search

    best = search(
        problem,
        over=_list(over),
        bounds=read_bounds(bounds or []),
        schedule=_list(schedule),
        start=start or None,
        method=method,
        starts=None if starts is None else read_value(starts),
        tolerance=None if tolerance is None else read_value(tolerance),
    )
    if json:
        print_json(describe(best), problem=problem, recipe=best.recipe)
    else:
        _show(best)
    files.write(best.plot, best.trajectory.save)


def read_bounds(texts: list[str]) -> dict[str, tuple[Any, Any]]:
    """Read bounds written as NAME=LOW:HIGH.

    >>> read_bounds(["lambda-u=1e-6:0.1,threshold=0:1"])
    {'lambda_u': (1e-06, 0.1), 'threshold': (0, 1)}
    """
    found = {}
    for text in texts:
        for entry in filter(None, (part.strip() for part in text.split(","))):
            written, equals, pair = entry.partition("=")
            low, colon, high = pair.partition(":")
            name = written.strip().replace("-", "_")
            if not (equals and colon):
                raise InvalidInput("bounds", entry, "must be NAME=LOW:HIGH")
            if name in found:
                raise InvalidInput("bounds", entry, "must have the bounds of a name once")
            found[name] = (read_value(low.strip()), read_value(high.strip()))
    return found


def describe(best: "Optimum") -> dict[str, Any]:
    """Return an optimum as plain values, with the names of the Python API."""
    from dataclasses import asdict

    run, answer = best.trajectory, best.answer
    names = (
        "error", "self_training", "active_bounds", "bounds", "solves", "start", "is_minimum",
        "first_order", "second_order", "against", "advice",
    )  # fmt: skip
    return {
        **{name: getattr(best, name) for name in names},
        "answer": {**vars(answer), "recipe": answer.recipe.to_dict()},
        "schedule": list(best.schedule),
        "supervised": asdict(best.supervised),
        "labeled_only": asdict(best.labeled_only),
        "bayes": best.limits.to_dict()["bayes"],
        "path": best.to_frame().to_dict("records"),
        "steps": StepRows({"t": run.t, **{name: getattr(run, name) for name in run.TABLE}}),
    }


def _list(text: str) -> list[str]:
    """Read names separated by commas, written as fields (lambda_u) or as flags (lambda-u)."""
    return [entry.strip().replace("-", "_") for entry in text.split(",") if entry.strip()]


def _show(best: "Optimum") -> None:
    console = terminal()
    console.print(f"[bold]{best.problem!r}[/bold]")
    rows = []
    for name, (low, high) in best.bounds.items():
        value = getattr(best.recipe, name)
        ends = (value[0], value[-1]) if isinstance(value, tuple) else (value,)
        shown = " ... ".join(f"{one:.6g}" for one in ends)
        rows.append([name, shown, f"{low:g} to {high:g}", _at_bound(best.active_bounds.get(name))])
    left = ("optimised", "bounds", "at a bound", "error at the last step")
    print_table(console, ("optimised", "best", "bounds", "at a bound"), rows, left)
    errors = [[name, f"{value:.8g}"] for name, value in best.against.items()]
    print_table(console, (left[-1], f"{best.error:.8g}"), errors, left)
    console.print(best.advice)
    state = "not confirmed as a minimum"
    if best.is_minimum:
        state = "a minimum, flat along some direction" if best.is_flat else "a minimum"
    remark(
        f"{best.solves} runs of the solver, best start: {best.start}; {state}: gradient"
        f" {best.first_order:.1e}, least curvature {best.second_order:.1e}."
    )


def _at_bound(sides: Any) -> str:
    if sides is None:
        return ""
    if isinstance(sides, str):
        return sides
    return ", ".join(f"{side} at {len(steps)} steps" for side, steps in sides.items())
