"""Facts about code and objects that `function_identity` needs: who owns a module, which names a
piece of bytecode uses, and how an object would be copied.
"""

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
TASKS_MODULE = f"{PACKAGE}.sweeps.named_tasks"
"""Functions of this module are identified like a user's, so that each depends only on the code that
it calls, not on all engines that the module imports."""

SCRIPTS = ("__main__", "__mp_main__")
"""Module names of a script. In a worker, these names mean the worker's own program."""

_STANDARD = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})


def imported_modules(
    name: str, package: str, wanted: tuple[str, ...]
) -> Iterator[types.ModuleType]:
    """Yield the modules that an import statement loads; nothing if the import fails."""
    try:
        module = import_module(name, package)
        yield module if wanted else sys.modules[module.__name__.partition(".")[0]]
    except Exception:  # a module may raise anything while it is imported
        return
    for part in wanted:
        if hasattr(module, "__path__") and not hasattr(module, part):
            yield from imported_modules(f"{module.__name__}.{part}", "", ("",))


def owner_of(module: str) -> str:
    """Return who owns a module: "package" (this one), "library" (installed) or "user"."""
    top = module.partition(".")[0]
    if top == PACKAGE or top in SCRIPTS:
        return "package" if top == PACKAGE and module != TASKS_MODULE else "user"
    loaded = sys.modules.get(module) or sys.modules.get(top)
    file = getattr(loaded, "__file__", None)
    if loaded is None:  # a function may be unpickled before its module is imported
        try:
            file = getattr(find_spec(top), "origin", None)
        except (ImportError, ValueError):
            file = None
    if file is None:
        return "library" if top in sys.stdlib_module_names else "user"
    installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    return "library" if installed or file.startswith(_STANDARD) else "user"


@cache
def version_of(module: str) -> str:
    """Return the version of an installed library; an empty string for the standard library."""
    library = module.partition(".")[0]
    if library in sys.stdlib_module_names:
        return ""
    try:
        found = getattr(import_module(library), "__version__", None)
        return found if isinstance(found, str) else version(library)
    except (ImportError, PackageNotFoundError, ValueError):
        return ""


def is_importable(value: Any) -> bool:
    """Return whether an object is found in its module under its own name."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in str(getattr(value, "__qualname__", "<none>")).split("."):
        found = getattr(found, part, None)
    return found is value


def name_in_library(value: Any) -> tuple[str, str] | None:
    """Return the module and name of an instance that a library defines, such as
    `scipy.stats.norm`; None for any other object.
    """
    home = type(value).__module__
    if owner_of(home) != "library":
        return None
    content = vars(sys.modules[home]) if home in sys.modules else {}
    names = [name for name in sorted(content) if content[name] is value]
    if names:
        return home, names[0]
    own = getattr(value, "__name__", None)
    if not isinstance(own, str):
        return None
    loaded = [(name, getattr(one, "__dict__", {})) for name, one in sys.modules.items()]
    homes = sorted(name for name, content in loaded if content.get(own) is value)
    libraries = [name for name in homes if owner_of(name) == "library"]
    # a compiled module defines it; which Python modules repeat it depends on what is loaded
    files = {name: str(getattr(sys.modules[name], "__file__", "")) for name in libraries}
    defined = [name for name in libraries if not files[name].endswith(".py")]
    return ([*defined, home][0], own) if libraries else None


def reduction(value: Any) -> tuple[Any, ...]:
    """Return the result of `__reduce_ex__`; empty if the object cannot be pickled by content."""
    kind = type(value)
    if isinstance(value, Iterator) and kind.__module__ in ("builtins", "itertools", "_io"):
        return ()  # copying would consume it
    reduce = copyreg.dispatch_table.get(kind)
    try:
        found = value.__reduce_ex__(4) if reduce is None else reduce(value)
    except Exception:  # an object may raise anything to say that it cannot be copied
        return ()
    return () if isinstance(found, str) else tuple(found)


def python_function(compiled: Any) -> Any:
    """Return the Python function behind a function compiled by numba; None if there is none."""
    names = ("py_func", "_pyfunc", "_dispatcher", "gufunc_builder")
    return next((found for name in names if (found := getattr(compiled, name, None))), None)


class CodeContent:
    """The content of a code object and of all code nested in it.

    Attributes:
        parts: bytecode, constants and names, without line numbers and docstrings.
        globals: names of global variables.
        imports: import statements, as (module, level, imported names).
        names: all names, including attributes.
    """

    def __init__(self, code: types.CodeType) -> None:
        self.parts: list[Any] = ["code"]
        self.globals, self.names = set[str](), frozenset[str]()
        self.imports: set[tuple[str, int, tuple[str, ...]]] = set()
        self._read(code)

    def _read(self, code: types.CodeType) -> None:
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.parts += [*counts, arguments, code.co_exceptiontable]
        self.names |= frozenset(code.co_names)
        before: list[Any] = [0, None]
        for step in dis.get_instructions(code):
            if isinstance(step.argval, types.CodeType):
                self.parts.append(step.opname)
                self._read(step.argval)
            elif step.opcode in dis.hasconst:
                self.parts += [step.opname, step.argval]
            else:
                self.parts += [step.opname, step.arg, str(step.argval)]
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.globals.add(str(step.argval))
            elif step.opname == "IMPORT_NAME":  # level and names were pushed just before
                level, wanted = before[-2:]
                self.imports.add((str(step.argval), int(level or 0), tuple(wanted or ())))
            before.append(step.argval)
