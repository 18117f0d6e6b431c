"""Pictures of a run as plain plotly dictionaries, in light and dark.

Plain dictionaries, not plotly's objects: checking every attribute would take longer than solving
the run. Colours are those of Okabe and Ito, one meaning each on the whole page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ContinuumPath, Trajectory
from ..arrays import Array
from .opened import Map

__all__ = [
    "Theme",
    "continuum",
    "direction",
    "error",
    "heat_map",
    "laws",
    "own_rows",
    "plane",
    "susceptibility",
]

BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
DARK_BLUE = "#4DA3DD"

Figure = dict[str, Any]
Trace = dict[str, Any]


class Theme:
    """Colours that depend on whether the page is dark."""

    def __init__(self, dark: bool = False):
        self.ink = "#E8E8E8" if dark else "#222222"
        self.grid = "#3A3F45" if dark else "#E4E4E4"
        self.faint = "#9AA0A6" if dark else "#8A8A8A"
        self.run = DARK_BLUE if dark else BLUE
        self.paper = "#16191d" if dark else "#ffffff"


def line(x: Any, y: Any, name: str, color: str, **more: Any) -> Trace:
    """A curve."""
    style = {"color": color, "width": more.pop("width", 2.5), "dash": more.pop("dash", "solid")}
    return {
        "type": "scatter", "mode": more.pop("mode", "lines"), "x": _list(x), "y": _list(y),
        "name": name, "line": style, **more,
    }  # fmt: skip


def level(x: Any, y: float, name: str, color: str, dash: str, **more: Any) -> Trace:
    """A horizontal line over the range of x."""
    ends = [float(np.min(x)), float(np.max(x)) or 1.0]
    return line(ends, [y, y], name, color, dash=dash, width=1.6, hovertemplate="%{y:.5f}", **more)


def figure(
    theme: Theme, traces: Sequence[Trace], *panels: tuple[str, str, dict[str, Any]]
) -> Figure:
    """Traces on one panel, or on several side by side; a panel is (x title, y title, options of
    y).
    """
    layout: Figure = {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"color": theme.ink, "size": 14, "family": "system-ui, sans-serif"},
        "margin": {"l": 64, "r": 16, "t": 12, "b": 52},
        "uirevision": "keep",
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": -0.26, "yanchor": "top", "x": 0, "font": {"size": 12}},
        "transition": {"duration": 0},
    }
    width = 1.0 / len(panels)
    for i, (x_title, y_title, options) in enumerate(panels):
        suffix = "" if i == 0 else str(i + 1)
        gap = 0.0 if len(panels) == 1 else 0.06
        axis = {"gridcolor": theme.grid, "linecolor": theme.grid, "zeroline": False}
        x_options = options.get("x", {})
        y_options = {key: value for key, value in options.items() if key != "x"}
        layout["xaxis" + suffix] = axis | {
            "title": {"text": x_title},
            "domain": [i * width + (gap if i else 0.0), (i + 1) * width - gap / 3],
            "anchor": "y" + suffix,
            **x_options,
        }
        layout["yaxis" + suffix] = axis | {
            "title": {"text": y_title}, "anchor": "x" + suffix, "exponentformat": "power",
            "automargin": True, **y_options,
        }  # fmt: skip
    return {"data": list(traces), "layout": layout}


def error(
    theme: Theme,
    run: Trajectory,
    pinned: Trajectory | None,
    limits: Any,
    supervised: Any,
    simulated: dict[str, Any] | None,
    t: int,
) -> Figure:
    """Error against the step, with what no method can beat and what every label would give."""
    x = run.t
    traces = [
        level(x, limits.labeled_only, "Bayes, labelled points only", theme.faint, "dot"),
        level(x, supervised.error, "every label given, best ridge", GREEN, "dash"),
        level(x, limits.semi_supervised, "Bayes limit", theme.ink, "solid"),
    ]
    if pinned is not None:
        traces.append(line(pinned.t, pinned.error, "pinned run", theme.faint, width=2))
    traces.append(
        line(x, run.error, "this run", theme.run, mode="lines+markers" if len(x) < 40 else "lines")
    )
    best = int(np.nanargmin(run.error))
    traces.append(_mark(x[best], run.error[best], f"best step, t = {best}", ORANGE, "star", 15))
    traces.append(_mark(x[t], run.error[t], f"step shown, t = {t}", theme.run, "circle-open", 14))
    traces += _simulated(simulated, "error", theme)
    return figure(theme, traces, ("step t", "error", {"rangemode": "tozero"}))


def direction(
    theme: Theme,
    run: Trajectory,
    pinned: Trajectory | None,
    simulated: dict[str, Any] | None,
    t: int,
) -> Figure:
    """The cosine with the cluster direction, and the bias in units of the norm."""
    traces: list[Trace] = []
    for i, name in enumerate(("cosine", "bias_to_norm")):
        axes = {"xaxis": "x" + ("2" if i else ""), "yaxis": "y" + ("2" if i else "")}
        if pinned is not None:
            y = getattr(pinned, name)
            traces.append(
                line(pinned.t, y, "pinned run", theme.faint, width=2, showlegend=i == 0, **axes)
            )
        y = getattr(run, name)
        traces.append(line(run.t, y, "this run", theme.run, showlegend=i == 0, **axes))
        traces.append(
            _mark(run.t[t], y[t], f"step shown, t = {t}", theme.run, "circle-open", 14, i == 0)
            | axes
        )
        traces += [
            trace | axes | {"showlegend": i == 0} for trace in _simulated(simulated, name, theme)
        ]
    cosine, bias = "cosine with the cluster direction", "bias over norm, B/√q"
    return figure(theme, traces, ("step t", cosine, {}), ("step t", bias, {}))


def susceptibility(theme: Theme, run: Trajectory, pinned: Trajectory | None, t: int) -> Figure:
    """How strongly the weights answer to a small push."""
    traces = (
        [] if pinned is None else [line(pinned.t, pinned.chi, "pinned run", theme.faint, width=2)]
    )
    traces.append(line(run.t, run.chi, "this run", theme.run))
    traces.append(_mark(run.t[t], run.chi[t], f"step shown, t = {t}", theme.run, "circle-open", 14))
    return figure(theme, traces, ("step t", "susceptibility χ", {"type": "log", "dtick": 1}))


def laws(theme: Theme, run: Trajectory, t: int) -> Figure:
    """Densities of a weight and of the training logits of both classes at step t."""
    mean, deviation = float(run.m[t]), math.sqrt(float(run.v[t]))
    w = np.linspace(mean - 4 * deviation, mean + 4 * deviation, 161)
    law = run.logits(t)
    drawn = law.sample(2000, seed=0).u
    middle, reach = float(np.median(drawn)), 1.2 * float(np.ptp(drawn)) / 2
    u = np.linspace(middle - reach, middle + reach, 241)
    rho = float(run.problem.rho if t == 0 else run.problem.test_mixture.rho)
    traces = [line(w, run.weights.density(w, t), "a weight", theme.run)]
    for y, name, color in (
        (0, "logits, negative class", ORANGE),
        (1, "logits, positive class", GREEN),
    ):
        density = (rho if y else 1 - rho) * law.density(u, y=y)
        traces.append(line(u, density, name, color, xaxis="x2", yaxis="y2"))
    return figure(
        theme,
        traces,
        (f"weight at step {t}", "density", {}),
        (f"training logit at step {t}", "density", {}),
    )


def plane(theme: Theme, run: Trajectory, t: int) -> Figure:
    """The two clusters in the plane of cluster direction and weights, with the separating lines so
    far.
    """
    root = math.sqrt(run.problem.test_mixture.delta)
    rho = run.problem.test_mixture.rho
    traces: list[Trace] = []
    points = np.random.default_rng(0).standard_normal((400, 2)) * root
    share = round(400 * rho)
    turn = np.linspace(0, 2 * math.pi, 90)
    for sign, cloud, color, name in (
        (1.0, points[:share], GREEN, "positive class"),
        (-1.0, points[share:], ORANGE, "negative class"),
    ):
        traces.append(
            line(
                sign + cloud[:, 0],
                cloud[:, 1],
                name,
                color,
                mode="markers",
                marker={"size": 5, "opacity": 0.5},
            )
        )
        circle = line(sign + root * np.cos(turn), root * np.sin(turn), "", color, width=1.5)
        traces.append(circle | {"showlegend": False, "hoverinfo": "skip"})
    reach = 1 + 3 * root
    shown = sorted({0, *range(0, t, max(1, t // 6)), t})
    for s in shown:
        ends = _separating_line(run, s, reach)
        if ends is not None:
            now = s == t
            style = {"width": 4.0 if now else 1.2, "opacity": 1.0 if now else 0.5}
            label = f"separating line, t = {s}" if now else "earlier steps"
            first = s == shown[0] and not now
            trace = line(*ends, label, theme.run if now else theme.faint, **style)
            traces.append(trace | {"showlegend": now or first, "hoverinfo": "skip"})
    square = {"range": [-reach, reach]}
    return figure(
        theme,
        traces,
        (
            "along the cluster direction",
            "across, towards the weights",
            square | {"x": square | {"scaleanchor": "y"}},
        ),
    )


def _separating_line(
    run: Trajectory, t: int, reach: float
) -> tuple[list[float], list[float]] | None:
    """Two ends of the line cos X + sin Y + B/√q = 0 inside the picture, or None if it is
    outside.
    """
    cosine = float(run.cosine[t])
    sine = math.sqrt(max(0.0, 1 - cosine**2))
    place = float(run.bias_to_norm[t])
    if not math.isfinite(place) or abs(place) > 2 * reach:
        return None
    foot = (-place * cosine, -place * sine)
    far = 3 * reach
    return [foot[0] - far * sine, foot[0] + far * sine], [
        foot[1] + far * cosine,
        foot[1] - far * cosine,
    ]


def continuum(theme: Theme, path: ContinuumPath, run: Trajectory) -> Figure:
    """The path in continuous time, and the steps of the run at their times."""
    ridges = run.recipe.at_steps(run.problem.steps).lambda_u
    tau = np.append(0.0, np.cumsum(ridges))
    times = np.linspace(0.0, float(path.tau[-1]), 201)
    points = path(times)
    traces: list[Trace] = []
    for i, name in enumerate(("error", "cosine")):
        axes = {
            "xaxis": "x" + ("2" if i else ""),
            "yaxis": "y" + ("2" if i else ""),
            "showlegend": i == 0,
        }
        traces.append(
            line(times, getattr(points, name), "continuous time", theme.ink, width=2, **axes)
        )
        traces.append(
            line(tau, getattr(run, name), "steps of the run", theme.run, mode="markers",
                 marker={"size": 7, "color": theme.run}, **axes)
        )  # fmt: skip
    return figure(
        theme,
        traces,
        ("time τ = λ<sub>U</sub> t", "error", {}),
        ("time τ = λ<sub>U</sub> t", "cosine", {}),
    )


def own_rows(theme: Theme, run: Trajectory, errors: Array) -> Figure:
    """The error that the theory predicts for a table, and that of real rows, one line per draw."""
    traces = [line(run.t, run.error, "theory with the shape of the rows", theme.run)]
    for i, one in enumerate(errors):
        trace = line(run.t, one, "real rows, one draw each", theme.faint, width=1)
        traces.append(trace | {"showlegend": i == 0})
    mean = np.nanmean(errors, axis=0)
    traces.append(line(run.t, mean, "real rows, mean", ORANGE, mode="lines+markers"))
    return figure(theme, traces, ("step t", "error", {"rangemode": "tozero"}))


def heat_map(theme: Theme, opened: Map, name: str) -> Figure:
    """A quantity of an opened sweep: a map over two controls, a line over one."""
    x = opened.values[0]
    array = opened.quantities[name]
    if len(opened.axes) == 1:
        trace = line(x, array, name, theme.run, mode="lines+markers")
        return figure(theme, [trace], (opened.axes[0], name, {}))
    trace = {
        "type": "heatmap",
        "x": x,
        "y": opened.values[1],
        "z": [_list(row) for row in array.T],
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": name}},
        "hovertemplate": (
            f"{opened.axes[0]} %{{x:.4g}}, {opened.axes[1]} %{{y:.4g}}: %{{z:.5g}}<extra></extra>"
        ),
    }
    return figure(theme, [trace], (opened.axes[0], opened.axes[1], {}))


def _mark(
    x: Any, y: Any, name: str, color: str, symbol: str, size: int, legend: bool = True
) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": _list([x]),
        "y": _list([y]),
        "name": name,
        "showlegend": legend,
        "marker": {
            "color": color,
            "symbol": symbol,
            "size": size,
            "line": {"width": 2, "color": color},
        },
    }


def _simulated(simulated: dict[str, Any] | None, name: str, theme: Theme) -> list[Trace]:
    """Every simulated seed as points, so that the spread is seen."""
    if not simulated or not simulated.get(name):
        return []
    rows = np.asarray(simulated[name], dtype=float)
    x = np.tile(np.arange(rows.shape[1]), rows.shape[0])
    label = f"simulated, N = {simulated['features']}, {rows.shape[0]} seeds"
    marker = {"size": 6, "color": SKY, "opacity": 0.8, "line": {"width": 0.5, "color": theme.ink}}
    return [line(x, rows.ravel(), label, SKY, mode="markers", marker=marker)]


def _list(values: Any) -> list[float | None]:
    array: Array = np.asarray(values, dtype=float)
    return [value if math.isfinite(value) else None for value in array.tolist()]
