"""`selftrain bench`: the speed and accuracy of the engines, as ratios measured in one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..bench.measure import Line

app = typer.Typer(
    help="Measure the engines against other ways to the same numbers.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, nothing else.")]


@app.command("theory")
def theory(as_json: AsJson = False) -> None:
    """The solver against the paper's Algorithm 1 and against nested quadrature (some minutes)."""
    from ..bench.theory import theory as measure

    _report("theory", measure(), as_json)


@app.command("gradients")
def gradients(as_json: AsJson = False) -> None:
    """Gradients against forward solves, and tuning against Nelder-Mead (a minute)."""
    from ..bench.gradients import gradients as measure

    _report("gradients", measure(), as_json)


@app.command("simulation")
def simulation(
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Draw growth and spread there.", show_default=False),
    ] = None,
) -> None:
    """The matrix-free engine against dense matrices and scikit-learn (ten minutes, 7 GB)."""
    from ..bench.simulation import simulation as measure

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    _report("simulation", measure(out), as_json)


@app.command("shape")
def shape(as_json: AsJson = False) -> None:
    """Clusters with a shape against the sphere and against substitution (a minute)."""
    from ..bench.shape import shape as measure

    _report("shape", measure(), as_json)


@app.command("sweep")
def sweep(as_json: AsJson = False) -> None:
    """A grid of 10,000 solves against joblib, Dask and a loop of xarray (a few minutes)."""
    from ..bench.sweep import sweep as measure

    _report("sweep", measure(), as_json)


@app.command("estimator")
def estimator(as_json: AsJson = False) -> None:
    """The classifier against scikit-learn's self-training on large tables (some minutes, 2 GB)."""
    from ..bench.estimator import estimator as measure

    _report("estimator", measure(), as_json)


@app.command("memory")
def memory(as_json: AsJson = False) -> None:
    """Rows used again: time, growth with the steps, Newton's method against substitution (a
    minute).
    """
    from ..bench.memory import memory as measure

    _report("memory", measure(), as_json)


def _report(name: str, lines: Iterator[Line], as_json: bool) -> None:
    """Show the lines as they are measured, or all of them as JSON."""
    from ..bench.measure import show
    from .output import print_json

    if not as_json:
        show(lines)
        return
    print_json({"bench": name, "lines": [line.to_dict() for line in lines]})
