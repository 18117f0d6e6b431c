"""A stored run is whole or absent, and nothing but an ordinary file is ever replaced."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from selftrain import Problem, Recipe, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.runtime.files import delete_unfinished, write_netcdf, write_text

DATA = xr.Dataset({"x": ("t", np.arange(3.0))})


class Full(type(Path())):
    """A disk that is full after a few bytes."""

    def write_bytes(self, content):
        super().write_bytes(content[:9])
        raise OSError(28, "No space left on device")


def test_a_failed_write_keeps_the_old_file_and_names_it(tmp_path, monkeypatch):
    path = write_netcdf(DATA, tmp_path / "run.nc")
    before = path.read_bytes()
    monkeypatch.setattr("selftrain.runtime.files.Path", Full)
    with pytest.raises(OSError, match="No space left") as refused:
        write_netcdf(2 * DATA, path)
    assert refused.value.filename == str(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.nc"]


def test_a_page_on_a_full_disk_leaves_the_old_one(tmp_path, monkeypatch):
    page = write_text(tmp_path / "index.html", "the old page")

    def full(self, text, encoding):
        self.write_bytes(text[:3].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(page), "write_text", full)
    with pytest.raises(OSError, match="No space left") as refused:
        write_text(page, "a new page")
    assert refused.value.filename == str(page)
    assert page.read_text() == "the old page"


def test_a_pipe_is_not_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        write_netcdf(DATA, pipe)
        assert read.result() == write_netcdf(DATA, tmp_path / "run.nc").read_bytes()
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path):
    (tmp_path / "data").mkdir()
    file, link = tmp_path / "data" / "run.nc", tmp_path / "latest.nc"
    file.touch(mode=0o600)
    link.symlink_to(file)
    write_netcdf(DATA, link)
    assert link.is_symlink()
    assert file.stat().st_size > 100
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    write_netcdf(DATA, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["data", "latest.nc", "run.nc"]


@pytest.mark.parametrize("kind", ["run", "ensemble"])
def test_flipped_bits_are_never_other_numbers(tmp_path, kind):
    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=2)
    run = solve(problem, Recipe())
    known = run if kind == "run" else simulate(problem, Recipe(), 40, 3, probes=0)
    path = known.save(tmp_path / "run.nc")
    assert type(known).load(path).q.tolist() == known.q.tolist()
    content = path.read_bytes()
    for bit in np.random.default_rng(0).choice(8 * len(content), 250, replace=False).tolist():
        broken = bytearray(content)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        with pytest.raises(InvalidInput, match="not a stored "):
            type(known).load(path)
    path.write_bytes(content[:-1])
    with pytest.raises(InvalidInput, match="not a stored "):
        type(known).load(path)


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
    delete_unfinished(tmp_path)
    assert not left.exists()
    assert ours.exists()
    assert other.exists()
