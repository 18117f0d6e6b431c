"""The fit is as accurate as promised: against the same matrix fitted tightly, and against direct
solutions.
"""

import numpy as np
import pytest

from selftrain import Problem, Recipe
from selftrain.losses import Logistic, Squared
from selftrain.protocol import protocol_of
from selftrain.simulation.designs.design import Stored
from selftrain.simulation.engines import matrix_free
from selftrain.simulation.frame.frame_fit import FitPoint, Outside, judge
from selftrain.simulation.frame.frame_newton import Objective, OpenFit, open_fit
from selftrain.simulation.frame.passes import LOGISTIC, SQUARED, BatchRows, Columns, Filled
from selftrain.simulation.linear.fit import fit
from selftrain.simulation.run_plan import plan_run

STATE, BIAS = np.array([0.95, 1.13]), -0.2

SETTINGS = {
    "soft": ({}, {}),
    "hard": ({"rho": 0.5}, {"lambda_u": 1e-3, "sharpness": np.inf}),
    "hard, tiny ridge": ({"rho": 0.5}, {"lambda_u": 1e-5, "sharpness": np.inf}),
    "selected, small ridge": ({}, {"lambda_u": 1e-4, "threshold": 0.8, "sharpness": 1.5}),
    "few rows, small ridge": ({"alpha_u": 1.2}, {"lambda_u": 1e-4}),
    "imbalance": ({"rho": 0.02}, {"lambda_u": 0.01}),
    "bias fixed": ({"rho": 0.3}, {"lambda_u": 0.01, "fix_bias": True}),
    "squared": ({"loss": "squared"}, {"lambda_u": 0.01, "threshold": 0.5}),
    "soft, hardly a ridge": ({"alpha_u": 1.05}, {"lambda_u": 1e-6}),
    "squared, hardly a ridge": ({"alpha_u": 1.05, "loss": "squared"}, {"lambda_u": 1e-6}),
    "squared, singular": ({"loss": "squared", "alpha_u": 1.05}, {"lambda_u": 1e-4}),
}


def batch(setting: str, features: int, seed: int) -> tuple[matrix_free.RevealedRows, bool]:
    """Step 1 from a given state, ready to be fitted; whether the bias is trained."""
    problem, recipe = SETTINGS[setting]
    base = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "delta": 0.5625, "steps": 1}
    plan = plan_run(protocol_of(Problem(**{**base, **problem}), Recipe(**recipe)), features)
    columns = matrix_free._Room(plan.rows(1), 32)
    rows = matrix_free.RevealedRows(plan, 1, seed, columns, STATE, BIAS)
    return rows, plan.protocol.fits[1].bias_of is None


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_error_is_within_the_tolerance(setting: str) -> None:
    for seed in range(4):
        found = []
        for tolerance in (1e-6, 1e-9):
            rows, trained = batch(setting, 300, seed)
            point, bias, _ = rows.fit(STATE, BIAS, trained, tolerance)
            found.append((point @ point, point[0], bias))
        (q, m, bias), (exact_q, exact_m, exact_bias) = found
        norm = np.sqrt(exact_q)
        assert abs(q / exact_q - 1) < 1e-6
        assert abs(m - exact_m) / norm < 1e-6
        assert abs(bias - exact_bias) / (norm + abs(exact_bias)) < 1e-6


@pytest.mark.parametrize("features", [10, 60])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_tight_fit_is_the_minimum_over_the_columns_it_revealed(
    setting: str, features: int
) -> None:
    """The columns are a matrix: the dense fit of that matrix has the same weights and bias."""
    rows, trained = batch(setting, features, 3)
    point, bias, _ = rows.fit(STATE, BIAS, trained, 1e-9)
    matrix = rows.columns.x[: point.size, : rows.targets.size].T.astype(float)
    loss = Squared() if rows.loss == SQUARED else Logistic()
    options = {"fit_bias": trained, "bias": BIAS, "tolerance": 1e-11}
    direct = fit(Stored(matrix), rows.targets, loss, rows.ridge, **options)
    np.testing.assert_allclose(point, direct.weights, atol=1e-7 * np.linalg.norm(point))
    assert bias == pytest.approx(direct.bias, abs=1e-7)


@pytest.mark.parametrize("setting", ["soft", "squared", "selected, small ridge"])
def test_revealed_columns_have_their_law(setting: str) -> None:
    """Along its own residual a column has the length that was drawn for it, along earlier ones
    nothing; residuals are orthonormal.
    """
    rows, trained = batch(setting, 300, 2)
    rows.fit(STATE, BIAS, trained, 1e-6)
    count = rows.revealed
    assert count > 3
    u = rows.columns.u[:count, : rows.targets.size].astype(float)
    x = rows.columns.x[2 : 2 + count, : rows.targets.size].astype(float)
    np.testing.assert_allclose(u @ u.T, np.eye(count), atol=1e-5)
    lengths = rows._law().lengths[2 : 2 + count]
    along = x @ u.T / rows.scale
    np.testing.assert_allclose(np.tril(along), np.diag(lengths), atol=1e-4)


