"""Figures from end to end: files, records, resuming, damage, failure."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from selftrain import Problem, Recipe, SelfTrainError, solve
from selftrain.paper.computations.chains import chain
from selftrain.paper.figures import macroscopic, single_shot_ridge
from selftrain.paper.registry import IDS, figure, figures
from selftrain.paper.run import read_record, run
from selftrain.theory.faded import faded_limit

NAMES = ("macroscopic", "single-shot-ridge")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two figures, smaller than quick, made in this process."""
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        smaller(patch)
        outcomes = run(NAMES, quick=True, out=folder, workers=0)
    assert [one.id for one in outcomes] == list(NAMES)
    assert all(one.record is not None for one in outcomes)
    return folder


def smaller(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(single_shot_ridge, "RATIOS_QUICK", (16.0,))
    patch.setattr(macroscopic, "SEEDS_QUICK", {128: 8, 1024: 8, 8192: 8})


def files(folder: Path) -> dict[str, bytes]:
    """All that a figure leaves, but the points, which have their times."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and "points.db" not in path.name
    }


def test_files_and_record(made: Path) -> None:
    assert (made / "macroscopic.png").read_bytes().startswith(b"\x89PNG")
    assert (made / "macroscopic.pdf").read_bytes().startswith(b"%PDF")
    record = read_record(made, "macroscopic")
    assert record is not None
    assert all((made / name).is_file() for name in record["files"])
    assert record["seeds"]["N1024"] == list(range(8))
    assert record["parameters"]["theory"]["fixed"]["alpha_u"] == 2.0
    assert record["versions"]["numpy"] == np.__version__
    assert {claim["verdict"] for claim in record["claims"]} <= {
        "holds",
        "does not hold",
        "cannot tell",
    }


def test_data_have_symbols_and_are_those_of_the_theory(made: Path) -> None:
    with xr.open_dataset(made / "macroscopic.theory.nc", engine="scipy") as data:
        one = data.sel(rho=0.4)
        recipe = Recipe(*(float(one[name]) for name in ("lambda_l", "lambda_u", "threshold")))
        expected = solve(Problem(0.5, 2.0, 0.4, 0.75**2, steps=16), recipe)
        np.testing.assert_allclose(one["error"], expected.error, rtol=1e-7)
        assert data["error"].attrs["symbol"] == r"\epsilon_g^{(t)}"
        assert data["error"].attrs["units"] == "1"


def test_balanced_ridges_run_away(made: Path) -> None:
    with xr.open_dataset(made / "single-shot-ridge.nc", engine="scipy") as data:
        balanced = data["lambda_u"].sel(rho=0.5).isel(alpha_u=-1)
        np.testing.assert_allclose(balanced, 1e4, rtol=1e-6)


def test_a_resumed_run_leaves_the_same_files(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smaller(monkeypatch)
    points = Path(shutil.copy(made / "points.db", tmp_path / "points.db"))
    with closing(sqlite3.connect(points)) as base, base:
        base.execute("delete from points where rowid % 5 = 0")
        base.execute("update points set seconds = seconds + 1 where rowid = 2")
    notices: list[str] = []
    run(NAMES, quick=True, out=tmp_path, workers=0, notice=notices.append)
    assert [f"{points}: row 2" in notice for notice in notices] == [True]
    assert files(tmp_path) == files(made)


def test_every_figure_declares_grids_of_both_kinds() -> None:
    for one in figures():
        quick, full = one.tasks(True), one.tasks(False)
        assert sum(len(task.grid) for task in quick.values()) > 0
        assert sum(task.seconds for task in quick.values()) < sum(
            task.seconds for task in full.values()
        )


def test_an_unknown_figure_is_refused_with_a_suggestion() -> None:
    with pytest.raises(SelfTrainError, match="did you mean 'cosine'"):
        figure("cosines")
    assert [one.id for one in figures(["cosine", "macroscopic"])] == ["macroscopic", "cosine"]
    assert [one.id for one in figures()] == list(IDS)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written") as caught:
        run(["cosine"], quick=True, out=tmp_path / "file" / "below", workers=0)
    assert str(tmp_path / "file" / "below") in str(caught.value)


def test_a_chain_is_tuned_at_every_length() -> None:
    """No recipe of a coarse scan is better, and freeing the threshold does not hurt."""
    setting = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.5, "delta": 0.75**2}
    plain = chain(**setting, selection=False, heuristics=False, longest=4)
    chosen = chain(**setting, selection=True, heuristics=False, longest=4)
    assert plain["T"].tolist() == [1, 2, 4]
    problem = Problem(**setting, steps=4)
    scan = [
        float(solve(problem, Recipe(a, b)).error[-1])
        for a in np.logspace(-5, -1, 9)
        for b in np.logspace(-5, -1, 9)
    ]
    assert plain["error"][-1] <= min(scan) + 1e-9
    assert (chosen["error"] <= plain["error"] + 1e-12).all()
    assert (plain["error"] > plain["bayes"]).all()
    assert (plain["first_order"] < 1e-6).all()


def test_runs_whose_weights_fade_end_in_their_limit() -> None:
    """A twentieth of a point per feature shrinks the weights by a factor per step, until they are
    no numbers any more.
    """
    setting = {"alpha_l": 0.5, "rho": 0.5, "delta": 0.75**2}
    found = chain(**setting, alpha_u=0.05, selection=False, heuristics=False, longest=256)
    assert found["faded"].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1]
    problem = Problem(**setting, alpha_u=0.05, steps=256)
    ridges = np.logspace(-6, -1, 11)
    best = min(faded_limit(problem, Recipe(lambda_u=float(x))).error for x in ridges)
    assert found["error"][-1] <= best + 1e-9
    assert (found["error"] > found["bayes"]).all()
    assert (found["q"][:8] < 0.1 ** found["T"][:8]).all()


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[1]", '{"quick": true}', '{"figure": "cosine", "quick": true}', "[" * 99999],
)
def test_damaged_records_count_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "cosine.json").write_text(content)
    assert read_record(tmp_path, "cosine") is None
