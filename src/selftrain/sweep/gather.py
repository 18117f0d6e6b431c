"""Finished points as one labelled dataset: the axes of the grid, then the dimensions of each output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput
from .computation import Computation
from .grid import Grid

if TYPE_CHECKING:
    import xarray as xr


def gather(computation: Computation, grid: Grid, values: Sequence[Mapping[str, Any]]) -> xr.Dataset:
    """A dataset of the values of all points, in the order of `grid.points`.

    Every variable has its symbol and unit as attributes; the dataset has what all points share.

    >>> from selftrain.sweep import Output
    >>> work = Computation(lambda x, y: {"sum": x + y}, {"sum": Output("x + y")})
    >>> grid = Grid({"x": (1.0, 2.0)}, fixed={"y": 3.0})
    >>> gather(work, grid, [work.function(**point) for point in grid.points])["sum"].values.tolist()
    [4.0, 5.0]
    """
    import xarray as xr

    if len(values) != len(grid):
        raise InvalidInput("values", len(values), f"one for each of {len(grid)} points is needed")
    own = {name for output in computation.outputs.values() for name in output.dims}
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {name: _column(axis) for name, axis in grid.axes.items()}
    for name, output in computation.outputs.items():
        entries = [np.asarray(one[name]) for one in values]
        about = {"symbol": output.symbol, "units": output.unit}
        if name in own:
            if any(not np.array_equal(entry, entries[0]) for entry in entries):
                raise InvalidInput(name, entries[0], "all points need the same coordinate")
            coordinates[name] = (name, entries[0], about)
            continue
        stacked = np.stack(entries).reshape(*grid.shape, *entries[0].shape)
        variables[name] = ((*grid.axes, *output.dims), stacked, about)
    attributes = {"computation": computation.name, "fixed": json.dumps(dict(grid.fixed))}
    return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def _column(axis: Sequence[Any]) -> list[Any]:
    """Values of an axis that a file format knows: numbers and strings as they are, others by name."""
    simple = all(isinstance(value, (int, float)) for value in axis)
    return list(axis) if simple else [str(value) for value in axis]
