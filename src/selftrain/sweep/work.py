"""What runs in a worker: a batch of points, each with its values or the reason why it has none.

A batch travels as bytes and is unpacked here, so that a function a worker cannot import is an
answer and not a broken worker. Linear algebra takes one thread, so the numbers are the same in
every process. Points with a limit of time run in a process of their own (`isolated`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
from threadpoolctl import threadpool_limits

from ..arrays import Array
from ..errors import InvalidInput
from ..runtime.progress import quiet
from .code import Fingerprint, first_difference
from .computation import Computation
from .grid import Point
from .packing import pack

Function = Callable[..., Mapping[str, Any]]
"""Of the parameters of a point, by name, after what it starts from, if anything."""


class Result(NamedTuple):
    """Values of a point (None if there are none), seconds of processor time, why there are none."""

    values: dict[str, Any] | None
    seconds: float
    reason: str | None


@dataclass(frozen=True)
class Refusal:
    """Why a worker cannot do the work it was sent.

    Attributes:
        differs: whether the function is another one there.
        before: results of the points before the one that is rejected.
    """

    reason: str
    differs: bool = False
    before: Sequence[Result] = ()


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


class WrongReturn(InvalidInput):
    """What the function of the points returns is no part of the dataset that was asked for."""


class LinkedPoint(NamedTuple):
    """Parameters of a point, and what it starts from: results of this batch by their place, or
    values that are known already.
    """

    point: Point
    before: Sequence[int | Array]


@dataclass(frozen=True)
class Loaded:
    """The function of the points, in the process that computes them."""

    function: Function
    limits: Limits

    def one(self, point: Point, near: Sequence[Array]) -> Result | Refusal:
        """The result of a point."""
        return _one(self.function, point, near, self.limits)


@dataclass(frozen=True)
class Work:
    """A batch as it travels.

    Attributes:
        function: the function of the points, pickled.
        identity: of the function, which a worker must find, too; None: it has none.
        link: the quantity that points take from those they start from.
        code: files of this package that a worker must have.
        paths: folders that modules are imported from.
        isolated: whether each point is computed in a process of its own.
    """

    function: bytes
    identity: str | None
    link: str
    points: Sequence[LinkedPoint]
    limits: Limits
    code: Fingerprint
    paths: Sequence[str]
    isolated: bool

    def load(self) -> Loaded | Refusal:
        """Unpack the function, and make sure that it is the one that was sent."""
        sys.path.extend(path for path in self.paths if path not in sys.path)
        try:
            function = cloudpickle.loads(self.function)
        except Exception as error:  # whatever a user's module raises when it is imported
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            return Refusal(
                f"a worker could not load its work ({reason}): functions must be importable from "
                "there"
            )
        if (other := first_difference(self.code)) is not None:
            return Refusal(
                f"a worker has other code of {other} than this process: it was changed meanwhile, "
                "or another version is installed there"
            )
        try:
            same = self.identity is None or _is_same(function, self.identity)
        except InvalidInput as error:  # a loss or labeler that is registered elsewhere only
            return Refusal(f"a worker could not load its work ({error})")
        if not same:
            return Refusal(
                "a worker would compute something else than this process: a file of the function "
                "was changed meanwhile, or a global that it uses was changed after its module was "
                "imported; pass such values as options, or compute with workers=0",
                differs=True,
            )
        return Loaded(function, self.limits)


_same: set[str] = set()
"""Identities that this process has found to be those it was sent; what its points change later does
not count.
"""


def _is_same(function: Function, identity: str) -> bool:
    if identity not in _same:
        if Computation(function, None).identity.digest != identity:
            return False
        _same.add(identity)
    return True


class Packed(NamedTuple):
    """The function of a computation as it travels, the identity of what arrives, and whether the
    modules of the user travel with it.
    """

    function: bytes
    identity: str | None
    whole: bool


def pack_function(computation: Computation, whole: bool = False) -> Packed:
    """Pack the function of the points, once: points that are computed here may change its state.

    `whole`: with the modules of the user, as they are in this process; else workers import them.
    """
    try:
        own = computation.identity.own if whole else ()
        content = pack(computation.function, own)
    except Exception as error:  # whatever a user's object raises when it is packed
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        accepted = f"it cannot be sent to the process that computes ({reason})"
        raise InvalidInput("task", computation.name, accepted) from None
    try:  # of a copy, as a worker gets it: it may hold copies of what has a name here
        identity = Computation(cloudpickle.loads(content), None).identity.digest
    except InvalidInput:
        return Packed(content, None, whole)
    return Packed(content, identity, whole)


def pack_work(
    function: Packed,
    link: str,
    points: Sequence[LinkedPoint],
    limits: Limits,
    code: Fingerprint,
    isolated: bool = False,
) -> bytes:
    """A batch as bytes; `code`: files of this package that a worker must have."""
    alone = isolated or limits.seconds is not None
    content, identity = function.function, function.identity
    work = Work(content, identity, link, list(points), limits, code, _own_paths(), alone)
    packed: bytes = cloudpickle.dumps(work)
    return packed


def compute(work: bytes) -> list[Result] | Refusal:
    """The results of a batch; this is all that is called in another process."""
    batch: Work = cloudpickle.loads(work)
    if batch.isolated:
        from .isolated import OneByOne

        with OneByOne(batch) as alone:
            return _all(alone, batch.link, batch.points)
    loaded = batch.load()
    if isinstance(loaded, Refusal):
        return loaded
    with threadpool_limits(1), quiet():
        return _all(loaded.one, batch.link, batch.points)


def _all(
    one: Callable[[Point, Sequence[Array]], Result | Refusal],
    link: str,
    points: Sequence[LinkedPoint],
) -> list[Result] | Refusal:
    results: list[Result] = []
    for point, before in points:
        near: list[Array] = []
        for start in before:
            values = {link: start} if not isinstance(start, int) else results[start].values
            if values is None:
                break  # a point that failed is no start, and neither is the one behind it
            near.append(np.asarray(values[link]))
        result = one(point, near)
        if isinstance(result, Refusal):
            return replace(result, before=results)
        results.append(result)
    return results


def _one(
    function: Function, point: Point, near: Sequence[Array], limits: Limits
) -> Result | Refusal:
    begin = time.process_time()
    try:
        with _in_memory(limits.memory):
            values = _checked(function(*near, **point))
    except WrongReturn as error:
        return Refusal(str(error))
    except MemoryError as error:
        asked = "" if limits.memory is None else f", {limits.memory} bytes are allowed"
        return Result(None, time.process_time() - begin, f"not enough memory{asked} ({error})")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's function may raise anything, SystemExit too
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
