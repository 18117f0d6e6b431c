"""Clusters with a shape: the sphere as a special case, another way to the same numbers, and what
may not matter.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain import Clusters, Problem, Recipe, simulate, solve
from selftrain.errors import InvalidInput
from selftrain.theory.laws.logits import fields_of

_spec = importlib.util.spec_from_file_location("picard", Path(__file__).parent / "picard.py")
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
picard = _module.picard

RECIPES: list[dict[str, Any]] = [
    {},
    {"threshold": 0.5},
    {"annealing": 0.2, "fix_bias": True},
    {"sharpness": math.inf},
    {"lambda_u": 1e-3},
    {"lambda_l": 5.0, "lambda_u": 10.0},
    {"sharpness": 6.0, "threshold": 0.3},
    {"lambda_u": tuple(np.geomspace(0.5, 1e-3, 16)), "threshold": tuple(np.linspace(0, 1, 16))},
]
NAMES = ("m", "q", "v", "bias", "error", "cosine", "overlap", "chi", "q_hat", "m_hat", "r_hat")
LABELS = ("fraction_selected", "pseudo_label_accuracy", "selected_label_accuracy")


def log_normal(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A mean, two spectra, and a rotation's worth of randomness."""
    draw = np.random.default_rng(seed)
    mean = 1.5 * draw.normal(size=n) / math.sqrt(n)
    return mean, np.exp(draw.normal(size=n)), np.exp(draw.normal(size=n))


def rotation(n: int, seed: int = 2) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


def same(one: Any, two: Any, names: tuple[str, ...], rtol: float = 1e-10) -> None:
    for name in names:
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol, 1e-13, err_msg=name
        )


@pytest.mark.parametrize("choice", RECIPES)
def test_the_sphere_is_the_special_case(choice: dict[str, Any]) -> None:
    recipe = Recipe(**{"lambda_l": 0.05, "lambda_u": 0.05, **choice})
    common = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "steps": 16}
    sphere = solve(Problem(**common, delta=0.75**2), recipe)
    mean = np.full(9, 1 / 3)
    shaped = solve(Problem(**common, clusters=Clusters(mean, 0.75**2)), recipe)
    same(shaped, sphere, NAMES + LABELS)
    assert shaped.collapsed_at == sphere.collapsed_at


def test_the_sphere_as_a_pair_of_matrices_is_the_sphere_too() -> None:
    recipe = Recipe(lambda_l=0.05, lambda_u=0.02, threshold=0.3, annealing=0.1)
    common = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "steps": 4}
    sphere = solve(Problem(**common, delta=0.5), recipe)
    matrix = 0.5 * np.eye(6)
    pair = Clusters(np.eye(6)[2], (matrix, matrix + 0.0))
    same(solve(Problem(**common, clusters=pair), recipe), sphere, NAMES + LABELS)


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"threshold": 0.4},
        {"sharpness": math.inf, "threshold": 0.2},
        {"sharpness": 1.5, "fix_bias": True},
    ],
)
@pytest.mark.parametrize("pair", [False, True])
def test_substitution_finds_the_same_numbers(choice: dict[str, Any], pair: bool) -> None:
    mean, first, second = log_normal(7)
    turn = rotation(7)
    matrices = [(turn * first) @ turn.T, np.diag(second) if pair else (turn * first) @ turn.T]
    expected = picard(
        mean, matrices, [(1.2, 0.35), (3.0, 0.4), (2.5, 0.4)], [0.1, 0.2, 0.15], **choice
    )
    clusters = Clusters(mean, tuple(matrices) if pair else matrices[0])
    problem = Problem(
        alpha_l=1.2, alpha_u=(3.0, 2.5), rho=0.35, rho_u=0.4, clusters=clusters, steps=2
    )
    run = solve(problem, Recipe(lambda_l=0.1, lambda_u=(0.2, 0.15), **choice))
    np.testing.assert_allclose(run.m, [step["m"] for step in expected], rtol=2e-9)
    np.testing.assert_allclose(run.bias, [step["bias"] for step in expected], rtol=2e-9, atol=1e-10)
    np.testing.assert_allclose(
        run.logit_variances, [step["squares"] for step in expected], rtol=2e-9
    )


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(1e-3, 1e3),
    threshold=st.sampled_from([0.0, 0.3]),
    pair=st.booleans(),
)
def test_rotations_and_scales_of_the_rows_change_nothing(
    seed: int, scale: float, threshold: float, pair: bool
) -> None:
    mean, first, second = log_normal(6, seed)
    turn = rotation(6, seed)
    recipe = Recipe(lambda_l=0.1, lambda_u=0.05, threshold=threshold)
    common = {"alpha_l": 1.0, "alpha_u": 3.0, "rho": 0.4, "steps": 3}
    plain = solve(
        Problem(**common, clusters=Clusters(mean, (first, second) if pair else first)), recipe
    )
    turned = [scale**2 * (turn * s) @ turn.T for s in (first, second)]
    clusters = Clusters(scale * turn @ mean, tuple(turned) if pair else turned[0])
    recipe = recipe.replace(lambda_l=0.1 * scale**2, lambda_u=0.05 * scale**2)
    other = solve(Problem(**common, clusters=clusters), recipe)
    same(other, plain, ("m", "bias", "error", "cosine", "logit_variances", "auc"), 1e-9)
    strengths = (fields_of(run, 3).strengths for run in (other, plain))
    np.testing.assert_allclose(*strengths, rtol=1e-9)
    np.testing.assert_allclose(other.q * scale**2, plain.q, rtol=1e-9)


