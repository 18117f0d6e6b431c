"""Data reuse against finite systems, against the run on fresh batches, and on general
covariances.

`python -m benchmarks finite-reuse` does the first at N = 2,000 and 8,192 for nine modes; here are
small ones.
"""

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, simulate, solve
from selftrain.errors import ConvergenceError, InvalidInput
from selftrain.theory.causal import solve as causal
from selftrain.theory.causal.draws import PointSource
from selftrain.theory.causal.observed import REPLICATES
from selftrain.theory.causal.replicate import Replicate
from selftrain.theory.causal.setting import setting_of

BASE = {"alpha_l": 0.8, "alpha_u": 2.2, "rho": 0.35, "delta": 0.6, "steps": 3}
RIDGES = {"lambda_l": 0.05, "lambda_u": 0.03}
MODES = {
    "kept, annealed, bias fixed": (
        {"batches": "reused", "keep_labeled": 1.0}, {"annealing": 0.3, "fix_bias": True},
    ),
    "pool, selected": ({"batches": ("a+b", "b+c", "c+a")}, {"threshold": 0.4}),
    "hard labels, kept late": (
        {"steps": 2, "batches": "reused", "keep_labeled": (0.0, 0.7)}, {"sharpness": np.inf},
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_finite_systems(mode: str) -> None:
    fields, words = MODES[mode]
    problem, recipe = Problem(**{**BASE, **fields}), Recipe(**RIDGES, **words)
    vectors = {"keep_weights": True, "keep_logits": True}
    ensemble = simulate(problem, recipe, features=500, seeds=24, probes=0, **vectors)
    comparison = ensemble.compare(solve(problem, recipe, tolerance=1e-3))
    assert {gap.what for gap in comparison.gaps} == {"weights", "logits"}
    assert np.abs(comparison.scores).max() < 4, comparison.worst


def test_samples_that_were_seen_have_another_law() -> None:
    """Training samples are fitted: their logits agree with the labels more than those of new ones
    do.
    """
    problem = Problem(**{**BASE, "steps": 2}, batches="reused", keep_labeled=1.0)
    run = solve(problem, Recipe(**RIDGES), tolerance=1e-3)
    seen, new = run.training_logits(2, samples="labeled"), run.test_logits(2)
    assert seen.cdf(0.0, y=1) < 0.7 * new.cdf(0.0, y=1)
    share = problem.rho * new.cdf(0.0, y=1) + (1 - problem.rho) * (1 - new.cdf(0.0, y=0))
    assert np.isclose(share, run.error[2], rtol=1e-6)


@pytest.mark.parametrize(
    "fields", [{"keep_labeled": 1.0}, {"batches": ("a", "b", "a"), "keep_labeled": 0.5}]
)
def test_a_sphere_solved_as_clusters(fields: dict) -> None:
    """One mode, or forty features of one variance: the same numbers."""
    mean = np.zeros(40)
    mean[0] = 1.0
    words = {name: value for name, value in BASE.items() if name != "delta"}
    sphere = solve(Problem(**BASE, **fields), Recipe(**RIDGES), tolerance=3e-4)
    shaped = Problem(**words, **fields, clusters=Clusters(mean, BASE["delta"]))
    run = solve(shaped, Recipe(**RIDGES), tolerance=3e-4)
    np.testing.assert_allclose(run.m, sphere.m, rtol=1e-3)
    np.testing.assert_allclose(run.overlaps, sphere.overlaps, rtol=1e-3)
    np.testing.assert_allclose(run.bias, sphere.bias, rtol=1e-3)
    np.testing.assert_allclose(run.chi, sphere.chi, rtol=1e-3)
    np.testing.assert_allclose(run.error, sphere.error, rtol=1e-3)
    u = np.linspace(-3.0, 3.0, 7)
    asked = [(0, None), (1, "labeled"), (3, None), (3, "labeled")]
    laws = [(run.training_logits(*one), sphere.training_logits(*one)) for one in asked]
    for law, known in [*laws, (run.test_logits(3), sphere.test_logits(3))]:
        for y in (0, 1):
            np.testing.assert_allclose(law.cdf(u, y=y), known.cdf(u, y=y), atol=2e-3)
            slope = (law.cdf(u + 1e-5, y=y) - law.cdf(u - 1e-5, y=y)) / 2e-5
            np.testing.assert_allclose(law.density(u, y=y), slope, atol=1e-6)


@pytest.mark.parametrize("covariances", [1, 2])
def test_clusters_against_finite_systems(covariances: int) -> None:
    random = np.random.default_rng(3)
    mean, spectrum = random.normal(size=80), np.exp(0.7 * random.normal(size=80))
    turn = np.linalg.qr(random.normal(size=(80, 80)))[0]
    other = (turn * spectrum) @ turn.T
    shape = spectrum if covariances == 1 else (np.diag(spectrum), other)
    clusters = Clusters(1.2 * mean / np.linalg.norm(mean), shape)
    problem = Problem(
        alpha_l=1.0, alpha_u=(1.5, 3.0), rho=0.35, steps=2, clusters=clusters,
        batches=("a", "a+b"), keep_labeled=1.0,
    )  # fmt: skip
    recipe = Recipe(lambda_l=0.1, lambda_u=0.06, threshold=0.3, sharpness=1.3)
    ensemble = simulate(problem, recipe, seeds=24, probes=0, keep_logits=True)
    comparison = ensemble.compare(solve(problem, recipe, tolerance=1e-3))
    laws = {(gap.t, gap.selected) for gap in comparison.gaps if gap.what == "logits"}
    assert laws == {(0, True), (1, True), (1, False), (2, True), (2, False)}
    assert np.abs(comparison.scores).max() < 4, comparison.worst


def test_clusters_where_nothing_moves() -> None:
    """With the labelled rows kept at weight 1 and one ridge, the model of step 0 minimises the loss
    of every later step: its own soft labels pull it nowhere.
    """
    rng = np.random.default_rng(3)
    mean = rng.normal(size=14) * np.linspace(0.1, 0.4, 14)
    clusters = Clusters(mean, np.geomspace(3.0, 0.07, 14))
    words = {"alpha_l": 5.7, "alpha_u": 7.1, "rho": 0.3, "clusters": clusters}
    recipe = Recipe(lambda_l=0.05, lambda_u=0.05)
    alone = solve(Problem(**words, steps=0), recipe)
    run = solve(Problem(**words, steps=3, keep_labeled=1.0), recipe, tolerance=1e-3)
    np.testing.assert_allclose(run.q, alone.q[0], rtol=1e-3)
    np.testing.assert_allclose(run.m, alone.m[0], atol=1e-3 * np.sqrt(alone.q[0]))
    np.testing.assert_allclose(run.bias, alone.bias[0], atol=1e-3 * np.sqrt(alone.q[0]))


def test_replicates_that_are_too_small_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal, "MOST_POINTS", 2**10)
    monkeypatch.setattr(causal, "GRID_NUMBERS", 0)
    problem = Problem(**BASE, batches="reused")
    message = "8 replicates of 2048 points per group know this step to"
    with pytest.raises(ConvergenceError, match=message):
        solve(problem, Recipe(**RIDGES), tolerance=1e-6)
    part = solve(problem, Recipe(**RIDGES), tolerance=1e-6, on_failure="partial")
    assert part.failure is not None
    assert part.good_steps == part.failure.step
    with pytest.raises(InvalidInput, match="must be from 1e-07 to 1e-3"):
        solve(problem, Recipe(**RIDGES), tolerance=1e-9)


@pytest.mark.parametrize("fields", [{}, {"rho_u": 0.6, "delta_u": (0.9, 0.3, 0.9)}])
@pytest.mark.parametrize("words", [{}, {"threshold": 0.3, "fix_bias": True, "annealing": 0.2}])
def test_fresh_batches_on_points(fields: dict, words: dict) -> None:
    """Points in place of quadrature from step 0 on: the exact run."""
    problem, recipe = Problem(**BASE, **fields), Recipe(**RIDGES, **words)
    known = solve(problem, recipe)
    setting = setting_of(problem, recipe)
    assert (setting.begin, setting.known) == (0, 0)
    runs = [Replicate(setting, PointSource(2**12, (number,))).solve() for number in range(4)]
    rough = 3e-4 if not words else 1.5e-3  # a threshold jumps
    q = np.mean([[run.history.square(t) for t in known.t] for run in runs], axis=0)
    np.testing.assert_allclose(q, known.q, rtol=rough)
    bias = np.mean([run.bias[:, 0] for run in runs], axis=0)
    np.testing.assert_allclose(bias, known.bias, rtol=rough, atol=rough)


def test_a_run_nearby_is_a_good_start_late_too() -> None:
    """Sixteen steps: replicates differ in the coordinates of late steps, so their moves are taken
    instead.
    """
    problem = Problem(**{**BASE, "steps": 16}, batches="reused", keep_labeled=1.0)
    run = solve(problem, Recipe(**RIDGES), tolerance=1e-3)
    assert np.max(run.stats.evaluations[1:]) <= 10 * REPLICATES
