"""`complete`: compute the points of some tasks that are not kept yet.

Points of all tasks are mixed, each different one computed once, the longest first, cheap ones
several at a time. A batch is kept as it comes back, so an interrupt or a kill costs only what was
under way. When a process is lost, what it may have had is sent again: once as before, since kills
from outside happen, then with each point in a process of its own (`isolated`). Only a point that
ends such a process is recorded as failed: nothing else ran in it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput, SelfTrainError
from ..runtime.parallel import cores
from ..runtime.progress import Progress, ProgressOption
from .backends import Answer, Backend, Here, LostProcess, backend_for
from .batches import Batch, Job, Queue
from .code import fingerprint
from .computation import Computation
from .gather import gather
from .grid import Grid, Point
from .isolated import ENDED
from .store import Finished, Keeper, KeptInMemory, Store
from .work import Limits, Packed, Refusal, Result, pack_function, pack_work

if TYPE_CHECKING:
    import xarray as xr

SAMPLE_SECONDS, WORTH_SECONDS = 1.0, 4.0
"""Work begins in this process for so long; more left than this is worth the start of others."""

LOOK = 1.0
"""Seconds between two looks at what does not come back."""

MOST_LOSSES = 5
"""A point that was lost this often, the last times as the only one under way and in a process of
its own, ends the process that watches it as well: it has failed.
"""

STARTED_FROM = 2
"""Points that another one starts from: a line through them leads near it."""


@dataclass(frozen=True)
class Task:
    """A computation at the points of a grid.

    Attributes:
        names: the outputs that are needed; default: all of them.
        chosen: positions of points, if not all are meant.
        chain: points in a row of the last axis that start from each other; 1: none does.
    """

    computation: Computation
    grid: Grid
    names: tuple[str, ...] | None = None
    chosen: tuple[int, ...] | None = None
    chain: int = 1
    _keys: dict[Any, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def places(self) -> Sequence[int]:
        """Positions in the grid of the points that are meant."""
        return range(len(self.grid)) if self.chosen is None else self.chosen

    def before(self, place: int) -> range:
        """Positions of the points that one starts from, the nearest first."""
        if self.chain == 1:
            return range(0)
        first = place - place % self.grid.shape[-1] % self.chain
        return range(place - 1, max(first, place - STARTED_FROM) - 1, -1)

    @property
    def points(self) -> list[Point]:
        """The points that are meant."""
        return [self.grid.points[place] for place in self.places]

    @property
    def seconds(self) -> float:
        """About how long all points take, one after the other."""
        return sum(self.computation.seconds(**point) for point in self.points)

    @property
    def needed(self) -> tuple[str, ...]:
        """Names without which a stored point is not enough."""
        if self.names is not None:
            return self.names
        return tuple(self.computation.outputs or ())

    def key(self, keeper: Keeper, place: int) -> str:
        """What the point at a place is known by; worked out once, since it takes its time."""
        known = (type(keeper), place)
        if known not in self._keys:
            self._keys[known] = keeper.key(self.computation, self.grid.points[place])
        return self._keys[known]

    def find(self, keeper: Keeper) -> list[Finished | None]:
        """What is kept of every point; None where values are missing that are needed."""
        found = [keeper.get(self.key(keeper, place)) for place in self.places]
        return [one if one is not None and self.enough(one) else None for one in found]

    def enough(self, point: Finished) -> bool:
        """Whether a kept point has what is needed, or has failed."""
        return point.reason is not None or all(name in point.values for name in self.needed)

    def stored(self, store: Keeper) -> int:
        """How many points have values in the store."""
        return sum(one is not None and one.reason is None for one in self.find(store))

    def load(self, store: Keeper) -> xr.Dataset:
        """The whole as a dataset; every point must be there."""
        return gather(self.computation, self.grid, [one.values for one in self._whole(store)])

    def taken(self, store: Keeper) -> float:
        """Seconds of processor time that all points took when they were computed."""
        return sum(one.seconds for one in self._whole(store))

    def _whole(self, store: Keeper) -> list[Finished]:
        found = self.find(store)
        there = [one for one in found if one is not None and one.reason is None]
        if len(there) < len(found):
            missing = len(found) - len(there)
            hurt = list(getattr(store, "damaged", {}).values())
            reason = f"; {hurt[0]}" if hurt else ""
            raise SelfTrainError(
                f"{missing} of {len(found)} points are not in the store; `complete` computes "
                f"them{reason}"
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


def complete(
    tasks: Iterable[Task],
    store: Store | KeptInMemory,
    *,
    workers: int | None = -1,
    scheduler: Any = None,
    progress: ProgressOption = None,
    notice: Callable[[str], None] = print,
    retry: bool = True,
    limits: Limits | None = None,
) -> list[Failure]:
    """Compute and keep every point that is missing; say which could not be computed.

    Arguments:
        tasks: what to compute.
        store: where finished points are kept.
        workers: processes at once; -1: as many as there are cores; 0: none, all work is done here.
        scheduler: address of a Dask scheduler, or a `distributed.Client`, to compute there instead.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).
        notice: is called with a sentence for each damaged part, whose points are computed anew.
        retry: compute points again that failed before; else their failure stands.
        limits: the most that a point may take.

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
    asked = list(tasks)
    limits = limits or Limits()
    if isinstance(store, KeptInMemory):
        return _complete(asked, store, workers, scheduler, progress, retry, limits)
    with store.writing():
        for reason in store.damaged.values():
            notice(f"damaged, its points are computed anew: {reason}")
        store.damaged.clear()
        return _complete(asked, store, workers, scheduler, progress, retry, limits)


