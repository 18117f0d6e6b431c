"""A solved run in four panels: error with the Bayes errors, direction, size, bias."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from . import style

if TYPE_CHECKING:
    from collections.abc import Callable

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
    from .canvas import Layout, draw_panels

    draws = PANELS | {"error": partial(draw_error, limits=limits)}
    each = {name: partial(_panel, run=trajectory, draw=draw) for name, draw in draws.items()}
    layout = Layout(2, 2, 7.2, 6.0, 4, title=_title(trajectory))
    return draw_panels(each, layout, panel, ax, figure)


def _panel(ax: Axes, run: Trajectory, draw: Callable[[Axes, Trajectory], None]) -> None:
    """Draw one panel with its axis of steps."""
    draw(ax, run)
    style.steps_axis((ax,), run.problem.steps)
    _mark_end(ax, run)


def _line(ax: Axes, run: Trajectory, values: Array, color: str, label: str = "") -> None:
    marker = "o" if run.problem.steps <= style.MANY_STEPS else ""
    ax.plot(run.t, values, color=color, marker=marker, label=label or None)


def draw_error(ax: Axes, run: Trajectory, limits: bool = True) -> None:
    """Draw the error, dotted after a collapse, with the Bayes errors."""
    ax.set_title(r"generalisation error  $\epsilon_g$")
    end = run.collapsed_at
    _line(ax, run, np.where(np.isfinite(run.m), run.error, np.nan), style.BLUE)
    if end is not None:
        hollow = "o" if run.problem.steps <= style.MANY_STEPS else ""
        ax.plot(
            run.t[end:],
            run.error[end:],
            color=style.BLUE,
            linestyle="dotted",
            marker=hollow,
            mfc="w",
        )
    if limits:
        style.draw_lowest(ax, run.problem)
    style.errors_axis(ax)


def draw_cosine(ax: Axes, run: Trajectory) -> None:
    """Draw the cosine with the best direction."""
    ax.set_title("cosine with the best direction")
    _line(ax, run, run.cosine, style.GREEN)


def draw_size(ax: Axes, run: Trajectory) -> None:
    """Draw the squared norm and the overlap with the cluster direction."""
    ax.set_title("norm and overlap")
    _line(ax, run, run.q, style.ORANGE, "$q$")
    _line(ax, run, run.m, style.PURPLE, "$m$")
    shown = np.concatenate([run.q, run.m])
    shown = shown[np.isfinite(shown)]
    if shown.min() > 0 and shown.max() > 100 * shown.min():
        style.logarithmic(ax)


def draw_bias(ax: Axes, run: Trajectory) -> None:
    """Draw the bias, and the bias in units of the norm."""
    ax.set_title("bias")
    ax.axhline(0, color=style.GREY, linewidth=0.7)
    _line(ax, run, run.bias, style.BLACK, "$B$")
    _line(ax, run, run.bias_to_norm, style.SKY, r"$B/\sqrt{q}$")


PANELS: dict[str, Callable[..., None]] = {
    "error": draw_error,
    "cosine": draw_cosine,
    "size": draw_size,
    "bias": draw_bias,
}


def _mark_end(ax: Axes, run: Trajectory) -> None:
    """Shade the steps after a collapse or a failure; the title says which it is."""
    first = run.collapsed_at if run.failure is None else run.failure.step
    if first is not None:
        ax.axvspan(first - 0.5, ax.get_xlim()[1], color=style.GREY, alpha=0.15, linewidth=0)
        ax.axvline(first - 0.5, color=style.GREY, linewidth=0.9, linestyle=(0, (2, 2)))


def _title(run: Trajectory) -> str:
    """Return problem and recipe in symbols, and in words how the run ended early."""
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
    sphere = problem.clusters is None
    clusters = rf"$\Delta={tested.delta:g}$" if sphere else _shape(problem.test_clusters)
    trained = (problem.rho, problem.delta if sphere else problem.clusters)
    if (tested.rho, tested.delta if sphere else problem.test_clusters) != trained:
        lines.append(rf"error on $\rho={tested.rho:g}$,  {clusters}")
    if run.failure is not None:
        lines.append(f"shaded: step {run.failure.step} could not be solved")
    elif run.collapsed_at is not None:
        lines.append(f"shaded: collapsed at step {run.collapsed_at}, pseudo-labels of one class")
    return "\n".join(lines)


def _shape(clusters: Clusters) -> str:
    """Describe clusters in a few words."""
    return f"{clusters.features} features, separation {clusters.separation:.3g}"


def _value(value: float | tuple[float, ...]) -> str:
    """Return a number, or the ends of a schedule."""
    if isinstance(value, tuple):
        return rf"{_value(value[0])}\ldots {_value(value[-1])}" if value else r"\emptyset"
    return r"\infty" if value == np.inf else f"{value:g}"
