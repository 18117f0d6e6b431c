"""Gradients against Richardson-extrapolated differences of the solver, and what has no gradient."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selftrain import Problem, Recipe, gradient, solve
from selftrain.errors import InvalidInput, NoGradient, StageError
from selftrain.theory.gradients import gradient as adjoint
from selftrain.theory.trajectory import Trajectory

TOLERANCE = 1e-13
FIELDS = {
    "alpha_l": "problem", "rho": "problem", "delta": "problem",
    "alpha_u": "problem", "rho_u": "problem", "delta_u": "problem",
    "lambda_l": "recipe", "annealing": "recipe",
    "lambda_u": "recipe", "threshold": "recipe", "sharpness": "recipe",
}  # fmt: skip

WIDEST = 1.6e-2
"""The largest relative change of an entry."""

ROUNDING = 4e-12
"""Relative accuracy of a solved state, at best."""


def value(problem: dict[str, Any], recipe: dict[str, Any], of: str) -> float:
    run = solve(Problem(**problem), Recipe(**recipe), tolerance=TOLERANCE)
    return float(getattr(run, of)[-1])


def differences(
    problem: dict[str, Any], recipe: dict[str, Any], of: str, name: str, t: int | None
) -> Iterator[float]:
    """The derivative in one entry by extrapolated differences, for several step sizes.

    At a threshold or an annealing of zero the differences are one-sided.
    """
    given = problem if FIELDS[name] == "problem" else recipe
    entry = given[name] if t is None else given[name][t]

    def at(x: float) -> float:
        changed = dict(given)
        changed[name] = x if t is None else (*given[name][:t], x, *given[name][t + 1 :])
        if FIELDS[name] == "problem":
            return value(changed, recipe, of)
        return value(problem, changed, of)

    for size in (4e-3, 1e-3, WIDEST, 2.5e-4):
        h = size * scale(name, entry)
        if entry == 0.0:
            middle = at(0.0)
            rows = [(at(h / 2**i) - middle) / (h / 2**i) for i in range(4)]
            ratios = [2.0, 4.0, 8.0]
        else:
            rows = [
                (at(entry + h / 2**i) - at(entry - h / 2**i)) / (2 * h / 2**i) for i in range(2)
            ]
            ratios = [4.0]
        for ratio in ratios:
            rows = [(ratio * b - a) / (ratio - 1) for a, b in itertools.pairwise(rows)]
        yield rows[0]


def scale(name: str, entry: float) -> float:
    """What a change of an entry is measured by."""
    return min(entry, 1 - entry) if name.startswith("rho") else entry or 0.1


def check(problem: dict[str, Any], recipe: dict[str, Any], of: str, run: Trajectory) -> None:
    """Every block of the gradient to 1e-6 of its largest entry, with one of the step sizes."""
    found = gradient(run, of=of)
    hard = math.isinf(recipe["sharpness"][0])
    for name in FIELDS:
        if hard and name in ("sharpness", "annealing"):
            with pytest.raises(NoGradient, match="hard"):
                found[name]
            continue
        block = np.atleast_1d(found[name])
        for i, entry in enumerate(block):
            t = None if np.ndim(found[name]) == 0 else i
            # what rounding leaves of a value makes the widest differences uncertain by this much
            given = (problem if FIELDS[name] == "problem" else recipe)[name]
            width = WIDEST / 8 * scale(name, given if t is None else given[t])
            allowed = max(1e-6 * np.abs(block).max(), ROUNDING * abs(found.value) / width, 1e-11)
            seen = []
            for expected in differences(problem, recipe, of, name, t):
                seen.append(expected)
                if abs(entry - expected) <= allowed:
                    break
            else:
                pytest.fail(f"{of} in {name}[{i}]: {entry} is not one of {seen}")


numbers = st.floats(0.0, 1.0)


@st.composite
def cases(draw: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
    steps = draw(st.integers(1, 2))

    def between(low: float, high: float) -> float:
        return low + (high - low) * draw(numbers)

    def each(low: float, high: float) -> tuple[float, ...]:
        return tuple(between(low, high) for _ in range(steps))

    def ratios(low: float, high: float) -> tuple[float, ...]:
        return tuple(math.exp(x) for x in each(math.log(low), math.log(high)))

    problem = {
        "alpha_l": between(0.3, 3.0),
        "alpha_u": each(1.1, 4.0),
        "rho": between(0.2, 0.8),
        "delta": between(0.2, 1.5),
        "steps": steps,
        "rho_u": each(0.2, 0.8),
        "delta_u": each(0.2, 1.5),
        "loss": draw(st.sampled_from(["logistic", "logistic", "squared"])),
        "test": draw(st.sampled_from([None, "labeled", (0.3, 0.7)])),
    }
    recipe = {
        "lambda_l": ratios(0.01, 1.0)[0], "lambda_u": ratios(1e-3, 2.0),
        "threshold": draw(st.sampled_from([(0.0,) * steps, each(0.05, 1.0)])),
        "sharpness": draw(st.sampled_from([(1.0,) * steps, ratios(0.5, 3.0), (math.inf,) * steps])),
        "annealing": draw(st.sampled_from([0.0, between(0.05, 0.5)])),
        "fix_bias": draw(st.booleans()),
    }  # fmt: skip
    of = draw(st.sampled_from(["error", "q", "bias_to_norm", "cosine", "chi", "overlap", "r_hat"]))
    return problem, recipe, of


@settings(
    max_examples=48,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(cases())
def test_gradients_are_those_of_the_solver(
    case: tuple[dict[str, Any], dict[str, Any], str],
) -> None:
    problem, recipe, of = case
    try:
        run = solve(Problem(**problem), Recipe(**recipe), tolerance=TOLERANCE)
    except StageError:
        return
    if run.collapsed_at is not None:
        with pytest.raises(NoGradient, match="collapsed"):
            gradient(run)
        return
    mixture = run.problem.test_mixture
    if of == "error" and run.error[-1] in (mixture.rho, 1 - mixture.rho):
        with contextlib.suppress(NoGradient):  # one class: nothing may be left of the derivatives
            check(problem, recipe, of, run)
        return
    check(problem, recipe, of, run)


REFERENCE = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=8)


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(threshold=0.5),
        Recipe(annealing=0.1, fix_bias=True),
        Recipe(sharpness=math.inf, threshold=0.3, fix_bias=True),
        Recipe(lambda_u=1e-6),
    ],
    ids=["soft", "selection", "annealed", "hard", "small ridge"],
)
def test_constants_are_sums_over_steps(recipe: Recipe) -> None:
    """A field that is one number for all steps moves them all; rho moves labelled points and
    batches.
    """
    found = gradient(solve(REFERENCE, recipe, tolerance=1e-13))
    for name, word in (("lambda_u", recipe), ("alpha_u", REFERENCE), ("rho", REFERENCE)):
        middle = getattr(word, name)
        h = 1e-3 * middle

        def at(x: float, name: str = name, word: Any = word) -> float:
            changed = word.replace(**{name: x})
            pair = (REFERENCE, changed) if word is recipe else (changed, recipe)
            return float(solve(*pair, tolerance=1e-13).error[-1])

        wide = (at(middle + h) - at(middle - h)) / (2 * h)
        narrow = (at(middle + h / 2) - at(middle - h / 2)) / h
        expected = (4 * narrow - wide) / 3
        assert float(np.sum(found[name])) == pytest.approx(expected, rel=1e-6)


def test_the_envelope_theorem() -> None:
    """The minimum of the objective moves with its own ridge by q/2."""
    run = solve(REFERENCE, Recipe(), tolerance=1e-12)
    for t in (1, 5, 8):
        found = gradient(run, of="objective", at=t)["lambda_u"]
        assert found[t - 1] == pytest.approx(run.q[t] / 2, rel=1e-7)
        assert not found[t:].any()


def test_a_function_of_the_run() -> None:
    """A user's function is the sum of its parts, explicit mentions of the recipe included."""
    run = solve(REFERENCE, Recipe(threshold=0.2))

    def mixed(run: Trajectory) -> float:
        ridge = run.recipe.at_steps(run.problem.steps).lambda_u
        return float(run.error[3] + 0.1 * run.q[-1] + ridge[1] ** 2)

    found = gradient(run, of=mixed)
    error, q = gradient(run, at=3), gradient(run, of="q")
    for name in ("lambda_u", "threshold", "alpha_u", "rho", "sharpness"):
        expected = np.asarray(error[name]) + 0.1 * np.asarray(q[name])
        if name == "lambda_u":
            expected = expected + 2 * 0.05 * np.eye(8)[1]
        np.testing.assert_allclose(found[name], expected, rtol=1e-7, atol=1e-9)
    assert found.at is None
    assert found.of == "mixed"


