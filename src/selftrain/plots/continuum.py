"""Continuous time: a path with discrete runs in four panels, and several paths side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .canvas import Layout, draw_panels, new_picture
from .titles import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..arrays import Array
    from ..theory.continuum.path import ContinuumPath, Points
    from ..theory.trajectory import Trajectory

_DASHES = (0, (3, 1.5))
BROWN = "#7A4A1E"


def plot_path(
    path: ContinuumPath,
    runs: Sequence[Trajectory] = (),
    *,
    panel: str | None = None,
    ax: Axes | None = None,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    r"""Draw error, squared cosine, size and bias of a path against $\tau$.

    Arguments:
        path: what `continuum` returned.
        runs: discrete runs, drawn dashed at $\tau_t = \sum\lambda_U$ up to the end of the path.
        panel: draw one panel only: "error", "direction", "size" or "bias".
        ax: axes for that panel (the error if `panel` is None); by default new ones.
        figure: an empty figure, or a part of one, to draw on; by default a new one.

    >>> from selftrain import Problem, Recipe, continuum
    >>> path = continuum(Problem(0.5, 2.0, 0.4, 0.6, steps=10, loss="squared"), Recipe())
    >>> len(plot_path(path).axes)
    4
    """
    layout = Layout(2, 2, 7.2, 6.0, legend_of=("error", "size", "bias"), title=_title(path))
    return draw_panels(PANELS, layout, panel, ax, figure, path=path, runs=runs)


def draw_error(ax: Axes, path: ContinuumPath, runs: Sequence[Trajectory]) -> None:
    """Draw the error and mark its smallest value."""
    points, best = _points(path), path.best
    ax.set_title(r"generalisation error  $\epsilon_g$")
    ax.plot(points.tau, points.error, color=style.BLUE, label=r"$\lambda_U \to 0$")
    label = rf"smallest {best.error:.4f} at $\tau={best.tau:.3g}$ ({best.where})"
    ax.plot(best.tau, best.error, "o", color=style.BLUE, mfc="white", label=label)
    _finish(ax, path, runs, lambda run: (run.error,))
    style.errors_axis(ax)


def draw_direction(ax: Axes, path: ContinuumPath, runs: Sequence[Trajectory]) -> None:
    """Draw the squared cosine, and mark the times at which it reaches 1/2 and 0.99."""
    points = _points(path)
    ax.set_title(r"squared cosine  $M = m^2/q$")
    ax.plot(points.tau, points.squared_cosine, color=style.GREEN)
    for reached in (path.half_aligned, path.aligned):
        if reached:
            ax.axvline(reached, color=style.GREY, linewidth=0.9, linestyle=(0, (1, 1.5)))
    _finish(ax, path, runs, lambda run: (run.m**2 / run.q,))
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), 1.02)


def draw_size(ax: Axes, path: ContinuumPath, runs: Sequence[Trajectory]) -> None:
    """Draw the squared norm and the overlap with the cluster direction."""
    points = _points(path)
    ax.set_title("norm and overlap")
    ax.plot(points.tau, points.q, color=style.ORANGE, label="$q$")
    ax.plot(points.tau, points.m, color=style.PURPLE, label="$m$")
    _finish(ax, path, runs, lambda run: (run.q, run.m))
    if points.m.min() > 0 and points.q.max() > 100 * points.q.min():
        style.logarithmic(ax)


def draw_bias(ax: Axes, path: ContinuumPath, runs: Sequence[Trajectory]) -> None:
    """Draw the bias, and the bias in units of the norm."""
    points = _points(path)
    ax.set_title("bias")
    ax.axhline(0, color=style.GREY, linewidth=0.7)
    ax.plot(points.tau, points.bias, color=style.YELLOW, label="$B$")
    ax.plot(points.tau, points.bias_to_norm, color=style.SKY, label=r"$B/\sqrt{q}$")
    _finish(ax, path, runs, lambda run: (run.bias, run.bias_to_norm))


PANELS = {"error": draw_error, "direction": draw_direction, "size": draw_size, "bias": draw_bias}


def _points(path: ContinuumPath) -> Points:
    return path(np.linspace(0.0, path.until, 401))


def _finish(
    ax: Axes,
    path: ContinuumPath,
    runs: Sequence[Trajectory],
    quantities: Callable[[Trajectory], tuple[Array, ...]],
) -> None:
    """Draw discrete runs, dashed, and the axis of time."""
    for run, color in zip(runs, (style.BLACK, style.GREY, BROWN), strict=False):
        ridges = run.recipe.at_steps(run.problem.steps).lambda_u
        times = np.append(0.0, np.cumsum(ridges))
        within = times <= path.until * (1 + 1e-9)
        look: dict[str, Any] = {"color": color, "linestyle": _DASHES, "linewidth": 1}
        for place, values in enumerate(quantities(run)):
            label = None if place else rf"$\lambda_U = {ridges[0]:g}$"
            ax.plot(times[within], values[within], label=label, **look)
    ax.set_xlabel(r"time  $\tau = \lambda_U t$")
    ax.set_xlim(0, path.until)


def plot_paths(paths: Mapping[str, ContinuumPath]) -> Figure:
    """Draw direction, bias over norm and error of several paths, each under its name.

    >>> from selftrain import Problem, Recipe, continuum
    >>> problem = Problem(0.5, 2.0, 0.4, 0.6, steps=10, loss="squared")
    >>> fixed = continuum(problem, Recipe(fix_bias=True))
    >>> len(plot_paths({"trained": continuum(problem, Recipe()), "fixed": fixed}).axes)
    3
    """
    with style.styled():
        figure = new_picture(8.4, 3.2, 160)
        direction, ratio, error = figure.subplots(1, 3)
        for (name, path), color in zip(
            paths.items(), (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE), strict=False
        ):
            points = _points(path)
            direction.plot(points.tau, points.squared_cosine, color=color, label=name)
            ratio.plot(points.tau, np.abs(points.bias_to_norm), color=color)
            error.plot(points.tau, points.error, color=color)
            error.plot(path.best.tau, path.best.error, "o", color=color, mfc="white")
        direction.set_title("squared cosine  $M$")
        ratio.set_title(r"bias over norm  $|B|/\sqrt{q}$")
        error.set_title(r"error  $\epsilon_g$, smallest marked")
        style.legend_under(figure, style.entries(direction), 4)
        ratio.set_ylim(bottom=0)
        style.errors_axis(error)
        for ax in (direction, ratio, error):
            ax.set_xlabel(r"time  $\tau = \lambda_U t$")
    return figure


def plot_annealing(
    paths: Mapping[str, ContinuumPath], doses: Array, excess: Mapping[str, Array]
) -> Figure:
    r"""Draw norm and misalignment of annealed paths, and errors against the dose $a T^2$ (annealing
    times squared number of steps).

    Arguments:
        paths: paths in continuous time, by the names of their curves.
        doses: values of $a T^2$.
        excess: errors at these doses minus the smallest possible error, by the names of the curves.

    >>> from selftrain import Problem, Recipe, continuum
    >>> problem = Problem(0.5, 2.0, 0.4, 0.6, steps=10)
    >>> paths = {"2": continuum(problem, Recipe(0.1, 0.01, annealing=0.02, fix_bias=True))}
    >>> doses = np.array([2.0, 4.0])
    >>> len(plot_annealing(paths, doses, {"limit": np.array([0.03, 0.01])}).axes)
    3
    """
    colors = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.BLACK)
    with style.styled():
        figure = new_picture(8.4, 3.4, 160)
        norm, direction, error = figure.subplots(1, 3)
        for (name, path), color in zip(paths.items(), colors, strict=False):
            points = _points(path)
            norm.plot(points.tau, points.q, color=color, label=rf"$aT^2={name}$")
            direction.plot(points.tau, points.one_minus_squared_cosine, color=color)
        for (name, above), color in zip(excess.items(), colors, strict=False):
            best = int(np.argmin(above))
            error.plot(doses, above, color=color, linestyle=_DASHES, label=name)
            if 0 < best < doses.size - 1:
                error.plot(doses[best], above[best], "o", color=color, mfc="white")
        norm.set_title("squared norm  $q$")
        direction.set_title("misalignment  $1 - M$")
        error.set_title(r"error above the smallest possible")
        for ax in (norm, direction):
            ax.set_xlabel(r"time  $\tau = \lambda_U t$")
        error.set_xlabel("$a T^2$")
        for ax in (norm, direction, error):
            ax.set_yscale("log")
        error.legend(fontsize=6.5)
        style.legend_under(figure, style.entries(norm), 4)
    return figure


def _title(path: ContinuumPath) -> str:
    values = path.problem.to_dict() | path.recipe.to_dict()
    varied = ("steps", "lambda_u", "test")  # continuous time has neither steps nor their ridge
    early = "" if path.failure is None else ", ended early"
    shown = settings({name: value for name, value in values.items() if name not in varied})
    return f"{path.problem.loss_names} in continuous time{early}\n{shown}"
