"""Runs whose weights underflow go on to their last step: against the linear step written out by
hand, the closed form of the squared loss, and clusters of one mode.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtr
from typer.testing import CliRunner

from selftrain import Clusters, Problem, Recipe, Trajectory, gradient, solve
from selftrain.cli.main import app
from selftrain.errors import InvalidInput, NoGradient
from selftrain.expansions import squared_closed_form

DELTA = 0.75**2
PROBLEM = Problem(0.5, 0.25, 0.5, DELTA, steps=2000)
RECIPE = Recipe(0.05, 0.1)


class LinearStep(NamedTuple):
    """A logistic step of small weights, balanced classes: m = g m', v = fresh m'^2 + kept v'."""

    g: float
    fresh: float
    kept: float

    @classmethod
    def of(cls, alpha: float, delta: float, ridge: float) -> LinearStep:
        """By the formulas of one page: the squared loss at four times the ridge."""
        ridge, b = 4 * ridge, 4 * ridge + delta * (alpha - 1)
        chi = 2 / (b + math.sqrt(b * b + 4 * ridge * delta))
        q_hat = 1 / chi - ridge
        strength = alpha * delta / (1 + chi * delta) ** 2
        g = 1 - ridge / (q_hat * (1 + 1 / delta) + ridge)
        noise = strength / (1 - strength * delta * chi**2)
        fresh = chi**2 * noise * (1 + delta) * (1 - g) ** 2
        kept = chi**2 * (noise * delta * ridge**2 * chi**2 + q_hat**2)
        return cls(g, fresh, kept)

    def error(self, delta: float) -> float:
        """After endlessly many steps."""
        ratio = self.fresh / (self.g**2 - self.kept)
        return float(ndtr(-1 / math.sqrt(delta * (1 + ratio))))


@pytest.fixture(scope="module")
def run() -> Trajectory:
    return solve(PROBLEM, RECIPE)


def test_the_last_step_is_reached(run: Trajectory) -> None:
    step = LinearStep.of(0.25, DELTA, 0.1)
    assert run.good_steps == 2001
    assert run.error[-1] == pytest.approx(0.324012, abs=5e-7)
    assert run.error[-1] == pytest.approx(step.error(DELTA), rel=1e-9)
    np.testing.assert_allclose(np.diff(run.log_q[250:]), 2 * math.log(step.g), rtol=1e-9)
    assert run.q[-1] == run.m[-1] == 0.0
    assert np.isfinite(run.to_frame().iloc[1:]).all().all()
    assert run.summary()["accuracy"] < 1e-9
    assert run.train_loss[-1] == pytest.approx(math.log(2), rel=1e-12)
    assert run.pseudo_label_accuracy[-1] == pytest.approx(1 - run.error[-2], rel=1e-12)


def test_numbers_before_the_underflow_are_what_they_were(run: Trajectory) -> None:
    """And m and q are numbers as long as floating-point numbers have them."""
    alone = solve(PROBLEM.replace(steps=240), RECIPE)
    assert alone.fading is None
    for name in ("m", "v", "chi", "r_hat", "error"):
        np.testing.assert_allclose(
            getattr(run, name)[:241], getattr(alone, name), rtol=1e-9, equal_nan=True
        )
    assert run.q[300] == pytest.approx(math.exp(run.log_q[300]), rel=1e-9)
    assert run.m[500] == pytest.approx(math.exp(0.5 * run.log_q[500]) * run.cosine[500], rel=1e-9)


def test_a_direction_on_its_way() -> None:
    """Few points and wide clusters: v shrinks more slowly than m^2, so the cosine falls for ever,
    weights of any size.
    """
    problem, recipe = Problem(0.5, 0.3, 0.5, 1.0, steps=400), Recipe(0.05, 0.3)
    run = solve(problem, recipe)
    assert run.fading is not None
    first = int(np.argmax(run.fading.exponents > 0))
    assert 50 < first < 300
    step, start = LinearStep.of(0.3, 1.0, 0.3), first - 10
    ratio = run.v[start] / run.m[start] ** 2
    for t in range(start + 1, 401):
        ratio = (step.fresh + step.kept * ratio) / step.g**2
        assert run.cosine[t] == pytest.approx(1 / math.sqrt(1 + ratio), rel=1e-7)
    assert run.cosine[-1] < 0.5 * run.cosine[start]


