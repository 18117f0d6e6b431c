"""Protocols through the causal engine: numbers of another program, one mode in two ways, groups of
different covariances.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, Trajectory, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.protocol import Fit, Protocol, PseudoLabels, SampleGroup, Use, protocol_of
from selftrain.simulation.designs.sample_sources import GaussianSource
from selftrain.simulation.engines.explicit import MeasuredEngine
from selftrain.simulation.run_plan import plan_run
from selftrain.simulation.seed_record import SeedOptions, SeedRecord
from selftrain.simulation.seed_run import run_seed
from selftrain.theory.causal.draws import PointSource
from selftrain.theory.causal.replicate import Replicate
from selftrain.theory.causal.setting import before_reuse, setting_of

BASE = {"alpha_l": 0.8, "alpha_u": 2.2, "rho": 0.35, "delta": 0.6, "steps": 5}
RIDGES = {"lambda_l": 0.05, "lambda_u": 0.03}

PROTOTYPE = {
    "labels kept": (
        {"keep_labeled": 1.0}, {}, [3.1669, 3.8363, 4.1989, 4.3817, 4.4717, 4.5163],
    ),
    "batch reused": (
        {"batches": "reused"}, {}, [3.1669, 1.9938, 1.4696, 1.1621, 0.9560, 0.8067],
    ),
    "both, annealed, bias fixed": (
        {"batches": "reused", "keep_labeled": 1.0}, {"annealing": 0.3, "fix_bias": True},
        [3.1669, 4.7890, 6.5906, 8.2165, 9.4558, 10.2905],
    ),
}  # fmt: skip
"""q by substitution on one set of 65,536 points per group, a separate program."""


@pytest.mark.parametrize("mode", PROTOTYPE)
def test_norms_of_a_separate_program(mode: str) -> None:
    fields, words, q = PROTOTYPE[mode]
    run = solve(Problem(**BASE, **fields), Recipe(**RIDGES, **words), tolerance=3e-4)
    np.testing.assert_allclose(run.q, q, rtol=1.5e-3)


def same(one: Trajectory, other: Trajectory, rtol: float) -> None:
    for name in ("m", "v", "bias", "chi", "overlap", "error", "fraction_selected", "train_loss"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=rtol, err_msg=name
        )
    np.testing.assert_allclose(one.overlaps, other.overlaps, rtol=rtol)


def test_a_sphere_is_one_mode() -> None:
    """The same points, the same numbers."""
    fields = {"batches": ("a", "b", "a"), "keep_labeled": 0.5, "steps": 3}
    recipe = Recipe(**RIDGES, threshold=0.2)
    sphere = solve(Problem(**{**BASE, **fields}), recipe, tolerance=1e-3)
    words = {name: value for name, value in BASE.items() if name != "delta"}
    mode = Problem(**{**words, **fields}, clusters=Clusters([1.0], [BASE["delta"]]))
    same(solve(mode, recipe, tolerance=1e-3), sphere, 1e-9)


def test_squared_loss_has_exact_averages_on_general_covariances() -> None:
    """Equal variances in thirty features are a sphere, and both are exact."""
    mean = np.random.default_rng(0).normal(size=30)
    clusters = Clusters(mean / np.linalg.norm(mean), np.full(30, BASE["delta"]))
    words = {name: value for name, value in BASE.items() if name != "delta"}
    again = {"loss": "squared", "batches": "reused", "keep_labeled": 0.7}
    sphere = solve(Problem(**BASE, **again), Recipe(**RIDGES))
    run = solve(Problem(**words, **again, clusters=clusters), Recipe(**RIDGES))
    assert run.stats.tolerance == 1e-10
    same(run, sphere, 1e-9)


def test_groups_of_different_covariances_against_finite_systems() -> None:
    random = np.random.default_rng(5)
    mean = random.normal(size=150)
    mean *= 1.2 / np.linalg.norm(mean)
    first, second = np.exp(0.6 * random.normal(size=(2, 150)))
    problem = Problem(
        alpha_l=1.0, alpha_u=2.0, rho=0.4, steps=2, clusters=Clusters(mean, first),
        clusters_u=Clusters(0.9 * mean, second), batches="reused", keep_labeled=1.0,
        test="unlabeled",
    )  # fmt: skip
    recipe = Recipe(lambda_l=0.2, lambda_u=0.1, sharpness=1.2)
    run = solve(problem, recipe, tolerance=1e-3)
    ensemble = simulate(problem, recipe, seeds=24, probes=0)
    comparison = ensemble.compare(run)
    assert np.abs(comparison.scores).max() < 4, comparison.worst
    other = solve(problem.replace(clusters_u=None, test="labeled"), recipe, tolerance=1e-3)
    assert abs(other.pseudo_label_accuracy[2] - run.pseudo_label_accuracy[2]) > 0.02


def test_an_earlier_teacher_relabels_the_labelled_samples() -> None:
    """Fit 3 takes its labels from fit 1, for the labelled samples too: no problem says that, but
    both engines run any protocol.
    """
    problem = Problem(**{**BASE, "steps": 3}, batches="reused", keep_labeled=0.5)
    recipe = Recipe(lambda_l=0.3, lambda_u=0.2)
    plan = plan_run(protocol_of(problem, recipe), 400)
    fits = list(plan.protocol.fits)
    made = PseudoLabels(1, 1.5, 0.0, recipe.label_function)
    fits[3] = fits[3]._replace(uses=(Use(0, 0.5, made), Use(1, 1.0, made)))
    protocol = replace(plan.protocol, fits=tuple(fits))
    found = []
    for seed in range(16):
        record, other = SeedRecord(seed, 3), plan._replace(protocol=protocol)
        engine = MeasuredEngine(other, GaussianSource(other, seed), 1e-6)
        run_seed(other, engine, record, SeedOptions())
        m, v, bias = (record.values[name] for name in ("m", "v", "bias"))
        found.append([m, m**2 + v, bias])
    exact = solve(*before_reuse(problem, recipe))
    setting = setting_of(problem, recipe, exact)._replace(protocol=protocol)
    run = Replicate(setting, PointSource(2**13)).solve()
    m = run.history.means(setting.test, np.array(run.history.fits))[:, 0, -1]
    theory = np.array([m, [run.history.square(t) for t in range(4)], run.bias[:, 0]])
    error = np.std(found, axis=0, ddof=1) / 4
    assert np.abs((np.mean(found, axis=0) - theory) / error).max() < 4


def test_a_faded_fit_that_teaches_nobody_collapses_nobody() -> None:
    """Fit 1 has hardly any weights; the last fit, taught by fit 0, is the same without it."""
    groups = tuple(SampleGroup(name, 2.0, 0.3, 0.5) for name in ("given", "faded", "fresh"))
    first = Fit(0.5, "logistic", (Use("given"),))
    faded = Fit(1e12, "logistic", (Use("faded", 1.0, PseudoLabels(0)),))
    last = Fit(0.5, "logistic", (Use("fresh", 1.0, PseudoLabels(0)),))
    run = solve(Protocol(groups, (first, faded, last)), tolerance=1e-3)
    alone = solve(Protocol((groups[0], groups[2]), (first, last)), tolerance=1e-3)
    assert run.collapsed_at is None
    assert run.error[2] == pytest.approx(alone.error[1], rel=1e-5)
    taught = last._replace(uses=(Use("fresh", 1.0, PseudoLabels(1)),))
    assert solve(Protocol(groups, (first, faded, taught)), tolerance=1e-3).collapsed_at == 2


def after_a_collapse() -> tuple[Protocol, Protocol]:
    """A protocol whose fits 1 and 2 collapse, and the same without them.

    Fits 3 and 4 take nothing from them: they use samples of fit 1, with given labels and with
    labels of fit 3.
    """
    groups = tuple(SampleGroup(name, 2.0, 0.3, 0.5) for name in "abc")
    hard, soft = PseudoLabels(0, sharpness=float("inf")), PseudoLabels(3, threshold=0.2)
    fits = (
        Fit(20.0, "logistic", (Use("a"),)),
        Fit(0.3, "logistic", (Use("b", 1.0, hard),)),
        Fit(0.3, "logistic", (Use("a", 1.0, PseudoLabels(1)),)),
        Fit(0.3, "logistic", (Use("b"), Use("c"))),
        Fit(0.2, "logistic", (Use("a", 0.5), Use("b", 1.0, soft)), bias_of=3),
    )
    mine = soft._replace(teacher=1)
    last = Fit(0.2, "logistic", (Use("a", 0.5), Use("b", 1.0, mine)), bias_of=1)
    return Protocol(groups, fits), Protocol(groups, (fits[0], fits[3], last))


def test_fits_that_take_nothing_from_a_collapsed_one_are_solved_without_it() -> None:
    protocol, without = after_a_collapse()
    run, alone = solve(protocol, tolerance=1e-3), solve(without, tolerance=1e-3)
    assert run.collapsed_at == 1
    assert run.collapsed_class == 1
    assert run.good_steps == 5
    assert np.isnan(run.q[1:3]).all()
    assert np.isnan(run.confusion[1:3]).all()
    for name in ("q", "m", "bias", "error", "label_shares", "fraction_selected", "train_loss"):
        np.testing.assert_array_equal(
            getattr(run, name)[[0, 3, 4]], getattr(alone, name), err_msg=name
        )
    of_run, of_alone = run.training_logits(4), alone.training_logits(2)
    np.testing.assert_array_equal(of_run.scores, of_alone.scores)
    with pytest.raises(InvalidInput, match="collapsed into one class there, or in a fit it"):
        run.training_logits(1)


def test_finite_systems_after_a_collapse_follow_the_theory() -> None:
    protocol, _ = after_a_collapse()
    run, runs = solve(protocol, tolerance=1e-3), simulate(protocol, features=500, seeds=8)
    assert runs.collapsed_at.tolist() == [1] * 8
    comparison = runs.compare(run)
    assert np.isfinite(comparison.z["q"][[0, 3, 4]]).all()
    assert np.isnan(comparison.z["q"][1:3]).all()
    assert comparison.complete
    assert comparison.note == "of 8 seeds 8 collapsed"
    for name in ("q", "bias", "error", "fraction_selected"):
        z = comparison.z[name] if name in comparison.z else np.zeros(1)
        assert np.nanmax(np.abs(z)) < 4, name


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_first_fit_without_ridge_is_rejected(loss: str) -> None:
    protocol = Protocol((SampleGroup("a", 8.0, 0.3, 1.0),), (Fit(0.0, loss, (Use("a"),)),))
    with pytest.raises(InvalidInput, match="ridge must be > 0 in the first fit"):
        solve(protocol)
    problem = Problem(8.0, 2.0, (0.5, 0.3, 0.2), steps=0, clusters=Clusters.simplex(3, 1.0, 1.0))
    with pytest.raises(InvalidInput, match="lambda_l must be > 0 in the first fit"):
        solve(problem.replace(loss=loss), Recipe(lambda_l=0.0))