def _complete(
    tasks: list[Task],
    keeper: Store | KeptInMemory,
    workers: int | None,
    scheduler: Any,
    progress: ProgressOption,
    retry: bool,
    limits: Limits,
) -> list[Failure]:
    missing, failures = _missing(tasks, keeper, retry)
    if not missing:
        return failures
    queue = Queue(missing)
    packed: dict[int, Packed] = {}
    with Progress(len(missing), "points", progress, queue.seconds) as bar:
        for backend, stop in _backends(queue, workers, scheduler):
            try:
                for batch, results in _stream(queue, backend, keeper, limits, stop, packed):
                    done = list(zip(batch.jobs, results, strict=True))
                    keeper.add([_finished(job, result) for job, result in done])
                    failed = [
                        Failure(job.computation, job.point, result.reason)
                        for job, result in done
                        if result.reason is not None
                    ]
                    failures += failed
                    expected = sum(job.seconds for job in batch.jobs)
                    bar.advance(len(done), failed=len(failed), expected=expected)
            except BaseException:
                backend.close(now=True)
                raise
            backend.close()
    return failures


def _backends(
    queue: Queue, workers: int | None, scheduler: Any
) -> Iterator[tuple[Backend, Callable[[], bool]]]:
    """Where to compute, and when to go on elsewhere.

    Unless asked otherwise, work begins here, and processes are started for what is left if that is
    worth it.
    """
    if workers is None and scheduler is None:
        limit = time.monotonic() + SAMPLE_SECONDS
        several = cores(-1) > 1
        yield Here(), lambda: several and time.monotonic() > limit and queue.seconds > WORTH_SECONDS
    if queue:
        yield backend_for(workers, scheduler), lambda: False


def _finished(job: Job, result: Result) -> Finished:
    return Finished(job.key, result.values or {}, result.seconds, result.reason)


def _missing(tasks: Iterable[Task], keeper: Keeper, retry: bool) -> tuple[list[Job], list[Failure]]:
    """Points without values, each once, those that take longest first; failures that stand."""
    jobs: dict[str, Job] = {}
    failures: list[Failure] = []
    for task in tasks:
        for place, point in zip(task.places, task.points, strict=True):
            key = task.key(keeper, place)
            found = keeper.get(key)
            if key in jobs or (found is not None and task.enough(found) and found.reason is None):
                continue
            if found is not None and found.reason is not None and not retry:
                failures.append(Failure(task.computation, point, found.reason))
                continue
            after = tuple(task.key(keeper, other) for other in task.before(place))
            seconds = task.computation.seconds(**point)
            jobs[key] = Job(key, task.computation, point, seconds, after)
    return sorted(jobs.values(), key=lambda job: -job.seconds), failures


