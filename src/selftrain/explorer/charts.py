"""The views of the page: a run as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import Trajectory
from ..arrays import Array
from ..plots.plane import Plane, line_ends, plane_of
from ..results import ContinuumPath
from .drawing import (
    GREEN,
    ORANGE,
    SKY,
    Figure,
    Level,
    Panel,
    Theme,
    Trace,
    axes_of,
    figure,
    line,
    listed,
    mark,
)
from .opened import Map

__all__ = [
    "continuum",
    "direction",
    "error",
    "heat_map",
    "laws",
    "own_rows",
    "plane",
    "shaped_laws",
    "susceptibility",
]

CLASSES = ((0, "negative class", ORANGE), (1, "positive class", GREEN))

Points = dict[str, Any] | None
"""Simulated seeds: `features`, and a row per seed of each quantity."""


def error(
    theme: Theme,
    run: Trajectory,
    pinned: Trajectory | None,
    levels: Sequence[Level],
    simulated: Points,
    t: int,
) -> Figure:
    """The error against the step, with Bayes error and fully supervised fit; the clusters of the
    step beside it if there is room.
    """
    x = run.t
    traces = [level.trace(theme, x) for level in levels]
    if pinned is not None:
        traces.append(line(pinned.t, pinned.error, "pinned run", theme.faint, width=2))
    traces.append(
        line(x, run.error, "this run", theme.run, mode="lines+markers" if len(x) < 40 else "lines")
    )
    best = int(np.nanargmin(run.error))
    traces.append(mark(x[best], run.error[best], f"best step, t = {best}", ORANGE, "star", 13))
    traces.append(_shown(theme, run, run.error, t))
    traces += _simulated(simulated, "error", theme)
    curve = Panel("step t", "error", {"rangemode": "tozero"}, width=1.5)
    if theme.narrow:
        return figure(theme, traces, curve)
    clusters, panel = _clusters(theme, run, pinned, t, (0, t), 1)
    named = {name for _, name, _ in CLASSES}
    traces += [one | {"showlegend": one["name"] in named} for one in clusters]
    return figure(theme, traces, curve, panel)


def direction(
    theme: Theme, run: Trajectory, pinned: Trajectory | None, simulated: Points, t: int
) -> Figure:
    """The cosine with the cluster direction, and the bias in units of the norm."""
    traces: list[Trace] = []
    for i, name in enumerate(("cosine", "bias_to_norm")):
        more: dict[str, Any] = {"showlegend": i == 0, **axes_of(i)}
        if pinned is not None:
            y = getattr(pinned, name)
            traces.append(line(pinned.t, y, "pinned run", theme.faint, width=2, **more))
        y = getattr(run, name)
        traces.append(line(run.t, y, "this run", theme.run, **more))
        traces.append(_shown(theme, run, y, t) | axes_of(i))
        traces += [trace | more for trace in _simulated(simulated, name, theme)]
    best = "best direction, noise as unit" if run.problem.shaped else "cluster direction"
    return figure(
        theme,
        traces,
        Panel("step t", f"cosine with the {best}"),
        Panel("step t", "bias over norm, B/√q"),
    )


def susceptibility(theme: Theme, run: Trajectory, pinned: Trajectory | None, t: int) -> Figure:
    """How strongly the weights answer to a small push."""
    traces: list[Trace] = []
    if pinned is not None:
        traces.append(line(pinned.t, pinned.chi, "pinned run", theme.faint, width=2))
    traces.append(line(run.t, run.chi, "this run", theme.run))
    traces.append(_shown(theme, run, run.chi, t))
    return figure(theme, traces, Panel("step t", "susceptibility χ", {"type": "log"}))


def laws(theme: Theme, run: Trajectory, t: int) -> Figure:
    """Densities of a weight and of the training logits of both classes at step t."""
    mean, deviation = float(run.m[t]), math.sqrt(float(run.v[t]))
    w = np.linspace(mean - 4 * deviation, mean + 4 * deviation, 161)
    weight = line(w, run.weights.density(w, t), "a weight", theme.run)
    return figure(
        theme,
        [weight, *_training_logits(run, t)],
        Panel(f"weight at step {t}", "density"),
        Panel(f"training logit at step {t}", "density"),
    )


def shaped_laws(theme: Theme, run: Any, t: int) -> Figure:
    """With a general covariance every direction has its own weight: their means with one standard
    deviation, and the training logits of both classes.
    """
    directions = np.eye(run.problem.clusters.features)
    spreads = [math.sqrt(run.weights.along(one).variance[t]) for one in directions]
    weights = line(
        np.arange(1, len(spreads) + 1), run.weights.vector(t), "weights", theme.run, mode="markers",
        error_y={"type": "data", "array": listed(spreads), "thickness": 1.2, "width": 2},
    )  # fmt: skip
    return figure(
        theme,
        [weights, *_training_logits(run, t)],
        Panel("direction of the shape", f"weight at step {t}, mean and one standard deviation"),
        Panel(f"training logit at step {t}", "density"),
    )


def _training_logits(run: Trajectory, t: int) -> list[Trace]:
    """Densities of the training logits of both classes, on the second panel."""
    law = run.training_logits(t)
    drawn = law.sample(2000, seed=0).u
    middle, reach = float(np.median(drawn)), 1.2 * float(np.ptp(drawn)) / 2
    u = np.linspace(middle - reach, middle + reach, 241)
    shares = _shares(float(run.problem.unlabeled.rho[t - 1] if t else run.problem.rho))
    return [
        line(u, shares[y] * law.density(u, y=y), f"logits, {name}", color, **axes_of(1))
        for y, name, color in CLASSES
    ]


def _shares(rho: float) -> tuple[float, float]:
    """Of the negative and the positive class."""
    return 1 - rho, rho


def plane(theme: Theme, run: Trajectory, pinned: Trajectory | None, t: int) -> Figure:
    """The two clusters with the separating lines so far."""
    steps = (0, *range(0, t, max(1, t // 6)), t)
    traces, panel = _clusters(theme, run, pinned, t, steps, 0)
    return figure(theme, traces, panel)


def _clusters(
    theme: Theme,
    run: Trajectory,
    pinned: Trajectory | None,
    t: int,
    steps: Sequence[int],
    place: int,
) -> tuple[list[Trace], Panel]:
    """The plane of cluster direction and weights (`plots.plane`) with the lines of some steps, as
    panel number `place`.
    """
    geometry = plane_of(run)
    traces = _clouds(geometry, run.problem.test_mixture.rho)
    shown = sorted(set(steps))
    for s in shown:
        ends = line_ends(run, s)
        if ends is not None:
            now = s == t
            style = {"width": 4.0 if now else 1.2, "opacity": 1.0 if now else 0.5}
            label = f"separating line, t = {s}" if now else "earlier steps"
            first = s == shown[0] and not now
            trace = line(*ends, label, theme.run, **style)
            traces.append(trace | {"showlegend": now or first, "hoverinfo": "skip"})
    if pinned is not None and pinned.problem == run.problem:
        ends = line_ends(pinned, min(t, pinned.good_steps - 1))
        if ends is not None:
            trace = line(*ends, "separating line, pinned run", theme.faint, width=3)
            traces.append(trace | {"hoverinfo": "skip"})
    across = "along the cluster direction"
    if run.problem.shaped:
        across = "along the best direction, in units of the noise"
    square = {"range": [-geometry.reach, geometry.reach]}
    anchored = square | {"scaleanchor": axes_of(place)["yaxis"], "constrain": "domain"}
    placed = [trace | axes_of(place) for trace in traces]
    title = f"clusters at step {t}"
    return placed, Panel(across, title, square | {"constrain": "domain"}, anchored)


def _clouds(geometry: Plane, rho: float) -> list[Trace]:
    """Samples of both classes, and circles of one standard deviation."""
    traces: list[Trace] = []
    turn = np.linspace(0, 2 * math.pi, 90)
    for (y, name, color), cloud in zip(CLASSES, geometry.clouds(rho), strict=True):
        marker = {"size": 5, "opacity": 0.5}
        traces.append(line(cloud[:, 0], cloud[:, 1], name, color, mode="markers", marker=marker))
        place = geometry.centre if y else -geometry.centre
        x, height = place + geometry.deviation * np.cos(turn), geometry.deviation * np.sin(turn)
        circle = line(x, height, "", color, width=1.5)
        traces.append(circle | {"showlegend": False, "hoverinfo": "skip"})
    return traces


def continuum(theme: Theme, path: ContinuumPath, run: Trajectory) -> Figure:
    """The path in continuous time over the steps of the run at their times."""
    ridges = run.recipe.at_steps(run.problem.steps).lambda_u
    tau = np.append(0.0, np.cumsum(ridges))
    times = np.linspace(0.0, float(path.tau[-1]), 201)
    points = path(times)
    traces: list[Trace] = []
    for i, name in enumerate(("error", "cosine")):
        more: dict[str, Any] = {"showlegend": i == 0, **axes_of(i)}
        marker = {"size": 7, "color": theme.run}
        traces.append(
            line(
                tau, getattr(run, name), "steps of the run", theme.run, mode="markers",
                marker=marker, **more,
            )
        )  # fmt: skip
        traces.append(
            line(times, getattr(points, name), "continuous time", theme.ink, width=2, **more)
        )
    time = "time τ = λ<sub>U</sub> t"
    return figure(theme, traces, Panel(time, "error"), Panel(time, "cosine"))


def own_rows(theme: Theme, run: Trajectory, errors: Array) -> Figure:
    """The error that the theory predicts for a table, and that of real rows, one line per draw."""
    traces = [line(run.t, run.error, "theory with the shape of the rows", theme.run)]
    for i, one in enumerate(errors):
        trace = line(run.t, one, "real rows, one draw each", theme.faint, width=1)
        traces.append(trace | {"showlegend": i == 0})
    mean = np.nanmean(errors, axis=0)
    traces.append(line(run.t, mean, "real rows, mean", ORANGE, mode="lines+markers"))
    return figure(theme, traces, Panel("step t", "error", {"rangemode": "tozero"}))


def heat_map(theme: Theme, opened: Map, name: str) -> Figure:
    """A quantity of an opened sweep: a map over two controls, a line over one."""
    x = opened.values[0]
    array = opened.quantities[name]
    if len(opened.axes) == 1:
        trace = line(x, array, name, theme.run, mode="lines+markers")
        return figure(theme, [trace], Panel(opened.axes[0], name))
    trace = {
        "type": "heatmap",
        "x": x,
        "y": opened.values[1],
        "z": [listed(row) for row in array.T],
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": name}},
        "hovertemplate": (
            f"{opened.axes[0]} %{{x:.4g}}, {opened.axes[1]} %{{y:.4g}}: %{{z:.5g}}<extra></extra>"
        ),
    }
    return figure(theme, [trace], Panel(opened.axes[0], opened.axes[1]))


def _shown(theme: Theme, run: Trajectory, values: Array, t: int) -> Trace:
    """The ring at the step that is shown."""
    ring = mark(run.t[t], values[t], f"step shown, t = {t}", theme.run, "circle-open", 14)
    return ring | {"showlegend": False}


def _simulated(simulated: Points, name: str, theme: Theme) -> list[Trace]:
    """Every simulated seed as points, so that the spread is seen."""
    if simulated is None:
        return []
    rows = simulated[name]
    x = np.tile(np.arange(rows.shape[1]), rows.shape[0])
    seeds = "1 seed" if len(rows) == 1 else f"{len(rows)} seeds"
    label = f"simulated, N = {simulated['features']}, {seeds}"
    marker = {"size": 6, "color": SKY, "opacity": 0.8, "line": {"width": 0.5, "color": theme.ink}}
    return [line(x, rows.ravel(), label, SKY, mode="markers", marker=marker)]
