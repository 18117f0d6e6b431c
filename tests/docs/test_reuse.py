"""The examples of the pages on data reuse run and say what they say; the closed form holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("reuse.md", "reuse-derivation.md", "reuse-evidence.md")
PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in NAMES)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the examples of the pages define, run in order."""
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "docs/reuse*.md", "exec"), found)
    return found


def test_examples_run_in_order(names: dict[str, Any]) -> None:
    runs, theory = names["ensemble"].q, names["run"].q
    assert np.all(np.abs(runs.mean(axis=0) / theory - 1) < 0.3)
    assert names["seen"].cdf(0.0, y=1) < names["fresh"].cdf(0.0, y=1)
    np.testing.assert_allclose(names["filtered"].m, names["m"], rtol=1e-12)
    np.testing.assert_allclose(names["filtered"].q, names["q"], rtol=1e-12)


def test_links_and_images_are_there() -> None:
    for name in re.findall(r"\]\(([\w./-]+?)(?:#[\w-]+)?\)", PAGE):
        assert (DOCS / name).is_file(), name


RIDGES = (0.1, 0.02, 0.05, 0.03)


@pytest.mark.parametrize("fixed", [False, True])
def test_squared_fits_to_their_own_logits_filter_the_spectrum(fixed: bool) -> None:
    """A finite system: successive ridge regressions by the normal equations with a bias column,
    against products of S/(S + ridge) of the samples as they are, or centred.
    """
    features, size, rho, delta = 40, 70, 0.35, 0.6
    random = np.random.default_rng(5)
    signs = np.where(random.random(size) < rho, 1.0, -1.0)
    noise = np.sqrt(delta) * random.normal(size=(size, features))
    x = (noise + signs[:, None] / np.sqrt(features)) / np.sqrt(features)
    start, first_bias = random.normal(size=features), 0.3
    weights, bias = start, first_bias
    values, vectors = np.linalg.eigh((x if fixed else x - x.mean(axis=0)).T @ x)
    filtered = vectors.T @ start
    for ridge in RIDGES:
        target = x @ weights + bias
        if fixed:
            weights = np.linalg.solve(x.T @ x + ridge * np.eye(features), x.T @ (target - bias))
        else:
            design = np.column_stack([x, np.ones(size)])
            penalty = np.diag(np.append(np.full(features, ridge), 0.0))
            *rest, bias = np.linalg.solve(design.T @ design + penalty, design.T @ target)
            weights = np.array(rest)
        filtered = values / (values + ridge) * filtered
        np.testing.assert_allclose(vectors @ filtered, weights, rtol=1e-12, atol=1e-12)
        moved = 0.0 if fixed else x.mean(axis=0) @ (start - weights)
        assert bias == pytest.approx(first_bias + moved, abs=1e-12)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    ("changes", "ridge"),
    [({}, 0.03), ({}, RIDGES), ({"rho_u": 0.6, "delta_u": 0.9}, 0.03), ({"alpha_u": 0.7}, 0.2)],
)
def test_the_limit_is_that_of_a_spiked_wishart_matrix(
    names: dict[str, Any], changes: dict[str, Any], ridge: Any, fixed: bool
) -> None:
    common = {"alpha_l": 0.8, "alpha_u": 2.2, "rho": 0.35, "delta": 0.6, "loss": "squared"}
    problem = Problem(**{**common, **changes}, steps=4, batches="reused")
    run = solve(problem, Recipe(lambda_l=0.05, lambda_u=ridge, fix_bias=fixed))
    alpha, rho, delta = (float(values[0]) for values in problem.unlabeled)
    ridges = np.broadcast_to(ridge, 4)

    def filters(nodes: np.ndarray) -> np.ndarray:
        factors = nodes / (nodes + ridges[:, None])
        return np.vstack([np.ones(nodes.size), np.cumprod(factors, axis=0)])

    spike = 1.0 if fixed else 4 * rho * (1 - rho)
    (x, at_v), (y, bulk) = (names["spectrum"](alpha, delta, size) for size in (spike, 0.0))
    kept, rest = filters(x), filters(y)
    m = run.m[0] * kept @ at_v
    overlaps = run.m[0] ** 2 * (kept * at_v) @ kept.T + run.v[0] * (rest * bulk) @ rest.T
    np.testing.assert_allclose(run.m, m, rtol=1e-11)
    np.testing.assert_allclose(run.overlaps, overlaps, rtol=1e-11)
    lean = 0.0 if fixed else 2 * rho - 1
    np.testing.assert_allclose(run.bias, run.bias[0] + lean * (m[0] - m), rtol=1e-11, atol=1e-13)


def test_many_steps_end_at_the_leading_principal_component(names: dict[str, Any]) -> None:
    """The squared cosine of the page, and the spectral measure's weight at its outlier."""
    alpha, delta, variance = 2.2, 0.6, 4 * 0.35 * 0.65
    nodes, weights = names["spectrum"](alpha, delta, variance)
    inside = delta * (1 + np.sqrt(alpha)) ** 2
    assert nodes[-2] < inside < nodes[-1]
    cosine = (1 - delta**2 / (alpha * variance**2)) / (1 + delta / (alpha * variance))
    assert weights[-1] == pytest.approx(cosine, rel=1e-10)
    assert f"{cosine:.3f}" in PAGE
