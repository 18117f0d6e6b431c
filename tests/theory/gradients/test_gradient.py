"""Gradients against Richardson-extrapolated differences of the solver, and what has no gradient."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selftrain import Clusters, Problem, Recipe, gradient, optimize, solve
from selftrain.errors import InvalidInput, NoGradient, StageError
from selftrain.theory.gradients import gradient as adjoint
from selftrain.theory.gradients.gradient import Gradient
from selftrain.theory.trajectory import Trajectory

TOLERANCE = 1e-13
FIELDS = {
    "alpha_l": "problem", "rho": "problem", "delta": "problem",
    "alpha_u": "problem", "rho_u": "problem", "delta_u": "problem",
    "lambda_l": "recipe", "annealing": "recipe",
    "lambda_u": "recipe", "threshold": "recipe", "sharpness": "recipe",
}  # fmt: skip

WIDTHS = (8e-3, 2e-3, 5e-4, 3.2e-2)
"""Relative changes of an entry; each is halved twice."""

ROUNDING = 4e-12
"""Relative accuracy of a solved state, at best."""

Entry = tuple[str, int | None]
"""A field, and the step if it has one entry per step."""


def value(problem: dict[str, Any], recipe: dict[str, Any], of: str) -> float:
    run = solve(Problem(**problem), Recipe(**recipe), tolerance=TOLERANCE)
    return float(getattr(run, of)[-1])


def scale(name: str, entry: float) -> float:
    """What a change of an entry is measured by."""
    return min(entry, 1 - entry) if name.startswith("rho") else entry or 0.1


def entries(problem: dict[str, Any], recipe: dict[str, Any]) -> Iterator[tuple[Entry, float]]:
    """Every number that a gradient has an entry for."""
    for name, home in FIELDS.items():
        given = (problem if home == "problem" else recipe)[name]
        if isinstance(given, tuple):
            yield from (((name, t), entry) for t, entry in enumerate(given))
        else:
            yield (name, None), given


class Estimate(NamedTuple):
    """A derivative, and how far two extrapolations of it are apart."""

    slope: float
    apart: float


def differences(
    problem: dict[str, Any], recipe: dict[str, Any], of: str, direction: dict[Entry, float]
) -> Estimate:
    """The derivative along a direction (relative changes of entries) by extrapolated differences.

    Of several widths the one counts whose own extrapolations agree best: the gradient under test
    has no part in the choice. From an entry of zero differences are one-sided.
    """
    start = dict(entries(problem, recipe))
    one_sided = any(start[entry] == 0.0 for entry in direction)

    def at(shift: float) -> float:
        changed: dict[str, dict[str, Any]] = {"problem": dict(problem), "recipe": dict(recipe)}
        for (name, t), share in direction.items():
            given = changed[FIELDS[name]]
            moved = start[name, t] + shift * share * scale(name, start[name, t])
            if t is None:
                given[name] = moved
            else:
                given[name] = (*given[name][:t], moved, *given[name][t + 1 :])
        return value(changed["problem"], changed["recipe"], of)

    middle = at(0.0) if one_sided else 0.0

    def estimate(width: float) -> Estimate:
        shifts = [width / 2**i for i in range(4 if one_sided else 3)]
        if one_sided:
            rows, ratio = [(at(h) - middle) / h for h in shifts], 2.0
        else:
            rows, ratio = [(at(h) - at(-h)) / (2 * h) for h in shifts], 4.0
        power = ratio
        while len(rows) > 1:
            last = rows[-1]
            rows = [(power * b - a) / (power - 1) for a, b in itertools.pairwise(rows)]
            power *= ratio
        return Estimate(rows[0], abs(rows[0] - last))

    best = estimate(WIDTHS[0])
    for width in WIDTHS[1:]:
        if best.apart <= 1e-7 * abs(best.slope):
            break
        best = min(best, estimate(width), key=lambda found: found.apart)
    return best


def check(
    problem: dict[str, Any],
    recipe: dict[str, Any],
    of: str,
    found: Gradient,
    direction: dict[Entry, float],
) -> None:
    """The slope along a direction to 1e-6 of its largest part, or to what rounding leaves."""
    start = dict(entries(problem, recipe))
    parts = [
        share * scale(name, start[name, t]) * float(np.atleast_1d(found[name])[t or 0])
        for (name, t), share in direction.items()
    ]
    expected = differences(problem, recipe, of, direction)
    rounding = ROUNDING * abs(found.value) / (WIDTHS[0] / 8)
    allowed = max(1e-6 * max(map(abs, parts)), rounding, 1e-11)
    assert expected.apart <= 10 * allowed, (of, direction, expected)
    assert sum(parts) == pytest.approx(expected.slope, abs=allowed), (of, direction, expected)


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


def solved(
    problem: dict[str, Any], recipe: dict[str, Any], of: str
) -> tuple[Trajectory, Gradient] | None:
    """The run and its gradient; None where there is none, which is checked."""
    try:
        run = solve(Problem(**problem), Recipe(**recipe), tolerance=TOLERANCE)
    except StageError:
        return None
    if run.collapsed_at is not None:
        with pytest.raises(NoGradient, match="collapsed"):
            gradient(run)
        return None
    mixture = run.problem.test_mixture
    if of == "error" and run.error[-1] in (mixture.rho, 1 - mixture.rho):
        with contextlib.suppress(NoGradient):  # one class: nothing may be left of the derivatives
            return run, gradient(run, of=of)
        return None
    found = gradient(run, of=of)
    if math.isinf(recipe["sharpness"][0]):
        for name in ("sharpness", "annealing"):
            with pytest.raises(NoGradient, match="hard"):
                found[name]
    return run, found


RANDOM = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@settings(RANDOM, max_examples=24)
@given(cases(), st.integers(0, 2**32))
def test_all_entries_at_once(case: tuple[dict[str, Any], dict[str, Any], str], seed: int) -> None:
    """The slope along a random direction in which every entry that is not zero moves."""
    problem, recipe, of = case
    known = solved(problem, recipe, of)
    if known is None:
        return
    random = np.random.default_rng(seed)
    direction = {
        entry: float(random.choice([-1.0, 1.0]) * random.uniform(0.5, 1.0))
        for entry, now in entries(problem, recipe)
        if now not in (0.0, math.inf) and entry[0] in known[1]
    }
    check(problem, recipe, of, known[1], direction)


@settings(RANDOM, max_examples=8)
@given(cases())
def test_every_entry_alone(case: tuple[dict[str, Any], dict[str, Any], str]) -> None:
    """Small entries too, and those of a threshold or an annealing of zero."""
    problem, recipe, of = case
    known = solved(problem, recipe, of)
    if known is None:
        return
    for entry, now in entries(problem, recipe):
        if now != math.inf and entry[0] in known[1]:
            check(problem, recipe, of, known[1], {entry: 1.0})


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


def test_a_loss_whose_curvature_jumps() -> None:
    problem = REFERENCE.replace(steps=1, loss=Huber())
    recipe = Recipe(lambda_l=0.1, lambda_u=0.1, threshold=0.3, sharpness=0.9)
    run = solve(problem, recipe, tolerance=1e-12)
    found = gradient(run, of="m")

    for name in ("lambda_l", "lambda_u", "threshold", "sharpness"):
        middle = getattr(recipe, name)

        def at(x: float, name: str = name) -> float:
            moved = recipe.replace(**{name: x})
            return float(solve(problem, moved, tolerance=1e-12, warm_start=run).m[-1])

        h = 2e-4 * middle
        expected = (at(middle + h) - at(middle - h)) / (2 * h)
        assert float(np.sum(found[name])) == pytest.approx(expected, rel=1e-6), name


TWO_COVARIANCES = Clusters([1.0, 0.0], (np.diag([0.5, 0.9]), np.array([[0.7, 0.2], [0.2, 0.4]])))


@pytest.mark.parametrize(
    ("problem", "recipe", "of"),
    [
        ({}, {}, "error"),
        ({"rho": 0.5}, {"annealing": 0.1}, "error"),
        ({}, {"threshold": 0.4, "sharpness": math.inf, "fix_bias": True}, "m"),
        ({"loss": "squared"}, {}, "cosine"),
        ({"loss": "own"}, {}, "bias"),
        ({"delta": None, "clusters": TWO_COVARIANCES}, {}, "error"),
        ({"steps": 0}, {}, "train_loss"),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_proportion_of_wrong_labels(
    problem: dict[str, Any], recipe: dict[str, Any], of: str, noise: float, plain_logistic: Any
) -> None:
    """Against differences of the solver; without wrong labels from above."""
    given: dict[str, Any] = {"alpha_l": 0.8, "alpha_u": 2.0, "rho": 0.35, "delta": 0.6, "steps": 2}
    given |= problem
    if given.get("loss") == "own":
        given["loss"] = plain_logistic
    choice = {"lambda_l": 0.05, "lambda_u": 0.03} | recipe

    def at(share: float) -> float:
        return value({**given, "label_noise": share}, choice, of)

    run = solve(Problem(**given, label_noise=noise), Recipe(**choice), tolerance=TOLERANCE)
    if noise:
        h = 1e-4
        outer, inner = (at(noise + k * h) - at(noise - k * h) for k in (2, 1))
        expected = (8 * inner - outer) / (12 * h)
    else:
        h = 1e-3
        f0, f1, f2, f3, f4 = (at(k * h) for k in range(5))
        expected = (-25 * f0 + 48 * f1 - 36 * f2 + 16 * f3 - 3 * f4) / (12 * h)
    assert gradient(run, of)["label_noise"] == pytest.approx(expected, rel=1e-7)


def test_a_matrix_of_wrong_labels_has_no_single_derivative() -> None:
    problem = Problem(0.8, 2.0, 0.35, 0.6, steps=1, label_noise=[[0.9, 0.1], [0.2, 0.8]])
    slope = gradient(solve(problem, Recipe(0.05, 0.03)))
    with pytest.raises(NoGradient, match="it is a matrix"):
        slope["label_noise"]
    assert "label_noise" not in slope


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
    assert len(dict(found)) == 12
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
    with pytest.raises(InvalidInput, match=r"at must be a step from 0 to 8.*got 9"):
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


BALANCED = Problem(0.5, 0.5, 0.5, 0.75**2, steps=80)
SHRINKING = Recipe(0.05, 0.1, threshold=0.5)


@pytest.mark.parametrize("steps", [48, 80, 256])
def test_rounding_of_a_bias_that_is_zero_by_symmetry(steps: int) -> None:
    """Balanced classes whose weights shrink a billionfold: the bias, which no ridge shrinks, has no
    part in a derivative. The last steps forget the first, and error(rho) = error(1 - rho).
    """
    problem = BALANCED.replace(steps=steps)
    slope = gradient(solve(problem, SHRINKING))

    def error(recipe: Recipe) -> float:
        return float(solve(problem, recipe, tolerance=1e-13).error[-1])

    for name, now in (("threshold", 0.5), ("lambda_u", 0.1)):
        up, down = (error(SHRINKING.replace(**{name: now + h})) for h in (1e-4, -1e-4))
        assert slope.total(name) == pytest.approx((up - down) / 2e-4, rel=1e-5)
    assert abs(slope["lambda_l"]) < 1e-9
    assert slope["rho"] == 0.0
    assert not np.any(slope["rho_u"])


@pytest.mark.parametrize("of", ["bias", "error"])
def test_the_bias_of_balanced_classes_moves_with_rho(of: str) -> None:
    """What the mirror turns around keeps its derivatives in what it turns around."""
    problem = BALANCED.replace(steps=3, test=(0.3, 0.75**2))
    run = solve(problem, SHRINKING)
    assert run.bias[-1] == 0.0

    def value(rho: float) -> float:
        run = solve(problem.replace(rho=rho), SHRINKING, tolerance=1e-13)
        return float(getattr(run, of)[-1])

    change = (value(0.5 + 1e-6) - value(0.5 - 1e-6)) / 2e-6
    assert abs(change) > 1.0
    assert gradient(run, of)["rho"] == pytest.approx(change, rel=1e-5)


def test_a_threshold_of_shrinking_weights_leaves_its_start() -> None:
    """The best threshold of balanced classes, against a search without derivatives."""
    problem = BALANCED.replace(steps=100)
    found = optimize(problem, over=("threshold",), start=SHRINKING)
    assert found.error == pytest.approx(0.18474197, abs=1e-8)  # Nelder and Mead's method


def test_a_threshold_where_the_units_of_faded_weights_change() -> None:
    """The limit of a step is in the units of the step, the weights that set it in those of the step
    before.
    """
    problem = BALANCED.replace(steps=500)
    run = solve(problem, SHRINKING, tolerance=1e-12)
    assert run.fading is not None
    at = int(np.argmax(run.fading.exponents > 0))
    assert 0 < at < 500

    def error(x: float) -> float:
        limits = tuple(x if t == at else 0.5 for t in range(1, 501))
        moved = solve(problem, SHRINKING.replace(threshold=limits), tolerance=1e-12)
        return float(moved.error[at])

    change = (error(0.5 + 1e-4) - error(0.5 - 1e-4)) / 2e-4
    assert abs(change) > 1e-3
    assert gradient(run, at=at)["threshold"][at - 1] == pytest.approx(change, rel=1e-6)
