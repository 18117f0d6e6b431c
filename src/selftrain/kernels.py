"""Keeps compiled kernels in step with their source.

Numba caches machine code next to a source file and compiles anew when *that* file changes, but not when
a file it calls into does: an edited quadrature rule would silently go on in its old form inside every
kernel that uses it. `forget_stale_kernels` drops the cached code of a folder when any of its files with
kernels has changed. Kernels take functions and constants from such files only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path


def compiled(folder: Path) -> bool:
    """Whether kernels of `folder` were compiled before, or may have been: the cache can be elsewhere."""
    elsewhere = "NUMBA_CACHE_DIR" in os.environ or not os.access(folder, os.W_OK)
    return elsewhere or any(folder.rglob("*.nbi"))


def forget_stale_kernels(folder: Path) -> None:
    """Delete cached kernels of `folder` unless they belong to the present sources."""
    cache = folder / "__pycache__"
    if not cache.is_dir():
        return
    digest = hashlib.sha256()
    for source in sorted(folder.rglob("*.py")):
        content = source.read_bytes()
        if b"numba" in content:
            digest.update(str(source.relative_to(folder)).encode() + b"\n" + content)
    stamp = cache / "kernels.stamp"
    with contextlib.suppress(OSError):
        if stamp.is_file() and stamp.read_text() == digest.hexdigest():
            return
        for stale in (*folder.rglob("*.nbi"), *folder.rglob("*.nbc")):
            stale.unlink(missing_ok=True)
        stamp.write_text(digest.hexdigest())
