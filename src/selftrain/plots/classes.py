"""Solved runs of several classes: errors, recall and pseudo-labels of each class, confusion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import style
from .canvas import Layout, draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..arrays import Array
    from ..theory.causal.classes import ClassTrajectory

READABLE = 6
"""Largest number of classes for which numbers are written into the confusion matrix."""


def plot_classes(
    run: ClassTrajectory,
    *,
    panel: str | None = None,
    ax: Axes | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw the errors, and recall and share of labels of each class, against t, and the last
    confusion matrix.

    Arguments:
        run: what `solve` returned for several classes.
        panel: draw one panel only: "error", "recall", "labels" or "confusion".
        ax: axes for that panel (the error if `panel` is None); by default new ones.
        figure: an empty figure, or a part of one, to draw on; by default a new one.
    """
    draws = {"error": _error, "recall": _recall, "labels": _labels, "confusion": _confusion}
    layout = Layout(2, 2, 7.2, 6.4, 5, title=f"{run.protocol.classes} classes")
    return draw_panels(draws, layout, panel, ax, figure, run=run)


def _error(ax: Axes, run: ClassTrajectory) -> None:
    ax.set_title("generalisation error")
    ax.plot(run.t, run.error, color="black", marker="o", label="error")
    ax.plot(run.t, run.balanced_error, color="grey", marker="s", label="balanced error")
    style.steps_axis((ax,), len(run.t) - 1)


def _recall(ax: Axes, run: ClassTrajectory) -> None:
    ax.set_title("recall of each class")
    _by_class(ax, run, 1.0 - run.class_errors, named=True)


def _labels(ax: Axes, run: ClassTrajectory) -> None:
    ax.set_title("share of each class among the labels")
    _by_class(ax, run, run.label_shares)
    for k, share in enumerate(run.protocol.test.proportions):
        ax.axhline(share, color=class_color(k), linestyle="dotted", linewidth=1.0)


def _by_class(ax: Axes, run: ClassTrajectory, values: Array, named: bool = False) -> None:
    for k, column in enumerate(values.T):
        label = f"class {k}" if named else None
        ax.plot(run.t, column, color=class_color(k), marker="o", label=label)
    ax.set_ylim(0.0, 1.02)
    style.steps_axis((ax,), len(run.t) - 1)


def _confusion(ax: Axes, run: ClassTrajectory) -> None:
    last = max(0, run.good_steps - 1)
    shares, classes = run.confusion[last], range(run.protocol.classes)
    ax.set_title(f"P(predicted | true) after fit {last}")
    ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    ax.grid(False)
    ax.set(xlabel="predicted class", ylabel="true class", xticks=classes, yticks=classes)
    if len(classes) > READABLE:
        return
    for (true, guess), share in np.ndenumerate(shares):
        color = "white" if share > 0.5 else "black"
        ax.text(guess, true, f"{share:.2f}", ha="center", va="center", color=color)


def class_color(k: int) -> str:
    """Return the colour of class k in all panels."""
    return f"C{k % 10}"
