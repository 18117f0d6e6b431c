"""The function of a computation as bytes, to be computed in this process or in another.

A process that unpacks it verifies that it would compute the same as the process that packed it.
"""

from __future__ import annotations

import functools
import io
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import cloudpickle

from ..errors import InvalidInput
from .computation import Computation
from .function_identity import LOCKS
from .introspection import SCRIPTS, is_importable
from .package_code import package_digest

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


class PackedFunction(NamedTuple):
    """A pickled function.

    Attributes:
        identity: digest that the unpickled function must have; None if it has no identity.
        package: digest of this package that a worker must have.
        by_value: whether the user's modules are pickled in their present state; else workers
            import them.
        paths: folders that modules are imported from.
    """

    content: bytes
    identity: str | None
    package: str
    by_value: bool
    paths: tuple[str, ...]


def pack_function(computation: Computation, by_value: bool = False) -> PackedFunction:
    """Pickle the function of a computation; `by_value`: with the user's modules in their present
    state.
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
    return PackedFunction(content, identity, package_digest(), by_value, paths)


_verified: set[str] = set()
"""Identities that this process has verified, once each: calls may change a function's state."""


def unpack_function(packed: PackedFunction) -> Function | str:
    """Return the function, verified to be the one that was sent; or why it cannot be used."""
    sys.path.extend(path for path in packed.paths if path not in sys.path)
    try:
        function: Function = cloudpickle.loads(packed.content)
        if packed.package != package_digest():
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


def in_words(error: BaseException) -> str:
    """Return an error as one line of valid UTF-8."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return line.encode("utf-8", "backslashreplace").decode()


def _dumps(value: Any, modules: Iterable[str]) -> bytes:
    """Pickle a value, and the content of these modules with it."""
    content = io.BytesIO()
    names = [name for name in modules if name in sys.modules and name not in _by_value()]
    for name in names:
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        _Pickler(content).dump(value)
    finally:
        for name in names:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    return content.getvalue()


def _by_value() -> set[str]:
    """Return the names of the modules whose objects are pickled by value."""
    return {*SCRIPTS, *cloudpickle.list_registry_pickle_by_value()}


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler for objects of scripts that cloudpickle rejects: cached functions and properties
    arrive with an empty cache, locks arrive unlocked.
    """

    def reducer_override(self, value: Any) -> Any:
        """Return how to rebuild a value."""
        if isinstance(value, functools._lru_cache_wrapper):
            if value.__module__ in _by_value() or not is_importable(value):
                return _cached, (value.__wrapped__, value.cache_parameters())
        elif isinstance(value, functools.cached_property):
            return _cached_property, (value.func, value.attrname)
        elif isinstance(value, LOCKS):
            return (threading.Lock if isinstance(value, LOCKS[0]) else threading.RLock), ()
        elif isinstance(value, WeakKeyDictionary):  # part of a `singledispatch` function
            return WeakKeyDictionary, (dict(value),)
        return super().reducer_override(value)


def _cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.update_wrapper(functools.lru_cache(**parameters)(function), function)


def _cached_property(function: Callable[[Any], Any], name: str | None) -> Any:
    made = functools.cached_property(function)
    made.attrname = name
    return made
