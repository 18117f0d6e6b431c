"""Newton steps and secant updates against dense linear algebra."""

import numpy as np
import pytest

from selftrain.simulation.frame.newton import newton_step, secant


def positive_definite(size: int, seed: int) -> np.ndarray:
    factor = np.random.default_rng(seed).standard_normal((size, size + 3))
    return factor @ factor.T


def in_room(matrix: np.ndarray) -> np.ndarray:
    """With a row and a column more, which nobody may read."""
    room = np.full((len(matrix) + 1, len(matrix) + 1), np.nan)
    room[:-1, :-1] = matrix
    return room


def test_a_newton_step_and_the_last_column_of_the_inverse():
    hessian, gradient = positive_definite(6, 1), np.arange(1.0, 7.0)
    floor = 0.9 * np.linalg.eigvalsh(hessian)[0]
    x, column, sound = newton_step(in_room(hessian), gradient, 6, floor)
    assert sound
    np.testing.assert_allclose(x, -np.linalg.solve(hessian, gradient), rtol=1e-10)
    np.testing.assert_allclose(column, np.linalg.inv(hessian)[:, -1], rtol=1e-10)


def test_pivots_below_the_floor_are_raised():
    gradient = np.array([1.0, 2.0, 3.0])
    x, column, sound = newton_step(np.diag([4.0, 2.0, 8.0]), gradient, 3, 2.5)
    assert not sound
    np.testing.assert_allclose(x, [-0.25, -0.8, -0.375])
    np.testing.assert_allclose(column, [0.0, 0.0, 0.125])


def test_the_bias_has_no_ridge_and_no_floor():
    gradient = np.array([1.0, 2.0])
    x, _, sound = newton_step(np.diag([0.5, 4.0]), gradient, 2, 2.5)
    assert sound
    np.testing.assert_allclose(x, [-2.0, -0.5])
    assert not newton_step(np.diag([-0.5, 4.0]), gradient, 2, 2.5)[2]


@pytest.mark.parametrize("size_of_move", [1.0, 1e-5])
def test_the_bfgs_update(size_of_move):
    hessian, true = positive_definite(4, 2), positive_definite(4, 3)
    before, move = np.arange(4.0), size_of_move * np.array([1.0, -2.0, 0.5, 1.5])
    change, image = true @ move, hessian @ move
    corrected = in_room(hessian)
    secant(corrected, move, before + change, before, 4)
    expected = (hessian + np.outer(change, change) / (move @ change)
                - np.outer(image, image) / (move @ image))  # fmt: skip
    np.testing.assert_allclose(corrected[:-1, :-1], expected, rtol=1e-7)
    np.testing.assert_allclose(corrected[:-1, :-1] @ move, change, rtol=1e-7)
    assert np.isnan(corrected[-1]).all()
    assert np.isnan(corrected[:, -1]).all()


@pytest.mark.parametrize(("share", "updated"), [(1e-7, True), (1e-9, False), (-0.5, False)])
def test_a_change_without_curvature_is_no_correction(share, updated):
    """A convex loss has none: it is rounding."""
    hessian, move = positive_definite(3, 4), np.array([1.0, 2.0, -1.0])
    corrected, still = hessian.copy(), np.zeros(3)
    secant(corrected, move, share * hessian @ move, still, 3)
    assert np.array_equal(corrected, hessian) == (not updated)


def test_a_hessian_that_is_not_positive_is_not_corrected():
    hessian, move = -np.eye(3), np.array([1.0, 2.0, -1.0])
    corrected = hessian.copy()
    secant(corrected, move, move, np.zeros(3), 3)
    np.testing.assert_array_equal(corrected, hessian)
