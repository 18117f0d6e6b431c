"""The result of a sweep: finished points as one labelled dataset with a `plot` method.

Its dimensions are the axes of the grid, then those of each output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from json import dumps
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ..errors import InvalidInput, SelfTrainError
from ..parameters import PARAMETERS
from .computation import Output
from .grid import Grid
from .store import Finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DONE, FAILED, MISSING = 0, 1, 2
STATUS = ("done", "failed", "missing")
OPTIONS = {"features": "N", "until": r"\tau"}
"""Symbols of the task options that may be axes."""


class Sweep(xr.Dataset):  # type: ignore[no-untyped-call]  # its hook for subclasses
    """An `xarray.Dataset` of quantities over the axes of a grid, with their symbols and units.

    `plot` draws it. The variable `status` is 0 (done), 1 (failed) or 2 (missing) at each point; if
    any point failed, the variable `reason` says why.
    """

    __slots__ = ()

    @property
    def plot(self) -> Any:  # type: ignore[override]  # xarray has another kind of property here
        """A function that draws the sweep, with the methods of xarray's own plot accessor."""
        return _Plot(self)

    def _repr_html_(self) -> str:
        from ..plots.notebook import sweep_card

        return sweep_card(self) + super()._repr_html_()


class _Plot:
    def __init__(self, data: Sweep) -> None:
        self._data = data

    def __call__(
        self, name: str | None = None, *, title: str | None = None, ax: Axes | None = None
    ) -> Figure:
        """Draw lines over one axis or a map over two; see `selftrain.plots.sweep`."""
        from ..plots.sweep import plot_sweep

        return plot_sweep(self._data, name, title=title, ax=ax)

    def __getattr__(self, name: str) -> Any:
        data = self._data
        return getattr(xr.Dataset(data.data_vars, data.coords, data.attrs).plot, name)


def as_dataset(
    grid: Grid,
    outputs: Mapping[str, Output] | None,
    keep: Sequence[str],
    found: Sequence[Finished | None],
    about: Mapping[str, str],
) -> Sweep:
    """Return the points of a sweep as a dataset with their status.

    Arguments:
        outputs: the quantities that points return; None for a user's function.
        keep: the quantities of a user's function to include; empty for all.
        found: the points in grid order, None where missing.
        about: attributes of the dataset.
    """
    states = [MISSING if one is None else DONE if one.reason is None else FAILED for one in found]
    values = [one.values if one is not None and one.reason is None else None for one in found]
    if outputs is None and keep:
        values = [one and {name: one[name] for name in one if name in keep} for one in values]
    data = gather(grid, outputs, values)
    flags = {
        "flag_values": np.array([DONE, FAILED, MISSING], dtype="i4"),
        "flag_meanings": " ".join(STATUS),
    }
    axes = tuple(grid.axes)
    data["status"] = (axes, np.array(states, dtype="i4").reshape(grid.shape), flags)
    if FAILED in states:
        reasons = [one.reason or "" if one is not None else "" for one in found]
        data["reason"] = (axes, np.array(reasons, dtype=str).reshape(grid.shape))
    attributes = {"kind": "selftrain.Sweep", **about, "version": version("selftrain")}
    return Sweep(data.data_vars, coords=data.coords, attrs=attributes)


def gather(
    grid: Grid,
    outputs: Mapping[str, Output] | None,
    values: Sequence[Mapping[str, Any] | None],
) -> xr.Dataset:
    """Return the values of all points as a dataset.

    Every variable has its symbol and unit as attributes; the dataset has the fixed parameters.

    Arguments:
        outputs: the quantities that points return; None: those that the first point returned.
        values: those of each point, in the order of `grid.points`; None becomes NaN.

    >>> grid = Grid({"x": (1.0, 2.0)}, fixed={"y": 3.0})
    >>> gather(grid, {"sum": Output("x + y")}, [{"sum": 4.0}, {"sum": 5.0}])["sum"].values.tolist()
    [4.0, 5.0]
    """
    if len(values) != len(grid):
        raise InvalidInput("values", len(values), f"must be one for each of {len(grid)} points")
    if outputs is None:
        first: Mapping[str, Any] = next((one for one in values if one is not None), {})
        outputs = {
            name: Output(name, tuple(f"{name}_{axis}" for axis in range(np.ndim(value))))
            for name, value in first.items()
        }
    own = {name for output in outputs.values() for name in output.dims}
    variables: dict[str, Any] = {}
    coordinates = _coordinates(grid)
    for name, output in outputs.items():
        entries = [None if one is None else _entry(name, output, one) for one in values]
        known = [entry for entry in entries if entry is not None]
        about = {"symbol": output.symbol, "units": "1"}  # all quantities are pure numbers
        if name not in own:
            variables[name] = ((*grid.axes, *output.dims), _stacked(name, entries, grid), about)
        elif any(not np.array_equal(entry, known[0]) for entry in known):
            raise InvalidInput(name, known[0], "the coordinate must be the same at all points")
        elif known:
            coordinates[name] = (name, known[0], about)
    return xr.Dataset(variables, coords=coordinates, attrs={"fixed": dumps(dict(grid.fixed))})


def _entry(name: str, output: Output, values: Mapping[str, Any]) -> Any:
    """Return the value of an output at a point; raise if it is not as declared."""
    if name not in values:
        raise SelfTrainError(
            f"a point has no value of {name!r}: it has {', '.join(values) or 'none'}"
        )
    entry = np.asarray(values[name])
    if entry.ndim != len(output.dims) or entry.dtype.kind not in "biufUS":
        raise SelfTrainError(
            f"a value of {name!r} must be numbers over ({', '.join(output.dims)}), got "
            f"{entry.dtype} of shape {entry.shape}"
        )
    return entry


def _stacked(name: str, entries: Sequence[Any], grid: Grid) -> Any:
    """Return all entries as one array over the grid, NaN for None."""
    shapes = sorted({entry.shape for entry in entries if entry is not None})
    if len(shapes) > 1:
        raise SelfTrainError(
            f"the values of {name!r} must have the same shape at all points, got {shapes[0]} and "
            f"{shapes[1]}"
        )
    shape = shapes[0] if shapes else ()
    missing = np.full(shape, np.nan)
    filled = [missing if entry is None else entry for entry in entries]
    return np.stack(filled).reshape(*grid.shape, *shape)


def _coordinates(grid: Grid) -> dict[str, Any]:
    """Return the coordinates of the axes; values that are not numbers become text.

    The coordinate of an axis of several parameters is an index; their values are further
    coordinates along it.
    """
    coordinates: dict[str, Any] = {}
    for axis, size in zip(grid.axes, grid.shape, strict=True):
        columns = grid.columns(axis)
        if axis not in columns:
            coordinates[axis] = np.arange(size)
        for name, column in columns.items():
            simple = all(isinstance(value, (int, float)) for value in column)
            shown = list(column) if simple else [str(value) for value in column]
            symbol = PARAMETERS[name].symbol if name in PARAMETERS else OPTIONS.get(name)
            about = {"symbol": symbol, "units": "1"} if symbol else {}
            coordinates[name] = (axis, shown, about)
    return coordinates
