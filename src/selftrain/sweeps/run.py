"""`complete`: compute the points of some tasks that are not stored yet.

Points of all tasks are mixed, each different one computed once, the longest first, cheap ones
several at a time. A batch is stored as it comes back, so an interrupt or a kill costs only what was
under way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidInput, SelfTrainError
from ..runtime.parallel import cores
from ..runtime.progress import Progress, ProgressOption
from .computation import Computation, a_moment
from .grid import Grid, Point
from .store import Finished, Memory
from .worker import DIFFERS, ENDED, Batch, Children, Limits, Packed, Result, pack_function
from .worker import results as compute_here

if TYPE_CHECKING:
    import xarray as xr

SAMPLE_SECONDS, WORTH_SECONDS = 1.0, 4.0
"""Work begins in this process for so long; more left than this is worth the start of others."""

LOOK = 1.0
"""Seconds between two looks at what does not come back."""

BATCH_SECONDS = 0.5
"""Points are put together until they are expected to take this long: a trip and a transaction cost
milliseconds.
"""

SHARES = 3
"""At the end a batch is at most this part of what a worker still has to expect, so that all end
together.
"""

AHEAD = 2
"""Batches sent per worker: one is computed, one waits next to it."""

MOST_LOSSES = 5
"""A point that was lost this often together with the worker of a cluster that watched it, the last
times with nothing else under way, has failed.
"""


@dataclass(frozen=True)
class Task:
    """A computation at the points of a grid.

    Attributes:
        names: the outputs that are needed; default: all of them.
    """

    computation: Computation
    grid: Grid
    names: tuple[str, ...] | None = None
    _keys: dict[type, list[str]] = field(default_factory=dict, init=False, compare=False)

    def keys(self, store: Memory) -> list[str]:
        """Return what the points are known by; worked out once, since it takes its time."""
        if type(store) not in self._keys:
            found = [store.key(self.computation, point) for point in self.grid.points]
            self._keys[type(store)] = found
        return self._keys[type(store)]

    @property
    def seconds(self) -> float:
        """About how long all points take, one after the other."""
        return sum(self.computation.seconds(**point) for point in self.grid.points)

    def find(self, store: Memory) -> list[Finished | None]:
        """Return what is stored of every point; None where values are missing that are needed."""
        needed = tuple(self.computation.outputs or ()) if self.names is None else self.names
        return [store.get(key, needed) for key in self.keys(store)]

    def stored(self, store: Memory) -> int:
        """Return how many points have values in the store."""
        return sum(one is not None and one.reason is None for one in self.find(store))

    def load(self, store: Memory) -> xr.Dataset:
        """Return the whole as a dataset; every point must be there."""
        from .dataset import gather

        values = [one.values for one in self._whole(store)]
        data = gather(self.grid, self.computation.outputs, values)
        return data.assign_attrs(computation=self.computation.name)

    def taken(self, store: Memory) -> float:
        """Return the seconds of processor time that all points took when they were computed."""
        return sum(one.seconds for one in self._whole(store))

    def _whole(self, store: Memory) -> list[Finished]:
        found = self.find(store)
        there = [one for one in found if one is not None and one.reason is None]
        if len(there) < len(found):
            hurt = "".join(f"; damaged: {reason}" for reason in store.damage[:1])
            raise SelfTrainError(
                f"{len(found) - len(there)} of {len(found)} points are not in the store; "
                f"`complete` computes them{hurt}"
            )
        return there


@dataclass(frozen=True)
class Failure:
    """A point that could not be computed, and why."""

    computation: Computation
    point: Point
    reason: str

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.point.items())
        return f"{self.computation.name.rpartition('.')[2]}({parameters}): {self.reason}"


class Job(NamedTuple):
    """A point to compute, and its expected seconds."""

    key: str
    computation: Computation
    point: Point
    seconds: float


class Here:
    """This process, which computes one batch after the other; other executors differ from it.

    Attributes:
        slots: batches that can be computed at once.
        lost: errors of a batch that say nothing about it: it is sent again.
    """

    slots = 1
    lost: tuple[type[BaseException], ...] = ()

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Begin a batch; here, return it finished."""
        future: Future[list[Result]] = Future()
        future.set_result(list(compute_here(batch)))
        return future

    def check(self) -> None:
        """Raise if there is nothing left to wait for."""

    def close(self, now: bool = False) -> None:
        """End it; at once, or when all batches are done."""


