"""What single pictures owe their readers, beyond a layout without faults."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from selftrain.paper.registry import figure

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "plots")]
from layout import faults  # noqa: E402
from synthetic import data_of  # noqa: E402


def pixels(ax: Any, x: Any, y: Any) -> np.ndarray:
    return np.asarray(ax.transData.transform(np.column_stack([x, y])))


def test_times_that_are_tiny_have_readable_numbers() -> None:
    """A tuned run of 1024 steps at rho = 0.2 ends at tau = 1e-10."""
    one = figure("continuum")
    data = data_of(one, quick=False)
    paths = data["paths"].copy(deep=True)
    tiny = (paths.loss == "logistic") & (paths.rho == 0.2)
    for name in ("tau", "tau_run", "time_scale", "lambda_u"):
        paths[name] = paths[name].where(~tiny, paths[name] * 1.0037e-10)
    drawn = one.draw({"paths": paths})
    assert faults(drawn) == []


def test_a_legend_names_only_what_is_drawn() -> None:
    one = figure("optimal-ridge")
    data = data_of(one, quick=True)
    chains = data["chains"].copy(deep=True)
    for largest, named in ((1e-7, False), (1e-2, True)):
        chains["first_order"] = chains["first_order"] * 0 + largest
        drawn = one.draw({"chains": chains})
        texts = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert ("end of the solver" in texts) is named


def test_no_line_crosses_the_number_of_a_bar() -> None:
    one = figure("ablation")
    drawn = one.draw(data_of(one, quick=False))
    drawn.draw_without_rendering()
    (ax,) = drawn.axes
    numbers = [text.get_window_extent() for text in ax.texts]
    assert len(numbers) == 16
    for line in ax.lines:
        for x, y in pixels(ax, line.get_xdata(), line.get_ydata()):
            crossed = [box for box in numbers if box.y0 - 1 <= y <= box.y1 + 1]
            assert not crossed, (x, y)


def test_no_size_hides_another() -> None:
    one = figure("macroscopic")
    drawn = one.draw(data_of(one, quick=False))
    drawn.draw_without_rendering()
    for ax in drawn.axes:
        sizes = [bars.lines[0] for bars in ax.containers]
        assert len(sizes) == 4
        radius = sizes[0].get_markersize() * drawn.dpi / 72
        places = np.vstack([pixels(ax, *line.get_data()) for line in sizes])
        assert places.shape[0] >= 4 * 9
        apart = np.abs(places[:, None] - places[None]).max(axis=2) + 1e3 * np.eye(len(places))
        assert apart.min() >= radius
        edge = ax.get_window_extent()
        assert (places[:, 0] > edge.x0).all()
        assert (places[:, 0] < edge.x1).all()
