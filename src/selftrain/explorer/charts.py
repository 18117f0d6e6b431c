"""The views of the page: figures of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import Trajectory
from ..arrays import Array
from ..plots.plane import Plane, line_ends, plane_of
from ..plots.style import GREEN, ORANGE, PURPLE, SKY
from ..results import ContinuumPath
from .drawing import (
    Figure,
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

CLASSES = ((0, "negative class", ORANGE), (1, "positive class", GREEN))
THREE = (ORANGE, GREEN, PURPLE)
"""Colours of three classes."""

CORNERS = np.array([[math.cos(turn), math.sin(turn)] for turn in np.radians([90, 210, 330])])
"""Unit vectors, at angles of 120 degrees, on which the scores of three classes are projected to a
plane: in the sector around a vector, the score of its class is the largest."""

FEW_STEPS = 40
"""Runs of fewer steps are drawn with a marker at each step."""

LEVELS = {"Bayes, labelled only": ("faint", "dot"), "fully supervised": (GREEN, "dash")}
"""Colour and dashes of reference lines, by name; others are solid, in the colour of the text."""

Points = dict[str, Any] | None
"""Simulated seeds: the number `features`, and for each quantity a row per seed."""


def error(
    theme: Theme,
    run: Trajectory,
    pinned: Trajectory | None,
    levels: dict[str, float],
    simulated: Points,
    t: int,
) -> Figure:
    """Draw the error against the step with reference lines (`levels`, such as the Bayes error), and
    the clusters at step t beside it unless the page is narrow.
    """
    traces, curve = _errors(theme, run, pinned, levels, simulated, t)
    if theme.narrow:
        return figure(theme, traces, curve)
    clusters, panel = _clusters(theme, run, pinned, t, (0, t), 1)
    named = {name for _, name, _ in CLASSES}
    traces += [one | {"showlegend": one["name"] in named} for one in clusters]
    return figure(theme, traces, curve, panel)


def _errors(
    theme: Theme, run: Any, pinned: Any, levels: dict[str, float], simulated: Points, t: int
) -> tuple[list[Trace], Panel]:
    traces = [_level(theme, run.t, value, name) for name, value in levels.items()]
    traces += _curves(theme, run, pinned, "error", t, simulated=simulated)
    best = int(np.nanargmin(run.error))
    traces.append(mark(run.t[best], run.error[best], f"best step, t = {best}", ORANGE, "star", 13))
    return traces, Panel("step t", "error", {"rangemode": "tozero"}, width=1.5)


def _level(theme: Theme, x: Any, value: float, name: str) -> Trace:
    """Draw a horizontal line over the range of x."""
    color, dash = LEVELS.get(name, ("ink", "solid"))
    ends = [float(np.min(x)), float(np.max(x)) or 1.0]
    color = getattr(theme, color, color)
    return line(ends, [value] * 2, name, color, dash=dash, width=1.6, hovertemplate="%{y:.5f}")


def _curves(
    theme: Theme,
    run: Any,
    pinned: Any,
    name: str,
    t: int,
    place: int = 0,
    simulated: Points = None,
) -> list[Trace]:
    """Draw a quantity against the step in panel number `place`: this run with a ring at step t, the
    pinned run, and simulated seeds.
    """
    y = getattr(run, name)
    mode = "lines+markers" if len(run.t) < FEW_STEPS else "lines"
    traces = [line(run.t, y, "this run", theme.run, mode=mode)]
    if pinned is not None:
        other = line(pinned.t, getattr(pinned, name), "pinned run", theme.faint, width=2)
        traces.insert(0, other)
    traces += _simulated(simulated, name, theme)
    ring = mark(run.t[t], y[t], f"step shown, t = {t}", theme.run, "circle-open", 14)
    shown = [trace | {"showlegend": place == 0} for trace in traces]
    return [trace | axes_of(place) for trace in (*shown, ring | {"showlegend": False})]


def direction(
    theme: Theme, run: Trajectory, pinned: Trajectory | None, simulated: Points, t: int
) -> Figure:
    """Draw the cosine with the cluster direction, and the bias in units of the norm."""
    traces = _curves(theme, run, pinned, "cosine", t, 0, simulated)
    traces += _curves(theme, run, pinned, "bias_to_norm", t, 1, simulated)
    best = "best direction, noise as unit" if run.problem.shaped else "cluster direction"
    words = "cosine" if theme.narrow else f"cosine with the {best}"
    return figure(theme, traces, Panel("step t", words), Panel("step t", "bias over norm, B/√q"))


def susceptibility(theme: Theme, run: Any, pinned: Any, t: int) -> Figure:
    """Draw the susceptibility, the response of the weights to a small perturbation."""
    traces = _curves(theme, run, pinned, "chi", t)
    return figure(theme, traces, Panel("step t", "susceptibility χ", {"type": "log"}))


def class_error(
    theme: Theme, run: Any, pinned: Any, levels: dict[str, float], simulated: Points, t: int
) -> Figure:
    """Draw, for three classes, the error, the proportion of predictions of each class (dotted: the
    true proportion), and the scores at step t unless the page is narrow.
    """
    traces, curve = _errors(theme, run, pinned, levels, simulated, t)
    balanced = line(run.t, run.balanced_error, "balanced error", theme.run, dash="dash", width=1.5)
    traces.append(balanced)
    for k, (color, share) in enumerate(zip(THREE, run.proportions, strict=True)):
        at = axes_of(1)
        traces.append(
            line(run.t, run.predicted_shares[:, k], f"class {k}", color, mode="lines+markers") | at
        )
        level = line([0, max(1, run.t[-1])], [share, share], "", color, dash="dot", width=1.5)
        traces.append(level | at | {"showlegend": False, "hoverinfo": "skip"})
    words = "predictions" if theme.narrow else "predicted proportions"
    shares = Panel("step t", words, {"range": [0, 1]})
    if theme.narrow:
        return figure(theme, traces, curve._replace(width=1.0), shares)
    clusters, panel = _scores(theme, run, t, 2)
    traces += [trace | {"showlegend": False} for trace in clusters]
    return figure(theme, traces, curve._replace(width=1.1), shares, panel)


def class_plane(theme: Theme, run: Any, t: int) -> Figure:
    """Draw the scores of new samples of three classes at step t."""
    traces, panel = _scores(theme, run, t, 0)
    return figure(theme, traces, panel)


def _scores(theme: Theme, run: Any, t: int, place: int) -> tuple[list[Trace], Panel]:
    """Draw the distribution of the scores of new samples: samples and an ellipse of one standard
    deviation for each class, and the borders between the sectors in which a class is predicted.
    """
    law = run.test_logits(t)
    unit = math.sqrt(float(np.diagonal(law.covariances, axis1=1, axis2=2).mean()))
    kinds, scores = law.sample(300, seed=0)
    drawn = scores @ CORNERS / unit
    turn = np.linspace(0, 2 * math.pi, 90)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    traces: list[Trace] = []
    for k, color in enumerate(THREE):
        (x, y), marker = drawn[kinds == k].T, {"size": 5, "opacity": 0.5}
        traces.append(line(x, y, f"class {k}", color, mode="markers", marker=marker))
        values, vectors = np.linalg.eigh(CORNERS.T @ law.covariances[k] @ CORNERS)
        spread = vectors * np.sqrt(np.maximum(values, 0.0)) @ circle
        x, y = (law.means[k] @ CORNERS)[:, None] / unit + spread / unit
        traces.append(line(x, y, "", color, width=1.5) | {"showlegend": False})
    ends = np.array([drawn.min(axis=0), drawn.max(axis=0)])
    middle, reach = ends.mean(axis=0), 0.55 * float(np.ptp(ends, axis=0).max())
    far = 3 * (reach + float(np.abs(middle).max()))
    for k, (x, y) in enumerate(CORNERS):
        border = line([0, -far * x], [0, -far * y], "separating lines", theme.ink)
        traces.append(border | {"showlegend": k == 0, "hoverinfo": "skip"})
    panel = _square("in standard deviations", f"scores at step {t}", reach, place, middle)
    return [trace | axes_of(place) for trace in traces], panel


def _square(
    x_title: str, y_title: str, reach: float, place: int, middle: Sequence[float] | Array = (0, 0)
) -> Panel:
    """Return a panel whose axes have the same scale and extend by `reach` from the middle."""
    x, y = ({"range": [at - reach, at + reach], "constrain": "domain"} for at in middle)
    return Panel(x_title, y_title, y, x | {"scaleanchor": axes_of(place)["yaxis"]})


def laws(theme: Theme, run: Trajectory, t: int) -> Figure:
    """Draw the densities of a weight and of the training logits of both classes at step t."""
    mean, deviation = float(run.m[t]), math.sqrt(float(run.v[t]))
    w = np.linspace(mean - 4 * deviation, mean + 4 * deviation, 161)
    weight = line(w, run.weights.density(w, t), "a weight", theme.run)
    return figure(
        theme,
        [weight, *_training_logits(run, t)],
        Panel(f"weight, t = {t}", "density"),
        Panel(f"training logit, t = {t}", "density"),
    )


def shaped_laws(theme: Theme, run: Any, t: int) -> Figure:
    """Draw, for a general covariance, the weight along each principal direction with one standard
    deviation, and the densities of the training logits of both classes.
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
        Panel("direction", f"weight, t = {t}" + ("" if theme.narrow else ", ± one deviation")),
        Panel(f"training logit, t = {t}", "density"),
    )


