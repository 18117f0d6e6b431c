"""What runs in a worker: a batch of points, each with its values or the reason why it has none.

A batch travels as bytes and is unpacked here, so that a function a worker cannot import is an
answer and not a broken worker. Linear algebra takes one thread, so the numbers are the same in
every process.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from threadpoolctl import threadpool_limits

from ..arrays import Array
from ..errors import InvalidInput, SelfTrainError
from ..runtime.progress import quiet
from .code import Fingerprint, first_difference
from .computation import Computation
from .grid import Point

Function = Callable[..., Mapping[str, Any]]
"""Of the parameters of a point, by name, after what it starts from, if anything."""


class Result(NamedTuple):
    """Values of a point (None if there are none), seconds of processor time, why there are none."""

    values: dict[str, Any] | None
    seconds: float
    reason: str | None


@dataclass(frozen=True)
class Refusal:
    """Why a worker cannot do any of the work it was sent."""

    reason: str


@dataclass(frozen=True)
class Limits:
    """The most that a point may take; None: no limit.

    Attributes:
        seconds: time on the clock.
        memory: bytes, beyond those its process has taken before.
    """

    seconds: float | None = None
    memory: int | None = None


KEPT_KINDS = "biufUS"
"""Kinds of arrays that are kept: truth values, numbers, text."""


ARRIVAL = 0.01
"""Seconds after which an interrupt of this thread has surely arrived: it comes with the next
instruction."""


class NotReturned(InvalidInput):
    """A quantity that the function of the points does not return, at any of them."""


class TookTooLong(SelfTrainError):
    """A point exceeded the time it was given."""


class LinkedPoint(NamedTuple):
    """Parameters of a point, and what it starts from: results of this batch by their place, or
    values that are known already.
    """

    point: Point
    before: Sequence[int | Array]


def pack_work(
    computation: Computation, points: Sequence[LinkedPoint], limits: Limits, code: Fingerprint
) -> bytes:
    """A batch as bytes; `code`: what a worker must have on its disk."""
    body = cloudpickle.dumps((computation.function, computation.link, list(points)))
    content: bytes = cloudpickle.dumps((body, limits, code, _own_paths()))
    return content


def compute(work: bytes) -> list[Result] | Refusal:
    """The results of a batch; this is all that is called in another process."""
    body, limits, code, paths = cloudpickle.loads(work)
    sys.path.extend(path for path in paths if path not in sys.path)
    try:
        function, link, points = cloudpickle.loads(body)
    except Exception as error:  # whatever a user's module raises when it is imported
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Refusal(
            f"a worker could not load its work ({reason}): functions must be importable from there"
        )
    if (other := first_difference(code)) is not None:
        return Refusal(
            f"a worker has other code of {other} than this process: it was changed meanwhile, or "
            "another version is installed there"
        )
    try:
        with threadpool_limits(1), quiet():
            return _all(function, link, points, limits)
    except NotReturned as error:
        return Refusal(str(error))


def _all(
    function: Function, link: str, points: Sequence[LinkedPoint], limits: Limits
) -> list[Result]:
    results: list[Result] = []
    for point, before in points:
        near: list[Array] = []
        for start in before:
            values = {link: start} if not isinstance(start, int) else results[start].values
            if values is None:
                break  # a point that failed is no start, and neither is the one behind it
            near.append(np.asarray(values[link]))
        results.append(_one(function, point, near, limits))
    return results


def _one(function: Function, point: Point, near: Sequence[Array], limits: Limits) -> Result:
    begin = time.process_time()
    try:
        with _in_time(limits.seconds), _in_memory(limits.memory):
            values = _checked(function(*near, **point))
    except NotReturned:
        raise
    except TookTooLong:
        return Result(None, time.process_time() - begin, too_long(limits.seconds))
    except MemoryError as error:
        asked = "" if limits.memory is None else f", {limits.memory} bytes are allowed"
        return Result(None, time.process_time() - begin, f"not enough memory{asked} ({error})")
    except Exception as error:  # a user's function may raise anything: the other points go on
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Result(None, time.process_time() - begin, reason)
    return Result(values, time.process_time() - begin, None)


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a point, if a store can keep them."""
    for name, value in values.items():
        kind = np.asarray(value).dtype
        if kind.kind not in KEPT_KINDS:
            raise TypeError(f"the value of {name!r} is neither numbers nor text: {kind}")
    return dict(values)


def too_long(seconds: float | None) -> str:
    """The reason of a point that exceeded its time."""
    return f"it took longer than {seconds:g} seconds"


@contextmanager
def _in_time(seconds: float | None) -> Iterator[None]:
    """Raise `TookTooLong` here if the block takes longer, as soon as Python code runs again.

    An interrupt that was sent is waited for, never taken back: CPython would leave its mark that
    something waits, and a debugger or a measure of coverage then makes Python 3.11 run in a circle.
    """
    if seconds is None:
        yield
        return
    thread = threading.get_ident()
    state = {"open": True, "late": False}
    lock = threading.Lock()

    def interrupt() -> None:
        with lock:
            if state["open"]:
                state["late"] = True
                _raise_in(thread, TookTooLong)

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    found: BaseException | None = None
    try:
        yield
    except BaseException as error:
        found = error
    with lock:
        state["open"] = False
    timer.cancel()
    if state["late"] and not isinstance(found, TookTooLong):
        time.sleep(ARRIVAL)  # it arrives here, unless the block caught it
        raise TookTooLong
    if found is not None:
        raise found


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Let a thread raise an error at its next instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


@contextmanager
def _in_memory(size: int | None) -> Iterator[None]:
    """Let the process take so many more bytes and no more, where the system can say so."""
    if size is None or not sys.platform.startswith("linux"):
        yield
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _own_paths() -> list[str]:
    """Folders that modules are imported from here and perhaps not elsewhere."""
    return [path for path in sys.path if path and "site-packages" not in path]
