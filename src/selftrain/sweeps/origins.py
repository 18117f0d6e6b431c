"""Where code comes from: whose module it is, what it names, what an object is made from."""

from __future__ import annotations

import copyreg
import dis
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]
TASKS = f"{PACKAGE}.sweeps.tasks"
"""The functions of known tasks count by value, so that each depends on its own engine only."""

SCRIPTS = ("__main__", "__mp_main__")
"""Names of a script. A worker has another one by this name: the program that it was started by."""

_STANDARD = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})


def modules_of(name: str, package: str, wanted: tuple[str, ...]) -> Iterator[types.ModuleType]:
    """Yield the modules behind an import statement; none if it fails, as it would there."""
    try:
        module = import_module(name, package)
        yield module if wanted else sys.modules[module.__name__.partition(".")[0]]
    except Exception:  # whatever a module raises when it is imported
        return
    for part in wanted:
        if hasattr(module, "__path__") and not hasattr(module, part):
            yield from modules_of(f"{module.__name__}.{part}", "", ("",))


def origin_of(module: str) -> str:
    """Return whose code a module is: "package" (this one), "library" (installed) or "own"."""
    top = module.partition(".")[0]
    if top == PACKAGE or top in SCRIPTS:
        return "package" if top == PACKAGE and module != TASKS else "own"
    loaded = sys.modules.get(module) or sys.modules.get(top)
    file = getattr(loaded, "__file__", None)
    if loaded is None:  # a copy of a function may arrive before its module is imported
        try:
            file = getattr(find_spec(top), "origin", None)
        except (ImportError, ValueError):
            file = None
    if file is None:
        return "library" if top in sys.stdlib_module_names else "own"
    installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    return "library" if installed or file.startswith(_STANDARD) else "own"


@cache
def release_of(module: str) -> str:
    """Return the version of an installed library; none for a part of Python."""
    library = module.partition(".")[0]
    if library in sys.stdlib_module_names:
        return ""
    try:
        found = getattr(import_module(library), "__version__", None)
        return found if isinstance(found, str) else version(library)
    except (ImportError, PackageNotFoundError, ValueError):
        return ""


def is_named(value: Any) -> bool:
    """Return whether an object is what its module has under its name."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in str(getattr(value, "__qualname__", "<none>")).split("."):
        found = getattr(found, part, None)
    return found is value


def name_in_library(value: Any) -> tuple[str, str] | None:
    """Return module and name of an object that a library has made: where its class is defined, or
    under the name that the object itself has.
    """
    home = type(value).__module__
    if origin_of(home) != "library":
        return None
    content = vars(sys.modules[home]) if home in sys.modules else {}
    names = [name for name in sorted(content) if content[name] is value]
    own = getattr(value, "__name__", None)
    if not names and isinstance(own, str):  # in which module depends on what is loaded
        loaded = [(name, getattr(one, "__dict__", {})) for name, one in sys.modules.items()]
        homes = [name for name, content in loaded if content.get(own) is value]
        names = [own] if any(origin_of(name) == "library" for name in homes) else []
    return (home, names[0]) if names else None


def reduced_form(value: Any) -> tuple[Any, ...]:
    """Return what a copy is made from; nothing if there can be none, or if it is found by name."""
    kind = type(value)
    if isinstance(value, Iterator) and kind.__module__ in ("builtins", "itertools", "_io"):
        return ()  # it would be used up
    reduce = copyreg.dispatch_table.get(kind)
    try:
        found = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception:  # whatever says here that it cannot be copied
        return ()
    return () if isinstance(found, str) else tuple(found)


def python_of(compiled: Any) -> Any:
    """Return the Python function behind one that numba compiles."""
    names = ("py_func", "_pyfunc", "_dispatcher", "gufunc_builder")
    return next((found for name in names if (found := getattr(compiled, name, None))), None)


class Spoken:
    """A piece of code and all code nested in it, in words.

    Attributes:
        words: its bytecode with the constants and names it means, without lines and docstrings.
        loaded: names looked up among globals.
        imported: modules of import statements: name, level, and what is taken from them.
        names: all names, attributes among them.
    """

    def __init__(self, code: types.CodeType) -> None:
        self.words: list[Any] = ["code"]
        self.loaded, self.names = set[str](), frozenset[str]()
        self.imported: set[tuple[str, int, tuple[str, ...]]] = set()
        self._read(code)

    def _read(self, code: types.CodeType) -> None:
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.words += [*counts, arguments, code.co_exceptiontable]
        self.names |= frozenset(code.co_names)
        before: list[Any] = [0, None]
        for step in dis.get_instructions(code):
            if isinstance(step.argval, types.CodeType):
                self.words.append(step.opname)
                self._read(step.argval)
            elif step.opcode in dis.hasconst:
                self.words += [step.opname, step.argval]
            else:
                self.words += [step.opname, step.arg, str(step.argval)]
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.loaded.add(str(step.argval))
            elif step.opname == "IMPORT_NAME":
                level, wanted = before[-2:]
                self.imported.add((str(step.argval), int(level or 0), tuple(wanted or ())))
            before.append(step.argval)
