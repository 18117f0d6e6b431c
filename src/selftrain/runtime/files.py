"""Files: written whole or not at all, read whole or rejected in one line.

Labelled data carry the checksum of their file, so that damage is noticed.
"""

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
"""The attribute with the checksum, and what is in its place while it is computed."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a path to write to, moved to `target` at the end: a kill or a full disk leaves the old
    file.

    A link stays a link, the mode of the old file stays, and a device is written to as it is. An
    error of the system names the target.
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
    """Write a text in UTF-8, whole or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return path


def forget_parts(folder: Path) -> None:
    """Delete unfinished files of killed processes in a folder and below."""
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
    """Write a dataset with its checksum, whole or not at all."""
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
    """Return the content of a file that has its checksum, found without parsing: the name of the
    attribute comes first, then its type and length, four bytes each.
    """
    content = Path(path).read_bytes()
    start = content.find(NAME) + len(NAME) + 8
    digest = content[start : start + len(BLANK)]
    whole = content[:start] + BLANK + content[start + len(BLANK) :]
    if NAME not in content or digest != _digest(whole):
        raise ValueError("its content does not have its checksum")
    return content


@contextmanager
def stored(path: str | Path, kind: str) -> Iterator[xr.Dataset]:
    """Yield the dataset of a stored object; errors, in the block too, name the path."""
    import xarray as xr

    try:
        with xr.open_dataset(io.BytesIO(_checked(path)), engine="scipy") as file:
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
