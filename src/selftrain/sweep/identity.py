"""What a function computes, identified by value: its code and all the state that the code reaches.

A stored value may be used again only if the same call would compute it again. `identify` follows a
function through its bytecode, default arguments and closure, the globals and the attributes of
modules that it names (in nested functions too), the functions, classes and instances behind them,
and so on. Every value on the way counts by its content, never by its address, so the same
computation has the same identity in every process. Comments, docstrings and layout do not count.

Two kinds of code are not followed: that of installed libraries counts by name and version, and that
of this package by its files (`code`). What has no content that could be compared (an open file, a
generator, a compiled function without a name) is rejected, with its name.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import struct
import sys
import sysconfig
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from ..errors import InvalidInput

PACKAGE = __name__.partition(".")[0]

ACCEPTED = (
    "a store cannot tell what is computed with it; create it inside the function, pass plain "
    "numbers or arrays instead, or sweep without a store"
)

SCRIPTS = ("__main__", "__mp_main__")
"""Names of a script. A worker has another one by this name: the program that it was started by."""

HIDING = ("eval", "exec", "globals", "__import__")
"""Builtins whose callers use names that their code does not show."""

NO_PART = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__orig_bases__"),
    *("__slotnames__", "_abc_impl", "__dataclass_params__", "__dataclass_fields__"),
    *("__firstlineno__", "__static_attributes__"),
}
"""Entries of a class that compute nothing, or repeat what others say."""


class Identity(NamedTuple):
    """A digest of everything reached by value, and the modules that were met: of this package, and
    of the user.
    """

    digest: str
    modules: frozenset[str]
    own: frozenset[str]


def identify(*things: Any) -> Identity:
    """The identity of functions and other values.

    >>> def power(n):
    ...     return lambda x: x**n
    >>> identify(power(2)) == identify(power(2)), identify(power(2)) == identify(power(3))
    (True, False)
    """
    walk = _Walk()
    try:
        return walk.run(things)
    except RecursionError:
        raise InvalidInput("task", walk.place, f"nested too deep: {ACCEPTED}") from None


class _Walk:
    """One pass over all that is reachable.

    Data is written where it stands. Functions, classes, modules and instances are numbered in the
    order in which they are met and written once, one after the other: they may refer to each other
    in circles.
    """

    def __init__(self) -> None:
        self.place = "the function"
        self._hash = hashlib.sha256()
        self._modules: set[str] = set()
        self._own: set[str] = set()
        self._numbers: dict[Any, int] = {}
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self._alive: list[Any] = []  # an address says who it is only as long as the object lives
        self._open: list[int] = []

    def run(self, things: Iterable[Any]) -> Identity:
        for thing in things:
            self.visit(thing)
        while self._waiting:
            self.place, write = self._waiting.popleft()
            write()
        return Identity(self._hash.hexdigest(), frozenset(self._modules), frozenset(self._own))

    def say(self, *words: Any) -> None:
        """Add words, each with its length, so that no two sequences look alike."""
        for word in words:
            content = word if isinstance(word, bytes) else str(word).encode("utf-8", "replace")
            self._hash.update(b"%d:" % len(content) + content)

    def visit(self, value: Any, label: str = "") -> None:
        """Add a value; `label` says where it was found."""
        kind = type(value)
        if value is None or kind in (bool, int, complex, type(Ellipsis), type(NotImplemented)):
            self.say(kind.__name__, repr(value))
        elif kind is float:
            self.say("float", struct.pack("<d", value))
        elif kind in (str, bytes, bytearray):
            self.say(kind.__name__, value)
        elif isinstance(value, np.generic) and kind is not np.void:
            self.say("scalar", value.dtype.str, value.tobytes())
        elif kind is np.ndarray:
            self._array(value, label)
        elif kind in (tuple, list, dict, set, frozenset, types.MappingProxyType):
            self._container(value, label)
        else:
            self._once(value, label)

    def _array(self, value: np.ndarray, label: str) -> None:
        self.say("array", value.dtype.descr, value.shape)
        if value.dtype.hasobject:
            for entry in value.ravel().tolist():
                self.visit(entry, label)
        else:
            self.say(np.ascontiguousarray(value).tobytes())

    def _container(self, value: Any, label: str) -> None:
        if id(value) in self._open:
            self.say("circle", len(self._open) - self._open.index(id(value)))
            return
        self._open.append(id(value))
        self.say(type(value).__name__, len(value))
        if isinstance(value, (set, frozenset)):
            for part in sorted(self._aside(entry) for entry in value):
                self.say(part)
        elif isinstance(value, (tuple, list)):
            for at, entry in enumerate(value):
                self.visit(entry, f"{label}[{at}]")
        else:  # in its order, which a function that goes through it sees
            for key, entry in value.items():
                self.visit(key, label)
                self.visit(entry, f"{label}[{key!r}]")
        self._open.pop()

    def _aside(self, value: Any) -> str:
        """A digest on its own: entries of a set are sorted by it."""
        other = _Walk()
        other.place = self.place
        found = other.run([value])
        self._modules |= found.modules
        self._own |= found.own
        return found.digest

    def _once(self, value: Any, label: str, key: Any = None, write: Any = None) -> None:
        """Refer to an object by its number; the first time, put it on the list."""
        key = id(value) if key is None else key
        known = key in self._numbers
        self.say("object", self._numbers.setdefault(key, len(self._numbers)))
        if not known:
            self._alive.append(value)
            place = f"{self.place}: {label}" if label else self.place
            self._waiting.append((place, write or (lambda: self._object(value))))

    def _object(self, value: Any) -> None:
        """Write an object down by its kind."""
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.ModuleType):
            self._module(value, ())
        elif isinstance(value, types.MethodType):
            self.say("method")
            self.visit(value.__func__)
            self.visit(value.__self__, "self")
        elif isinstance(value, (staticmethod, classmethod)):
            self.say(type(value).__name__)
            self.visit(value.__func__)
        elif isinstance(value, property):
            self._parts("property", value.fget, value.fset, value.fdel)
        elif isinstance(value, functools.cached_property):
            self._parts("cached property", value.func, value.attrname)
        elif isinstance(value, functools.partial):
            self._parts("partial", value.func, value.args, value.keywords, value.__dict__)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._parts("cached", value.__wrapped__, value.cache_parameters())
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, _DESCRIPTORS):
            self._parts("descriptor", value.__objclass__, value.__name__)
        elif isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            self._builtin(value)
        elif isinstance(value, (*LOCKS, TypeVar, ParamSpec)):
            self.say("stateless", type(value).__name__)
        elif type(value).__module__.startswith("numba.") and (python := _python_of(value)):
            fixed = None if getattr(value, "_can_compile", True) else str(value.signatures)
            self._parts("compiled", python, getattr(value, "targetoptions", None), fixed)
        else:
            self._instance(value)

    def _parts(self, kind: str, *parts: Any) -> None:
        self.say(kind)
        for part in parts:
            self.visit(part)

    def _function(self, function: types.FunctionType) -> None:
        home = str(function.__globals__.get("__name__", ""))
        origin = _origin(home)
        if function is import_module:
            self._check_visible("__import__")
        self._meet(home, origin)
        # a wrapper made by a library bears the name of what it wraps, which is not the library's
        if origin != "own" and function.__module__ == home and is_named(function):
            self.say(origin, home, function.__qualname__, _version(home, origin))
            return
        if function.__code__ == _DISPATCH:  # but not by the cache of what it found
            self._parts("single dispatch", dict(function.__dict__["registry"]))
            return
        self.say("function", origin, _version(home, origin))
        self._code(function.__code__)
        self.visit(function.__defaults__ or (), "default arguments")
        self._sorted(function.__kwdefaults__ or {}, "default argument ")
        self._sorted(function.__dict__, "attribute ")
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                content = cell.cell_contents
            except ValueError:
                self.say("empty")
                continue
            self.visit(content, f"{name} of its closure")
        if origin == "own":
            self._names(function)

    def _code(self, code: types.CodeType) -> None:
        """Bytecode with the constants and names it means, without lines and docstrings."""
        arguments = code.co_argcount + code.co_kwonlyargcount
        self.say("code", code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        self.say(code.co_flags, *code.co_varnames[:arguments], code.co_exceptiontable)
        for one in dis.get_instructions(code):
            constant = one.opcode in dis.hasconst
            self.say(one.opname, None if constant else one.arg)
            if not constant:
                self.say(one.argval)
            elif isinstance(one.argval, types.CodeType):
                self._code(one.argval)
            else:
                self.visit(one.argval)

    def _names(self, function: types.FunctionType) -> None:
        """Globals and modules that the code of a function names."""
        spoken = _Spoken(function.__code__)
        for name in sorted(spoken.loaded):
            if name in function.__globals__:
                self.say("global", name)
                value = function.__globals__[name]
                if isinstance(value, types.ModuleType):
                    self._module_of(value, spoken.names)
                else:
                    self.visit(value, f"global {name}")
            else:
                self._check_visible(name)
                self.say("builtin", name)
        for name, level, wanted in sorted(spoken.imported):
            package = function.__globals__.get("__package__") or ""
            for module in _modules_of("." * level + name, package, wanted):
                self.say("import", name)
                self._module_of(module, spoken.names)

    def _check_visible(self, name: str) -> None:
        """Reject code that uses what it does not name."""
        if name in HIDING:
            accepted = f"it calls {name}, so {ACCEPTED.replace('with it', 'there')}"
            raise InvalidInput("task", self.place, accepted)

    def _module_of(self, module: types.ModuleType, names: frozenset[str]) -> None:
        """A module that code names: the attributes that the code may mean."""
        key = (id(module), names)
        self._once(module, module.__name__, key, lambda: self._module(module, names))

    def _module(self, module: types.ModuleType, names: Iterable[str]) -> None:
        home, origin = module.__name__, _origin(module.__name__)
        if origin == "package" and home == PACKAGE:
            public = sorted(set(names) & set(module.__all__))
            self._modules.update([] if public else [PACKAGE])
            self._parts("package", *(getattr(module, name) for name in public))
            return
        self._meet(home, origin)
        self.say("module", origin, home, _version(home, origin))
        if origin != "own":
            return
        content = vars(module)
        found = sorted(name for name in {*names, "__getattr__"} if name in content)
        if not found:  # handed on, or looked up by a name that only the run knows
            found = sorted(name for name in content if not name.startswith("__"))
        if not str(getattr(module, "__file__", None) or ".py").endswith(".py"):
            self.say(hashlib.sha256(Path(str(module.__file__)).read_bytes()).digest())
        for name in found:
            self.say(name)
            if isinstance(content[name], types.ModuleType):
                self._module_of(content[name], frozenset(names))
            else:
                self.visit(content[name], f"{home}.{name}")

    def _class(self, kind: type) -> None:
        origin = _origin(kind.__module__)
        self._meet(kind.__module__, origin)
        if origin != "own" and (is_named(kind) or kind.__module__ == "builtins"):
            self.say("class", kind.__module__, kind.__qualname__, _version(kind.__module__, origin))
            return
        self.say("class", kind.__qualname__)
        self._parts("bases", type(kind), *kind.__bases__)
        if is_dataclass(kind):
            for name, entry in kind.__dataclass_fields__.items():
                self._parts(name, entry.default, entry.metadata)
        own = {
            name: entry
            for name, entry in vars(kind).items()
            if name not in NO_PART and not isinstance(entry, types.MemberDescriptorType)
        }  # members are what __slots__ says
        if issubclass(kind, Enum):  # combinations of flags are added when they are first used
            own = {**own, "_value2member_map_": None}
        self._sorted(own, f"{kind.__qualname__}.")

    def _builtin(self, value: Any) -> None:
        """A compiled function: by its name, and by what it is bound to."""
        bound = value.__self__
        self.say("builtin", value.__name__)
        if bound is not None and not isinstance(bound, types.ModuleType):
            self.visit(bound, "self")
        else:
            self._compiled(value, str(value.__module__ or getattr(bound, "__name__", "")))

    def _compiled(self, value: Any, home: str) -> None:
        origin = _origin(home)
        self.say("compiled", home, getattr(value, "__qualname__", ""), _version(home, origin))
        if origin == "own":
            file = str(getattr(sys.modules.get(home), "__file__", ""))
            if not is_named(value) or not file:
                raise self._unknown(value)
            self.say(hashlib.sha256(Path(file).read_bytes()).digest())

    def _instance(self, value: Any) -> None:
        """Any other object: its class and the state that a copy of it would get."""
        kind = type(value)
        reduced = _reduced(value)
        rebuild, arguments, state, items, pairs = (*reduced, *(None,) * 5)[:5]
        bare = isinstance(arguments, tuple) and len(arguments) == 1 and arguments[0] is kind
        empty = bare and (state is None or state == {}) and items is None and pairs is None
        named = not empty and _name_in_library(value)
        if named:  # made by a library for all its users, as the distributions of scipy are
            self.say("library", *named, _version(named[0], "library"))
            return
        if not reduced:
            if not (callable(value) and is_named(value)):
                raise self._unknown(value)
            self._compiled(value, str(value.__module__))
            return
        self._parts("instance", kind, rebuild, arguments, list(items or ()), dict(pairs or ()))
        if isinstance(state, tuple) and all(isinstance(part, (dict, type(None))) for part in state):
            state = {name: part[name] for part in state if part for name in part}  # slots, too
        if isinstance(state, dict) and all(isinstance(name, str) for name in state):
            self._sorted(_without_caches(kind, state), "attribute ")
        else:
            self.visit(state, "its state")

    def _sorted(self, named: Mapping[str, Any], label: str) -> None:
        self.say(len(named))
        for name in sorted(named):
            self.say(name)
            self.visit(named[name], label + name)

    def _meet(self, home: str, origin: str) -> None:
        if origin == "package":
            self._modules.add(home)
        elif origin == "own":
            self._own.add(home)

    def _unknown(self, value: Any) -> InvalidInput:
        kind = type(value)
        return InvalidInput("task", f"{self.place} ({kind.__module__}.{kind.__name__})", ACCEPTED)


_DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_DISPATCH = functools.singledispatch(len).__code__  # type: ignore[attr-defined]
LOCKS = (type(threading.Lock()), type(threading.RLock()))


class _Spoken:
    """Names in a piece of code and in all code nested in it.

    Attributes:
        loaded: names looked up among globals.
        imported: modules of import statements: name, level, and what is taken from them.
        names: all names, attributes among them.
    """

    def __init__(self, code: types.CodeType) -> None:
        self.loaded: set[str] = set()
        self.imported: set[tuple[str, int, tuple[str, ...]]] = set()
        names: set[str] = set()
        waiting = [code]
        while waiting:
            one = waiting.pop()
            names.update(one.co_names)
            waiting += [part for part in one.co_consts if isinstance(part, types.CodeType)]
            before: list[Any] = [0, None]
            for step in dis.get_instructions(one):
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                    self.loaded.add(str(step.argval))
                elif step.opname == "IMPORT_NAME":
                    level, wanted = before[-2:]
                    self.imported.add((str(step.argval), int(level or 0), tuple(wanted or ())))
                before.append(step.argval)
        self.names = frozenset(names)


def _modules_of(name: str, package: str, wanted: tuple[str, ...]) -> Iterator[types.ModuleType]:
    """The modules behind an import statement; none if it fails, as it would in the function."""
    try:
        module = import_module(name, package)
        top = module if wanted else sys.modules[module.__name__.partition(".")[0]]
        yield top
    except Exception:  # whatever a module raises when it is imported
        return
    for part in wanted:
        if hasattr(module, "__path__") and not hasattr(module, part):
            yield from _modules_of(f"{module.__name__}.{part}", "", ("",))


def _origin(module: str) -> str:
    """Whose code a module is: "package" (this one), "library" (installed), or the user's "own"."""
    top = module.partition(".")[0]
    if top == PACKAGE:
        return "package"
    if top in SCRIPTS:
        return "own"
    file = _file(module, top)
    if file is None:
        return "library" if top in sys.stdlib_module_names else "own"
    installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    return "library" if installed or file.startswith(_STANDARD) else "own"


