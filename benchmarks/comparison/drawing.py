"""The figure of the comparison: mean errors by number of labels, and the difference on every
task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from selftrain.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    legend_under,
    styled,
)

from .summary import losses, means

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = {
    "supervised, balanced": (GREY, "s--"),
    "self-training .9": (YELLOW, "v:"),
    "self-training .9, balanced": (ORANGE, "o-"),
    "label spreading": (PURPLE, "^:"),
    "mixture by EM": (SKY, "D:"),
    "transductive SVM": (BLACK, "x:"),
    "anchored": (GREEN, "o-"),
    "few labels": (BLUE, "o-"),
    "fully supervised": (GREY, "-"),
}


def draw_comparison(frame: pd.DataFrame) -> Figure:
    """Draw the frame of `comparison.summary`."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(9.0, 4.8), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
        _means(left, frame)
        _gaps(right, frame)
        legend_under(figure, left.get_legend_handles_labels()[0], columns=3)
    return figure


def _means(ax: Axes, frame: pd.DataFrame) -> None:
    table = means(frame)
    sizes = [column for column in table.columns if isinstance(column, int)]
    for name, (color, style) in LINES.items():
        if name in table.index:
            ax.plot(sizes, table.loc[name, sizes], style, color=color, label=name)
    ax.set(xscale="log", xlabel="labelled rows", ylabel="balanced error, %, mean over tasks")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set_ylim(0)


def _gaps(ax: Axes, frame: pd.DataFrame) -> None:
    table = losses(frame, "few labels")
    order = table.groupby("task")["gap"].mean().sort_values().index
    place = {task: k for k, task in enumerate(order)}
    sizes = sorted(table["labels"].unique())
    for size, color, shift in zip(sizes, (ORANGE, BLUE, GREEN), (-0.22, 0.0, 0.22), strict=False):
        rows = table[table["labels"] == size]
        height = np.array([place[task] for task in rows["task"]]) + shift
        ax.errorbar(
            rows["gap"],
            height,
            xerr=rows["error"].fillna(0.0),
            fmt="o",
            color=color,
            label=f"{size} labels",
        )
    ax.axvline(0.0, color=BLACK, linewidth=0.8)
    ax.set_yticks(range(len(order)), list(order), fontsize=6.5)
    ax.set_xlabel("few labels less scikit-learn (balanced, .9), points")
    ax.legend(loc="lower right", fontsize=7)
