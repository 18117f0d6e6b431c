"""Tables of the comparison: means over tasks, paired differences, degradation, and every task.

Runs of a task are averaged first; means and standard errors are then over tasks, because a user's
data are another task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..markdown import table
from .measures import DEGRADATION
from .methods import METHODS
from .run import LABELS, Cell

if TYPE_CHECKING:
    pass

BASELINE = "self-training .9, balanced"
"""scikit-learn's self-training with balanced weights, its ridge chosen by cross-validation."""

DEFAULT_BASELINE = "self-training .9, balanced, default C"
"""The same with scikit-learn's default ridge."""

OURS = ("anchored", "few labels", "few labels, safe")
SUPERVISED = ("supervised", "supervised, balanced")


def as_frame(results: Iterable[tuple[Cell, str, dict[str, float]]]) -> pd.DataFrame:
    """Return one line per cell and method, with `degraded` added."""
    lines = [{**vars(cell), "method": method, **values} for cell, method, values in results]
    frame = pd.DataFrame(lines)
    runs = ["task", "labels", "seed"]
    better = (
        frame[frame["method"].isin(SUPERVISED)].groupby(runs)["balanced_error"].min().rename("base")
    )
    frame = frame.join(better, on=runs)
    frame["degraded"] = (frame["balanced_error"] > frame["base"] + DEGRADATION).astype(float)
    return frame.drop(columns="base")


def by_task(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the seeds of every task, number of labels and method."""
    values = frame.drop(columns="seed").groupby(["task", "labels", "method"]).mean()
    return values.reset_index()


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one line per method: balanced error by number of labels, and the other measures
    averaged over all numbers of labels.
    """
    tasks = by_task(frame)
    error = tasks.pivot_table("balanced_error", "method", "labels") * 100
    others = tasks.groupby("method")[["auc", "log_loss", "calibration", "seconds"]].mean()
    degraded = frame.groupby("method")["degraded"].mean() * 100
    found = error.join(others).join(degraded)
    return found.reindex([name for name in METHODS if name in found.index])


def difference(
    frame: pd.DataFrame, method: str, baseline: str = BASELINE, measure: str = "balanced_error"
) -> pd.DataFrame:
    """Return the paired difference of two methods by number of labels: mean over tasks and its
    standard error.
    """
    wide = by_task(frame).pivot_table(measure, ["labels", "task"], "method")
    gaps = (wide[method] - wide[baseline]).groupby(level="labels")
    found = pd.DataFrame({"mean": gaps.mean(), "error": gaps.std() / np.sqrt(gaps.count())})
    found["tasks"] = gaps.count()
    found["better"] = gaps.apply(lambda gap: int((gap < 0).sum()))
    return found


def shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean error of the estimated proportion on tasks of one class against the rest."""
    rest = frame[frame["task"].str.endswith("other") & frame["method"].isin(OURS)]
    return rest.pivot_table("share_error", "method", "labels")


def losses(frame: pd.DataFrame, method: str, baseline: str = BASELINE) -> pd.DataFrame:
    """Return for every task the balanced errors of two methods in percent, their difference and
    its standard error over seeds.
    """
    runs = frame.pivot_table("balanced_error", ["task", "labels", "seed"], "method") * 100
    gap = runs[method] - runs[baseline]
    cells = gap.groupby(level=["task", "labels"])
    found = pd.DataFrame(
        {
            "ours": runs[method].groupby(level=["task", "labels"]).mean(),
            "baseline": runs[baseline].groupby(level=["task", "labels"]).mean(),
            "gap": cells.mean(),
            "error": cells.std() / np.sqrt(cells.count()),
        }
    )
    return found.reset_index()


def markdown(frame: pd.DataFrame) -> str:
    """Return all tables as text for a page."""
    seeds = frame.groupby(["task", "labels"])["seed"].nunique()
    tasks = frame["task"].nunique()
    parts = [
        (
            f"{tasks} tasks, {_between(seeds.min(), seeds.max())} seeds each, {len(seeds)} pairs of"
            " task and number of labels."
        ),
        "Balanced error in %, degradation in % of runs, seconds of processor time.",
        _means_text(means(frame)),
        (
            "Difference of balanced error to scikit-learn's balanced self-training at .9, in"
            " points, with the standard error over tasks, and the number of tasks on which it is"
            " lower. Its ridge chosen by cross-validation:"
        ),
        _differences_text(frame, BASELINE),
        "With its default, C = 1:",
        _differences_text(frame, DEFAULT_BASELINE),
        "Error of the estimated class proportion on tasks of one class against the rest:",
        _shares_text(shares(frame)),
        (
            "Every task, error of `few labels` minus scikit-learn's (balanced, .9), in points with"
            " the standard error over seeds where there are several; **bold** where `few labels` is"
            " worse by more than two standard errors:"
        ),
        _losses_text(losses(frame, "few labels")),
    ]
    return "\n\n".join(parts) + "\n"


def _between(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _means_text(found: pd.DataFrame) -> str:
    labels = [size for size in LABELS if size in found.columns]
    head = ["", *_headed(labels), "degraded", "AUC", "log loss", "calibration", "s"]
    lines = []
    for name, row in found.iterrows():
        compared = name not in (*SUPERVISED, "fully supervised")
        shown = [
            *(_shown(row[size], ".1f") for size in labels),
            f"{row['degraded']:.1f}" if compared else "–",
            *(_shown(row[key], ".3f") for key in ("auc", "log_loss", "calibration")),
        ]
        lines.append([str(name), *shown, f"{row['seconds']:.3f}"])
    return table(head, lines)


def _differences_text(frame: pd.DataFrame, baseline: str) -> str:
    lines = []
    for method in OURS:
        found = difference(frame, method, baseline) * [100, 100, 1, 1]
        shown = [
            f"{row['mean']:+.1f} ± {row['error']:.1f} ({row['better']:.0f} of {row['tasks']:.0f})"
            for _, row in found.iterrows()
        ]
        lines.append([method, *shown])
    return table(["", *_headed(LABELS)], lines)


def _shares_text(found: pd.DataFrame) -> str:
    lines = [[str(name), *(f"{value:+.3f}" for value in row)] for name, row in found.iterrows()]
    return table(["", *_headed(found.columns)], lines)


def _losses_text(found: pd.DataFrame) -> str:
    lines = []
    for task, rows in found.groupby("task"):
        row = {int(entry["labels"]): entry for _, entry in rows.iterrows()}
        lines.append([str(task), *(_gap(row.get(size)) for size in LABELS)])
    return table(["", *_headed(LABELS)], lines)


def _headed(sizes: Iterable[Any]) -> list[str]:
    return [f"{size} labels" for size in sizes]


def _gap(entry: Any) -> str:
    if entry is None:
        return "–"
    pair = f"{entry['ours']:.1f} − {entry['baseline']:.1f}"
    several = "" if np.isnan(entry["error"]) else f" ± {entry['error']:.1f}"
    text = f"{pair} = {entry['gap']:+.1f}{several}"
    return f"**{text}**" if entry["gap"] > 2 * entry["error"] else text


def _shown(value: float, form: str) -> str:
    return "–" if np.isnan(value) else format(value, form)
