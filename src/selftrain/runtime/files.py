"""Labelled data on disk: written whole or not at all, read whole or refused in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput

if TYPE_CHECKING:
    import xarray as xr


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to write to, moved to `target` when the block is done: a killed process leaves the old file.

    What is there and is no ordinary file (a device, a folder) is never replaced, but written to as it is.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def forget_parts(folder: Path) -> None:
    """Delete what killed processes left half-written in a folder and below."""
    for part in folder.rglob(".*.part"):
        process = part.name.rsplit(".", 2)[1]
        if process.isdigit() and not _runs(int(process)):
            part.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def write_netcdf(data: xr.Dataset, path: str | Path) -> Path:
    """Write a dataset, whole or not at all."""
    target = Path(path)
    with replacing(target) as part:
        data.to_netcdf(part, engine="scipy")
    return target


@contextmanager
def stored(path: str | Path, kind: str) -> Iterator[xr.Dataset]:
    """The dataset of a stored object of some kind; what is wrong with it, here or in the block, is told of the path."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="scipy") as file:
            data = file.load()
        if data.attrs["kind"] != f"selftrain.{kind}":
            raise KeyError("kind")
        yield data
    except FileNotFoundError:
        raise
    except InvalidInput as error:
        if error.field not in ("loss", "labeler"):
            raise
        accepted = (
            f"it was stored with the {error.field} {error.value!r}, which is not known here: "
            f"call selftrain.{'losses' if error.field == 'loss' else 'labelers'}.register first"
        )
        raise InvalidInput("path", str(path), accepted) from None
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        reason = " ".join(str(error).split())[:100]
        accepted = f"not a stored {kind.lower()} ({reason})"
        raise InvalidInput("path", str(path), accepted) from None