def _file(module: str, top: str) -> str | None:
    """The file of a module. A copy of a function may arrive before its module is imported."""
    loaded = sys.modules.get(module) or sys.modules.get(top)
    if loaded is not None:
        return getattr(loaded, "__file__", None)
    try:
        found = find_spec(top)
    except (ImportError, ValueError):
        return None
    return None if found is None else found.origin


_STANDARD = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib")})


def _version(module: str, origin: str) -> str:
    return _release(module.partition(".")[0]) if origin == "library" else ""


@cache
def _release(library: str) -> str:
    """The version of an installed library; none for a part of Python."""
    if library in sys.stdlib_module_names:
        return ""
    try:
        found = getattr(import_module(library), "__version__", None)
        return found if isinstance(found, str) else version(library)
    except (ImportError, PackageNotFoundError, ValueError):
        return ""


def is_named(value: Any) -> bool:
    """Whether an object is what its module has under its name."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in str(getattr(value, "__qualname__", "<none>")).split("."):
        found = getattr(found, part, None)
    return found is value


def _name_in_library(value: Any) -> tuple[str, str] | None:
    """Module and name of an object that a library has made: where its class is defined, or under
    the name that the object itself has.
    """
    kind = type(value)
    if _origin(kind.__module__) != "library":
        return None
    home = vars(sys.modules[kind.__module__]) if kind.__module__ in sys.modules else {}
    for name in sorted(home):
        if home[name] is value:
            return kind.__module__, name
    own = getattr(value, "__name__", None)
    if not isinstance(own, str):
        return None
    found = any(_has(name, own, value) for name in list(sys.modules) if _origin(name) == "library")
    return (kind.__module__, own) if found else None  # which one depends on what is loaded


def _has(module: str, name: str, value: Any) -> bool:
    content = getattr(sys.modules[module], "__dict__", {})
    return name in content and content[name] is value


def _reduced(value: Any) -> tuple[Any, ...]:
    """What a copy is made from; nothing if there can be none, or if it is found by its name."""
    kind = type(value)
    if isinstance(value, Iterator) and kind.__module__ in ("builtins", "itertools", "_io"):
        return ()  # it would be used up
    reduce = copyreg.dispatch_table.get(kind)
    try:
        found = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception:  # whatever says here that it cannot be copied
        return ()
    return () if isinstance(found, str) else tuple(found)


def _without_caches(kind: type, state: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes without the values that cached properties have left there."""
    return {
        name: value
        for name, value in state.items()
        if not isinstance(getattr(kind, name, None), functools.cached_property)
    }


def _python_of(compiled: Any) -> Any:
    """The Python function behind one that numba compiles."""
    for name in ("py_func", "_pyfunc", "_dispatcher", "gufunc_builder"):
        if (found := getattr(compiled, name, None)) is not None:
            return found
    return None