@pytest.mark.parametrize(
    "spectrum",
    [
        [1.0, 0.0, 2.0, 0.5, 0.0],
        [1e6, 1e-12, 1.0, 1e-3, 1e3],
        [1e4, 1.0, 1.0, 1.0, 1.0],
    ],
)
def test_hard_spectra_are_solved(spectrum: list[float]) -> None:
    mean = np.array([0.5, 0.3, 0.5, 0.0, 0.0])
    problem = Problem(alpha_l=2.0, alpha_u=4.0, rho=0.4, clusters=Clusters(mean, spectrum), steps=3)
    run = solve(problem, Recipe(lambda_l=0.1, lambda_u=0.1))
    turn = rotation(5)
    matrix = (turn * spectrum) @ turn.T
    other = solve(problem.replace(clusters=Clusters(turn @ mean, matrix)), run.recipe)
    # a matrix in floating point knows its small eigenvalues to 1e-16 of the largest only
    np.testing.assert_allclose(other.error, run.error, rtol=1e-8 if spectrum[0] < 1e6 else 1e-4)
    expected = picard(
        mean, [np.diag(spectrum)] * 2, [(2.0, 0.4), (4.0, 0.4)], [0.1, 0.1], sweeps=4000
    )
    np.testing.assert_allclose(run.m[:2], [step["m"] for step in expected], rtol=1e-8)


def test_without_ridge_a_direction_without_noise_is_refused() -> None:
    clusters = Clusters([1.0, 0.2], [1.0, 0.0])
    problem = Problem(alpha_l=2.0, alpha_u=4.0, rho=0.4, clusters=clusters, steps=1)
    with pytest.raises(InvalidInput, match="noise has no variance"):
        solve(problem, Recipe(lambda_l=0.0))


def test_batches_with_their_own_shape() -> None:
    mean, first, second = log_normal(6)
    turn = rotation(6)
    recipe = Recipe(lambda_l=0.1, lambda_u=0.05)
    common = {"alpha_l": 1.0, "alpha_u": 3.0, "rho": 0.4, "steps": 2}
    shapes = [Clusters(mean, first), Clusters(0.5 * mean + 0.1, second)]
    plain = solve(Problem(**common, clusters=shapes[0], clusters_u=shapes), recipe)
    turned = [
        Clusters(turn @ s.mean, (turn * c) @ turn.T)
        for s, c in zip(shapes, (first, second), strict=True)
    ]
    other = solve(Problem(**common, clusters=turned[0], clusters_u=turned), recipe)
    same(other, plain, ("m", "q", "bias", "error", "cosine", "overlap"))
    assert (
        abs(plain.error[-1] - solve(Problem(**common, clusters=shapes[0]), recipe).error[-1]) > 1e-3
    )


def test_thresholds_are_in_units_of_the_labelled_means() -> None:
    """Batches whose class means are twice as far apart: theory and simulation compare logits with
    the same threshold, and in the simulation it is not twice as large.
    """
    draw = np.random.default_rng(4)
    mean, one, other = draw.normal(size=(3, 400))
    mean /= np.linalg.norm(mean)
    labelled, batch = Clusters(mean, np.exp(0.5 * one)), Clusters(2.0 * mean, np.exp(0.5 * other))
    problem = Problem(0.8, 3.0, 0.4, clusters=labelled, clusters_u=batch, steps=2)
    recipe = Recipe(0.1, 0.1, threshold=0.5)
    seen = simulate(problem, recipe, seeds=16, probes=0)
    z = seen.compare(solve(problem, recipe)).z
    for name in ("m", "q", "bias", "error", "overlap", "fraction_selected", "train_loss"):
        assert np.nanmax(np.abs(z[name])) < 4.0, (name, z[name])
    doubled = solve(problem, recipe.replace(threshold=1.0)).fraction_selected[1:]
    selected = seen.values("fraction_selected")[:, 1:]
    assert (np.abs(selected.mean(axis=0) - doubled) > 10 * selected.std(axis=0) / 4).all()


def test_a_loss_written_by_a_user(plain_logistic: Any, plain_squared: Any) -> None:
    mean, first, second = log_normal(6)
    recipe = Recipe(lambda_l=0.1, lambda_u=0.05, threshold=0.2, annealing=0.1)
    common = {"alpha_l": 1.0, "alpha_u": 3.0, "rho": 0.4, "steps": 2}
    problem = Problem(**common, clusters=Clusters(mean, (first, second)))
    same(
        solve(problem.replace(loss=plain_logistic), recipe),
        solve(problem, recipe),
        ("m", "q", "bias", "error", "overlap"),
        1e-9,
    )
    sphere = solve(Problem(**common, delta=0.5, loss="squared"), recipe)
    shaped = Problem(**common, clusters=Clusters([0.0, 1.0], 0.5), loss="squared")
    same(solve(shaped, recipe), sphere, ("m", "q", "bias", "error", "overlap"), 1e-9)
