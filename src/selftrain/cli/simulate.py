"""`selftrain simulate`: finite-size runs, as a table, as JSON, as a figure, against the theory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .options import takes
from .output import check_output, print_json, terminal
from .solve import rows_shown

if TYPE_CHECKING:
    from ..problem import Problem
    from ..recipe import Recipe
    from ..simulation.compare import Comparison
    from ..simulation.ensemble import Ensemble


@takes("problem", "recipe")
def simulate(
    problem: "Problem",
    recipe: "Recipe",
    features: Annotated[int, typer.Option(metavar="N", help="Number of features.")] = 8192,
    seeds: Annotated[int, typer.Option(metavar="K", help="Number of independent runs.")] = 16,
    method: Annotated[
        Literal["matrix-free", "revealed", "dense"],
        typer.Option(help="How the data are held; all three are exact."),
    ] = "matrix-free",
    keep_labeled: Annotated[
        bool, typer.Option("--keep-labeled", help="Fit the labelled data again in every step.")
    ] = False,
    reuse_batch: Annotated[
        bool, typer.Option("--reuse-batch", help="One unlabelled batch for all steps.")
    ] = False,
    probes: Annotated[
        int, typer.Option(metavar="P", help="Random probes of the susceptibility a step.")
    ] = 1,
    workers: Annotated[
        int, typer.Option(metavar="W", help="Seeds that run at once; -1: all cores.")
    ] = 1,
    compare: Annotated[
        bool, typer.Option("--compare", help="Solve the theory and give z-scores.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the runs (png, pdf, svg).", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Store the runs, for Ensemble.load.", show_default=False),
    ] = None,
) -> None:
    """Simulate self-training on finite data, once a seed."""
    if plot is not None:
        check_output("plot", plot, ("png", "pdf", "svg", "eps", "jpg"))
    if save is not None:
        check_output("save", save)

    from ..simulation.run import simulate as run_simulation

    ensemble = run_simulation(
        problem,
        recipe,
        features,
        seeds,
        method,
        keep_labeled=keep_labeled,
        reuse_batch=reuse_batch,
        probes=probes,
        workers=workers,
    )
    theory = None
    if compare or plot is not None:
        from ..theory.solve import solve

        theory = solve(problem, recipe)
    comparison = ensemble.compare(theory) if compare and theory is not None else None
    if json:
        print_json(describe(ensemble, comparison), problem=problem, recipe=recipe)
    else:
        _show(ensemble, comparison)
    if plot is not None:
        ensemble.plot(theory).savefig(plot)
    if save is not None:
        ensemble.save(save)


def describe(ensemble: "Ensemble", comparison: "Comparison | None" = None) -> dict[str, Any]:
    """Runs as plain values: every quantity (seeds, steps + 1) by name, then its statistics over t."""
    from ..simulation.ensemble import NAMES

    told: dict[str, Any] = {
        "features": ensemble.features,
        "seeds": ensemble.seeds,
        "method": ensemble.method,
        "seconds": ensemble.seconds,
        "collapsed_at": [None if step < 0 else step for step in ensemble.collapsed_at.tolist()],
        "count": ensemble.count(),
        "mean": {name: ensemble.mean(name) for name in NAMES},
        "std": {name: ensemble.std(name) for name in NAMES},
        "sem": {name: ensemble.sem(name) for name in NAMES},
        **{name: ensemble.values(name) for name in NAMES},
    }
    if comparison is not None:
        name, step, z = comparison.worst
        told["compare"] = {
            "z": comparison.z,
            "worst": {"name": name, "t": step, "z": z},
            "limit": comparison.limit(),
            "consistent": comparison.consistent(),
            "applies": comparison.applies,
            "note": comparison.note,
        }
    return told


def _show(ensemble: "Ensemble", comparison: "Comparison | None") -> None:
    from rich import box
    from rich.table import Table

    console = terminal()
    console.print(
        f"[bold]{ensemble.problem!r}[/bold]\n[bold]{ensemble.recipe!r}[/bold]", soft_wrap=True
    )
    columns = {"q": "q", "m": "m", "B": "bias", "R": "overlap", "χ": "chi", "ε": "error"}
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("t", *columns, "cosine", "seeds"):
        table.add_column(title, justify="right")
    count = ensemble.count()
    for t in rows_shown(ensemble.problem.steps):
        cells = [
            _cell(ensemble.mean(name)[t], ensemble.sem(name)[t])
            for name in (*columns.values(), "cosine")
        ]
        table.add_row(str(t), *cells, str(count[t]))
    console.print(table)
    collapsed = int((ensemble.collapsed_at >= 0).sum())
    if collapsed:
        console.print(f"{collapsed} of {len(ensemble.seeds)} seeds collapsed to one class.")
    console.print(
        f"N = {ensemble.features:,}, {len(ensemble.seeds)} seeds, {ensemble.method}, "
        f"{ensemble.seconds:.3g} s; mean over seeds, standard error of the last digits in brackets."
    )
    if comparison is not None:
        console.print(str(comparison), soft_wrap=True)


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
