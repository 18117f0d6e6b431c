"""`selftrain continuum`: a run in the limit of small ridge, in continuous time."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, OnFailure, Plot, option, read_value, takes
from .output import OutputFiles, print_json, print_table, remark, terminal

if TYPE_CHECKING:
    from ..problem import Problem
    from ..recipe import Recipe
    from ..theory.continuum.path import ContinuumPath
    from ..theory.trajectory import Trajectory

ROWS = 21

COLUMNS = {
    "q": "q", "m": "m", "bias": "B", "bias_to_norm": "B/√q", "error": "error",
    "cosine": "cosine", "squared_cosine": "M",
}  # fmt: skip
"""Columns of the table: quantities, and their titles."""


@takes("problem", "recipe")
def continuum(
    problem: "Problem",
    recipe: "Recipe",
    until: Annotated[
        str | None,
        option("Last time τ = λ_U t. Default: that of the last step of the discrete run.", "X"),
    ] = None,
    tolerance: Annotated[str, typer.Option(metavar="X", help="Accuracy of the path.")] = "1e-10",
    on_failure: OnFailure = "raise",
    compare: Annotated[
        bool, option("Solve the discrete run, too, and show the difference.", "", "--compare")
    ] = False,
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Follow self-training in continuous time: many steps with a small ridge."""
    files = OutputFiles(plot, quiet=json).check()

    from ..theory.continuum.continuous_time import continuum as follow
    from ..theory.solve import solve

    end = None if until is None else read_value(until)
    path = follow(
        problem, recipe, until=end, tolerance=read_value(tolerance), on_failure=on_failure
    )
    run = solve(problem, recipe) if compare else None
    if json:
        print_json(describe(path, run), problem=problem, recipe=recipe)
    else:
        _show(path, run)
    files.write(lambda: path.plot(*([] if run is None else [run])))
    if path.failure is not None:
        raise path.failure


def describe(path: "ContinuumPath", run: "Trajectory | None" = None) -> dict[str, Any]:
    """Return a path as plain values, with the names of the Python API."""
    from dataclasses import asdict

    result: dict[str, Any] = {
        "path": path.to_frame().reset_index().to_dict("records"),
        "until": path.until,
        "half_aligned": path.half_aligned,
        "aligned": path.aligned,
        "best": path.best._asdict(),
        "first_order": asdict(path.first_order(0.0)),
        "solver": {"accuracy": path.accuracy, "evaluations": path.evaluations},
        "failure": None
        if path.failure is None
        else {"tau": path.until, "reason": str(path.failure)},
    }
    if run is not None:
        result["compare"] = path.compare(run).largest
    return result


def _show(path: "ContinuumPath", run: "Trajectory | None") -> None:
    console = terminal()
    console.print(f"[bold]{path.problem!r}[/bold]\n[bold]{path.recipe!r}[/bold]")
    frame = path.to_frame(ROWS)[list(COLUMNS)]
    rows = ([f"{value:.6g}" for value in (tau, *row)] for tau, row in frame.iterrows())
    print_table(console, ["τ", *COLUMNS.values()], rows)
    start = path.first_order(0.0)
    best = path.best
    for sentence in (
        f"At the start χ = {start.chi0:.6g}, C = {start.alignment_rate:.6g}"
        + (f", 1/C = {1 / start.alignment_rate:.6g}." if start.alignment_rate else "."),
        f"The squared cosine M is 1/2 {_when(path.half_aligned)} and 0.99 {_when(path.aligned)}.",
        f"The error is smallest {_WHERE[best.where]}: {best.error:.6g} at τ = {best.tau:.6g}.",
    ):
        console.print(sentence)
    if path.failure is not None:
        console.print(f"[bold]Ended early, at τ = {path.until:.6g}[/bold].")
    if run is not None:
        console.print(f"The discrete run, {path.compare(run)}.")
    remark(f"Confirmed to {path.accuracy:.1e}; {path.evaluations} evaluations.")


_WHERE = {"start": "at the start", "interior": "in between", "end": "at the end"}


def _when(tau: float | None) -> str:
    if tau is None:
        return "not on this path"
    return "from the start" if tau == 0 else f"at τ = {tau:.6g}"
