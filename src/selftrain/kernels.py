"""Keeps compiled kernels in step with their source.

Numba caches machine code next to a source file and compiles anew when *that* file changes, but not when
a file it calls into does: an edited quadrature rule would silently go on in its old form inside every
kernel that uses it. `forget_stale_kernels` drops the cached code of a folder when any source file there
(or in the folders it builds on) has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from pathlib import Path


def forget_stale_kernels(folder: Path, built_on: Iterable[Path] = ()) -> None:
    """Delete cached kernels of `folder` unless they belong to the present sources."""
    cache = folder / "__pycache__"
    if not cache.is_dir():
        return
    digest = hashlib.sha256()
    for source in sorted(file for place in (folder, *built_on) for file in place.glob("*.py")):
        state = source.stat()
        digest.update(f"{source.name} {state.st_mtime_ns} {state.st_size}\n".encode())
    stamp = cache / "kernels.stamp"
    with contextlib.suppress(OSError):
        if stamp.is_file() and stamp.read_text() == digest.hexdigest():
            return
        for stale in (*cache.glob("*.nbi"), *cache.glob("*.nbc")):
            stale.unlink(missing_ok=True)
        stamp.write_text(digest.hexdigest())
