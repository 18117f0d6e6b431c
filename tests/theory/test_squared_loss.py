"""The squared loss: closed form of the engine, an explicit recursion, and the general path."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.errors import ConvergenceError, EmptySelection

STATE = ("m", "v", "bias", "chi", "overlap", "q_hat", "chi_hat", "m_hat", "r_hat")


def scale(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def recursion(problem: Problem, recipe: Recipe) -> dict[str, list[float]]:
    r"""Without selection and with $\gamma = 1$ a step is a few lines of algebra in (m, v, B).

    V is the variance of the label, $4\rho(1-\rho)$, replaced by 1 when the bias is fixed.
    """
    rho, delta = problem.rho, problem.delta
    variance, lean = 4 * rho * (1 - rho), 2 * rho - 1

    def response(alpha: float, ridge: float) -> tuple[float, float, float]:
        b = ridge + delta * (alpha - 1)
        chi = 2 / (b + math.sqrt(b * b + 4 * ridge * delta))
        return chi, 1 / chi - ridge, alpha * delta / (1 + chi * delta) ** 2

    rows: dict[str, list[float]] = {name: [] for name in STATE}

    def append(**values: float) -> None:
        for name in STATE:
            rows[name].append(values[name])

    chi, q_hat, noise = response(problem.alpha_l, recipe.lambda_l)
    pull = q_hat * variance / delta
    m = pull / (q_hat + recipe.lambda_l + pull)
    bias = lean * (1 - m)
    square = noise * (variance * (1 - m) ** 2 + delta * m**2)
    chi_hat = square / (1 - noise * delta * chi**2)
    v = chi_hat * chi**2
    append(
        m=m, v=v, bias=bias, chi=chi, overlap=math.nan, q_hat=q_hat, chi_hat=chi_hat,
        m_hat=m / chi, r_hat=math.nan,
    )  # fmt: skip
    for alpha, ridge in zip(
        problem.unlabeled.alpha, recipe.at_steps(problem.steps).lambda_u, strict=True
    ):
        chi, q_hat, noise = response(alpha, ridge)
        spread = 1.0 if recipe.fix_bias else variance
        lost = ridge / (q_hat * (1 + spread / delta) + ridge)
        old_m, old_v = m, v
        m = (1 - lost) * old_m
        bias += 0.0 if recipe.fix_bias else lean * lost * old_m
        square = (spread + delta) * (lost * old_m) ** 2 + delta * (ridge * chi) ** 2 * old_v
        chi_hat = noise * square / (1 - noise * delta * chi**2)
        v = chi**2 * (chi_hat + q_hat**2 * old_v)
        m_hat = q_hat / delta * spread * lost * old_m
        overlap = (m_hat * old_m + q_hat * (old_m**2 + old_v)) * chi
        append(
            m=m, v=v, bias=bias, chi=chi, overlap=overlap, q_hat=q_hat, chi_hat=chi_hat,
            m_hat=m_hat, r_hat=q_hat,
        )  # fmt: skip
    return rows


@settings(max_examples=150, derandomize=True)
@given(
    st.builds(
        Problem,
        alpha_l=scale(0.05, 50),
        alpha_u=scale(0.2, 50),
        rho=st.floats(0.01, 0.99),
        delta=scale(0.05, 10),
        steps=st.just(6),
        loss=st.just("squared"),
    ),
    st.builds(Recipe, lambda_l=scale(1e-4, 1e2), lambda_u=scale(1e-4, 10), fix_bias=st.booleans()),
)
def test_closed_form_is_the_recursion(problem: Problem, recipe: Recipe) -> None:
    run, expected = solve(problem, recipe), recursion(problem, recipe)
    for name in STATE:
        size = np.abs(expected["bias"]) + np.sqrt(run.q) if name == "bias" else np.zeros(7)
        found, wanted = getattr(run, name), np.array(expected[name])
        gap = np.abs(found - wanted)
        good = gap <= 1e-8 * np.maximum(np.abs(wanted), size)
        assert np.all(good | (np.isnan(found) & np.isnan(wanted))), name


PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.3, delta=0.6, steps=2, loss="squared")
RECIPES = {
    "plain": Recipe(lambda_l=0.1, lambda_u=0.05),
    "bias fixed": Recipe(lambda_l=0.1, lambda_u=0.3, fix_bias=True),
    "selection": Recipe(lambda_l=0.1, lambda_u=0.2, threshold=0.6),
    "hard": Recipe(lambda_l=0.1, lambda_u=0.2, sharpness=math.inf),
    "hard, selection, bias fixed": Recipe(
        lambda_u=0.2, sharpness=math.inf, threshold=0.4, fix_bias=True
    ),
    "sharp": Recipe(lambda_u=0.2, sharpness=3.0, annealing=0.5),
}


def assert_equal(run: Trajectory, other: Trajectory, relative: float) -> None:
    for name in (*STATE, "train_loss", "objective"):
        np.testing.assert_allclose(
            getattr(run, name), getattr(other, name), rtol=relative, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("name", RECIPES)
def test_general_path_is_the_closed_form(name: str, plain_squared: Any) -> None:
    closed = solve(PROBLEM, RECIPES[name])
    general = solve(PROBLEM.replace(loss=plain_squared), RECIPES[name])
    assert closed.stats.nodes.max() == 4 < general.stats.nodes[1:].min()
    assert_equal(general, closed, 1e-9)


def test_continuum_limit_of_prediction_8() -> None:
    r"""For small $\lambda$ at fixed $\tau = \lambda t$ the norm is a sum of two exponentials.

    $m \propto e^{-\tau/\tau_m}$ with $\tau_m = (\alpha-1)(\Delta + V)$, and $v \propto
    e^{-2\tau/(\Delta(\alpha-1))}$.
    """
    alpha, delta, rho = 3.0, 0.8, 0.3
    variance = 4 * rho * (1 - rho)

    def gap(ridge: float) -> float:
        steps = round(1.0 / ridge)
        problem = Problem(0.5, alpha, rho, delta, steps=steps, loss="squared")
        run = solve(problem, Recipe(lambda_l=0.1, lambda_u=ridge))
        m = run.m[0] * math.exp(-1.0 / ((alpha - 1) * (delta + variance)))
        v = run.v[0] * math.exp(-2.0 / (delta * (alpha - 1)))
        assert run.q[-1] == pytest.approx(run.m[-1] ** 2 + run.v[-1], rel=1e-14)
        return max(abs(run.m[-1] / m - 1), abs(run.v[-1] / v - 1))

    coarse, fine = gap(1e-2), gap(1e-3)
    assert fine < 5e-3
    assert fine == pytest.approx(0.1 * coarse, rel=0.1)


def test_floor_of_the_direction_at_fixed_ridge() -> None:
    r"""$v/m^2 \to \lambda/(2V(\alpha-1)^2)$ for small $\lambda$: the direction never becomes
    perfect.
    """
    alpha, rho, ridge = 1.5, 0.3, 1e-4
    problem = Problem(0.5, alpha, rho, 0.05, steps=2000, loss="squared")
    run = solve(problem, Recipe(lambda_l=0.1, lambda_u=ridge))
    floor = ridge / (2 * 4 * rho * (1 - rho) * (alpha - 1) ** 2)
    assert run.v[-1] / run.m[-1] ** 2 == pytest.approx(floor, rel=0.03)


def fifty_digits(problem: Problem, recipe: Recipe) -> list[tuple[float, float]]:
    r"""m and v of every step without selection and with the bias fixed, at any sharpness, in 50
    digits.

    With the bias fixed $d = s(m - \gamma m') + (1-\gamma)B$ and two linear equations are left, for
    a and $\eta$.
    """
    with mpmath.workdps(50):
        alpha, rho, delta = (mpmath.mpf(x) for x in (problem.alpha_l, problem.rho, problem.delta))
        ridge, lean = mpmath.mpf(recipe.lambda_l), 2 * rho - 1
        gamma = mpmath.mpf(float(np.asarray(recipe.sharpness)))

        def response(alpha: Any, ridge: Any) -> tuple[Any, Any]:
            b = ridge + delta * (alpha - 1)
            chi = (mpmath.sqrt(b * b + 4 * ridge * delta) - b) / (2 * ridge * delta)
            return chi, 1 / (1 + chi * delta)

        chi, k = response(alpha, ridge)
        lead = alpha * k * (1 - lean**2)
        m = lead / (1 / chi + lead)
        bias = lean * (1 - m)
        square = (1 - m) ** 2 - 2 * lean * (1 - m) * bias + bias**2 + delta * m**2
        v = chi**2 * alpha * delta * k**2 * square / (1 - chi**2 * alpha * delta**2 * k**2)
        rows = [(float(m), float(v))]
        alpha, ridge = mpmath.mpf(problem.alpha_u), mpmath.mpf(recipe.lambda_u)
        chi, k = response(alpha, ridge)
        for _ in range(problem.steps):
            q = m**2 + v
            omega, mu, nu2 = mpmath.sqrt(q), m / mpmath.sqrt(q), v / q
            shift = (1 - gamma) * bias
            # m_hat = -alpha k (mu a + nu2 eta - gamma m' + lean shift)
            row = alpha * k * mpmath.matrix([mu, nu2])
            fixed = alpha * k * (gamma * m - lean * shift)
            matrix = mpmath.matrix(
                [
                    [ridge + alpha * k * delta + mu * row[0], mu * row[1]],
                    [row[0], 1 / chi + row[1]],
                ]
            )
            right = mpmath.matrix([mu * fixed + alpha * k * delta * gamma * omega, fixed])
            a, eta = mpmath.lu_solve(matrix, right)
            new = mu * a + nu2 * eta
            change = new - gamma * m
            square = change**2 + 2 * lean * change * shift + shift**2
            square += delta * ((a - gamma * omega) ** 2 + nu2 * eta**2)
            r2 = chi**2 * alpha * delta * k**2 * square / (1 - chi**2 * alpha * delta**2 * k**2)
            m, v = new, nu2 * (a - mu * eta) ** 2 + r2
            rows.append((float(m), float(v)))
        return rows


@pytest.mark.parametrize("sharpness", [1.0, 1 + 1e-12, 1 - 1e-9, 1.3])
def test_faded_weights_keep_their_digits(sharpness: float) -> None:
    problem = Problem(1.0, 2.6, 0.38, 0.095, steps=10, loss="squared")
    recipe = Recipe(24.0, 42.0, sharpness=sharpness, fix_bias=True)
    run = solve(problem, recipe)
    exact = np.array(fifty_digits(problem, recipe))
    np.testing.assert_allclose(np.column_stack([run.m, run.v]), exact, rtol=1e-12)
    assert 0 < run.stats.accuracy.max() < 1e-12


def test_a_threshold_that_rejects_every_point_is_named() -> None:
    problem = Problem(1.0, 2.0, 0.4, 0.5, steps=3, loss="squared")
    with pytest.raises(EmptySelection, match="threshold 40"):
        solve(problem, Recipe(sharpness=math.inf, threshold=40.0))


def test_without_ridge_fewer_rows_than_features_are_refused() -> None:
    problem = Problem(0.5, 2.0, 0.4, 0.5, steps=2, loss="squared")
    with pytest.raises(ConvergenceError, match="no unique minimiser"):
        solve(problem, Recipe(lambda_l=0.0))
