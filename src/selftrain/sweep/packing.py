"""Functions as bytes: what cloudpickle does, and what a script may hold that it cannot send.

A script cannot be imported elsewhere, so its functions travel by value. That includes functions
with a cache, cached properties and locks: they arrive with an empty cache, or open.
"""

from __future__ import annotations

import functools
import io
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import cloudpickle

from .identity import LOCKS, SCRIPTS, is_named


def pack(value: Any, whole: Iterable[str] = ()) -> bytes:
    """A value as bytes; `whole`: modules that travel with it and are not imported there.

    >>> import threading
    >>> cloudpickle.loads(pack(threading.Lock())).locked()
    False
    """
    content = io.BytesIO()
    with _by_value(whole):
        _Pickler(content).dump(value)
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, value: Any) -> Any:
        """How to build a value again."""
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
    home = value.__module__
    away = home in SCRIPTS or home in cloudpickle.list_registry_pickle_by_value()
    return not away and is_named(value)


def _cached(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.update_wrapper(functools.lru_cache(**parameters)(function), function)


def _cached_property(function: Callable[[Any], Any], name: str | None) -> Any:
    made = functools.cached_property(function)
    made.attrname = name
    return made


@contextmanager
def _by_value(modules: Iterable[str]) -> Iterator[None]:
    """Let modules travel, but for those that do so anyway."""
    known = cloudpickle.list_registry_pickle_by_value()
    asked = [sys.modules[name] for name in modules if name in sys.modules and name not in known]
    registered = [module for module in asked if module.__name__ not in SCRIPTS]
    for module in registered:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)
