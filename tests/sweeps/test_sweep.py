"""`sweep` gives what the functions give, point by point, and rejects what is no grid first."""

from __future__ import annotations

import functools
import math
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from selftrain import (
    Problem,
    Recipe,
    SelfTrainError,
    bayes_error,
    continuum,
    geometric,
    optimize,
    simulate,
    solve,
    sweep,
)
from selftrain.cli.cost import sample
from selftrain.errors import InvalidInput, StoreError
from selftrain.sweeps import linear, load
from selftrain.sweeps.api import plan_of

sys.path.insert(0, str(Path(__file__).parent))
from call_log import FILE, note, noted


def stored(file: Path) -> list[tuple[Any, ...]]:
    """All rows of a store."""
    with closing(sqlite3.connect(file)) as base:
        return base.execute("select rowid, * from points order by key").fetchall()


def delete_point(file: Path, row: int) -> None:
    """Delete a row of a store, by its place."""
    with closing(sqlite3.connect(file)) as base, base:
        base.execute("delete from points where rowid = ?", [row])


PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=3)
RECIPE = Recipe(lambda_l=0.05, lambda_u=0.05)


def test_each_point_is_the_run_of_its_problem_and_recipe() -> None:
    axes = {"rho": [0.3, 0.5], "lambda_u": geometric(0.01, 0.1, 3)}
    keep = ("error", "q", "bayes", "collapsed_at", "error_path")
    data = sweep(PROBLEM, RECIPE, over=axes, keep=keep, workers=0)
    assert isinstance(data, xr.Dataset)
    assert data["error"].dims == ("rho", "lambda_u")
    assert data["error"].attrs == {"symbol": r"\epsilon_g", "units": "1"}
    assert data["rho"].attrs == {"symbol": r"\rho", "units": "1"}
    for rho in (0.3, 0.5):
        for ridge in geometric(0.01, 0.1, 3):
            run = solve(PROBLEM.replace(rho=rho), RECIPE.replace(lambda_u=ridge))
            point = data.sel(rho=rho, lambda_u=ridge)
            assert float(point["error"]) == run.error[-1]
            assert float(point["q"]) == run.q[-1]
            assert float(point["bayes"]) == bayes_error(run.problem).semi_supervised
            assert math.isnan(float(point["collapsed_at"]))
            np.testing.assert_array_equal(point["error_path"], run.error)


def test_collapse_is_an_outcome() -> None:
    problem = PROBLEM.replace(steps=16)
    data = sweep(problem, Recipe(sharpness=math.inf), over={"rho": [0.3, 0.4]}, workers=0)
    expected = [solve(problem.replace(rho=rho), Recipe(sharpness=math.inf)) for rho in (0.3, 0.4)]
    assert data["collapsed_at"].values.tolist() == [run.collapsed_at for run in expected]
    assert data["error"].values.tolist() == [run.error[-1] for run in expected]


def test_tuned_points_are_those_of_optimize() -> None:
    data = sweep(
        PROBLEM,
        over={"rho": [0.4, 0.5]},
        task="optimize",
        keep=("error", "lambda_u", "gain", "excess"),
        options={"over": ("lambda_u",)},
        workers=0,
    )
    best = optimize(PROBLEM.replace(rho=0.5), over=("lambda_u",))
    point = data.sel(rho=0.5)
    assert float(point["error"]) == best.error
    assert float(point["lambda_u"]) == best.recipe.lambda_u
    assert float(point["gain"]) == best.labeled_only.error - best.error
    assert float(point["excess"]) == best.error - best.bayes.semi_supervised


def test_finite_systems_are_those_of_simulate() -> None:
    options = {"seeds": 3, "probes": 0}
    axes = {"features": [64, 96]}
    keep = ("error", "error_se", "collapsed")
    data = sweep(PROBLEM, RECIPE, over=axes, task="simulate", keep=keep, options=options, workers=0)
    ensemble = simulate(PROBLEM, RECIPE, features=96, **options)
    point = data.sel(features=96)
    assert float(point["error"]) == pytest.approx(ensemble.error[:, -1].mean(), rel=1e-15)
    spread = ensemble.error[:, -1].std(ddof=1) / math.sqrt(3)
    assert float(point["error_se"]) == pytest.approx(spread, rel=1e-12)