class Processes(Here):
    """Processes of this machine with one thread of linear algebra each; -1: as many as cores. For
    each of them a thread waits for what it computes.
    """

    def __init__(self, workers: int) -> None:
        self.slots = cores(workers)
        self._children, self._threads = Children(), ThreadPoolExecutor(self.slots)

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Begin a batch."""
        return self._threads.submit(self._children.compute, batch)

    def close(self, now: bool = False) -> None:
        """End the processes."""
        if now:
            self._children.close()
        self._threads.shutdown(cancel_futures=now)
        self._children.close()


def complete(
    tasks: Iterable[Task],
    store: Memory,
    *,
    workers: int | None = -1,
    scheduler: Any = None,
    progress: ProgressOption = None,
    notice: Callable[[str], None] = print,
    retry: bool = True,
    limits: Limits | None = None,
    only: Sequence[int] | None = None,
) -> list[Failure]:
    """Compute and store every point that is missing; return those that could not be computed.

    Arguments:
        tasks: what to compute.
        store: where finished points go: a `Store`, or `Memory`.
        workers: processes at once; -1: all cores; 0: in this process; None: work begins in this
            process, and others are started if it is worth it.
        scheduler: address of a Dask scheduler, or a `distributed.Client`, to compute there instead.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        notice: is called with a sentence about each damage, whose points are computed again.
        retry: compute points again that failed before; else their failure stands.
        limits: the most that a point may take.
        only: positions of points in their grids, if not all are meant.

    >>> import tempfile
    >>> from selftrain.sweeps import Output, Store
    >>> def double(x): return {"twice": 2 * x}
    >>> task = Task(Computation(double, {"twice": Output("2x")}), Grid({"x": (1.0, 2.0)}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/points.db")
    ...     failures = complete([task], store, workers=0)
    ...     task.load(store)["twice"].values.tolist()
    [2.0, 4.0]
    """
    limits = limits or Limits()
    with store.writing():
        while store.damage:
            notice(f"damaged, its points are computed again: {store.damage.pop(0)}")
        missing, failures = _missing(tasks, store, retry, only)
        queue = Queue(missing, store, limits)
        with Progress(len(missing), "points", progress, queue.seconds) as bar:
            for executor, stop in _executors(queue, workers, scheduler, limits):
                try:
                    for jobs, results in _stream(queue, executor, stop):
                        store.add([_finished(*both) for both in zip(jobs, results, strict=True)])
                        reasons = [result.reason for result in results]
                        failed = [
                            Failure(job.computation, job.point, reason)
                            for job, reason in zip(jobs, reasons, strict=True)
                            if reason is not None
                        ]
                        failures += failed
                        expected = sum(job.seconds for job in jobs)
                        bar.advance(len(jobs), failed=len(failed), expected=expected)
                except BaseException:
                    executor.close(now=True)
                    raise
                executor.close()
    return failures


def _finished(job: Job, result: Result) -> Finished:
    name = job.computation.name
    return Finished(job.key, result.values or {}, result.seconds, result.reason, name, job.point)


def _missing(
    tasks: Iterable[Task], store: Memory, retry: bool, only: Sequence[int] | None
) -> tuple[list[Job], list[Failure]]:
    """Return points without values, each once, the longest first; and failures that stand."""
    jobs: dict[str, Job] = {}
    failures: list[Failure] = []
    for task in tasks:
        keys, found = task.keys(store), task.find(store)
        for place in range(len(task.grid)) if only is None else only:
            key, one, point = keys[place], found[place], task.grid.points[place]
            if one is not None and one.reason is not None and not retry:
                failures.append(Failure(task.computation, point, one.reason))
            elif (one is None or one.reason is not None) and key not in jobs:
                seconds = task.computation.seconds(**point)
                jobs[key] = Job(key, task.computation, point, seconds)
    return sorted(jobs.values(), key=lambda job: -job.seconds), failures


def _executors(
    queue: Queue, workers: int | None, scheduler: Any, limits: Limits
) -> Iterator[tuple[Here, Callable[[], bool]]]:
    """Yield where to compute, and when to continue elsewhere; a limit of time needs a process that
    can be ended.
    """
    if queue and workers is None and scheduler is None and limits.seconds is None:
        end, several = time.monotonic() + SAMPLE_SECONDS, cores(-1) > 1
        yield Here(), lambda: several and time.monotonic() > end and queue.seconds > WORTH_SECONDS
    if queue and scheduler is not None:
        from .cluster import Cluster

        yield scheduler if isinstance(scheduler, Cluster) else Cluster(scheduler), lambda: False
    elif queue and workers == 0 and limits.seconds is None:
        yield Here(), lambda: False
    elif queue:
        yield Processes(-1 if workers is None else workers), lambda: False


class Queue:
    """Jobs that wait, given out in batches whose size follows from the time that others took;
    `back` has batches to be taken next.
    """

    def __init__(self, jobs: Iterable[Job], store: Memory, limits: Limits) -> None:
        self.slots = 1
        self._store, self._limits = store, limits
        self._waiting: dict[int, deque[Job]] = {}
        self.back: deque[list[Job]] = deque()
        self._pace: dict[int, float] = {}
        self._packed: dict[int, Packed] = {}
        for job in jobs:
            self._waiting.setdefault(id(job.computation), deque()).append(job)
            if job.computation.seconds is not a_moment:
                self._pace[id(job.computation)] = 1.0

    def __bool__(self) -> bool:
        return bool(self.back) or any(self._waiting.values())

    @property
    def seconds(self) -> float:
        """What is still expected, one point after the other."""
        return sum(self._expected(job) for jobs in self._waiting.values() for job in jobs)

    def take(self) -> list[Job]:
        """Take the next batch: of the computation whose next point takes longest."""
        if self.back:
            return self.back.popleft()
        jobs = max(filter(None, self._waiting.values()), key=lambda jobs: self._expected(jobs[0]))
        taken, room = [jobs.popleft()], 0.0
        if id(taken[0].computation) in self._pace:
            left = len(jobs) * self._expected(taken[0])
            room = min(BATCH_SECONDS, left / (SHARES * self.slots)) - self._expected(taken[0])
        while jobs and room >= self._expected(jobs[0]):
            room -= self._expected(jobs[0])
            taken.append(jobs.popleft())
        return taken

    def learn(self, jobs: Sequence[Job], results: Sequence[Result]) -> None:
        """Note how long points took, against what was expected; the first, which may compile,
        counts less and less.
        """
        which, expected = id(jobs[0].computation), sum(job.seconds for job in jobs)
        pace = max(sum(result.seconds for result in results), 1e-6) / max(expected, 1e-6)
        self._pace[which] = 0.5 * (self._pace.get(which, pace) + pace)

    def _expected(self, job: Job) -> float:
        return job.seconds * self._pace.get(id(job.computation), 1.0)

    def packed(self, jobs: Sequence[Job], whole: bool = False) -> Batch:
        """Return jobs as they travel; `whole`: from now on the modules of the user travel, too, as
        they are here.
        """
        one = jobs[0].computation
        if id(one) not in self._packed or whole:
            self._packed[id(one)] = pack_function(one, type(self._store) is not Memory, whole)
        return Batch(self._packed[id(one)], [job.point for job in jobs], self._limits)


def _stream(
    queue: Queue, executor: Here, stop: Callable[[], bool]
) -> Iterator[tuple[Sequence[Job], list[Result]]]:
    """Yield jobs with their results, as they finish; those that were lost are sent again, from the
    second time on one by one with nothing else under way.
    """
    queue.slots = executor.slots
    flying: dict[Future[list[Result]], tuple[list[Job], Batch]] = {}
    suspects: deque[list[Job]] = deque()
    losses: dict[str, int] = {}

    def send(jobs: list[Job]) -> None:
        batch = queue.packed(jobs)
        flying[executor.submit(batch)] = jobs, batch

    while flying or suspects or (queue and not stop()):
        if suspects and not flying:
            send(suspects.popleft())
        while queue and not suspects and len(flying) < AHEAD * queue.slots:
            send(queue.take())
            if any(future.done() for future in flying):
                break  # store what is finished before more is begun
        done, _ = wait(flying, timeout=LOOK, return_when=FIRST_COMPLETED)
        executor.check()
        end = None
        for future in done:
            jobs, batch = flying.pop(future)
            try:
                results = future.result()
            except executor.lost:
                for job in jobs:
                    losses[job.key] = losses.get(job.key, 0) + 1
                if losses[jobs[0].key] == 1:
                    queue.back.append(jobs)
                elif losses[jobs[0].key] < MOST_LOSSES or len(jobs) > 1:
                    suspects.extend([job] for job in jobs)
                else:
                    yield jobs, [Result(None, 0.0, ENDED)]
                continue
            if results[-1].reason == DIFFERS and not batch.function.whole:
                with suppress(InvalidInput):
                    queue.packed(jobs, whole=True)
                    queue.back.append(jobs)
                    continue
            if results[-1].ends:
                end = results.pop().reason
            if results:
                queue.learn(jobs[: len(results)], results)
                yield jobs[: len(results)], results
        if end is not None:
            raise SelfTrainError(end)
