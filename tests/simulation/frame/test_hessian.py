"""The Hessian over the bias and the frame against the dense one."""

import numpy as np
import pytest
from scipy.special import expit

from selftrain.simulation.frame.hessian import (
    Objective,
    OpenFit,
    append_direction,
    full_hessian,
    open_fit,
    sound_step,
)
from selftrain.simulation.frame.passes import (
    LOGISTIC,
    SQUARED,
    BatchRows,
    Columns,
    Filled,
    NewDirection,
)

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
