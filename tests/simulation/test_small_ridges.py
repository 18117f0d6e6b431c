"""Small ridges on separable data: large weights, residuals that all but vanish, weights that are
kept and say how well they are known.
"""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from selftrain import Problem, Recipe, simulate, solve
from selftrain.mixture.clusters import Clusters
from selftrain.protocol import protocol_of
from selftrain.simulation.designs.sample_sources import GaussianSource
from selftrain.simulation.run_plan import plan_run

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=0)


def labelled_data(recipe: Recipe, features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix and the classes (-1, 1) that the dense engine draws at step 0."""
    drawn = GaussianSource(plan_run(protocol_of(PROBLEM, recipe), features), seed).draw(0)[0]
    matrix = np.column_stack([drawn.design.times(one) for one in np.eye(features)])
    return matrix, np.where(drawn.classes == 1, 1.0, -1.0)


def newton(matrix: np.ndarray, signs: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton steps with a direct solution in the space of the rows, which
    stays well conditioned however small the ridge is; the ridge falls in steps of a third decade.
    """
    rows, features = matrix.shape
    gram = matrix @ matrix.T
    weights, bias = np.zeros(features), 0.0
    for now in np.append(np.geomspace(1.0, ridge, int(-3 * np.log10(ridge))), ridge):
        for _ in range(50):
            margins = signs * (matrix @ weights + bias)
            slopes = -signs * expit(-margins)
            root = np.sqrt(expit(margins) * expit(-margins))
            factor = cho_factor(np.eye(rows) + root[:, None] * gram * root / now)
            # w = -X' a / now with a the dual variables: all products stay among the rows
            target = matrix @ weights + gram @ slopes / now
            inverse = root[:, None] * cho_solve(factor, np.diag(root))
            pull, ones = slopes.sum(), inverse.sum(axis=1)
            shift = -(pull - ones @ target) / ones.sum()
            duals = inverse @ (target - shift)
            step = -weights - matrix.T @ (slopes - duals) / now
            length = min(1.0, 3.0 / np.abs(matrix @ step + shift).max())
            weights, bias = weights + length * step, bias + length * shift
            if length * np.linalg.norm(step) < 1e-12 * np.linalg.norm(weights):
                break
    return weights, bias


@pytest.mark.parametrize(
    ("features", "ridge", "tolerance"),
    [
        (50, 1e-8, 1e-6),
        (50, 1e-8, 1e-9),
        (200, 1e-4, 1e-9),
        (200, 1e-8, 1e-8),
        (200, 1e-12, 1e-6),
        (200, 1e-12, 1e-9),
    ],
)
def test_the_weights_are_those_of_another_solver(
    features: int, ridge: float, tolerance: float
) -> None:
    """And the error that is told is no smaller than the true one, up to a factor of two."""
    recipe = Recipe(lambda_l=ridge)
    runs = simulate(
        PROBLEM, recipe, features, [3], "dense", tolerance=tolerance, probes=0, keep_weights=True
    )
    told = runs.fit_error[0, 0]
    assert told < 10 * tolerance
    matrix, signs = labelled_data(recipe, features, 3)
    weights, bias = newton(matrix, signs, ridge * features)
    found = runs.vectors[0].weights[0] / np.sqrt(features)
    size = np.linalg.norm(weights)
    assert np.linalg.norm(found - weights) < max(2 * told, 1e-12) * size
    assert abs(runs.bias[0, 0] - bias) < tolerance * (size + abs(bias))


@pytest.mark.parametrize("method", ["matrix-free", "revealed", "dense"])
def test_runs_agree_with_the_theory(method: str) -> None:
    """At a ridge of 1e-12 the residuals are near rounding, the weights are not."""
    recipe = Recipe(lambda_l=1e-12)
    runs = simulate(PROBLEM, recipe, 200, 12, method, tolerance=1e-8, probes=0)
    theory = solve(PROBLEM, recipe)
    assert runs.fit_error.max() < 1e-3
    np.testing.assert_allclose(runs.mean("q"), theory.q, rtol=0.1)
    np.testing.assert_allclose(runs.mean("error"), theory.error, atol=0.01)
    assert runs.compare(theory).consistent() is not False


@pytest.mark.parametrize("features", [20, 50, 100])
@pytest.mark.parametrize("ridge", [1e-2, 1e-4, 1e-8, 1e-10])
def test_a_tighter_tolerance_moves_no_number_by_ten_times_what_was_told(
    features: int, ridge: float
) -> None:
    recipe = Recipe(lambda_l=ridge)
    best = simulate(PROBLEM, recipe, features, 30, tolerance=1e-9, probes=0)
    assert best.fit_error.max() < 1e-5
    size = np.sqrt(best.q)
    for tolerance in (1e-8, 1e-6, 1e-4) if ridge < 1e-6 else (1e-8, 1e-6):
        runs = simulate(PROBLEM, recipe, features, 30, tolerance=tolerance, probes=0)
        off = np.maximum(np.abs(runs.q / best.q - 1), np.abs(runs.m - best.m) / size)
        off = np.maximum(off, np.abs(runs.bias - best.bias) / (size + np.abs(best.bias)))
        # told are estimates; and columns of single and of double precision differ by rounding
        assert (off <= 10 * (runs.fit_error + best.fit_error) + 1e-6).all()


def test_later_steps_and_reused_batches_keep_their_weights() -> None:
    problem = PROBLEM.replace(alpha_u=0.5, steps=2, batches="reused")
    recipe = Recipe(lambda_l=1e-12, lambda_u=1e-12, sharpness=np.inf)
    for method in ("dense", "revealed"):
        runs = simulate(problem, recipe, 100, 3, method, tolerance=1e-9, probes=0)
        assert (runs.q > 50).all()
        assert runs.fit_error.max() < 1e-6


def test_general_covariances_keep_their_weights() -> None:
    clusters = Clusters(np.full(60, 60**-0.5), np.linspace(0.3, 0.8, 60))
    problem = Problem(0.5, 2.0, 0.4, clusters=clusters, steps=1)
    recipe = Recipe(lambda_l=1e-12, lambda_u=0.05)
    runs = simulate(problem, recipe, seeds=4, tolerance=1e-9, probes=0)
    assert (runs.q[:, 0] > 50).all()
    assert runs.fit_error.max() < 1e-7
