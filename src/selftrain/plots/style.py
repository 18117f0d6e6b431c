"""The style of all figures: small, quiet, readable in print and by the colour-blind.

Colours are those of Okabe and Ito. `styled()` is a context, so nothing outside a figure changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..problem import Problem
    from ..theory.bayes import BayesLimits

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, YELLOW, BLACK, GREY = "#56B4E9", "#E69F00", "#222222", "#8A8A8A"

MANY_STEPS = 64

LineStyle = str | tuple[float, tuple[float, ...]]

_LIMITS: dict[str, tuple[str, LineStyle]] = {
    "labeled_only": ("Bayes, labelled only", (0, (1, 1.5))),
    "semi_supervised": ("Bayes, all data", "solid"),
    "all_labeled": ("Bayes, all labelled", (0, (4, 2))),
}

_SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": BLACK,
    "axes.formatter.limits": (-9, 9),
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.edgecolor": "none",
    "legend.facecolor": "white",
    "legend.framealpha": 0.85,
    "lines.linewidth": 1.6,
    "lines.markersize": 3.5,
    "mathtext.fontset": "cm",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


def styled() -> AbstractContextManager[None]:
    """Return a context with the settings of matplotlib for all figures."""
    import matplotlib as mpl

    return mpl.rc_context(_SETTINGS)


def steps_axis(axes: Iterable[Axes], steps: int) -> None:
    """Set the axis of t: whole numbers; for many steps a logarithmic scale that includes t = 0."""
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

    for ax in axes:
        ax.set_xlabel("step $t$")
        if steps > MANY_STEPS:
            ax.set_xscale("symlog", linthresh=1, linscale=0.4)
            ax.xaxis.set_minor_locator(NullLocator())
            ax.set_xlim(-0.15, steps * 1.15)
        else:
            few = FixedLocator(range(steps + 1)) if steps < 2 else None
            ax.xaxis.set_major_locator(few or MaxNLocator(integer=True, min_n_ticks=1))
            ax.set_xlim(-0.4, steps + 0.4)


def errors_axis(ax: Axes) -> None:
    """Show errors from 0 up, with room above the largest."""
    largest = ax.dataLim.y1
    ax.set_ylim(0, 1.1 * largest if 0 < largest < 1 else None)


def logarithmic(ax: Axes, which: str = "y") -> None:
    """Set a logarithmic axis, "x" or "y", with plain numbers if they are short."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Short(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            low, high = ax.get_xlim() if which == "x" else ax.get_ylim()
            text = super().__call__(x, pos)
            return f"{x:.4g}" if text and 1e-3 < low < high < 1e4 else text

    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_formatter(Short())
    axis.set_minor_formatter(Short(labelOnlyBase=False))


def legend_under(canvas: Figure | SubFigure, handles: Iterable[Any], columns: int = 3) -> None:
    """Put one legend for all panels under them."""
    whole = canvas.figure
    if whole.get_layout_engine() is None:  # a figure that the caller made
        whole.set_layout_engine("constrained")
    canvas.legend(
        handles=list(handles),
        loc="outside lower center",
        fontsize=7.5,
        ncols=columns,
        frameon=False,
    )


def entries(*axes: Axes) -> list[Any]:
    """Return the legend entries of panels, each name once."""
    named: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    return list(named.values())


def draw_limits(ax: Axes, limits: BayesLimits) -> None:
    """Draw Bayes errors as horizontal lines with entries for the legend."""
    for name, (label, dashes) in _LIMITS.items():
        height = getattr(limits, name)
        ax.axhline(
            height, color=GREY, linewidth=0.9, linestyle=dashes, label=f"{label}  {height:.4f}"
        )


def draw_lowest(ax: Axes, problem: Problem) -> None:
    """Draw the Bayes errors of a problem; for general covariances, the error of the best linear
    classifier.
    """
    from ..theory.bayes import bayes_error, best_linear_error

    if problem.clusters is None:
        draw_limits(ax, bayes_error(problem))
        return
    height = best_linear_error(problem)
    ax.axhline(height, color=GREY, linewidth=0.9, label=f"best linear rule  {height:.4f}")
