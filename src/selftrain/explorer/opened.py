"""Files that `selftrain explore PATH` opens: a saved run becomes the state of the page, a sweep a
map whose points can be clicked.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput, SelfTrainError
from ..mixture.clusters import Clusters
from .cluster_texts import write_shape
from .controls import CONTROLS, NUMBERS
from .page_state import PageState

ASIDE = ("status", "reason")
SQLITE = b"SQLite format 3\0"


class Map(NamedTuple):
    """A sweep over one or two controls.

    Attributes:
        title: name of the opened file.
        axes: names of the controls, that of the horizontal axis first.
        values: values along each axis.
        quantities: arrays over the axes, by name.
        base: values of controls that are the same at all points, by name.
        found: arrays of further controls that differ between points (optimised ones), by name.
    """

    title: str
    axes: tuple[str, ...]
    values: tuple[list[float], ...]
    quantities: dict[str, Any]
    base: dict[str, Any]
    found: dict[str, Any]

    def state_at(self, place: tuple[int, ...]) -> PageState:
        """Return the page of one point; raise if a control does not accept its value.

        `place` has the index along each axis.
        """
        at = {name: axis[i] for name, axis, i in zip(self.axes, self.values, place, strict=True)}
        tuned = {name: float(array[place]) for name, array in self.found.items()}
        found = {name: value for name, value in tuned.items() if np.isfinite(value)}
        state = PageState().with_values(self.base | at | found)
        state.values()
        return state


def open_path(path: str | Path) -> PageState | Map:
    """Return the state of a saved run, or the map of a sweep; raise for any other file."""
    place = Path(path)
    if not place.exists():
        raise InvalidInput("path", str(path), "must be a saved run or a sweep")
    if place.is_dir() or _is_store(place):
        from ..sweeps import load

        return _map(load(place), place.stem)
    import xarray as xr

    from .. import Trajectory

    try:
        with xr.open_dataset(place) as data:
            swept = data.attrs.get("kind") == "selftrain.Sweep"
            data.load()
    except (OSError, ValueError) as error:
        accepted = f"must be a saved run or a sweep ({' '.join(str(error).split())[:120]})"
        raise InvalidInput("path", str(path), accepted) from None
    if swept:
        return _map(data, place.stem)
    run = Trajectory.load(place)
    return PageState().with_values(_fields(run.problem.to_dict(), run.recipe.to_dict()))


def _is_store(path: Path) -> bool:
    """Return whether a file is an SQLite file, as stores of sweeps are."""
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _fields(problem: dict[str, Any], recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that have a control; raise if another one differs from its default."""
    values = {**problem, **recipe}
    if "clusters" in values:
        values["shape"] = write_shape(Clusters.from_dict(values.pop("clusters")))
    usual = ("soft", "fresh", 0.0)
    odd = [n for n, value in values.items() if n not in CONTROLS and value not in usual]
    if odd:
        reason = f"this run has settings that the page does not: {', '.join(odd)}"
        raise SelfTrainError(reason)
    return {name: value for name, value in values.items() if name in CONTROLS}


def _map(data: Any, title: str) -> Map:
    axes = tuple(str(name) for name in reversed(data["status"].dims))
    strange = [name for name in axes if name not in NUMBERS]
    if not 1 <= len(axes) <= 2 or strange:
        accepted = "must be one or two of the controls of the page"
        raise InvalidInput("axes", list(axes), accepted)
    flat = [str(name) for name in data.data_vars if set(data[name].dims) == set(axes)]
    arrays = {
        name: np.asarray(data[name].transpose(*axes).values, dtype=float)
        for name in flat
        if name not in ASIDE and data[name].dtype.kind in "fiub"
    }
    if not arrays:
        raise InvalidInput("path", title, "must be a sweep with numbers over its axes")
    inputs = [json.loads(data.attrs.get(name, "{}")) for name in ("problem", "recipe")]
    base = {name: value for name, value in _fields(*inputs).items() if name not in axes}
    found = {name: array for name, array in arrays.items() if name in NUMBERS}
    values = tuple(np.asarray(data[name].values, dtype=float).tolist() for name in axes)
    return Map(title, axes, values, arrays, base, found)
