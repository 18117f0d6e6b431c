"""Finite-size runs as points with error bars, the theory as lines, in four panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import InvalidInput, nearest
from .style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
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

    from ..arrays import Array
    from ..problem import Problem
    from ..simulation.ensemble import Ensemble
    from ..theory.trajectory import Trajectory

PANELS = {
    "error": r"generalisation error  $\epsilon_g$",
    "cosine": r"cosine with the cluster direction  $m/\sqrt{q}$",
    "q": r"squared norm  $q$",
    "bias": r"bias  $B$",
}
COLORS = (ORANGE, GREEN, PURPLE, BLUE, BLACK)
MARKERS = "os^Dv"


def plot_ensemble(
    ensembles: Ensemble | Sequence[Ensemble],
    trajectory: Trajectory | None = None,
    *,
    panel: str | None = None,
    ax: Axes | None = None,
    spread: Literal["std", "sem"] = "std",
    limits: bool = True,
) -> Figure:
    """Draw one or several ensembles of the same problem over the theory.

    Arguments:
        ensembles: what `simulate` returned, for one N or for several.
        trajectory: the theory, drawn as lines.
        panel: draw one quantity only: "error", "cosine", "q" or "bias".
        ax: axes for that panel (the error if `panel` is None); by default new ones.
        spread: error bars: standard deviation over seeds, or standard error of the mean.
        limits: draw the Bayes errors of the problem as reference lines.

    >>> from selftrain import Problem, Recipe, simulate
    >>> runs = simulate(Problem(0.5, 2.0, 0.4, 0.5, steps=2), Recipe(), features=100, seeds=3)
    >>> len(plot_ensemble(runs).axes)
    4
    """
    from .canvas import new_axes, new_picture, whole_figure

    drawn = list(ensembles) if isinstance(ensembles, Sequence) else [ensembles]
    with styled():
        if panel is not None or ax is not None:
            one = new_axes(ax)
            draw_quantity(one, drawn, trajectory, panel or "error", spread, limits)
            one.legend()
            return whole_figure(one)
        figure = new_picture(7.2, 6.0)
        axes = list(figure.subplots(2, 2).flat)
        for place, name in zip(axes, PANELS, strict=True):
            draw_quantity(place, drawn, trajectory, name, spread, limits)
        legend_under(figure, entries(axes[1], axes[0]))
        figure.suptitle(_title(drawn, spread), fontsize=9)
    return figure


def draw_quantity(
    ax: Axes,
    ensembles: Sequence[Ensemble],
    trajectory: Trajectory | None,
    name: str,
    spread: str = "std",
    limits: bool = True,
) -> None:
    """One quantity over the steps: the theory as a line, means over seeds with error bars."""
    if name not in PANELS:
        raise InvalidInput("panel", name, nearest(name, PANELS))
    shaped = name == "cosine" and ensembles[0].problem.shaped
    ax.set_title("cosine with the best rule" if shaped else PANELS[name])
    if trajectory is not None:
        ax.plot(trajectory.t, getattr(trajectory, name), color=GREY, label="theory")
    for index, ensemble in enumerate(ensembles):
        _points(ax, ensemble, name, index, len(ensembles), spread)
    if name == "error":
        if limits:
            _draw_limits(ax, ensembles[0].problem)
        errors_axis(ax)
    elif name == "q" and trajectory is not None and _ranges(trajectory.q):
        logarithmic(ax)
    steps_axis((ax,), ensembles[0].problem.steps)


def _draw_limits(ax: Axes, problem: Problem) -> None:
    """What no method, or no linear rule, can beat."""
    if problem.shaped:
        from ..theory.bayes import best_linear_error

        draw_best_linear(ax, best_linear_error(problem))
        return
    from ..theory.bayes import bayes_error

    draw_limits(ax, bayes_error(problem))


def _ranges(values: Array) -> bool:
    """Whether values range over more than two decades."""
    return bool(np.nanmin(values) < 0.01 * np.nanmax(values))


def _points(ax: Axes, ensemble: Ensemble, name: str, index: int, total: int, spread: str) -> None:
    """Means with error bars, side by side when there are several ensembles."""
    offset = 0.12 * (index - (total - 1) / 2)
    bars = ensemble.std(name) if spread == "std" else ensemble.sem(name)
    ax.errorbar(
        ensemble.t + offset,
        ensemble.mean(name),
        np.nan_to_num(bars),
        color=COLORS[index % len(COLORS)],
        marker=MARKERS[index % len(MARKERS)],
        linestyle="none",
        elinewidth=0.8,
        markersize=3,
        label=f"{_kind(ensemble)}  ({len(ensemble.seeds)} seeds)",
    )


def _kind(ensemble: Ensemble) -> str:
    """What the rows of an ensemble are."""
    kinds = {"rows": "real rows", "gaussian": "Gaussian rows"}
    return kinds.get(ensemble.method, f"N = {ensemble.features:,}")


def _title(ensembles: list[Ensemble], spread: str) -> str:
    first = ensembles[0]
    bars = "standard deviation over seeds" if spread == "std" else "standard error of the mean"
    lines = [f"{first.problem.loss_names}, finite-size runs; bars: {bars}"]
    variants = [
        text
        for text, used in (
            ("labelled rows kept", bool(np.any(np.asarray(first.problem.keep_labeled) > 0))),
            ("unlabelled rows used again", first.problem.batches != "fresh"),
        )
        if used
    ]
    if variants:
        lines.append(" and ".join(variants))
    collapsed = sum(int((one.collapsed_at >= 0).sum()) for one in ensembles)
    if collapsed:
        lines.append(f"{collapsed} seeds collapsed to one class")
    failed = sum(len(one.failures) for one in ensembles)
    if failed:
        lines.append(f"{failed} seeds failed and are left out from there on")
    return "\n".join(lines)
