"""What every solution has to obey, over wide ranges of problems and recipes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from selftrain import Problem, Recipe, Trajectory, solve
from selftrain.arrays import Array
from selftrain.errors import StageError
from selftrain.theory.bayes import bayes_path

STATE = ("m", "v", "bias", "chi", "overlap", "q_hat", "chi_hat", "m_hat", "r_hat")


def scale(low: float, high: float) -> st.SearchStrategy[float]:
    """Positive numbers, uniform in the logarithm."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


@st.composite
def problems(draw: st.DrawFn, steps: int = 4, **fixed: Any) -> Problem:
    values = {
        "alpha_l": draw(scale(0.05, 50)),
        "alpha_u": draw(scale(0.2, 50)),
        "rho": draw(st.floats(0.01, 0.99)),
        "delta": draw(scale(0.05, 10)),
        "steps": steps,
    }
    return Problem(**{**values, **fixed})


@st.composite
def recipes(draw: st.DrawFn, **fixed: Any) -> Recipe:
    values = {
        "lambda_l": draw(scale(1e-4, 1e3)),
        "lambda_u": draw(scale(1e-5, 1e3)),
        "threshold": draw(st.just(0.0) | st.floats(0, 1.5)),
        "sharpness": draw(st.just(1.0) | scale(0.5, 50) | st.just(math.inf)),
        "annealing": draw(st.just(0.0) | st.floats(0, 1)),
        "fix_bias": draw(st.booleans()),
    }
    return Recipe(**{**values, **fixed})


@st.composite
def moderate(draw: st.DrawFn, steps: int, **fixed: Any) -> tuple[Problem, Recipe]:
    """Problems far from collapse, for comparisons between nearby recipes."""
    rho, ridge = draw(st.floats(0.25, 0.75)), draw(scale(1e-3, 10))
    problem = draw(problems(steps, alpha_l=1.0, alpha_u=3.0, rho=rho, delta=0.8))
    return problem, draw(recipes(lambda_l=0.2, lambda_u=ridge, **fixed))


def attempt(problem: Problem, recipe: Recipe) -> Trajectory:
    """The solution; a typed refusal is a legitimate answer, of which nothing is asserted here."""
    try:
        return solve(problem, recipe)
    except StageError:
        reject()


def assert_close(
    run: Trajectory, other: Trajectory, relative: float, absolute: float = 0.0
) -> None:
    assert run.collapsed_at == other.collapsed_at
    for name in STATE:
        np.testing.assert_allclose(
            getattr(run, name), getattr(other, name), rtol=relative, atol=absolute, err_msg=name
        )


def size_of_change(run: Trajectory, other: Trajectory) -> float:
    """Largest change of (m, sqrt v, B) at the last step, relative to the size of the state."""

    def state(one: Trajectory) -> Array:
        return np.array([one.m[-1], math.sqrt(one.v[-1]), one.bias[-1]])

    return float(np.max(np.abs(state(run) - state(other)))) / (
        math.sqrt(run.q[-1]) + abs(run.bias[-1])
    )


@settings(max_examples=300, derandomize=True)
@given(problems(), recipes())
def test_norms_overlaps_and_the_limit_of_all_methods(problem: Problem, recipe: Recipe) -> None:
    run = attempt(problem, recipe)
    good = slice(0, run.good_steps)
    q, overlap = run.q[good], run.overlap[good]
    assert np.all(run.v[good] > 0)
    assert np.all(q >= run.m[good] ** 2)
    assert np.all(overlap[1:] ** 2 <= q[1:] * q[:-1] * (1 + 1e-14))
    assert np.all(run.chi[good] > 0)
    assert np.all(run.error >= bayes_path(problem) - 1e-13)


@settings(max_examples=60, derandomize=True)
@given(problems(), recipes())
def test_norm_and_overlap_follow_from_the_conjugates(problem: Problem, recipe: Recipe) -> None:
    """The saddle-point equations of q, m and R, in the paper's form, hold between the columns."""
    run = attempt(problem, recipe)
    for t in range(1, run.good_steps):
        m_hat, r_hat, chi = run.m_hat[t], run.r_hat[t], run.chi[t]
        old_m, old_q = run.m[t - 1], run.q[t - 1]
        square = m_hat**2 + r_hat**2 * old_q + abs(2 * m_hat * r_hat * old_m)
        q = (m_hat**2 + run.chi_hat[t] + r_hat**2 * old_q + 2 * m_hat * r_hat * old_m) * chi**2
        assert run.q[t] == pytest.approx(q, abs=1e-13 * square * chi**2, rel=1e-11)
        size = (abs(m_hat) + abs(r_hat * old_m)) * chi
        assert run.m[t] == pytest.approx((m_hat + r_hat * old_m) * chi, abs=1e-11 * size)
        size = (abs(m_hat * old_m) + abs(r_hat) * old_q) * chi
        expected = (m_hat * old_m + r_hat * old_q) * chi
        assert run.overlap[t] == pytest.approx(expected, abs=1e-11 * size)


