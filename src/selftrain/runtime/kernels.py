"""Kernels compiled by numba, and a cache of their machine code that is never out of date.

Numba's own cache recompiles a function when its file changes, but not when a file that it calls
into does. `kernel` therefore caches the code of a file in a folder named by a digest of that file
and of all that it imports. The folder is in NUMBA_CACHE_DIR if that is set, else in the
`__pycache__` of the package, else in the user's cache; if none of these is writable, kernels are
compiled in every process.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import inspect
import os
import pickle
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from .progress_displays import watched
from .source_files import package_root, sources, sources_digest

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(
    *, allocates: bool = True, internal: bool = False, **options: Any
) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function with numba and caches its code.

    Arguments:
        allocates: whether it, or a kernel inlined in it, creates arrays. Without arrays it needs no
            reference counting, which takes a third of the time of small kernels.
        internal: whether only kernels call it; it is then compiled without a Python wrapper.
        options: options of `numba.njit`. Division by zero gives inf unless `error_model` is
            "python".

    >>> @kernel(allocates=False)
    ... def ratio(a: float, b: float) -> float:
    ...     return a / b
    >>> ratio(1.0, 0.0)
    inf
    """
    from numba import njit

    _collect_less_while_compiling()
    # no kernel is used as a C callback, so that wrapper is not compiled either
    fixed = {"error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": internal}
    fixed["_nrt"] = allocates  # always given: numba would inherit it from the first caller

    def compiled(function: Function) -> Function:
        dispatcher = njit(**{**fixed, **options})(function)
        store = _stored_code()
        if cache_folder(Path(function.__code__.co_filename)) is not None:
            dispatcher._cache = store(function)
        return dispatcher  # type: ignore[no-any-return]

    return compiled


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
def _stored_code() -> Any:
    """Return a subclass of numba's cache with our folders, file checksums and a write lock.

    Without the lock, two processes that compile a function for different types would write both
    results to the same file.
    """
    from numba.core import caching

    class Locator(caching._CacheLocator):
        def __init__(self, function: Any, file: str) -> None:
            folder = cache_folder(Path(file))
            assert folder is not None
            self._py_file, self._folder = file, folder
            self._line = function.__code__.co_firstlineno

        def get_cache_path(self) -> str:
            return str(self._folder)

        def get_source_stamp(self) -> str:
            return self._folder.name

        def get_disambiguator(self) -> str:
            return str(self._line)

        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Locator:
            return cls(py_func, py_file)

    class Found(caching.CompileResultCacheImpl):
        _locator_classes: list[type[object]] = [Locator]  # noqa: RUF012 (declared so by numba)

    class CheckedFiles(caching.IndexDataCacheFile):
        """Files that begin with a digest of their content: damaged bytes must not run as code."""

        def _save_index(self, overloads: Any) -> None:
            self._write(self._index_path, (self._source_stamp, overloads))

        def _load_index(self) -> Any:
            stamp, overloads = self._read(self._index_path) or ("", {})
            return overloads if stamp == self._source_stamp else {}

        def _save_data(self, name: str, data: Any) -> None:
            self._write(self._data_path(name), data)  # type: ignore[no-untyped-call]

        def _load_data(self, name: str) -> Any:
            return self._read(self._data_path(name))  # type: ignore[no-untyped-call]

        def _write(self, path: str, content: Any) -> None:
            data = self._dump(content)  # type: ignore[no-untyped-call]
            with self._open_for_write(path) as file:
                file.write(hashlib.sha256(data).digest() + data)

        def _read(self, path: str) -> Any:
            """Return the content of a file; None if it is missing, unreadable or damaged."""
            try:
                stored = Path(path).read_bytes()
            except OSError:
                return None
            digest, data = stored[:32], stored[32:]
            return pickle.loads(data) if hashlib.sha256(data).digest() == digest else None

    class StoredCode(caching.FunctionCache):
        _impl_class = Found

        def __init__(self, function: Any) -> None:
            super().__init__(function)  # type: ignore[no-untyped-call]
            self._cache_file = CheckedFiles(  # type: ignore[no-untyped-call]
                self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
            )

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            except Exception:  # whatever is wrong with the cached code, compile it again
                found = None
            if found is None:
                _announce()
            return found

        def save_overload(self, sig: Any, data: Any) -> None:
            _check_records(Path(self._py_func.__code__.co_filename), data.signature.args)
            folder = Path(self.cache_path)
            with contextlib.suppress(OSError, sqlite3.OperationalError):
                new = not folder.is_dir()
                with _write_lock(folder):
                    super().save_overload(sig, data)  # type: ignore[no-untyped-call]
                if new:
                    _delete_older(folder)

    return StoredCode


def _check_records(file: Path, arguments: Iterable[Any]) -> None:
    """Raise if a kernel takes a NamedTuple from a file that it does not import.

    A change of that NamedTuple would not change the digest of the kernel.
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


@contextlib.contextmanager
def _write_lock(folder: Path) -> Iterator[None]:
    """Hold an SQLite lock in a folder.

    It works on every system, and is released however the process ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(folder / "lock.db", timeout=60)) as lock:
        lock.execute("begin exclusive")
        yield


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
