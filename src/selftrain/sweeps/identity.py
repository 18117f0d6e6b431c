"""What a computation is, identified by value: its code and all the state that the code reaches.

A stored value may be used again only if the same call would compute it again. `identify` follows a
function through its bytecode, default arguments and closure, the globals and the attributes of
modules it names (in nested functions too), and the functions, classes and instances behind them.
Every value counts by its content, never by its address, so the same computation has the same
identity in every process. Comments, docstrings and layout do not count. Installed libraries count
by name and version, this package by the syntax trees of the files that were reached and of all that
they import inside the package. What has no content to compare (an open file, a generator, a
compiled function without a name) is rejected, with its name.
"""

from __future__ import annotations

import functools
import hashlib
import struct
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from ..errors import InvalidInput
from .origins import (
    PACKAGE,
    Spoken,
    is_named,
    modules_of,
    name_in_library,
    origin_of,
    python_of,
    reduced_form,
    release_of,
)

ACCEPTED = (
    "a store cannot tell what is computed with it; create it inside the function, pass plain "
    "numbers or arrays instead, or sweep without a store"
)
HIDING = ("eval", "exec", "globals", "__import__")
"""Builtins whose callers use names that their code does not show."""

NO_PART = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__orig_bases__",
    "__slotnames__", "_abc_impl", "__dataclass_params__", "__dataclass_fields__",
    "__firstlineno__", "__static_attributes__",
}  # fmt: skip
"""Entries of a class that compute nothing, or repeat what others say."""

LOCKS = (type(threading.Lock()), type(threading.RLock()))
_DESCRIPTORS = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip
_MADE_OF: tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...] = (
    (types.MethodType, lambda it: ("method", it.__func__, "self", it.__self__)),
    ((staticmethod, classmethod), lambda it: (type(it).__name__, it.__func__)),
    (property, lambda it: ("property", it.fget, it.fset, it.fdel)),
    (functools.cached_property, lambda it: ("cached property", it.func, it.attrname)),
    (functools.partial, lambda it: ("partial", it.func, it.args, it.keywords, it.__dict__)),
    (functools._lru_cache_wrapper, lambda it: ("cached", it.__wrapped__, it.cache_parameters())),
    (types.CodeType, lambda it: Spoken(it).words),
    (_DESCRIPTORS, lambda it: ("descriptor", it.__objclass__, it.__name__)),
    ((*LOCKS, TypeVar, ParamSpec), lambda it: ("stateless", type(it).__name__)),
)
_DISPATCH = functools.singledispatch(len).__code__  # type: ignore[attr-defined]


class Identity(NamedTuple):
    """A digest of all that was reached, and the modules met: of this package, of the user."""

    digest: str
    modules: frozenset[str]
    own: frozenset[str]


def identify(*things: Any) -> Identity:
    """Return the identity of functions and other values.

    >>> def power(n):
    ...     return lambda x: x**n
    >>> identify(power(2)) == identify(power(2)), identify(power(2)) == identify(power(3))
    (True, False)
    """
    return _Walk().run(things)


class _Attributes(NamedTuple):
    """A module that code names, and all names of that code: its attributes may be among them."""

    module: types.ModuleType
    names: frozenset[str]


