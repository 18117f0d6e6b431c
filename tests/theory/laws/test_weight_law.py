"""The law of the weights against order parameters, closed forms and its own samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from selftrain.errors import ConvergenceError, InvalidInput
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.solve import solve

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=3)
RECIPES = {
    "soft": Recipe(),
    "selection": Recipe(threshold=0.5),
    "very weak ridge": Recipe(lambda_u=1e-5),
    "hard": Recipe(sharpness=math.inf),
    "bias fixed": Recipe(lambda_u=0.01, sharpness=30.0, fix_bias=True),
}


@pytest.mark.parametrize("name", RECIPES)
def test_weights_have_the_order_parameters_as_moments(name: str) -> None:
    run = solve(PROBLEM, RECIPES[name])
    law = run.weights
    np.testing.assert_allclose(law.mean, run.m)
    np.testing.assert_allclose(np.diag(law.covariance), run.v, rtol=1e-14)
    neighbours = np.diag(law.covariance, 1) + law.mean[1:] * law.mean[:-1]
    np.testing.assert_allclose(neighbours, run.overlap[1:], rtol=1e-9)
    for t in range(run.good_steps):
        assert law.expect(lambda w: w**2, steps=t) == pytest.approx(run.q[t], rel=1e-10)


def test_weights_of_distant_steps_in_closed_form() -> None:
    """The characteristic function of two and of three steps, and Wick's theorem."""
    law = solve(PROBLEM, RECIPES["selection"]).weights
    mean, cov = law.mean, law.covariance
    for steps in ((0, 3), (3, 0), (1, 2, 3), (2, 2)):
        shift, spread = mean[list(steps)], cov[np.ix_(steps, steps)]
        expected = math.exp(-0.5 * spread.sum()) * math.cos(shift.sum())
        found = law.expect(lambda *w: np.cos(sum(w)), steps=steps)
        assert found == pytest.approx(expected, rel=1e-9)
    centred = law.expect(lambda a, b: (a - mean[0]) ** 2 * (b - mean[2]) ** 2, steps=(0, 2))
    assert centred == pytest.approx(cov[0, 0] * cov[2, 2] + 2 * cov[0, 2] ** 2, rel=1e-10)


def test_sampled_weights_follow_the_covariance() -> None:
    law = solve(PROBLEM, RECIPES["soft"]).weights
    paths = law.sample(200_000, seed=3)
    assert paths.shape == (200_000, 4)
    cov = law.covariance
    spread = np.sqrt((cov**2 + np.outer(np.diag(cov), np.diag(cov))) / len(paths))
    assert np.max(np.abs(np.cov(paths.T) - cov) / spread) < 4
    scale = np.sqrt(np.diag(cov) / len(paths))
    assert np.max(np.abs(paths.mean(axis=0) - law.mean) / scale) < 4


def test_density_and_cdf_of_weights_are_those_of_a_gaussian() -> None:
    run = solve(PROBLEM, RECIPES["soft"])
    x = np.linspace(-4, 4, 9)
    gaussian = norm(run.m[2], math.sqrt(run.v[2]))
    np.testing.assert_allclose(run.weights.density(x, 2), gaussian.pdf(x), rtol=1e-12)
    np.testing.assert_allclose(run.weights.cdf(x, 2), gaussian.cdf(x), rtol=1e-12)


def test_expectations_that_quadrature_cannot_give_say_so() -> None:
    law = solve(PROBLEM, RECIPES["soft"]).weights
    with pytest.raises(ConvergenceError, match="average it over sample"):
        law.expect(lambda w: np.where(w > 0.123, 1.0, 0.0), steps=1)
    with pytest.raises(InvalidInput, match="one to three steps"):
        law.expect(lambda *w: w[0], steps=(0, 1, 2, 3))


def test_steps_without_a_state_are_refused() -> None:
    """Hard labels with a free bias collapse on an imbalanced problem."""
    run = solve(PROBLEM.replace(steps=16), Recipe(sharpness=math.inf))
    assert run.collapsed_at is not None
    with pytest.raises(InvalidInput, match="collapsed into one class"):
        run.training_logits(-1)
    with pytest.raises(InvalidInput, match="collapsed into one class"):
        run.weights.density(np.zeros(1), run.collapsed_at)
    assert np.isnan(run.weights.sample(2, seed=0)[:, run.collapsed_at]).all()
    assert run.training_logits(run.collapsed_at - 1).cdf(60.0) == pytest.approx(1.0, abs=1e-9)
    for wrong in (17, -18, 0.5):
        with pytest.raises(InvalidInput, match="a step from 0 to 16"):
            run.training_logits(wrong)  # type: ignore[arg-type]
