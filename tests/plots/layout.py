"""What can be wrong with a picture: text that overlaps or leaves the canvas, legends over curves,
offsets on axes.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

TOUCH = 1.0
"""Boxes of text have a margin; so much of an overlap, in pixels, is none."""


def faults(figure: Figure) -> list[str]:
    """All faults of a drawn figure, in words; none for a good one."""
    FigureCanvasAgg(figure).draw()
    texts = _texts(figure)
    found = [f"{name} leaves the canvas" for name, box in texts if _outside(figure, box)]
    for (first, one), (second, other) in combinations(texts, 2):
        if _overlap(one, other):
            found.append(f"{first} overlaps {second}")
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_offset_text().get_text():
                found.append(f"offset {axis.get_offset_text().get_text()!r}")
    return found + _legends(figure) + _unseen(figure)


def curves(ax: Any) -> int:
    """How many curves a panel has: lines of several points in the coordinates of its data."""
    return sum(
        line.get_transform() == ax.transData and np.isfinite(line.get_xydata()).all(1).sum() > 1
        for line in ax.get_lines()
    )


def _texts(figure: Figure) -> list[tuple[str, Any]]:
    """Every text that is shown, and its box."""
    artists: list[Text] = [*figure.texts]
    if figure._suptitle is not None:
        artists.append(figure._suptitle)
    for legend in figure.legends + [ax.get_legend() for ax in figure.axes if ax.get_legend()]:
        artists += legend.get_texts()
    for ax in figure.axes:
        artists += [ax.title, ax._left_title, ax._right_title, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            artists += [axis.label, *_tick_labels(axis)]
    shown = [text for text in dict.fromkeys(artists) if text.get_visible() and text.get_text()]
    return [(repr(text.get_text()), text.get_window_extent()) for text in shown]


def _tick_labels(axis: Any) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (abs(low) + abs(high))
    kinds = (
        (axis.get_majorticklocs(), axis.majorTicks),
        (axis.get_minorticklocs(), axis.minorTicks),
    )
    return [
        tick.label1
        for places, ticks in kinds
        for place, tick in zip(places, ticks, strict=False)
        if low - room <= place <= high + room and tick.label1.get_visible()
    ]  # fmt: skip


def _outside(figure: Figure, box: Any) -> bool:
    whole = figure.bbox
    return bool(
        box.x0 < whole.x0 - TOUCH
        or box.y0 < whole.y0 - TOUCH
        or box.x1 > whole.x1 + TOUCH
        or box.y1 > whole.y1 + TOUCH
    )


def _overlap(one: Any, other: Any) -> bool:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(width > TOUCH and height > TOUCH)


def _unseen(figure: Figure) -> list[str]:
    """Curves of which no point is in their panel."""
    found = []
    for ax in figure.axes:
        (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        for line in ax.get_lines():
            points = np.asarray(line.get_xydata(), dtype=float)
            points = points[np.isfinite(points).all(axis=1)]
            x, y = points.T
            inside = (x >= left) & (x <= right) & (y >= low) & (y <= high)
            if line.get_transform() == ax.transData and points.size and not inside.any():
                found.append(f"a curve of {ax.get_title(loc='left')!r} is not in its panel")
    return found


def _legends(figure: Figure) -> list[str]:
    found = []
    own = [(ax.get_legend(), ax) for ax in figure.axes if ax.get_legend()]
    for legend, _ in [*((one, None) for one in figure.legends), *own]:
        box = legend.get_window_extent()
        if _outside(figure, box):
            found.append("a legend leaves the canvas")
        for ax in figure.axes:
            if _covers(box, ax):
                found.append(f"a legend covers a curve of {ax.get_title(loc='left')!r}")
    return found


def _covers(box: Any, ax: Any) -> bool:
    """Whether a curve of a panel passes through a box."""
    for line in ax.get_lines():
        points = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float))
        points = points[np.isfinite(points).all(axis=1)]
        for start, end in pairwise(points):
            between = start + np.linspace(0, 1, 20)[:, None] * (end - start)
            inside = (between > [box.x0, box.y0]) & (between < [box.x1, box.y1])
            if inside.all(axis=1).any():
                return True
    return False
