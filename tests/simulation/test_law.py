"""Dense, revealed and matrix-free runs have the same law: means and covariances at small N."""

import numpy as np
import pytest

from selftrain import Ensemble, Problem, Recipe, simulate
from selftrain.simulation.designs.design import Stored
from selftrain.simulation.linear.fit import susceptibility

SEEDS = 2000
QUANTITIES = ("q", "m", "bias", "overlap", "train_loss")

SETTINGS = {
    "soft": (
        Problem(alpha_l=1.0, alpha_u=2.0, rho=0.4, delta=0.5625, steps=1),
        Recipe(lambda_l=0.1, lambda_u=0.05),
    ),
    "hard, selected, bias fixed": (
        Problem(alpha_l=1.0, alpha_u=2.0, rho=0.4, delta=0.8, steps=1),
        Recipe(lambda_l=0.1, lambda_u=0.1, threshold=0.4, sharpness=np.inf, fix_bias=True),
    ),
    "squared, shifted": (
        Problem(1.0, 2.0, 0.4, 0.5625, steps=1, loss="squared", rho_u=0.3, delta_u=0.9),
        Recipe(lambda_l=0.3, lambda_u=0.5, threshold=0.2),
    ),
}


def moments(ensemble: Ensemble) -> np.ndarray:
    """Every quantity of both steps and every product of two deviations, one row a seed."""
    columns = np.concatenate([ensemble.values(name) for name in QUANTITIES], axis=1)
    columns = columns[ensemble.collapsed_at < 0]
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    spread = columns - columns.mean(axis=0)
    first, second = np.triu_indices(columns.shape[1])
    return np.concatenate([columns, spread[:, first] * spread[:, second]], axis=1)


def z_scores(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
    return (a.mean(axis=0) - b.mean(axis=0)) / error


def test_three_engines_one_law() -> None:
    problem, recipe = SETTINGS["soft"]
    sizes = {"dense": range(10**6, 10**6 + SEEDS), "revealed": range(SEEDS, 2 * SEEDS)}
    free = moments(simulate(problem, recipe, 60, SEEDS, probes=0))
    for method, seeds in sizes.items():
        other = moments(simulate(problem, recipe, 60, seeds, method, probes=0))
        assert np.abs(z_scores(free, other)).max() < 4


@pytest.mark.parametrize("setting", list(SETTINGS)[1:])
def test_matrix_free_against_dense(setting: str) -> None:
    problem, recipe = SETTINGS[setting]
    dense = moments(simulate(problem, recipe, 60, range(10**6, 10**6 + 1000), "dense", probes=0))
    free = moments(simulate(problem, recipe, 60, SEEDS, probes=0))
    assert np.abs(z_scores(free, dense)).max() < 4


def test_probes_estimate_the_trace() -> None:
    """The mean over probes is the exact trace of the dense Hessian, in all engines."""
    problem, recipe = SETTINGS["hard, selected, bias fixed"]
    runs = [
        simulate(problem, recipe, 40, range(10**6, 10**6 + 300), "dense", probes=2),
        simulate(problem, recipe, 40, range(700, 1000), "revealed", probes=2),
        simulate(problem, recipe, 40, 1000, probes=2),
    ]
    for other in runs[1:]:
        assert np.abs(z_scores(runs[0].chi, other.chi)).max() < 4
    matrix, curvature = np.random.default_rng(0).standard_normal((50, 20)), np.linspace(0.1, 1, 50)
    exact = np.trace(np.linalg.inv(matrix.T @ (curvature[:, None] * matrix) + 0.3 * np.eye(20)))
    random = np.random.default_rng(1)
    forms = [susceptibility(Stored(matrix), curvature, 0.3, 1, random) for _ in range(400)]
    assert abs(np.mean(forms) - exact) < 4 * np.std(forms) / 20


@pytest.mark.parametrize("features", [3, 9])
def test_the_frame_may_fill_the_whole_space(features: int) -> None:
    problem, recipe = SETTINGS["hard, selected, bias fixed"]
    dense = simulate(problem, recipe, features, range(10**6, 10**6 + SEEDS), "dense", probes=0)
    free = simulate(problem, recipe, features, SEEDS, probes=0)
    collapsed = [(one.collapsed_at >= 0).mean() for one in (dense, free)]
    error = np.sqrt(sum(p * (1 - p) for p in collapsed) / SEEDS + 1e-9)
    assert abs(collapsed[0] - collapsed[1]) < 4 * error
    names = [name for name in ("q", "m", "bias") if features > 3 or name != "bias"]
    for name in names:
        a, b = (one.values(name)[one.collapsed_at < 0] for one in (dense, free))
        assert np.abs(z_scores(a, b)).max() < 4
