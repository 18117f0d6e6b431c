"""New figures. One shows itself in a notebook, also where pyplot was never imported."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from ..errors import InvalidInput, nearest
from .style import entries, styled

__all__ = ["Picture", "new_axes", "new_picture", "one_panel", "whole_figure"]


class Picture(Figure):
    """A matplotlib figure that a notebook shows without any set-up."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


def new_picture(width: float, height: float, dpi: int = 150) -> Picture:
    """An empty figure of so many inches, laid out so that nothing overlaps."""
    return Picture(figsize=(width, height), dpi=dpi, layout="constrained")


def new_axes(ax: Axes | None, width: float = 4.4, height: float = 3.2) -> Axes:
    """The axes to draw one panel on: those of the caller, or new ones."""
    if ax is None:
        return new_picture(width, height).subplots()
    if not isinstance(ax, Axes):
        raise InvalidInput("ax", ax, "matplotlib axes are accepted, or None for new ones")
    return ax


def whole_figure(canvas: Figure | SubFigure | Axes) -> Figure:
    """The figure something was drawn on."""
    figure = canvas.get_figure(root=True) if isinstance(canvas, Axes) else canvas.figure
    assert isinstance(figure, Figure)
    return figure


def one_panel(
    panels: Mapping[str, Callable[[Axes], None]], panel: str | None, ax: Axes | None
) -> Figure:
    """Draw one of the panels of a picture, the first unless asked otherwise, with a legend of its
    own.
    """
    name = next(iter(panels)) if panel is None else panel
    if name not in panels:
        raise InvalidInput("panel", name, nearest(str(name), panels))
    with styled():
        one = new_axes(ax)
        panels[name](one)
        if entries(one) and one.get_legend() is None:
            one.legend()
    return whole_figure(one)
