"""Tables of the comparison: means over tasks, paired differences, harm, and every task by itself.

Runs of a task are averaged first; means and standard errors are then over tasks, which are what
varies when somebody takes the method to rows of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .competitors import METHODS
from .run import LABELS, Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

RIVAL = "self-training .9, balanced"
"""What ours is measured against: scikit-learn's self-training with balanced weights, its ridge
chosen by cross-validation.
"""

AS_IT_COMES = "self-training .9, balanced, as it comes"
"""The same with scikit-learn's own ridge, as most people use it."""

OURS = ("anchored", "anchored, no neighbours", "anchored, neighbours")
SUPERVISED = ("supervised", "supervised, balanced")
HARM = 0.02
"""A run is harmed when its balanced error is so much above the better supervised fit."""


def as_frame(results: Iterable[tuple[Cell, str, dict[str, float]]]) -> pd.DataFrame:
    """One line per cell and method, with `harm` added."""
    lines = [{**vars(cell), "method": method, **values} for cell, method, values in results]
    frame = pd.DataFrame(lines)
    runs = ["task", "labels", "seed"]
    better = (
        frame[frame["method"].isin(SUPERVISED)].groupby(runs)["balanced_error"].min().rename("base")
    )
    frame = frame.join(better, on=runs)
    frame["harm"] = (frame["balanced_error"] > frame["base"] + HARM).astype(float)
    return frame.drop(columns="base")


def by_task(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds of every task, number of labels and method."""
    values = frame.drop(columns="seed").groupby(["task", "labels", "method"]).mean()
    return values.reset_index()


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per method: balanced error by number of labels, the other measures over all of
    them.
    """
    tasks = by_task(frame)
    error = tasks.pivot_table("balanced_error", "method", "labels") * 100
    others = tasks.groupby("method")[["auc", "log_loss", "calibration", "seconds"]].mean()
    harm = frame.groupby("method")["harm"].mean() * 100
    table = error.join(others).join(harm)
    return table.reindex([name for name in METHODS if name in table.index])


def difference(
    frame: pd.DataFrame, method: str, rival: str = RIVAL, measure: str = "balanced_error"
) -> pd.DataFrame:
    """Paired difference of two methods by number of labels: mean over tasks and its standard
    error.
    """
    wide = by_task(frame).pivot_table(measure, ["labels", "task"], "method")
    gaps = (wide[method] - wide[rival]).groupby(level="labels")
    found = pd.DataFrame({"mean": gaps.mean(), "error": gaps.std() / np.sqrt(gaps.count())})
    found["tasks"] = gaps.count()
    found["better"] = gaps.apply(lambda gap: int((gap < 0).sum()))
    return found


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean error of the estimated share over tasks of one class against the rest."""
    rest = frame[frame["task"].str.endswith("other") & frame["method"].isin(OURS)]
    return rest.pivot_table("share_error", "method", "labels")


def losses(frame: pd.DataFrame, method: str, rival: str = RIVAL) -> pd.DataFrame:
    """Every task: balanced errors of two methods in percent, difference and its error over
    seeds.
    """
    runs = frame.pivot_table("balanced_error", ["task", "labels", "seed"], "method") * 100
    gap = runs[method] - runs[rival]
    cells = gap.groupby(level=["task", "labels"])
    table = pd.DataFrame(
        {
            "ours": runs[method].groupby(level=["task", "labels"]).mean(),
            "rival": runs[rival].groupby(level=["task", "labels"]).mean(),
            "gap": cells.mean(),
            "error": cells.std() / np.sqrt(cells.count()),
        }
    )
    return table.reset_index()


def markdown(frame: pd.DataFrame) -> str:
    """All tables as text for a page."""
    seeds = frame.groupby(["task", "labels"])["seed"].nunique()
    tasks = frame["task"].nunique()
    parts = [
        (
            f"{tasks} tasks, {_between(seeds.min(), seeds.max())} seeds each, {len(seeds)} pairs of"
            " task and number of labels."
        ),
        "Balanced error in %, harm in % of runs, seconds of processor time.",
        _means_text(means(frame)),
        (
            "Difference of balanced error to scikit-learn's balanced self-training at .9, in"
            " points, with the standard error over tasks, and the number of tasks on which it is"
            " lower. Its ridge chosen by cross-validation:"
        ),
        _differences_text(frame, RIVAL),
        "As it comes, with C = 1:",
        _differences_text(frame, AS_IT_COMES),
        "Error of the estimated class share on tasks of one class against the rest:",
        _shares_text(shares(frame)),
        (
            "Every task, `anchored` less scikit-learn's (balanced, .9), in points with the standard"
            " error over seeds where there are several; **bold** where `anchored` is worse by more"
            " than two standard errors:"
        ),
        _losses_text(losses(frame, "anchored")),
    ]
    return "\n\n".join(parts) + "\n"


def _between(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = "|".join("---" for _ in head)
    return "\n".join(
        [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)]
    )


def _means_text(table: pd.DataFrame) -> str:
    labels = [size for size in LABELS if size in table.columns]
    head = [
        "",
        *(f"{size} labels" for size in labels),
        "harm",
        "AUC",
        "log loss",
        "calibration",
        "s",
    ]
    lines = []
    for name, row in table.iterrows():
        harm = f"{row['harm']:.1f}" if name not in (*SUPERVISED, "every label") else "–"
        found = [_shown(row[key], ".3f") for key in ("auc", "log_loss", "calibration")]
        errors = [_shown(row[size], ".1f") for size in labels]
        lines.append([str(name), *errors, harm, *found, f"{row['seconds']:.3f}"])
    return _table(head, lines)


def _differences_text(frame: pd.DataFrame, rival: str) -> str:
    lines = []
    for method in OURS:
        found = difference(frame, method, rival) * [100, 100, 1, 1]
        shown = [
            f"{row['mean']:+.1f} ± {row['error']:.1f} ({row['better']:.0f} of {row['tasks']:.0f})"
            for _, row in found.iterrows()
        ]
        lines.append([method, *shown])
    return _table(["", *(f"{size} labels" for size in LABELS)], lines)


def _shares_text(table: pd.DataFrame) -> str:
    lines = [[str(name), *(f"{value:+.3f}" for value in row)] for name, row in table.iterrows()]
    return _table(["", *(f"{size} labels" for size in table.columns)], lines)


def _losses_text(table: pd.DataFrame) -> str:
    lines = []
    for task, rows in table.groupby("task"):
        row = {int(entry["labels"]): entry for _, entry in rows.iterrows()}
        lines.append([str(task), *(_gap(row.get(size)) for size in LABELS)])
    return _table(["", *(f"{size} labels" for size in LABELS)], lines)


def _gap(entry: Any) -> str:
    if entry is None:
        return "–"
    text = (
        f"{entry['ours']:.1f} − {entry['rival']:.1f} = {entry['gap']:+.1f} ± {entry['error']:.1f}"
    )
    return f"**{text}**" if entry["gap"] > 2 * entry["error"] else text


def _shown(value: float, form: str) -> str:
    return "–" if np.isnan(value) else format(value, form)
