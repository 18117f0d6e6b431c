"""Finished points as one labelled dataset: the axes of the grid, then the dimensions of each
output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput, SelfTrainError
from .computation import Computation, Output
from .grid import Grid
from .work import KEPT_KINDS

if TYPE_CHECKING:
    import xarray as xr


def gather(
    computation: Computation,
    grid: Grid,
    values: Sequence[Mapping[str, Any] | None],
    names: Sequence[str] | None = None,
) -> xr.Dataset:
    """A dataset of the values of all points, in the order of `grid.points`; NaN where there is
    None.

    Every variable has its symbol and unit as attributes; the dataset has what all points share.

    Arguments:
        names: the outputs that are shown; default: all.

    >>> from selftrain.sweep import Output
    >>> work = Computation(lambda x, y: {"sum": x + y}, {"sum": Output("x + y")})
    >>> grid = Grid({"x": (1.0, 2.0)}, fixed={"y": 3.0})
    >>> gather(work, grid, [work.function(**point) for point in grid.points])["sum"].values.tolist()
    [4.0, 5.0]
    """
    import xarray as xr

    if len(values) != len(grid):
        raise InvalidInput("values", len(values), f"one for each of {len(grid)} points is needed")
    outputs = _outputs(computation, values, names)
    own = {name for output in outputs.values() for name in output.dims}
    variables: dict[str, Any] = {}
    coordinates = _coordinates(grid)
    for name, output in outputs.items():
        entries = _entries(name, output, values)
        about = {"symbol": output.symbol, "units": output.unit}
        if name in own:
            known = [entry for entry in entries if entry is not None]
            if any(not np.array_equal(entry, known[0]) for entry in known):
                raise InvalidInput(name, known[0], "all points need the same coordinate")
            if known:
                coordinates[name] = (name, known[0], about)
            continue
        stacked = _stacked(name, entries).reshape(*grid.shape, *_shape(entries))
        variables[name] = ((*grid.axes, *output.dims), stacked, about)
    attributes = {"computation": computation.name, "fixed": json.dumps(dict(grid.fixed))}
    return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def _outputs(
    computation: Computation,
    values: Sequence[Mapping[str, Any] | None],
    names: Sequence[str] | None,
) -> dict[str, Output]:
    """What to show; of a function that does not say what it returns, what it returned first."""
    declared = computation.outputs
    if declared is None:
        first: Mapping[str, Any] = next((one for one in values if one is not None), {})
        declared = {
            name: Output(name, tuple(f"{name}_{axis}" for axis in range(np.ndim(value))))
            for name, value in first.items()
        }
        missing = [name for name in names or () if first and name not in declared]
        if missing:
            known = ", ".join(declared)
            raise InvalidInput(
                "keep", missing[0], f"the function does not return it; it has {known}"
            )
    return {name: output for name, output in declared.items() if names is None or name in names}


def _entries(name: str, output: Output, values: Sequence[Mapping[str, Any] | None]) -> list[Any]:
    """The values of one output, checked against what was declared of it."""
    entries: list[Any] = []
    for one in values:
        if one is None:
            entries.append(None)
            continue
        if name not in one:
            raise SelfTrainError(
                f"a point has no value of {name!r}: it has {', '.join(one) or 'none'}"
            )
        entry = np.asarray(one[name])
        if entry.ndim != len(output.dims) or entry.dtype.kind not in KEPT_KINDS:
            raise SelfTrainError(
                f"a value of {name!r} is {entry.dtype} of shape {entry.shape}: numbers over "
                f"({', '.join(output.dims)}) are expected"
            )
        entries.append(entry)
    return entries


def _shape(entries: Sequence[Any]) -> tuple[int, ...]:
    return next((entry.shape for entry in entries if entry is not None), ())


def _stacked(name: str, entries: Sequence[Any]) -> Any:
    """All entries in one array, NaN where there is none."""
    shape = _shape(entries)
    if any(entry is not None and entry.shape != shape for entry in entries):
        shapes = sorted({entry.shape for entry in entries if entry is not None})
        raise SelfTrainError(
            f"the values of {name!r} have different shapes, {shapes[0]} and {shapes[1]}: "
            "points of one dataset need the same"
        )
    if all(entry is not None for entry in entries):
        return np.stack(entries)
    empty = np.full(shape, np.nan)
    return np.stack([empty if entry is None else entry for entry in entries])


def _coordinates(grid: Grid) -> dict[str, Any]:
    """The values along each axis; an axis of several parameters is counted, and has them beside
    it.
    """
    coordinates: dict[str, Any] = {}
    for axis, size in zip(grid.axes, grid.shape, strict=True):
        columns = grid.columns(axis)
        if axis not in columns:
            coordinates[axis] = np.arange(size)
        for name, column in columns.items():
            coordinates[name] = (axis, _column(column), symbol_of(name))
    return coordinates


SYMBOLS = {
    "alpha_l": r"\alpha_L",
    "alpha_u": r"\alpha_U",
    "rho": r"\rho",
    "delta": r"\Delta",
    "steps": "T",
    "rho_u": r"\rho_U",
    "delta_u": r"\Delta_U",
    "lambda_l": r"\lambda_L",
    "lambda_u": r"\lambda_U",
    "threshold": r"\Gamma",
    "sharpness": r"\gamma",
    "annealing": "a",
    "features": "N",
    "until": r"\tau",
}
"""Of the parameters that axes are made of."""


def symbol_of(name: str) -> dict[str, str]:
    """Symbol and unit of a parameter, if it has any."""
    return {"symbol": SYMBOLS[name], "units": "1"} if name in SYMBOLS else {}


def _column(axis: Sequence[Any]) -> list[Any]:
    """Values of an axis that a file format knows: numbers and strings as they are, others by
    name.
    """
    simple = all(isinstance(value, (int, float)) for value in axis)
    return list(axis) if simple else [str(value) for value in axis]
