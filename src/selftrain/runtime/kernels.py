"""Kernels compiled by numba, and a cache of their machine code that is never out of date.

A kernel that another kernel calls becomes a *part* of it. Numba would optimise a part, and
translate it to machine code, on its own and again in every kernel that calls it, directly or not.
Here this is done once, for the *whole* kernel that Python calls, which saves a third of the time.

Numba's own cache recompiles a function when its file changes, but not when a function from another
file that it calls changes. `kernel` therefore caches the code of a file in a folder named by a
digest of that file and of all that it imports. The folder is in NUMBA_CACHE_DIR if that is set,
else in the `__pycache__` of the package, else in the user's cache; if none of these is writable,
kernels are compiled in every process.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import inspect
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from .files import replacing
from .progress import watched
from .source_files import package_root, sources, sources_digest

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(*, allocates: bool = True, **options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function with numba and caches its code.

    Arguments:
        allocates: whether it creates arrays. Without arrays it needs no reference counting, which
            takes a third of the time of small kernels.
        options: options of `numba.njit`. Division by zero gives inf unless `error_model` is
            "python".

    >>> @kernel(allocates=False)
    ... def ratio(a: float, b: float) -> float:
    ...     return a / b
    >>> ratio(1.0, 0.0)
    inf
    """
    from numba import config, njit

    _collect_less_while_compiling()
    # no kernel is used as a C callback, so that wrapper is not compiled either
    options = {"error_model": "numpy", "no_cfunc_wrapper": True, **options}
    options["_nrt"] = allocates  # always given: numba would inherit it from the first caller

    def compiled(function: Function) -> Function:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        if not numba_is_known():
            return njit(**options)(function)  # type: ignore[no-any-return]
        folder = cache_folder(Path(function.__code__.co_filename))
        kinds = []
        for library, from_python in zip(_libraries(), (True, False), strict=True):
            made = {"pipeline_class": _compiler(library), "no_cpython_wrapper": not from_python}
            kinds.append(njit(**options, **made)(function))
            if folder is not None:
                kinds[-1]._cache = _code_cache()(function, folder, library)
        whole, part = kinds
        # numba asks these when it compiles a kernel that calls this one
        whole.get_call_template, whole.get_overload = part.get_call_template, part.get_overload
        return whole  # type: ignore[no-any-return]

    return compiled


@cache
def numba_is_known() -> bool:
    """Return whether numba has the methods that are replaced below, which it may rename.

    If not, numba compiles kernels as it does by default, in every process again.
    """
    from numba.core import caching, codegen, compiler, environment

    library = codegen.JITCodeLibrary
    needed = {
        library: (
            *("_ensure_finalized", "_finalize_dynamic_globals", "_finalize_final_module"),
            *("_finalize_specific", "_optimize_final_module", "serialize_using_bitcode"),
            *("enable_object_caching", "serialize_using_object_code"),
        ),
        codegen.JITCPUCodegen: ("magic_tuple",),
        compiler.CompileResult: ("_rebuild", "_reduce"),
        caching.NullCache: ("load_overload",),
        environment: ("lookup_environment",),
    }
    return all(hasattr(home, name) for home, names in needed.items() for name in names)


