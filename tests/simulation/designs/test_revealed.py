"""The revealed Gaussian matrix: consistent with itself, and Gaussian."""

import numpy as np
import pytest

from selftrain.simulation.designs.revealed import RevealedGaussian


def test_the_two_sides_agree() -> None:
    random = np.random.default_rng(1)
    z = RevealedGaussian(80, 50, random)
    left, right = random.standard_normal((7, 80)), random.standard_normal((7, 50))
    there = np.array([z.times(w) for w in right[:4]])
    back = np.array([z.transposed_times(r) for r in left])
    there = np.vstack([there, [z.times(w) for w in right[4:]]])
    np.testing.assert_allclose(left @ there.T, back @ right.T, atol=1e-11)


def test_repetition_and_linearity() -> None:
    random = np.random.default_rng(2)
    z = RevealedGaussian(60, 90, random)
    a, b = random.standard_normal((2, 90))
    first = z.times(a)
    z.transposed_times(random.standard_normal(60))
    z.times(b)
    known = z.known
    np.testing.assert_allclose(z.times(a), first, atol=1e-12)
    np.testing.assert_allclose(z.times(2 * a - 3 * b), 2 * first - 3 * z.times(b), atol=1e-12)
    assert z.known == known


def test_the_whole_matrix_can_be_revealed_and_not_more() -> None:
    z = RevealedGaussian(6, 4, np.random.default_rng(3))
    by_columns = np.array([z.times(e) for e in np.eye(4)]).T
    by_rows = np.array([z.transposed_times(e) for e in np.eye(6)])
    np.testing.assert_allclose(by_columns, by_rows, atol=1e-12)
    assert z.known == (4, 6)


def test_orthogonality_after_300_products() -> None:
    random = np.random.default_rng(4)
    z = RevealedGaussian(500, 400, random)
    w = random.standard_normal(400)
    for _ in range(150):
        w = z.transposed_times(z.times(w))
        w /= np.linalg.norm(w)
    for basis in (z._asked, z._answered):
        known = basis.directions[: basis.count]
        assert np.abs(known @ known.T - np.eye(basis.count)).max() < 1e-12


@pytest.mark.parametrize("order", ["columns first", "rows first", "mixed"])
def test_entries_are_independent_standard_normal(order: str) -> None:
    """Entries read off by products in different orders: means, variances, covariances, fourth
    moments.
    """
    draws, random = 4000, np.random.default_rng(5)
    entries = np.empty((draws, 6))
    turn = np.linalg.qr(np.random.default_rng(6).standard_normal((3, 3)))[0]
    for i in range(draws):
        z = RevealedGaussian(3, 2, random)
        if order == "rows first":
            z.transposed_times(turn[0])
            z.transposed_times(z.times(np.array([1.0, 2.0])) @ np.ones((3, 3)))
        elif order == "mixed":
            z.times(z.transposed_times(turn[1]))
        entries[i] = np.array([z.times(e) for e in np.eye(2)]).ravel()
    error = 1 / np.sqrt(draws)
    assert np.abs(entries.mean(axis=0)).max() < 4 * error
    covariance = entries.T @ entries / draws
    assert np.abs(covariance - np.eye(6)).max() < 4 * np.sqrt(2) * error
    assert np.abs((entries**4).mean(axis=0) - 3).max() < 4 * np.sqrt(96) * error
