"""`simulate`: same numbers in any company, refusals, collapse, interrupts, variants."""

import warnings

import numpy as np
import pytest

from selftrain import Problem, Recipe, simulate, solve
from selftrain.errors import InvalidInput, StageError
from selftrain.protocol import protocol_of
from selftrain.runtime.progress import Progress
from selftrain.simulation.engines import matrix_free
from selftrain.simulation.run_plan import plan_run
from selftrain.simulation.seed_record import SeedOptions, SeedRecord
from selftrain.simulation.seed_run import run_seed

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=2)
RECIPE = Recipe()


@pytest.mark.parametrize("method", ["matrix-free", "revealed", "dense"])
def test_a_seed_gives_the_same_numbers_in_any_company(method: str) -> None:
    alone = simulate(PROBLEM, RECIPE, 200, [5], method)
    others = simulate(PROBLEM, RECIPE, 200, [3, 5, 0, 8], method, workers=3)
    for name in ("q", "m", "bias", "overlap", "chi", "test_error", "train_loss"):
        np.testing.assert_array_equal(alone.values(name)[0], others.values(name)[1])
    assert others.seeds.tolist() == [3, 5, 0, 8]


def test_room_for_columns_does_not_matter() -> None:
    """Also where a fit outgrows single precision, and whatever the probes have taken."""
    plan = plan_run(protocol_of(PROBLEM, Recipe(lambda_u=2e-3, sharpness=2.0)), 300)

    def run(probes: int, room: int) -> SeedRecord:
        record, options = SeedRecord(1, 2), SeedOptions(probes)
        run_seed(plan, matrix_free.FrameEngine(plan, options, 1, room), record, options)
        return record

    small, large, probed = run(0, 4), run(0, 100), run(3, 4)
    assert small.values["directions"][1] > matrix_free.SINGLE
    for name, values in small.values.items():
        np.testing.assert_array_equal(values, large.values[name])
        if name != "chi":
            np.testing.assert_array_equal(values, probed.values[name])


@pytest.mark.parametrize("ridge", [1e-3, 1e-5])
def test_hard_labels_and_a_tiny_ridge_converge(ridge: float) -> None:
    """Hard labels of a linear model are separable: weights grow as the ridge falls."""
    problem = PROBLEM.replace(rho=0.5, steps=1)
    recipe = Recipe(lambda_u=ridge, sharpness=np.inf)
    free = simulate(problem, recipe, 150, 30, probes=0)
    dense = simulate(problem, recipe, 150, range(100, 130), "dense", probes=0)
    z = (free.mean("q") - dense.mean("q")) / np.hypot(free.sem("q"), dense.sem("q"))
    assert np.abs(z).max() < 4


def test_measured_quantities() -> None:
    runs = simulate(PROBLEM, Recipe(threshold=0.5), 400, 4, keep_logits=True, keep_weights=True)
    assert runs.q.shape == (4, 3)
    assert np.isnan(runs.overlap[:, 0]).all()
    for seed, vectors in enumerate(runs.vectors):
        for t in range(3):
            w, before = vectors.weights[t], vectors.weights[t - 1] if t else None
            assert w @ w / 400 == pytest.approx(runs.q[seed, t], rel=1e-9)
            assert w.mean() == pytest.approx(runs.m[seed, t], rel=1e-9)
            if before is not None:
                assert w @ before / 400 == pytest.approx(runs.overlap[seed, t], rel=1e-9)
            share = vectors.selected[t].mean()
            assert share == pytest.approx(1.0 if t == 0 else runs.fraction_selected[seed, t])
            assert vectors.logits[t].size == vectors.classes[t].size == (200 if t == 0 else 800)


@pytest.mark.parametrize("method", ["matrix-free", "dense"])
def test_collapse_is_an_outcome_of_a_seed(method: str) -> None:
    """Hard labels with imbalance run into one class; the others go on."""
    problem = Problem(0.5, 2.0, 0.4, 0.5625, steps=7)
    recipe = Recipe(sharpness=np.inf)
    runs = simulate(problem, recipe, 60, 40, method, probes=0)
    ended = runs.collapsed_at >= 0
    assert ended.any()
    assert not ended.all()
    first = int(np.flatnonzero(ended)[0])
    step = runs.collapsed_at[first]
    assert np.isnan(runs.m[first, step:]).all()
    assert np.isfinite(runs.m[first, :step]).all()
    expected = 0.6 if runs.predicts_positive[first] else 0.4
    np.testing.assert_allclose(runs.error[first, step:], expected)
    assert runs.count("m")[-1] == (~ended).sum()
    assert runs.count("error")[-1] == 40
    assert "collapsed" in repr(runs)
    assert np.isfinite(runs.mean("m")[-1])


