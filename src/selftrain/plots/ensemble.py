"""Finite-size runs as points with error bars, the theory as lines, in four panels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..simulation.comparison import expected
from . import style
from .canvas import Layout, draw_panels
from .classes import class_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..arrays import Array
    from ..simulation.ensemble import Ensemble
    from ..theory.causal.classes import ClassTrajectory
    from ..theory.trajectory import Trajectory

TITLES = {
    "error": r"generalisation error  $\epsilon_g$",
    "cosine": "cosine with the best direction",
    "q": r"squared norm  $q$",
    "bias": r"bias  $B$",
    "class_errors": "recall of each class",
    "label_shares": "share of each class among the labels",
}
TWO_CLASSES = {name: name for name in ("error", "cosine", "q", "bias")}
MORE_CLASSES = {"error": "error", "size": "q", "recall": "class_errors", "labels": "label_shares"}
"""Panel names, and the quantity that each panel shows."""

COLORS = (style.ORANGE, style.GREEN, style.PURPLE, style.BLUE, style.BLACK)
MARKERS = "os^Dv"


def plot_ensemble(
    ensembles: Ensemble | Sequence[Ensemble],
    trajectory: Trajectory | ClassTrajectory | None = None,
    *,
    panel: str | None = None,
    ax: Axes | None = None,
    spread: Literal["std", "sem"] = "std",
    limits: bool = True,
) -> Figure:
    """Draw one or several ensembles of the same problem over the theory.

    Arguments:
        ensembles: what `simulate` returned, for one N or for several.
        trajectory: the theory, drawn as lines.
        panel: draw one panel only: "error", "cosine", "q" or "bias"; for more than two classes
            "error", "size", "recall" or "labels".
        ax: axes for that panel (the error if `panel` is None); by default new ones.
        spread: error bars: standard deviation over seeds, or standard error of the mean.
        limits: draw the Bayes errors of the problem as reference lines.

    >>> from selftrain import Problem, Recipe, simulate
    >>> runs = simulate(Problem(0.5, 2.0, 0.4, 0.5, steps=2), Recipe(), features=100, seeds=3)
    >>> len(plot_ensemble(runs).axes)
    4
    """
    drawn = list(ensembles) if isinstance(ensembles, Sequence) else [ensembles]
    # a run of a protocol has no problem, and its results are by class
    several = drawn[0].classes > 2 or drawn[0].problem is None
    draws = {
        panel_name: partial(
            draw_quantity, ensembles=drawn, trajectory=trajectory, name=name, spread=spread,
            limits=limits and not several,
        )
        for panel_name, name in (MORE_CLASSES if several else TWO_CLASSES).items()
    }  # fmt: skip
    named = ("recall", "error") if several else ("cosine", "error")
    layout = Layout(2, 2, 7.2, 6.0, 5 if several else 3, named, _title(drawn, spread))
    return draw_panels(draws, layout, panel, ax)


def draw_quantity(
    ax: Axes,
    ensembles: Sequence[Ensemble],
    trajectory: Trajectory | ClassTrajectory | None,
    name: str,
    spread: str = "std",
    limits: bool = True,
) -> None:
    """Draw one quantity against t: the theory as lines, means over seeds with error bars.

    A quantity with an entry per class is drawn in the colours of the classes.
    """
    ax.set_title(TITLES[name])
    by_class = name in ("class_errors", "label_shares")
    if trajectory is not None:
        told = expected(trajectory, name, ensembles[0].classes)
        for k, column in enumerate(_columns(told, name)):
            color = class_color(k) if by_class else style.GREY
            ax.plot(trajectory.t, column, color=color, label=None if by_class else "theory")
    for index, ensemble in enumerate(ensembles):
        _points(ax, ensemble, name, index, len(ensembles), spread)
    if name == "error":
        if limits:
            assert ensembles[0].problem is not None
            style.draw_lowest(ax, ensembles[0].problem)
        style.errors_axis(ax)
    elif name == "q" and trajectory is not None and np.nanmin(told) < 0.01 * np.nanmax(told):
        style.logarithmic(ax)
    style.steps_axis((ax,), int(ensembles[0].t[-1]))


def _columns(values: Array, name: str) -> Array:
    """Return a quantity as rows over t: one row, or one per class; class errors become recall."""
    rows = np.asarray(values).reshape(len(values), -1).T
    return 1.0 - rows if name == "class_errors" else rows


def _points(ax: Axes, ensemble: Ensemble, name: str, index: int, total: int, spread: str) -> None:
    """Draw means with error bars, side by side for several ensembles."""
    offset = 0.12 * (index - (total - 1) / 2)
    rows = _columns(ensemble.mean(name), name)
    bars = np.nan_to_num(getattr(ensemble, spread)(name)).reshape(len(ensemble.t), -1).T
    by_class = len(rows) > 1
    for k, (row, bar) in enumerate(zip(rows, bars, strict=True)):
        seeds = f"{_kind(ensemble)}  ({len(ensemble.seeds)} seeds)"
        ax.errorbar(
            ensemble.t + offset,
            row,
            bar,
            color=class_color(k) if by_class else COLORS[index % len(COLORS)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle="none",
            elinewidth=0.8,
            markersize=3,
            label=f"class {k}" if by_class else seeds,
        )


def _kind(ensemble: Ensemble) -> str:
    """Name the samples of an ensemble."""
    kinds = {"rows": "real samples", "gaussian": "synthetic Gaussian"}
    return kinds.get(ensemble.method, f"N = {ensemble.features:,}")


def _title(ensembles: list[Ensemble], spread: str) -> str:
    first = ensembles[0]
    bars = "standard deviation over seeds" if spread == "std" else "standard error of the mean"
    kind, variants = f"{first.classes} classes", []
    if first.problem is not None:
        if first.classes == 2:
            kind = first.problem.loss_names
        if np.any(np.asarray(first.problem.keep_labeled) > 0):
            variants.append("labelled samples kept")
        if first.problem.batches != "fresh":
            variants.append("unlabelled samples reused")
    lines = [f"{kind}, finite-size runs; bars: {bars}"]
    if variants:
        lines.append(" and ".join(variants))
    collapsed = sum(int((one.collapsed_at >= 0).sum()) for one in ensembles)
    if collapsed:
        lines.append(f"{collapsed} seeds collapsed to one class")
    failed = sum(len(one.failures) for one in ensembles)
    if failed:
        lines.append(f"{failed} seeds failed and are excluded from there on")
    return "\n".join(lines)
