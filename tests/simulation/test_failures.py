"""Fits whose minimum is zero, seeds that fail, selections without points, labelers that are
wrong.
"""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from selftrain import Ensemble, Problem, Recipe, simulate, solve
from selftrain.errors import ConvergenceError, EmptySelection, InvalidInput, SeedError
from selftrain.protocol import Fit, Protocol, PseudoLabels, SampleGroup, Use

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=3)
METHODS = ["matrix-free", "revealed", "dense"]


class Labels:
    """A labeler of the user's own."""

    name = "own"

    def __init__(self, target: Callable[[np.ndarray], object]):
        self.function = target

    def target(self, logit, sharpness, loss):
        return self.function(logit)

    def jumps(self, sharpness):
        return (0.0,)


@pytest.mark.parametrize("method", METHODS)
def test_constant_targets_leave_nothing_but_the_bias(method: str) -> None:
    recipe = Recipe(labeler=Labels(lambda logit: np.full_like(logit, 0.3)))
    runs = simulate(PROBLEM, recipe, 150, 3, method, probes=0)
    np.testing.assert_array_equal(runs.q[:, 1], 0.0)
    np.testing.assert_allclose(runs.bias[:, 1], np.log(0.3 / 0.7), rtol=1e-9)
    np.testing.assert_allclose(runs.error[:, 1], 0.4)
    assert runs.collapsed_at.tolist() == [2, 2, 2]


@pytest.mark.parametrize("method", METHODS)
def test_smoothed_hard_labels_of_one_sign(method: str) -> None:
    recipe = Recipe(labeler=Labels(lambda logit: np.where(logit > 0, 0.9, 0.1)))
    runs = simulate(PROBLEM.replace(rho=0.2, steps=8), recipe, 100, 3, method, probes=0)
    assert (runs.collapsed_at > 1).all()
    last = runs.collapsed_at - 1
    np.testing.assert_array_equal(runs.q[range(3), last], 0.0)
    np.testing.assert_allclose(runs.bias[range(3), last], np.log(1 / 9), rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("loss", "ridge"), [("logistic", 8.0), ("squared", 50.0)])