def test_weights_that_grow_again() -> None:
    """Sharper labels bring weights back from 1e-200: the linear step with its gain times the
    sharpness, until logits are large.
    """
    sharpness = np.append(np.ones(400), np.full(450, 10.0))
    problem, recipe = PROBLEM.replace(steps=850), RECIPE.replace(sharpness=tuple(sharpness))
    run = solve(problem, recipe)
    assert run.fading is not None
    assert run.log_q.min() < -900
    g = LinearStep.of(0.25, DELTA, 0.1).g
    small = np.flatnonzero((run.log_q[:-1] < -60) & (run.t[:-1] > 40))
    gains = np.diff(0.5 * run.log_q + np.log(run.cosine))
    np.testing.assert_allclose(gains[small], np.log(g * sharpness[small]), rtol=1e-8)
    assert run.fading.exponents[-1] == 0
    assert 1e-3 < run.q[-1] < 1e6


def test_the_squared_loss_in_closed_form() -> None:
    problem = Problem(0.5, 1.2, 0.5, 1.0, steps=3000, loss="squared")
    run, form = solve(problem, Recipe(0.05, 0.5)), squared_closed_form(problem, Recipe(0.05, 0.5))
    assert run.fading is not None
    np.testing.assert_allclose(run.cosine**2, form.discrete.squared_cosine, rtol=1e-9)
    log_m2 = 2 * (math.log(form.start.m) + run.t * math.log(form.step(0.5).keep))
    np.testing.assert_allclose(run.log_q, log_m2 - 2 * np.log(run.cosine), rtol=1e-9, atol=1e-9)
    assert run.train_loss[-1] == 0.0


@pytest.mark.parametrize("words", [{}, {"threshold": 0.4, "fix_bias": True}])
def test_clusters_of_one_mode(words: dict) -> None:
    recipe = RECIPE.replace(**words)
    sphere = solve(PROBLEM.replace(steps=400), recipe)
    clusters = solve(Problem(0.5, 0.25, 0.5, clusters=Clusters([1.0], [DELTA]), steps=400), recipe)
    assert clusters.fading is not None
    for name in ("error", "one_minus_cosine", "log_q", "chi", "fraction_selected", "train_loss"):
        ours, theirs = getattr(clusters, name), getattr(sphere, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(clusters.m, sphere.m, rtol=1e-8, atol=0)


@pytest.mark.parametrize("ridge", [3.0, 10.0, 30.0, 100.0])
def test_clusters_at_large_ridges(ridge: float) -> None:
    """Weights that shrink by a factor of tens a step reach the last one, as on the sphere."""
    recipe, clusters = Recipe(0.05, ridge), Clusters([1.0], [DELTA])
    sphere = solve(Problem(0.5, 0.5, 0.5, DELTA, steps=200), recipe)
    run = solve(Problem(0.5, 0.5, 0.5, clusters=clusters, steps=200), recipe)
    assert run.fading is not None
    np.testing.assert_allclose(run.error, sphere.error, rtol=1e-8)
    np.testing.assert_allclose(run.log_q, sphere.log_q, rtol=1e-8, atol=1e-8)


def test_clusters_of_many_modes(tmp_path: Path) -> None:
    """The limit forgets the labelled samples: runs that fade at other steps end in one
    direction.
    """
    clusters = Clusters([0.8, 0.3, 0.5], [0.5, 1.0, 0.3])
    problem = Problem(0.8, 0.5, 0.5, clusters=clusters, steps=200)
    runs = [solve(problem, Recipe(ridge, 3.0, threshold=0.2)) for ridge in (0.3, 3e6)]
    early, late = (int(np.argmax(run.fading.exponents > 0)) for run in runs if run.fading)
    assert early != late
    assert runs[0].error[-1] == pytest.approx(runs[1].error[-1], rel=1e-9)
    assert runs[0].error[-1] == pytest.approx(0.2896, abs=2e-4)
    back = Trajectory.load(runs[0].save(tmp_path / "run.nc"))
    for name in ("error", "log_q", "auc", "class_errors", "cosine"):
        np.testing.assert_array_equal(getattr(back, name), getattr(runs[0], name), err_msg=name)


def test_the_gradient_is_that_of_the_limit(run: Trajectory) -> None:
    h = 1e-5
    ends = [LinearStep.of(0.25, DELTA, 0.1 + side * h).error(DELTA) for side in (1, -1)]
    slope = gradient(run)
    assert slope.total("lambda_u") == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)
    assert abs(slope["lambda_l"]) < 1e-9
    assert slope["lambda_u"][-1] == pytest.approx(-0.06333747, rel=1e-5)
    for of in ("q", lambda run: float(run.q[-1])):
        with pytest.raises(NoGradient, match="have faded"):
            gradient(run, of=of)


