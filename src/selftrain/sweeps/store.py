"""Finished points: in memory for one call, or in an SQLite file that outlives it.

A store has two tables. `points` has a row for each point: its key (`computation`), task, parameters
and values as JSON, the processor time it took, the reason if it failed, and a digest of all this.
`about` says what was last computed, with digests, too. Every batch is one transaction, so a killed
process leaves whole batches. One process writes at a time: it holds a lock on an empty file beside
the store, which the system releases however the process ends. If a row does not have its digest, or
the file is damaged, it is set aside, and what can be read of it is copied into a new one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StoreError
from ..fields import strict
from .computation import Computation
from .grid import Point

FORMAT = "3"
"""Of the tables; formats 1 and 2 were folders of files."""

TABLES = """begin;
create table if not exists about (name text primary key, value text, digest text);
create table if not exists points (key text primary key, task text, parameters text, "values" text,
                                   seconds real, reason text, digest text);
commit;"""


NO_DAMAGE = tuple(f"SQLITE_{name}" for name in ("BUSY", "LOCKED", "IOERR", "PERM", "CANTOPEN"))
"""Errors that say nothing about the content of a file."""


@dataclass(frozen=True)
class Finished:
    """What became of a point: its values, or the reason why there are none."""

    key: str
    values: Mapping[str, Any]
    seconds: float
    reason: str | None = None
    task: str = ""
    point: Point | None = None


class Memory:
    """Points that are held for the length of a call.

    Attributes:
        damage: sentences about what could not be read.
    """

    def __init__(self) -> None:
        self.damage: list[str] = []
        self._points: dict[str, Finished] = {}

    def key(self, computation: Computation, point: Point) -> str:
        """Return what a point is known by: nothing outlives the call."""
        return f"{id(computation)} {point!r}"

    def get(self, key: str, needed: Iterable[str] = ()) -> Finished | None:
        """Return a point; None if it was not computed yet, or without a quantity that is needed."""
        found = self._points.get(key)
        lacks = found is None or (not found.reason and not found.values.keys() >= set(needed))
        return None if lacks else found

    def __len__(self) -> int:
        return len(self._points)

    def add(self, points: Sequence[Finished]) -> None:
        """Add points. A success stands against a failure, and adds to what was known before."""
        for new in points:
            old = self._points.get(new.key)
            if old is None or old.reason is not None:
                self._points[new.key] = new
            elif new.reason is None:
                self._points[new.key] = replace(new, values={**old.values, **new.values})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Give the right to add points."""
        yield


