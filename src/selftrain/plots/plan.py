"""A plan: errors with their intervals, source by source, and the scores behind them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .canvas import Layout, draw_panels
from .notebook import card
from .style import BLACK, BLUE, GREY, ORANGE, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..estimator.planning.plan import Plan

ROWS = (
    ("supervised", "supervised"),
    ("self_training", "self-training"),
    ("fully_supervised", "fully supervised"),
)
SOURCES = (("plan", BLACK, "o"), ("synthetic data", SKY, "s"), ("theory", ORANGE, "D"))


def plot_plan(plan: Plan, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw balanced errors with 90 % intervals, and scores of unlabelled and labelled samples.

    Arguments:
        panel: draw one panel only: "errors" or "scores".
        ax: axes for that panel (the errors if `panel` is None); by default new ones.
    """
    draws = {name: partial(draw, plan=plan) for name, draw in PANELS.items()}
    return draw_panels(draws, Layout(1, 2, 8.6, 3.4, 0, title=_title(plan)), panel, ax)


def plan_card(plan: Plan) -> str:
    """Return advice, reason, errors and violated assumptions with a small picture, as HTML."""
    from ..estimator.planning.text import worth

    values: dict[str, object] = {"why": plan.reason}
    for name, label in ROWS:
        one = getattr(plan.error, name)
        values[label] = f"{100 * one.estimate:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}]"
    values["worth"] = worth(plan)
    for index, each in enumerate(plan.check_assumptions().violated, start=1):
        values[f"violated {index}"] = f"{each.name}. {each.found} {each.effect}"
    return card(f"Advice: {plan.advice}", values, lambda ax: _stated(ax, plan))


def _stated(ax: Axes, plan: Plan) -> None:
    """Draw the errors that a plan states, small."""
    for place, (name, _) in enumerate(ROWS):
        one = getattr(plan.error, name)
        ax.plot([100 * one.low, 100 * one.high], [place, place], color=BLACK, lw=1.8)
        ax.plot(100 * one.estimate, place, "o", color=BLACK, ms=5)
    _named(ax, "balanced error in %")


def _named(ax: Axes, label: str) -> None:
    ax.set_yticks(range(len(ROWS)), [name for _, name in ROWS])
    ax.set(ylim=(2.6, -0.6), xlabel=label)
    ax.set_xlim(left=0)
    ax.grid(axis="y", visible=False)


def _title(plan: Plan) -> str:
    low, high = 100 * plan.gain.low, 100 * plan.gain.high
    return (
        f"Advice: {plan.advice}. Expected gain of self-training: "
        f"{100 * plan.gain.estimate:.1f} points [{low:.1f}, {high:.1f}]"
    )


def draw_errors(ax: Axes, plan: Plan) -> None:
    """Draw errors of every source with their intervals."""
    sources = {"plan": plan.error, **plan.sources}
    for offset, (source, color, marker) in zip((-0.22, 0.0, 0.22), SOURCES, strict=True):
        for place, (name, _) in enumerate(ROWS):
            entry = getattr(sources[source], name)
            height = place + offset
            ax.plot([100 * entry.low, 100 * entry.high], [height, height], color=color, lw=1.8)
            words = "plan (cross-validation)" if source == "plan" else source
            label = None if place else words
            ax.plot(100 * entry.estimate, height, marker, color=color, ms=5, label=label)
    _named(ax, "balanced error in %, 90 % intervals")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, columnspacing=1.2)


def draw_scores(ax: Axes, plan: Plan) -> None:
    """Draw scores of unlabelled samples, and held-out scores of labelled ones."""
    scores = plan.evidence.unlabeled.trained
    low, high = np.quantile(scores, [0.002, 0.998])
    reach = (min(low, -0.5), max(high, 0.5))
    ax.hist(np.clip(scores, *reach), bins=50, range=reach, color="#D8D8D8", label="unlabelled")
    ax.axvline(0, color=GREY, lw=0.8, ls="dashed")
    top = ax.get_ylim()[1]
    held_out, classes = plan.evidence.held_out.trained, plan.evidence.classes
    for code, color in ((0, BLUE), (1, ORANGE)):
        own = np.clip(held_out[classes == code], *reach)
        height = np.full(len(own), top * (1.06 + 0.08 * code))
        label = f"labelled {plan.rows.names[code]}, held out"
        ax.plot(own, height, "|", color=color, ms=9, mew=1.4, label=label)
    ax.set(xlabel="score of self-training", ylabel="samples", ylim=(0, 1.5 * top))
    ax.legend(loc="upper left", fontsize=7)


PANELS = {"errors": draw_errors, "scores": draw_scores}
