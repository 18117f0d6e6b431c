"""A stored run is whole or absent, and nothing but an ordinary file is ever replaced."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from selftrain.runtime.files import forget_parts, write_netcdf

DATA = xr.Dataset({"x": ("t", np.arange(3.0))})


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = write_netcdf(DATA, tmp_path / "run.nc")
    before = path.read_bytes()

    def broken(self, target, **options):
        target.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", broken)
    with pytest.raises(OSError, match="no space left"):
        write_netcdf(DATA, path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.nc"]


def test_a_pipe_is_not_replaced_by_a_file(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    asked = []
    monkeypatch.setattr(xr.Dataset, "to_netcdf", lambda self, target, **_: asked.append(target))
    write_netcdf(DATA, pipe)
    assert asked == [pipe]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_killed_processes_left_is_deleted(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    left = tmp_path / "points" / f".a.point.{int(ended.stdout)}.part"
    left.parent.mkdir()
    ours, other = tmp_path / f".b.{os.getpid()}.part", tmp_path / ".mine.part"
    for path in (left, ours, other):
        path.touch()
    forget_parts(tmp_path)
    assert not left.exists()
    assert ours.exists()
    assert other.exists()