class Store(Memory):
    """An SQLite file of finished points.

    Attributes:
        about: texts about the whole by name.

    >>> import tempfile
    >>> def double(x): return {"twice": 2 * x}
    >>> work = Computation(double, None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "points.db"))
    ...     key = store.key(work, {"x": 4})
    ...     with store.writing():
    ...         store.add([Finished(key, double(4), seconds=0.1)])
    ...     (Store(Path(folder, "points.db")).get(key).values["twice"].item(), store.get("another"))
    (8, None)
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)
        self.about: dict[str, str] = {}
        self._base: sqlite3.Connection | None = None
        if self.path.is_dir():
            old = any(self.path.glob("*.points")) or (self.path / "plan.json").exists()
            kind = "a store of selftrain 1, which this version cannot read" if old else "a folder"
            raise StoreError(f"{self.path}: it is {kind}; a store is a file: use another name")
        self._read()

    def key(self, computation: Computation, point: Point) -> str:
        """Return the digest of all that the values of a point depend on."""
        return computation.key(point)

    def add(self, points: Sequence[Finished]) -> None:
        """Store points in one transaction."""
        if self._base is None:
            raise StoreError(f"{self.path}: points are added within `writing()` only")
        super().add(points)
        self._write("points", [_row(self._points[point.key]) for point in points])

    def describe(self, **texts: str) -> None:
        """Store texts about the whole."""
        self.about |= texts
        rows = [(name, text, _digest(name, text)) for name, text in texts.items()]
        self._write("about", rows)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Give the right to add points, which one process has at a time; damage is mended."""
        if self._base is not None:
            yield
            return
        lock = self._beside(".lock")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for file in (lock, self.path):
                file.open("ab").close()
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written: {error.strerror}") from None
        with closing(sqlite3.connect(lock, timeout=0.1, isolation_level=None)) as held:
            try:
                held.execute("begin exclusive")
            except sqlite3.OperationalError:
                self._read()
                owner = self.about.get("writer", "another process")
                raise StoreError(
                    f"{self.path}: {owner} computes into this store now; wait, or use another"
                ) from None
            try:
                self._open()
                yield
            finally:
                self._close()

    def _open(self) -> None:
        """Open the file for writing; a damaged one is replaced by what could be read of it."""
        self._read()
        me = f"process {os.getpid()} on {socket.gethostname()}"
        with self._errors():
            if self.damage:
                for end in ("-wal", "-shm", "-journal"):
                    self._beside(end).unlink(missing_ok=True)
                os.replace(self.path, self._beside(".damaged"))
            self._base = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._base.execute("pragma journal_mode=wal")  # stays as it is where WAL cannot be used
            self._base.executescript(TABLES)
            if self.damage:
                self._write("points", [_row(point) for point in self._points.values()])
            self.describe(**{**self.about, "format": FORMAT, "writer": me})

    def _close(self) -> None:
        if self._base is not None:
            with suppress(sqlite3.Error):  # a single file, unless somebody reads it now
                self._base.execute("pragma busy_timeout=0")
                self._base.execute("pragma journal_mode=delete")
            self._base.close()
            self._base = None

    def _beside(self, end: str) -> Path:
        return self.path.with_name(self.path.name + end)

    def _write(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows and self._base is not None:
            marks = ", ".join("?" * len(rows[0]))
            with self._errors(), self._base:
                self._base.execute("begin")
                self._base.executemany(f"insert or replace into {table} values ({marks})", rows)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Name the file in errors of the database; those of the system stay such errors."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR"):
                number = errno.ENOSPC if name == "SQLITE_FULL" else errno.EIO
                raise OSError(number, os.strerror(number), str(self.path)) from None
            raise StoreError(f"{self.path}: {error}") from None

    def _read(self) -> None:
        """Read all rows that have their digest; from both ends, if there is damage between them."""
        self.damage = []
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb") as file:
            if file.read(20)[18:] not in (b"\1\1", b"\2\2"):  # of another kind it is not written
                self.damage.append(f"{self.path}: its header")
        for order in ("asc", "desc"):
            try:
                read_only = f"{self.path.absolute().as_uri()}?mode=ro"
                with closing(sqlite3.connect(read_only, timeout=60, uri=True)) as base:
                    self._read_rows(base, order)
                    return
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                self._check_ours(error)
                self.damage.append(f"{self.path}: {error}")

    def _read_rows(self, base: sqlite3.Connection, order: str) -> None:
        base.text_factory = lambda text: text.decode("utf-8", "replace")
        tables = {name for (name,) in base.execute("select name from sqlite_master")}
        if not tables:
            return
        if not {"about", "points"} <= tables:
            raise sqlite3.DatabaseError("it lacks a table")
        for name, text, digest in base.execute("select name, value, digest from about"):
            if _digest(name, text) == digest:
                self.about[name] = text
            else:
                self.damage.append(f"{self.path}: what it says of its {name}")
        if self.about.get("format", FORMAT) != FORMAT:
            raise StoreError(
                f"{self.path}: a store of format {self.about['format']}, and this version of "
                f"selftrain reads and writes format {FORMAT}; use another file"
            )
        columns = 'rowid, key, task, parameters, "values", seconds, reason, digest'
        for number, *row, digest in base.execute(
            f"select {columns} from points order by rowid {order}"
        ):
            point = _point(row) if _digest(*row) == digest else None
            if point is None:
                self.damage.append(f"{self.path}: row {number} of its points")
            else:
                self._points[point.key] = point
        (state,) = base.execute("pragma integrity_check(1)").fetchone()
        if state != "ok":
            self.damage.append(f"{self.path}: {' '.join(state.split())}")

    def _check_ours(self, error: Exception) -> None:
        """Raise unless the file was once a store: another file is never set aside."""
        with self.path.open("rb") as file:
            if b"reason text, digest text" not in file.read(1 << 16):
                raise StoreError(f"{self.path}: it is not a store of sweeps; use another name")
        if getattr(error, "sqlite_errorname", "").startswith(NO_DAMAGE):
            raise StoreError(f"{self.path}: {error}") from None


def _row(point: Finished) -> tuple[Any, ...]:
    """Return the columns of a point in strict JSON, which any tool reads, with every digit."""
    arrays = {name: np.asarray(value) for name, value in point.values.items()}
    values = {name: [one.dtype.str, one.shape, one.tolist()] for name, one in arrays.items()}
    parameters, packed = (json.dumps(strict(one)) for one in (point.point, values))
    row = (point.key, point.task, parameters, packed, point.seconds, point.reason)
    return *row, _digest(*row)


def _point(row: Sequence[Any]) -> Finished | None:
    key, task, parameters, packed, seconds, reason = row
    try:
        values = {
            name: np.array(content, dtype=kind).reshape(shape)
            for name, (kind, shape, content) in json.loads(packed).items()
        }
        return Finished(key, values, float(seconds), reason, task, json.loads(parameters))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _digest(*columns: Any) -> str:
    return hashlib.sha256(repr(columns).encode()).hexdigest()[:32]
