"""Newton's method in the frame: steps and Hessians against dense linear algebra, moves made by
hand.
"""

import numpy as np
import pytest
from scipy.special import expit

from selftrain.simulation.frame.frame_newton import (
    FitArrays,
    Objective,
    OpenFit,
    append_direction,
    full_hessian,
    kept_share,
    make,
    newton_step,
    open_fit,
    secant,
    shorten,
    slopes_at,
    sound_step,
    take_back,
)
from selftrain.simulation.frame.passes import (
    LOGISTIC,
    SQUARED,
    BatchRows,
    Columns,
    Filled,
    NewDirection,
)


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


ROWS, FRAME, RIDGE = 1300, 6, 7.0


def opened(loss: int, train_bias: bool) -> OpenFit:
    """A fit at random logits, in columns with room for two more."""
    random = np.random.default_rng(1)
    x = random.standard_normal((FRAME + 2, ROWS)).astype(np.float32)
    rows = BatchRows(np.empty(ROWS), random.uniform(size=ROWS), np.empty(ROWS), np.empty(ROWS))
    columns = Columns(x, np.zeros_like(x))
    fit = open_fit(Objective(loss, RIDGE, train_bias), columns, rows, np.zeros(FRAME + 2))
    rows.logits[:] = random.standard_normal(ROWS)
    return fit


def dense(fit: OpenFit, frame: int) -> np.ndarray:
    """The identity in the place of a bias that is fixed."""
    bordered = np.vstack([np.ones(ROWS), fit.columns.x[:frame]]).astype(float)
    sigma = expit(fit.rows.logits)
    curvature = sigma * (1 - sigma) if fit.objective.loss == LOGISTIC else np.ones(ROWS)
    hessian = (bordered * curvature) @ bordered.T
    hessian[np.arange(1, frame + 1), np.arange(1, frame + 1)] += RIDGE
    if not fit.objective.train_bias:
        hessian[0], hessian[:, 0] = 0.0, 0.0
        hessian[0, 0] = 1.0
    return hessian


@pytest.mark.parametrize("train_bias", [True, False])
@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED])
def test_the_hessian_computed_anew(loss, train_bias):
    fit = opened(loss, train_bias)
    full_hessian(fit, FRAME)
    found = fit.work.hessian
    np.testing.assert_allclose(found[: FRAME + 1, : FRAME + 1], dense(fit, FRAME), atol=1e-10)
    assert not found[FRAME + 1 :].any()
    assert not found[:, FRAME + 1 :].any()


@pytest.mark.parametrize("train_bias", [True, False])
def test_the_row_of_a_new_direction(train_bias):
    fit = opened(LOGISTIC, train_bias)
    full_hessian(fit, FRAME)
    r = expit(fit.rows.logits) - fit.rows.targets
    fit.rows.base[:] = 0.25 * r
    fit.rows.change[:] = 0.75 * r
    length = float(np.linalg.norm(fit.rows.change))
    new = NewDirection(np.zeros(0), np.zeros(0), length, 3.0, 0.8)
    append_direction(fit, Filled(FRAME, 0), new)
    found = fit.work.hessian[: FRAME + 2, : FRAME + 2]
    np.testing.assert_allclose(found, dense(fit, FRAME + 1), atol=1e-10)
    assert fit.work.gradient[FRAME + 1] == pytest.approx(fit.columns.x[FRAME] @ r, rel=1e-5)


@pytest.mark.parametrize("broken", [True, False])
def test_a_broken_hessian_is_computed_anew_for_the_newton_step(broken):
    fit = opened(LOGISTIC, True)
    hessian, gradient, _, _, _ = fit.work
    size = FRAME + 1
    hessian[:size, :size] = 2.0 * RIDGE * np.eye(size)
    if broken:
        hessian[3, 3] = 0.4 * RIDGE
    gradient[:size] = np.arange(1.0, 1.0 + size)
    newton, column = sound_step(fit, FRAME)
    inverse = np.linalg.inv(dense(fit, FRAME)) if broken else np.eye(size) / (2.0 * RIDGE)
    np.testing.assert_allclose(newton, -inverse @ gradient[:size], rtol=1e-10)
    np.testing.assert_allclose(column, inverse[:, -1], rtol=1e-10)