@cache
def _libraries() -> tuple[Any, Any]:
    """Return the classes that hold the code of a kernel: one for whole kernels, one for parts."""
    from numba.core import codegen
    from numba.core.environment import lookup_environment

    class Whole(codegen.JITCodeLibrary):
        """Code of a kernel and its parts, optimised and executable."""

        def _finalize_specific(self) -> None:
            super()._finalize_specific()  # type: ignore[no-untyped-call]
            for variable in self._final_module.global_variables:
                # the Python objects of the kernel, or of a part
                environment = lookup_environment(variable.name)  # type: ignore[no-untyped-call]
                if environment is not None:
                    self.codegen.set_env(variable.name, environment)

    class Part(codegen.JITCodeLibrary):
        """Code that is linked into whole kernels, and not executable itself."""

        class codegen:
            @staticmethod
            def set_env(name: str, environment: Any) -> None:
                """Do nothing: the environment is set in the whole kernel."""

        def _optimize_final_module(self) -> None:
            """Do nothing: the whole kernel is optimised."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()  # type: ignore[no-untyped-call]
            return 0

        def serialize_using_object_code(self) -> Any:
            return self.serialize_using_bitcode()  # type: ignore[no-untyped-call]

    return Whole, Part


@cache
def _compiler(library: Any) -> Any:
    """Return a numba compiler whose code is in a library of this class."""
    from numba.core import compiler

    class Compiler(compiler.Compiler):
        def define_pipelines(self) -> Any:
            name = self.state.func_id.func_qualname
            self.state.library = library(self.state.targetctx.codegen(), name)
            self.state.library.enable_object_caching()
            return super().define_pipelines()  # type: ignore[no-untyped-call]

    return Compiler


@cache
def _collect_less_while_compiling() -> None:
    """Run the garbage collector less often while numba compiles.

    Compiling creates millions of objects, most of which live until its end; collecting took a
    seventh of the time.
    """
    from numba.core import event

    class Seldom(event.Listener):
        before: tuple[int, int, int] | None = None
        depth = 0

        def on_start(self, event: Any) -> None:
            if self.depth == 0:
                self.before = gc.get_threshold()
                gc.set_threshold(100_000, 20, 100)
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.before is not None:
                gc.set_threshold(*self.before)

    event.register("numba:compile", Seldom())  # type: ignore[no-untyped-call]


@cache
def cache_folder(file: Path) -> Path | None:
    """Return the cache folder for the machine code of a source file; None if there is none."""
    if not file.is_file():
        return None
    import numba

    root = package_root(file)
    base = _writable_base(root, os.environ.get("NUMBA_CACHE_DIR", ""))
    if base is None:
        return None
    code = sources_digest(sources(file), root)
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {code}".encode()).hexdigest()
    module = ".".join(file.relative_to(root).with_suffix("").parts)
    return base / f"{module}-{digest[:20]}"


@cache
def _writable_base(root: Path, asked: str) -> Path | None:
    """Return the first writable cache folder for a package; None if there is none."""
    apart = f"{root.name}-{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]}"
    places = [Path(asked) / apart] if asked else [root / "__pycache__" / "kernels"]
    places.append(_user_cache() / apart)
    for place in places:
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place).close()
            return place
    return None


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache
def _code_cache() -> Any:
    """Return a class that replaces numba's cache and has a file for each function and signature.

    Numba's own has one index file for all signatures of a function, which processes that compile at
    the same time would overwrite, and it executes damaged files.
    """
    from numba.core import caching, compiler, serialize

    class CodeCache(caching.NullCache):
        def __init__(self, function: Any, folder: Path, library: Any) -> None:
            self._source = Path(function.__code__.co_filename)
            self._folder, self._library = folder, library
            name = f"{function.__name__}-{function.__code__.co_firstlineno}"
            self._name = f"{name}-{library.__name__.lower()}"

        @property
        def cache_path(self) -> str:
            return str(self._folder)

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            target_context.refresh()
            generator = target_context.codegen()
            ordinary = generator._library_class
            key = sig, generator.magic_tuple()
            try:
                content = self._file(key).read_bytes()
                digest, data = content[:32], content[32:]
                if hashlib.sha256(data).digest() == digest:
                    stored_key, payload = pickle.loads(data)
                    if stored_key == key:
                        generator._library_class = self._library
                        return compiler.CompileResult._rebuild(target_context, *payload)  # type: ignore[no-untyped-call]
            except Exception:  # whatever is wrong with the cached code, compile it again
                pass
            finally:
                generator._library_class = ordinary
            _announce()
            return None

        def save_overload(self, sig: Any, cres: Any) -> None:
            _check_records(self._source, cres.signature.args)
            if cres.library.has_dynamic_globals:
                raise TypeError(
                    f"{self._name}: a kernel that refers to an address, such as that of"
                    " a large global array, cannot be cached: pass it as an argument"
                )
            key = sig, cres.codegen.magic_tuple()
            data: bytes = serialize.dumps((key, cres._reduce()))  # type: ignore[no-untyped-call]
            with contextlib.suppress(OSError):
                if not self._folder.is_dir():
                    self._folder.mkdir(parents=True, exist_ok=True)
                    _delete_older(self._folder)
                with replacing(self._file(key)) as part:
                    part.write_bytes(hashlib.sha256(data).digest() + data)

        def _file(self, key: Any) -> Path:
            digest = hashlib.sha256(repr(key).encode()).hexdigest()
            return self._folder / f"{self._name}-{digest[:20]}.nbc"

    return CodeCache


def _check_records(file: Path, arguments: Iterable[Any]) -> None:
    """Raise if a kernel in `file` takes a NamedTuple from a file that it does not import.

    Otherwise a change of that NamedTuple would not change the digest, and old code would be run.
    """
    known = {path.resolve() for path in sources(file)}
    for record in _records(arguments):
        home = Path(inspect.getfile(record)).resolve()
        if home not in known and home.is_relative_to(package_root(file)):
            raise TypeError(f"{file.name} has a kernel that takes {record.__name__}: import it")


def _records(kinds: Iterable[Any]) -> Iterator[type[Any]]:
    """Yield the NamedTuple classes among numba types, nested ones included."""
    from numba.core import types

    for kind in kinds:
        if isinstance(kind, (types.NamedTuple, types.NamedUniTuple)):
            yield kind.instance_class
        if isinstance(kind, (types.Tuple, types.UniTuple, types.NamedTuple, types.NamedUniTuple)):
            yield from _records(kind.types)


def _delete_older(folder: Path) -> None:
    """Delete code that was compiled from earlier versions of the same file."""
    module = folder.name.rpartition("-")[0]
    for other in folder.parent.glob(f"{module}-*"):
        if other != folder and other.name.rpartition("-")[0] == module:
            shutil.rmtree(other, ignore_errors=True)


@cache
def _announce() -> None:
    """Print once that kernels are being compiled, which takes up to a minute."""
    if watched():
        message = "compiling, once after an installation or an update; this takes up to a minute."
        print(f"selftrain: {message}", file=sys.stderr)
