"""`selftrain bench`: the speed and accuracy of the engines, as ratios measured in one run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput, nearest
from .output import print_json, remark

if TYPE_CHECKING:
    from ..bench.measure import Line
    from ..bench.record import Record

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


Parts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PART]...", help="Parts to measure; default: all.", show_default=False),
]


@app.command("all")
def every(
    parts: Parts = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of benchmarks.md and benchmarks.json.")
    ] = Path("docs"),
) -> None:
    """Measure all parts and write one page (half an hour, on a machine that does nothing else)."""
    from ..bench.page import page
    from ..bench.record import measure, merged
    from ..runtime.files import write_text

    asked, file = _parts(parts), out / "benchmarks.json"
    if not out.is_dir():
        raise FileNotFoundError(2, "no such folder", str(out))
    old = _record(file) if file.is_file() else None

    def write(record: Record) -> None:
        whole = merged(old, record)
        write_text(file, json.dumps(whole, indent=1, allow_nan=False) + "\n")
        write_text(out / "benchmarks.md", page(whole))

    record = measure(asked, write, remark)
    remark(f"{out / 'benchmarks.md'} is written")
    if any("failed" in found for found in record["parts"].values()):
        raise typer.Exit(1)


@app.command("check")
def check(
    parts: Parts = None,
    against: Annotated[
        Path, typer.Option(metavar="FILE", help="The record to compare with.")
    ] = Path("docs/benchmarks.json"),
) -> None:
    """Measure again and name what became slower by more than its noise; exit code 1 if anything
    did.
    """
    from ..bench.check import changes, missing
    from ..bench.record import measure

    asked, old = _parts(parts), _record(against)
    new = measure([part for part in asked if part in old["parts"]], notice=remark)
    compared = changes(old, new)
    slower = [change for change in compared if change.slower]
    failed = [f"{part} {one['failed']}" for part, one in new["parts"].items() if "failed" in one]
    gone = [f"no longer measured: {what}" for what in missing(old, new)] if not failed else []
    for line in [*map(str, slower), *failed, *gone]:
        typer.echo(line)
    typer.echo(f"{len(compared)} figures compared, {len(slower)} slower by more than their noise")
    if slower or failed or gone:
        raise typer.Exit(1)


def _parts(asked: list[str] | None) -> list[str]:
    """The parts that are meant, in the order of measurement."""
    from ..bench.record import PARTS

    for part in asked or ():
        if part not in PARTS:
            raise InvalidInput("part", part, f"unknown part; {nearest(part, PARTS)}")
    return [part for part in PARTS if not asked or part in asked]


def _record(path: Path) -> Record:
    """A record of earlier measurements."""
    from ..bench.record import read

    try:
        return read(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            2, "no record of benchmarks; `make bench` makes it", str(path)
        ) from None
    except ValueError as error:
        raise InvalidInput(
            "against", str(path), f"a record that `selftrain bench all` wrote ({error})"
        ) from None


def _report(name: str, lines: Iterator[Line], as_json: bool) -> None:
    """Show the lines as they are measured, or all of them as JSON."""
    from ..bench.measure import show

    if not as_json:
        show(lines)
        return
    print_json({"bench": name, "lines": [line.to_dict() for line in lines]})
