"""`selftrain optimize`: the recipe with the smallest final error, as a table, as JSON, as a
figure.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput
from .files import AsJson, OutputFiles
from .options import read_value, takes
from .output import (
    StepRows,
    print_json,
    print_table,
    remark,
    terminal,
)

if TYPE_CHECKING:
    from ..problem import Problem
    from ..tuning.optimum import Optimum

_NAMES = "lambda_l, lambda_u, threshold, sharpness, annealing; fix_bias to try both"


@takes("problem", "start")
def optimize(
    problem: "Problem",
    start: dict[str, Any],
    over: Annotated[
        str, typer.Option(metavar="NAME[,NAME...]", help=f"Constants to optimise: {_NAMES}.")
    ] = "lambda_l,lambda_u",
    schedule: Annotated[
        str,
        typer.Option(
            metavar="NAME[,NAME...]",
            help="Free at every step: lambda_u, threshold, sharpness.",
            show_default=False,
        ),
    ] = "",
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="Bounds of a name; may be repeated, or separated by commas.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="l-bfgs-b, or nelder-mead (the paper's way).")
    ] = "l-bfgs-b",
    starts: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Starts that are tried. Default: the given one, 3 if none is given.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help=(
                "Relative accuracy of the solver. Default: 1e-10; 1e-5 or 1e-4 where rows are used"
                " again."
            ),
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the optimum (png, pdf, svg).", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Store the best run, for Trajectory.load.", show_default=False
        ),
    ] = None,
) -> None:
    """Find the best recipe for a problem; the recipe's flags are the start, and hold what is not
    optimised.
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
    """Bounds as they are written: NAME=LOW:HIGH.

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
                raise InvalidInput("bounds", entry, "NAME=LOW:HIGH is accepted")
            if name in found:
                raise InvalidInput("bounds", entry, "bounds of a name are accepted once")
            found[name] = (read_value(low.strip()), read_value(high.strip()))
    return found


def describe(best: "Optimum") -> dict[str, Any]:
    """An optimum as plain values under the names of the API."""
    from dataclasses import asdict

    from ..observables import SYMBOLS

    run = best.trajectory
    answer = best.answer
    return {
        "error": best.error,
        "self_training": best.self_training,
        "answer": {
            "self_training": answer.self_training,
            "steps": answer.steps,
            "recipe": answer.recipe.to_dict(),
            "error": answer.error,
        },
        "active_bounds": best.active_bounds,
        "bounds": best.bounds,
        "schedule": list(best.schedule),
        "solves": best.solves,
        "start": best.start,
        "is_minimum": best.is_minimum,
        "first_order": best.first_order,
        "second_order": best.second_order,
        "against": best.against,
        "advice": best.advice,
        "supervised": asdict(best.supervised),
        "labeled_only": asdict(best.labeled_only),
        "bayes": (
            None
            if best.problem.shaped
            else {
                name: getattr(best.bayes, name)
                for name in ("semi_supervised", "all_labeled", "labeled_only")
            }
        ),
        "path": best.to_frame().to_dict("records"),
        "steps": StepRows({"t": run.t, **{name: getattr(run, name) for name in SYMBOLS}}),
    }


def _list(text: str) -> list[str]:
    """Names separated by commas, written like fields or like flags."""
    return [entry.strip().replace("-", "_") for entry in text.split(",") if entry.strip()]


def _show(best: "Optimum") -> None:
    from rich import box
    from rich.table import Table

    console = terminal()
    console.print(f"[bold]{best.problem!r}[/bold]")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("optimised", "best", "bounds", "at a bound"):
        table.add_column(name, justify="right" if name == "best" else "left")
    for name, (low, high) in best.bounds.items():
        value = getattr(best.recipe, name)
        shown = (
            f"{value[0]:.6g} ... {value[-1]:.6g}" if isinstance(value, tuple) else f"{value:.6g}"
        )
        table.add_row(name, shown, f"{low:g} to {high:g}", _at_bound(best.active_bounds.get(name)))
    print_table(console, table)
    errors = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    errors.add_column("error at the last step")
    errors.add_column(f"{best.error:.8g}", justify="right")
    for name, value in best.against.items():
        errors.add_row(name, f"{value:.8g}")
    print_table(console, errors)
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
