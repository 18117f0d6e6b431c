"""Runs in files: what `Trajectory.save` writes and `Trajectory.load` reads.

A file has every quantity over the steps and how they were found. To that comes what the kind of the
run adds: the parts of the weights where rows are used again (`memory.result`), the laws of the
weights on clusters with a shape (`shapes.trajectory`, `memory.shaped_trajectory`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StageError
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.files import stored, write_netcdf
from .trajectory import STATE, SolverStats, Trajectory

if TYPE_CHECKING:
    import xarray as xr


def save(run: Trajectory, path: str | Path) -> Path:
    """Write a run to a netCDF file."""
    return write_netcdf(as_dataset(run), path)


def as_dataset(run: Trajectory) -> xr.Dataset:
    """All that a file has of a run."""
    stats = run.stats
    data = run.to_xarray()
    data["solver_evaluations"] = ("t", np.asarray(stats.evaluations, dtype="i4"))
    data["solver_nodes"] = ("t", np.asarray(stats.nodes, dtype="i4"))
    data["solver_accuracy"] = ("t", stats.accuracy)
    data.attrs["solver"] = json.dumps({"tolerance": stats.tolerance, "start": list(stats.start)})
    for part in run.parts():
        data = data.merge(part, combine_attrs="no_conflicts")
    return data


def load(path: str | Path) -> Trajectory:
    """Read what `save` wrote."""
    with stored(path, "Trajectory") as data:
        return from_dataset(data)


def from_dataset(data: xr.Dataset) -> Trajectory:
    """The run of a dataset that `as_dataset` made."""
    problem = Problem.from_json(data.attrs["problem"])
    stats = _stats(data)
    state: dict[str, Any] = {name: data[name].values.astype(float) for name in STATE}
    collapsed = int(data.attrs["collapsed_at"])
    failure = json.loads(data.attrs["failure"])
    if not len(stats.start) == len(state["m"]) == problem.steps + 1 > collapsed:
        raise ValueError("its arrays do not fit its problem")
    kind = _kind(data)
    return kind(
        problem,
        Recipe.from_json(data.attrs["recipe"]),
        **state,
        stats=stats,
        collapsed_at=None if collapsed < 0 else collapsed,
        failure=None if failure is None else StageError.from_dict(failure),
        **kind.from_parts(data, problem),
    )


def _stats(data: xr.Dataset) -> SolverStats:
    solver = json.loads(data.attrs["solver"])
    return SolverStats(
        solver["tolerance"],
        data["solver_evaluations"].values.astype(int),
        data["solver_nodes"].values.astype(int),
        data["solver_accuracy"].values.astype(float),
        tuple(solver["start"]),
    )


def _kind(data: xr.Dataset) -> type[Trajectory]:
    """The class of a stored run, by what it adds."""
    if "shape_pairs" in data:
        from .memory.shaped_trajectory import ShapedMemoryTrajectory

        return ShapedMemoryTrajectory
    if "shape_means" in data:
        from .shapes.trajectory import ShapedTrajectory

        return ShapedTrajectory
    return Trajectory
