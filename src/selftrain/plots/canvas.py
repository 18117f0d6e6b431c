"""Figures that a notebook shows without pyplot, and figures made of several panels."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ..errors import InvalidInput, nearest
from .style import entries, legend_under, styled


class Picture(Figure):
    """A matplotlib figure that a notebook shows without any set-up."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


def new_picture(width: float, height: float, dpi: int = 150) -> Picture:
    """Return an empty figure of this size in inches, with a layout in which nothing overlaps."""
    return Picture(figsize=(width, height), dpi=dpi, layout="constrained")


def new_axes(ax: Axes | None, width: float = 4.4, height: float = 3.2) -> Axes:
    """Return the axes to draw one panel on: those of the caller, or new ones."""
    if ax is None:
        return new_picture(width, height).subplots()
    if not isinstance(ax, Axes):
        raise InvalidInput("ax", ax, "must be matplotlib axes, or None for new ones")
    return ax


def whole_figure(canvas: Figure | SubFigure | Axes) -> Figure:
    """Return the whole figure to which axes or a part of a figure belong."""
    figure = canvas.get_figure(root=True) if isinstance(canvas, Axes) else canvas.figure
    assert isinstance(figure, Figure)
    return figure


class Layout(NamedTuple):
    """The arrangement of the panels of a figure.

    Attributes:
        rows, columns: numbers of rows and columns of panels.
        width, height: in inches.
        legend: number of columns of the legend under the panels; 0: no legend.
        legend_of: names of the panels whose entries are in the legend; default: all.
        title: above the panels.
    """

    rows: int
    columns: int
    width: float
    height: float
    legend: int = 3
    legend_of: tuple[str, ...] = ()
    title: str = ""


def draw_panels(
    panels: Mapping[str, Callable[..., None]],
    layout: Layout,
    panel: str | None = None,
    ax: Axes | None = None,
    figure: Figure | SubFigure | None = None,
    **given: Any,
) -> Figure:
    """Draw all panels with a legend under them, or one panel with a legend on its axes.

    Arguments:
        panels: functions that draw on axes, by name.
        panel: the one panel to draw; the first if only `ax` is given.
        ax: axes for that panel; by default new ones.
        figure: an empty figure, or a part of one, for all panels; by default a new one.
        given: arguments of all functions besides their axes.
    """
    with styled():
        if panel is not None or ax is not None:
            name = next(iter(panels)) if panel is None else panel
            if name not in panels:
                raise InvalidInput("panel", name, nearest(str(name), panels))
            one = new_axes(ax)
            panels[name](one, **given)
            drawn_on = whole_figure(one)
            if entries(one) and one.get_legend() is None:
                if ax is None:
                    legend_under(drawn_on, entries(one), 2)
                else:
                    one.legend()
            return drawn_on
        canvas = figure or new_picture(layout.width, layout.height)
        places = canvas.subplots(layout.rows, layout.columns, squeeze=False).flat
        drawn = dict(zip(panels, places, strict=True))
        for name, place in drawn.items():
            panels[name](place, **given)
        if layout.legend:
            named = layout.legend_of or tuple(panels)
            legend_under(canvas, entries(*(drawn[name] for name in named)), layout.legend)
        if layout.title:
            canvas.suptitle(layout.title, fontsize=9)
    return whole_figure(canvas)