class _Walk:
    """One pass over all that is reachable. Data is written where it stands. Functions, classes,
    modules and instances are numbered in the order in which they are met and written once, one
    after the other: they may refer to each other in circles.
    """

    def __init__(self, place: str = "the function") -> None:
        self._place, self._hash = place, hashlib.sha256()
        self._modules, self._own = set[str](), set[str]()
        self._numbers: dict[Any, int] = {}
        self._waiting: deque[tuple[str, Any]] = deque()
        self._alive: list[Any] = []  # an address says who it is only as long as the object lives
        self._open: list[int] = []

    def run(self, things: Iterable[Any]) -> Identity:
        try:
            for thing in things:
                self._visit(thing)
            while self._waiting:
                self._place, value = self._waiting.popleft()
                word = ""  # the one before a part says in messages where it was found
                for part in self._parts(value):
                    self._visit(part, word)
                    word = part if type(part) is str else ""
        except RecursionError:
            raise InvalidInput("task", self._place, f"nested too deep: {ACCEPTED}") from None
        return Identity(self._hash.hexdigest(), frozenset(self._modules), frozenset(self._own))

    def _say(self, *words: Any) -> None:
        """Add words, each with its length, so that no two sequences look alike."""
        for word in words:
            content = word if isinstance(word, bytes) else str(word).encode("utf-8", "replace")
            self._hash.update(b"%d:" % len(content) + content)

    def _visit(self, value: Any, label: str = "") -> None:
        kind = type(value)
        if value is None or kind in (bool, int, complex, type(Ellipsis), type(NotImplemented)):
            self._say(kind.__name__, repr(value))
        elif kind is float:
            self._say("float", struct.pack("<d", value))
        elif kind in (str, bytes, bytearray):
            self._say(kind.__name__, value)
        elif isinstance(value, np.generic) and kind is not np.void:
            self._say("scalar", value.dtype.str, value.tobytes())
        elif kind is np.ndarray:
            self._say("array", value.dtype.descr, value.shape)
            objects = value.dtype.hasobject
            self._visit(value.ravel().tolist() if objects else value.tobytes(), label)
        elif kind in (tuple, list, dict, set, frozenset, types.MappingProxyType):
            self._container(value, label)
        else:
            self._refer(value, label)

    def _container(self, value: Any, label: str) -> None:
        if id(value) in self._open:
            self._say("circle", len(self._open) - self._open.index(id(value)))
            return
        self._open.append(id(value))
        self._say(type(value).__name__, len(value))
        if isinstance(value, (set, frozenset)):
            found = [_Walk(self._place).run([entry]) for entry in value]
            self._modules.update(*(one.modules for one in found))
            self._own.update(*(one.own for one in found))
            self._say(*sorted(one.digest for one in found))
        else:  # a dictionary in its order, which a function that goes through it sees
            row = isinstance(value, (tuple, list))
            for entry in value if row else chain.from_iterable(value.items()):
                self._visit(entry, label)
        self._open.pop()

    def _refer(self, value: Any, label: str) -> None:
        """Refer to an object by its number; the first time, put it on the list."""
        named = isinstance(value, _Attributes)
        key = (id(value.module), value.names) if named else id(value)
        known = key in self._numbers
        self._say("object", self._numbers.setdefault(key, len(self._numbers)))
        if not known:
            self._alive.append(value)
            self._waiting.append((f"{self._place}: {label}" if label else self._place, value))

    def _parts(self, value: Any) -> Iterable[Any]:
        """Return what an object is made of, by its kind."""
        kind = type(value)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.ModuleType):
            return self._module(value, ())
        if isinstance(value, _Attributes):
            return self._module(*value)
        for kinds, made_of in _MADE_OF:
            if isinstance(value, kinds):
                return made_of(value)
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            bound = value.__self__
            if bound is not None and not isinstance(bound, types.ModuleType):
                return "builtin", value.__name__, bound
            home = str(value.__module__ or getattr(bound, "__name__", ""))
            return "builtin", value.__name__, *self._compiled(value, home)
        if kind.__module__.startswith("numba.") and (python := python_of(value)):
            fixed = None if getattr(value, "_can_compile", True) else str(value.signatures)
            return "compiled", python, getattr(value, "targetoptions", None), fixed
        return self._instance(value)

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        home = str(function.__globals__.get("__name__", ""))
        origin, release = self._meet(home)
        if function is import_module:
            self._check_visible("__import__")
        # a wrapper made by a library bears the name of what it wraps, which is not the library's
        if origin != "own" and function.__module__ == home and is_named(function):
            yield from (origin, home, function.__qualname__, release)
        elif function.__code__ == _DISPATCH:  # but not by the cache of what it found
            yield from ("single dispatch", dict(function.__dict__["registry"]))
        else:
            spoken = Spoken(function.__code__)
            yield from ("function", origin, release, *spoken.words)
            yield from ("default arguments", function.__defaults__ or ())
            yield from _sorted(function.__kwdefaults__ or {})
            yield from _sorted(function.__dict__)
            names = function.__code__.co_freevars
            for name, cell in zip(names, function.__closure__ or (), strict=True):
                try:
                    yield from (f"{name} of its closure", cell.cell_contents)
                except ValueError:
                    yield "empty"
            if origin == "own":
                yield from self._globals(function, spoken)

    def _globals(self, function: types.FunctionType, spoken: Spoken) -> Iterator[Any]:
        """Yield globals and modules that the code of a function names."""
        for name in sorted(spoken.loaded):
            yield f"global {name}"
            if name in function.__globals__:
                value = function.__globals__[name]
                named = isinstance(value, types.ModuleType)
                yield _Attributes(value, spoken.names) if named else value
            else:
                self._check_visible(name)
        for name, level, wanted in sorted(spoken.imported):
            package = function.__globals__.get("__package__") or ""
            for module in modules_of("." * level + name, package, wanted):
                yield from ("import", name, _Attributes(module, spoken.names))

    def _check_visible(self, name: str) -> None:
        """Reject code that uses what it does not name."""
        if name in HIDING:
            accepted = f"it calls {name}, so {ACCEPTED.replace('with it', 'there')}"
            raise InvalidInput("task", self._place, accepted)

    def _module(self, module: types.ModuleType, names: Iterable[str]) -> Iterator[Any]:
        """Yield the attributes of a module that the code may mean."""
        home = module.__name__
        if home == PACKAGE:
            public = sorted(set(names) & set(dir(module)))
            self._modules.update([] if public else [PACKAGE])
            yield from ("package", *(getattr(module, name) for name in public))
            return
        origin, release = self._meet(home)
        yield from ("module", origin, home, release)
        if origin != "own":
            return
        content = vars(module)
        found = sorted(name for name in {*names, "__getattr__"} if name in content)
        if not found:  # handed on, or looked up by a name that only the run knows
            found = sorted(name for name in content if not name.startswith("__"))
        if not str(getattr(module, "__file__", None) or ".py").endswith(".py"):
            yield hashlib.sha256(Path(str(module.__file__)).read_bytes()).digest()
        for name in found:
            inner = content[name]
            named = isinstance(inner, types.ModuleType)
            yield from (f"{home}.{name}", _Attributes(inner, frozenset(names)) if named else inner)

    def _class(self, kind: type) -> Iterator[Any]:
        origin, release = self._meet(kind.__module__)
        if origin != "own" and (is_named(kind) or kind.__module__ == "builtins"):
            yield from ("class", kind.__module__, kind.__qualname__, release)
            return
        yield from ("class", kind.__qualname__, type(kind), *kind.__bases__)
        if is_dataclass(kind):
            for name, entry in kind.__dataclass_fields__.items():
                yield from (name, entry.default, entry.metadata)
        left_out = types.MemberDescriptorType  # they are what __slots__ says
        own = {name: entry for name, entry in vars(kind).items() if name not in NO_PART}
        own = {name: entry for name, entry in own.items() if not isinstance(entry, left_out)}
        if issubclass(kind, Enum):  # combinations of flags are added when they are first used
            own["_value2member_map_"] = None
        yield from _sorted(own)

    def _compiled(self, value: Any, home: str) -> tuple[Any, ...]:
        """Return the name of a compiled function, and the content of its file."""
        origin, release = self._meet(home)
        words = ("compiled", home, getattr(value, "__qualname__", ""), release)
        if origin != "own":
            return words
        file = str(getattr(sys.modules.get(home), "__file__", ""))
        if not is_named(value) or not file:
            raise self._unknown(value)
        return *words, hashlib.sha256(Path(file).read_bytes()).digest()

    def _instance(self, value: Any) -> Iterable[Any]:
        """Return the class of any other object, and the state that a copy of it would get."""
        kind, reduced = type(value), reduced_form(value)
        rebuild, arguments, state, items, pairs = (*reduced, *(None,) * 5)[:5]
        bare = isinstance(arguments, tuple) and len(arguments) == 1 and arguments[0] is kind
        empty = bare and (state is None or state == {}) and items is None and pairs is None
        named = None if empty else name_in_library(value)
        if named is not None:  # made by a library for all its users, as the distributions of scipy
            return "library", *named, release_of(named[0])
        if not reduced:
            if callable(value) and is_named(value):
                return self._compiled(value, str(value.__module__))
            raise self._unknown(value)
        parts = ("instance", kind, rebuild, arguments, list(items or ()), dict(pairs or ()))
        if isinstance(state, tuple) and all(isinstance(part, (dict, type(None))) for part in state):
            state = {name: part[name] for part in state if part for name in part}  # slots, too
        if not (isinstance(state, dict) and all(isinstance(name, str) for name in state)):
            return *parts, "its state", state
        cached = functools.cached_property  # what it has left there does not count
        own = {n: part for n, part in state.items() if not isinstance(getattr(kind, n, 0), cached)}
        return *parts, *_sorted(own)

    def _meet(self, home: str) -> tuple[str, str]:
        """Note a module; return whose it is, and the version if it is of a library."""
        origin = origin_of(home)
        if home.partition(".")[0] == PACKAGE:
            self._modules.add(home)
        elif origin == "own":
            self._own.add(home)
        return origin, release_of(home) if origin == "library" else ""

    def _unknown(self, value: Any) -> InvalidInput:
        kind = type(value)
        return InvalidInput("task", f"{self._place} ({kind.__module__}.{kind.__name__})", ACCEPTED)


def _sorted(named: Mapping[str, Any]) -> Iterator[Any]:
    yield len(named)
    yield from chain.from_iterable((name, named[name]) for name in sorted(named))
