"""The headline figure: self-training with and without the heuristics, between the supervised
baseline and the fully supervised fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selftrain.plots import style
from selftrain.plots.canvas import new_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .headline import Headline

WIDE, NARROW = (7.2, 4.2), (4.2, 4.2)
"""Width and height of the figure in inches, on a page and on a phone."""


def plot_headline(story: Headline, size: tuple[float, float] = WIDE) -> Figure:
    """Draw the errors of four methods against t, with name and last value beside each line."""
    with style.styled():
        figure = new_picture(*size, 160)
        ax = figure.add_subplot()
        _draw(ax, story)
        style.steps_axis((ax,), story.problem.steps)
        ax.set_ylim(0.055, None)
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        ax.set_ylabel("error on new samples")
        ax.set_title(_title(story, " " if size[0] >= WIDE[0] else "\n"))
    return figure


def _draw(ax: Axes, story: Headline) -> None:
    steps = story.problem.steps
    full, alone = story.supervised.error, float(story.labeled_only.run.error[0])
    naive, helped = story.naive.run, story.helped.run
    ax.axhline(alone, color=style.GREY, linestyle="dashed")
    ax.axhline(full, color=style.GREEN)
    ax.plot(naive.t, naive.error, color=style.ORANGE)
    ax.plot(helped.t, helped.error, color=style.BLUE)
    ensemble = story.helped.simulated
    if ensemble is not None:
        ax.errorbar(
            helped.t,
            ensemble.mean("error"),
            yerr=ensemble.std("error"),
            color=style.BLUE,
            linestyle="none",
            marker="o",
            mfc="white",
            elinewidth=0.9,
        )
    middle = int(0.6 * steps)
    for x, y, place, color, text in (
        (steps, alone, "bottom", "#595959", "supervised baseline"),
        (steps, naive.error[-1], "top", style.ORANGE, "naive self-training"),
        (steps, full, "top", "#00714F", "fully supervised"),
    ):
        shift = 4 if place == "bottom" else -4
        ax.annotate(
            f"{text} {100 * y:.1f} %", (x, y), (0, shift), textcoords="offset points",
            ha="right", va=place, color=color,
        )  # fmt: skip
    words = f"annealed labels,\nbias fixed {100 * helped.error[-1]:.1f} %"
    ax.annotate(
        words, (middle, helped.error[middle]),
        (14, 6), textcoords="offset points", ha="left", va="center", color=style.BLUE,
    )  # fmt: skip


def _title(story: Headline, separator: str) -> str:
    ensemble = story.helped.simulated
    words = f"{story.problem.rho:.0%} of the samples are positive.{separator}Lines: theory"
    if ensemble is None:
        return words
    return f"{words}; dots: {len(ensemble.seeds)} simulations"
