"""The error estimate of a fit in the revealed frame, worked out by hand from its docstring.

The frame has two directions, the point is (0.6, 0.8), so q = 1 and m = 0.6, and the bias is -0.5.
The last column of the inverse Hessian is (0, 0.6, 0.8): its square is 1, its last entry squared
0.64 of that, so R^2 = 0.36.
"""

import numpy as np
import pytest

from selftrain.simulation.frame.frame_fit import FitPoint, Outside, accuracy

POINT, COLUMN, BIAS = np.array([0.6, 0.8]), np.array([0.0, 0.6, 0.8]), -0.5
NOW = FitPoint(POINT, 1.0, 0.6, BIAS)
INSIDE = Outside(0.0, 10.0, 0.0)
STILL = np.zeros(3)


def estimate(newton=STILL, last=NOW, off=INSIDE, now=NOW, column=COLUMN):
    return accuracy(now, last, np.asarray(newton), column, 2, off)


@pytest.mark.parametrize(
    ("newton", "expected"),
    [
        ([0.0, 0.001, -0.002], 2 * 0.001 + 5e-6),  # q moves by 2 x.dx + |dx|^2
        ([0.0, 0.004, -0.003], 0.004),  # q stays to first order, m moves
        ([0.006, 0.001, -0.002], 0.004),  # the bias, over |w| + |B| = 1.5
    ],
)
def test_a_newton_step_that_is_left(newton, expected):
    assert estimate(newton) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("last", "moved"),
    [
        (NOW._replace(q=0.7), 0.3),
        (NOW._replace(m=0.5), 0.1),
        (NOW._replace(bias=-0.2), 0.3 / 1.5),
    ],
)
def test_the_last_change_falls_as_a_geometric_series(last, moved):
    """Changes fall by R^2 each: what is left is R^2 / (1 - R^2) times the last."""
    assert estimate(last=last) == pytest.approx(moved * 0.36 / 0.64, rel=1e-12)


def test_the_last_change_is_relative_to_the_weights():
    now = FitPoint(2.0 * POINT, 4.0, 1.2, 0.0)
    for last in (now._replace(m=1.0), now._replace(q=3.6)):
        found = estimate(last=last, now=now)
        assert found == pytest.approx(0.1 * 0.36 / 0.64, rel=1e-12)


def test_one_direction_alone_is_not_trusted():
    """A column of one entry would say that nothing follows; R^2 is taken to be 0.09."""
    column = np.array([0.0, 0.0, 1.0])
    found = estimate(last=NOW._replace(q=0.7), column=column)
    assert found == pytest.approx(0.3 * 0.09 / 0.91, rel=1e-12)


def test_a_slope_off_the_frame():
    """The next column is the last one times R/(1-R^2); the rest overlaps at random, N^(-1/2) from
    each of 1/(1-R^2) directions. Here N^(1/2) = 10.
    """
    slope = 0.01
    along, away = slope * 0.6 / 0.64, slope * np.sqrt(1.36) / 0.64
    random = away / (10 * 0.8)
    first = 2 * (along * (0.6 * 0.6 + 0.8 * 0.8) + random) + away**2
    assert estimate(off=Outside(slope, 10.0, 0.0)) == pytest.approx(first, rel=1e-12)


def test_a_slope_off_the_frame_moves_the_bias():
    slope, column = 0.01, np.array([8.0, 0.6, 0.8]) / np.sqrt(65.0)
    share = 0.64 / 65.0
    along = slope * np.sqrt(1 - share) / share
    away = slope * np.sqrt(2 - share) / share
    random = away / (1e6 * np.sqrt(share))
    overlap = abs(0.6 * column[1]) + abs(0.8 * column[2])
    first = 2 * (along * overlap + random) + away**2
    bias = (along * column[0] + random) / 1.5
    found = estimate(off=Outside(slope, 1e6, 0.0), column=column)
    assert found == pytest.approx(max(first, bias), rel=1e-12)


def test_faint_weights_are_measured_by_what_rounding_leaves():
    now = FitPoint(1e-4 * POINT, 1e-8, 0.6e-4, 0.0)
    found = estimate([0.0, 0.001, 0.0], now, Outside(0.0, 10.0, 0.01), now)
    assert found == pytest.approx(0.001 / 0.01, rel=1e-12)
