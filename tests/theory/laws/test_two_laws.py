"""Training and test logits have one name each: the same numbers for the same problem, whatever
engine solves it, and those of finite systems.
"""

from __future__ import annotations

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, Trajectory, simulate, solve
from selftrain.arrays import Array
from selftrain.errors import InvalidInput

DELTA = 0.5625
WORDS = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "steps": 4}
RECIPES = {
    "soft": Recipe(0.05, 0.05),
    "selection, annealed, bias fixed": Recipe(
        0.05, 0.02, threshold=0.4, annealing=0.2, fix_bias=True
    ),
    "hard labels": Recipe(0.05, 0.2, sharpness=np.inf, threshold=0.2),
    "small ridge": Recipe(0.05, 1e-5),
}
U = np.linspace(-2.0, 2.0, 9)


@pytest.mark.parametrize(
    ("name", "loss"), [*((name, "logistic") for name in RECIPES), ("soft", "squared")]
)
def test_a_sphere_and_its_one_mode(name: str, loss: str) -> None:
    sphere = solve(Problem(**WORDS, delta=DELTA, loss=loss), RECIPES[name])
    one_mode = solve(Problem(**WORDS, clusters=Clusters([1.0], [DELTA]), loss=loss), RECIPES[name])
    for t in (0, 1, 4):
        ours, theirs = one_mode.training_logits(t), sphere.training_logits(t)
        fresh, known = one_mode.test_logits(t), sphere.test_logits(t)
        assert ours.selected_probability == pytest.approx(theirs.selected_probability, abs=1e-10)
        for y in (None, 0, 1):
            np.testing.assert_allclose(ours.cdf(U, y=y), theirs.cdf(U, y=y), atol=1e-10)
            np.testing.assert_allclose(fresh.cdf(U, y=y), known.cdf(U, y=y), atol=1e-10)


def test_the_two_laws_are_two_numbers() -> None:
    """The error within the positive class is that of test logits; a fit has fewer errors on the
    samples that it was fitted to.
    """
    for space in ({"delta": DELTA}, {"clusters": Clusters([1.0], [DELTA])}):
        run = solve(Problem(**WORDS, **space), RECIPES["soft"])
        assert run.training_logits(4).cdf(0.0, y=1) == pytest.approx(0.4492, abs=5e-5)
        assert run.test_logits(4).cdf(0.0, y=1) == pytest.approx(0.4726, abs=5e-5)
        assert not hasattr(run, "logits")


def test_test_logits_are_those_of_the_test_mixture() -> None:
    """Under domain shift the test mixture is not that of the batches: the error tells which."""
    problem = Problem(**WORDS, delta=DELTA, rho_u=0.6, delta_u=0.3, test=(0.2, 1.1))
    run = solve(problem, RECIPES["soft"])
    law = run.test_logits(4)
    wrong = 0.2 * law.cdf(0.0, y=1) + 0.8 * (1.0 - law.cdf(0.0, y=0))
    assert wrong == pytest.approx(run.error[4], rel=1e-12)


FEATURES = 300
_RANDOM = np.random.default_rng(3)
_MEAN = _RANDOM.normal(size=FEATURES)
_MEAN *= 1.2 / np.linalg.norm(_MEAN)
_SPECTRA = np.exp(0.7 * _RANDOM.normal(size=(2, FEATURES)))
SPACES: dict[str, dict] = {
    "sphere": {"delta": 0.6},
    "one covariance": {"clusters": Clusters(_MEAN, _SPECTRA[0])},
    "two covariances": {"clusters": Clusters(_MEAN, (_SPECTRA[0], _SPECTRA[1]))},
}
REUSE: dict[str, dict] = {
    "fresh": {},
    "reused": {"batches": "reused", "keep_labeled": 1.0},
}


@pytest.mark.parametrize("reuse", REUSE)
@pytest.mark.parametrize("space", SPACES)
def test_finite_systems(space: str, reuse: str) -> None:
    """The share of training logits below a value, in each class, and the error counted on a fresh
    sample.
    """
    words = {"alpha_l": 1.0, "alpha_u": 2.0, "rho": 0.35, "steps": 2}
    problem = Problem(**words, **SPACES[space], **REUSE[reuse])
    recipe = Recipe(lambda_l=0.1, lambda_u=0.06, threshold=0.3, sharpness=1.3)
    run = solve(problem, recipe, **({} if reuse == "fresh" else {"tolerance": 1e-3}))
    ensemble = simulate(problem, recipe, FEATURES, seeds=16, probes=0, keep_logits=True)
    for t in (0, 1, 2):
        law, fresh = run.training_logits(t), run.test_logits(t)
        for y in (0, 1):
            shares = [
                [(seed.logits[t][seed.classes[t] == (y == 1)] <= u).mean() for u in U]
                for seed in ensemble.vectors
            ]
            _agrees(np.array(shares), law.cdf(U, y=y))
        wrong = 0.35 * fresh.cdf(0.0, y=1) + 0.65 * (1.0 - fresh.cdf(0.0, y=0))
        _agrees(ensemble.test_error[:, t], wrong)


def _agrees(measured: Array, law: Array) -> None:
    """Means over seeds within five standard errors of the law, and what a finite size adds."""
    error = measured.std(axis=0, ddof=1) / np.sqrt(len(measured))
    assert (np.abs(measured.mean(axis=0) - law) < 5 * error + 2 / FEATURES).all()


def test_samples_that_were_not_reused_are_rejected() -> None:
    runs: list[Trajectory] = [
        solve(Problem(**WORDS, **space), RECIPES["soft"])
        for space in ({"delta": DELTA}, {"clusters": Clusters([1.0], [DELTA])})
    ]
    for run in runs:
        with pytest.raises(InvalidInput, match=r"samples must be None.*got 'labeled'"):
            run.training_logits(1, samples="labeled")
