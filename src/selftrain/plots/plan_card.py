"""A plan: errors with their intervals from each source, and the distribution of the gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .canvas import Layout, draw_panels
from .notebook import card
from .style import BLACK, BLUE, GREY, ORANGE, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..estimator.planning.plan import Plan

SOURCES = (("plan", BLACK, "o"), ("cells", SKY, "s"), ("cross-validation", ORANGE, "D"))


def plot_plan(plan: Plan, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw balanced errors with 90 % intervals, and the distribution of the gain.

    Arguments:
        panel: draw one panel only: "errors" or "gain".
        ax: axes for that panel (the errors if `panel` is None); by default new ones.
    """
    title = f"Advice: {plan.advice}"
    figure = draw_panels(PANELS, Layout(1, 2, 8.6, 3.2, 0, title=title), panel, ax, plan=plan)
    if panel is not None and ax is None:
        figure.suptitle(title, fontsize=9)
    return figure


def plan_card(plan: Plan) -> str:
    """Return the text of a plan with a small figure, as HTML."""
    from ..estimator.planning.text import cautions

    values: dict[str, object] = {}
    told = [*zip(plan.names, plan.error, strict=True), ("gain", plan.gain)]
    for name, one in told:
        values[name] = f"{100 * one.estimate:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}]"
    values["why"], values["next"] = plan.reason, plan.next_step
    for index, each in enumerate(cautions(plan), start=1):
        values[f"caution {index}"] = each
    return card(f"Advice: {plan.advice}", values, lambda ax: _stated(ax, plan))


def _stated(ax: Axes, plan: Plan) -> None:
    """Draw the two errors of a plan with their intervals, for a small figure."""
    for place, one in enumerate(plan.error):
        ax.plot([100 * one.low, 100 * one.high], [place, place], color=BLACK, lw=1.8)
        ax.plot(100 * one.estimate, place, "o", color=BLACK, ms=5)
    _named(ax, plan, "balanced error in %")


def _named(ax: Axes, plan: Plan, label: str) -> None:
    ax.set_yticks(range(2), list(plan.names))
    ax.set(ylim=(1.6, -0.6), xlabel=label)
    ax.set_xlim(left=0)
    ax.grid(axis="y", visible=False)


def draw_errors(ax: Axes, plan: Plan) -> None:
    """Draw errors of every source with their intervals."""
    sources = {"plan": plan.error, **plan.sources}
    for offset, (source, color, marker) in zip((-0.22, 0.0, 0.22), SOURCES, strict=True):
        for place, one in enumerate(sources[source]):
            height = place + offset
            ax.plot([100 * one.low, 100 * one.high], [height, height], color=color, lw=1.8)
            label = None if place else source
            ax.plot(100 * one.estimate, height, marker, color=color, ms=5, label=label)
    _named(ax, plan, "balanced error in %, 90 % intervals")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, columnspacing=1.2)


def draw_gain(ax: Axes, plan: Plan) -> None:
    """Draw the distribution of the gain; a clear loss and a worthwhile gain are coloured."""
    from ..estimator.planning.posterior import DEGRADED, WORTH

    gain = plan.draws.gain
    low, high = np.quantile(gain, [0.002, 0.998])
    edges = np.linspace(low - 1e-4, high + 1e-4, 50)
    counts, _ = np.histogram(gain, edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    kinds = (
        (middle < -DEGRADED, ORANGE, f"loss > {100 * DEGRADED:g} points"),
        ((middle >= -DEGRADED) & (middle <= WORTH), "#D8D8D8", "between"),
        (middle > WORTH, BLUE, f"gain > {100 * WORTH:g} point"),
    )
    for chosen, color, label in kinds:
        heights = np.where(chosen, counts, 0) / len(gain)
        ax.bar(100 * middle, heights, 100 * np.diff(edges), color=color, label=label)
    ax.axvline(0, color=GREY, lw=0.8, ls="dashed")
    ax.set(xlabel=f"gain of {plan.names.candidate} in points", ylabel="probability")
    ax.legend(loc="upper right", fontsize=7)


PANELS = {"errors": draw_errors, "gain": draw_gain}
