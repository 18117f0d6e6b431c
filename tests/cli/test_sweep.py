"""`selftrain sweep`: a grid file is a contract, and the exit code says whether every point is
there.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from selftrain.cli.gridfile import read_grid
from selftrain.errors import InvalidInput

OWN = """
def product(x, y):
    if x * y > 30:
        raise ValueError("too large")
    return {"product": x * y, "sum": x + y}
"""
GRID = """
task = "own:product"
keep = ["product"]
[axes]
x = [1, 2, 4]
y = { from = 1.0, to = 10.0, points = 2, scale = "log" }
"""
SOLVE = """
keep = ["error"]
[problem]
alpha_l = 0.5
delta = 0.5625
steps = 4
[recipe]
lambda_l = 0.05
[axes]
rho = [0.3, 0.5]
alpha_u = { from = 1.2, to = 8.0, points = 10, scale = "log" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "grid.toml").write_text(GRID)
    return tmp_path


def selftrain(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "selftrain", "sweep", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ)


def test_a_grid_is_computed_reported_exported_and_drawn(folder: Path) -> None:
    ran = selftrain(folder, "run", "grid.toml", "--store", "s.db", "--workers", "2", "--json")
    assert ran.returncode == 1, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["points"], told["done"], told["failed"]) == (6, 5, 1)
    assert told["failures"] == [{"at": "x=4, y=10.0", "reason": "ValueError: too large"}]
    assert "6 points of own:product: x (3) x y (2)" in ran.stderr
    assert "s each (a sample of 3)" in ran.stderr
    status = selftrain(folder, "status", "s.db")
    assert status.returncode == 1
    assert status.stdout == "5 done, 1 failed, 0 missing: s.db\n"
    assert "failed: ValueError: too large at x=4, y=10.0" in status.stderr
    assert selftrain(folder, "export", "s.db", "--to", "csv", "--out", "a.csv").returncode == 0
    with (folder / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["x", "y", "product", "status", "reason"]
    assert [row["product"] for row in rows] == ["1.0", "10.0", "2.0", "20.0", "4.0", ""]
    assert [row["status"] for row in rows] == ["done"] * 5 + ["failed"]
    assert selftrain(folder, "export", "s.db", "--to", "netcdf", "--out", "a.nc").returncode == 0
    with xr.open_dataset(folder / "a.nc", engine="scipy") as data:
        assert float(data["product"].sel(x=2, y=10.0)) == 20.0
    drawn = selftrain(folder, "plot", "s.db", "product", "--out", "a.png")
    assert drawn.returncode == 0, drawn.stderr
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")


def test_parquet_has_the_same_rows(folder: Path) -> None:
    import pandas as pd

    selftrain(folder, "run", "grid.toml", "--store", "s.db", "--workers", "0")
    made = selftrain(folder, "export", "s.db", "--to", "parquet", "--out", "a.parquet")
    assert made.returncode == 0, made.stderr
    table = pd.read_parquet(folder / "a.parquet")
    assert table["product"].dropna().tolist() == [1.0, 10.0, 2.0, 20.0, 4.0]


def test_a_check_computes_a_sample_only(folder: Path) -> None:
    checked = selftrain(folder, "run", "grid.toml", "--store", "s.db", "--check", "--json")
    assert checked.returncode == 0, checked.stderr
    told = json.loads(checked.stdout)
    assert (told["points"], told["sampled"], told["missing"]) == (6, 3, 3)


def test_the_plan_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text("\ufeff" + SOLVE, encoding="utf-8")
    plan = read_grid(path)
    assert plan.grid.shape == (2, 10)
    assert plan.grid.axes["alpha_u"][0] == 1.2
    assert plan.grid.axes["alpha_u"][-1] == pytest.approx(8.0, rel=1e-15)
    assert plan.call.problem is not None
    assert plan.call.problem.steps == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rho = [", "rhoo = [", "did you mean 'rho'"),
        ("keep = ", "kep = ", "did you mean 'keep'"),
        ('"error"', '"eror"', "did you mean 'error'"),
        ("[axes]", "[axis]", "did you mean 'axes'"),
        ("steps = 4", "stesp = 4", "did you mean 'steps'"),
        ("lambda_l = 0.05", "lambda_l = -1", "lambda_l must be .*, got -1"),
        ("points = 10", "point = 10", r"alpha_u.point = 10: unknown key; did you mean 'points'"),
        ("points = 10", "points = 0", r"alpha_u.points must be .*, got 0"),
        ("from = 1.2", "from = -1.2", r"alpha_u.from = -1.2"),
        ('scale = "log"', 'scale = "lgo"', "did you mean 'log'"),
        ("rho = [0.3, 0.5]", "rho = 0.3", "rho must be a list"),
        ("rho = [0.3, 0.5]", "rho = [0.3, 1.5]", "rho must be .*, got 1.5"),
        ("rho = [0.3, 0.5]", "rho = []", "rho must be a list of one value"),
        ("delta = 0.5625", "delta = 0.5625\nrho = 0.4", "it is an axis, and fixed as well"),
        ("keep =", 'task = "sovle"\nkeep =', "did you mean 'solve'"),
        ("keep =", 'over = ["lambda_u"]\nkeep =', "belongs to the task optimize"),
        ("keep =", 'task = "no_module_here:f"\nkeep =', "can be imported"),
        ("keep =", "keep = = ", "not TOML"),
    ],
)  # fmt: skip
def test_a_file_with_a_typo_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(SOLVE.replace(old, new, 1))
    with pytest.raises(InvalidInput, match=message):
        read_grid(path)


def test_nothing_runs_and_nothing_is_written_for_a_wrong_file(folder: Path) -> None:
    (folder / "grid.toml").write_text(SOLVE.replace("rho = [", "rhoo = ["))
    ran = selftrain(folder, "run", "grid.toml", "--store", "s.db")
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert not (folder / "s.db").exists()
    assert selftrain(folder, "status", "s.db").returncode == 2
