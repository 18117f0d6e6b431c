"""Fields and laws of the weights: sums over modes against traces of matrices, and derivatives
against differences.
"""

from __future__ import annotations

import numpy as np
import pytest

from selftrain import Clusters
from selftrain.theory.geometry.matrices import MatrixSpace
from selftrain.theory.geometry.modes import FIRST, Weights
from selftrain.theory.geometry.space import Spectrum

N, GAMMA, RIDGE = 5, 1.3, 0.2
RNG = np.random.default_rng(7)
MEAN, ONE, OTHER = RNG.normal(size=N), *np.exp(RNG.normal(size=(2, N)))
CLUSTERS = {1: Clusters(MEAN, ONE), 2: Clusters(MEAN, (ONE, OTHER))}
OLD = Weights(RNG.normal(size=N), np.exp(RNG.normal(size=N)))


def unknowns(groups: int) -> np.ndarray:
    return np.random.default_rng(groups).normal(size=FIRST + 3 * groups)


@pytest.mark.parametrize("groups", CLUSTERS)
@pytest.mark.parametrize("anchor", [0.0, GAMMA])
def test_modes_are_diagonal_matrices(groups: int, anchor: float) -> None:
    clusters, x = CLUSTERS[groups], unknowns(groups)
    # a second set of samples with other variances keeps the features apart: one mode for each
    modes = Spectrum([clusters, Clusters(MEAN, np.arange(1.0, N + 1.0))]).step(OLD, clusters)
    full = Weights(OLD.mean, np.diag(OLD.variance))
    matrices = MatrixSpace([clusters]).step(full, clusters)
    ours, theirs = (step.fields(x, RIDGE, GAMMA, anchor) for step in (modes, matrices))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)
    (mean, variance), numbers = modes.advance(x, RIDGE, GAMMA)
    law, others = matrices.advance(x, RIDGE, GAMMA)
    np.testing.assert_allclose(mean, law.mean, rtol=1e-12)
    np.testing.assert_allclose(np.diag(variance), law.variance, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(numbers, others, rtol=1e-12)


@pytest.mark.parametrize("groups", CLUSTERS)
@pytest.mark.parametrize("anchor", [0.0, GAMMA])
def test_derivatives(groups: int, anchor: float) -> None:
    clusters, x = CLUSTERS[groups], unknowns(groups)
    step = Spectrum([clusters, Clusters(MEAN, np.arange(1.0, N + 1.0))]).step(OLD, clusters)
    found = step.fields(x, RIDGE, GAMMA, anchor)
    for j, move in enumerate(1e-5 * np.eye(x.size)):
        sides = [step.fields(x + side * move, RIDGE, GAMMA, anchor)[:, 0] for side in (1.0, -1.0)]
        np.testing.assert_allclose(found[:, 1 + j], (sides[0] - sides[1]) / 2e-5, atol=1e-7)


@pytest.mark.parametrize("groups", CLUSTERS)
def test_fields_are_those_of_the_new_law(groups: int) -> None:
    """m and the variances of the logits from the new weights themselves; the part along the old
    weights and the rest add up to them.
    """
    clusters, x = CLUSTERS[groups], unknowns(groups)
    space = Spectrum([clusters, Clusters(MEAN, np.arange(1.0, N + 1.0))])
    step = space.step(OLD, clusters)
    rows = step.fields(x, RIDGE, GAMMA, GAMMA)[:, 0]
    old_m, *old_q = space.projections(OLD, clusters)
    m, *q = space.projections(step.advance(x, RIDGE, GAMMA)[0], clusters)
    psi, noise = rows[1 : 1 + groups] + GAMMA, rows[1 + groups : 1 + 2 * groups]
    assert rows[0] + GAMMA * old_m == pytest.approx(m, rel=1e-12)
    np.testing.assert_allclose(psi**2 * np.array(old_q) + noise**2, q, rtol=1e-12)
