"""`selftrain simulate`: finite-size runs as a table, JSON or a figure, compared with the theory."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..errors import InvalidInput, SeedError
from .options import AsJson, OnFailure, Plot, Save, option, takes
from .output import (
    OutputFiles,
    counted,
    print_json,
    print_table,
    remark,
    terminal,
)
from .solve import COLUMNS, class_columns, rows_shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

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
        option("Number of features. Default: 8192 (K classes: 1000); --data: its columns.", "N"),
    ] = None,
    gaussian: Annotated[
        bool, option("With --data: synthetic Gaussian data in place of its rows.", "", "--gaussian")
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
        typer.Option(metavar="W", help="Seeds at once; 0: in this process, -1: all cores."),
    ] = 1,
    on_failure: OnFailure = "raise",
    compare: Annotated[
        bool, option("Solve the theory and compare the runs with it.", "", "--compare")
    ] = False,
    within: Annotated[
        float,
        typer.Option(metavar="X", help="Runs and theory agree if every deviation is below this."),
    ] = 0.1,
    json: AsJson = False,
    plot: Plot = None,
    save: Save = None,
) -> None:
    """Simulate self-training on finite data, once per seed."""
    files = OutputFiles(plot, save, quiet=json).check()

    if gaussian and data is None:
        raise InvalidInput("gaussian", gaussian, "needs --data FILE")
    if data is not None:
        remark(str(data))

    from ..simulation.simulate import simulate as run_simulation

    rows = None if data is None or gaussian else data.rows
    with _warnings_as_remarks():
        ensemble = run_simulation(
            problem, recipe, features, seeds, method, rows=rows, probes=probes, workers=workers,
            on_failure=on_failure,
        )  # fmt: skip
    if len(ensemble.seeds) < seeds:
        _keep_part(ensemble, seeds, save)
        raise KeyboardInterrupt
    theory: Any = None
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
        if rows is not None:  # compare real rows with synthetic Gaussian data
            drawn.insert(0, run_simulation(problem, recipe, seeds=seeds, probes=0))
        return plot_ensemble(drawn, theory, spread="std")

    files.write(draw, ensemble.save)
    if ensemble.failures:
        raise SeedError(ensemble)


@contextmanager
def _warnings_as_remarks() -> Iterator[None]:
    """Write warnings of the package to stderr, one line each."""
    import warnings

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in warned:
        remark(f"Warning: {warning.message}")


def _keep_part(ensemble: "Ensemble", seeds: int, save: Path | None) -> None:
    """Save the finished seeds after an interrupt, in a file other than that of a whole run."""
    remark(f"Interrupted: {len(ensemble.seeds)} of {counted(seeds, 'seed')} are done.")
    if save is not None:
        part = save.with_name(f"{save.stem}.partial{save.suffix}")
        ensemble.save(part)
        remark(f"Saved: {part}")


def describe(ensemble: "Ensemble", comparison: "Comparison | None" = None) -> dict[str, Any]:
    """Return runs as plain values: statistics at each step, and every quantity of every seed as an
    array of shape (seeds, steps + 1).
    """
    statistics = {
        kind: {name: getattr(ensemble, kind)(name) for name in ensemble.names}
        for kind in ("mean", "std", "sem")
    }
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
        **statistics,
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
    print_table(console, *_table(ensemble))
    seeds = counted(len(ensemble.seeds), "seed")
    collapsed = int((ensemble.collapsed_at >= 0).sum())
    if collapsed:
        console.print(f"{collapsed} of {seeds} collapsed to one class.")
    if ensemble.classes > 2:
        for k, lost in enumerate((ensemble.lost_at >= 0).sum(axis=0)):
            if lost:
                console.print(f"{lost} of {seeds} lost class {k}: no label of it was left.")
    if ensemble.failures:
        failed = len(ensemble.failures)
        console.print(f"{failed} of {seeds} failed; later means are those of the others.")
    console.print(
        f"N = {ensemble.features:,}, {seeds}, {ensemble.method}, "
        f"{ensemble.seconds:.3g} s; mean over seeds, standard error of the last digits in brackets."
    )
    if comparison is not None:
        _show_comparison(console, comparison)


def _show_comparison(console: "Console", comparison: "Comparison") -> None:
    """Print the deviations as a table that fits the terminal, then what they mean."""
    from ..simulation.comparison import COLUMNS as TITLES
    from ..simulation.comparison import percent

    sentences = str(comparison).splitlines()
    if comparison.judged:
        rows = []
        for name, one in _largest(comparison).items():
            numbers = (one.pooled, one.by_chance, one.detectable, one.at_most)
            rows.append([name, f"{percent(one.largest)} at {one.at}", *map(percent, numbers)])
        print_table(console, TITLES, rows, left=TITLES[:1])
        sentences = sentences[1 + len(comparison.judged) :]
    for sentence in sentences:
        console.print(sentence)


def _largest(comparison: "Comparison") -> dict[str, Any]:
    """Return one deviation per quantity: for arrays (K classes) the entry with the largest upper
    limit.
    """
    found: dict[str, tuple[str, Any]] = {}
    for key, one in comparison.judged.items():
        name = key.partition("[")[0]
        if name not in found or one.at_most > found[name][1].at_most:
            found[name] = (key, one)
    return dict(found.values())


def _table(ensemble: "Ensemble") -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of a table: the columns of `selftrain solve`, and the number of seeds
    that have a state at the step.
    """
    columns = dict(COLUMNS)
    if ensemble.classes > 2:
        columns = {"error": "error", "balanced": "balanced_error", "q": "q"}
    if ensemble.recipe.at_steps(ensemble.problem.steps).threshold.any():
        columns["selected"] = "fraction_selected"
    values = [(ensemble.mean(name), ensemble.sem(name)) for name in columns.values()]
    count, more = ensemble.count(), {}
    if ensemble.classes > 2:
        more = class_columns(ensemble.mean("class_errors"), ensemble.mean("label_shares"))
    rows = [
        [str(t), *(_cell(mean[t], error[t]) for mean, error in values), str(count[t])]
        + [column[t] for column in more.values()]
        for t in rows_shown(ensemble.problem.steps)
    ]
    return ["t", *columns, "seeds", *more], rows


def _cell(mean: float, error: float) -> str:
    """Return a number with its standard error, in units of the last digit, in brackets.

    >>> _cell(0.123456, 0.00123), _cell(float("nan"), 0.0)
    ('0.1235(12)', '-')
    """
    if not math.isfinite(mean):
        return "-"
    if not (math.isfinite(error) and error > 0):
        return f"{mean:.6g}"
    digits = max(1 - math.floor(math.log10(error)), 0)
    return f"{mean:.{digits}f}({round(error * 10**digits)})"
