"""Executors of batches: in this process, or in others of this machine, which may be killed.

`dask_cluster` has the one of a cluster. Linear algebra uses one thread, so that the numbers are the
same in every process.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from threadpoolctl import threadpool_limits

from ..errors import InvalidInput, SelfTrainError
from ..runtime.child_process import ChildProcess
from ..runtime.parallel import cores
from ..runtime.progress import quiet
from .grid import Point
from .packing import Function, PackedFunction, in_words, unpack_function

STORABLE_KINDS = "biufU"
"""Kinds of arrays that a point may return: booleans, numbers of at most 64 bits, text."""

ATTEMPTS = 3
"""A point whose process is killed this often in a row has failed: other causes of a kill would not
hit the same point every time.
"""

LOAD_ATTEMPTS = 5
"""If this many processes in a row die while they load a function, and no other process computes a
point meanwhile, the function itself is at fault and the sweep ends.
"""

KILLED = "its process was killed from outside, perhaps for lack of memory"


class WrongReturn(InvalidInput):
    """The error of a function whose return values do not fit the requested dataset."""


class Result(NamedTuple):
    """The outcome of a point: its values, or the reason why it failed.

    Attributes:
        seconds: processor time.
        fatal: whether the sweep cannot continue, for this reason.
    """

    values: dict[str, Any] | None
    seconds: float
    reason: str | None = None
    fatal: bool = False


class Limits(NamedTuple):
    """Limits for one point: seconds of wall time, bytes beyond what its process already uses."""

    seconds: float | None = None
    memory: int | None = None


class Batch(NamedTuple):
    """Points that are sent together with their function."""

    function: PackedFunction
    points: Sequence[Point]
    limits: Limits


def results(batch: Batch) -> Iterator[Result]:
    """Unpack the function of a batch, then yield a result per point, up to a fatal one."""
    function = unpack_function(batch.function)
    if isinstance(function, str):
        return iter([Result(None, 0.0, function, fatal=True)])
    return _each(function, batch)


def _each(function: Function, batch: Batch) -> Iterator[Result]:
    with threadpool_limits(1), quiet():
        for point in batch.points:
            result = _compute_point(function, point, batch.limits)
            yield result
            if result.fatal:
                return


def _compute_point(function: Function, point: Point, limits: Limits) -> Result:
    begin = time.process_time()
    values, reason, fatal = None, None, False
    try:
        with _memory_limit(limits.memory):
            values = _as_arrays(function(**point))
    except WrongReturn as error:
        reason, fatal = str(error), True
    except MemoryError as error:
        limit = "" if limits.memory is None else f", {limits.memory} bytes are allowed"
        reason = f"not enough memory{limit} ({error})"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's function may raise anything, even SystemExit
        reason = in_words(error)
    return Result(values, time.process_time() - begin, reason, fatal)


def _as_arrays(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a point as arrays; raise if they cannot be stored."""
    found = {name: np.asarray(value) for name, value in values.items()}
    for name, value in found.items():
        kind = value.dtype.kind
        if kind == "S":
            found[name] = np.char.decode(value, "latin-1")
        elif kind not in STORABLE_KINDS or (kind != "U" and value.itemsize > 8):
            raise TypeError(f"the value of {name!r} is neither numbers nor text: {value.dtype}")
    return found


@contextmanager
def _memory_limit(size: int | None) -> Iterator[None]:
    """Limit the memory that this process may take in addition; only Linux can do that."""
    if size is None or sys.platform != "linux":
        yield
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


class SequentialExecutor:
    """A context that computes batches in this process; base class of the other executors.

    Attributes:
        slots: number of batches that are computed at once.
        lost: exceptions that mean that a batch was lost together with its worker; it is sent again.
    """

    slots = 1
    lost: tuple[type[BaseException], ...] = ()

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Start a batch; in this class, compute it before returning."""
        future: Future[list[Result]] = Future()
        future.set_result(list(results(batch)))
        return future

    def check(self) -> None:
        """Raise if the executor is gone and no result will come."""

    def close(self, now: bool) -> None:
        """Shut down: at once, or when all batches are done."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(now=kind is not None)


class ProcessExecutor(SequentialExecutor):
    """An executor of batches in child processes; a thread of this process waits for each.

    Arguments:
        workers: number of processes; -1 for one per core.
    """

    def __init__(self, workers: int) -> None:
        self.slots = cores(workers)
        self._threads = ThreadPoolExecutor(self.slots)
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._computed = 0  # points, in all processes

    def submit(self, batch: Batch) -> Future[list[Result]]:
        """Start a batch."""
        return self._threads.submit(self.compute, batch)

    def compute(self, batch: Batch) -> list[Result]:
        """Compute a batch in a child process and wait for its results.

        If the process is killed, a new one continues with the point that was being computed. After
        `ATTEMPTS` kills in a row that point has failed.
        """
        done: list[Result] = []
        seconds = batch.limits.seconds
        kills, failed_loads, computed = 0, 0, 0
        while len(done) < len(batch.points) and not (done and done[-1].fatal):
            rest = batch._replace(points=batch.points[len(done) :])
            child = self._take(new=kills + failed_loads > 0)
            try:
                for result in child.answers(rest, kills > 0 or seconds is not None, seconds):
                    done.append(result)
                    self._computed += 1
                    kills = 0
                with self._lock:
                    self._idle.append(child)
            except TimeoutError:
                reason = f"it took longer than {seconds:g} seconds"
                done.append(Result(None, float(seconds or 0), reason))
            except EOFError:
                if child.has_begun:
                    kills, failed_loads = kills + 1, 0
                else:
                    failed_loads = failed_loads + 1 if self._computed == computed else 1
                    computed = self._computed
                if failed_loads == LOAD_ATTEMPTS:
                    raise SelfTrainError("a worker process ended while it was loading") from None
                if kills == ATTEMPTS:
                    done.append(Result(None, 0.0, KILLED))
                    kills = 0
            finally:
                self._busy.discard(child)
        return done

    def _take(self, new: bool) -> ChildProcess:
        with self._lock:
            if self._closed:
                raise SelfTrainError("interrupted")
            child = ChildProcess(results) if new or not self._idle else self._idle.pop()
            self._busy.add(child)
            return child

    def close(self, now: bool) -> None:
        """End the processes; `now`: running work is lost."""
        if now:
            self._closed = True
            with self._lock:
                for child in self._busy:
                    child.kill()
        self._threads.shutdown(cancel_futures=now)
        for child in self._idle:
            child.end()


_children = ProcessExecutor(1)


def compute_in_child(batch: Batch) -> list[Result]:
    """Compute a batch in a child of this process; called in the workers of a Dask cluster."""
    return _children.compute(batch)
