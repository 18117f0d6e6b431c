"""The headline figure: self-training with and without the heuristics, between supervised learning
and the Bayes errors; lines are theory, dots are finite systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import style
from .paper import letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..report.headline import Contender, Headline

COLORS = (style.ORANGE, style.BLUE, style.PURPLE)
"""Of the competitors, in the order of the story."""


def plot_headline(story: Headline) -> Figure:
    """Draw error (left), direction and bias (right) of every competitor against t."""
    from .canvas import new_picture

    with style.styled():
        figure = new_picture(8.4, 5.0, 160)
        grid = figure.add_gridspec(2, 2, width_ratios=(1.6, 1))
        error = figure.add_subplot(grid[:, 0])
        cosine = figure.add_subplot(grid[0, 1])
        bias = figure.add_subplot(grid[1, 1], sharex=cosine)
        draw_errors(error, story)
        for contender, color in zip(story, COLORS, strict=True):
            _draw(cosine, contender, "cosine", color)
            _draw(bias, contender, "bias_to_norm", color)
        _finish(error, cosine, bias, story)
    return figure


def plot_headline_narrow(story: Headline) -> Figure:
    """Draw the errors alone, for the width of a phone."""
    from .canvas import new_picture

    with style.styled():
        figure = new_picture(4.0, 4.6, 200)
        error = figure.add_subplot()
        draw_errors(error, story)
        style.steps_axis((error,), story.problem.steps)
        error.set_ylabel(r"error  $\epsilon_g^{(t)}$")
        error.set_ylim(bottom=0.05)
        style.legend_under(figure, style.entries(error), 1)
        figure.suptitle(_caption(story), fontsize=8)
    return figure


def draw_errors(ax: Axes, story: Headline) -> None:
    """Draw the errors of all competitors, between supervised fits and Bayes errors."""
    for contender, color in zip(story, COLORS, strict=True):
        _draw(ax, contender, "error", color, contender.name)
    full = story.supervised.error
    ax.axhline(full, color=style.GREEN, label=f"fully supervised, tuned  {full:.4f}")
    alone = float(story.labeled_only.run.error[0])
    ax.axhline(
        alone, color=style.GREEN, linestyle=(0, (1, 1.5)), label=f"supervised, tuned  {alone:.4f}"
    )
    style.draw_limits(ax, story.limits)


def _draw(ax: Axes, contender: Contender, quantity: str, color: str, label: str = "") -> None:
    run, ensemble = contender.run, contender.simulated
    values = getattr(run, quantity)
    if label:
        label = f"{label}  {values[-1]:.4f}"
    ax.plot(run.t, values, color=color, label=label or None)
    if ensemble is not None:
        ax.errorbar(
            run.t,
            ensemble.mean(quantity),
            yerr=ensemble.std(quantity),
            color=color,
            linestyle="none",
            marker="o",
            mfc="white",
            elinewidth=0.9,
        )


def _finish(error: Axes, cosine: Axes, bias: Axes, story: Headline) -> None:
    problem = story.problem
    error.set_title(
        rf"error, $\rho={problem.rho:g}$, $\alpha_L={problem.alpha_l:g}$, "
        rf"$\alpha_U={problem.alpha_u:g}$, $\Delta={problem.delta:g}$"
    )
    cosine.set_title("cosine with the cluster direction")
    bias.set_title("bias over norm")
    style.steps_axis((error, cosine, bias), problem.steps)
    cosine.set_xlabel("")
    error.set_ylabel(r"error  $\epsilon_g^{(t)}$")
    cosine.set_ylabel(r"$m/\sqrt{q}$")
    bias.set_ylabel(r"$B/\sqrt{q}$")
    error.set_ylim(bottom=0.05)
    letter((error, cosine, bias))
    figure = error.figure
    style.legend_under(figure, style.entries(error), 3)
    figure.suptitle(_caption(story), fontsize=8)


def _caption(story: Headline) -> str:
    ensemble = story.helped.simulated
    if ensemble is None:
        return "lines: theory"
    seeds, features = ensemble.error.shape[0], ensemble.features
    return f"lines: theory; dots: {seeds} systems of {features} features, mean and deviation"
