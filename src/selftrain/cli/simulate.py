"""`selftrain simulate`: finite-size runs, as a table, as JSON, as a figure, against the theory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import InvalidInput
from .files import AsJson, OutputFiles
from .options import takes
from .output import (
    counted,
    print_json,
    print_table,
    remark,
    terminal,
)
from .solve import rows_shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

    from ..problem import Problem
    from ..recipe import Recipe
    from ..simulation.comparison import Comparison
    from ..simulation.ensemble import Ensemble
    from .data import Data


@takes("problem", "recipe", "data")
def simulate(
    problem: "Problem",
    recipe: "Recipe",
    data: "Data | None",
    features: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of features. Default: 8192, with --data that of its rows.",
            show_default=False,
        ),
    ] = None,
    surrogate: Annotated[
        bool,
        typer.Option(
            "--surrogate", metavar="", help="With --data: Gaussian rows of its shape, not its rows."
        ),
    ] = False,
    seeds: Annotated[int, typer.Option(metavar="K", help="Number of independent runs.")] = 16,
    method: Annotated[
        Literal["matrix-free", "revealed", "dense"],
        typer.Option(help="How the data are stored; all three are exact."),
    ] = "matrix-free",
    probes: Annotated[
        int, typer.Option(metavar="P", help="Random probes of the susceptibility per step.")
    ] = 1,
    workers: Annotated[
        int,
        typer.Option(
            metavar="W", help="Seeds that run at once; 0: in this process, -1: all cores."
        ),
    ] = 1,
    on_failure: Annotated[
        Literal["raise", "partial"],
        typer.Option(
            help="When a step of a seed has no fit: nothing, or the other seeds. "
            "The exit code is 1 in both cases."
        ),
    ] = "raise",
    compare: Annotated[
        bool,
        typer.Option("--compare", metavar="", help="Solve the theory and judge the runs by it."),
    ] = False,
    within: Annotated[
        float,
        typer.Option(metavar="X", help="Runs and theory agree if every deviation is below this."),
    ] = 0.1,
    json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the runs (png, pdf, svg).", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Store the runs, for Ensemble.load.", show_default=False),
    ] = None,
) -> None:
    """Simulate self-training on finite data, once per seed."""
    files = OutputFiles(plot, save, quiet=json).check()

    if surrogate and data is None:
        raise InvalidInput("surrogate", surrogate, "this flag belongs to --data FILE")
    if data is not None:
        remark(str(data))

    from ..errors import SeedError
    from ..simulation.simulate import simulate as run_simulation

    rows = None if data is None or surrogate else data.rows
    with _warnings_as_remarks():
        ensemble = run_simulation(
            problem,
            recipe,
            features,
            seeds,
            method,
            rows=rows,
            probes=probes,
            workers=workers,
            on_failure=on_failure,
        )
    if len(ensemble.seeds) < seeds:
        _keep_part(ensemble, seeds, save)
        raise KeyboardInterrupt
    theory = None
    if compare or plot is not None:
        from ..theory.solve import solve

        theory = solve(problem, recipe)
    comparison = ensemble.compare(theory, within) if compare and theory is not None else None
    if json:
        result = describe(ensemble, comparison) | ({} if data is None else {"data": data.to_dict()})
        print_json(result, problem=problem, recipe=recipe)
    else:
        _show(ensemble, comparison)

    def draw() -> "Figure":
        from ..plots.ensemble import plot_ensemble

        drawn = [ensemble]
        if rows is not None:  # Gaussian rows of the same shape beside them
            drawn.insert(0, run_simulation(problem, recipe, seeds=seeds, probes=0))
        return plot_ensemble(drawn, theory, spread="std")

    files.write(draw, ensemble.save)
    if ensemble.failures:
        raise SeedError(ensemble)


@contextmanager
def _warnings_as_remarks() -> Iterator[None]:
    """Warnings of the package, such as rows that are used twice, go to stderr as one line each."""
    import warnings

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in warned:
        remark(f"Warning: {warning.message}")


def _keep_part(ensemble: "Ensemble", seeds: int, save: Path | None) -> None:
    """After an interrupt: the seeds that are done go to a file of their own, never over that of a
    whole run.
    """
    remark(f"Interrupted: {len(ensemble.seeds)} of {counted(seeds, 'seed')} are done.")
    if save is not None:
        part = save.with_name(f"{save.stem}.partial{save.suffix}")
        ensemble.save(part)
        remark(f"Saved: {part}")


def describe(ensemble: "Ensemble", comparison: "Comparison | None" = None) -> dict[str, Any]:
    """Runs as plain values: every quantity (seeds, steps + 1) by name, then its statistics over
    t.
    """
    result: dict[str, Any] = {
        "features": ensemble.features,
        "seeds": ensemble.seeds,
        "method": ensemble.method,
        "seconds": ensemble.seconds,
        "collapsed_at": [None if step < 0 else step for step in ensemble.collapsed_at.tolist()],
        "failures": [
            {"seed": seed, "step": error.step, "reason": error.reason, "state": error.state}
            for seed, error in ensemble.failures.items()
        ],
        "count": ensemble.count(),
        "mean": {name: ensemble.mean(name) for name in ensemble.names},
        "std": {name: ensemble.std(name) for name in ensemble.names},
        "sem": {name: ensemble.sem(name) for name in ensemble.names},
        **{name: ensemble.values(name) for name in ensemble.names},
    }
    if comparison is not None:
        result["compare"] = _compared(comparison)
    return result


def _compared(comparison: "Comparison") -> dict[str, Any]:
    from dataclasses import asdict

    worst = comparison.worst
    return {
        "verdict": comparison.verdict,
        "consistent": comparison.consistent(),
        "within": comparison.within,
        "deviations": {name: asdict(one) for name, one in comparison.judged.items()},
        "finite_size": comparison.finite_size,
        "z": comparison.z,
        "worst": None if worst is None else dict(zip(("name", "t", "z"), worst, strict=True)),
        "note": comparison.note,
    }


def _show(ensemble: "Ensemble", comparison: "Comparison | None") -> None:
    console = terminal()
    console.print(f"[bold]{ensemble.problem!r}[/bold]\n[bold]{ensemble.recipe!r}[/bold]")
    print_table(console, _table(ensemble))
    seeds = counted(len(ensemble.seeds), "seed")
    collapsed = int((ensemble.collapsed_at >= 0).sum())
    if collapsed:
        console.print(f"{collapsed} of {seeds} collapsed to one class.")
    if ensemble.failures:
        failed = len(ensemble.failures)
        console.print(f"{failed} of {seeds} failed, and are left out from there on.")
    console.print(
        f"N = {ensemble.features:,}, {seeds}, {ensemble.method}, "
        f"{ensemble.seconds:.3g} s; mean over seeds, standard error of the last digits in brackets."
    )
    if comparison is not None:
        _show_comparison(console, comparison)


def _show_comparison(console: "Console", comparison: "Comparison") -> None:
    """Deviations as a table that fits the terminal, then what they mean."""
    from rich import box
    from rich.table import Table

    from ..simulation.comparison import COLUMNS, percent

    sentences = str(comparison).splitlines()
    if comparison.judged:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
        for title in COLUMNS:
            justify: Any = "left" if title == COLUMNS[0] else "right"
            table.add_column(title, justify=justify, no_wrap=True)
        for name, one in comparison.judged.items():
            numbers = (one.pooled, one.by_chance, one.detectable, one.at_most)
            table.add_row(name, f"{percent(one.largest)} at {one.at}", *map(percent, numbers))
        print_table(console, table)
        sentences = sentences[1 + len(comparison.judged) :]
    for sentence in sentences:
        console.print(sentence)


def _table(ensemble: "Ensemble") -> "Table":
    """The columns of `selftrain solve`, then how many seeds have a state at the step."""
    from rich import box
    from rich.table import Table

    columns = {
        "q": "q",
        "m": "m",
        "B": "bias",
        "χ": "chi",
        "R": "overlap",
        "error": "error",
        "cosine": "cosine",
    }
    if ensemble.recipe.at_steps(ensemble.problem.steps).threshold.any():
        columns["selected"] = "fraction_selected"
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for title in ("t", *columns, "seeds"):
        table.add_column(title, justify="right", no_wrap=True)
    means = {name: ensemble.mean(name) for name in columns.values()}
    errors = {name: ensemble.sem(name) for name in columns.values()}
    count = ensemble.count()
    for t in rows_shown(ensemble.problem.steps):
        cells = [_cell(means[name][t], errors[name][t]) for name in means]
        table.add_row(str(t), *cells, str(count[t]))
    return table


def _cell(mean: float, error: float) -> str:
    """A number with its standard error in brackets.

    >>> _cell(0.123456, 0.00123), _cell(float("nan"), 0.0)
    ('0.1235(12)', '-')
    """
    import math

    if not math.isfinite(mean):
        return "-"
    if not (math.isfinite(error) and error > 0):
        return f"{mean:.6g}"
    digits = max(1 - math.floor(math.log10(error)), 0)
    return f"{mean:.{digits}f}({round(error * 10**digits)})"
