"""What computes points, in this process or in others: a batch, and a result for each of its points.

A batch carries its function as bytes and is unpacked where it runs, so that a function that cannot
be imported there is an answer and not a broken process. Linear algebra takes one thread, so the
numbers are the same in every process.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import cloudpickle
import numpy as np
from threadpoolctl import threadpool_limits

from ..errors import InvalidInput, SelfTrainError
from ..runtime.children import Child
from ..runtime.progress import quiet
from .code import fingerprint
from .computation import Computation
from .grid import Point
from .identity import LOCKS
from .origins import SCRIPTS, is_named

KINDS_OF_VALUES = "biufU"
"""Kinds of arrays that a point may return: truth values, numbers of at most 64 bits, text."""

TRIES = 3
"""A point that ended its process this often, one after the other, has failed: kills from outside
hit now and then, not again and again.
"""

LOADS = 5
"""Processes that may end in a row while they load the function of a batch, with no point of this
function computed anywhere meanwhile. Loading that ends the process does so in every process; if
others compute, kills come from outside.
"""

ENDED = "its process was ended from outside, perhaps for want of memory"
CHANGED = (
    "a worker has other code of selftrain than this process: it was changed meanwhile, or another "
    "version is installed there"
)
DIFFERS = (
    "a worker would compute something else than this process: a file of the function was changed "
    "meanwhile, or a global that it uses was changed after its module was imported; pass such "
    "values as options, or compute with workers=0"
)

Function = Callable[..., Mapping[str, Any]]


class WrongReturn(InvalidInput):
    """What the function of the points returns is no part of the dataset that was asked for."""


class Result(NamedTuple):
    """What became of a point: its values, or the reason why there are none.

    Attributes:
        seconds: of processor time.
        ends: the sweep cannot continue, for this reason.
    """

    values: dict[str, Any] | None
    seconds: float
    reason: str | None = None
    ends: bool = False


class Limits(NamedTuple):
    """The most that a point may take: seconds on the clock, bytes beyond those its process has."""

    seconds: float | None = None
    memory: int | None = None


class Packed(NamedTuple):
    """A function as it travels.

    Attributes:
        identity: of what arrives, which a worker must find, too; None: it has none.
        code: of the files of this package, which a worker must share; None: nothing is stored.
        whole: modules of the user travel with it as they are here; else workers import them.
        paths: folders that modules are imported from.
    """

    content: bytes
    identity: str | None
    code: str | None
    whole: bool
    paths: tuple[str, ...]


class Batch(NamedTuple):
    """Points that travel together with their function."""

    function: Packed
    points: Sequence[Point]
    limits: Limits


def results(batch: Batch) -> Iterator[Result]:
    """Load the function of a batch; then compute its points. The last result may end the sweep."""
    function = _loaded(batch.function)
    if isinstance(function, str):
        return iter([Result(None, 0.0, function, ends=True)])
    return _each(function, batch)


def _each(function: Function, batch: Batch) -> Iterator[Result]:
    with threadpool_limits(1), quiet():
        for point in batch.points:
            result = _one(function, point, batch.limits)
            yield result
            if result.ends:
                return


_same: set[str] = set()
"""Identities that this process has found to be those it was sent; what its points change later does
not count.
"""


def _loaded(packed: Packed) -> Function | str:
    """Unpack a function and make sure that it is the one that was sent; else, say why it is not."""
    sys.path.extend(path for path in packed.paths if path not in sys.path)
    try:
        function: Function = cloudpickle.loads(packed.content)
        if packed.code is not None and packed.code != fingerprint():
            return CHANGED
        if packed.identity is not None and packed.identity not in _same:
            if Computation(function, None).identity.digest != packed.identity:
                return DIFFERS
            _same.add(packed.identity)
    except Exception as error:  # whatever a module raises that is imported, or a loss that is not
        return (
            f"a worker could not load its work ({in_words(error)}): functions must be importable "
            "from there"
        )
    return function


def _one(function: Function, point: Point, limits: Limits) -> Result:
    begin = time.process_time()
    values, reason, ends = None, None, False
    try:
        with _in_memory(limits.memory):
            values = _checked(function(**point))
    except WrongReturn as error:
        reason, ends = str(error), True
    except MemoryError as error:
        asked = "" if limits.memory is None else f", {limits.memory} bytes are allowed"
        reason = f"not enough memory{asked} ({error})"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's function may raise anything, SystemExit too
        reason = in_words(error)
    return Result(values, time.process_time() - begin, reason, ends)


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a point as arrays, if they can be stored."""
    found = {name: np.asarray(value) for name, value in values.items()}
    for name, value in found.items():
        kind = value.dtype.kind
        if kind == "S":
            found[name] = np.char.decode(value, "latin-1")
        elif kind not in KINDS_OF_VALUES or (kind != "U" and value.itemsize > 8):
            raise TypeError(f"the value of {name!r} is neither numbers nor text: {value.dtype}")
    return found


