"""All kinds of design matrices give the same products, and only these are needed."""

import numpy as np
import pytest
import scipy.sparse

from selftrain.losses import Logistic
from selftrain.simulation.designs.design import ClusterRows, Stacked, Stored
from selftrain.simulation.linear.fit import fit

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((30, 12)) * (RNG.random((30, 12)) < 0.5)
WEIGHTS, ROWS = RNG.standard_normal(12), RNG.standard_normal(30)

KINDS = {
    "dense": Stored(MATRIX),
    "sparse": Stored(scipy.sparse.csr_array(MATRIX)),
    "sparse matrix": Stored(scipy.sparse.coo_matrix(MATRIX)),
    "stacked": Stacked(Stored(MATRIX[:10]), Stored(MATRIX[10:])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str) -> None:
    design = KINDS[kind]
    assert design.shape == (30, 12)
    np.testing.assert_allclose(design.times(WEIGHTS), MATRIX @ WEIGHTS, atol=1e-13)
    np.testing.assert_allclose(design.transposed_times(ROWS), MATRIX.T @ ROWS, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_the_same_on_all(kind: str) -> None:
    targets = (ROWS > 0).astype(float)
    here = fit(KINDS[kind], targets, Logistic(), 0.3)
    there = fit(Stored(MATRIX), targets, Logistic(), 0.3)
    np.testing.assert_allclose(here.weights, there.weights, atol=1e-10)
    assert here.bias == pytest.approx(there.bias, abs=1e-10)


@pytest.mark.parametrize("columns", [(), (3,)])
def test_clusters_are_noise_around_means(columns: tuple[int, ...]) -> None:
    random = np.random.default_rng(3)
    places, directions = random.normal(size=(ROWS.size, 2)), random.normal(size=(2, 12))
    whole = places @ directions + np.sqrt(0.7) * MATRIX
    design = ClusterRows(Stored(MATRIX), places, directions, 0.7)
    weights, rows = random.normal(size=(12, *columns)), random.normal(size=(ROWS.size, *columns))
    np.testing.assert_allclose(design.times(weights), whole @ weights, atol=1e-13)
    np.testing.assert_allclose(design.transposed_times(rows), whole.T @ rows, atol=1e-12)
