"""The identity of a function by value: a digest of its code and of all state that the code reaches.

A stored value may be used again only if the same call would compute it again. `identify` therefore
follows a function through its bytecode, default arguments and closure, the globals and module
attributes that it names (in nested functions too), and the functions, classes and instances behind
them. Values count by content, never by address, so the identity is the same in every process.
Comments, docstrings and layout do not count. Installed libraries count by name and version; modules
of this package are listed, and `package_code` digests their files. Objects without comparable
content (an open file, a generator, an unnamed compiled function) are rejected by name.

A digest of `cloudpickle.dumps` would not do: pickles depend on the order of sets, on shared
references and on the content of caches, and omit the modules that a function imports or names.
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
from .introspection import (
    PACKAGE,
    CodeContent,
    imported_modules,
    is_importable,
    name_in_library,
    owner_of,
    python_function,
    reduction,
    version_of,
)

ADVICE = (
    "a store cannot tell what is computed with it; create it inside the function, pass plain "
    "numbers or arrays instead, or sweep without a store"
)
DYNAMIC = ("eval", "exec", "globals", "__import__")
"""Builtins that look up names which do not appear in the bytecode of their callers."""

IGNORED = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__orig_bases__",
    "__slotnames__", "_abc_impl", "__dataclass_params__", "__dataclass_fields__",
    "__firstlineno__", "__static_attributes__",
}  # fmt: skip
"""Entries of a class that have no effect on results, or repeat other entries."""

LOCKS = (type(threading.Lock()), type(threading.RLock()))
_DESCRIPTORS = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip
_PARTS_BY_TYPE: tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...] = (
    (types.MethodType, lambda it: ("method", it.__func__, "self", it.__self__)),
    ((staticmethod, classmethod), lambda it: (type(it).__name__, it.__func__)),
    (property, lambda it: ("property", it.fget, it.fset, it.fdel)),
    (functools.cached_property, lambda it: ("cached property", it.func, it.attrname)),
    (functools.partial, lambda it: ("partial", it.func, it.args, it.keywords, it.__dict__)),
    (functools._lru_cache_wrapper, lambda it: ("cached", it.__wrapped__, it.cache_parameters())),
    (types.CodeType, lambda it: CodeContent(it).parts),
    (_DESCRIPTORS, lambda it: ("descriptor", it.__objclass__, it.__name__)),
    ((*LOCKS, TypeVar, ParamSpec), lambda it: ("stateless", type(it).__name__)),
)
_DISPATCH = functools.singledispatch(len).__code__  # type: ignore[attr-defined]


class Identity(NamedTuple):
    """A digest of everything reached, and the names of the modules of this package and of the user
    among it.
    """

    digest: str
    package_modules: frozenset[str]
    user_modules: frozenset[str]


def identify(*things: Any) -> Identity:
    """Return the identity of functions and other values.

    Raises:
        InvalidInput: they use an object whose content cannot be compared.

    >>> def power(n):
    ...     return lambda x: x**n
    >>> identify(power(2)) == identify(power(2)), identify(power(2)) == identify(power(3))
    (True, False)
    """
    return _Walk().run(things)


class _ModuleUse(NamedTuple):
    """A module that code uses, and all names in that code: some are attributes of the module."""

    module: types.ModuleType
    names: frozenset[str]


class _Walk:
    """A breadth-first walk over all reachable objects, which are written into one hash.

    Plain data is hashed in place. Functions, classes, modules and instances may refer to each other
    in cycles: they are numbered as they are met, referred to by number, and hashed once.
    """

    def __init__(self, place: str = "the function") -> None:
        self._place, self._hash = place, hashlib.sha256()
        self._package_modules, self._user_modules = set[str](), set[str]()
        self._numbers: dict[Any, int] = {}
        self._waiting: deque[tuple[str, Any]] = deque()
        self._alive: list[Any] = []  # else the address of a deleted object could be used again
        self._open: list[int] = []

    def run(self, things: Iterable[Any]) -> Identity:
        try:
            for thing in things:
                self._visit(thing)
            while self._waiting:
                self._place, value = self._waiting.popleft()
                label = ""  # a string before a part names its place in error messages
                for part in self._parts(value):
                    self._visit(part, label)
                    label = part if type(part) is str else ""
        except RecursionError:
            raise InvalidInput("task", self._place, f"nested too deeply: {ADVICE}") from None
        modules = frozenset(self._package_modules), frozenset(self._user_modules)
        return Identity(self._hash.hexdigest(), *modules)

    def _write(self, *words: Any) -> None:
        """Hash words, each with its length, so that different sequences have different hashes."""
        for word in words:
            content = word if isinstance(word, bytes) else str(word).encode("utf-8", "replace")
            self._hash.update(b"%d:" % len(content) + content)

    def _visit(self, value: Any, label: str = "") -> None:
        kind = type(value)
        if value is None or kind in (bool, int, complex, type(Ellipsis), type(NotImplemented)):
            self._write(kind.__name__, repr(value))
        elif kind is float:
            self._write("float", struct.pack("<d", value))
        elif kind in (str, bytes, bytearray):
            self._write(kind.__name__, value)
        elif isinstance(value, np.generic) and kind is not np.void:
            self._write("scalar", value.dtype.str, value.tobytes())
        elif kind is np.ndarray:
            self._write("array", value.dtype.descr, value.shape)
            objects = value.dtype.hasobject
            self._visit(value.ravel().tolist() if objects else value.tobytes(), label)
        elif kind in (tuple, list, dict, set, frozenset, types.MappingProxyType):
            self._visit_container(value, label)
        else:
            self._refer(value, label)

    def _visit_container(self, value: Any, label: str) -> None:
        if id(value) in self._open:
            self._write("cycle", len(self._open) - self._open.index(id(value)))
            return
        self._open.append(id(value))
        self._write(type(value).__name__, len(value))
        if isinstance(value, (set, frozenset)):
            found = [_Walk(self._place).run([entry]) for entry in value]
            self._package_modules.update(*(one.package_modules for one in found))
            self._user_modules.update(*(one.user_modules for one in found))
            self._write(*sorted(one.digest for one in found))
        else:  # the order of a dictionary counts: a loop over it sees the order
            plain = isinstance(value, (tuple, list))
            for entry in value if plain else chain.from_iterable(value.items()):
                self._visit(entry, label)
        self._open.pop()

    def _refer(self, value: Any, label: str) -> None:
        """Write the number of an object; queue the object if it is new."""
        used = isinstance(value, _ModuleUse)
        key = (id(value.module), value.names) if used else id(value)
        known = key in self._numbers
        self._write("object", self._numbers.setdefault(key, len(self._numbers)))
        if not known:
            self._alive.append(value)
            self._waiting.append((f"{self._place}: {label}" if label else self._place, value))

    def _parts(self, value: Any) -> Iterable[Any]:
        """Return what an object consists of, by its type."""
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.ModuleType):
            return self._module(value, ())
        if isinstance(value, _ModuleUse):
            return self._module(*value)
        for kinds, parts in _PARTS_BY_TYPE:
            if isinstance(value, kinds):
                return parts(value)
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            bound = value.__self__
            if bound is not None and not isinstance(bound, types.ModuleType):
                return "builtin", value.__name__, bound
            home = str(value.__module__ or getattr(bound, "__name__", ""))
            return "builtin", value.__name__, *self._compiled(value, home)
        if type(value).__module__.startswith("numba.") and (python := python_function(value)):
            fixed = None if getattr(value, "_can_compile", True) else str(value.signatures)
            return "compiled", python, getattr(value, "targetoptions", None), fixed
        return self._instance(value)

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        home = str(function.__globals__.get("__name__", ""))
        owner, version = self._note_module(home)
        if function is import_module:
            self._check_static("__import__")
        # a wrapper made by a library has the name of the user's function that it wraps
        if owner != "user" and function.__module__ == home and is_importable(function):
            yield from (owner, home, function.__qualname__, version)
        elif function.__code__ == _DISPATCH:  # its closure has a cache, which must not count
            yield from ("single dispatch", dict(function.__dict__["registry"]))
        else:
            code = CodeContent(function.__code__)
            yield from ("function", owner, version, *code.parts)
            yield from ("default arguments", function.__defaults__ or ())
            yield from _by_name(function.__kwdefaults__ or {})
            yield from _by_name(function.__dict__)
            names = function.__code__.co_freevars
            for name, cell in zip(names, function.__closure__ or (), strict=True):
                try:
                    yield from (f"{name} of its closure", cell.cell_contents)
                except ValueError:
                    yield "empty"
            if owner == "user":
                yield from self._globals(function, code)

    def _globals(self, function: types.FunctionType, code: CodeContent) -> Iterator[Any]:
        """Yield the globals that a function names and the modules that it imports."""
        for name in sorted(code.globals):
            yield f"global {name}"
            if name in function.__globals__:
                value = function.__globals__[name]
                used = isinstance(value, types.ModuleType)
                yield _ModuleUse(value, code.names) if used else value
            else:
                self._check_static(name)
        for name, level, wanted in sorted(code.imports):
            package = function.__globals__.get("__package__") or ""
            for module in imported_modules("." * level + name, package, wanted):
                yield from ("import", name, _ModuleUse(module, code.names))

    def _check_static(self, name: str) -> None:
        """Reject code that looks up names at run time: they cannot be followed."""
        if name in DYNAMIC:
            advice = f"it calls {name}, so {ADVICE.replace('with it', 'there')}"
            raise InvalidInput("task", self._place, advice)

    def _module(self, module: types.ModuleType, names: Iterable[str]) -> Iterator[Any]:
        """Yield the attributes of a module that have one of these names."""
        home = module.__name__
        if home == PACKAGE:
            public = sorted(set(names) & set(dir(module)))
            self._package_modules.update([] if public else [PACKAGE])
            yield from ("package", *(getattr(module, name) for name in public))
            return
        owner, version = self._note_module(home)
        yield from ("module", owner, home, version)
        if owner != "user":
            return
        content = vars(module)
        found = sorted(name for name in {*names, "__getattr__"} if name in content)
        if not found:  # passed on as an object, or used through getattr: all of it counts
            found = sorted(name for name in content if not name.startswith("__"))
        if not str(getattr(module, "__file__", None) or ".py").endswith(".py"):
            yield hashlib.sha256(Path(str(module.__file__)).read_bytes()).digest()
        for name in found:
            inner = content[name]
            nested = isinstance(inner, types.ModuleType)
            yield from (f"{home}.{name}", _ModuleUse(inner, frozenset(names)) if nested else inner)

    def _class(self, kind: type) -> Iterator[Any]:
        owner, version = self._note_module(kind.__module__)
        if owner != "user" and (is_importable(kind) or kind.__module__ == "builtins"):
            yield from ("class", kind.__module__, kind.__qualname__, version)
            return
        yield from ("class", kind.__qualname__, type(kind), *kind.__bases__)
        if is_dataclass(kind):
            for name, entry in kind.__dataclass_fields__.items():
                yield from (name, entry.default, entry.metadata)
        slots = types.MemberDescriptorType  # repeat the entry __slots__
        entries = {
            name: entry
            for name, entry in vars(kind).items()
            if name not in IGNORED and not isinstance(entry, slots)
        }
        if issubclass(kind, Enum):  # combinations of flags are added when they are first used
            entries["_value2member_map_"] = None
        yield from _by_name(entries)

    def _compiled(self, value: Any, home: str) -> tuple[Any, ...]:
        """Return the name of a compiled function and, for a user's, the digest of its file."""
        owner, version = self._note_module(home)
        words = ("compiled", home, getattr(value, "__qualname__", ""), version)
        if owner != "user":
            return words
        file = str(getattr(sys.modules.get(home), "__file__", ""))
        if not is_importable(value) or not file:
            raise self._unknown(value)
        return *words, hashlib.sha256(Path(file).read_bytes()).digest()

    def _instance(self, value: Any) -> Iterable[Any]:
        """Return what identifies an object: its class, and the state that pickle would store."""
        kind, reduced = type(value), reduction(value)
        rebuild, arguments, state, items, pairs = (*reduced, *(None,) * 5)[:5]
        bare = isinstance(arguments, tuple) and len(arguments) == 1 and arguments[0] is kind
        empty = bare and (state is None or state == {}) and items is None and pairs is None
        named = None if empty else name_in_library(value)
        if named is not None:
            return "library", *named, version_of(named[0])
        if not reduced:
            if callable(value) and is_importable(value):
                return self._compiled(value, str(value.__module__))
            raise self._unknown(value)
        parts = ("instance", kind, rebuild, arguments, list(items or ()), dict(pairs or ()))
        if isinstance(state, tuple) and all(isinstance(part, (dict, type(None))) for part in state):
            state = {name: part[name] for part in state if part for name in part}  # slots, too
        if not (isinstance(state, dict) and all(isinstance(name, str) for name in state)):
            return *parts, "its state", state
        cached = functools.cached_property  # a cached value does not count
        own = {n: part for n, part in state.items() if not isinstance(getattr(kind, n, 0), cached)}
        return *parts, *_by_name(own)

    def _note_module(self, home: str) -> tuple[str, str]:
        """Record a module; return its owner, and its version if it belongs to a library."""
        owner = owner_of(home)
        if home.partition(".")[0] == PACKAGE:
            self._package_modules.add(home)
        elif owner == "user":
            self._user_modules.add(home)
        return owner, version_of(home) if owner == "library" else ""

    def _unknown(self, value: Any) -> InvalidInput:
        kind = type(value)
        return InvalidInput("task", f"{self._place} ({kind.__module__}.{kind.__name__})", ADVICE)


def _by_name(entries: Mapping[str, Any]) -> Iterator[Any]:
    yield len(entries)
    yield from chain.from_iterable((name, entries[name]) for name in sorted(entries))
