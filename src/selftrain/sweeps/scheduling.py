"""`complete`: compute the missing points of some tasks and store them.

Each distinct point of all tasks is computed once, the longest first, cheap ones in batches. A batch
is stored as soon as it is finished, so an interrupt or a kill loses only the running batches.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InvalidInput, SelfTrainError
from ..runtime.parallel import cores
from ..runtime.progress import Progress, ProgressOption
from .computation import Computation, default_seconds
from .executors import ProcessExecutor, SequentialExecutor
from .grid import Grid, Point
from .store import Finished, Memory
from .worker import KILLED, OTHER_FUNCTION, Batch, Limits, PackedFunction, Result, pack_function

if TYPE_CHECKING:
    import xarray as xr

TRIAL_SECONDS, WORTH_SECONDS = 1.0, 4.0
"""With `workers=None`: the time for which this process computes alone, and the expected remaining
time above which it then starts other processes.
"""

POLL_SECONDS = 1.0
"""Time between two checks of an executor that returns nothing."""

BATCH_SECONDS = 0.5
"""Expected duration of a batch of cheap points: sending it and storing it in a transaction take
milliseconds.
"""

TAIL_PARTS = 3
"""A batch has at most the fraction 1 / TAIL_PARTS of the remaining work per worker, so that all
workers finish at about the same time.
"""

BATCHES_PER_WORKER = 2
"""Batches sent to each worker: one is computed, one is waiting."""

MAX_LOSSES = 5
"""A point whose worker (on a cluster) was lost this often has failed. From the second loss on, it
was the only point being computed.
"""


@dataclass(frozen=True)
class Task:
    """A computation at the points of a grid.

    Attributes:
        names: the outputs that are needed; all by default.
    """

    computation: Computation
    grid: Grid
    names: tuple[str, ...] | None = None
    _keys: dict[type, list[str]] = field(default_factory=dict, init=False, compare=False)

    def keys(self, store: Memory) -> list[str]:
        """Return the keys of the points in a store of this type (cached: it takes a while)."""
        if type(store) not in self._keys:
            found = [store.key(self.computation, point) for point in self.grid.points]
            self._keys[type(store)] = found
        return self._keys[type(store)]

    @property
    def seconds(self) -> float:
        """Estimated time for all points, computed sequentially."""
        return sum(self.computation.seconds(**point) for point in self.grid.points)

    def find(self, store: Memory) -> list[Finished | None]:
        """Return the stored points in grid order; None where needed values are missing."""
        needed = tuple(self.computation.outputs or ()) if self.names is None else self.names
        return [store.get(key, needed) for key in self.keys(store)]

    def stored(self, store: Memory) -> int:
        """Return the number of points whose values are in the store."""
        return sum(one is not None and one.reason is None for one in self.find(store))

    def load(self, store: Memory) -> xr.Dataset:
        """Return all points as a dataset; raise if any is missing."""
        from .dataset import gather

        values = [one.values for one in self._all_done(store)]
        data = gather(self.grid, self.computation.outputs, values)
        return data.assign_attrs(computation=self.computation.name)

    def taken(self, store: Memory) -> float:
        """Return the processor time that all points took, in seconds."""
        return sum(one.seconds for one in self._all_done(store))

    def _all_done(self, store: Memory) -> list[Finished]:
        found = self.find(store)
        done = [one for one in found if one is not None and one.reason is None]
        if len(done) < len(found):
            damage = "".join(f"; damaged: {reason}" for reason in store.damage[:1])
            raise SelfTrainError(
                f"{len(found) - len(done)} of {len(found)} points are not in the store; "
                f"`complete` computes them{damage}"
            )
        return done


@dataclass(frozen=True)
class Failure:
    """A point that could not be computed, and the reason."""

    computation: Computation
    point: Point
    reason: str

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.point.items())
        return f"{self.computation.name.rpartition('.')[2]}({parameters}): {self.reason}"


class Job(NamedTuple):
    """A point to compute, and its estimated seconds."""

    key: str
    computation: Computation
    point: Point
    seconds: float


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
    """Compute and store all missing points; return those that failed.

    Arguments:
        tasks: what to compute.
        store: where finished points go: a `Store`, or `Memory`.
        workers: number of processes; -1: one per core; 0: this process; None: this process first,
            and others if enough work is left.
        scheduler: address of a Dask scheduler, or a `distributed.Client`, to compute there instead.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        notice: called with a sentence about each damage of the store; damaged points are computed
            again.
        retry: compute again the points that failed before; otherwise they remain failed.
        limits: limits of time and memory for each point.
        only: positions of the points in their grids; all by default.

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
                    for jobs, results in _finished_batches(queue, executor, stop):
                        pairs = list(zip(jobs, results, strict=True))
                        store.add([_finished(*pair) for pair in pairs])
                        failed = [
                            Failure(job.computation, job.point, result.reason)
                            for job, result in pairs
                            if result.reason is not None
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
    """Return the distinct points to compute, longest first, and earlier failures not retried."""
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
) -> Iterator[tuple[SequentialExecutor, Callable[[], bool]]]:
    """Yield the executors to use in turn, each with a condition for moving on to the next.

    A time limit needs child processes, which can be killed.
    """
    if queue and workers is None and scheduler is None and limits.seconds is None:
        end, several = time.monotonic() + TRIAL_SECONDS, cores(-1) > 1
        yield (
            SequentialExecutor(),
            lambda: several and time.monotonic() > end and queue.seconds > WORTH_SECONDS,
        )
    if queue and scheduler is not None:
        from .dask_cluster import DaskExecutor

        yield (
            scheduler if isinstance(scheduler, DaskExecutor) else DaskExecutor(scheduler),
            lambda: False,
        )
    elif queue and workers == 0 and limits.seconds is None:
        yield SequentialExecutor(), lambda: False
    elif queue:
        yield ProcessExecutor(-1 if workers is None else workers), lambda: False


