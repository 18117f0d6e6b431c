"""Newton-CG against scikit-learn, closed forms and its own optimality conditions."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from selftrain.losses import Logistic, Squared
from selftrain.simulation.designs.design import Stored
from selftrain.simulation.linear.fit import FitError, fit

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 60)) + 0.2
DESIGN = Stored(X)
Y = (X[:, 0] + RNG.standard_normal(400) > 1.4).astype(float)


@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("with_bias", [True, False])
def test_against_scikit_learn(ridge: float, with_bias: bool) -> None:
    found = fit(DESIGN, Y, Logistic(), ridge, fit_bias=with_bias)
    other = LogisticRegression(
        C=1 / ridge, fit_intercept=with_bias, solver="newton-cholesky", tol=1e-12, max_iter=200
    ).fit(X, Y)
    np.testing.assert_allclose(found.weights, other.coef_[0], rtol=1e-6, atol=1e-7)
    if with_bias:
        assert found.bias == pytest.approx(other.intercept_[0], rel=1e-6)


def test_squared_loss_is_ridge_regression() -> None:
    found = fit(DESIGN, 2 * Y - 1, Squared(), 3.0)
    centered = X - X.mean(axis=0)
    weights = np.linalg.solve(centered.T @ centered + 3.0 * np.eye(60), centered.T @ (2 * Y - 1))
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)
    assert found.bias == pytest.approx(float(np.mean(2 * Y - 1 - X @ weights)), abs=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.02])
def test_soft_targets_gradient_vanishes_also_under_imbalance(share: float) -> None:
    targets = np.clip(share + 0.01 * RNG.standard_normal(400), 0.001, 0.999)
    found = fit(DESIGN, targets, Logistic(), 0.5)
    residual = Logistic().link(X @ found.weights + found.bias) - targets
    assert abs(residual.sum()) < 1e-6
    assert np.abs(X.T @ residual + 0.5 * found.weights).max() < 1e-6


def test_a_mask_is_the_same_as_leaving_rows_out() -> None:
    chosen = RNG.random(400) < 0.6
    masked = fit(DESIGN, Y, Logistic(), 1.0, rows=chosen)
    fewer = fit(Stored(X[chosen]), Y[chosen], Logistic(), 1.0)
    np.testing.assert_allclose(masked.weights, fewer.weights, atol=1e-8)
    assert masked.bias == pytest.approx(fewer.bias, abs=1e-8)


def test_fixed_bias_stays() -> None:
    found = fit(DESIGN, Y, Logistic(), 1.0, fit_bias=False, bias=0.7)
    assert found.bias == 0.7
    residual = Logistic().link(X @ found.weights + 0.7) - Y
    assert np.abs(X.T @ residual + found.weights).max() < 1e-6


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8])
def test_the_error_is_within_the_tolerance(tolerance: float) -> None:
    exact = fit(DESIGN, Y, Logistic(), 0.01, tolerance=1e-12)
    found = fit(DESIGN, Y, Logistic(), 0.01, tolerance=tolerance)
    gap = np.linalg.norm(found.weights - exact.weights) / np.linalg.norm(exact.weights)
    assert gap <= tolerance


def test_a_start_far_away_is_no_trouble() -> None:
    start = 50 * RNG.standard_normal(60)
    found = fit(DESIGN, Y, Logistic(), 1.0, weights=start, bias=-30.0)
    np.testing.assert_allclose(found.weights, fit(DESIGN, Y, Logistic(), 1.0).weights, atol=1e-7)


class Pinball:
    """Log-cosh distance: a loss of the user's own."""

    name, classes, kinks = "log-cosh", (-1.0, 1.0), ()

    def link(self, logit):
        return logit

    def value(self, target, logit):
        return np.logaddexp(logit - target, target - logit)

    def slope(self, target, logit):
        return np.tanh(logit - target)

    def curvature(self, target, logit):
        return 1 - np.tanh(logit - target) ** 2

    def third(self, target, logit):
        return -2 * np.tanh(logit - target) * self.curvature(target, logit)


def test_any_loss() -> None:
    found = fit(DESIGN, 2 * Y - 1, Pinball(), 0.7)
    residual = np.tanh(X @ found.weights + found.bias - (2 * Y - 1))
    assert np.abs(X.T @ residual + 0.7 * found.weights).max() < 1e-6
    assert abs(residual.sum()) < 1e-6


def test_separable_data_without_ridge_are_refused() -> None:
    with pytest.raises(FitError, match="ridge"):
        fit(Stored(np.array([[1.0], [-1.0]])), np.array([1.0, 0.0]), Logistic(), 0.0, limit=40)