def test_files_steps_and_laws(run: Trajectory, tmp_path: Path) -> None:
    back = Trajectory.load(run.save(tmp_path / "run.nc"))
    for name in ("error", "cosine", "log_q", "m", "train_loss", "accuracy"):
        np.testing.assert_array_equal(getattr(back, name), getattr(run, name), err_msg=name)
    some = solve(PROBLEM, RECIPE).every(500)
    np.testing.assert_allclose(some.error, run.error[::500], rtol=1e-12)
    assert run.training_logits(200).cdf(0.0) == pytest.approx(0.5, abs=1e-9)
    for law in (run.training_logits, run.test_logits):
        with pytest.raises(InvalidInput, match="underflow"):
            law(-1)
    warm = solve(PROBLEM, RECIPE.replace(lambda_u=0.101), warm_start=run)
    cold = solve(PROBLEM, RECIPE.replace(lambda_u=0.101))
    np.testing.assert_allclose(warm.error, cold.error, rtol=1e-8)
    assert run.plot() is not None


def test_where_a_bias_decides() -> None:
    """With imbalanced classes the bias outlives the weights, trained or fixed: one class is
    left.
    """
    for fix_bias in (False, True):
        run = solve(PROBLEM.replace(rho=0.4), RECIPE.replace(fix_bias=fix_bias))
        assert run.collapsed_at is not None
        assert run.fading is None
        assert run.error[-1] == 0.4


def test_the_command_line_prints_the_last_step() -> None:
    words = "solve --alpha-l .5 --alpha-u .25 --rho .5 --delta .5625 --steps 400 --lambda-l .05"
    found = CliRunner().invoke(app, [*words.split(), "--lambda-u", ".1", "--json"])
    assert found.exit_code == 0, found.output
    last = json.loads(found.output)["steps"][-1]
    assert last["error"] == pytest.approx(0.324012, abs=5e-7)
    assert 0.0 <= last["q"] < 1e-300


def test_log_q_is_wherever_q_is() -> None:
    """A large ridge shrinks q below what underflows."""
    problem = Problem(0.5, 0.25, 0.5, DELTA, steps=400)
    recipe = Recipe(0.05, 1.0)
    run, thinned = solve(problem, recipe), solve(problem, recipe).every(200)
    assert run.q[-1] == 0.0
    step = LinearStep.of(0.25, DELTA, 1.0)
    slow = 2 * math.log(max(step.g, math.sqrt(step.kept)))
    assert run.log_q[-1] - run.log_q[-2] == pytest.approx(slow, rel=1e-6)
    np.testing.assert_array_equal(run.to_frame()["log_q"], run.log_q)
    np.testing.assert_array_equal(run.to_xarray()["log_q"], run.log_q)
    np.testing.assert_array_equal(thinned.log_q, run.log_q[[0, 200, 400]])
    command = f"solve --alpha-l 0.5 --alpha-u 0.25 --rho 0.5 --delta {DELTA} --steps 400"
    command += " --lambda-l 0.05 --lambda-u 1.0 --json"
    told = json.loads(CliRunner().invoke(app, command.split()).stdout)["steps"][-1]
    assert told["q"] == 0.0
    assert told["log_q"] == run.log_q[-1]
