"""`complete`: compute the points of some tasks that the store does not have yet.

Points of all tasks are mixed, each different one computed once, the longest first, cheap ones several
at a time. Each is stored as it comes back, so an interrupt or a kill costs only what was under way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import SelfTrainError
from ..runtime.files import forget_parts
from ..runtime.parallel import local_processes, stop_now
from ..runtime.progress import Progress
from .computation import Computation
from .gather import gather
from .grid import Grid, Point
from .store import DamagedPoint, Finished, Store

if TYPE_CHECKING:
    import xarray as xr

BATCH_SECONDS = 0.5
"""Points are put together until they are expected to take this long."""


@dataclass(frozen=True)
class Task:
    """A computation at the points of a grid."""

    computation: Computation
    grid: Grid

    @property
    def seconds(self) -> float:
        """About how long all points take, one after the other."""
        return sum(self.computation.seconds(**point) for point in self.grid.points)

    def stored(self, store: Store) -> int:
        """How many points are in the store (damaged ones included until they are read)."""
        return sum(store.path(self.computation, point).is_file() for point in self.grid.points)

    def load(self, store: Store) -> xr.Dataset:
        """The whole as a dataset; every point must be there."""
        found = [store.read(self.computation, point) for point in self.grid.points]
        return gather(self.computation, self.grid, [_there(one).values for one in found])

    def taken(self, store: Store) -> float:
        """Seconds of processor time that all points took when they were computed."""
        found = [store.read(self.computation, point) for point in self.grid.points]
        return sum(_there(one).seconds for one in found)


@dataclass(frozen=True)
class Failure:
    """A point that could not be computed, and why."""

    computation: Computation
    point: Point
    reason: str

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.point.items())
        return f"{self.computation.name.rpartition('.')[2]}({parameters}): {self.reason}"


@dataclass(frozen=True)
class _Job:
    computation: Computation
    point: Point
    seconds: float


def complete(
    tasks: Iterable[Task],
    store: Store,
    *,
    workers: int = -1,
    progress: bool | None = None,
    notice: Callable[[str], None] = print,
    processes: Callable[[int], Executor] = local_processes,
) -> list[Failure]:
    """Compute and store every point that is missing; say which could not be computed.

    Arguments:
        tasks: what to compute.
        store: where finished points are kept.
        workers: processes at once; -1: as many as there are cores; 0: none, all work is done here.
        progress: show a bar with the time left; default: on a terminal only.
        notice: is told of each damaged point, which is computed anew.
        processes: makes an executor with so many workers.

    >>> import tempfile
    >>> from selftrain.sweep import Output
    >>> def double(x): return {"twice": 2 * x}
    >>> task = Task(Computation(double, {"twice": Output("2x")}), Grid({"x": (1.0, 2.0)}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     failures = complete([task], store, workers=0)
    ...     task.load(store)["twice"].values.tolist()
    [2.0, 4.0]
    """
    forget_parts(store.folder)
    missing = _missing(tasks, store, notice)
    failures: list[Failure] = []
    batches = _batches(missing)
    expected = sum(job.seconds for job in missing)
    with Progress(len(missing), "points", progress, expected) as bar:
        here = ((batch, _compute(_works(batch))) for batch in batches)
        for batch, results in here if workers == 0 else _spread(batches, processes, workers):
            for job, (values, seconds, reason) in zip(batch, results, strict=True):
                bar.advance(failed=values is None, expected=job.seconds)
                if values is None:
                    failures.append(Failure(job.computation, job.point, reason))
                else:
                    store.write(job.computation, job.point, values, seconds)
    return failures


def _missing(tasks: Iterable[Task], store: Store, notice: Callable[[str], None]) -> list[_Job]:
    """Points without stored values, each once, those that take longest first."""
    jobs: dict[str, _Job] = {}
    for task in tasks:
        for point in task.grid.points:
            key = task.computation.key(point)
            if key in jobs:
                continue
            try:
                if store.read(task.computation, point) is not None:
                    continue
            except DamagedPoint as error:
                notice(f"computed anew, damaged: {error}")
            jobs[key] = _Job(task.computation, point, task.computation.seconds(**point))
    return sorted(jobs.values(), key=lambda job: -job.seconds)


def _batches(jobs: Sequence[_Job]) -> list[list[_Job]]:
    """Jobs of one computation put together until they are worth the trip to another process."""
    batches: list[list[_Job]] = []
    open_batch: dict[str, tuple[list[_Job], float]] = {}
    for job in jobs:
        batch, seconds = open_batch.get(job.computation.name, ([], BATCH_SECONDS))
        if seconds + job.seconds > BATCH_SECONDS:
            batch, seconds = [], 0.0
            batches.append(batch)
        batch.append(job)
        open_batch[job.computation.name] = (batch, seconds + job.seconds)
    return batches


Result = tuple[dict[str, Any] | None, float, str]
"""Values (None if there are none), seconds of processor time, and why there are none."""


def _compute(works: Sequence[tuple[Callable[..., Mapping[str, Any]], Point]]) -> list[Result]:
    """What each function gives at its point; this is all that runs in another process."""
    results: list[Result] = []
    for function, point in works:
        begin = time.process_time()
        try:
            values = dict(function(**point))
        except (SelfTrainError, ArithmeticError, MemoryError) as error:
            results.append((None, 0.0, f"{type(error).__name__}: {error}"))
        else:
            results.append((values, time.process_time() - begin, ""))
    return results


def _works(batch: Sequence[_Job]) -> list[tuple[Callable[..., Mapping[str, Any]], Point]]:
    return [(job.computation.function, job.point) for job in batch]


def _spread(
    batches: Sequence[list[_Job]], processes: Callable[[int], Executor], workers: int
) -> Iterable[tuple[list[_Job], list[Result]]]:
    """Batches computed by workers, as they finish."""
    if not batches:
        return
    executor = processes(workers)
    try:
        sent = {executor.submit(_compute, _works(batch)): batch for batch in batches}
        for future in as_completed(sent):
            yield sent[future], future.result()
    except BrokenExecutor as error:
        stop_now(executor)
        raise SelfTrainError(_why_broken(error)) from error
    except BaseException:
        stop_now(executor)
        raise
    executor.shutdown()


def _why_broken(error: BrokenExecutor) -> str:
    """Why no worker is left: work that they could not load, or something from outside that ended one."""
    if error.__cause__ is not None:
        reason = str(error.__cause__).strip(" \n\"'").rpartition("\n")[2]
        return (
            f"a worker could not load its work ({reason}): functions must be importable from there"
        )
    return (
        "a process that computed points was ended from outside, perhaps for want of memory; "
        "finished points are kept, and fewer workers need less"
    )


def _there(found: Finished | None) -> Finished:
    if found is None:
        raise SelfTrainError("a point of the sweep is not in the store; `complete` computes it")
    return found
