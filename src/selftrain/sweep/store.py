"""Finished points on disk: parts of a folder, each written whole or not at all and checked when
read.

A part holds the points of a batch. It is a line with the format and the SHA-256 digest of all that
follows, then an npz archive: a list of the points (their keys, the seconds they took, the reason if
they failed), and their values, stacked. Parts are numbered and never changed, so a reader needs no
lock and sees the store grow; one process at a time writes. A part that does not have the digest it
names, or holds something else, is damaged: it is reported, set aside, and its points are computed
anew.

`docs/sweep.md` says what other libraries would do here, measured.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import math
import os
import socket
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..errors import SelfTrainError
from ..runtime.files import forget_parts, replacing
from .computation import Computation
from .grid import Point

FORMAT = 2
"""Of the parts; a store of another format is refused."""

MAGIC = b"selftrain points"
LIST = "list of the points"


class StoreError(SelfTrainError):
    """A folder that cannot be used as a store: of another format, in use, or not writable."""


class DamagedPart(SelfTrainError):
    """A file of the store that is not what was written."""


@dataclass(frozen=True)
class Finished:
    """What became of a point: its values, or the reason why there are none."""

    key: str
    values: Mapping[str, Any]
    seconds: float
    reason: str | None = None


class Keeper(Protocol):
    """Where finished points go, and come from."""

    def key(self, computation: Computation, point: Point) -> str:
        """What a point is known by."""
        ...

    def get(self, key: str) -> Finished | None:
        """A point, None if it was not computed yet."""
        ...

    def add(self, points: Sequence[Finished]) -> None:
        """Keep points of one computation."""
        ...


class KeptInMemory:
    """Points that are kept for the length of a call."""

    def __init__(self) -> None:
        self._points: dict[str, Finished] = {}

    def key(self, computation: Computation, point: Point) -> str:
        """The point itself: nothing outlives the call."""
        return f"{id(computation)} {point!r}"

    def get(self, key: str) -> Finished | None:
        """A point, None if it was not computed yet."""
        return self._points.get(key)

    def add(self, points: Sequence[Finished]) -> None:
        """Keep points."""
        self._points.update((point.key, point) for point in points)


class Store:
    """A folder of finished points.

    >>> import tempfile
    >>> def double(x): return {"twice": 2 * x}
    >>> work = Computation(double, None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     key = store.key(work, {"x": 4})
    ...     with store.writing():
    ...         store.add([Finished(key, double(4), seconds=0.1)])
    ...     (Store(folder).get(key).values["twice"].item(), store.get("another"))
    (8, None)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.damaged: dict[Path, str] = {}
        self._points: dict[str, Finished] = {}
        self._seen: set[str] = set()
        self._next: int | None = None
        self.refresh()

    def key(self, computation: Computation, point: Point) -> str:
        """The digest of all that the values of a point depend on."""
        return computation.key(point)

    def get(self, key: str) -> Finished | None:
        """A point, None if it was not computed yet."""
        return self._points.get(key)

    def __len__(self) -> int:
        return len(self._points)

    def refresh(self) -> None:
        """Read what was written since the last look."""
        for path in sorted(self.folder.glob("*.points")):
            if path.name in self._seen:
                continue
            self._seen.add(path.name)
            try:
                points = read_part(path)
            except FileNotFoundError:
                continue
            except DamagedPart as error:
                self.damaged[path] = str(error)
                continue
            self._remember(points)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The right to add points, which one process has at a time; damaged parts are set aside."""
        lock = self.folder / ".lock"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise StoreError(f"{self.folder}: {reason}") from None
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.read(file, 200).decode(errors="replace").strip() or "another process"
                raise StoreError(
                    f"{self.folder}: {owner} computes into this store now; wait, or use another"
                ) from None
            os.truncate(file, 0)
            os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
            forget_parts(self.folder)
            self.refresh()
            self._set_aside()
            numbers = [_number(name) for name in os.listdir(self.folder)]
            self._next = 1 + max(numbers, default=0)
            yield
        finally:
            self._next = None
            os.close(file)

    def add(self, points: Sequence[Finished]) -> None:
        """Store points as one part: beside its place first, then moved there."""
        if self._next is None:
            raise StoreError(f"{self.folder}: points are added within `writing()` only")
        if not points:
            return
        target = self.folder / f"{self._next:08d}.points"
        content = pack(points)
        try:
            with replacing(target) as part, part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(target)) from None
        self._next += 1
        self._seen.add(target.name)
        self._remember(points)

    def _remember(self, points: Sequence[Finished]) -> None:
        """A success stands against a failure, whichever came first; else the last counts."""
        for point in points:
            known = self._points.get(point.key)
            if known is None or known.reason is not None:
                self._points[point.key] = point
            elif point.reason is None:
                both = {**known.values, **point.values}
                self._points[point.key] = Finished(point.key, both, point.seconds)

    def _set_aside(self) -> None:
        for path in self.damaged:
            if path.exists():
                path.rename(path.with_name(path.name + ".damaged"))


def pack(points: Sequence[Finished]) -> bytes:
    """The content of a part; the values of points of the same shape are stacked."""
    groups: dict[Any, list[dict[str, Array]]] = {}
    listed = []
    for point in points:
        arrays = {name: np.asarray(value) for name, value in point.values.items()}
        shape = tuple((name, array.shape, array.dtype.str) for name, array in arrays.items())
        group = groups.setdefault(shape, [])
        number = list(groups).index(shape)
        listed.append([point.key, point.seconds, point.reason, number, len(group)])
        group.append(arrays)
    columns = {
        f"{number}/{name}": np.stack([row[name] for row in rows])
        for number, rows in enumerate(groups.values())
        for name in rows[0]
    }
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **{LIST: np.array(json.dumps(listed))}, **columns)
    content = body.getvalue()
    digest = hashlib.sha256(content).hexdigest().encode()
    return b"%s %d %s\n%s" % (MAGIC, FORMAT, digest, content)


def read_part(path: Path) -> list[Finished]:
    """The points of a part; `DamagedPart` if it is not what was written."""
    try:
        line, _, content = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedPart(f"{path}: {error.strerror}") from None
    found, _, digest = line.rpartition(b" ")
    magic, _, version = found.rpartition(b" ")
    if magic == MAGIC and version.isdigit() and int(version) != FORMAT:
        raise StoreError(
            f"{path}: a store of format {int(version)}, and this version of selftrain reads and "
            f"writes format {FORMAT}; use another folder"
        )
    if magic != MAGIC or hashlib.sha256(content).hexdigest().encode() != digest:
        raise DamagedPart(f"{path}: its content does not have its checksum")
    try:
        return list(_unpack(content))
    except (LookupError, TypeError, ValueError, AttributeError, EOFError, OSError, MemoryError,
            RecursionError, NotImplementedError, zipfile.BadZipFile) as error:  # fmt: skip
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:100]
        raise DamagedPart(f"{path}: it holds something else than points ({reason})") from None


def _unpack(content: bytes) -> Iterator[Finished]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    groups: dict[int, dict[str, Array]] = {}
    listed = json.loads(columns.pop(LIST).item())
    for name, column in columns.items():
        number, _, own = name.partition("/")
        groups.setdefault(int(number), {})[own] = column
    for key, seconds, reason, number, row in listed:
        if not (isinstance(key, str) and (reason is None or isinstance(reason, str))):
            raise ValueError("a point without a key")
        if not (isinstance(row, int) and row >= 0 and math.isfinite(seconds)):
            raise ValueError("a point without a place")
        values = {name: column[row] for name, column in groups.get(number, {}).items()}
        yield Finished(key, values, float(seconds), reason)


def _number(name: str) -> int:
    """The number of a part, set aside or not; 0 for other files."""
    first = name.partition(".")[0]
    return int(first) if first.isdigit() and ".points" in name else 0
