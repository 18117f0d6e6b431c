"""Atomic writing of files, and netCDF files with a checksum so that damage is detected."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput

if TYPE_CHECKING:
    import xarray as xr


NAME, BLANK = b"checksum", b"0" * 64
"""The attribute with the checksum, and its placeholder while the checksum is computed."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `target` at the end of the block.

    If the process is killed or the disk is full, the old file stays intact. Links and file modes
    are preserved; a device is written to directly. An `OSError` names the target.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    file = Path(os.path.realpath(target))
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    known = file.exists()
    try:
        if known:
            part.touch(mode=0o600)
        yield part
        if known:
            shutil.copymode(file, part)
        os.replace(part, file)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(target)) from None
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    """Write a text in UTF-8 atomically."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def delete_unfinished(folder: Path) -> None:
    """Delete temporary files that killed processes have left in a folder and below."""
    for part in folder.rglob(".*.part"):
        process = part.name.rsplit(".", 2)[1]
        if process.isdigit() and not _is_running(int(process)):
            part.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, but belongs to another user
        return True
    return True


def write_netcdf(data: xr.Dataset, path: str | Path) -> Path:
    """Write a dataset with its checksum atomically."""
    target = Path(path)
    blank = data.copy()
    blank.attrs = {NAME.decode(): BLANK.decode(), **data.attrs}
    content = bytes(blank.to_netcdf(engine="scipy"))
    with replacing(target) as part:
        part.write_bytes(content.replace(BLANK, _digest(content), 1))
    return target


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _checked(path: str | Path) -> bytes:
    """Return the content of a file whose checksum matches; raise ValueError otherwise.

    The checksum is found without parsing: in netCDF 3 the name of an attribute is followed by its
    type and length, four bytes each, and its value.
    """
    content = Path(path).read_bytes()
    start = content.find(NAME) + len(NAME) + 8
    digest = content[start : start + len(BLANK)]
    whole = content[:start] + BLANK + content[start + len(BLANK) :]
    if NAME not in content or digest != _digest(whole):
        raise ValueError("its checksum does not match")
    return content


@contextmanager
def stored(path: str | Path, kind: str) -> Iterator[xr.Dataset]:
    """Yield the dataset of a netCDF file in which an object of this class (`kind`) is stored.

    Errors in reading it, also those inside the block, become an `InvalidInput` that names the path.
    """
    import xarray as xr

    try:
        with xr.open_dataset(io.BytesIO(_checked(path)), engine="scipy") as file:
            data = file.load()
        found = str(data.attrs.get("kind", "")).removeprefix("selftrain.")
        if found != kind:
            read = f"selftrain.{found}.load" if found else "xarray.open_dataset"
            what = f"not a stored {kind.lower()} but {_named(found)}: read it with {read}"
            raise InvalidInput("path", str(path), what)
        yield data
    except FileNotFoundError:
        raise
    except InvalidInput as error:
        if error.field not in ("loss", "labeler"):  # it says all, or is about something else
            raise
        accepted = (
            f"its {error.field} {error.value!r} is not registered: call "
            f"selftrain.{'losses' if error.field == 'loss' else 'labelers'}.register first"
        )
        raise InvalidInput("path", str(path), accepted) from None
    except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
        reason = " ".join(str(error).split())[:100]
        accepted = f"not a stored {kind.lower()} ({reason})"
        raise InvalidInput("path", str(path), accepted) from None


def _named(kind: str) -> str:
    """Return a kind of file with its article."""
    word = kind.lower() or "dataset"
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
