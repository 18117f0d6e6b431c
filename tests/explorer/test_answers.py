"""What the page shows is what the solver says, and faults come as sentences with the control they
belong to.
"""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain import bayes_error, solve, supervised_optimum
from selftrain.explorer.answers import answer, table
from selftrain.explorer.controls import CONTROLS
from selftrain.explorer.page_state import VIEWS, PageState
from selftrain.explorer.presets import PRESETS
from selftrain.explorer.snippets import command_line, python_lines


def ask(state, **more):
    return answer(
        {"texts": state.texts, "view": state.view, "t": state.t, "pin": state.pin, **more}
    )


def curve(shown, name):
    return next(trace for trace in shown["figure"]["data"] if trace["name"].startswith(name))


def test_the_error_view_has_the_numbers_of_the_api():
    state = PRESETS["headline"].state()
    shown = ask(state)
    run = solve(state.problem, state.recipe)
    np.testing.assert_allclose(curve(shown, "this run")["y"], run.error, rtol=1e-12)
    other = PageState.from_query(state.pin)
    pinned = solve(other.problem, other.recipe)
    np.testing.assert_allclose(curve(shown, "pinned run")["y"], pinned.error, rtol=1e-12)
    assert curve(shown, "Bayes error")["y"][0] == bayes_error(state.problem).semi_supervised
    assert curve(shown, "fully supervised")["y"][0] == supervised_optimum(state.problem).error
    assert curve(shown, "best step")["x"] == [int(np.argmin(run.error))]


def test_the_clusters_stand_beside_the_error_where_there_is_room():
    state = PRESETS["headline"].state()
    other = PageState.from_query(state.pin)
    for name, one in (("separating line, t", state), ("separating line, pinned", other)):
        line = curve(ask(state), name)
        run = solve(one.problem, one.recipe)
        sine = math.sqrt(1 - run.cosine[-1] ** 2)
        x, y = np.array(line["x"]), np.array(line["y"])
        zero = run.cosine[-1] * x + sine * y + run.bias_to_norm[-1]
        np.testing.assert_allclose(zero, 0, atol=1e-12)
        assert line["xaxis"] == "x2"
    drawn = {trace["name"] for trace in ask(state, narrow=True)["figure"]["data"]}
    assert "this run" in drawn
    assert not any(name.startswith(("separating", "positive")) for name in drawn)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_every_view(name):
    state = PRESETS[name].state()
    for view in VIEWS:
        shown = ask(PageState(state.texts, view, 3, state.pin), dark=True)
        assert "fault" not in shown
        several = "classes" in state.values() and view not in ("error", "plane", "susceptibility")
        assert bool(shown["figure"]["data"]) != several or view == "continuum"


def test_three_classes_have_error_proportions_and_scores():
    state = PRESETS["three-classes"].state()
    run = solve(state.problem, state.recipe)
    shown = ask(state)
    np.testing.assert_allclose(curve(shown, "this run")["y"], run.error, rtol=1e-9)
    np.testing.assert_allclose(curve(shown, "balanced")["y"], run.balanced_error, rtol=1e-9)
    # of new samples, drawn from the law of the scores
    kinds, scores = run.test_logits(-1).sample(200_000, seed=1)
    guessed = np.bincount(scores.argmax(axis=1), minlength=3) / len(kinds)
    predicted = [curve(shown, f"class {k}")["y"][-1] for k in range(3)]
    np.testing.assert_allclose(predicted, guessed, atol=0.004)
    # a sample lies in the sector of its largest score
    plane = ask(PageState(state.texts, "plane"))["figure"]["data"]
    clouds = [trace for trace in plane if trace["mode"] == "markers"]
    x, y = (np.concatenate([trace[axis] for trace in clouds]) for axis in "xy")
    true = np.repeat(range(3), [len(trace["x"]) for trace in clouds])
    sector = np.floor((np.degrees(np.arctan2(y, x)) - 30) % 360 / 120)
    assert np.mean(sector != true) == pytest.approx(run.error[-1], abs=0.06)


