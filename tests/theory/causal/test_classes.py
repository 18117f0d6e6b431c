"""K classes in the causal engine: against a finite system written here, the exact engine of two
classes, symmetries, and published-style numbers of self-distillation.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from selftrain import Clusters, Problem, Protocol, Recipe, solve
from selftrain.protocol import Fit, PseudoLabels, SampleGroup, Use, class_basis, protocol_of
from selftrain.theory.causal.class_probabilities import class_probabilities
from selftrain.theory.causal.classes import ClassTrajectory
from selftrain.theory.causal.replicate import CausalRun, PointSource, Setting
from selftrain.theory.causal.response import Binary, Scores, engine_loss

GRAM = np.array([[1.5, 0.2, -0.3], [0.2, 1.2, 0.1], [-0.3, 0.1, 1.0]])
SHARES = (0.5, 0.3, 0.2)
THREE = {"rho": SHARES, "clusters": Clusters.from_gram(GRAM, 0.6)}


def fitted(
    X: np.ndarray, y: np.ndarray, k: np.ndarray, ridge: float, bias: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Class vectors (N, K) and bias of a multinomial fit to soft labels y, weights k."""
    features, classes = X.shape[1], y.shape[1]

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        w = z[: features * classes].reshape(features, classes)
        b = z[features * classes :] if bias is None else bias
        scores = X @ w + b
        top = scores.max(axis=1, keepdims=True)
        mass = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0]
        value = k @ (mass - (y * scores).sum(axis=1)) + 0.5 * ridge * (w**2).sum()
        f = k[:, None] * (softmax(scores, axis=1) - y)
        slope = np.concatenate([(X.T @ f + ridge * w).ravel(), f.sum(axis=0)])
        return value, slope if bias is None else slope[: features * classes]

    size = features * classes + (classes if bias is None else 0)
    options = {"maxiter": 4000, "ftol": 1e-15, "gtol": 1e-7}
    z = minimize(objective, np.zeros(size), jac=True, method="L-BFGS-B", options=options).x
    b = z[features * classes :] - z[features * classes :].mean() if bias is None else bias
    return z[: features * classes].reshape(features, classes), b


def finite(protocol: Protocol, means: np.ndarray, noise: np.ndarray, seed: int) -> np.ndarray:
    """Overlaps, norms and biases of the fits to samples with these means and variances."""
    random = np.random.default_rng(seed)
    classes, features = means.shape
    samples, fits = [], []
    for group in protocol.groups:
        count = round(group.alpha * features)
        true = random.choice(classes, count, p=group.proportions)
        X = means[true] + random.normal(size=(count, features)) * np.sqrt(noise)
        given = true
        if group.label_noise is not None:
            rows = np.array(group.label_noise)
            given = np.array([random.choice(classes, p=rows[k]) for k in true])
        samples.append((X, np.eye(classes)[given], given))
    found = []
    for fit in protocol.fits:
        parts = []
        for use in fit.uses:
            X, given, label = samples[use.group]
            if use.labels is None:
                parts.append((X, given, np.full(len(X), use.weight)))
                continue
            w, b = fits[use.labels.teacher]
            scores = X @ w + b
            made = softmax(min(use.labels.sharpness, 1e9) * scores, axis=1)
            order = np.sort(scores, axis=1)
            distance = np.sum((w[:, :, None] - w[:, None, :]) ** 2) / (classes * (classes - 1))
            edge = use.labels.threshold * math.sqrt(distance) * protocol.length
            chosen = order[:, -1] - order[:, -2] > edge
            if use.labels.agree:
                chosen &= scores.argmax(axis=1) == label
            k = use.weight * chosen
            whole = np.maximum(k + use.given, 1e-300)[:, None]
            parts.append((X, (k[:, None] * made + use.given * given) / whole, k + use.given))
        X, y, k = (np.concatenate(column) for column in zip(*parts, strict=True))
        bias = None if fit.bias_of is None else fits[fit.bias_of][1]
        w, b = fitted(X, y, k, fit.ridge * features, bias)
        fits.append((w, b))
        found.append([*(w.T @ means.T).ravel(), (w**2).sum(), *b])
    return np.array(found)


def scores_of(run: ClassTrajectory) -> np.ndarray:
    """What `finite` measures."""
    return np.array(
        [[*run.m[t].ravel(), run.q[t], *run.bias[t]] for t in range(run.good_steps)]
    )  # fmt: skip


FINITE = {
    "labels kept, batch reused, 15 % wrong": (
        {"alpha_l": 1.5, "alpha_u": 2.0, "steps": 2, "batches": "reused", "keep_labeled": 0.5,
         "label_noise": 0.15},
        {"lambda_l": 0.3, "lambda_u": 0.2},
    ),
    "relabelled beside a fresh batch, bias fixed, annealed": (
        {"alpha_l": 1.5, "alpha_u": 1.0, "steps": 2, "batches": "labeled+fresh",
         "label_noise": ((0.8, 0.2, 0.0), (0.0, 0.9, 0.1), (0.1, 0.1, 0.8))},
        {"lambda_l": 0.3, "lambda_u": 0.2, "fix_bias": True, "annealing": 0.5},
    ),
    "hard labels, selection, fresh": (
        {"alpha_l": 2.0, "alpha_u": 2.0, "steps": 2},
        {"lambda_l": 0.3, "lambda_u": 0.2, "sharpness": math.inf, "threshold": 0.3},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINITE)
def test_three_classes_against_finite_systems(name: str) -> None:
    fields, words = FINITE[name]
    problem, recipe = Problem(**fields, **THREE), Recipe(**words)
    run = solve(problem, recipe, tolerance=1e-3)
    protocol = protocol_of(problem, recipe)
    means = np.zeros((3, 500))
    means[:, :3] = THREE["clusters"].means
    found = np.array([finite(protocol, means, np.full(500, 0.6), seed) for seed in range(10)])
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    scores = (found.mean(axis=0) - scores_of(run)) / error
    assert np.abs(scores).max() < 4, scores