def test_weights_that_fade_with_a_fixed_bias(method: str, loss: str, ridge: float) -> None:
    """They follow the theory as far as their error is smaller than they are, and say how large it
    is; below, they are zero, and the error is that of the bias.
    """
    problem = PROBLEM.replace(loss=loss, steps=18)
    recipe = Recipe(lambda_l=5.0, lambda_u=ridge, fix_bias=True)
    runs = simulate(problem, recipe, 200, 4, method, probes=0)
    theory = solve(problem, recipe)
    faded = runs.collapsed_at
    assert (faded > 5).all()
    for seed in range(4):
        assert runs.q[seed, faded[seed] - 1] == 0.0
        assert runs.fit_error[seed, faded[seed] - 1] == 1.0
        assert np.sqrt(runs.q[seed, faded[seed] - 2]) < 1e-14
        told = runs.fit_error[seed, : faded[seed] - 1]
        assert told[0] < 1e-6
        assert 1e-3 < told[-1] < 1.0
        known = np.log(runs.q[seed, : faded[seed] - 1] / theory.q[: faded[seed] - 1])
        assert np.abs(known).max() < 3.0  # every step multiplies q by its own random factor
    np.testing.assert_allclose(runs.error[:, -1], theory.error[-1], atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_strong_ridge_on_the_squared_loss(method: str) -> None:
    problem, recipe = PROBLEM.replace(loss="squared", steps=12), Recipe(lambda_u=50.0)
    runs = simulate(problem, recipe, 200, 3, method, probes=0)
    theory = solve(problem, recipe)
    assert theory.collapsed_at is not None
    assert np.abs(runs.collapsed_at - theory.collapsed_at).max() <= 1


@pytest.mark.parametrize("method", METHODS)
def test_hard_labels_of_one_class_are_a_collapse_under_the_squared_loss_too(method: str) -> None:
    """Though there is a fit (w = 0, B = -1): it answers all points alike, and the theory calls it
    so.
    """
    problem, recipe = (
        PROBLEM.replace(loss="squared", rho=0.05, steps=6),
        Recipe(sharpness=np.inf),
    )
    runs = simulate(problem, recipe, 200, 3, method, probes=0)
    assert (runs.collapsed_at > 0).all()
    assert solve(problem, recipe).collapsed_at is not None
    np.testing.assert_allclose(runs.error[:, -1], 0.05)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fix_bias", [True, False])
def test_a_selection_without_points_fails_as_in_the_theory(method: str, fix_bias: bool) -> None:
    recipe = Recipe(threshold=9.0, fix_bias=fix_bias)
    with pytest.raises(SeedError, match="2 of 2 seeds failed: seed 0, step 1: the threshold 9"):
        simulate(PROBLEM, recipe, 100, 2, method, probes=0)
    runs = simulate(PROBLEM, recipe, 100, 2, method, probes=0, on_failure="partial")
    assert {type(error) for error in runs.failures.values()} == {EmptySelection}
    assert (runs.collapsed_at == -1).all()
    for name in ("q", "error", "fraction_selected", "test_error"):
        assert np.isnan(runs.values(name)[:, 1:]).all()
    with pytest.raises(EmptySelection):
        solve(PROBLEM, Recipe(threshold=60.0, fix_bias=fix_bias))


@pytest.mark.parametrize("method", ["revealed", "dense"])
def test_kept_labels_are_fitted_also_when_no_other_point_is_selected(method: str) -> None:
    recipe = Recipe(threshold=9.0, lambda_u=0.02)
    runs = simulate(PROBLEM.replace(keep_labeled=1), recipe, 100, 2, method, probes=0)
    np.testing.assert_array_equal(runs.fraction_selected[:, 1:], 0.0)
    np.testing.assert_allclose(runs.objective[:, 1:], 0.5 * 0.02 * runs.q[:, 1:])


def test_one_failed_seed_does_not_cost_the_others(tmp_path: Path) -> None:
    """Without ridge some of these small labelled sets are separable, and the others have a
    minimum.
    """
    problem, recipe = Problem(3.0, 2.0, 0.4, 1.3, steps=1), Recipe(lambda_l=0.0)
    with pytest.raises(SeedError) as raised:
        simulate(problem, recipe, 20, 30, probes=0, workers=2)
    runs = raised.value.ensemble
    assert runs.seeds.tolist() == list(range(30))
    assert 0 < len(runs.failures) < 30
    failed = np.isin(runs.seeds, list(runs.failures))
    assert np.isnan(runs.error[failed]).all()
    assert np.isfinite(runs.error[~failed]).all()
    assert runs.count("error")[0] == 30 - len(runs.failures)
    assert f"{len(runs.failures)} failed" in repr(runs)
    assert "without ridge" in str(raised.value)
    good = runs.seeds[~failed].tolist()
    alone = simulate(problem, recipe, 20, good, probes=0)
    np.testing.assert_array_equal(alone.q, runs.q[~failed])
    again = Ensemble.load(runs.save(tmp_path / "runs.nc"))
    assert list(again.failures) == list(runs.failures)
    assert {type(error) for error in again.failures.values()} == {ConvergenceError}
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize("method", ["matrix-free", "dense"])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        (lambda logit: np.where(logit > 0, np.nan, 0.5), r"= nan: targets of the logistic"),
        (lambda logit: logit, r"targets of the logistic loss must be in \[0, 1\]"),
        (lambda logit: 0.5, r"= \(\): targets must have the shape of the logits"),
        (lambda logit: None, "targets must"),
        (lambda logit: ["a"] * logit.size, "targets must be numbers"),
    ],
)
def test_targets_are_checked(method: str, target: Callable, message: str) -> None:
    recipe = Recipe(labeler=Labels(target))
    with pytest.raises(InvalidInput, match=message) as refused:
        simulate(PROBLEM, recipe, 60, 2, method, probes=0)
    assert "labeler 'own', step 1" in str(refused.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reuse", [False, True])
def test_what_is_measured_does_not_change_what_else_is(method: str, reuse: bool) -> None:
    recipe = Recipe(threshold=0.3)
    problem = PROBLEM.replace(batches="reused" if reuse else "fresh")
    plain = simulate(problem, recipe, 80, 2, method, probes=0)
    kept = {"keep_weights": True, "keep_logits": True}
    full = simulate(problem, recipe, 80, 2, method, probes=2, **kept)
    one = simulate(problem, recipe, 80, 2, method, probes=2)
    for name in ("q", "m", "bias", "test_error", "train_loss"):
        np.testing.assert_array_equal(plain.values(name), full.values(name))
    np.testing.assert_array_equal(one.chi, full.chi)


def test_a_fit_that_takes_nothing_from_a_collapsed_one_is_made() -> None:
    """It is the same as without the collapsed fits, of which one draws samples that it reuses."""
    groups = tuple(SampleGroup(name, 2.0, 0.3, 0.5) for name in "abc")
    given, weak = Fit(0.3, "logistic", (Use("c"),)), Fit(20.0, "logistic", (Use("a"),))
    hard = PseudoLabels(0, sharpness=float("inf"))
    collapsed = Fit(0.3, "logistic", (Use("b", 1.0, hard),))
    taught = Fit(0.3, "logistic", (Use("c", 1.0, hard._replace(teacher=1)),))
    protocol = Protocol(groups, (weak, collapsed, taught, given, given))
    words = {"features": 100, "seeds": 3, "method": "dense"}
    words |= {"keep_weights": True, "keep_logits": True}
    runs = simulate(protocol, **words)
    assert runs.collapsed_at.tolist() == [1, 1, 1]
    np.testing.assert_allclose(runs.error[:, 1:3], 0.3)
    assert np.isnan(runs.q[:, 1:3]).all()
    assert np.isnan(runs.overlap[:, 3]).all()
    plain = given._replace(uses=(Use("a"),))
    alone = simulate(Protocol(groups, (weak, plain, given)), **words)
    for name in ("q", "m", "bias", "error", "train_loss"):
        found, expected = getattr(runs, name)[:, 3], getattr(alone, name)[:, 2]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(runs.overlap[:, 4], runs.q[:, 3], rtol=1e-5)
    for seed in runs.vectors:
        assert [one.size for one in seed.weights] == [100, 0, 0, 100, 100]
        assert [one.size for one in seed.logits] == [200, 0, 0, 200, 200]


def test_a_second_collapse_loses_its_own_class() -> None:
    shares = {"a": 0.3, "b": 0.3, "c": 0.7, "d": 0.7}
    groups = tuple(SampleGroup(name, 2.0, rho, 0.5) for name, rho in shares.items())
    hard = PseudoLabels(0, sharpness=float("inf"))
    fits = (
        Fit(20.0, "logistic", (Use("a"),)),
        Fit(0.3, "logistic", (Use("b", 1.0, hard),)),
        Fit(20.0, "logistic", (Use("c"),)),
        Fit(0.3, "logistic", (Use("d", 1.0, hard._replace(teacher=2)),)),
    )
    runs = simulate(Protocol(groups, fits), features=100, seeds=2, probes=0)
    np.testing.assert_array_equal(runs.confusion[:, 1, :, 0], 1.0)
    np.testing.assert_array_equal(runs.confusion[:, 3, :, 1], 1.0)
    np.testing.assert_array_equal(runs.lost_at, [[3, 1], [3, 1]])