def test_the_python_of_three_classes_gives_the_same_numbers(capsys):
    state = PRESETS["three-classes"].state()
    names: dict[str, object] = {}
    exec(python_lines(state), names)
    assert (names["problem"], names["recipe"]) == (state.problem, state.recipe)
    assert "--config" in command_line(state)


@pytest.mark.parametrize(
    ("more", "field"),
    [({"shape": "1:1"}, "shape"), ({"steps": "17"}, "steps"), ({"rho_u": "0.5"}, "rho_u")],
)
def test_what_three_classes_do_not_have_is_named_beside_its_control(more, field):
    assert ask(PRESETS["three-classes"].state().with_values(more))["field"] == field


def test_the_laws_are_densities():
    shown = ask(PageState(PRESETS["weights-logits"].state().texts, "laws", 5))
    logits = [trace for trace in shown["figure"]["data"] if trace["name"].startswith("logits")]
    mass = sum(np.trapezoid(trace["y"], trace["x"]) for trace in logits)
    assert mass == pytest.approx(1.0, abs=0.01)


def test_the_separating_line_stands_where_the_logit_is_zero():
    state = PageState(PRESETS["cosine"].state().texts, "plane", 4)
    run = solve(state.problem, state.recipe)
    line = curve(ask(state), "separating line")
    x, y = np.array(line["x"]), np.array(line["y"])
    sine = math.sqrt(1 - run.cosine[4] ** 2)
    np.testing.assert_allclose(run.cosine[4] * x + sine * y + run.bias_to_norm[4], 0, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"rho": "1.5"}, "rho"),
        ({"alpha_l": "many"}, "alpha_l"),
        ({"lambda_u": "0.1,0.2"}, "lambda_u"),
        ({"steps": ""}, "steps"),
        ({"sharpness": "inf", "threshold": "3"}, None),
    ],
)
def test_a_fault_names_its_control(values, field):
    shown = ask(PageState().with_values(values))
    if field is None:
        assert "figure" in shown or shown["fault"]
    else:
        assert shown["field"] == field
        assert field in shown["fault"]


def test_the_table_is_the_run():
    state = PRESETS["selection"].state()
    rows = list(csv.DictReader(io.StringIO(table({"texts": state.texts}))))
    run = solve(state.problem, state.recipe)
    np.testing.assert_allclose([float(row["error"]) for row in rows], run.error, rtol=1e-12)


def test_the_python_snippet_gives_the_same_numbers(capsys):
    state = PRESETS["headline"].state()
    names: dict[str, object] = {}
    exec(python_lines(state), names)
    assert names["problem"] == state.problem
    assert names["recipe"] == state.recipe


def test_the_command_gives_the_same_numbers(monkeypatch, capsys):
    import json
    import shlex
    import sys

    from selftrain.cli.main import run as main

    state = PRESETS["headline"].state()
    monkeypatch.setattr(sys, "argv", [*shlex.split(command_line(state)), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    told = json.loads(capsys.readouterr().out)
    errors = [step["error"] for step in told["steps"]]
    np.testing.assert_allclose(errors, solve(state.problem, state.recipe).error, rtol=1e-9)


TEXT = st.one_of(
    st.sampled_from(
        ["", "inf", "-inf", "nan", "0", "1e308", "1e-300", "__import__('os')", "<script>", "1,2,3"]
    ),
    st.floats(allow_nan=True).map(str),
    st.text(max_size=12),
)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(list(CONTROLS)), TEXT, max_size=4),
       st.sampled_from(list(VIEWS)), st.integers(-5, 400))  # fmt: skip
def test_no_value_raises(texts, view, t):
    short = PageState().texts | {"steps": "3"} | texts
    shown = answer({"texts": short, "view": view, "t": t, "pin": "", "dark": None})
    assert ("figure" in shown) != ("fault" in shown)