class Queue:
    """Waiting jobs, handed out in batches whose size follows from measured times.

    Attributes:
        slots: number of batches computed at once.
        resent: lost batches, which are handed out first.
    """

    def __init__(self, jobs: Iterable[Job], store: Memory, limits: Limits) -> None:
        self.slots = 1
        self.resent: deque[list[Job]] = deque()
        self._store, self._limits = store, limits
        self._waiting: dict[int, deque[Job]] = {}
        self._measured: dict[int, float] = {}  # time taken over time estimated, by computation
        self._packed: dict[int, PackedFunction] = {}
        for job in jobs:
            self._waiting.setdefault(id(job.computation), deque()).append(job)
            if job.computation.seconds is not default_seconds:
                self._measured[id(job.computation)] = 1.0

    def __bool__(self) -> bool:
        return bool(self.resent) or any(self._waiting.values())

    @property
    def seconds(self) -> float:
        """Expected remaining time in seconds, computed sequentially."""
        return sum(self._expected(job) for jobs in self._waiting.values() for job in jobs)

    def take(self) -> list[Job]:
        """Return the next batch, of the computation whose next point is expected to take longest.

        A computation whose speed is still unknown gives batches of one point.
        """
        if self.resent:
            return self.resent.popleft()
        jobs = max(filter(None, self._waiting.values()), key=lambda jobs: self._expected(jobs[0]))
        taken, room = [jobs.popleft()], 0.0
        if id(taken[0].computation) in self._measured:
            left = len(jobs) * self._expected(taken[0])
            room = min(BATCH_SECONDS, left / (TAIL_PARTS * self.slots)) - self._expected(taken[0])
        while jobs and room >= self._expected(jobs[0]):
            room -= self._expected(jobs[0])
            taken.append(jobs.popleft())
        return taken

    def learn(self, jobs: Sequence[Job], results: Sequence[Result]) -> None:
        """Update the measured speed, by a moving average: the time of the first point may include
        the compilation of kernels.
        """
        which, expected = id(jobs[0].computation), sum(job.seconds for job in jobs)
        ratio = max(sum(result.seconds for result in results), 1e-6) / max(expected, 1e-6)
        self._measured[which] = 0.5 * (self._measured.get(which, ratio) + ratio)

    def _expected(self, job: Job) -> float:
        return job.seconds * self._measured.get(id(job.computation), 1.0)

    def packed(self, jobs: Sequence[Job], by_value: bool = False) -> Batch:
        """Return jobs with their pickled function.

        The function is pickled only once, since calls may change its state. `by_value`: pickle it
        again, together with the user's modules in their present state; later batches use that.
        """
        one = jobs[0].computation
        if id(one) not in self._packed or by_value:
            self._packed[id(one)] = pack_function(one, type(self._store) is not Memory, by_value)
        return Batch(self._packed[id(one)], [job.point for job in jobs], self._limits)


def _finished_batches(
    queue: Queue, executor: SequentialExecutor, stop: Callable[[], bool]
) -> Iterator[tuple[Sequence[Job], list[Result]]]:
    """Yield jobs with their results as they finish.

    Lost batches are sent again. From the second loss on their points are sent one by one, with
    nothing else running, to find the one that kills its worker.
    """
    queue.slots = executor.slots
    running: dict[Future[list[Result]], tuple[list[Job], Batch]] = {}
    suspects: deque[list[Job]] = deque()
    losses: dict[str, int] = {}

    def send(jobs: list[Job]) -> None:
        batch = queue.packed(jobs)
        running[executor.submit(batch)] = jobs, batch

    while running or suspects or (queue and not stop()):
        if suspects and not running:
            send(suspects.popleft())
        while queue and not suspects and len(running) < BATCHES_PER_WORKER * queue.slots:
            send(queue.take())
            if any(future.done() for future in running):
                break  # store what is finished before more is started
        done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        executor.check()
        fatal = None
        for future in done:
            jobs, batch = running.pop(future)
            try:
                results = future.result()
            except executor.lost:
                for job in jobs:
                    losses[job.key] = losses.get(job.key, 0) + 1
                if losses[jobs[0].key] == 1:
                    queue.resent.append(jobs)
                elif losses[jobs[0].key] < MAX_LOSSES or len(jobs) > 1:
                    suspects.extend([job] for job in jobs)
                else:
                    yield jobs, [Result(None, 0.0, KILLED)]
                continue
            if results[-1].reason == OTHER_FUNCTION and not batch.function.by_value:
                with suppress(InvalidInput):
                    queue.packed(jobs, by_value=True)
                    queue.resent.append(jobs)
                    continue
            if results[-1].fatal:
                fatal = results.pop().reason
            if results:
                queue.learn(jobs[: len(results)], results)
                yield jobs[: len(results)], results
        if fatal is not None:
            raise SelfTrainError(fatal)
