"""Files of `Optimum.save` and `Optimum.load`: the best run as in `theory.run_file`, with the search
as JSON in an attribute.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..recipe import Recipe
from ..runtime.files import stored, write_netcdf
from ..theory.run_file import as_dataset, from_dataset
from ..theory.trajectory import Trajectory
from .optimum import Improvement, Optimum
from .supervised import SupervisedFit, SupervisedOptimum

PLAIN = ("solves", "bounds", "schedule", "active_bounds", "first_order", "second_order", "start")
"""Fields that are stored unchanged."""


def save(optimum: Optimum, path: str | Path) -> Path:
    """Write an optimum to a netCDF file."""
    search = {
        **{name: getattr(optimum, name) for name in PLAIN},
        "recipe": optimum.recipe.to_json(),
        "path": [(one.solves, one.error, one.recipe.to_json()) for one in optimum.path],
        "labeled_only": asdict(optimum.labeled_only),
        "supervised": asdict(optimum.supervised),
    }
    data = as_dataset(optimum.trajectory)
    data.attrs |= {"kind": "selftrain.Optimum", "search": json.dumps(search)}
    return write_netcdf(data, path)


def load(path: str | Path) -> Optimum:
    """Read a file that `save` wrote."""
    with stored(path, "Optimum") as data:
        search = json.loads(data.attrs["search"])
        return Optimum(
            recipe=Recipe.from_json(search["recipe"]),
            trajectory=from_dataset(Trajectory.kinds(), data),
            path=tuple(
                Improvement(solves, error, Recipe.from_json(recipe))
                for solves, error, recipe in search["path"]
            ),
            solves=search["solves"],
            bounds={name: tuple(pair) for name, pair in search["bounds"].items()},
            schedule=tuple(search["schedule"]),
            active_bounds={name: _sides(at) for name, at in search["active_bounds"].items()},
            first_order=search["first_order"],
            second_order=search["second_order"],
            labeled_only=SupervisedFit(**search["labeled_only"]),
            start=search["start"],
            _supervised=_supervised(**search["supervised"]),
        )


def _sides(at: Any) -> Any:
    """Return an entry of `active_bounds`, with tuples for the lists of JSON."""
    return at if isinstance(at, str) else {side: tuple(steps) for side, steps in at.items()}


def _supervised(bounds: Any, unbounded: Any, **fit: Any) -> SupervisedOptimum:
    free = None if unbounded is None else SupervisedFit(**unbounded)
    return SupervisedOptimum(**fit, bounds=tuple(bounds), unbounded=free)
