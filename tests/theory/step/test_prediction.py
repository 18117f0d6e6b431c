"""Predictions of smooth runs are exact as far as their order goes."""

import numpy as np
import pytest

from selftrain.theory.step.prediction import predict

OLD = np.array([1.0, 0.0, 1.0, 0.0])
TIMES = np.arange(12.0)[:, None]
RATES = np.array([1.0, -2.0, 0.5, 3.0, -1.0])


def predicted(t: int, history: int, unknowns: np.ndarray, near: np.ndarray) -> np.ndarray:
    unknowns, z = unknowns.copy(), np.empty(5)
    unknowns[t:] = np.nan
    predict(t, history, unknowns, near, OLD, z)
    return z


@pytest.mark.parametrize(("history", "degree"), [(1, 0), (2, 1), (3, 2), (5, 3), (7, 4), (11, 4)])
def test_polynomials_are_continued(history, degree):
    unknowns = RATES * (1.0 + 0.1 * TIMES) ** degree
    found = predicted(11, history, unknowns, np.zeros((12, 5)))
    np.testing.assert_allclose(found, unknowns[11], atol=1e-12)


def test_only_the_difference_to_a_similar_run_is_continued():
    near = np.sin(3.0 * TIMES + RATES)
    unknowns = near + RATES * (1.0 + 0.2 * TIMES)
    found = predicted(9, 6, unknowns, near)
    np.testing.assert_allclose(found, unknowns[9], atol=1e-12)


def test_noise_is_not_extrapolated():
    """Differences of alternating numbers grow with their order: the last value is the best guess.
    Each unknown alone decides.
    """
    for j in range(5):
        unknowns = np.ones((12, 5))
        unknowns[:, j] += 0.01 * (-1.0) ** TIMES[:, 0]
        found = predicted(11, 7, unknowns, np.zeros((12, 5)))
        np.testing.assert_allclose(found, unknowns[10], atol=1e-15)