def test_paths_are_those_of_continuum() -> None:
    axes = {"until": [0.1, 0.5]}
    data = sweep(PROBLEM, RECIPE, over=axes, task="continuum", keep=("m", "error"), workers=0)
    path = continuum(PROBLEM, RECIPE, until=0.5)
    assert float(data["m"].sel(until=0.5)) == pytest.approx(path(0.5).m, rel=1e-14)


def product(x: float, y: float) -> float:
    return x * y


def shifted(problem: Problem, recipe: Recipe, shift: float) -> dict[str, Any]:
    return {"sum": problem.rho + recipe.lambda_u + shift, "row": np.arange(3) * shift}


def test_a_function_gets_what_it_names() -> None:
    data = sweep(over={"x": [1, 2], "y": [3.0, 5.0]}, task=product, workers=0)
    assert data["value"].values.tolist() == [[3.0, 5.0], [6.0, 10.0]]
    axes = {"rho": [0.2, 0.3], "shift": [1.0, 2.0]}
    data = sweep(PROBLEM, RECIPE, over=axes, task=shifted, workers=0)
    assert float(data["sum"].sel(rho=0.3, shift=2.0)) == 0.3 + 0.05 + 2.0
    assert data["row"].dims == ("rho", "shift", "row_0")
    assert list(sweep(over={"x": [1], "y": [2]}, task=lambda x, y: x, workers=0)) == [
        "value",
        "status",
    ]


def test_parameters_that_vary_together_are_one_axis() -> None:
    axes = {"case": {"rho": [0.3, 0.5], "alpha_u": [2.0, 3.0]}, "steps": [1, 2]}
    data = sweep(PROBLEM, RECIPE, over=axes, keep=("error",), workers=0)
    assert data["error"].dims == ("case", "steps")
    assert data["alpha_u"].dims == ("case",)
    run = solve(PROBLEM.replace(rho=0.5, alpha_u=3.0, steps=1), RECIPE)
    assert float(data["error"].sel(case=1, steps=1)) == run.error[-1]


def refuses_small(x: float) -> float:
    if x < 1:
        raise ValueError("too small")
    return x


def test_a_point_that_fails_carries_its_reason(tmp_path: Path) -> None:
    axes = {"x": [0.0, 1.0, 2.0]}
    data = sweep(over=axes, task=refuses_small, workers=0, store=tmp_path / "s.db")
    assert data["status"].values.tolist() == [1, 0, 0]
    assert str(data["reason"].values[0]) == "ValueError: too small"
    assert math.isnan(data["value"].values[0])
    assert data["value"].values[1:].tolist() == [1.0, 2.0]


@pytest.fixture(autouse=True)
def call_file(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE, str(tmp_path_factory.mktemp("calls") / "calls"))


def fails_at_first(x: float) -> float:
    note(x)
    if noted().count(x) == 1 and x == 2:
        raise ArithmeticError("not yet")
    return 2 * x


def names_no_text(x: float) -> float:
    raise ValueError("a file named \udcff")


def test_a_reason_that_is_no_text_is_stored_as_one(tmp_path: Path) -> None:
    how: dict[str, Any] = {"over": {"x": [1.0]}, "task": names_no_text, "workers": 0}
    data = sweep(**how, store=tmp_path / "s.db")
    assert str(data["reason"].values[0]) == r"ValueError: a file named \udcff"
    assert load(tmp_path / "s.db").identical(data)


def test_failed_points_are_computed_again_only_if_asked(tmp_path: Path) -> None:
    axes = {"x": [1.0, 2.0]}
    arguments: dict[str, Any] = {"over": axes, "task": fails_at_first, "workers": 0}
    first = sweep(**arguments, store=tmp_path / "s.db")
    again = sweep(**arguments, store=tmp_path / "s.db")
    assert noted() == [1.0, 2.0]
    assert again.identical(first)
    mended = sweep(**arguments, store=tmp_path / "s.db", retry=True)
    assert noted() == [1.0, 2.0, 2.0]
    assert mended["value"].values.tolist() == [2.0, 4.0]
    assert load(tmp_path / "s.db").identical(mended)


