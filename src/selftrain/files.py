"""Labelled data on disk: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def write_netcdf(data: xr.Dataset, path: str | Path) -> Path:
    """Write a dataset beside `path` and move it there, so that a killed process leaves the old file.

    What is there and is no ordinary file (a device, a folder) is never replaced, but written to as it is.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        data.to_netcdf(target, engine="scipy")
        return target
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        data.to_netcdf(part, engine="scipy")
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return target
