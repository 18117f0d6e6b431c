"""A shape of clusters as a text: what it reads back to, what it refuses, and larger systems of the
same theory.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, solve
from selftrain.errors import InvalidInput
from selftrain.explorer.answers import answer
from selftrain.explorer.cluster_texts import read_shape, repeated, write_shape
from selftrain.explorer.opened import open_path
from selftrain.explorer.page_state import PageState
from selftrain.explorer.snippets import SETTINGS, command_line, python_lines, settings
from selftrain.explorer.tasks import TASKS

TEXT = "0.3:2,0:1,1:0.5"
SHAPED = PageState().with_values({"shape": TEXT, "steps": 3})


def test_a_shape_that_is_a_sphere_has_the_theory_of_the_sphere():
    sphere = PageState().with_values({"delta": 0.5, "steps": 3})
    shaped = sphere.with_values({"shape": "0.6:0.5,0.8:0.5"})
    expected = solve(sphere.problem, sphere.recipe).error
    np.testing.assert_allclose(solve(shaped.problem, shaped.recipe).error, expected, rtol=1e-8)


def test_a_turned_shape_is_the_same_text_and_the_same_theory():
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    mean, variances = np.array([1.0, 0.3, 0.2]), np.array([0.5, 2.0, 1.0])
    turned = Clusters(mean=turn @ mean, covariance=turn @ np.diag(variances) @ turn.T)
    again = read_shape(write_shape(turned))
    problem = Problem(0.5, 2.0, 0.3, clusters=turned, steps=3)
    expected = solve(problem, Recipe()).error
    found = solve(problem.replace(clusters=again), Recipe()).error
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_system_of_repeated_directions_has_the_same_theory():
    large = SHAPED.problem.replace(clusters=repeated(SHAPED.problem.clusters, 7))
    assert large.clusters.features == 21
    expected = solve(SHAPED.problem, SHAPED.recipe).error
    np.testing.assert_allclose(solve(large, SHAPED.recipe).error, expected, rtol=1e-9)


def test_simulated_systems_of_a_shape_come_close_to_its_theory():
    sent = {"state": {"texts": SHAPED.texts}, "features": 200, "seeds": 4}
    messages: list[dict] = []
    TASKS["simulate"](sent, messages.append)
    found = [message["simulated"] for message in messages if "simulated" in message]
    assert found[-1]["features"] == 198
    errors = np.array(found[-1]["error"])
    expected = solve(SHAPED.problem, SHAPED.recipe).error
    assert errors.shape == (4, 4)
    np.testing.assert_allclose(errors.mean(axis=0), expected, atol=4 * errors.std(ddof=1) / 2)


@pytest.mark.parametrize(
    "text", ["1", "1:2:3", "0:1", "1:0", "1:-1", "nan:1", "1:inf", "1e9:1", "a:b", "1:1," * 101]
)
def test_what_is_no_shape_is_refused_beside_its_field(text):
    shown = answer({"texts": PageState().texts | {"shape": text}})
    assert shown["field"] == "shape"
    assert "mean:variance" in shown["fault"]


def test_noise_of_the_batches_beside_a_shape_is_refused():
    shown = answer({"texts": SHAPED.texts | {"delta_u": "0.3"}})
    assert shown["field"] == "delta_u"


def test_two_covariances_and_too_many_directions_are_refused_in_words():
    with pytest.raises(InvalidInput, match="one covariance"):
        write_shape(Clusters([1.0, 0.0], ([1.0, 2.0], [2.0, 1.0])))
    with pytest.raises(InvalidInput, match="up to 100 directions"):
        write_shape(Clusters(np.ones(101), np.arange(1.0, 102.0)))


def test_the_separating_line_stands_where_the_logit_is_zero_in_units_of_the_noise():
    shown = answer({"texts": SHAPED.texts, "view": "plane", "t": 2})
    line = next(one for one in shown["figure"]["data"] if one["name"].startswith("separating"))
    run = solve(SHAPED.problem, SHAPED.recipe)
    # Where the line crosses the best direction s/separation, a mean logit with this share of m is
    # zero: m x/separation + B = 0.
    (x0, x1), (y0, y1) = line["x"], line["y"]
    crossing = x0 - y0 * (x1 - x0) / (y1 - y0)
    separation = SHAPED.problem.clusters.separation
    assert run.m[2] * crossing / separation + run.bias[2] == pytest.approx(0, abs=1e-9)


def test_the_laws_of_a_shape_are_densities_of_both_classes():
    shown = answer({"texts": SHAPED.texts, "view": "laws", "t": 2})
    mass = [
        np.trapezoid(one["y"], one["x"])
        for one in shown["figure"]["data"]
        if one["name"].startswith("logits")
    ]
    np.testing.assert_allclose(mass, [0.8, 0.2], rtol=1e-3)


def test_python_and_command_line_give_the_same_numbers(tmp_path):
    names: dict[str, object] = {}
    exec(python_lines(SHAPED), names)
    run = solve(SHAPED.problem, SHAPED.recipe)
    assert np.array_equal(names["run"].error, run.error)
    (tmp_path / SETTINGS).write_text(settings(SHAPED))
    command = [sys.executable, "-m", *command_line(SHAPED).split(), "--json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    errors = [step["error"] for step in json.loads(ended.stdout)["steps"]]
    np.testing.assert_allclose(errors, run.error, rtol=1e-9)


def test_a_saved_run_with_a_shape_opens_as_a_page(tmp_path):
    run = solve(SHAPED.problem, SHAPED.recipe)
    state = open_path(run.save(tmp_path / "run.nc"))
    assert (state.problem, state.recipe) == (run.problem, run.recipe)
