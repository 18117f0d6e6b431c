"""What `selftrain explore PATH` opens: a sweep as a map, a saved run as a page."""

from pathlib import Path

import numpy as np
import pytest

from selftrain import Problem, Recipe, SelfTrainError, solve, sweep
from selftrain.errors import InvalidInput
from selftrain.explorer import charts
from selftrain.explorer.opened import open_path


def test_a_sweep_opens_as_a_map_whose_points_are_pages(tmp_path):
    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=3)
    over = {"rho": [0.3, 0.4, 0.5], "lambda_u": [0.01, 0.1]}
    data = sweep(problem, Recipe(), over=over, keep=("error",), workers=0, store=tmp_path / "s.db")
    opened = open_path(tmp_path / "s.db")
    place = (opened.axes.index("rho"), opened.axes.index("lambda_u"))
    indices = [0, 0]
    indices[place[0]], indices[place[1]] = 2, 1
    state = opened.state_at(tuple(indices))
    assert (state.problem.rho, state.recipe.lambda_u) == (0.5, 0.1)
    run = solve(state.problem, state.recipe)
    shown = charts.heat_map(charts.Theme(), opened, "error")["data"][0]["z"]
    assert np.max(np.array(shown, dtype=float)) == pytest.approx(float(data["error"].max()))
    assert float(data["error"].sel(rho=0.5, lambda_u=0.1)) == pytest.approx(run.error[-1], rel=1e-8)


def test_a_saved_run_opens_as_a_page(tmp_path, monkeypatch):
    run = solve(Problem(0.7, 2.0, 0.3, 0.5, steps=2), Recipe(lambda_u=(0.02, 0.03), fix_bias=True))
    state = open_path(run.save(tmp_path / "run.nc"))
    assert (state.problem, state.recipe) == (run.problem, run.recipe)
    with pytest.raises(InvalidInput, match="saved run or a sweep"):
        open_path(tmp_path / "nothing")
    monkeypatch.chdir(tmp_path)  # messages cut off long paths
    Path("odd.nc").write_text("no such thing")
    with pytest.raises(SelfTrainError, match=r"odd\.nc"):
        open_path(Path("odd.nc"))
