"""Both laws against self-training of a few hundred features, fitted by Newton's method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit

from selftrain.arrays import Array
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.solve import solve
from selftrain.theory.trajectory import Trajectory

FEATURES, SEEDS, STEPS = 300, 24, 2
PROBLEM = Problem(alpha_l=0.6, alpha_u=2.0, rho=0.4, delta=0.8, steps=STEPS)
RECIPE = Recipe(lambda_l=0.1, lambda_u=0.05, threshold=0.4)
CUTS = np.array([-1.5, -0.8, -0.3, 0.0, 0.3, 0.8, 1.5])


class Seed(NamedTuple):
    """One simulated run: weights of every step, and shares of logits below each cut."""

    weights: Array
    selected: Array
    rejected: Array
    previous_sign: Array


def fit(x: Array, target: Array, ridge: float) -> tuple[Array, float]:
    """Ridge logistic regression with a free bias; x is already divided by the root of N."""
    design = np.column_stack([x, np.ones(len(x))])
    penalty = np.append(np.full(x.shape[1], ridge), 0.0)
    theta = np.zeros(design.shape[1])
    for _ in range(50):
        p = expit(design @ theta)
        gradient = design.T @ (p - target) + penalty * theta
        hessian = (design.T * (p * (1 - p))) @ design + np.diag(penalty + 1e-12)
        step = np.linalg.solve(hessian, gradient)
        theta -= step
        if np.max(np.abs(step)) < 1e-9:
            return theta[:-1], float(theta[-1])
    raise AssertionError("Newton's method did not converge")


def batch(rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    y = (rng.random(size) < PROBLEM.rho).astype(float)
    noise = np.sqrt(PROBLEM.delta) * rng.standard_normal((size, FEATURES))
    return ((2 * y - 1)[:, None] / np.sqrt(FEATURES) + noise) / np.sqrt(FEATURES), y


def simulate(seed: int) -> Seed:
    rng = np.random.default_rng(seed)
    x, y = batch(rng, round(PROBLEM.alpha_l * FEATURES))
    w, bias = fit(x, y, RECIPE.lambda_l)
    weights = [w]
    for _ in range(STEPS):
        x, y = batch(rng, round(2.0 * FEATURES))
        previous = x @ w + bias
        kept = np.abs(previous) > 0.4 * np.sqrt(w @ w / FEATURES)
        w, bias = fit(x[kept], expit(previous[kept]), 0.05)
        weights.append(w)
    u = x @ w + bias
    below = u[:, None] <= CUTS
    right = (previous > 0)[:, None] & below & (y == 1)[:, None]
    return Seed(
        np.array(weights), below[kept].mean(axis=0), below[~kept].mean(axis=0), right.mean(axis=0)
    )


@pytest.fixture(scope="module")
def runs() -> list[Seed]:
    return [simulate(seed) for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def theory() -> Trajectory:
    return solve(PROBLEM, RECIPE)


def agrees(values: Array, expected: Array, finite_size: float) -> None:
    """Means over seeds within 4 standard errors, plus a systematic difference of order 1/N."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    difference = np.abs(values.mean(axis=0) - expected)
    assert (difference < 4 * error + finite_size).all(), (difference, error)


def test_weights_of_all_pairs_of_steps(runs: list[Seed], theory: Trajectory) -> None:
    law = theory.weights
    means = np.array([run.weights.mean(axis=1) for run in runs])
    agrees(means, law.mean, 2 / FEATURES)
    products = np.array([run.weights @ run.weights.T / FEATURES for run in runs])
    expected = law.covariance + np.outer(law.mean, law.mean)
    agrees(products, expected, 5 / FEATURES)


def test_a_function_of_the_weights_of_two_distant_steps(
    runs: list[Seed], theory: Trajectory
) -> None:
    found = np.array([np.mean(np.cos(run.weights[0]) * run.weights[2] ** 2) for run in runs])
    expected = theory.weights.expect(lambda a, b: np.cos(a) * b**2, steps=(0, 2))
    agrees(found, np.asarray(expected), 3 / FEATURES)


def test_logits_of_selected_and_of_rejected_points(runs: list[Seed], theory: Trajectory) -> None:
    law = theory.training_logits(STEPS)
    agrees(np.array([run.selected for run in runs]), law.cdf(CUTS, selected=True), 2 / FEATURES)
    agrees(np.array([run.rejected for run in runs]), law.cdf(CUTS, selected=False), 2 / FEATURES)
    apart = np.abs(law.cdf(CUTS, selected=True) - law.cdf(CUTS, selected=False))
    assert apart.max() > 0.2


def test_joint_law_of_class_previous_and_trained_logit(
    runs: list[Seed], theory: Trajectory
) -> None:
    points = theory.training_logits(STEPS).sample(400_000, seed=0)
    both = (points.y == 1) & (points.previous > 0)
    expected = np.array([np.mean(both & (points.u <= cut)) for cut in CUTS])
    agrees(np.array([run.previous_sign for run in runs]), expected, 2 / FEATURES)