def test_growing_a_grid_and_asking_for_less_compute_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "s.db"
    sweep(over={"x": [1.0, 3.0]}, task=fails_at_first, workers=0, store=file)
    grown = sweep(over={"x": [0.0, 1.0, 3.0]}, task=fails_at_first, workers=0, store=file)
    assert noted() == [1.0, 3.0, 0.0]
    assert grown["value"].values.tolist() == [0.0, 2.0, 6.0]
    both = sweep(PROBLEM, over={"rho": [0.3]}, keep=("error", "q"), workers=0, store=file)
    rows = stored(file)
    less = sweep(PROBLEM, over={"rho": [0.3]}, keep=("q",), workers=0, store=file)
    assert stored(file) == rows
    assert less["q"].values.tolist() == both["q"].values.tolist()
    assert "error" not in less


def test_a_store_opens_while_it_grows(tmp_path: Path) -> None:
    full = sweep(PROBLEM, over={"rho": [0.3, 0.4]}, keep=("q",), workers=0, store=tmp_path / "s.db")
    delete_point(tmp_path / "s.db", 2)
    part = load(tmp_path / "s.db")
    missing = part["status"].values == 2
    assert missing.any()
    assert np.isnan(part["q"].values[missing]).all()
    np.testing.assert_array_equal(part["q"].values[~missing], full["q"].values[~missing])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"over": {"rhoo": [0.3]}}, "did you mean 'rho'"),
        ({"over": {"rho": [0.3, 1.4]}}, "rho must be .*, got 1.4"),
        ({"over": {"rho": [0.3, 0.3]}}, "must be different"),
        ({"over": {"rho": 0.3}}, "rho must be a sequence of one value or more, got 0.3"),
        ({"over": {}}, "over must map axes"),
        ({"over": {"rho": []}}, "rho must be a sequence"),
        ({"task": "sovle"}, "did you mean 'solve'"),
        ({"keep": ("eror",)}, "did you mean 'error'"),
        ({"keep": "error"}, "keep must be a sequence"),
        ({"options": {"features": 3}}, "features = 3: unknown option"),
        ({"task": "optimize", "over": {"lambda_u": [0.1]}}, "must not be an axis: it is optimised"),
        ({"task": "optimize", "options": {"over": "lambda_u"}, "over": {"lambda_u": [0.1]}},
         "must not be an axis: it is optimised"),
        ({"task": "optimize", "options": {"over": 3}}, "over must be a sequence of names"),
        ({"task": "optimize", "options": {"over": ("lambda_u",)}, "over": {"lambda_u": [0.1]}},
         "must not be an axis: it is optimised"),
        ({"keep": ("error_path",), "over": {"steps": [1, 2]}}, "no common path"),
        ({"over": {"a": {"rho": [0.1, 0.2], "alpha_u": [1.0]}}}, "equally many values"),
        ({"workers": -2}, "workers must be .*, got -2"),
        ({"time_limit": 0}, "time_limit must be .*, got 0"),
        ({"problem": None}, "problem must be given"),
        ({"task": "optimize", "options": {"over": ("lambda_z",)}}, "did you mean 'lambda_u'"),
        ({"task": "optimize", "options": {"bounds": {"lambda_u": (1, 0.1)}}}, "low < high"),
        ({"task": "optimize", "recipe": Recipe(lambda_u=5.0)}, "a start within the bounds"),
        ({"task": "optimize", "options": {"method": "newton"}}, "unknown method"),
        ({"task": "optimize", "options": {"starts": 0}}, "starts must be .*, got 0"),
        ({"task": "optimize", "options": {"limit": 0.5}}, "limit must be .*, got 0.5"),
        ({"task": "simulate", "options": {"seeds": 0}}, "seeds must be .*, got 0"),
        ({"task": "simulate", "over": {"features": [100, 1]}}, "features must be .* got 1"),
        ({"task": "continuum", "options": {"until": -1}}, "until must be .* > 0, got -1"),
        ({"options": {"tolerance": -1}}, "tolerance must be .*, got -1"),
        ({"problem": None, "recipe": None, "task": product, "over": {"x": [1], "y": [1], "z": [1]}},
         "unexpected keyword argument 'z'"),
        ({"problem": None, "recipe": None, "task": product, "over": {"x": [1]}},
         "missing a required argument: 'y'"),
        ({"recipe": 1}, "recipe must be a selftrain.Recipe, got 1"),
    ],
)  # fmt: skip
def test_what_is_no_sweep_is_refused_before_anything_runs(
    change: dict[str, Any], message: str
) -> None:
    arguments: dict[str, Any] = {"problem": PROBLEM, "recipe": RECIPE, "over": {"rho": [0.3]}}
    with pytest.raises(InvalidInput, match=message):
        sweep(**{**arguments, **change})


