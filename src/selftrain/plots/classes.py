"""Runs of several classes, solved or simulated: errors, recall and labels of every class."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..arrays import Array
    from ..simulation.ensemble import Ensemble
    from ..theory.causal.classes import ClassTrajectory

READABLE = 6
"""Numbers are written into a confusion matrix of at most so many classes."""


def plot_classes(
    run: ClassTrajectory,
    *,
    panel: str | None = None,
    ax: Axes | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw errors, recall and share of labels of each class over the fits, and the last confusion.

    Arguments:
        run: what `solve` returned for several classes.
        panel: draw one panel only: "error", "recall", "labels" or "confusion".
        ax: axes for that panel (the error if `panel` is None); by default new ones.
        figure: an empty figure, or a part of one, to draw on; by default a new one.
    """
    from .canvas import Layout, draw_panels

    draws = {"error": _error, "recall": _recall, "labels": _labels, "confusion": _confusion}
    each = {name: partial(draw, run=run) for name, draw in draws.items()}
    layout = Layout(2, 2, 7.2, 6.4, 5, title=f"{run.protocol.classes} classes")
    return draw_panels(each, layout, panel, ax, figure)


def plot_class_runs(
    ensemble: Ensemble,
    run: ClassTrajectory | None = None,
    *,
    panel: str | None = None,
    ax: Axes | None = None,
    spread: str = "std",
) -> Figure:
    """Draw finite-size runs as points with error bars, the theory as lines.

    Arguments:
        ensemble: what `simulate` returned for several classes.
        run: the theory.
        panel: draw one panel only: "error", "size", "recall" or "labels".
        ax: axes for that panel; by default new ones.
        spread: error bars: "std" over seeds, or "sem" of the mean.
    """
    from .canvas import Layout, draw_panels

    names = {"error": "error", "size": "q", "recall": "class_errors", "labels": "label_shares"}
    each = {
        key: partial(_points, ensemble=ensemble, run=run, name=name, spread=spread)
        for key, name in names.items()
    }
    bars = "standard deviation over seeds" if spread == "std" else "standard error of the mean"
    title = f"{ensemble.classes} classes, N = {ensemble.features:,}; bars: {bars}"
    return draw_panels(each, Layout(2, 2, 7.2, 6.0, 5, title=title), panel, ax, None)


TITLES = {
    "error": "generalisation error", "q": "squared norm of the weights",
    "class_errors": "recall of each class", "label_shares": "share of each class among the labels",
}  # fmt: skip


def _points(
    ax: Axes, ensemble: Ensemble, run: ClassTrajectory | None, name: str, spread: str
) -> None:
    """Draw a quantity of the runs and of the theory; that of every class in its colour."""
    ax.set_title(TITLES[name])
    seen = ensemble.mean(name).reshape(len(ensemble.t), -1)
    bars = getattr(ensemble, spread)(name).reshape(seen.shape)
    line = None if run is None else np.asarray(getattr(run, name)).reshape(seen.shape)
    if name == "class_errors":
        seen, line = 1.0 - seen, None if line is None else 1.0 - line
    for k, column in enumerate(seen.T):
        color = _color(k) if seen.shape[1] > 1 else "black"
        label = f"class {k}" if name == "class_errors" else None
        ax.errorbar(
            ensemble.t, column, np.nan_to_num(bars[:, k]), color=color, marker="o", markersize=3,
            linestyle="none", elinewidth=0.8, label=label,
        )  # fmt: skip
        if line is not None:
            ax.plot(ensemble.t, line[:, k], color=color)
    style.steps_axis((ax,), len(ensemble.t) - 1)


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
        ax.axhline(share, color=_color(k), linestyle="dotted", linewidth=1.0)


def _by_class(ax: Axes, run: ClassTrajectory, values: Array, named: bool = False) -> None:
    for k, column in enumerate(values.T):
        label = f"class {k}" if named else None
        ax.plot(run.t, column, color=_color(k), marker="o", label=label)
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


def _color(k: int) -> str:
    return f"C{k % 10}"