def test_what_depends_on_the_batch_itself() -> None:
    """The selected fraction moves with the threshold directly, and with the past through the
    state.
    """
    run = solve(REFERENCE, Recipe(threshold=0.4), tolerance=1e-12)
    found = gradient(run, of="fraction_selected", at=4)

    def at(x: float) -> float:
        recipe = Recipe(threshold=(0.4, 0.4, 0.4, x, 0.4, 0.4, 0.4, 0.4))
        return float(solve(REFERENCE, recipe, tolerance=1e-12).fraction_selected[4])

    assert found["threshold"][3] == pytest.approx(
        (at(0.4 + 1e-4) - at(0.4 - 1e-4)) / 2e-4, rel=1e-6
    )
    assert found["lambda_u"][2] != 0.0
    assert found["lambda_u"][3] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", ["logistic", "squared"])
@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(threshold=0.4, annealing=0.1),
        Recipe(labeler="hard", threshold=0.5, fix_bias=True),
    ],
    ids=["soft", "selection", "hard"],
)
def test_engines_agree(name: str, recipe: Recipe, plain_logistic: Any, plain_squared: Any) -> None:
    """The engine for any loss takes other averages, and differentiates labels by differences."""
    plain = plain_logistic if name == "logistic" else plain_squared
    problem = REFERENCE.replace(steps=2, loss=name)
    fast = gradient(solve(problem, recipe, tolerance=1e-12))
    slow = gradient(solve(problem.replace(loss=plain), recipe, tolerance=1e-12))
    assert set(fast) == set(slow)
    for field in fast:
        largest = np.abs(fast[field]).max()
        np.testing.assert_allclose(slow[field], fast[field], rtol=0, atol=1e-8 * largest + 1e-10)


