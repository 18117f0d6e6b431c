"""The exponential of vector code against forty digits of mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from selftrain.theory.averages.noise_nodes import LARGEST, exponentials


@pytest.mark.parametrize("size", [1e-20, 1e-8, 0.3, 1.0, 30.0, 600.0])
def test_both_to_the_last_digits(size: float) -> None:
    """Also where the integer part of x / ln 2 changes, and where exp(x) - 1 is tiny."""
    places = size * np.random.default_rng(0).uniform(-1.0, 1.0, 200)
    halves = math.log(2.0) * (np.arange(-400, 401, 7) + 0.5)
    for x in np.append(places, halves).tolist():
        power, less_one = exponentials(x)
        with mpmath.workdps(40):
            assert abs(power / mpmath.exp(x) - 1) < 5e-16
            assert abs(less_one / mpmath.expm1(x) - 1) < 5e-16


def test_beyond_the_largest_it_is_clipped() -> None:
    """Numbers, not infinities, whose squares need not be numbers."""
    assert exponentials(-1e308) == exponentials(-LARGEST)
    assert exponentials(math.inf) == exponentials(LARGEST)
    assert exponentials(0.0) == (1.0, 0.0)
    assert 0.0 < exponentials(-math.inf)[0] < 1e-299
