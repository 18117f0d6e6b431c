"""Moves of a fit, worked out by hand."""

import numpy as np
import pytest

from selftrain.simulation.frame.hessian import FitArrays, Objective
from selftrain.simulation.frame.moves import kept_share, make, shorten, slopes_at, take_back
from selftrain.simulation.frame.passes import LOGISTIC


@pytest.mark.parametrize(("train_bias", "pull"), [(True, 5.0), (False, 0.0)])
def test_the_gradient_has_the_slopes_of_the_ridge(train_bias, pull):
    out = np.full(4, np.nan)
    objective = Objective(LOGISTIC, 2.0, train_bias)
    slopes_at(objective, 5.0, np.array([1.0, -1.0]), np.array([0.5, 3.0]), 2, out)
    np.testing.assert_array_equal(out, [pull, 2.0, 5.0, np.nan])


@pytest.mark.parametrize(
    ("ahead", "kept"),
    [(-3.0, 1.0), (1.7, 1.0), (1.9, 2.0 / 3.9), (6.0, 0.25), (2000.0, 0.1)],
)
def test_a_move_that_went_too_far_keeps_a_share(ahead, kept):
    """Slopes of -2 before and `ahead` behind: along a parabola the minimum is at 2/(2 + ahead)."""
    assert kept_share(-2.0, ahead) == pytest.approx(kept, rel=1e-12)


def test_a_move_is_made_and_taken_back_in_part():
    gradient = np.array([7.0, 8.0, 9.0, np.nan])
    work = FitArrays(np.zeros((4, 4)), gradient, np.zeros(4), np.zeros(4), np.zeros(3))
    point = np.array([1.0, 2.0, 0.0])
    assert make(work, point, 2, np.array([0.5, 1.0, -4.0])) == 0.5
    np.testing.assert_array_equal(point, [2.0, -2.0, 0.0])
    np.testing.assert_array_equal(work.before, [7.0, 8.0, 9.0, 0.0])
    np.testing.assert_array_equal(work.move, [0.5, 1.0, -4.0, 0.0])
    np.testing.assert_array_equal(work.step, [1.0, -4.0, 0.0])
    assert take_back(work, point, 2, 0.25) == -0.375
    np.testing.assert_array_equal(point, [1.25, 1.0, 0.0])
    np.testing.assert_array_equal(work.move, [0.125, 0.25, -1.0, 0.0])
    np.testing.assert_array_equal(work.step, [-0.75, 3.0, 0.0])


@pytest.mark.parametrize(("factor", "share"), [(0.5, 1.0), (2.0, 9.0 / 23.0)])
def test_a_long_move_is_shortened(factor, share):
    """Weights move the logits by 2 * 5, the bias by 1.5 (times `factor`); at most 2 + 2 * 3 + 1 may
    be moved.
    """
    newton = factor * np.array([-1.5, 3.0, 4.0, 100.0])
    expected = newton * [share, share, share, 1.0]
    shorten(newton, 3, 2.0, 3.0, -1.0)
    np.testing.assert_allclose(newton, expected, rtol=1e-14)
