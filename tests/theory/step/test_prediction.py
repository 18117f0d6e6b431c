"""Predictions of smooth runs are exact as far as their order goes."""

import numpy as np
import pytest

from selftrain.arrays import Array
from selftrain.theory.step.prediction import extrapolate

RATES = np.array([1.0, -2.0, 0.5, 3.0, -1.0])


def extrapolated(rows: Array) -> Array:
    table, ahead = rows.copy(), np.empty(rows.shape[1])
    extrapolate(table, len(table), np.ones(rows.shape[1]), ahead)
    return ahead


@pytest.mark.parametrize(("history", "degree"), [(1, 0), (2, 1), (3, 2), (5, 3), (7, 4)])
def test_polynomials_are_continued(history: int, degree: int) -> None:
    rows = RATES * (1.0 + 0.1 * np.arange(12.0)[:, None]) ** degree
    found = extrapolated(rows[11 - history : 11])
    np.testing.assert_allclose(found, rows[11], atol=1e-12)


@pytest.mark.parametrize("j", range(5))
def test_noise_is_not_extrapolated(j: int) -> None:
    """Differences of alternating numbers grow with their order: the last value is the best guess.
    Each unknown alone decides.
    """
    rows = np.ones((7, 5))
    rows[:, j] += 0.01 * (-1.0) ** np.arange(7)
    np.testing.assert_allclose(extrapolated(rows), rows[-1], atol=1e-15)
