"""Compute, draw, judge and record figures.

A run writes into its folder, for each figure, `<id>.png` and `<id>.pdf`, its data as netCDF, and
the record `<id>.json`: caption, claims and findings with the measured numbers, parameters, seeds,
versions. An interrupted and resumed run leaves the same files as an uninterrupted one: `points.db`
stores every computed point.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed

from ..runtime.files import delete_unfinished, replacing, write_netcdf, write_text
from ..runtime.parallel import cores
from ..runtime.progress import Progress, ProgressOption
from ..sweeps import Failure, Store, Task, complete
from .entry import Data, Figure
from .registry import figures
from .variation import varied

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

LIBRARIES = ("selftrain", "numpy", "scipy", "numba", "xarray", "matplotlib")
KEYS = {"quick", "claims", "findings", "caption", "from_paper", "chosen"}
"""The keys of a complete record."""


@dataclass(frozen=True)
class FigureOutcome:
    """The result of a figure: its record, or the points that could not be computed."""

    id: str
    record: Mapping[str, Any] | None
    failures: tuple[str, ...] = ()


def run(
    names: Iterable[str] = (),
    quick: bool = False,
    out: str | Path = "out/paper",
    *,
    workers: int = -1,
    progress: ProgressOption = None,
    notice: Callable[[str], None] = print,
    changes: Mapping[str, Any] | None = None,
) -> list[FigureOutcome]:
    """Reproduce figures into a folder.

    Arguments:
        names: ids of figures, their numbers in the paper ("fig4"), or ids of papers; default: all.
        quick: coarser grids and fewer seeds.
        out: the folder; created if it does not exist.
        workers: number of processes; -1: one per core; 0: this process.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        notice: called with a sentence about damaged points of the store, which are recomputed.
        changes: parameters to change; the names of the files then include the changes.
    """
    asked = [varied(one, changes) for one in figures(names)] if changes else figures(names)
    folder = writable(Path(out))
    delete_unfinished(folder)
    store = Store(folder / "points.db")
    tasks = {one.id: one.tasks(quick) for one in asked}
    failures = complete(
        [task for parts in tasks.values() for task in parts.values()],
        store,
        workers=workers,
        progress=progress,
        notice=notice,
    )
    failed = {one.id: _of(failures, tasks[one.id]) for one in asked}
    whole = [one for one in asked if not failed[one.id]]
    made = dict(_finish_all(whole, store, quick, folder, workers, progress))
    return [FigureOutcome(one.id, made.get(one.id), failed[one.id]) for one in asked]


def read_record(folder: str | Path, name: str) -> dict[str, Any] | None:
    """Read the record of a figure; None if there is none or it is damaged."""
    try:
        record = json.loads(Path(folder, f"{name}.json").read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError):
        return None
    whole = (
        isinstance(record, dict)
        and record.get("figure") == name
        and record.keys() >= KEYS
        and all("flips" in one for one in [*record["claims"], *record["findings"]])
    )
    return record if whole else None


def writable(folder: Path) -> Path:
    """Return the folder, created if needed; raise `OSError` if it cannot be written."""
    probe = folder / f".{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(folder)) from None
    return folder


def finish(one: Figure, quick: bool, folder: Path, data: Data) -> dict[str, Any]:
    """Draw and judge a figure and write its files; return its record."""
    for part, values in data.items():
        write_netcdf(values, folder / _data_name(one.id, part, len(data)))
    _save(one.draw(data), folder / one.id)
    record = _record(one, quick, data)
    write_text(folder / f"{one.id}.json", json.dumps(record, indent=1, allow_nan=False) + "\n")
    return record


def _of(failures: Iterable[Failure], tasks: Mapping[str, Task]) -> tuple[str, ...]:
    """Return the failures of these tasks."""
    return tuple(
        str(failure)
        for failure in failures
        if any(
            task.computation is failure.computation and failure.point in task.grid.points
            for task in tasks.values()
        )
    )


def _finish_all(
    whole: Sequence[Figure],
    store: Store,
    quick: bool,
    folder: Path,
    workers: int,
    progress: ProgressOption,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Finish figures in parallel; yield their ids with their records."""

    def data(one: Figure) -> Data:
        return {part: task.load(store) for part, task in one.tasks(quick).items()}

    # All data are loaded here: joblib asks for later jobs from other threads.
    jobs = [delayed(finish)(one, quick, folder, data(one)) for one in whole]
    # No memory maps: they would make the data read-only.
    parallel = Parallel(cores(workers), return_as="generator_unordered", max_nbytes=None)
    with Progress(len(whole), "figures", progress) as bar:
        for finished in parallel(jobs):
            yield finished["figure"], finished
            bar.advance()


def _record(one: Figure, quick: bool, data: Data) -> dict[str, Any]:
    tasks = one.tasks(quick)
    return {
        "figure": one.id,
        "title": one.title,
        "place": str(one.place),
        "number": one.place.number,
        "quick": quick,
        "caption": one.caption(data),
        "from_paper": one.from_paper,
        "chosen": one.chosen,
        "changes": {name: list(values) for name, values in one.changes.items()},
        "unchanged": {name: list(panels) for name, panels in one.unchanged.items()},
        "claims": [claim.to_dict() for claim in one.claims(data, not quick)],
        "findings": [finding.to_dict() for finding in one.findings(data, not quick)],
        "parameters": {
            part: {"computation": task.computation.name}
            | {"axes": dict(task.grid.axes), "fixed": dict(task.grid.fixed)}
            for part, task in tasks.items()
        },
        "seeds": {
            part: list(task.grid.axes["seed"])
            for part, task in tasks.items()
            if "seed" in task.grid.axes
        },
        "files": [
            f"{one.id}.png",
            f"{one.id}.pdf",
            *(_data_name(one.id, part, len(tasks)) for part in tasks),
        ],
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in LIBRARIES},
    }


def _data_name(name: str, part: str, parts: int) -> str:
    return f"{name}.nc" if parts == 1 else f"{name}.{part}.nc"


def _save(drawing: Drawing, path: Path) -> None:
    """Write PNG and PDF without the date, so that the same data give the same files."""
    undated: dict[str, dict[str, None]] = {"png": {}, "pdf": {"CreationDate": None}}
    for suffix, metadata in undated.items():
        with replacing(path.with_name(f"{path.name}.{suffix}")) as part:
            drawing.savefig(part, format=suffix, metadata=metadata)