def gives_an_object(x: float) -> dict[str, Any]:
    return {"thing": object() if x > 1 else x}


def test_values_that_cannot_be_kept_are_named(tmp_path: Path) -> None:
    data = sweep(over={"x": [1.0, 2.0]}, task=gives_an_object, workers=0, store=tmp_path / "a.db")
    assert data["status"].values.tolist() == [0, 1]
    assert "the value of 'thing' is neither numbers nor text" in str(data["reason"].values[1])
    with pytest.raises(SelfTrainError, match=r"'sum': the function does not return it.* thing"):
        sweep(over={"x": [1.0]}, task=gives_an_object, keep=("sum",), store=tmp_path / "b.db")


def test_axes_have_both_ends() -> None:
    assert linear(0.0, 1.0, 5) == (0.0, 0.25, 0.5, 0.75, 1.0)
    np.testing.assert_allclose(geometric(1, 8, 4), (1, 2, 4, 8), rtol=1e-14)
    for wrong in ((0, 1, 3), (1, -1, 3), (1, 2, 0), (1, 2, 2.5), (math.nan, 1, 2)):
        with pytest.raises(InvalidInput):
            geometric(*wrong)


def test_a_picture_of_one_and_two_axes_and_of_no_more() -> None:
    axes = {"rho": [0.3, 0.4, 0.5], "lambda_u": geometric(0.01, 0.1, 3), "steps": [1, 2]}
    data = sweep(PROBLEM, RECIPE, over=axes, keep=("error", "cosine"), workers=0)
    with pytest.raises(InvalidInput, match="axes must be one or two"):
        data.plot()
    figure = data.sel(steps=1).plot("cosine")
    assert figure.axes[0].get_xscale() == "log"
    assert figure.axes[0].get_ylabel() == r"proportion of the positive class  $\rho$"
    assert "Cosine with the cluster direction after 1 step\n" in figure.get_suptitle()
    lines = data.sel(steps=1, rho=0.3).plot().axes[0].get_legend_handles_labels()[1]
    assert len(lines) == 2
    with pytest.raises(InvalidInput, match="did you mean 'error'"):
        data.plot("erorr")


def test_a_folder_without_a_sweep_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no sweep was computed"):
        load(tmp_path / "nowhere")
    sweep(over={"x": [1]}, task=product, options={"y": 2}, workers=0, store=tmp_path / "s.db")
    with closing(sqlite3.connect(tmp_path / "s.db")) as base, base:
        base.execute("update about set value = '{\"axes\": 3}' where name = 'plan'")
    with pytest.raises(StoreError, match=r"s\.db: the entry .plan. of its table about is damaged"):
        load(tmp_path / "s.db")


TUNED: dict[str, Any] = {
    "problem": PROBLEM,
    "recipe": Recipe(lambda_l=0.05, lambda_u=0.02, fix_bias=True),
    "over": {"rho": [0.35, 0.45], "alpha_u": geometric(1.5, 6.0, 10)},
    "task": "optimize",
    "keep": ("error", "lambda_u", "solves"),
    "options": {"over": ("lambda_l", "lambda_u")},
}


def test_tuned_points_begin_at_the_recipe_and_resume_to_the_last_bit(tmp_path: Path) -> None:
    """Each is what `optimize` gives from there, whatever was lost."""
    data = sweep(**TUNED, workers=0, store=tmp_path / "s.db")
    for rho in (0.35, 0.45):
        for alpha_u in (geometric(1.5, 6.0, 10)[at] for at in (0, 4, 9)):
            problem = PROBLEM.replace(rho=rho, alpha_u=alpha_u)
            best = optimize(problem, ("lambda_l", "lambda_u"), start=TUNED["recipe"])
            point = data.sel(rho=rho, alpha_u=alpha_u)
            assert float(point["error"]) == best.error
            assert float(point["lambda_u"]) == best.recipe.lambda_u
            assert float(point["solves"]) == best.solves
    for row in (3, 4, 7, 12):
        delete_point(tmp_path / "s.db", row)
    assert sweep(**TUNED, workers=0, store=tmp_path / "s.db").identical(data)
    assert sweep(**TUNED, workers=2).identical(data)


