"""Laws of runs with memory: what is drawn from them has the moments and the distribution stated."""

from __future__ import annotations

import numpy as np
import pytest

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.errors import InvalidInput

SIZE = 40_000


@pytest.fixture(scope="module", params=["squared", "logistic"])
def run(request: pytest.FixtureRequest) -> Trajectory:
    problem = Problem(0.8, 2.0, 0.4, 0.75**2, steps=2, loss=request.param, batches="reused")
    return solve(problem, Recipe(lambda_l=0.2, lambda_u=0.1, threshold=0.3), tolerance=1e-3)


def test_weights_drawn_have_the_moments_of_the_run(run: Trajectory) -> None:
    law = run.weights
    np.testing.assert_allclose(np.diag(law.covariance) + run.m**2, run.q, rtol=1e-9)
    paths = law.sample(SIZE, seed=1)
    assert paths.shape == (SIZE, 3)
    error = np.sqrt(np.diag(law.covariance) / SIZE)
    assert np.max(np.abs(paths.mean(axis=0) - run.m) / error) < 5
    np.testing.assert_allclose(np.cov(paths.T), law.covariance, atol=5 * run.q.max() / SIZE**0.5)


def test_expectations_over_two_steps_are_those_of_the_covariance(run: Trajectory) -> None:
    law = run.weights
    product = law.expect(lambda first, last: first * last, (0, 2))
    assert product == pytest.approx(law.covariance[0, 2] + run.m[0] * run.m[2], rel=1e-9)


def test_logits_drawn_follow_their_distribution(run: Trajectory) -> None:
    law = run.training_logits(2)
    drawn = law.sample(SIZE, seed=2)
    for y in (0, 1):
        logits = np.sort(drawn.u[drawn.y == y])
        at = np.quantile(logits, np.linspace(0.01, 0.99, 50))
        counted = np.searchsorted(logits, at, side="right") / len(logits)
        bound = np.sqrt(np.log(2 / 1e-6) / (2 * len(logits)))  # Dvoretzky, Kiefer and Wolfowitz
        assert np.abs(counted - law.cdf(at, y=y)).max() < bound
    share = drawn.selected.mean()
    spread = np.sqrt(law.selected_probability * (1 - law.selected_probability) / SIZE)
    assert abs(share - law.selected_probability) <= 5 * spread
    assert "samples=None" in repr(law)


def test_samples_that_a_step_does_not_have_are_rejected(run: Trajectory) -> None:
    with pytest.raises(InvalidInput, match=r"samples must be None.*got 'labeled'"):
        run.training_logits(2, samples="labeled")
