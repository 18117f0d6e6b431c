"""The result of a sweep: an xarray Dataset that draws itself and says what became of its points."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from .gather import gather
from .plan import SweepPlan
from .store import Finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DONE, FAILED, MISSING = 0, 1, 2
STATUS = ("done", "failed", "missing")


class Sweep(xr.Dataset):  # type: ignore[no-untyped-call]  # its hook for subclasses
    """Quantities over the axes of a grid, with their symbols and units.

    A dataset of xarray in everything, and `plot` draws the diagram. The variable `status` says of
    each point whether it is done (0), failed (1) or missing (2); `reason`, if any failed, says why.
    """

    __slots__ = ()

    @property
    def plot(self) -> Any:  # type: ignore[override]  # a property of xarray, too, in another way
        """Call it to draw the diagram; the methods of xarray's accessor are there as well."""
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
        """Lines over one axis, a map over two; see `selftrain.plots.sweep`."""
        from ..plots.sweep import plot_sweep

        return plot_sweep(self._data, name, title=title, ax=ax)

    def __getattr__(self, name: str) -> Any:
        data = self._data
        return getattr(xr.Dataset(data.data_vars, data.coords, data.attrs).plot, name)


def as_dataset(plan: SweepPlan, found: Sequence[Finished | None]) -> Sweep:
    """What is known of the points of a plan, in the order of its grid."""
    values = [one.values if one is not None and one.reason is None else None for one in found]
    names = None if plan.outputs is not None or not plan.keep else plan.keep
    data = gather(plan.computation, plan.grid, values, names)
    states = [MISSING if one is None else DONE if one.reason is None else FAILED for one in found]
    about = {
        "flag_values": np.array([DONE, FAILED, MISSING], dtype="i4"),
        "flag_meanings": " ".join(STATUS),
    }
    axes = tuple(plan.grid.axes)
    data["status"] = (axes, np.array(states, dtype="i4").reshape(plan.grid.shape), about)
    if FAILED in states:
        reasons = [one.reason or "" if one is not None else "" for one in found]
        data["reason"] = (axes, np.array(reasons, dtype=str).reshape(plan.grid.shape))
    data.attrs = {
        "kind": "selftrain.Sweep",
        "task": plan.task,
        "options": json.dumps(dict(plan.options)),
        "version": version("selftrain"),
    }
    for name, word in (("problem", plan.problem), ("recipe", plan.recipe)):
        if word is not None:
            data.attrs[name] = _json(word)
    return Sweep(data.data_vars, coords=data.coords, attrs=data.attrs)


def _json(word: Any) -> str:
    text: str = word.to_json()
    return text
