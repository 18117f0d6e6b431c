"""The netCDF files of runs that `Trajectory.save` writes and `Trajectory.load` reads.

A file has all quantities over the steps, the statistics of the solver, and what a run needs to
compute its laws: the conjugates, the law of the weights, and the scales of `fading`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidInput, StageError
from ..problem import Problem
from ..protocol import protocol_of
from ..recipe import Recipe
from ..runtime.files import stored, write_netcdf
from .causal.reuse_record import Reuse
from .fading import DEGREES, Fading
from .geometry.space import space_of
from .stats import STATE, SolverStats

if TYPE_CHECKING:
    import xarray as xr

    from .causal.classes import ClassTrajectory
    from .solved_run import SolvedRun
    from .trajectory import Trajectory

EXACT = {
    "unknowns": ("t", "unknown"),
    "gammas": ("t",),
    "weight_means": ("t", "mode"),
    "weight_spreads": ("t", "mode", "other"),
}
"""Arrays of a run of the exact engine besides its tables, with their dimensions."""

COUNTED: dict[str, type] = {"evaluations": int, "nodes": int, "accuracy": float}
"""Arrays of `SolverStats` and their types."""

TESTED = {"logit_variances": ("t", "class"), "off_best": ("t",)}
"""Arrays of every run of two classes: the weights as projected on the test clusters."""

SCORED = {
    "q_matrix": ("t", "score", "other_score"),
    "covariances": ("t", "true", "score", "other_score"),
    "overlaps": ("t", "step"),
    **dict.fromkeys(("chi", "kept_loss", "error_accuracy"), ("t",)),
}
"""Arrays of a run of K classes besides its tables, with their dimensions."""

TABLES_OF_SCORES = (
    "m", "bias", "label_shares", "fraction_selected", "pseudo_label_accuracy",
    "selected_label_accuracy", "train_loss",
)  # fmt: skip
"""Quantities that are read from the tables of a run of K classes; the others follow from them."""


def save(run: SolvedRun, path: str | Path) -> Path:
    """Write a run to a netCDF file."""
    if run.problem is None:
        accepted = "runs of a protocol cannot be saved: use to_xarray or to_frame"
        raise InvalidInput("path", str(path), accepted)
    return write_netcdf(as_dataset(run), path)


def as_dataset(run: SolvedRun) -> xr.Dataset:
    """Return the content of the file of a run."""
    stats = run.stats
    data = run.to_xarray()
    for name, kind in COUNTED.items():
        values = np.asarray(getattr(stats, name), dtype="i4" if kind is int else None)
        data[f"solver_{name}"] = ("t", values)
    data.attrs["solver"] = json.dumps({"tolerance": stats.tolerance, "start": list(stats.start)})
    for name, dims in (TESTED | EXACT if run.classes == 2 else SCORED).items():
        values = getattr(run, name)
        if values is None:
            continue
        data[name] = (dims[: values.ndim], values)
    fading, reuse = getattr(run, "fading", None), getattr(run, "reuse", None)
    if fading is not None:
        data["exponents"] = ("t", fading.exponents.astype(float))
        for name, values in fading.scaled.items():
            data[f"scaled_{name}"] = (TESTED.get(name, ("t",)), values)
    if reuse is not None:
        data = data.merge(reuse.to_dataset(), combine_attrs="no_conflicts")
    return data


class Kinds(NamedTuple):
    """The result types to create: `two` for two classes, `more` for K.

    (Passed as an argument, because importing them here would be circular.)
    """

    two: type[Trajectory]
    more: type[ClassTrajectory]


def load(kinds: Kinds, path: str | Path) -> Any:
    """Read a run that `save` wrote."""
    with stored(path, "Trajectory") as data:
        return from_dataset(kinds, data)


def from_dataset(kinds: Kinds, data: xr.Dataset) -> Any:
    """Return the run in a dataset made by `as_dataset`."""
    problem, solver = Problem.from_json(data.attrs["problem"]), json.loads(data.attrs["solver"])
    recipe = Recipe.from_json(data.attrs["recipe"])
    scored = problem.classes > 2
    names = [*STATE, *TESTED, *(name for name in EXACT if name in data)]
    if scored:
        names = [*TABLES_OF_SCORES, *SCORED]
    arrays: dict[str, Any] = {name: data[name].values.astype(float) for name in names}
    counted: dict[str, Any] = {
        name: data[f"solver_{name}"].values.astype(of) for name, of in COUNTED.items()
    }
    stats = SolverStats(solver["tolerance"], **counted, start=tuple(solver["start"]))
    collapsed = int(data.attrs["collapsed_at"])
    failure = json.loads(data.attrs["failure"])
    if not len(stats.start) == len(arrays["m"]) == problem.steps + 1 > collapsed:
        raise ValueError("its arrays do not fit its problem")
    arrays |= {
        "stats": stats,
        "collapsed_at": None if collapsed < 0 else collapsed,
        "failure": None if failure is None else StageError.from_dict(failure),
    }
    if scored:
        return kinds.more(protocol_of(problem, recipe), **arrays, problem=problem, recipe=recipe)
    if "weight_means" in data:
        arrays["space"] = space_of(problem.distinct_clusters)
    if "exponents" in data:
        scaled = {name: data[f"scaled_{name}"].values.astype(float) for name in DEGREES}
        arrays["fading"] = Fading(data["exponents"].values.astype(np.int64), scaled)
    return kinds.two(problem, recipe, **arrays, reuse=Reuse.from_dataset(data))
