"""A solved run in four panels: error with the limits no method can beat, direction, size, bias."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MANY_STEPS,
    ORANGE,
    PURPLE,
    SKY,
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
    from collections.abc import Callable, Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..arrays import Array
    from ..mixture.clusters import Clusters
    from ..theory.trajectory import Trajectory


def plot_trajectory(
    trajectory: Trajectory,
    *,
    panel: str | None = None,
    ax: Axes | None = None,
    limits: bool = True,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw error, cosine, norm and bias of a run against t.

    Arguments:
        trajectory: what `solve` returned.
        panel: draw one panel only: "error", "cosine", "size" or "bias".
        ax: axes for that panel (the error if `panel` is None); by default new ones.
        limits: draw the Bayes errors of the problem as reference lines.
        figure: an empty figure, or a part of one, to draw on; by default a new one.

    Returns:
        The figure; `figure.savefig(path)` writes it.

    >>> from selftrain import Problem, Recipe, solve
    >>> run = solve(Problem(alpha_l=0.5, alpha_u=2, rho=0.4, delta=0.6, steps=4), Recipe())
    >>> len(plot_trajectory(run).axes)
    4
    """
    from .canvas import new_picture, one_panel, whole_figure

    if panel is not None or ax is not None:
        draws = PANELS | {"error": partial(draw_error, limits=limits)}
        each = {name: partial(_panel, run=trajectory, draw=draw) for name, draw in draws.items()}
        return one_panel(each, panel, ax)
    with styled():
        canvas = figure or new_picture(7.2, 6.0)
        panels = canvas.subplots(2, 2)
        draw_error(panels[0, 0], trajectory, limits)
        draw_cosine(panels[0, 1], trajectory)
        draw_size(panels[1, 0], trajectory)
        draw_bias(panels[1, 1], trajectory)
        steps_axis(panels.flat, trajectory.problem.steps)
        _mark_end(panels.flat, trajectory)
        legend_under(canvas, entries(*panels.flat), 4)
        canvas.suptitle(_title(trajectory), fontsize=9)
    return whole_figure(canvas)


def _panel(ax: Axes, run: Trajectory, draw: Callable[[Axes, Trajectory], None]) -> None:
    """One panel with its axis of steps."""
    draw(ax, run)
    steps_axis((ax,), run.problem.steps)
    _mark_end((ax,), run)


def _line(ax: Axes, run: Trajectory, values: Array, color: str, label: str = "") -> None:
    marker = "o" if run.problem.steps <= MANY_STEPS else ""
    ax.plot(run.t, values, color=color, marker=marker, label=label or None)


def draw_error(ax: Axes, run: Trajectory, limits: bool = True) -> None:
    """The error, dotted after a collapse, with the Bayes limits."""
    ax.set_title(r"generalisation error  $\epsilon_g$")
    end = run.collapsed_at
    _line(ax, run, np.where(np.isfinite(run.m), run.error, np.nan), BLUE)
    if end is not None:
        hollow = "o" if run.problem.steps <= MANY_STEPS else ""
        ax.plot(
            run.t[end:], run.error[end:], color=BLUE, linestyle="dotted", marker=hollow, mfc="w"
        )
    if limits and run.problem.shaped:
        from ..theory.bayes import best_linear_error

        draw_best_linear(ax, best_linear_error(run.problem))
    elif limits:
        from ..theory.bayes import bayes_error

        draw_limits(ax, bayes_error(run.problem))
    errors_axis(ax)


def draw_cosine(ax: Axes, run: Trajectory) -> None:
    """The cosine with the cluster direction, or with the best rule for clusters with a shape."""
    sphere = r"cosine with the cluster direction  $m/\sqrt{q}$"
    ax.set_title("cosine with the best rule" if run.problem.shaped else sphere)
    _line(ax, run, run.cosine, GREEN)