class Clipped:
    """Labels cut off at a logit that moves with the sharpness: jumps of its own."""

    name = "clipped"

    def target(self, logit: Any, sharpness: float, loss: Any) -> Any:
        hard = np.where(logit > 0, 0.9, 0.1)
        return np.where(np.abs(logit) > 1 / sharpness, hard, 0.5 + 0.2 * np.tanh(logit))

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        return (-1 / sharpness, 1 / sharpness)


def test_a_labeler_with_jumps_that_move() -> None:
    problem = REFERENCE.replace(steps=1)
    recipe = Recipe(labeler=Clipped(), sharpness=1.5, lambda_u=0.1)
    found = gradient(solve(problem, recipe, tolerance=1e-12))

    def at(x: float) -> float:
        return float(solve(problem, recipe.replace(sharpness=x), tolerance=1e-12).error[-1])

    wide, narrow = ((at(1.5 + h) - at(1.5 - h)) / (2 * h) for h in (2e-3, 1e-3))
    assert found["sharpness"][0] == pytest.approx((4 * narrow - wide) / 3, rel=1e-5)


class Huber:
    """A loss whose curvature jumps: k has jumps of its own, and k' delta functions."""

    name = "huber"
    classes = (0.0, 1.0)
    kinks = (-1.0, 1.0)

    def link(self, x: Any) -> Any:
        return np.clip((np.asarray(x) + 1) / 2, 0, 1)

    def value(self, p: Any, x: Any) -> Any:
        return (1 - p) * self._half(x) + p * self._half(-np.asarray(x))

    def slope(self, p: Any, x: Any) -> Any:
        return (1 - p) * self.link(x) - p * self.link(-np.asarray(x))

    def curvature(self, p: Any, x: Any) -> Any:
        return np.where(np.abs(x) < 1, 0.5, 0.0) + 0 * p

    def third(self, p: Any, x: Any) -> Any:
        return 0 * (p + np.asarray(x))

    def _half(self, x: Any) -> Any:
        return np.where(x < -1, 0, np.where(x > 1, x, (np.asarray(x) + 1) ** 2 / 4))


@pytest.mark.parametrize("name", ["lambda_l", "lambda_u", "threshold", "sharpness"])
def test_a_loss_whose_curvature_jumps(name: str) -> None:
    problem = REFERENCE.replace(steps=1, loss=Huber())
    recipe = Recipe(lambda_l=0.1, lambda_u=0.1, threshold=0.3, sharpness=0.9)
    found = gradient(solve(problem, recipe, tolerance=1e-12), of="m")
    middle = getattr(recipe, name)

    def at(x: float) -> float:
        return float(solve(problem, recipe.replace(**{name: x}), tolerance=1e-12).m[-1])

    wide, narrow = (
        (at(middle + h) - at(middle - h)) / (2 * h) for h in (2e-3 * middle, 1e-3 * middle)
    )
    assert float(np.sum(found[name])) == pytest.approx((4 * narrow - wide) / 3, rel=1e-6)