def _training_logits(run: Trajectory, t: int) -> list[Trace]:
    """Draw the densities of the training logits of both classes, in the second panel."""
    law = run.training_logits(t)
    drawn = law.sample(2000, seed=0).u
    middle, reach = float(np.median(drawn)), 1.2 * float(np.ptp(drawn)) / 2
    u = np.linspace(middle - reach, middle + reach, 241)
    rho = float(run.problem.unlabeled.rho[t - 1] if t else run.problem.rho)
    shares = (1 - rho, rho)
    return [
        line(u, shares[y] * law.density(u, y=y), f"logits, {name}", color, **axes_of(1))
        for y, name, color in CLASSES
    ]


def plane(theme: Theme, run: Trajectory, pinned: Trajectory | None, t: int) -> Figure:
    """Draw the two clusters with the separating lines of some steps up to t."""
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
    """Draw the plane of cluster direction and weights (`plots.plane`) with the lines of some steps,
    in panel number `place`.
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
    placed = [trace | axes_of(place) for trace in traces]
    return placed, _square(across, f"clusters at step {t}", geometry.reach, place)


def _clouds(geometry: Plane, rho: float) -> list[Trace]:
    """Draw samples of both classes, and circles of one standard deviation."""
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
    r"""Draw the path in continuous time, and the steps of the run at their times $\tau$."""
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
    """Draw the error that the theory predicts for a table, and the errors on its rows, one line per
    random draw.
    """
    traces = [line(run.t, run.error, "theory with the covariance of the rows", theme.run)]
    for i, one in enumerate(errors):
        trace = line(run.t, one, "real rows, one draw each", theme.faint, width=1)
        traces.append(trace | {"showlegend": i == 0})
    mean = np.nanmean(errors, axis=0)
    traces.append(line(run.t, mean, "real rows, mean", ORANGE, mode="lines+markers"))
    return figure(theme, traces, Panel("step t", "error", {"rangemode": "tozero"}))


def heat_map(theme: Theme, opened: Map, name: str) -> Figure:
    """Draw a quantity of an opened sweep: a map over two axes, a line over one."""
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


def _simulated(simulated: Points, name: str, theme: Theme) -> list[Trace]:
    """Draw every simulated seed as points, which shows the spread."""
    if simulated is None or name not in simulated:
        return []
    rows = simulated[name]
    x = np.tile(np.arange(rows.shape[1]), rows.shape[0])
    seeds = "1 seed" if len(rows) == 1 else f"{len(rows)} seeds"
    label = f"simulated, N = {simulated['features']}, {seeds}"
    marker = {"size": 6, "color": SKY, "opacity": 0.8, "line": {"width": 0.5, "color": theme.ink}}
    return [line(x, rows.ravel(), label, SKY, mode="markers", marker=marker)]
