"""The computation of batches of points, in this process or in others.

A batch contains its function as bytes, which are unpickled where the batch runs: a function that
cannot be imported there gives a failed result, not a broken process. Linear algebra uses one
thread, so that the numbers are the same in every process.
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
from ..runtime.child_process import ChildProcess
from ..runtime.progress import quiet
from .computation import Computation
from .function_identity import LOCKS
from .grid import Point
from .introspection import SCRIPTS, is_importable
from .package_code import package_digest

STORABLE_KINDS = "biufU"
"""Kinds of arrays that a point may return: booleans, numbers of at most 64 bits, text."""

ATTEMPTS = 3
"""A point whose process is killed this often in a row has failed: other causes of a kill would not
hit the same point every time.
"""

LOAD_ATTEMPTS = 5
"""If this many processes in a row die while they load a function, and no other process computes a
point of it meanwhile, the function itself is at fault and the sweep ends.
"""

KILLED = "its process was killed from outside, perhaps for lack of memory"
OTHER_PACKAGE = (
    "a worker has different code of selftrain than this process: the code was changed meanwhile, "
    "or another version is installed there"
)
OTHER_FUNCTION = (
    "a worker would compute something else than this process: a file of the function was changed "
    "meanwhile, or a global that it uses was changed after its module was imported; pass such "
    "values as options, or compute with workers=0"
)

Function = Callable[..., Mapping[str, Any]]


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


class PackedFunction(NamedTuple):
    """A pickled function.

    Attributes:
        identity: digest that the unpickled function must have; None if it has no identity.
        package: digest of this package that a worker must have; None if nothing is stored.
        by_value: whether the user's modules are pickled in their present state; else workers
            import them.
        paths: folders that modules are imported from.
    """

    content: bytes
    identity: str | None
    package: str | None
    by_value: bool
    paths: tuple[str, ...]


class Batch(NamedTuple):
    """Points that are sent together with their function."""

    function: PackedFunction
    points: Sequence[Point]
    limits: Limits


def results(batch: Batch) -> Iterator[Result]:
    """Unpickle the function of a batch, then yield a result per point, up to a fatal one."""
    function = _unpack(batch.function)
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


_verified: set[str] = set()
"""Identities that this process has verified, once each: calls may change a function's state."""


def _unpack(packed: PackedFunction) -> Function | str:
    """Return the function, verified to be the one that was sent; or why it cannot be used."""
    sys.path.extend(path for path in packed.paths if path not in sys.path)
    try:
        function: Function = cloudpickle.loads(packed.content)
        if packed.package is not None and packed.package != package_digest():
            return OTHER_PACKAGE
        if packed.identity is not None and packed.identity not in _verified:
            if Computation(function, None).identity.digest != packed.identity:
                return OTHER_FUNCTION
            _verified.add(packed.identity)
    except Exception as error:  # an imported module may raise anything
        return (
            f"a worker could not load its work ({in_words(error)}): functions must be importable "
            "from there"
        )
    return function


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


def in_words(error: BaseException) -> str:
    """Return an error as one line of valid UTF-8."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line.encode("utf-8", "backslashreplace").decode()


class WorkerPool:
    """Child processes that compute one batch each; started on demand and reused."""

    def __init__(self) -> None:
        self._idle: list[ChildProcess] = []
        self._busy: set[ChildProcess] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._computed: Counter[bytes] = Counter()  # points, by pickled function

    def compute(self, batch: Batch) -> list[Result]:
        """Compute a batch in a child process and wait for its results.

        If the process is killed, a new one continues with the point that was being computed. After
        `ATTEMPTS` kills in a row that point has failed.
        """
        done: list[Result] = []
        function, seconds = batch.function.content, batch.limits.seconds
        kills, failed_loads, computed = 0, 0, 0
        while len(done) < len(batch.points) and not (done and done[-1].fatal):
            rest = batch._replace(points=batch.points[len(done) :])
            child = self._take(new=kills + failed_loads > 0)
            try:
                for result in child.answers(rest, kills > 0 or seconds is not None, seconds):
                    done.append(result)
                    self._computed[function] += 1
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
                    failed_loads = failed_loads + 1 if self._computed[function] == computed else 1
                    computed = self._computed[function]
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
            # after a fork the list may hold processes of the parent
            mine = [child for child in self._idle if child.owner == os.getpid()]
            child = ChildProcess(results) if new or not mine else mine.pop()
            self._idle = mine
            self._busy.add(child)
            return child

    def close(self) -> None:
        """Kill all processes; running work is lost."""
        with self._lock:
            self._closed = True
            for child in tuple(self._busy):
                child.kill()
            for child in self._idle:
                child.end()
            self._idle.clear()


_pool = WorkerPool()


def compute(batch: Batch) -> list[Result]:
    """Compute a batch in a child of this process; called in the workers of a Dask cluster."""
    return _pool.compute(batch)


def pack_function(computation: Computation, stored: bool, by_value: bool = False) -> PackedFunction:
    """Pickle the function of a computation.

    Arguments:
        stored: whether results go to a store, so that workers must have the same package code.
        by_value: send the user's modules in their present state.
    """
    try:
        modules = computation.identity.user_modules if by_value else ()
        content = _dumps(computation.function, modules)
    except Exception as error:  # a user's object may raise anything when it is pickled
        reason = f"it cannot be sent to the process that computes ({in_words(error)})"
        raise InvalidInput("task", computation.name, reason) from None
    try:  # identify a copy, as a worker gets it: objects that are named here may be copied in it
        identity = Computation(cloudpickle.loads(content), None).identity.digest
    except InvalidInput:
        identity = None
    paths = tuple(path for path in sys.path if path and "site-packages" not in path)
    return PackedFunction(content, identity, package_digest() if stored else None, by_value, paths)


def _dumps(value: Any, modules: Iterable[str]) -> bytes:
    """Pickle a value, and the content of these modules with it."""
    content = io.BytesIO()
    known = cloudpickle.list_registry_pickle_by_value()
    names = [name for name in modules if name in sys.modules and name not in {*known, *SCRIPTS}]
    for name in names:
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        _Pickler(content).dump(value)
    finally:
        for name in names:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler for objects of scripts that cloudpickle rejects: cached functions and properties
    arrive with an empty cache, locks arrive unlocked.
    """

    def reducer_override(self, value: Any) -> Any:
        """Return how to rebuild a value."""
        if isinstance(value, functools._lru_cache_wrapper) and not _is_importable_there(value):
            return _cached, (value.__wrapped__, value.cache_parameters())
        if isinstance(value, functools.cached_property):
            return _cached_property, (value.func, value.attrname)
        if isinstance(value, LOCKS):
            return (threading.Lock if isinstance(value, LOCKS[0]) else threading.RLock), ()
        if isinstance(value, WeakKeyDictionary):  # part of a `singledispatch` function
            return WeakKeyDictionary, (dict(value),)
        return super().reducer_override(value)


def _is_importable_there(value: Any) -> bool:
    by_value = {*SCRIPTS, *cloudpickle.list_registry_pickle_by_value()}
    return value.__module__ not in by_value and is_importable(value)


def _cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.update_wrapper(functools.lru_cache(**parameters)(function), function)


def _cached_property(function: Callable[[Any], Any], name: str | None) -> Any:
    made = functools.cached_property(function)
    made.attrname = name
    return made