def test_jumps_that_pass_over_nodes_are_not_counted_twice() -> None:
    class Cut(Clipped):
        name = "cut"

        def target(self, logit: Any, sharpness: float, loss: Any) -> Any:
            middle = 0.5 + 0.2 * np.tanh(logit)
            return np.where(logit > 1 / sharpness, 0.9, np.where(logit < -0.5, 0.1, middle))

        def jumps(self, sharpness: float) -> tuple[float, ...]:
            return (1 / sharpness, -0.5)

    recipe = Recipe(labeler=Cut(), threshold=0.4, sharpness=0.7)
    fine, rough = (
        gradient(solve(REFERENCE.replace(steps=1), recipe, tolerance=tolerance), of="m")
        for tolerance in (1e-13, 1e-10)
    )
    assert fine["sharpness"][0] == pytest.approx(rough["sharpness"][0], rel=1e-7)


def test_tiny_ridges_keep_their_digits() -> None:
    """The reference is an extrapolated difference of the solver at tolerance 1e-13."""
    problem = REFERENCE.replace(steps=3)
    found = gradient(solve(problem, Recipe(lambda_l=1e-8, lambda_u=1e-8)))
    assert found["lambda_l"] == pytest.approx(-29342.8911, rel=1e-6)


def test_differences_stay_in_the_domain() -> None:
    problem = REFERENCE.replace(steps=2)
    run = solve(problem, Recipe(lambda_l=1e-3, lambda_u=1e-9, threshold=1e-9, annealing=1e-9))
    for of in ("objective", "fraction_selected"):
        assert np.isfinite(gradient(run, of=of)["threshold"]).all()


def test_mapping() -> None:
    found = gradient(solve(REFERENCE, Recipe()))
    assert found["lambda_u"].shape == (8,)
    assert isinstance(found["lambda_l"], float)
    assert isinstance(found["annealing"], float)
    assert len(dict(found)) == 11
    assert found.value == pytest.approx(0.335, abs=0.1)
    assert gradient(solve(REFERENCE, Recipe(annealing=[0.1] * 8)))["annealing"].shape == (8,)
    hard = gradient(solve(REFERENCE, Recipe(sharpness=math.inf, fix_bias=True)))
    assert "sharpness" not in hard
    assert "annealing" not in dict(hard)
    with pytest.raises(InvalidInput, match="lambda_u"):
        found["lambda_y"]
    assert found == found
    assert found.get("lambda_y", 7) == 7
    assert hard.get("sharpness") is None


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    run = solve(REFERENCE, Recipe())
    collapsed = solve(REFERENCE.replace(steps=16), Recipe(sharpness=math.inf))
    assert collapsed.collapsed_at is not None
    with pytest.raises(NoGradient, match="collapsed at step"):
        gradient(collapsed)
    with pytest.raises(NoGradient, match="collapsed at step"):
        gradient(collapsed, of=lambda run: float(run.error[0]))
    assert gradient(collapsed, at=2)["lambda_l"] != 0.0
    with pytest.raises(InvalidInput, match="at = 9"):
        gradient(run, at=9)
    with pytest.raises(InvalidInput, match="did you mean 'error'"):
        gradient(run, of="eror")
    with pytest.raises(NoGradient, match="overlap does not exist at step 0"):
        gradient(run, of="overlap", at=0)
    with pytest.raises(InvalidInput, match="trajectory"):
        gradient(REFERENCE)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="one finite number"):
        gradient(run, of=lambda run: run.q)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidInput, match="one finite number"):
        gradient(run, of=lambda run: "abc")  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidInput, match="at no step"):
        gradient(run, of=lambda run: float(run.q[-1]), at=3)
    with pytest.raises(NoGradient, match="one class"):
        gradient(collapsed, at=7)
    monkeypatch.setattr(adjoint, "ILL_CONDITIONED", 10.0)
    with pytest.raises(NoGradient, match="ill-conditioned"):
        gradient(run)


def test_a_nearly_singular_stage() -> None:
    """One point a feature and hardly any ridge: the fit is free along a direction, and the stage
    says so.
    """
    problem = Problem(alpha_l=0.5, alpha_u=1.0, rho=0.5, delta=0.75**2, steps=1, loss="squared")
    run = solve(problem, Recipe(lambda_u=1e-13))
    assert gradient(run).condition[1] > 1e5


@pytest.mark.parametrize("of", ["objective", "train_loss"])
def test_a_threshold_that_rejects_no_point_has_no_slope(of: str) -> None:
    """The clusters lie ten standard deviations from the plane: a small threshold changes
    nothing.
    """
    run = solve(Problem(4.0, 4.0, 0.4, 0.01, steps=2), Recipe(0.05, 0.05))
    np.testing.assert_allclose(gradient(run, of)["threshold"], 0.0, atol=1e-15)
