"""Finished points: in memory during one call, or in an SQLite file that persists.

The table `points` has a row per point: its key (`Computation.key`), task, parameters and values as
JSON, the processor time it took, the reason if it failed, and a digest of all these. The table
`about` describes what was last computed, also with digests. Every batch is one transaction, so a
killed process leaves whole batches. One process writes at a time: it holds a lock on an empty file
beside the store, which the system releases however the process ends. If a digest does not match or
the file is damaged, it is set aside, and the rows that can be read are copied into a new file.
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
"""Version of the tables; formats 1 and 2 were folders of files."""

TABLES = """begin;
create table if not exists about (name text primary key, value text, digest text);
create table if not exists points (key text primary key, task text, parameters text, "values" text,
                                   seconds real, reason text, digest text);
commit;"""


NOT_DAMAGE = tuple(f"SQLITE_{name}" for name in ("BUSY", "LOCKED", "IOERR", "PERM", "CANTOPEN"))
"""SQLite errors that do not mean a damaged file."""


@dataclass(frozen=True)
class Finished:
    """A computed point: its values, or the reason why it failed."""

    key: str
    values: Mapping[str, Any]
    seconds: float
    reason: str | None = None
    task: str = ""
    point: Point | None = None


class Memory:
    """Finished points in memory; base class of `Store`.

    Attributes:
        damage: a description of each part that could not be read.
    """

    def __init__(self) -> None:
        self.damage: list[str] = []
        self._points: dict[str, Finished] = {}

    def key(self, computation: Computation, point: Point) -> str:
        """Return the key of a point, valid during this call only."""
        return f"{id(computation)} {point!r}"

    def get(self, key: str, needed: Iterable[str] = ()) -> Finished | None:
        """Return a finished point; None if it is missing or lacks a needed quantity."""
        found = self._points.get(key)
        lacks = found is None or (not found.reason and not found.values.keys() >= set(needed))
        return None if lacks else found

    def __len__(self) -> int:
        return len(self._points)

    def add(self, points: Sequence[Finished]) -> None:
        """Add points. Values replace a failure and extend earlier values; a failure replaces only
        a failure.
        """
        for new in points:
            old = self._points.get(new.key)
            if old is None or old.reason is not None:
                self._points[new.key] = new
            elif new.reason is None:
                self._points[new.key] = replace(new, values={**old.values, **new.values})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Return a context in which points may be added."""
        yield


class Store(Memory):
    """An SQLite file of finished points.

    Attributes:
        about: descriptions of the last sweep, by name.

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
        """Return the key of a point: a digest of everything that its values depend on."""
        return computation.key(point)

    def add(self, points: Sequence[Finished]) -> None:
        """Store points in one transaction."""
        if self._base is None:
            raise StoreError(f"{self.path}: points can be added only within `writing()`")
        super().add(points)
        self._write("points", [_row(self._points[point.key]) for point in points])

    def describe(self, **texts: str) -> None:
        """Store descriptions of the sweep, by name."""
        self.about |= texts
        rows = [(name, text, _digest(name, text)) for name, text in texts.items()]
        self._write("about", rows)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Return a context in which points may be added; a damaged file is repaired first.

        Raises:
            StoreError: another process is writing, or the file cannot be written.
        """
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
                    f"{self.path}: {owner} computes into this store now; wait, or use another file"
                ) from None
            try:
                self._open()
                yield
            finally:
                self._close()

    def _open(self) -> None:
        """Open the file for writing; replace a damaged file by the rows that could be read."""
        self._read()
        me = f"process {os.getpid()} on {socket.gethostname()}"
        with self._errors():
            if self.damage:
                for end in ("-wal", "-shm", "-journal"):
                    self._beside(end).unlink(missing_ok=True)
                os.replace(self.path, self._beside(".damaged"))
            self._base = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._base.execute("pragma journal_mode=wal")  # no effect where WAL cannot be used
            self._base.executescript(TABLES)
            if self.damage:
                self._write("points", [_row(point) for point in self._points.values()])
            self.describe(**{**self.about, "format": FORMAT, "writer": me})

    def _close(self) -> None:
        if self._base is not None:
            with suppress(sqlite3.Error):  # leave a single file, unless someone is reading it
                self._base.executescript("pragma busy_timeout=0; pragma journal_mode=delete")
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
        """Name the file in database errors; disk errors become `OSError`, others `StoreError`."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR"):
                number = errno.ENOSPC if name == "SQLITE_FULL" else errno.EIO
                raise OSError(number, os.strerror(number), str(self.path)) from None
            raise StoreError(f"{self.path}: {error}") from None

    def _read(self) -> None:
        """Read all rows with a valid digest; of a damaged file, from both ends of the table."""
        self.damage = []
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb") as file:
            if file.read(20)[18:] not in (b"\1\1", b"\2\2"):  # SQLite would open it read-only
                self.damage.append(f"{self.path}: its header")
        if self._beside("-journal").exists():  # of a killed process: only a writer can roll it back
            with suppress(sqlite3.Error), closing(sqlite3.connect(self.path, timeout=60)) as base:
                base.execute("select name from sqlite_master")
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
            raise sqlite3.DatabaseError("a table is missing")
        for name, text, digest in base.execute("select name, value, digest from about"):
            if _digest(name, text) == digest:
                self.about[name] = text
            else:
                self.damage.append(f"{self.path}: the entry {name!r} of its table about")
        if self.about.get("format", FORMAT) != FORMAT:
            raise StoreError(
                f"{self.path}: its format is {self.about['format']}, but this version of selftrain "
                f"needs format {FORMAT}; use another file"
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
        """Raise unless the file is a damaged store: no other file may be set aside."""
        with self.path.open("rb") as file:
            if b"reason text, digest text" not in file.read(1 << 16):
                raise StoreError(f"{self.path}: it is not a store of sweeps; use another name")
        if getattr(error, "sqlite_errorname", "").startswith(NOT_DAMAGE):
            raise StoreError(f"{self.path}: {error}") from None


def _row(point: Finished) -> tuple[Any, ...]:
    """Return the columns of a point, in strict JSON (readable by any tool) with all digits."""
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