@pytest.mark.parametrize("method", ["matrix-free", "dense"])
def test_weights_that_fade_away_are_a_collapse_as_in_the_theory(method: str) -> None:
    """A strong ridge with sharpened labels: only the bias is left after a few steps."""
    problem, recipe = Problem(0.5, 2.0, 0.4, 0.5625, steps=6), Recipe(5.0, 5.0, sharpness=3.0)
    theory = solve(problem, recipe)
    runs = simulate(problem, recipe, 1600, 4, method, probes=0)
    assert theory.collapsed_at is not None
    assert (runs.collapsed_at >= 0).all()
    assert np.abs(runs.collapsed_at - theory.collapsed_at).max() <= 1
    np.testing.assert_allclose(runs.error[:, -1], theory.error[-1])


def test_a_fixed_bias_does_not_collapse() -> None:
    problem = Problem(0.5, 2.0, 0.3, 1.0, steps=12)
    recipe = Recipe(lambda_l=0.5, lambda_u=0.5, sharpness=np.inf, fix_bias=True)
    runs = simulate(problem, recipe, 60, 10, probes=0)
    assert np.isfinite(runs.m).all()
    np.testing.assert_array_equal(runs.bias, np.repeat(runs.bias[:, :1], 13, axis=1))


def test_no_minimum_is_an_error_with_its_step() -> None:
    problem = Problem(0.5, 2.0, 0.4, 0.1, steps=0)
    for method in ("dense", "matrix-free"):
        with pytest.raises(StageError, match=r"seed 0, step 0.*without ridge"):
            simulate(problem, Recipe(lambda_l=0.0), 60, 1, method, probes=0)


class Sharp:
    """A labeler of the user's own."""

    name = "steps"

    def target(self, logit, sharpness, loss):
        return np.round(4 * loss.link(logit)) / 4

    def jumps(self, sharpness):
        return ()


class LogCosh:
    """A loss of the user's own."""

    name, classes, kinks = "log-cosh", (-1.0, 1.0), ()

    def link(self, logit):
        return np.tanh(logit)

    def value(self, target, logit):
        return np.logaddexp(logit - target, target - logit)

    def slope(self, target, logit):
        return np.tanh(logit - target)

    def curvature(self, target, logit):
        return 1 - np.tanh(logit - target) ** 2

    def third(self, target, logit):
        return -2 * np.tanh(logit - target) * self.curvature(target, logit)


def test_custom_labeler_and_loss() -> None:
    recipe = Recipe(labeler=Sharp())
    free = simulate(PROBLEM, recipe, 60, 300, probes=0)
    dense = simulate(PROBLEM, recipe, 60, range(1000, 1200), "dense", probes=0)
    assert free.method == "matrix-free"
    z = (free.mean("q") - dense.mean("q")) / np.hypot(free.sem("q"), dense.sem("q"))
    assert np.abs(z).max() < 4
    own = simulate(PROBLEM.replace(loss=LogCosh()), RECIPE, 60, 5)
    assert own.method == "revealed"
    assert np.isfinite(own.q).all()


def test_reuse_and_keep_in_both_forms() -> None:
    recipe = Recipe(lambda_u=0.02)
    for variant in ({"keep_labeled": 0.7}, {"batches": "reused"}, {"batches": ("a+b", "b+c")}):
        problem = PROBLEM.replace(**variant)
        free = simulate(problem, recipe, 60, 80, probes=1)
        dense = simulate(problem, recipe, 60, range(1000, 1080), "dense", probes=1)
        assert free.method == "revealed"
        for name in ("q", "m", "bias", "chi"):
            error = np.hypot(free.sem(name), dense.sem(name))
            assert (np.abs(free.mean(name) - dense.mean(name)) < 4 * error).all()


