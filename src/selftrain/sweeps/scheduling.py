"""`complete`: compute the missing points of some tasks and store them.

Each distinct point of all tasks is computed once, the longest first, cheap ones in batches. A batch
is stored as soon as it is finished, so an interrupt or a kill loses only the running batches.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import Any, NamedTuple

from ..errors import InvalidInput, SelfTrainError
from ..runtime.parallel import cores
from ..runtime.progress import Progress, ProgressOption
from .computation import DEFAULT_SECONDS, Computation, Failure, Task
from .executors import KILLED, Batch, Limits, ProcessExecutor, Result, SequentialExecutor
from .grid import Point
from .packing import OTHER_FUNCTION, PackedFunction, pack_function
from .store import Finished, Memory

TRIAL_SECONDS, WORTH_SECONDS = 1.0, 4.0
"""With `workers=None`: the time for which this process computes alone, and the expected remaining
time above which it then starts other processes.
"""

POLL_SECONDS = 1.0
"""Time between two checks of an executor that returns nothing."""

BATCH_SECONDS, TAIL_PARTS = 0.5, 3
"""Expected duration of a batch of cheap points (sending and storing it takes milliseconds), and the
largest fraction, 1 / TAIL_PARTS, of the remaining work of a worker in it, so that all workers
finish at about the same time.
"""

BATCHES_PER_WORKER = 2
"""Batches sent to each worker: one is computed, one is waiting."""

MAX_LOSSES = 5
"""A point whose worker (on a cluster) was lost this often has failed; from the second time on, it
was the only point being computed.
"""


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

    >>> import tempfile
    >>> from selftrain.sweeps import Grid, Output, Store
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
        missing, failures = _missing(tasks, store, retry)
        queue = Queue(missing)
        with Progress(len(missing), "points", progress, queue.seconds) as bar:
            for executor, stop in _executors(queue, workers, scheduler, limits):
                with executor:
                    for batch in _finished_batches(queue, executor, limits, stop):
                        store.add([_finished(job, result) for job, result in batch])
                        failed = [
                            Failure(job.computation, job.point, result.reason)
                            for job, result in batch
                            if result.reason is not None
                        ]
                        failures += failed
                        expected = sum(job.seconds for job, _ in batch)
                        bar.advance(len(batch), failed=len(failed), expected=expected)
    return failures


def _finished(job: Job, result: Result) -> Finished:
    name = job.computation.name
    return Finished(job.key, result.values or {}, result.seconds, result.reason, name, job.point)


def _missing(tasks: Iterable[Task], store: Memory, retry: bool) -> tuple[list[Job], list[Failure]]:
    """Return the distinct points to compute, longest first, and earlier failures not retried."""
    jobs: dict[str, Job] = {}
    failures: list[Failure] = []
    for task in tasks:
        work = task.computation
        for key, one, point in zip(
            task.keys(store), task.find(store), task.grid.points, strict=True
        ):
            if one is not None and one.reason is not None and not retry:
                failures.append(Failure(work, point, one.reason))
            elif (one is None or one.reason is not None) and key not in jobs:
                jobs[key] = Job(key, work, point, work.seconds(**point))
    return sorted(jobs.values(), key=lambda job: -job.seconds), failures


def _executors(
    queue: Queue, workers: int | None, scheduler: Any, limits: Limits
) -> Iterator[tuple[SequentialExecutor, Callable[[], bool]]]:
    """Yield the executors to use in turn, each with a condition for moving on to the next.

    A time limit needs child processes, which can be killed.
    """
    here = scheduler is None and limits.seconds is None
    if queue and here and workers is None and cores(-1) > 1:
        end = time.monotonic() + TRIAL_SECONDS
        yield (
            SequentialExecutor(),
            lambda: time.monotonic() > end and queue.seconds > WORTH_SECONDS,
        )
    if queue and scheduler is not None:
        from .dask_cluster import DaskExecutor

        cluster = scheduler if isinstance(scheduler, DaskExecutor) else DaskExecutor(scheduler)
        yield cluster, lambda: False
    elif queue:
        several = -1 if workers is None else workers
        alone = here and (workers == 0 or (workers is None and cores(-1) == 1))
        yield SequentialExecutor() if alone else ProcessExecutor(several), lambda: False


class Queue:
    """Waiting jobs, handed out in batches whose size follows from measured times.

    Attributes:
        slots: number of batches computed at once.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.slots = 1
        self._waiting: dict[int, deque[Job]] = {}
        self._measured: dict[int, float] = {}  # time taken over time estimated, by computation
        self._packed: dict[int, PackedFunction] = {}
        for job in jobs:
            self._waiting.setdefault(id(job.computation), deque()).append(job)

    def __bool__(self) -> bool:
        return any(self._waiting.values())

    @property
    def seconds(self) -> float:
        """Expected remaining time in seconds, computed sequentially."""
        return sum(self._expected(job) for jobs in self._waiting.values() for job in jobs)

    def take(self) -> list[Job]:
        """Return the next batch, of the computation whose next point is expected to take longest.

        A computation whose speed is still unknown gives batches of one point.
        """
        jobs = max(filter(None, self._waiting.values()), key=lambda jobs: self._expected(jobs[0]))
        taken, room = [jobs.popleft()], 0.0
        first = taken[0]
        if id(first.computation) in self._measured or first.seconds != DEFAULT_SECONDS:
            left = len(jobs) * self._expected(first)
            room = min(BATCH_SECONDS, left / (TAIL_PARTS * self.slots)) - self._expected(first)
        while jobs and room >= self._expected(jobs[0]):
            room -= self._expected(jobs[0])
            taken.append(jobs.popleft())
        return taken

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Hand out a batch again."""
        self._waiting[id(jobs[0].computation)].extendleft(reversed(jobs))

    def packed(self, work: Computation, by_value: bool = False) -> PackedFunction:
        """Return the pickled function of a computation.

        It is pickled only once, since calls may change its state. `by_value`: pickle it again,
        together with the user's modules in their present state; later batches use that.
        """
        if id(work) not in self._packed or by_value:
            self._packed[id(work)] = pack_function(work, by_value)
        return self._packed[id(work)]

    def learn(self, finished: Sequence[tuple[Job, Result]]) -> None:
        """Update the measured speed by a moving average, because the first time may include the
        compilation of kernels.
        """
        which = id(finished[0][0].computation)
        expected = sum(job.seconds for job, _ in finished)
        ratio = max(sum(result.seconds for _, result in finished), 1e-6) / max(expected, 1e-6)
        self._measured[which] = 0.5 * (self._measured.get(which, ratio) + ratio)

    def _expected(self, job: Job) -> float:
        return job.seconds * self._measured.get(id(job.computation), 1.0)


def _finished_batches(
    queue: Queue, executor: SequentialExecutor, limits: Limits, stop: Callable[[], bool]
) -> Iterator[list[tuple[Job, Result]]]:
    """Yield jobs with their results as they finish, in batches.

    The points of a batch that was lost with its worker are sent one by one, with nothing else
    running, to find the one that kills its worker.
    """
    queue.slots = executor.slots
    running: dict[Future[list[Result]], tuple[list[Job], PackedFunction]] = {}
    suspects: deque[Job] = deque()
    losses: Counter[str] = Counter()

    def send(jobs: list[Job]) -> None:
        function = queue.packed(jobs[0].computation)
        batch = Batch(function, [job.point for job in jobs], limits)
        running[executor.submit(batch)] = jobs, function

    while running or suspects or (queue and not stop()):
        if suspects and not running:
            send([suspects.popleft()])
        while queue and not suspects and len(running) < BATCHES_PER_WORKER * queue.slots:
            send(queue.take())
            if any(future.done() for future in running):
                break  # store what is finished before more is started
        done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        executor.check()
        fatal = None
        for future in done:
            jobs, function = running.pop(future)
            try:
                results = future.result()
            except executor.lost:
                losses.update(job.key for job in jobs)
                if len(jobs) == 1 and losses[jobs[0].key] >= MAX_LOSSES:
                    yield [(jobs[0], Result(None, 0.0, KILLED))]
                else:
                    suspects.extend(jobs)
                continue
            if results[-1].reason == OTHER_FUNCTION and not function.by_value:
                with suppress(InvalidInput):
                    queue.packed(jobs[0].computation, by_value=True)
                    queue.put_back(jobs)
                    continue
            if results[-1].fatal:
                fatal = results.pop().reason
            if results:
                finished = list(zip(jobs, results, strict=False))  # fewer after a fatal one
                queue.learn(finished)
                yield finished
        if fatal is not None:
            raise SelfTrainError(fatal)
