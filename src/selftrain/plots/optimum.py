"""An optimum in three panels: the run with its limits, its free hyperparameters, the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..parameters import PARAMETERS
from . import style
from .canvas import Layout, draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..tuning.optimum import Optimum

SHOWN = {
    "lambda_u": ("ridge", style.YELLOW),
    "threshold": ("threshold", style.GREEN),
    "sharpness": ("sharpness", style.SKY),
}
"""Hyperparameters that may differ from step to step: words and colours."""


def plot_optimum(optimum: Optimum, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the best run, its hyperparameters at every step, and the progress of the search.

    Arguments:
        optimum: what `optimize` returned.
        panel: draw one panel only: "error", "recipe" or "search".
        ax: axes for that panel (the error if `panel` is None); by default new ones.

    >>> from selftrain import Problem, optimize
    >>> problem = Problem(alpha_l=0.5, alpha_u=2, rho=0.5, delta=0.6, steps=2)
    >>> len(plot_optimum(optimize(problem, over=("lambda_u",), starts=1)).axes)
    3
    """
    layout = Layout(1, 3, 9.6, 3.8, 4, ("error", "recipe"))
    return draw_panels(PANELS, layout, panel, ax, optimum=optimum)


def draw_error(ax: Axes, optimum: Optimum) -> None:
    """Draw the error of the run with the best recipe, with baselines and Bayes errors."""
    ax.set_title(r"generalisation error  $\epsilon_g$")
    ax.plot(optimum.trajectory.t, optimum.trajectory.error, color=style.BLUE, label="best recipe")
    for label, fit, color in (
        ("fully supervised", optimum.supervised, style.PURPLE),
        ("supervised baseline", optimum.labeled_only, style.ORANGE),
    ):
        ax.axhline(fit.error, color=color, linewidth=0.9, label=f"{label}  {fit.error:.4f}")
    style.draw_lowest(ax, optimum.problem)
    style.errors_axis(ax)
    style.steps_axis((ax,), optimum.problem.steps)


def draw_recipe(ax: Axes, optimum: Optimum) -> None:
    """Draw the free hyperparameters at every step."""
    ax.set_title("recipe along the run")
    steps = optimum.problem.steps
    t = np.arange(1, steps + 1)
    written = optimum.recipe.at_steps(steps)
    free = {*optimum.bounds, *(("sharpness",) if "annealing" in optimum.bounds else ())}
    drawn = {name: getattr(written, name) for name in SHOWN if name in free}
    for name, values in drawn.items():
        word, color = SHOWN[name]
        ax.plot(t, values, color=color, label=f"{word} ${PARAMETERS[name].symbol}$")
    if drawn and all((values > 0).all() for values in drawn.values()):
        style.logarithmic(ax)
    style.steps_axis((ax,), steps)


def draw_search(ax: Axes, optimum: Optimum) -> None:
    """Draw the best error so far minus the final one, against the number of solver runs."""
    ax.set_title("search: excess over the best")
    solves = [point.solves for point in optimum.path]
    excess = np.array([point.error for point in optimum.path]) - optimum.error
    ax.plot(
        solves, np.maximum(excess, 1e-16), color=style.BLACK, drawstyle="steps-post", marker="o"
    )
    style.logarithmic(ax)
    ax.set_ylim(bottom=1e-14)
    ax.set_xlabel("runs of the solver")
    ax.axvline(optimum.solves, color=style.GREY, linewidth=0.7)


PANELS = {"error": draw_error, "recipe": draw_recipe, "search": draw_search}
