"""A solved run in four panels: error with the Bayes errors, direction, size, bias."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .canvas import Layout, draw_panels
from .titles import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..arrays import Array
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
    draws: dict[str, Callable[..., None]] = {
        "error": partial(draw_error, limits=limits),
        "cosine": draw_cosine,
        "size": draw_size,
        "bias": draw_bias,
    }
    each = {name: partial(_panel, draw=draw) for name, draw in draws.items()}
    layout = Layout(2, 2, 7.2, 6.0, 4, title=_title(trajectory))
    return draw_panels(each, layout, panel, ax, figure, run=trajectory)


def _panel(ax: Axes, run: Trajectory, draw: Callable[[Axes, Trajectory], None]) -> None:
    """Draw one panel with its axis of steps; shade the steps after a collapse or a failure."""
    draw(ax, run)
    style.steps_axis((ax,), run.problem.steps)
    first = run.collapsed_at if run.failure is None else run.failure.step
    if first is not None:
        ax.axvspan(first - 0.5, ax.get_xlim()[1], color=style.GREY, alpha=0.15, linewidth=0)
        ax.axvline(first - 0.5, color=style.GREY, linewidth=0.9, linestyle=(0, (2, 2)))


def _line(
    ax: Axes, run: Trajectory, values: Array, color: str, begin: int = 0, **look: Any
) -> None:
    """Draw a quantity against t, from step `begin` on."""
    marker = "o" if run.problem.steps <= style.MANY_STEPS else ""
    ax.plot(run.t[begin:], values[begin:], color=color, marker=marker, **look)


def draw_error(ax: Axes, run: Trajectory, limits: bool = True) -> None:
    """Draw the error, dotted after a collapse, with the Bayes errors."""
    ax.set_title(r"generalisation error  $\epsilon_g$")
    _line(ax, run, np.where(np.isfinite(run.m), run.error, np.nan), style.BLUE)
    if run.collapsed_at is not None:
        _line(ax, run, run.error, style.BLUE, run.collapsed_at, linestyle="dotted", mfc="w")
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
    _line(ax, run, run.q, style.ORANGE, label="$q$")
    _line(ax, run, run.m, style.PURPLE, label="$m$")
    shown = np.concatenate([run.q, run.m])
    shown = shown[np.isfinite(shown)]
    if shown.min() > 0 and shown.max() > 100 * shown.min():
        style.logarithmic(ax)


def draw_bias(ax: Axes, run: Trajectory) -> None:
    """Draw the bias, and the bias in units of the norm."""
    ax.set_title("bias")
    ax.axhline(0, color=style.GREY, linewidth=0.7)
    _line(ax, run, run.bias, style.BLACK, label="$B$")
    _line(ax, run, run.bias_to_norm, style.SKY, label=r"$B/\sqrt{q}$")


def _title(run: Trajectory) -> str:
    """Return problem and recipe in symbols, and why the run ended early, if it did."""
    problem = run.problem
    values = problem.to_dict() | run.recipe.to_dict()
    lines = [settings({n: value for n, value in values.items() if n not in ("steps", "test")})]
    sphere = problem.clusters is None
    if not sphere:
        lines.append(f"clusters of {_shape(problem.clusters)}")
    tested = problem.test_mixture
    trained = (problem.rho, problem.delta if sphere else problem.clusters)
    if (tested.rho, tested.delta if sphere else problem.test_clusters) != trained:
        clusters = rf"$\Delta={tested.delta:g}$" if sphere else _shape(problem.test_clusters)
        lines.append(rf"error on $\rho={tested.rho:g}$,  {clusters}")
    if run.failure is not None:
        lines.append(f"shaded: step {run.failure.step} could not be solved")
    elif run.collapsed_at is not None:
        lines.append(f"shaded: collapsed at step {run.collapsed_at}, pseudo-labels of one class")
    return "\n".join(lines)


def _shape(clusters: Any) -> str:
    """Describe clusters in a few words."""
    return f"{clusters.features} features, separation {clusters.separation:.3g}"
