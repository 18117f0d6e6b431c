"""Plots of a sweep: lines over one axis, a map with contours over two.

A map also shows two boundaries: where runs collapse into one class, and where self-training gains
nothing over the supervised baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..errors import InvalidInput, nearest
from .canvas import new_axes, whole_figure
from .style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, logarithmic, styled
from .titles import shared, words

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..arrays import Array

ASIDE = ("status", "reason")
COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK)
LOGARITHMIC = 1.5
"""An axis of equal ratios whose ends differ by more than this factor has a log scale."""

SMOOTHED = 1.5
"""Width, in grid cells, over which the boundary of collapse is smoothed, because it would otherwise
follow the edges of the cells."""


def plot_sweep(
    data: xr.Dataset,
    name: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw quantities of a sweep over its one or two axes.

    Arguments:
        data: what `sweep` returned, or a part of it; axes of one value are left out.
        name: the quantity; default: over one axis all of them, over two the first.
        title: above the figure; default: the quantity, and the parameters that do not vary.
        ax: axes to draw on; by default new ones.

    >>> from selftrain import Problem, sweep
    >>> problem = Problem(0.5, 2.0, 0.4, 0.5, steps=2)
    >>> figure = sweep(problem, over={"rho": [0.3, 0.4, 0.5]}, keep=("error",), workers=0).plot()
    >>> figure.axes[0].get_xlabel()
    'proportion of the positive class  $\\\\rho$'
    """
    data = data.squeeze()
    names = [str(one) for one in data.data_vars if one not in ASIDE]
    if name is not None and name not in names:
        raise InvalidInput("name", name, f"unknown quantity; {nearest(name, names)}")
    shown = names if name is None else [name]
    dims = max((data[one].dims for one in shown), key=len, default=())
    if not 1 <= len(dims) <= 2:
        accepted = "must be one or two: choose values of the others with .sel() first"
        raise InvalidInput("axes", [str(dim) for dim in dims], accepted)
    with styled():
        place = new_axes(ax, 5.6, 4.2)
        canvas = whole_figure(place)
        if len(dims) == 1:
            _lines(place, data, shown, str(dims[0]))
        else:
            _map(place, data, shown[0])
        above = shared(data, shown) if title is None else title
        if ax is None:
            canvas.suptitle(above, fontsize=9)
        else:
            place.set_title(above, fontsize=8)
    return canvas


def _lines(ax: Axes, data: xr.Dataset, names: list[str], axis: str) -> None:
    x = data[axis].values
    marker = "o" if x.size <= 40 else ""
    for name, color in zip(names, COLORS * len(names), strict=False):
        if data[name].dims == (axis,) and bool(data[name].notnull().any()):
            spread = data.get(f"{name}_se")
            if name.endswith("_se") and name.removesuffix("_se") in names:
                continue
            ax.errorbar(
                x,
                data[name].values,
                yerr=None if spread is None else spread.values,
                color=color,
                marker=marker,
                label=f"{words(name)}  {_symbol(data, name)}".rstrip(),
            )
    _scale(ax, data, axis, "x")
    ax.legend()


def _map(ax: Axes, data: xr.Dataset, name: str) -> None:
    down, across = (str(dim) for dim in data[name].dims)
    _scale(ax, data, across, "x")  # before the contours: their labels take room on the screen
    _scale(ax, data, down, "y")
    z = data[name].values
    x, y = data[across].values, data[down].values
    finite = bool(np.isfinite(z).all())
    shading: Literal["gouraud", "nearest"] = "gouraud" if finite and min(z.shape) > 1 else "nearest"
    mesh = ax.pcolormesh(x, y, z, shading=shading, cmap="viridis", rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, label=words(name))
    # whole numbers need no contours: their colours show them
    counted = np.array_equal(np.rint(z), z, equal_nan=True)
    varied = np.isfinite(z).sum() > 3 and np.nanmin(z) < np.nanmax(z)
    if varied and not counted and min(z.shape) > 2:
        contours = ax.contour(x, y, z, levels=6, colors="white", linewidths=0.6)
        ax.clabel(contours, fontsize=7, fmt="%.3g")
    handles = []
    for label, field, color in _boundaries(data):
        if min(field.shape) > 1 and field.min() < 0 < field.max():
            ax.contour(x, y, field, levels=[0.0], colors=color, linewidths=2.2)
            handles.append(ax.plot([], [], color=color, linewidth=2.2, label=label)[0])
    handles += _finite_systems(ax, data, across, down)
    if handles:
        canvas = ax.figure
        canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    ax.grid(False)


def _collapse(at: Array) -> Array:
    """Return a smooth field that is positive where runs collapse."""
    from scipy.ndimage import gaussian_filter

    field: Array = gaussian_filter(np.where(np.isfinite(at), 1.0, -1.0), SMOOTHED, mode="nearest")
    return field


def _finite_systems(ax: Axes, data: xr.Dataset, across: str, down: str) -> list[Any]:
    """Draw the fraction of collapsed finite systems as circles, if only some points have it."""
    if "collapsed" not in data or bool(np.isfinite(data["collapsed"]).all()):
        return []
    share = data["collapsed"].transpose(down, across).values
    y, x = np.nonzero(np.isfinite(share))
    ax.scatter(
        data[across].values[x], data[down].values[y], s=11, c=share[y, x], cmap="Greys",
        vmin=0.0, vmax=1.0, edgecolors="black", linewidths=0.5, zorder=3,
    )  # fmt: skip
    style: dict[str, Any] = {"linestyle": "", "marker": "o", "markeredgecolor": "black"}
    return [
        ax.plot([], [], color=color, label=label, **style)[0]
        for color, label in (("white", "no finite system collapses"), ("black", "all do"))
    ]


def _boundaries(data: xr.Dataset) -> list[tuple[str, Array, str]]:
    """Return the boundaries on a map: name, a field whose zero line it is, and colour."""
    found: list[tuple[str, Array, str]] = []
    if "collapsed_at" in data:
        found.append(("collapse", _collapse(data["collapsed_at"].values), ORANGE))
    if "collapsed" in data and bool(np.isfinite(data["collapsed"]).all()):
        found.append(("half of the systems collapse", data["collapsed"].values - 0.5, ORANGE))
    if "gain" in data:
        found.append(("no gain over the supervised baseline", data["gain"].values, ORANGE))
    elif "labeled_only" in data and "error" in data:
        gain = (data["labeled_only"] - data["error"]).values
        found.append(("no gain over the supervised baseline", gain, ORANGE))
    return found


def _scale(ax: Axes, data: xr.Dataset, name: str, which: str) -> None:
    """Label an axis, and set a logarithmic scale if its values have equal ratios."""
    values = data[name].values
    symbol = data[name].attrs.get("symbol")
    getattr(ax, f"set_{which}label")(f"{words(name)}  ${symbol}$" if symbol else words(name))
    if values.size > 2 and values.dtype.kind in "iuf" and values.min() > 0:
        ratios = values[1:] / values[:-1]
        if (
            np.allclose(ratios, ratios[0], rtol=1e-6)
            and max(ratios[0], 1 / ratios[0]) ** (values.size - 1) > LOGARITHMIC
        ):
            logarithmic(ax, which)


def _symbol(data: xr.Dataset, name: str) -> str:
    """Return the symbol of a quantity as a formula; empty if it is only its name."""
    symbol = str(data[name].attrs.get("symbol", ""))
    return f"${symbol}$" if "\\" in symbol or 0 < len(symbol) < 4 else ""