@settings(max_examples=60, derandomize=True)
@given(problems(), recipes())
def test_exchange_of_the_classes_flips_the_bias(problem: Problem, recipe: Recipe) -> None:
    run = attempt(problem, recipe)
    mirrored = attempt(problem.replace(rho=1 - problem.rho), recipe)
    assert run.collapsed_at == mirrored.collapsed_at
    norm = np.sqrt(run.q)
    for name in ("m", "v", "chi"):
        np.testing.assert_allclose(getattr(mirrored, name), getattr(run, name), rtol=1e-7)
    for ours, theirs, size in zip(run.bias, mirrored.bias, norm, strict=True):
        assert np.isnan(size) or abs(ours + theirs) <= 1e-7 * (abs(ours) + size)
    np.testing.assert_allclose(mirrored.error, run.error, atol=1e-7)


@settings(max_examples=40, derandomize=True)
@given(moderate(2, threshold=0.0))
def test_small_threshold_is_close_to_none(pair: tuple[Problem, Recipe]) -> None:
    problem, recipe = pair
    without = attempt(problem, recipe)
    assume(without.collapsed_at is None)
    near, nearer = (attempt(problem, recipe.replace(threshold=value)) for value in (1e-3, 1e-5))
    assert size_of_change(without, near) < 0.05
    assert size_of_change(without, nearer) < 0.05 * size_of_change(without, near) + 1e-9


@settings(max_examples=15, derandomize=True)
@given(moderate(1, threshold=0.0, sharpness=math.inf, annealing=0.0))
def test_sharp_labels_tend_to_hard_ones(pair: tuple[Problem, Recipe]) -> None:
    problem, recipe = pair
    hard = attempt(problem, recipe)
    sharp, sharper = (attempt(problem, recipe.replace(sharpness=value)) for value in (1e2, 1e4))
    assert size_of_change(hard, sharp) < 0.1
    assert size_of_change(hard, sharper) < 0.05 * size_of_change(hard, sharp) + 1e-9


@settings(max_examples=50, derandomize=True)
@given(problems(3), recipes())
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_derivative_of_the_objective_in_the_ridge(
    loss: str, problem: Problem, recipe: Recipe
) -> None:
    """At the minimum d(objective)/d lambda is q/2, the previous step being held."""
    problem = problem.replace(loss=loss)
    ridge = float(recipe.lambda_u)  # type: ignore[arg-type]
    step = 1e-4 * ridge

    def objective(last: float) -> Trajectory:
        return attempt(problem, recipe.replace(lambda_u=(ridge, ridge, last)))

    run, above, below = objective(ridge), objective(ridge + step), objective(ridge - step)
    assume(run.good_steps == 4)
    slope = (above.objective[-1] - below.objective[-1]) / (2 * step)
    rounding = 1e-11 * abs(run.objective[-1]) / step
    assert slope == pytest.approx(0.5 * run.q[-1], rel=1e-5, abs=rounding)


def test_derivative_of_the_supervised_objective_in_the_ridge() -> None:
    problem = Problem(alpha_l=0.7, alpha_u=1.0, rho=0.3, delta=0.6, steps=0)
    above, below = (attempt(problem, Recipe(lambda_l=0.1 + step)) for step in (1e-4, -1e-4))
    slope = (above.objective[0] - below.objective[0]) / 2e-4
    assert slope == pytest.approx(0.5 * attempt(problem, Recipe(lambda_l=0.1)).q[0], rel=1e-6)


@settings(max_examples=40, derandomize=True)
@given(problems(3), recipes())
def test_a_constant_schedule_is_the_constant(problem: Problem, recipe: Recipe) -> None:
    run = attempt(problem, recipe)
    spelled = attempt(
        problem.replace(
            alpha_u=(problem.alpha_u,) * 3,
            rho_u=(problem.rho,) * 3,
            delta_u=(problem.delta,) * 3,
        ),
        recipe.replace(
            **{
                name: (getattr(recipe, name),) * 3
                for name in ("lambda_u", "threshold", "sharpness", "annealing")
            }
        ),
    )
    assert_close(run, spelled, relative=0.0)
    np.testing.assert_array_equal(run.error, spelled.error)


@settings(max_examples=60, derandomize=True)
@given(
    problems(1, alpha_u=4.0),
    recipes(sharpness=1.0, annealing=0.0, lambda_l=0.3),
    st.floats(0, 0.4),
)
def test_without_ridge_nothing_moves(problem: Problem, recipe: Recipe, threshold: float) -> None:
    """The change of the state is of first order in the ridge."""

    def change(ridge: float) -> float:
        run = attempt(problem, recipe.replace(lambda_u=ridge, threshold=threshold))
        assume(run.good_steps == 2)
        gap = run.m[1] - run.m[0], math.sqrt(run.v[1]) - math.sqrt(run.v[0])
        assert run.overlap[1] == pytest.approx(run.q[0], rel=1e-2)
        return math.hypot(*gap, run.bias[1] - run.bias[0]) / math.sqrt(run.q[0])

    base = attempt(problem, recipe.replace(lambda_u=1e-6, threshold=threshold))
    assume(base.good_steps == 2)
    assume(base.chi[1] < 1e3 and 4.0 * base.fraction_selected[1] > 1.2)
    near, nearer = change(1e-6), change(1e-7)
    assert near < 1e-2
    assert nearer == pytest.approx(0.1 * near, rel=0.05, abs=1e-12)
