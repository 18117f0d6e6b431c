"""Observables against samples of the mixture and against exact arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from selftrain.observables import (
    entries,
    generalization_error,
    one_minus_cosine,
    selected_shares,
    selects_positive,
)

M, Q, DELTA = 0.8, 1.7, 0.6
SAMPLES = 400_000
FOUR_SIGMA = 4 * 0.5 / np.sqrt(SAMPLES)


def logits(bias: float, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Classes and logits of new samples, s m + B plus noise of variance Delta q."""
    random = np.random.default_rng(0)
    s = np.where(random.random(SAMPLES) < rho, 1.0, -1.0)
    return s, s * M + bias + np.sqrt(DELTA * Q) * random.standard_normal(SAMPLES)


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("bias", [-0.7, 0.0, 0.4])
def test_the_error_is_that_of_samples(bias: float, rho: float) -> None:
    s, h = logits(bias, rho)
    expected = np.mean(s * h < 0)
    found = generalization_error(np.array(M), np.array(Q), np.array(bias), rho, DELTA)
    assert found == pytest.approx(expected, abs=FOUR_SIGMA)


@pytest.mark.parametrize("limit", [0.0, 0.6, 2.0])
def test_selected_samples_are_counted(limit: float) -> None:
    bias, rho = -0.3, 0.35
    s, h = logits(bias, rho)
    chosen = np.abs(h) > limit
    variances = (np.array(DELTA * Q), np.array(DELTA * Q))
    right, wrong = selected_shares(
        np.array(M), variances, np.array(bias), np.array(rho), np.array(limit)
    )
    assert right == pytest.approx(np.mean(chosen & (s * h > 0)), abs=FOUR_SIGMA)
    assert wrong == pytest.approx(np.mean(chosen & (s * h < 0)), abs=FOUR_SIGMA)


@pytest.mark.parametrize("bias", [-1.0, -0.2, 0.3, 1.0])
def test_which_class_most_selected_samples_get(bias: float) -> None:
    rho, limit = 0.45, 0.5
    _, h = logits(bias, rho)
    expected = np.sum(h > limit) > np.sum(h < -limit)
    assert selects_positive(M, (DELTA * Q, DELTA * Q), bias, rho, limit) == expected


@pytest.mark.parametrize("v", [1e-30, 1e-12, 1.0])
@pytest.mark.parametrize("m", [2.0, -2.0])
def test_one_minus_cosine_has_all_its_digits(m: float, v: float) -> None:
    with mpmath.workdps(60):
        expected = float(1 - m / mpmath.sqrt(mpmath.mpf(m) ** 2 + mpmath.mpf(v)))
    assert one_minus_cosine(np.array(m), np.array(v)) == pytest.approx(expected, rel=1e-14)


def test_arrays_are_split_by_entry() -> None:
    values = np.arange(12.0).reshape(3, 2, 2)
    assert entries("q", values[:, 0, 0], 1).keys() == {"q"}
    assert entries("confusion", values, 1)["confusion[1,0]"].tolist() == [2.0, 6.0, 10.0]


def test_which_class_is_selected_more_often_at_random_values() -> None:
    """The two probabilities, from the distribution of the logits in each class."""
    random = np.random.default_rng(1)
    for _ in range(300):
        m, bias, limit = random.normal(0.5, 0.6), random.normal(0, 0.6), random.uniform(0, 2)
        variances, rho = tuple(random.uniform(0.2, 3, 2)), random.uniform(0.05, 0.95)
        positive, negative = (
            norm(bias + m, variances[1] ** 0.5),
            norm(bias - m, variances[0] ** 0.5),
        )
        above = rho * positive.sf(limit) + (1 - rho) * negative.sf(limit)
        below = rho * positive.cdf(-limit) + (1 - rho) * negative.cdf(-limit)
        assert selects_positive(m, variances, bias, rho, limit) == (above > below)
