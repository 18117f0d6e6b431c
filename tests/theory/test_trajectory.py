"""What a trajectory gives: tables, files, words; and its observables against their definitions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.errors import InvalidInput
from selftrain.observables import SYMBOLS
from selftrain.theory.stats import STATE

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=5)
RUNS = {
    "plain": (PROBLEM, Recipe(threshold=0.5)),
    "collapsed": (PROBLEM.replace(steps=10), Recipe(sharpness=math.inf)),
    "failed": (PROBLEM, Recipe(threshold=(0.0, 0.0, 60.0, 0.0, 0.0))),
    "supervised": (PROBLEM.replace(steps=0), Recipe()),
    "shifted": (
        PROBLEM.replace(rho_u=(0.4, 0.3, 0.2, 0.2, 0.1), delta_u=0.8, test=(0.3, 0.7)),
        Recipe(lambda_u=(0.1, 0.2, 0.1, 0.3, 0.1), annealing=0.1, fix_bias=True),
    ),
    "squared": (PROBLEM.replace(loss="squared"), Recipe(threshold=0.3)),
}


def solved(name: str) -> Trajectory:
    return solve(*RUNS[name], on_failure="partial")


@pytest.mark.parametrize("name", RUNS)
def test_save_and_load(name: str, tmp_path: Path) -> None:
    run = solved(name)
    path = run.save(tmp_path / "run.nc")
    back = Trajectory.load(path)
    assert back.problem == run.problem
    assert back.recipe == run.recipe
    assert back.collapsed_at == run.collapsed_at
    for column in SYMBOLS:
        np.testing.assert_array_equal(getattr(back, column), getattr(run, column), err_msg=column)
    assert back.stats.summary() == run.stats.summary()
    assert back.stats.start == run.stats.start
    if run.failure is None:
        assert back.failure is None
    else:
        assert back.failure is not None
        assert str(back.failure) == str(run.failure)
    assert repr(back) == repr(run)


def test_files_that_are_no_trajectory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Trajectory.load(tmp_path / "missing.nc")
    text = tmp_path / "notes.nc"
    text.write_text("not a trajectory")
    with pytest.raises(InvalidInput, match="not a stored trajectory"):
        Trajectory.load(text)


@pytest.mark.parametrize("name", RUNS)
def test_frame_and_dataset_hold_every_quantity(name: str) -> None:
    run = solved(name)
    frame, data = run.to_frame(), run.to_xarray()
    assert frame.index.name == "t"
    assert list(frame.index) == list(range(run.problem.steps + 1))
    assert list(frame.columns) == list(SYMBOLS)
    for column in SYMBOLS:
        np.testing.assert_array_equal(frame[column], getattr(run, column))
        np.testing.assert_array_equal(data[column], getattr(run, column))
        assert data[column].dims == ("t",)
        assert data[column].attrs["symbol"] == SYMBOLS[column]
    assert Problem.from_json(data.attrs["problem"]) == run.problem
    assert Recipe.from_json(data.attrs["recipe"]) == run.recipe


def test_words_say_how_it_ended() -> None:
    assert repr(solved("collapsed")).endswith("collapsed at step 8)")
    assert repr(solved("failed")).endswith("failed at step 3)")
    assert repr(solved("plain")).startswith("Trajectory(steps=5, error 0.193827 -> ")


def test_observables_by_drawing_points() -> None:
    """A Gaussian mixture seen by the model of step t-1: selection, accuracy of labels, error."""
    run = solved("plain")
    rng = np.random.default_rng(0)
    size, t = 400_000, 2
    s = np.where(rng.random(size) < PROBLEM.rho, 1.0, -1.0)
    noise = np.sqrt(PROBLEM.delta) * rng.standard_normal((2, size))
    old = run.m[t - 1] * s + np.sqrt(run.q[t - 1]) * noise[0] + run.bias[t - 1]
    kept = np.abs(old) > 0.5 * np.sqrt(run.q[t - 1])
    right = old * s > 0
    new = run.m[t] * s + np.sqrt(run.q[t]) * noise[1] + run.bias[t]
    sizes = 5 * 0.5 / math.sqrt(size)
    assert run.fraction_selected[t] == pytest.approx(kept.mean(), abs=sizes)
    assert run.pseudo_label_accuracy[t] == pytest.approx(right.mean(), abs=sizes)
    assert run.selected_label_accuracy[t] == pytest.approx(right[kept].mean(), abs=2 * sizes)
    assert run.error[t] == pytest.approx((new * s < 0).mean(), abs=sizes)
    soft = 1 / (1 + np.exp(-old))
    assert run.label_shares[t, 1] == pytest.approx(soft[kept].mean(), abs=2 * sizes)
    assert run.label_shares[0, 1] == PROBLEM.rho
    for true, side in enumerate((-1.0, 1.0)):
        guessed = (new[s == side] > 0).mean()
        assert run.confusion[t, true, 1] == pytest.approx(guessed, abs=2 * sizes)
    np.testing.assert_allclose(run.confusion.sum(axis=2), 1.0, rtol=1e-14)
    np.testing.assert_allclose(run.predicted_shares[t, 1], (new > 0).mean(), atol=sizes)


def test_the_class_that_labels_lack_is_named() -> None:
    run = solved("collapsed")
    assert run.collapsed_at is not None
    assert run.collapsed_class == int(np.argmax(run.class_errors[-1]))
    assert solved("plain").collapsed_class is None


def test_accuracy_of_all_labels_is_one_minus_the_previous_error() -> None:
    run = solved("plain")
    np.testing.assert_allclose(run.pseudo_label_accuracy[1:], 1 - run.error[:-1], rtol=1e-13)


def test_norm_cosine_and_bias_ratio() -> None:
    run = solved("plain")
    np.testing.assert_allclose(run.q, run.m**2 + run.v, rtol=1e-15)
    np.testing.assert_allclose(run.cosine, run.m / np.sqrt(run.q), rtol=1e-15)
    np.testing.assert_allclose(run.one_minus_cosine, 1 - run.cosine, rtol=1e-13)
    np.testing.assert_allclose(run.bias_to_norm, run.bias / np.sqrt(run.q), rtol=1e-15)
    assert set(STATE) < set(SYMBOLS)


def test_one_minus_cosine_keeps_its_digits() -> None:
    """When v is 1e-16 of the norm, 1 - m/sqrt(q) = v/(2 m^2) is lost to subtraction."""
    problem = PROBLEM.replace(alpha_l=50.0, alpha_u=50.0, delta=1e-14, loss="squared", steps=1)
    run = solve(problem, Recipe(lambda_l=1.0, lambda_u=1.0))
    np.testing.assert_allclose(run.one_minus_cosine, run.v / (2 * run.m**2), rtol=1e-10)
    assert np.all(run.one_minus_cosine > 0)
    assert np.all(run.one_minus_cosine < 1e-14)
