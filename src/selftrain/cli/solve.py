"""`selftrain solve`: the large-system limit of a run, as a table, JSON, a figure or a file."""

from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InvalidInput
from .options import AsJson, OnFailure, Plot, Save, Tolerance, option, read_value, takes
from .output import (
    OutputFiles,
    StepRows,
    cell,
    counted,
    print_json,
    print_table,
    remark,
    terminal,
)

if TYPE_CHECKING:
    from ..problem import Problem
    from ..recipe import Recipe
    from ..theory.solved_run import SolvedRun, ThinnedRun
    from ..tuning.limits import Limits
    from .data import Data

MOST_ROWS = 33

COLUMNS = {
    "q": "q", "m": "m", "B": "bias", "χ": "chi", "R": "overlap", "error": "error",
    "cosine": "cosine",
}  # fmt: skip
"""Columns of the table: titles, and the quantities in them."""

FEW_CLASSES = 5
"""Up to this many classes, a table has room for three digits per class; else two are shown."""


@takes("problem", "recipe", "data")
def solve(
    problem: "Problem",
    recipe: "Recipe",
    data: "Data | None",
    tolerance: Tolerance = None,
    on_failure: OnFailure = "raise",
    every: Annotated[int | None, option("Show every K-th step and the last one.", "K")] = None,
    json: AsJson = False,
    plot: Plot = None,
    save: Save = None,
) -> None:
    """Solve the theory of a self-training run: the large-system limit, step by step."""
    files = OutputFiles(plot, save, quiet=json).check()
    if every is not None and (plot is not None or save is not None):
        raise InvalidInput("every", every, "must not be given with --plot or --save")

    from ..theory.solve import solve as solve_theory
    from ..tuning.limits import Limits

    if data is not None:
        remark(str(data))
    wanted = None if tolerance is None else read_value(tolerance)
    run = solve_theory(problem, recipe, wanted, on_failure)
    limits = Limits(problem)
    shown = run if every is None else run.every(every)
    if json:
        result = describe(shown, limits) | ({} if data is None else {"data": data.to_dict()})
        print_json(result, problem=problem, recipe=recipe)
    else:
        _show(run, limits, None if every is None else shown.t.tolist())
    files.write(run.plot, run.save)
    if run.failure is not None:
        raise run.failure


def describe(run: "SolvedRun | ThinnedRun", limits: "Limits") -> dict[str, Any]:
    """Return a solved run as plain values, with the names of the Python API."""
    names = ("step", "reason", "state", "residual")
    failure = run.failure
    return {
        "steps": StepRows({"t": run.t, **{name: getattr(run, name) for name in run.RECORDED}}),
        **limits.to_dict(),
        "solver": run.summary(),
        "collapsed_at": run.collapsed_at,
        "collapsed_class": run.collapsed_class,
        "failure": failure and {name: getattr(failure, name) for name in names},
    }


def _show(run: "SolvedRun", limits: "Limits", kept: list[int] | None) -> None:
    console = terminal()
    console.print(f"[bold]{run.problem!r}[/bold]\n[bold]{run.recipe!r}[/bold]")
    rows = rows_shown(run.problem.steps, run.collapsed_at) if kept is None else kept
    print_table(console, *_table(run, rows))
    if len(rows) <= run.problem.steps:
        console.print(f"{len(rows)} of {run.problem.steps + 1} steps shown; --json has all.")
    for sentence in (*_ending(run), limits.sentence()):
        console.print(sentence)
    remark(_solver(run))


def rows_shown(steps: int, collapsed_at: int | None = None) -> list[int]:
    """Return the steps that a table shows: all steps of a short run; of a long run the first, the
    last, the collapse, and others at growing distances, because early steps change most.

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


def _table(run: Any, rows: list[int]) -> tuple[list[str], list[list[str]]]:
    """Return the titles and the rows of the table of a run."""
    columns: dict[str, Any]
    if run.classes > 2:
        columns = {"error": run.error, "balanced": run.balanced_error, "q": run.q}
    else:
        columns = {title: getattr(run, name) for title, name in COLUMNS.items()}
        if run.problem.clusters is not None:
            columns |= {"balanced": run.balanced_error, "AUC": run.auc}
    if run.recipe.at_steps(run.problem.steps).threshold.any():
        columns["selected"] = run.fraction_selected
    if run.classes > 2:
        columns |= class_columns(run.class_errors, run.label_shares)
    return ["t", *columns], [
        [str(t), *(cell(values[t]) for values in columns.values())] for t in rows
    ]


def class_columns(errors: Any, shares: Any) -> dict[str, list[str]]:
    """Return two columns over t: the recalls of all K classes, and their shares among the labels.

    Each entry lists the numbers of all classes.
    """
    digits = 3 if errors.shape[-1] <= FEW_CLASSES else 2

    def shown(values: Any) -> list[str]:
        return [" ".join("-" if x != x else f"{x:.{digits}f}" for x in row) for row in values]

    return {"recall of each class": shown(1 - errors), "labels of each class": shown(shares)}


def _ending(run: "SolvedRun") -> list[str]:
    """Return a sentence that says why the run ended before its last step; empty if it did not."""
    if run.failure is not None:
        return [f"[bold]Stopped at step {run.failure.step}[/bold]: {run.failure.reason}."]
    if run.collapsed_at is None:
        return []
    if run.classes > 2:
        return [
            f"[bold]Collapsed at step {run.collapsed_at}[/bold]: the pseudo-labels lack class"
            f" {run.collapsed_class}, and the run ends there."
        ]
    guess = "positive" if run.collapsed_class == 0 else "negative"
    return [
        f"[bold]Collapsed at step {run.collapsed_at}[/bold]: the pseudo-labels are all of the "
        f"{guess} class, and from there on the error is that of always predicting {guess}."
    ]


def _solver(run: "SolvedRun") -> str:
    """Return a sentence about the solver, whose numbers may differ between machines."""
    result = run.summary()
    steps = counted(result["confirmed_steps"], "step")
    starts = ", ".join(f"{count} {name}" for name, count in result["starts"].items())
    alone, accuracy = result["step_accuracy"], result.get("accuracy")
    confirmed = "not confirmed" if alone is None else f"{steps} confirmed to {alone:.1e} each"
    if accuracy is not None:
        confirmed += f", the state to {accuracy:.1e}"
    return (
        f"Solved to {result['tolerance']:.0e}; {confirmed};"
        f" {counted(result['evaluations'], 'evaluation')}, {result['evaluations_per_step']:.2f} per"
        f" step, at most {result['nodes_max']} nodes; starts: {starts}."
    )
