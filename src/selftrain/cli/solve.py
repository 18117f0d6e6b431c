"""`selftrain solve`: the large-system limit of a run, as a table, as JSON, as a figure, as a
file.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from ..errors import InvalidInput
from .files import AsJson, OutputFiles
from .options import read_value, takes
from .output import (
    StepRows,
    counted,
    print_json,
    print_table,
    remark,
    terminal,
)

if TYPE_CHECKING:
    from rich.table import Table

    from ..problem import Problem
    from ..recipe import Recipe
    from ..theory.thinned import ThinnedRun
    from ..theory.trajectory import Trajectory
    from .data import Data

MOST_ROWS = 33


@takes("problem", "recipe", "data")
def solve(
    problem: "Problem",
    recipe: "Recipe",
    data: "Data | None",
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help=(
                "Relative accuracy of the state. Default: 1e-10; 1e-5 or 1e-4 where rows are used"
                " again."
            ),
            show_default=False,
        ),
    ] = None,
    on_failure: Annotated[
        Literal["raise", "partial"],
        typer.Option(
            help="When a step has no confirmed solution: nothing, or the steps before it. "
            "The exit code is 1 in both cases."
        ),
    ] = "raise",
    every: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Give every K-th step and the last one, of a long run.",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the run (png, pdf, svg).", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Store the run, for Trajectory.load.", show_default=False
        ),
    ] = None,
) -> None:
    """Solve the theory of a self-training run: what a large system does, step by step."""
    files = OutputFiles(plot, save, quiet=json).check()
    if every is not None and (plot is not None or save is not None):
        raise InvalidInput("every", every, "--json or a table; --plot and --save take every step")

    from ..theory.solve import solve as solve_theory

    if data is not None:
        remark(str(data))
    wanted = None if tolerance is None else read_value(tolerance)
    run = solve_theory(problem, recipe, wanted, on_failure)
    limits = _limits(problem)
    shown = run if every is None else run.every(every)
    if json:
        result = describe(shown, limits) | ({} if data is None else {"data": data.to_dict()})
        print_json(result, problem=problem, recipe=recipe)
    else:
        _show(run, limits, None if every is None else shown.t.tolist())
    files.write(run.plot, run.save)
    if run.failure is not None:
        raise run.failure


def describe(run: "Trajectory | ThinnedRun", limits: "KnownLimits") -> dict[str, Any]:
    """A solved run as plain values under the names of the API."""
    from ..theory.thinned import QUANTITIES

    failure = run.failure
    return {
        "steps": StepRows({"t": run.t, **{name: getattr(run, name) for name in QUANTITIES}}),
        **limits.values,
        "solver": run.summary(),
        "collapsed_at": run.collapsed_at,
        "failure": (
            None
            if failure is None
            else {
                "step": failure.step,
                "reason": failure.reason,
                "state": failure.state,
                "residual": failure.residual,
            }
        ),
    }


class KnownLimits(NamedTuple):
    """What cannot be beaten: plain values for JSON, and a sentence."""

    values: dict[str, Any]
    sentence: str


def _limits(problem: "Problem") -> KnownLimits:
    """The Bayes limits of a sphere; of a shape the best linear rule and every label given."""
    if problem.shaped:
        return _limits_of_a_shape(problem)
    from ..theory.bayes import bayes_error

    bayes = bayes_error(problem)
    sentence = (
        f"No method errs less than {bayes.semi_supervised:.6g} on these data, "
        f"{bayes.all_labeled:.6g} were all of them labelled, "
        f"{bayes.labeled_only:.6g} with the labelled ones only (Bayes)."
    )
    names = ("semi_supervised", "all_labeled", "labeled_only")
    return KnownLimits({"bayes": {name: getattr(bayes, name) for name in names}}, sentence)


def _limits_of_a_shape(problem: "Problem") -> KnownLimits:
    from ..theory.limits import NO_BAYES_LIMIT, best_linear_error
    from ..tuning.supervised import supervised_optimum

    best, every = best_linear_error(problem), supervised_optimum(problem).unbounded
    assert every is not None
    values = {"best_linear": best, "every_label": every.error, "every_label_ridge": every.ridge}
    sentence = (
        f"No linear rule errs less than {best:.6g} on these clusters; with every label of these"
        f" rows the best ridge, {every.ridge:.3g}, reaches {every.error:.6g}. {NO_BAYES_LIMIT}"
    )
    return KnownLimits({"bayes": None, "limits": values}, sentence)


def _show(run: "Trajectory", limits: KnownLimits, kept: list[int] | None) -> None:
    console = terminal()
    console.print(f"[bold]{run.problem!r}[/bold]\n[bold]{run.recipe!r}[/bold]")
    rows = rows_shown(run.problem.steps, run.collapsed_at) if kept is None else kept
    print_table(console, _table(run, rows))
    if len(rows) <= run.problem.steps:
        console.print(f"{len(rows)} of {run.problem.steps + 1} steps shown; --json has all.")
    for sentence in (*_ending(run), limits.sentence):
        console.print(sentence)
    remark(_solver(run))


def rows_shown(steps: int, collapsed_at: int | None = None) -> list[int]:
    """Steps worth a row: all of a short run; of a long one the first, the last, and others
    ever farther apart, because early steps change most. The collapse is among them.

    >>> rows_shown(3)
    [0, 1, 2, 3]
    >>> len(rows_shown(1024)) <= MOST_ROWS
    True
    """
    if steps < MOST_ROWS:
        return list(range(steps + 1))
    kept = {0, steps}
    if collapsed_at is not None:
        kept |= {collapsed_at - 1, collapsed_at}
    growth = (steps + 1) ** (1 / (MOST_ROWS - 5))
    return sorted(kept | {min(round(growth**k), steps) for k in range(MOST_ROWS - 4)})


def _table(run: "Trajectory", rows: list[int]) -> "Table":
    from rich import box
    from rich.table import Table

    columns = {
        "q": run.q,
        "m": run.m,
        "B": run.bias,
        "χ": run.chi,
        "R": run.overlap,
        "error": run.error,
        "cosine": run.cosine,
    }
    if run.problem.clusters is not None:
        columns |= {"balanced": run.balanced_error, "AUC": run.auc}
    if run.recipe.at_steps(run.problem.steps).threshold.any():
        columns["selected"] = run.fraction_selected
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in ("t", *columns):
        table.add_column(name, justify="right", no_wrap=True)
    for t in rows:
        table.add_row(str(t), *(_cell(values[t]) for values in columns.values()))
    return table


def _cell(value: float) -> str:
    return "-" if value != value else f"{value:.6g}"


def _ending(run: "Trajectory") -> list[str]:
    """In words, how the run ended if not at its last step in good order."""
    if run.failure is not None:
        return [f"[bold]Stopped at step {run.failure.step}[/bold]: {run.failure.reason}."]
    if run.collapsed_at is None:
        return []
    guess = "positive" if run.predicts_positive else "negative"
    return [
        f"[bold]Collapsed at step {run.collapsed_at}[/bold]: the pseudo-labels are all of the "
        f"{guess} class, and from there on the error is that of always answering {guess}."
    ]


def _solver(run: "Trajectory") -> str:
    """How the run was solved; evaluations and accuracy may differ between machines."""
    result = run.summary()
    steps = counted(result["confirmed_steps"], "step")
    starts = ", ".join(f"{count} {name}" for name, count in result["starts"].items())
    alone, accuracy = result["step_accuracy"], result["accuracy"]
    confirmed = "not confirmed" if alone is None else f"{steps} confirmed to {alone:.1e} each"
    if accuracy is not None:
        confirmed += f", the state to {accuracy:.1e}"
    return (
        f"Solved to {result['tolerance']:.0e}; {confirmed};"
        f" {counted(result['evaluations'], 'evaluation')}, {result['evaluations_per_step']:.2f} per"
        f" step, at most {result['nodes_max']} nodes; starts: {starts}."
    )