def draw_size(ax: Axes, run: Trajectory) -> None:
    """The squared norm and the overlap with the cluster direction."""
    ax.set_title("norm and overlap")
    _line(ax, run, run.q, ORANGE, "$q$")
    _line(ax, run, run.m, PURPLE, "$m$")
    shown = np.concatenate([run.q, run.m])
    shown = shown[np.isfinite(shown)]
    if shown.min() > 0 and shown.max() > 100 * shown.min():
        logarithmic(ax)


def draw_bias(ax: Axes, run: Trajectory) -> None:
    """The bias, and the bias in units of the norm."""
    ax.set_title("bias")
    ax.axhline(0, color=GREY, linewidth=0.7)
    _line(ax, run, run.bias, BLACK, "$B$")
    _line(ax, run, run.bias_to_norm, SKY, r"$B/\sqrt{q}$")


PANELS: dict[str, Callable[..., None]] = {
    "error": draw_error,
    "cosine": draw_cosine,
    "size": draw_size,
    "bias": draw_bias,
}


def _mark_end(axes: Iterable[Axes], run: Trajectory) -> None:
    """Shade the steps after a collapse or a failure; the title says which it is."""
    first = run.collapsed_at if run.failure is None else run.failure.step
    if first is None:
        return
    for ax in axes:
        ax.axvspan(first - 0.5, ax.get_xlim()[1], color=GREY, alpha=0.15, linewidth=0)
        ax.axvline(first - 0.5, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)))


def _title(run: Trajectory) -> str:
    """Problem and recipe in symbols, and in words how the run ended if not in good order."""
    problem, recipe = run.problem, run.recipe
    first = [
        rf"$\alpha_L={problem.alpha_l:g}$",
        rf"$\alpha_U={_value(problem.alpha_u)}$",
        rf"$\rho={problem.rho:g}$",
        rf"$\Delta={problem.delta:g}$" if problem.clusters is None else _shape(problem.clusters),
    ]
    if problem.rho_u is not None:
        first.append(rf"$\rho_U={_value(problem.rho_u)}$")
    if problem.delta_u is not None:
        first.append(rf"$\Delta_U={_value(problem.delta_u)}$")
    second = [rf"$\lambda_L={recipe.lambda_l:g}$", rf"$\lambda_U={_value(recipe.lambda_u)}$"]
    if recipe.threshold != 0:
        second.append(rf"$\Gamma={_value(recipe.threshold)}$")
    if recipe.sharpness != 1:
        second.append(rf"$\gamma={_value(recipe.sharpness)}$")
    if recipe.annealing != 0:
        second.append(rf"$a={_value(recipe.annealing)}$")
    if recipe.fix_bias:
        second.append("bias fixed")
    lines = [f"{problem.loss_names},  {',  '.join(first)}", ",  ".join(second)]
    tested = problem.test_mixture
    if problem.shaped:
        if (tested.rho, problem.test_clusters) != (problem.rho, problem.clusters):
            lines.append(rf"error on $\rho={tested.rho:g}$,  {_shape(problem.test_clusters)}")
    elif tested != problem.labeled:
        lines.append(rf"error on $\rho={tested.rho:g}$,  $\Delta={tested.delta:g}$")
    if run.failure is not None:
        lines.append(f"shaded: step {run.failure.step} could not be solved")
    elif run.collapsed_at is not None:
        lines.append(f"shaded: collapsed at step {run.collapsed_at}, pseudo-labels of one class")
    return "\n".join(lines)


def _shape(clusters: Clusters) -> str:
    """Clusters in a few words."""
    return f"{clusters.features} features, separation {clusters.separation:.3g}"


def _value(value: float | tuple[float, ...]) -> str:
    """A number, or the ends of a schedule."""
    if isinstance(value, tuple):
        return rf"{_value(value[0])}\ldots {_value(value[-1])}" if value else r"\emptyset"
    return r"\infty" if value == np.inf else f"{value:g}"
