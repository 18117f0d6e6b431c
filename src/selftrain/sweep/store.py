"""Finished points on disk, one file each: written whole or not at all, checked when read.

A file is a line with the SHA-256 digest of all that follows, then an npz archive with the values of the
point, its parameters and the seconds it took. A file that does not have the digest it names, or that
belongs to another point, is damaged: it is reported and never used.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import SelfTrainError
from ..runtime.files import replacing
from .computation import Computation
from .grid import Point

ABOUT = "about the point"


class DamagedPoint(SelfTrainError):
    """A stored point that is not what was written."""


@dataclass(frozen=True)
class Finished:
    """The values of a point, and how long they took."""

    values: dict[str, Array]
    seconds: float


class Store:
    """A folder of finished points.

    >>> import tempfile
    >>> def double(x): return {"twice": 2 * x}
    >>> work = Computation(double, {})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.write(work, {"x": 4}, double(4), seconds=0.1)
    ...     (store.read(work, {"x": 4}).values["twice"].item(), store.read(work, {"x": 5}))
    (8, None)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, computation: Computation, point: Point) -> Path:
        """The file of a point."""
        kind = computation.name.rpartition(".")[2]
        return self.folder / kind / f"{computation.key(point)}.point"

    def write(
        self, computation: Computation, point: Point, values: Mapping[str, Any], seconds: float
    ) -> None:
        """Store the values of a point, beside its place first and then moved there."""
        about = {"function": computation.name, "parameters": point, "seconds": seconds}
        body = io.BytesIO()
        arrays = {name: np.asarray(value) for name, value in values.items()}
        np.savez(body, allow_pickle=False, **{ABOUT: np.array(json.dumps(about))}, **arrays)
        content = body.getvalue()
        target = self.path(computation, point)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as part:
            part.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)

    def read(self, computation: Computation, point: Point) -> Finished | None:
        """The values of a point, None if it was not computed yet.

        Raises `DamagedPoint` if the file is not what was written for this point.
        """
        path = self.path(computation, point)
        try:
            digest, _, content = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if hashlib.sha256(content).hexdigest().encode() != digest:
            raise DamagedPoint(f"{path}: its content does not have its checksum")
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                values = {name: archive[name] for name in archive.files}
            about = json.loads(values.pop(ABOUT).item())
        except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
            raise DamagedPoint(f"{path}: {error}") from None
        if about["parameters"] != json.loads(json.dumps(point)):
            raise DamagedPoint(f"{path}: it belongs to another point, {about['parameters']}")
        return Finished(values, float(about["seconds"]))
