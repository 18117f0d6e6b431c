"""Comparison of stores for finished points: our SQLite file, plain SQLite, Parquet and Zarr.

    python -m benchmarks stores [--points 10000]

Each store receives batches as in a sweep; every batch is on disk before the next. Measured are the
processor time to write and to read all points, the size in bytes, and the effect of a flipped bit:
detected, harmless, or an undetected wrong number. All checksums are enabled: in Parquet those of
pages, in Zarr those of chunks (crc32c; the file with names and keys has none). Python's SQLite
module offers none (the extension cksumvfs would add them); our store has a digest in every row.
Zarr is measured if it is installed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from selftrain.sweeps.store import Finished, Store

from .options import parser
from .speed.measure import seconds

BATCH = 200
STEPS = 17


def points(count: int) -> list[Finished]:
    """Return points with two numbers and an array over t, as a sweep of `solve` stores them."""
    draw = np.random.default_rng(0)
    return [
        Finished(
            f"{at:040x}",
            {"error": draw.random(), "cosine": draw.random(), "error_path": draw.random(STEPS)},
            draw.random(),
        )
        for at in range(count)
    ]


class Ours:
    """The store of sweeps: SQLite, with the values as JSON and a digest in every row."""

    def write(self, folder: Path, found: list[Finished]) -> None:
        store = Store(folder / "points.db")
        with store.writing():
            for at in range(0, len(found), BATCH):
                store.add(found[at : at + BATCH])
        (folder / "points.db.lock").unlink()

    def read(self, folder: Path) -> dict[str, tuple[Any, ...]]:
        store = Store(folder / "points.db")
        if store.damage:
            raise ValueError("damaged")
        return {key: _row(one.values) for key, one in store._points.items()}


class Sqlite:
    """A table of keys, numbers and blobs; one transaction per batch."""

    def write(self, folder: Path, found: list[Finished]) -> None:
        base = sqlite3.connect(folder / "points.db")
        base.execute(
            "create table p (key text primary key, seconds real, e real, c real, row blob)"
        )
        for at in range(0, len(found), BATCH):
            with base:
                base.executemany(
                    "insert into p values (?, ?, ?, ?, ?)",
                    [
                        (one.key, one.seconds, one.values["error"], one.values["cosine"],
                         one.values["error_path"].tobytes())
                        for one in found[at : at + BATCH]
                    ],
                )  # fmt: skip
        base.close()

    def read(self, folder: Path) -> dict[str, tuple[Any, ...]]:
        base = sqlite3.connect(folder / "points.db")
        try:
            return {
                key: (e, c, *np.frombuffer(row))
                for key, e, c, row in base.execute("select key, e, c, row from p")
            }
        finally:
            base.close()


class Parquet:
    """A file per batch, written under a temporary name and then renamed."""

    def write(self, folder: Path, found: list[Finished]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        for at in range(0, len(found), BATCH):
            batch = found[at : at + BATCH]
            table = pa.table(
                {
                    "key": [one.key for one in batch],
                    "seconds": [one.seconds for one in batch],
                    "error": [one.values["error"] for one in batch],
                    "cosine": [one.values["cosine"] for one in batch],
                    "error_path": [one.values["error_path"] for one in batch],
                }
            )
            part = folder / f"{at:08d}.part"
            with part.open("wb") as file:
                pq.write_table(table, file, compression="none", write_page_checksum=True)
                os.fsync(file.fileno())
            part.rename(part.with_suffix(".parquet"))

    def read(self, folder: Path) -> dict[str, tuple[Any, ...]]:
        import pyarrow.parquet as pq

        known: dict[str, tuple[Any, ...]] = {}
        for path in sorted(folder.glob("*.parquet")):
            table = pq.read_table(path, page_checksum_verification=True).to_pydict()
            rows = zip(
                table["key"], table["error"], table["cosine"], table["error_path"], strict=True
            )
            known.update((key, (e, c, *row)) for key, e, c, row in rows)
        return known


class Zarr:
    """An array over the points for each quantity, with a chunk and its checksum per batch; the keys
    are in a separate file.
    """

    def write(self, folder: Path, found: list[Finished]) -> None:
        import zarr
        from zarr.codecs import Crc32cCodec, ZstdCodec

        group = zarr.open_group(folder, mode="w")
        arrays = {
            name: group.create_array(
                name,
                shape=(len(found), *tail),
                chunks=(BATCH, *tail),
                dtype="f8",
                compressors=[ZstdCodec(), Crc32cCodec()],
            )
            for name, tail in (("error", ()), ("cosine", ()), ("error_path", (STEPS,)))
        }
        group.attrs["keys"] = [one.key for one in found]
        for at in range(0, len(found), BATCH):
            batch = found[at : at + BATCH]
            for name, array in arrays.items():
                array[at : at + BATCH] = np.array([one.values[name] for one in batch])

    def read(self, folder: Path) -> dict[str, tuple[Any, ...]]:
        import zarr

        group = zarr.open_group(folder, mode="r")
        columns = [np.asarray(group[name][:]) for name in ("error", "cosine", "error_path")]
        keys = group.attrs["keys"]
        return {
            key: (e, c, *row)
            for key, e, c, row in zip(keys, *(column for column in columns), strict=True)
        }


def _row(values: Any) -> tuple[Any, ...]:
    return (
        float(values["error"]), float(values["cosine"]), *(float(x) for x in values["error_path"])
    )  # fmt: skip


def flips(
    kind: Any, folder: Path, expected: dict[str, tuple[Any, ...]], tries: int
) -> dict[str, int]:
    """Count the effects of single flipped bits at random places."""
    chance = random.Random(0)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    sizes = [path.stat().st_size for path in files]
    counts = {"noticed": 0, "harmless": 0, "points missing": 0, "wrong number": 0}
    for _ in range(tries):
        path = chance.choices(files, sizes)[0]
        whole = path.read_bytes()
        hurt = bytearray(whole)
        hurt[chance.randrange(len(hurt))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(hurt))
        try:
            found = kind.read(folder)
        except Exception:
            counts["noticed"] += 1
        else:
            same = {key: value for key, value in found.items() if expected.get(key) == value}
            if len(same) < len(found):
                counts["wrong number"] += 1
            else:
                counts["harmless" if len(found) == len(expected) else "points missing"] += 1
        path.write_bytes(whole)
    return counts


def main(command: str, arguments: Sequence[str]) -> int:
    options = parser(command, __doc__)
    options.add_argument("--points", type=int, default=10_000)
    options.add_argument("--flips", type=int, default=200)
    asked = options.parse_args(arguments)
    found = points(asked.points)
    expected = {one.key: _row(one.values) for one in found}
    some = found[: 5 * BATCH]
    for kind in (Ours(), Sqlite(), Parquet(), Zarr()):
        name = type(kind).__name__
        folder = Path(tempfile.mkdtemp())

        def write_again(kind: Any = kind, folder: Path = folder) -> None:
            shutil.rmtree(folder)
            folder.mkdir()
            kind.write(folder, found)

        try:
            wrote = seconds(write_again, repeat=3)
        except ImportError:
            print(f"{name}: not installed")
            continue
        read = seconds(partial(kind.read, folder), repeat=3)
        assert kind.read(folder) == expected, name
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        shutil.rmtree(folder)
        folder.mkdir()
        kind.write(folder, some)
        few = {one.key: expected[one.key] for one in some}
        line = {
            "write_ms_a_point": 1e3 * wrote / asked.points,
            "read_ms_a_point": 1e3 * read / asked.points,
            "bytes_a_point": size / asked.points,
            **flips(kind, folder, few, asked.flips),
        }
        print(name, json.dumps(line))
        shutil.rmtree(folder)
    return 0
