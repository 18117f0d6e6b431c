"""An optimum in three panels: the run with its limits, what is free along it, how the search
went.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..parameters import PARAMETERS
from .style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    draw_best_linear,
    draw_limits,
    entries,
    errors_axis,
    legend_under,
    logarithmic,
    steps_axis,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..tuning.optimum import Optimum

COLORS = {"lambda_u": YELLOW, "threshold": GREEN, "sharpness": SKY}


def plot_optimum(optimum: Optimum, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the best run, its hyperparameters at every step, and the errors the search went through.

    Arguments:
        optimum: what `optimize` returned.
        panel: draw one panel only: "error", "recipe" or "search".
        ax: axes for that panel (the error if `panel` is None); by default new ones.

    >>> from selftrain import Problem, optimize
    >>> problem = Problem(alpha_l=0.5, alpha_u=2, rho=0.5, delta=0.6, steps=2)
    >>> len(plot_optimum(optimize(problem, over=("lambda_u",), starts=1)).axes)
    3
    """
    from .canvas import new_picture, one_panel

    if panel is not None or ax is not None:
        draws = {name: partial(draw, optimum=optimum) for name, draw in PANELS.items()}
        return one_panel(draws, panel, ax)
    with styled():
        canvas = new_picture(9.6, 3.8)
        run, values, search = canvas.subplots(1, 3)
        draw_error(run, optimum)
        draw_recipe(values, optimum)
        draw_search(search, optimum)
        legend_under(canvas, entries(run, values), 4)
    return canvas


def draw_error(ax: Axes, optimum: Optimum) -> None:
    """The run with the best recipe, and what to compare it with."""
    ax.set_title(r"generalisation error  $\epsilon_g$")
    ax.plot(optimum.trajectory.t, optimum.trajectory.error, color=BLUE, label="best recipe")
    for label, fit, color in (
        ("supervised, all labels", optimum.supervised, PURPLE),
        ("supervised, labelled only", optimum.labeled_only, ORANGE),
    ):
        ax.axhline(fit.error, color=color, linewidth=0.9, label=f"{label}  {fit.error:.4f}")
    if optimum.problem.shaped:
        draw_best_linear(ax, optimum.limit)
    else:
        draw_limits(ax, optimum.bayes)
    errors_axis(ax)
    steps_axis((ax,), optimum.problem.steps)


def draw_recipe(ax: Axes, optimum: Optimum) -> None:
    """What the search was free to choose, at every step."""
    ax.set_title("recipe along the run")
    steps = optimum.problem.steps
    t = np.arange(1, steps + 1)
    written = optimum.recipe.at_steps(steps)
    shown = [
        name
        for name in ("lambda_u", "threshold", "sharpness")
        if name in optimum.bounds or (name == "sharpness" and "annealing" in optimum.bounds)
    ]
    for name in shown:
        values = getattr(written, name)
        ax.plot(t, values, color=COLORS[name], label=f"${PARAMETERS[name].symbol}$")
    positive = all((getattr(written, name) > 0).all() for name in shown)
    if shown and positive:
        logarithmic(ax)
    steps_axis((ax,), steps)


def draw_search(ax: Axes, optimum: Optimum) -> None:
    """How far the best error so far was from the final one."""
    ax.set_title("search: excess over the best")
    solves = [point.solves for point in optimum.path]
    excess = np.array([point.error for point in optimum.path]) - optimum.error
    ax.plot(solves, np.maximum(excess, 1e-16), color=BLACK, drawstyle="steps-post", marker="o")
    logarithmic(ax)
    ax.set_ylim(bottom=1e-14)
    ax.set_xlabel("runs of the solver")
    ax.axvline(optimum.solves, color=GREY, linewidth=0.7)


PANELS = {
    "error": draw_error,
    "recipe": draw_recipe,
    "search": draw_search,
}