@pytest.mark.parametrize("ridge", [1e-4, 1e-2])
def test_newton_cg_on_a_nearly_singular_matrix(ridge: float) -> None:
    random = np.random.default_rng(5)
    matrix = random.standard_normal((315, 300))
    targets = random.standard_normal(315)
    found = fit(Stored(matrix), targets, Squared(), 300 * ridge, tolerance=1e-8)
    bordered = np.hstack([matrix, np.ones((315, 1))])
    penalty = 300 * ridge * np.eye(301)
    penalty[-1, -1] = 0.0
    exact = np.linalg.solve(bordered.T @ bordered + penalty, bordered.T @ targets)
    assert found.weights @ found.weights == pytest.approx(exact[:-1] @ exact[:-1], rel=1e-7)
    assert found.bias == pytest.approx(exact[-1], abs=1e-7)


def at_a_point(loss: int, frame: int, slope: float, count: int) -> tuple[OpenFit, FitPoint]:
    """Weights of length 1 along the first direction, whose slope is given.

    The columns are zero and the ridge is 4: so the Hessian is 4 in every direction of the frame.
    But 8 is what the fit believes it to be.
    """
    x, point = np.zeros((frame + 1, count), np.float32), np.zeros(frame + 1)
    rows = BatchRows(np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count))
    fit = open_fit(Objective(loss, 4.0, False), Columns(x, x.copy()), rows, point)
    fit.work.hessian[:] = 8.0 * np.eye(frame + 2)
    fit.work.gradient[1] = slope
    point[0] = 1.0
    return fit, FitPoint(point, 1.0, 1.0, 0.0)


def judged(
    loss: int,
    frame: int,
    revealed: int,
    slope: float,
    outside: float,
    count: int = 100,
    soft: bool = False,
) -> tuple[float, ...]:
    """The Newton step along the first direction, and the error."""
    fit, now = at_a_point(loss, frame, slope, count)
    off = Outside(outside, 1e9, 0.0)
    newton, error = judge(fit, Filled(frame, revealed), now, now, off, 1e-3, soft)
    return newton[1], error


@pytest.mark.parametrize(
    ("loss", "frame", "slope", "count", "anew"),
    [
        (LOGISTIC, 33, 1e-4, 100, True),
        (LOGISTIC, 33, 1e-1, 100, False),
        (LOGISTIC, 32, 1e-4, 100, False),
        (LOGISTIC, 32, 1e-4, 60, True),
        (SQUARED, 33, 1e-4, 100, False),
    ],
    ids=["hard", "hard, not yet there", "easy", "half of the rows", "squared"],
)
def test_a_hard_fit_is_judged_on_a_hessian_computed_anew(loss, frame, slope, count, anew):
    """The Newton step s changes q by 2 s + s^2; a hard fit multiplies that by 4."""
    step = slope / 4.0 if anew else slope / 8.0
    expected = (2.0 * step + step**2) * (4.0 if anew else 1.0)
    newton, error = judged(loss, frame, 20, slope, 0.0, count)
    assert newton == pytest.approx(-step, rel=1e-12)
    assert error == pytest.approx(expected, rel=1e-12)


def test_a_saturated_fit_is_judged_by_its_ridge():
    """Strong convexity: the error is at most the gradient (3, 4) e-5 over the ridge 4; q doubles
    it.
    """
    _, error = judged(LOGISTIC, 20, 15, 3e-5, 4e-5, soft=True)
    assert error == pytest.approx(2 * 5e-5 / 4.0, rel=1e-12)


@pytest.mark.parametrize(("slope", "anew"), [(1e-2, False), (1e-4, True)])
def test_no_hessian_is_computed_anew_while_the_bound_of_the_ridge_is_too_large(slope, anew):
    """A saturated fit of 33 directions: the bound is 5e-3 or 5e-5, the tolerance 1e-3. Without a
    slope inside the step within the frame is zero, so that without the bound the fit would end.
    """
    fit, now = at_a_point(LOGISTIC, 33, 0.0, 100)
    _, error = judge(fit, Filled(33, 20), now, now, Outside(slope, 1e9, 0.0), 1e-3, True)
    assert error == pytest.approx(2 * slope / 4.0, rel=1e-12)
    assert fit.work.hessian[1, 1] == (4.0 if anew else 8.0)


@pytest.mark.parametrize(("revealed", "expected"), [(11, 2 * 0.01 / 4.0), (12, None)])
def test_a_fit_that_explored_little_is_judged_by_its_ridge(revealed, expected):
    """The loss is at least as curved as its ridge, 4: a slope of 0.01 moves weights of length 1 by
    at most 0.01/4, and q by twice that. With more directions the last column of the inverse
    Hessian, (0, ..., 0, 1/8), says that the weights, which are orthogonal to it, hardly move.
    """
    away = 0.01 / 8.0 * np.sqrt(2.0 - 0.91) / 0.91
    _, error = judged(SQUARED, 12, revealed, 0.0, 0.01)
    assert error == pytest.approx(expected or away**2, rel=1e-5)
