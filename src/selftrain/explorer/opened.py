"""What `selftrain explore PATH` opens: a saved run, as the state of the page; a sweep, as a map to
click on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput, SelfTrainError
from ..mixture.clusters import Clusters
from .directions import write_shape
from .page_state import FLAGS, NAMES, NUMBERS, PageState

__all__ = ["Map", "open_path"]

ASIDE = ("status", "reason")
SQLITE = b"SQLite format 3\0"


class Map(NamedTuple):
    """A sweep over one or two controls.

    Attributes:
        title: what was opened.
        axes: names of the controls, the first along the page.
        values: of each axis.
        quantities: numbers over the axes, by name.
        base: values of all controls that the points share.
        found: values of controls that differ from point to point, as tuned ones do, by name.
    """

    title: str
    axes: tuple[str, ...]
    values: tuple[list[float], ...]
    quantities: dict[str, Any]
    base: dict[str, Any]
    found: dict[str, Any]

    def state_at(self, place: tuple[int, ...]) -> PageState:
        """The page of one point."""
        values = dict(self.base)
        values |= {
            name: axis[i] for name, axis, i in zip(self.axes, self.values, place, strict=True)
        }
        values |= {
            name: float(array[place])
            for name, array in self.found.items()
            if np.isfinite(array[place])
        }
        state = PageState().with_values(values)
        state.values()  # refuses what the controls of the page do not accept
        return state


def open_path(path: str | Path) -> PageState | Map:
    """The state of a saved run, or the map of a sweep; anything else is refused in a sentence."""
    place = Path(path)
    if not place.exists():
        raise InvalidInput("path", str(path), "a saved run or a sweep is accepted")
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
        accepted = f"a saved run or a sweep is accepted ({' '.join(str(error).split())[:120]})"
        raise InvalidInput("path", str(path), accepted) from None
    if swept:
        return _map(data, place.stem)
    run = Trajectory.load(place)
    return PageState().with_values(_fields(run.problem.to_dict(), run.recipe.to_dict()))


def _is_store(path: Path) -> bool:
    """Return whether a file is one of SQLite, as stores of sweeps are."""
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _fields(problem: dict[str, Any], recipe: dict[str, Any]) -> dict[str, Any]:
    """Fields of both that have a control; one that has none must be at its default."""
    known = {**NUMBERS, **FLAGS, **NAMES, "shape": None}
    values = {**problem, **recipe}
    if "clusters" in values:
        values["shape"] = write_shape(Clusters.from_dict(values.pop("clusters")))
    odd = [
        name
        for name, value in values.items()
        if name not in known and value not in ("soft", "fresh", 0.0)
    ]
    if odd:
        reason = f"this run has settings that the page does not: {', '.join(odd)}"
        raise SelfTrainError(reason)
    return {name: value for name, value in values.items() if name in known}


def _map(data: Any, title: str) -> Map:
    axes = tuple(str(name) for name in reversed(data["status"].dims))
    strange = [name for name in axes if name not in NUMBERS]
    if not 1 <= len(axes) <= 2 or strange:
        accepted = "a sweep over one or two of the controls of the page is accepted"
        raise InvalidInput("axes", list(axes), accepted)
    flat = [str(name) for name in data.data_vars if set(data[name].dims) == set(axes)]
    arrays = {
        name: np.asarray(data[name].transpose(*axes).values, dtype=float)
        for name in flat
        if name not in ASIDE and data[name].dtype.kind in "fiub"
    }
    if not arrays:
        raise InvalidInput("path", title, "a sweep with numbers over its axes is accepted")
    inputs = [json.loads(data.attrs.get(name, "{}")) for name in ("problem", "recipe")]
    base = {name: value for name, value in _fields(*inputs).items() if name not in axes}
    found = {name: array for name, array in arrays.items() if name in NUMBERS}
    values = tuple(np.asarray(data[name].values, dtype=float).tolist() for name in axes)
    return Map(title, axes, values, arrays, base, found)