@dataclass(frozen=True)
class _Sent:
    """A batch that is computed, whether nothing else is, and whether modules travel with it."""

    batch: Batch
    alone: bool
    whole: bool


def _stream(
    queue: Queue,
    backend: Backend,
    keeper: Store | KeptInMemory,
    limits: Limits,
    stop: Callable[[], bool],
    packed: dict[int, Packed],
) -> Iterator[tuple[Batch, list[Result]]]:
    """Batches with their results, as they finish; those that lose their process are sent again."""
    flying: dict[Future[Answer], _Sent] = {}
    suspects: deque[Batch] = deque()

    def send(batch: Batch, suspect: bool = False) -> None:
        one = batch.computation
        code = fingerprint(one.identity.modules) if isinstance(keeper, Store) else ()
        if id(one) not in packed:
            packed[id(one)] = pack_function(one)
        points, isolated = batch.points(keeper), suspect or backend.isolates
        work = pack_work(packed[id(one)], one.link, points, limits, code, isolated)
        flying[backend.submit(work)] = _Sent(batch, suspect, packed[id(one)].whole)

    def pack_whole(one: Computation) -> bool:
        """Let the modules of the user travel, too: they may hold what was changed here."""
        if not packed[id(one)].whole:
            try:
                packed[id(one)] = pack_function(one, whole=True)
            except InvalidInput:
                return False
        return True

    queue.slots = backend.slots
    while flying or suspects or (queue and not stop()):
        if suspects and not flying:
            send(suspects.popleft(), suspect=True)
        while queue and not suspects and len(flying) < queue.window:
            send(queue.take())
            if any(future.done() for future in flying):
                break  # keep what is finished before more is begun
        done, _ = wait(flying, timeout=LOOK, return_when=FIRST_COMPLETED)
        backend.check()
        lost: list[tuple[_Sent, LostProcess]] = []
        refusal = None
        for future in done:
            sent = flying.pop(future)
            try:
                answer = future.result()
            except (Exception, CancelledError) as error:
                loss = backend.loss(error)
                if loss is None:
                    raise
                lost.append((sent, loss))
                if loss is LostProcess.ALL:
                    lost += [(other, loss) for other in flying.values()]
                    flying.clear()
                    backend.restart()
                    break
                continue
            if not isinstance(answer, Refusal):
                queue.learn(sent.batch, answer)
                yield sent.batch, answer
            elif answer.differs and not sent.whole and pack_whole(sent.batch.computation):
                if sent.alone:
                    suspects.appendleft(sent.batch)
                else:
                    queue.give_back(sent.batch)
            else:
                refusal = answer
                yield _begun(sent.batch, answer)
        if refusal is not None:
            raise SelfTrainError(refusal.reason)
        for sent, loss in lost:
            yield from _again(sent, loss, queue, suspects)


def _begun(batch: Batch, refusal: Refusal) -> tuple[Batch, list[Result]]:
    """The points of a batch that were computed before one that was rejected."""
    return Batch(batch.jobs[: len(refusal.before)]), list(refusal.before)


def _again(
    sent: _Sent, loss: LostProcess, queue: Queue, suspects: deque[Batch]
) -> Iterator[tuple[Batch, list[Result]]]:
    """Send a batch again that lost its process: as before after the first loss, then as a suspect,
    alone and isolated; if that is lost as well, in halves.
    """
    batch = sent.batch
    batch.lost += 1
    if batch.lost == 1 and loss is not LostProcess.OFTEN:
        queue.give_back(batch)
    elif sent.alone and len(batch.jobs) > 1:
        suspects.extend(batch.split((len(batch.jobs) + 1) // 2))
    elif not sent.alone or batch.lost < MOST_LOSSES:
        suspects.appendleft(batch)
    else:
        yield batch, [Result(None, 0.0, ENDED)]