@contextmanager
def _in_memory(size: int | None) -> Iterator[None]:
    """Let the process take so many more bytes and no more, where the system can say so."""
    if size is None or sys.platform != "linux":
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


def in_words(error: BaseException) -> str:
    """Return an error as one line that can be written anywhere."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line.encode("utf-8", "backslashreplace").decode()


class Children:
    """Processes that compute batches, one each; they are started as needed and used again."""

    def __init__(self) -> None:
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._computed: Counter[bytes] = Counter()

    def compute(self, batch: Batch) -> list[Result]:
        """Compute a batch in a process that does nothing else.

        If the process ends, the rest of the batch is computed point by point in a new one. A point
        that ends its process `TRIES` times in a row has failed: from the second time on nothing
        else has run in that process.
        """
        done: list[Result] = []
        function, seconds = batch.function.content, batch.limits.seconds
        ended, not_loaded, computed = 0, 0, 0
        while len(done) < len(batch.points) and not (done and done[-1].ends):
            rest = batch._replace(points=batch.points[len(done) :])
            child = self._take(fresh=ended + not_loaded > 0)
            try:
                for result in child.answers(rest, ended > 0 or seconds is not None, seconds):
                    done.append(result)
                    self._computed[function] += 1
                    ended = 0
                with self._lock:
                    self._idle.append(child)
            except TimeoutError:
                reason = f"it took longer than {seconds:g} seconds"
                done.append(Result(None, float(seconds or 0), reason))
            except EOFError:
                if child.has_begun:
                    ended, not_loaded = ended + 1, 0
                else:
                    not_loaded = not_loaded + 1 if self._computed[function] == computed else 1
                    computed = self._computed[function]
                if not_loaded == LOADS:
                    raise SelfTrainError("a process for points ended while it loaded") from None
                if ended == TRIES:
                    done.append(Result(None, 0.0, ENDED))
                    ended = 0
            finally:
                self._busy.discard(child)
        return done

    def _take(self, fresh: bool) -> Child:
        with self._lock:
            if self._closed:
                raise SelfTrainError("interrupted")
            mine = [child for child in self._idle if child.owner == os.getpid()]
            child = Child(results) if fresh or not mine else mine.pop()
            self._idle = mine
            self._busy.add(child)
            return child

    def close(self) -> None:
        """End all processes; work under way is lost."""
        with self._lock:
            self._closed = True
            for child in tuple(self._busy):
                child.kill()
            for child in self._idle:
                child.end()
            self._idle.clear()


_children = Children()


def compute(batch: Batch) -> list[Result]:
    """Compute a batch in a process that this one starts: what a worker of a cluster does."""
    return _children.compute(batch)


def pack_function(computation: Computation, stored: bool, whole: bool = False) -> Packed:
    """Pack the function of the points, once: points that are computed here may change its state."""
    try:
        content = _pack(computation.function, computation.identity.own if whole else ())
    except Exception as error:  # whatever a user's object raises when it is packed
        accepted = f"it cannot be sent to the process that computes ({in_words(error)})"
        raise InvalidInput("task", computation.name, accepted) from None
    try:  # of a copy, as a worker gets it: it may hold copies of what has a name here
        identity = Computation(cloudpickle.loads(content), None).identity.digest
    except InvalidInput:
        identity = None
    paths = tuple(path for path in sys.path if path and "site-packages" not in path)
    return Packed(content, identity, fingerprint() if stored else None, whole, paths)


def _pack(value: Any, whole: Iterable[str]) -> bytes:
    """Pickle a value; `whole`: modules that travel with it and are not imported there."""
    content = io.BytesIO()
    known = cloudpickle.list_registry_pickle_by_value()
    names = [name for name in whole if name in sys.modules and name not in {*known, *SCRIPTS}]
    for name in names:
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        _Pickler(content).dump(value)
    finally:
        for name in names:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler for what a script may hold that cloudpickle cannot send: functions with a cache and
    cached properties arrive with an empty cache, locks open.
    """

    def reducer_override(self, value: Any) -> Any:
        """Return how to build a value again."""
        if isinstance(value, functools._lru_cache_wrapper) and not _is_importable(value):
            return _cached, (value.__wrapped__, value.cache_parameters())
        if isinstance(value, functools.cached_property):
            return _cached_property, (value.func, value.attrname)
        if isinstance(value, LOCKS):
            return (threading.Lock if isinstance(value, LOCKS[0]) else threading.RLock), ()
        if isinstance(value, WeakKeyDictionary):  # a generic function has one
            return WeakKeyDictionary, (dict(value),)
        return super().reducer_override(value)


def _is_importable(value: Any) -> bool:
    away = {*SCRIPTS, *cloudpickle.list_registry_pickle_by_value()}
    return value.__module__ not in away and is_named(value)


def _cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.update_wrapper(functools.lru_cache(**parameters)(function), function)


def _cached_property(function: Callable[[Any], Any], name: str | None) -> Any:
    made = functools.cached_property(function)
    made.attrname = name
    return made
