"""A sweep as a picture: lines over one axis, a map with contours over two.

A map has two lines: where runs collapse into one class, and where self-training gains nothing over
the supervised baseline.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, nearest
from .style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, logarithmic, styled

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..arrays import Array

ASIDE = ("status", "reason")
COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK)
LOGARITHMIC = 1.5
"""An axis of equal ratios whose ends differ by more than this factor has a log scale."""


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
        title: above the picture; default: what all points share.
        ax: axes to draw on; by default new ones.

    >>> from selftrain import Problem, sweep
    >>> problem = Problem(0.5, 2.0, 0.4, 0.5, steps=2)
    >>> figure = sweep(problem, over={"rho": [0.3, 0.4, 0.5]}, keep=("error",), workers=0).plot()
    >>> figure.axes[0].get_xlabel()
    '$\\\\rho$'
    """
    from .canvas import new_axes, whole_figure

    data = data.squeeze(drop=True)
    names = [str(one) for one in data.data_vars if one not in ASIDE]
    if name is not None and name not in names:
        raise InvalidInput("name", name, f"unknown quantity; {nearest(name, names)}")
    shown = names if name is None else [name]
    dims = max((data[one].dims for one in shown), key=len, default=())
    if not 1 <= len(dims) <= 2:
        accepted = "must be one or two: choose values of the others with .sel() first"
        raise InvalidInput("axes", [str(dim) for dim in dims], accepted)
    with styled():
        place = new_axes(ax, 5.4, 3.8)
        canvas = whole_figure(place)
        if len(dims) == 1:
            _lines(place, data, shown, str(dims[0]))
        else:
            _map(place, data, shown[0])
        above = _shared(data) if title is None else title
        if ax is None:
            canvas.suptitle(above, fontsize=8)
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
                label=f"{name}  ${_symbol(data, name)}$",
            )
    _scale(ax, data, axis, "x")
    ax.legend()


def _map(ax: Axes, data: xr.Dataset, name: str) -> None:
    down, across = (str(dim) for dim in data[name].dims)
    z = data[name].values
    x, y = data[across].values, data[down].values
    mesh = ax.pcolormesh(x, y, z, shading="nearest", cmap="viridis", rasterized=True)
    ax.figure.colorbar(mesh, ax=ax, label=f"${_symbol(data, name)}$")
    if np.isfinite(z).sum() > 3 and min(z.shape) > 2 and np.nanmin(z) < np.nanmax(z):
        contours = ax.contour(x, y, z, levels=7, colors="white", linewidths=0.5)
        ax.clabel(contours, fontsize=6, fmt="%.3g")
    handles = []
    for label, field, color in _boundaries(data):
        if min(field.shape) > 1 and field.min() < 0 < field.max():
            ax.contour(x, y, field, levels=[0.0], colors=color, linewidths=1.8)
            handles.append(ax.plot([], [], color=color, linewidth=1.8, label=label)[0])
    handles += _finite_systems(ax, data, across, down)
    if handles:
        canvas = ax.figure
        canvas.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    ax.grid(False)
    _scale(ax, data, across, "x")
    _scale(ax, data, down, "y")


def _finite_systems(ax: Axes, data: xr.Dataset, across: str, down: str) -> list[Any]:
    """Draw circles where the fraction of collapsed finite systems is known at some points only."""
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
    """Return the lines of a map: their name, a field that vanishes on them, their colour."""
    found: list[tuple[str, Array, str]] = []
    if "collapsed_at" in data:
        found.append(
            ("collapse", np.where(np.isfinite(data["collapsed_at"].values), 1.0, -1.0), ORANGE)
        )
    if "collapsed" in data and bool(np.isfinite(data["collapsed"]).all()):
        found.append(("half of the systems collapse", data["collapsed"].values - 0.5, ORANGE))
    if "gain" in data:
        found.append(("no gain over supervised", data["gain"].values, ORANGE))
    elif "labeled_only" in data and "error" in data:
        gain = (data["labeled_only"] - data["error"]).values
        found.append(("no gain over supervised", gain, ORANGE))
    return found


def _scale(ax: Axes, data: xr.Dataset, name: str, which: str) -> None:
    """Label an axis, and set a logarithmic scale if its values have equal ratios."""
    values = data[name].values
    symbol = data[name].attrs.get("symbol")
    getattr(ax, f"set_{which}label")(f"${symbol}$" if symbol else name)
    if values.size > 2 and values.dtype.kind in "iuf" and values.min() > 0:
        ratios = values[1:] / values[:-1]
        if (
            np.allclose(ratios, ratios[0], rtol=1e-6)
            and max(ratios[0], 1 / ratios[0]) ** (values.size - 1) > LOGARITHMIC
        ):
            logarithmic(ax, which)


def _plain(name: str) -> str:
    """Escape a name as text within a formula."""
    return name.replace("_", r"\_").replace(" ", r"\ ")


def _symbol(data: xr.Dataset, name: str) -> str:
    symbol = str(data[name].attrs.get("symbol", name))
    return symbol if "\\" in symbol or len(symbol) < 4 else rf"\mathrm{{{_plain(symbol)}}}"


def _usual(word: str) -> dict[str, Any]:
    """Return the defaults of a recipe."""
    from ..recipe import Recipe

    return Recipe().to_dict() if word == "recipe" else {}


def _shared(data: xr.Dataset) -> str:
    """Return task and numbers that all points share."""
    pieces: list[str] = [str(data.attrs.get("task", ""))]
    for word in ("problem", "recipe"):
        values: dict[str, Any] = json.loads(data.attrs.get(word, "{}"))
        pieces += [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in values.items()
            if name not in data.coords
            and name not in data
            and isinstance(value, (int, float, str))
            and value != _usual(word).get(name)
        ]
    lines, line = [], ""
    for piece in pieces:
        if len(line) + len(piece) > 80:
            lines.append(line)
            line = ""
        line = f"{line}, {piece}" if line else piece
    return "\n".join([*lines, line])
