"""Elements of the figures of the page: colours, lines, marks and panels as plotly dictionaries.

Plain dictionaries are used because plotly's own objects validate every attribute, which takes
longer than solving the run. Colours are those of Okabe and Ito, each with one meaning on the whole
page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..plots.style import BLUE

DARK_BLUE = "#4DA3DD"

GAP = 0.06
"""Space between two panels, as a fraction of the width."""

Figure = dict[str, Any]
Trace = dict[str, Any]


class Theme:
    """The look of a page: its colours (dark or light), its font size in pixels, and whether it is
    narrow.
    """

    def __init__(self, dark: bool = False, size: float = 14.0, narrow: bool = False):
        self.ink = "#E8E8E8" if dark else "#222222"
        self.grid = "#3A3F45" if dark else "#E4E4E4"
        self.faint = "#9AA0A6" if dark else "#8A8A8A"
        self.run = DARK_BLUE if dark else BLUE
        self.paper = "#16191d" if dark else "#ffffff"
        self.size = size
        self.narrow = narrow


class Panel(NamedTuple):
    """Axis titles of a panel, further plotly options of its axes, and its relative width."""

    x_title: str
    y_title: str
    y: dict[str, Any] | None = None
    x: dict[str, Any] | None = None
    width: float = 1.0


def line(x: Any, y: Any, name: str, color: str, **more: Any) -> Trace:
    """Return the trace of a curve; `more` has further plotly options."""
    style = {"color": color, "width": more.pop("width", 2.5), "dash": more.pop("dash", "solid")}
    return {
        "type": "scatter", "mode": more.pop("mode", "lines"), "x": listed(x), "y": listed(y),
        "name": name, "line": style, **more,
    }  # fmt: skip


def mark(x: Any, y: Any, name: str, color: str, symbol: str, size: int) -> Trace:
    """Return the trace of one highlighted point."""
    style = {"color": color, "symbol": symbol, "size": size, "line": {"width": 2, "color": color}}
    return line([x], [y], name, color, mode="markers", marker=style)


def axes_of(panel: int) -> dict[str, str]:
    """Return the plotly names of the axes of panel 0, 1, ..."""
    suffix = "" if panel == 0 else str(panel + 1)
    return {"xaxis": "x" + suffix, "yaxis": "y" + suffix}


def figure(theme: Theme, traces: Sequence[Trace], *panels: Panel) -> Figure:
    """Return a figure of panels side by side. The title of a vertical axis is written horizontally
    above it, where it is easier to read.
    """
    small = 0.85 * theme.size
    layout: Figure = {
        "paper_bgcolor": theme.paper,
        "plot_bgcolor": theme.paper,
        "font": {"color": theme.ink, "size": theme.size, "family": "system-ui, sans-serif"},
        "margin": {"l": 3.4 * theme.size, "r": theme.size, "t": 2.2 * theme.size, "b": 0},
        "uirevision": "keep",
        "hovermode": "closest",
        "legend": {
            "orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0.0, "x": 0.0,
            "font": {"size": small}, "bgcolor": "rgba(0,0,0,0)",
        },
        "annotations": [],
    }  # fmt: skip
    if theme.narrow:  # entries in two columns; left of the paper plotly would halve their width
        layout["legend"] |= {"entrywidth": 0.49, "entrywidthmode": "fraction", "xref": "container"}
    whole, left = sum(panel.width for panel in panels), 0.0
    for i, panel in enumerate(panels):
        right = left + panel.width / whole
        gap = 0.0 if len(panels) == 1 else GAP
        _add_panel(layout, theme, panel, i, (left + (gap if i else 0.0), right - gap / 3))
        left = right
    return {"data": list(traces), "layout": layout}


def _add_panel(
    layout: Figure, theme: Theme, panel: Panel, place: int, ends: tuple[float, float]
) -> None:
    """Add the axes of panel number `place`; `ends` are fractions of the width."""
    axis = {"gridcolor": theme.grid, "linecolor": theme.grid, "zeroline": False}
    suffix = "" if place == 0 else str(place + 1)
    layout["xaxis" + suffix] = axis | {
        "title": {
            "text": panel.x_title,
            "standoff": 0.6 * theme.size,
            "font": {"size": theme.size},
        },
        "domain": list(ends),
        "anchor": "y" + suffix,
        "automargin": True,
        **(panel.x or {}),
    }
    layout["yaxis" + suffix] = axis | {
        "anchor": "x" + suffix, "exponentformat": "power", "automargin": True,
        **(panel.y or {}),
    }  # fmt: skip
    layout["annotations"].append(
        {
            "text": panel.y_title, "showarrow": False, "xref": "paper", "yref": "paper",
            "x": ends[0], "y": 1.0, "xanchor": "left", "yanchor": "bottom",
            "yshift": 0.2 * theme.size,
        }
    )  # fmt: skip


def listed(values: Any) -> list[float | None]:
    """Return numbers as a list for JSON; non-finite values become None and are not drawn."""
    array: Array = np.asarray(values, dtype=float)
    return [value if math.isfinite(value) else None for value in array.tolist()]