def test_a_search_with_several_starts_keeps_them() -> None:
    several = {**TUNED, "options": {**TUNED["options"], "starts": 2}, "over": {"rho": [0.4, 0.45]}}
    data = sweep(**several, workers=0)
    for rho in (0.4, 0.45):
        start = TUNED["recipe"]
        best = optimize(PROBLEM.replace(rho=rho), ("lambda_l", "lambda_u"), start=start, starts=2)
        assert float(data["solves"].sel(rho=rho)) == best.solves


def test_the_cost_of_a_resumed_sweep_counts_the_points_that_are_there(tmp_path: Path) -> None:
    """One point in four takes long, and none of the three that a sample draws."""

    def uneven(x: int) -> int:
        if x % 4 == 1:
            end = time.process_time() + 0.4
            while time.process_time() < end:
                pass
        return x

    axis, file = {"x": tuple(range(16))}, tmp_path / "s.db"
    sweep(
        over={"x": tuple(range(12))},
        task=uneven,
        workers=0,
        store=file,
        progress=False,
    )
    plan = plan_of(None, None, axis, uneven)
    found = sample(plan, file, notice=lambda line: None)
    assert found.sampled == 3
    assert 0.05 < found.seconds < 0.1


def named_like(x: float, name: str) -> dict[str, Any]:
    note(x)
    return {"y": x, name: np.arange(2.0) if name == "row" else x}


@pytest.mark.parametrize("name", ["x", "case", "status", "reason", "row"])
def test_a_quantity_named_like_an_axis_ends_the_sweep_at_its_first_point(
    tmp_path: Path, name: str
) -> None:
    axes = {"case": {"x": [1.0, 2.0, 3.0]}, "row_0": [1]}
    how: dict[str, Any] = {"over": axes, "options": {"name": name}, "workers": 0}
    clash = "row_0" if name == "row" else name
    with pytest.raises(SelfTrainError, match=f"{clash}.*return it under another"):
        sweep(task=lambda x, name, row_0: named_like(x, name), store=tmp_path / "s.db", **how)
    assert len(noted()) == 1


def test_points_before_a_rejected_one_are_stored(tmp_path: Path) -> None:
    """Cheap points travel together; the one that is rejected is in the middle of a batch."""

    def task(x: int) -> dict[str, Any]:
        return named_like(x, "x" if x == 20 else "z")

    with pytest.raises(SelfTrainError, match="return it under another"):
        sweep(over={"x": tuple(range(100))}, task=task, store=tmp_path / "s.db", workers=0)
    assert noted() == list(range(21))
    assert load(tmp_path / "s.db")["status"].values.tolist() == [0] * 20 + [2] * 80


def stops(x: float) -> float:
    if x == 2:
        sys.exit(3)
    return x


@pytest.mark.parametrize("workers", [0, 1])
def test_a_task_that_exits_has_failed_and_the_others_go_on(workers: int) -> None:
    task = functools.partial(stops)
    data = sweep(over={"x": [1.0, 2.0, 3.0]}, task=task, workers=workers, progress=False)
    assert data["status"].values.tolist() == [0, 1, 0]
    assert str(data["reason"].values[1]) == "SystemExit: 3"


class Power:
    def __init__(self, exponent: float) -> None:
        self.exponent = exponent

    def __call__(self, x: float) -> float:
        return x**self.exponent


def test_partial_functions_and_callable_objects_are_tasks(tmp_path: Path) -> None:
    for task in (functools.partial(product, y=3.0), Power(2.0), Power(2.0).__call__):
        data = sweep(over={"x": [3.0]}, task=task, workers=0, store=tmp_path / "s.db")
        assert data["value"].values.tolist() == [9.0]
        assert load(tmp_path / "s.db").identical(data)