def test_the_theory_of_fresh_batches_is_not_taken_for_that_of_a_reused_one() -> None:
    problem = PROBLEM.replace(steps=6)
    runs = simulate(problem.replace(batches="reused"), RECIPE, 400, 8, probes=0)
    with pytest.raises(InvalidInput, match="the same problem and recipe"):
        runs.compare(solve(problem, RECIPE))


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_kept_labels_with_one_ridge_change_nothing_and_warn(threshold: float) -> None:
    kept = PROBLEM.replace(keep_labeled=1.0)
    with pytest.warns(UserWarning, match="changes nothing"):
        runs = simulate(kept, Recipe(threshold=threshold), 100, 2, probes=0)
    np.testing.assert_allclose(runs.q, runs.q[:, :1].repeat(3, axis=1), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(kept, Recipe(sharpness=2.0), 60, 1, probes=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 1}, "features"),
        ({"features": 2.5}, "features"),
        ({"features": 2}, "3 features or more"),
        ({"features": np.inf}, "features must be a whole number .* got inf"),
        ({"features": 10**20}, "features must be a whole number .* got 1000"),
        ({"seeds": [2**63]}, "seeds"),
        ({"seeds": [True]}, "seeds"),
        ({"memory": 0}, "memory must be a whole number of bytes, 1 or more, got 0"),
        ({"memory": -1}, "memory must be a whole number of bytes, 1 or more, got -1"),
        ({"memory": "1GB"}, "memory must be a whole number of bytes, 1 or more, got '1GB'"),
        ({"keep_weights": 1}, "keep_weights must be True or False, got 1"),
        ({"progress": "q"}, "progress must be .*, got 'q'"),
        ({"tolerance": 1e-16}, "tolerance must be from 1e-9 to 0.1, got 1e-16"),
        ({"on_failure": "ignore"}, "on_failure must be .*'ignore'"),
        ({"method": None}, "unknown method"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 2, 1]}, "seed 1 is given twice"),
        ({"seeds": []}, "seeds"),
        ({"seeds": "many"}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"method": "matrixfree"}, "did you mean 'matrix-free'"),
        ({"probes": -1}, "probes"),
        ({"workers": -2}, "from 0 .* to 1024, or -1"),
        ({"workers": 1.5}, "workers"),
        ({"seeds": 10**12}, "1,000,000 seeds; run more of them in several calls"),
        ({"seeds": range(10**30)}, "1,000,000 seeds; run more of them in several calls"),
        ({"seeds": np.array(3)}, "seeds"),
        ({"seeds": 10**6, "memory": 10**8}, "seeds would fit"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"features": 10**6, "method": "dense"}, "GB of memory"),
        ({"features": 10**6, "method": "dense"}, "matrix-free"),
        ({"features": 10**6, "memory": 10**6}, "would fit"),
    ],
)
def test_refusals(options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        simulate(PROBLEM, RECIPE, **options)


def test_no_workers_is_this_process_alone() -> None:
    here = simulate(PROBLEM, RECIPE, 60, 2, probes=0, workers=0)
    np.testing.assert_array_equal(here.q, simulate(PROBLEM, RECIPE, 60, 2, probes=0).q)


def test_the_smallest_size_is_what_the_refusal_says() -> None:
    assert simulate(PROBLEM.replace(steps=0), RECIPE, 3, 1, probes=0).alpha[0] == 2 / 3
    odd = PROBLEM.replace(alpha_l=0.3, steps=0)
    with pytest.raises(InvalidInput, match="5 features or more"):
        simulate(odd, RECIPE, 4, 1)
    assert simulate(odd, RECIPE, 5, 1, probes=0).alpha[0] == 2 / 5


def test_arguments_in_the_wrong_order() -> None:
    with pytest.raises(InvalidInput, match=r"problem must be a selftrain.Problem or a Protocol"):
        simulate(RECIPE, PROBLEM)
    with pytest.raises(InvalidInput, match=r"recipe must be a selftrain.Recipe, got None"):
        simulate(PROBLEM, None)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_keeps_finished_seeds(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches the main thread while it waits for seeds; here after the second one."""
    finished = []

    def interrupt(bar: Progress, **_: object) -> None:
        finished.append(bar)
        if len(finished) == 2:
            raise KeyboardInterrupt

    whole = simulate(PROBLEM, RECIPE, 60, 40, probes=0)
    monkeypatch.setattr(Progress, "advance", interrupt)
    runs = simulate(PROBLEM, RECIPE, 60, 40, probes=0, workers=workers)
    assert 2 <= len(runs.seeds) < 40
    np.testing.assert_array_equal(runs.q, whole.q[runs.seeds])


def test_an_interrupt_before_the_first_seed_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("selftrain.simulation.simulate.run_seed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        simulate(PROBLEM, RECIPE, 60, 3, probes=0)


def test_no_bar_in_a_pipe_and_a_bar_when_asked(capfd: pytest.CaptureFixture[str]) -> None:
    simulate(PROBLEM, RECIPE, 60, 2, probes=0)
    assert capfd.readouterr() == ("", "")
    simulate(PROBLEM, RECIPE, 60, 2, probes=0, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "2/2" in err
