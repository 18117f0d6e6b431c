"""Continuous time: against discrete runs at small ridges, simulated systems, and its own rates."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, continuum, simulate, solve
from selftrain.errors import InvalidInput, NoExpansion, SelfTrainError
from selftrain.expansions import squared_closed_form
from selftrain.observables import selected_shares
from selftrain.results import ContinuumPath

REFERENCE = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=100)

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    "logistic": ({}, {}, 0.3),
    "logistic, selection": ({"alpha_u": 4.0}, {"threshold": 0.5}, 1.0),
    "logistic, bias fixed": ({"rho": 0.2}, {"fix_bias": True}, 0.3),
    "squared, domain shift": ({"loss": "squared", "rho_u": 0.3, "delta_u": 0.9}, {}, 1.0),
    "squared, selection, bias fixed": (
        {"loss": "squared", "alpha_u": 3.0},
        {"threshold": 0.3, "fix_bias": True},
        2.0,
    ),
}


def path_of(name: str) -> ContinuumPath:
    data, chosen, until = CASES[name]
    return continuum(REFERENCE.replace(**data), Recipe(**chosen), until=until)


@pytest.mark.parametrize("name", CASES)
def test_discrete_runs_come_closer_in_proportion_to_the_ridge(name: str) -> None:
    path = path_of(name)
    assert path.accuracy <= 1e-10
    largest = []
    for steps in (500, 1000, 2000):
        problem = path.problem.replace(steps=steps)
        recipe = path.recipe.replace(lambda_u=path.until / steps)
        largest.append(path.compare(solve(problem, recipe)).largest)
    for quantity in ("m", "q", "bias", "cosine", "squared_cosine", "error"):
        first, second, third = (row[quantity] for row in largest)
        if quantity == "bias" and path.recipe.fix_bias:
            assert third < 1e-12
            continue
        assert 1.8 < first / second < 2.2, (quantity, largest)
        assert 1.9 < second / third < 2.1, (quantity, largest)
        assert third < 0.02 * max(abs(getattr(path(0.0), quantity)), 0.1), (quantity, largest)


@pytest.mark.parametrize("name", CASES)
def test_the_path_moves_at_the_rates_of_a_step(name: str) -> None:
    path = path_of(name)
    for tau in (0.1 * path.until, 0.7 * path.until):
        step = 2e-4 * path.until
        ahead, behind, rates = path(tau + step), path(tau - step), path.first_order(tau)
        for quantity in ("m", "q", "v", "bias", "squared_cosine"):
            slope = (getattr(ahead, quantity) - getattr(behind, quantity)) / (2 * step)
            expected = getattr(rates, f"{quantity}1")
            assert slope == pytest.approx(expected, rel=1e-5, abs=1e-6), quantity


ANNEALED: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    "logistic": ({}, {}, 0.1),
    "logistic, bias fixed": ({"rho": 0.2}, {"fix_bias": True}, 0.1),
    "logistic, selection, bias fixed": (
        {"alpha_u": 4.0, "rho": 0.3},
        {"threshold": 0.5, "fix_bias": True},
        0.4,
    ),
    "squared": ({"loss": "squared", "rho": 0.3}, {}, 1.0),
    "squared, selection, bias fixed": (
        {"loss": "squared", "alpha_u": 3.0},
        {"threshold": 0.3, "fix_bias": True},
        1.0,
    ),
}


@pytest.mark.parametrize("name", ANNEALED)
def test_annealed_runs_come_closer_in_proportion_to_the_ridge(name: str) -> None:
    """With a T^2 = 4 labels are sharpened by exp(2) in all, however many steps there are."""
    data, chosen, until = ANNEALED[name]
    problem, largest, dose = REFERENCE.replace(**data), [], 4.0
    once = Recipe(lambda_u=until, annealing=dose, **chosen)
    path = continuum(problem.replace(steps=1), once, tolerance=1e-8)
    for steps in (256, 1024, 4096):
        recipe = Recipe(lambda_u=until / steps, annealing=dose / steps**2, **chosen)
        largest.append(path.compare(solve(problem.replace(steps=steps), recipe)).largest)
    for quantity in ("m", "q", "v", "bias", "error"):
        first, second, third = (row[quantity] for row in largest)
        if quantity == "bias" and path.recipe.fix_bias:
            assert third < 1e-12
            continue
        assert 3.5 < first / second < 4.4, (quantity, largest)
        assert 3.8 < second / third < 4.2, (quantity, largest)
    for tau in (0.3 * until, 0.8 * until):
        step, rates = 2e-4 * until, path.first_order(tau)
        for quantity in ("m", "q", "v", "bias", "squared_cosine"):
            ahead, behind = (getattr(path(tau + x), quantity) for x in (step, -step))
            expected = getattr(rates, f"{quantity}1")
            slope = (ahead - behind) / (2 * step)
            assert slope == pytest.approx(expected, rel=1e-4, abs=1e-4), quantity


def test_with_annealing_a_ridge_is_more_than_a_clock() -> None:
    """Ridges that change on the way: each stretch has its own pace of sharpening."""
    largest = []
    for n in (50, 100):
        problem = REFERENCE.replace(steps=3 * n)
        ridges = [0.1 / n] * n + [0.05 / n] * (2 * n)
        recipe = Recipe(lambda_u=ridges, annealing=0.5 / n**2, fix_bias=True)
        path = continuum(problem, recipe, tolerance=1e-8)
        assert [piece.begin for piece in path.stretches] == pytest.approx([0.0, 0.1])
        largest.append(path.compare(solve(problem, recipe)).largest)
    for quantity in ("m", "q", "v", "error"):
        assert 1.7 < largest[0][quantity] / largest[1][quantity] < 2.3, quantity
    with pytest.raises(InvalidInput, match="the same labelled set"):
        path.compare(solve(problem, recipe.replace(annealing=0.6 / n**2)))


def test_finite_systems_follow_the_path() -> None:
    """Matrix-free systems of 4096 features at a small ridge; neither solver nor expansion
    involved.
    """
    ridge, steps = 2e-3, 50
    problem = REFERENCE.replace(steps=steps)
    path = continuum(problem, Recipe(lambda_u=ridge))
    runs = simulate(
        problem, Recipe(lambda_u=ridge), features=4096, seeds=6, probes=0, progress=False
    )
    times = ridge * np.arange(steps + 1)
    times[-1] = path.until
    here = path(times)
    for quantity, moved in (("cosine", 0.2), ("q", 1.6), ("error", 0.016)):
        measured, expected = runs.mean(quantity), getattr(here, quantity)
        assert abs(expected[-1] - expected[0]) > moved
        slack = 5 * runs.sem(quantity) + 6 * ridge * moved
        assert np.all(np.abs(measured - expected) < slack), quantity
        assert np.abs(measured - expected).max() < 0.15 * moved, quantity


def test_times_of_alignment() -> None:
    path = continuum(REFERENCE, Recipe(), until=0.6)
    assert path.half_aligned is not None
    assert path.aligned is not None
    assert path(path.half_aligned).squared_cosine == pytest.approx(0.5, abs=1e-9)
    assert path(path.aligned).squared_cosine == pytest.approx(0.99, abs=1e-9)
    short = continuum(REFERENCE, Recipe(), until=0.01)
    assert short.half_aligned is None
    assert short.aligned is None
    begun = continuum(REFERENCE.replace(alpha_l=5.0), Recipe(), until=0.01)
    assert begun.half_aligned == 0.0


@pytest.mark.parametrize(
    ("rho", "until", "where"), [(0.4, 0.3, "interior"), (0.4, 0.03, "end"), (0.1, 0.3, "start")]
)
def test_the_best_time(rho: float, until: float, where: str) -> None:
    path = continuum(REFERENCE.replace(rho=rho), Recipe(), until=until)
    best = path.best
    assert best.where == where
    assert best.error == pytest.approx(path(best.tau).error, rel=1e-12)
    grid = path(np.linspace(0, until, 1001))
    assert best.error <= grid.error.min() + 1e-12
    assert best.tau == pytest.approx(grid.tau[np.argmin(grid.error)], abs=until / 900)


def test_the_clock_is_the_sum_of_the_ridges() -> None:
    """A schedule of ridges changes the clock of the discrete run and nothing else."""
    ridges = [2e-3] * 50 + [1e-3] * 100
    problem, recipe = REFERENCE.replace(steps=150), Recipe(lambda_u=ridges)
    path = continuum(problem, recipe)
    assert path.until == pytest.approx(0.2, rel=1e-12)
    plain = continuum(REFERENCE, Recipe(lambda_u=2e-3))
    assert path(0.15).q == pytest.approx(plain(0.15).q, rel=1e-8)
    compared = path.compare(solve(problem, recipe))
    assert compared.tau[[50, 100]] == pytest.approx([0.1, 0.15])
    assert compared.largest["cosine"] < 0.01


def test_a_step_rules_the_time_it_takes() -> None:
    """Batches that change halfway: the discrete run converges to the path in pieces."""
    until, largest = 0.2, []
    for half in (100, 200):
        problem = REFERENCE.replace(
            steps=2 * half,
            alpha_u=[2.0] * half + [4.0] * half,
            rho_u=[0.4] * half + [0.6] * half,
            delta_u=[0.5] * half + [0.8] * half,
            test=(0.4, 0.5),
        )
        recipe = Recipe(lambda_u=until / (2 * half), threshold=[0.0] * half + [0.3] * half)
        path = continuum(problem, recipe)
        assert [piece.begin for piece in path.stretches] == pytest.approx([0.0, 0.1])
        largest.append(path.compare(solve(problem, recipe)).largest)
    for quantity in ("m", "q", "bias", "cosine", "error"):
        assert 1.8 < largest[0][quantity] / largest[1][quantity] < 2.2, quantity


def test_a_schedule_of_equal_values_is_the_value() -> None:
    written = REFERENCE.replace(alpha_u=[2.0] * 100, rho_u=[0.4] * 100, delta_u=[0.75**2] * 100)
    once = continuum(REFERENCE, Recipe(lambda_u=1e-3))
    again = continuum(written, Recipe(lambda_u=[1e-3] * 100, threshold=[0.0] * 100))
    assert len(again.stretches) == 1
    assert again(0.1).q == once(0.1).q


def test_a_batch_that_becomes_too_small_ends_the_path() -> None:
    problem = REFERENCE.replace(steps=2, alpha_u=(2.0, 0.9))
    recipe = Recipe(lambda_u=0.05)
    with pytest.raises(
        NoExpansion, match=r"tau = 0\.05: alpha_u .* must be > 1, got 0\.9"
    ) as refused:
        continuum(problem, recipe)
    assert refused.value.tau == pytest.approx(0.05)
    path = continuum(problem, recipe, on_failure="partial")
    assert path.until == pytest.approx(0.05)
    assert isinstance(path.failure, NoExpansion)
    whole = continuum(REFERENCE, recipe, until=0.05)
    assert path(0.05).q == pytest.approx(whole(0.05).q, rel=1e-9)
    with pytest.raises(NoExpansion, match=r"at tau = 0: "):
        continuum(REFERENCE.replace(alpha_u=0.9), recipe, on_failure="partial")


def test_selection_that_rejects_too_much_on_the_way_ends_the_path() -> None:
    """Under domain shift the selected share rises, falls, and crosses 1/alpha_u."""
    problem = Problem(2.0, 1.4615, 0.35, 0.5, steps=1, rho_u=0.6)
    recipe = Recipe(lambda_l=0.1, threshold=0.5)
    path = continuum(problem, recipe, until=1.0, tolerance=1e-4, on_failure="partial")
    assert isinstance(path.failure, NoExpansion)
    assert path.until == pytest.approx(0.0079658, abs=1e-5)
    last = path(path.until)
    variance = 0.5 * last.q
    shares = selected_shares(
        last.m, (variance, variance), last.bias, np.array(0.6), 0.5 * np.sqrt(last.q)
    )
    share = sum(shares)
    assert 1.4615 * float(share) == pytest.approx(1.0, abs=1e-3)
    assert path.first_order(0.0).points > 1.002
    with pytest.raises(NoExpansion, match=r"at tau = 0\.00796"):
        continuum(problem, recipe, until=1.0, tolerance=1e-4)
    before = continuum(problem, recipe, until=0.005, tolerance=1e-6)
    assert before.failure is None


def test_very_long_paths_keep_their_digits() -> None:
    """The squared loss at 600 time scales: 1 - M near 1e-87, by its closed form."""
    problem = REFERENCE.replace(loss="squared")
    path = continuum(problem, Recipe(), until=90.0)
    variance, delta = 4 * 0.4 * 0.6, 0.75**2
    ratio = path(0.0).v / path(0.0).m ** 2
    scale = 0.5 * delta / variance * (delta + variance)
    expected = math.log(ratio) - 90.0 / scale
    last = path(90.0)
    assert math.log(last.v / last.m**2) == pytest.approx(expected, rel=1e-9)
    assert last.one_minus_squared_cosine < 1e-80


@pytest.mark.parametrize(
    ("problem", "recipe", "options", "field"),
    [
        (REFERENCE, Recipe(sharpness=1.5), {}, "sharpness"),
        (REFERENCE, Recipe(labeler="hard"), {}, "labeler"),
        (REFERENCE, Recipe(), {"until": -1.0}, "until"),
        (REFERENCE, Recipe(), {"until": math.inf}, "until"),
        (REFERENCE, Recipe(), {"tolerance": 0.5}, "tolerance"),
        (REFERENCE, Recipe(), {"on_failure": "ignore"}, "on_failure"),
        (REFERENCE.replace(steps=0), Recipe(), {}, "steps"),
    ],
)
def test_refusals_name_the_field(
    problem: Problem, recipe: Recipe, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        continuum(problem, recipe, **options)
    assert refused.value.field == field


def test_only_runs_of_the_same_kind_are_compared() -> None:
    path = continuum(REFERENCE, Recipe(lambda_u=1e-3))
    for problem, recipe in (
        (REFERENCE.replace(rho=0.3), Recipe(lambda_u=1e-3)),
        (REFERENCE, Recipe(lambda_u=1e-3, lambda_l=0.1)),
        (REFERENCE, Recipe(lambda_u=1e-3, fix_bias=True)),
        (REFERENCE, Recipe(lambda_u=1e-3, threshold=0.1)),
        (REFERENCE.replace(loss="squared"), Recipe(lambda_u=1e-3)),
    ):
        with pytest.raises(InvalidInput, match="the same labelled set"):
            path.compare(solve(problem.replace(steps=3), recipe))


def test_a_path_is_a_table_a_figure_and_can_be_stored() -> None:
    problem = REFERENCE.replace(loss="squared")
    path = continuum(problem, Recipe(lambda_u=0.01))
    frame = path.to_frame(5)
    assert list(frame.index) == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert frame["error"].iloc[2] == path(0.5).error
    data = path.to_xarray(3)
    assert Problem.from_json(data.attrs["problem"]) == problem
    assert float(data["q"][2]) == path(path.until).q
    figure = path.plot(solve(problem, Recipe(lambda_u=0.01)))
    assert len(figure.axes) == 4
    copy = pickle.loads(pickle.dumps(path))
    assert copy(0.3).error == path(0.3).error
    many = path(np.array([[0.1, 0.2], [0.3, 0.4]]))
    assert many.q.shape == (2, 2)
    assert many.q[1, 0] == path(0.3).q
    with pytest.raises(InvalidInput, match="tau"):
        path(1.5)


def test_a_path_whose_rates_are_rounding_is_given_up() -> None:
    with pytest.raises(SelfTrainError, match="given up at tau"):
        continuum(REFERENCE.replace(alpha_u=1 + 1e-7), Recipe(), until=5e-8)


def test_a_batch_that_begins_at_the_end_has_no_part() -> None:
    problem = REFERENCE.replace(alpha_u=(2.0,) * 8 + (0.9,), steps=9)
    assert continuum(problem, Recipe(lambda_u=0.1), until=0.8).until == 0.8


def test_runs_with_other_labels_are_not_compared_or_drawn() -> None:
    path = continuum(REFERENCE, Recipe(), until=0.1)
    sharp = solve(REFERENCE.replace(steps=2), Recipe(sharpness=2.0))
    other = solve(REFERENCE.replace(steps=2, rho=0.2), Recipe())
    with pytest.raises(InvalidInput, match="sharpness"):
        path.compare(sharp)
    with pytest.raises(InvalidInput):
        path.plot(other)
    with pytest.raises(InvalidInput, match="run"):
        path.compare(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="tau"):
        path("x")


def unknowns_of(points: Any) -> np.ndarray:
    return np.array([0.5 * np.log(points.q), np.arcsinh(points.m / np.sqrt(points.v)), points.bias])


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-10])
@pytest.mark.parametrize("alpha_u", [1.05, 2.0])
@pytest.mark.parametrize("until", [0.01, 0.1, 1.0])
def test_the_accuracy_is_not_better_than_the_truth(
    alpha_u: float, until: float, tolerance: float
) -> None:
    """Against the closed form; where two integrations stepped alike they agreed to 0, and erred by
    6e-5.
    """
    problem = REFERENCE.replace(loss="squared", alpha_u=alpha_u)
    path = continuum(problem, Recipe(), until, tolerance)
    times = np.linspace(0, until, 401)
    exact = unknowns_of(squared_closed_form(problem, Recipe())(times))
    error = np.abs(unknowns_of(path(times)) - exact).max()
    assert error <= path.accuracy <= tolerance


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("logistic")])
def test_the_accuracy_is_not_better_than_a_much_finer_path(name: str) -> None:
    data, chosen, until = CASES[name]
    problem, recipe = REFERENCE.replace(**data), Recipe(**chosen)
    times = np.linspace(0, until, 401)
    exact = unknowns_of(continuum(problem, recipe, until, 1e-11)(times))
    for tolerance in (1e-3, 1e-4, 1e-6):
        path = continuum(problem, recipe, until, tolerance)
        error = np.abs(unknowns_of(path(times)) - exact).max()
        assert error <= path.accuracy <= tolerance, tolerance


def test_the_direction_keeps_its_digits_where_v_is_too_small_for_a_number() -> None:
    """1 - M near 1e-222 with weights of 1e-65: v = 1e-352 is none, and 1 - M is known by its closed
    form.
    """
    problem = REFERENCE.replace(loss="squared")
    form = squared_closed_form(problem, Recipe())
    path = continuum(problem, Recipe(), until=228.0)
    last, exact = path(228.0), form(228.0)
    odds = math.log(form.start.v / form.start.m**2) - 228.0 / form.tau_squared_cosine
    assert last.v == exact.v == 0.0
    assert math.log(exact.one_minus_squared_cosine) == pytest.approx(odds, rel=1e-14)
    assert last.one_minus_squared_cosine == pytest.approx(exact.one_minus_squared_cosine, rel=1e-7)
    assert last.cosine == 1.0
    assert last.error == pytest.approx(0.4, abs=1e-12)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (lambda path: path.to_frame(0), "points"),
        (lambda path: path.to_frame(2.5), "points"),
        (lambda path: path.to_xarray(-1), "points"),
        (lambda path: path([]), "tau"),
        (lambda path: path([[0.0], [0.0, 0.1]]), "tau"),
        (lambda path: path.first_order([0.0, 0.1]), "tau"),
        (lambda path: path.compare(solve(path.problem.replace(steps=0), path.recipe)), "steps"),
        (lambda path: path.compare(solve(path.problem, Recipe(lambda_u=0.2))), "lambda_u"),
        (lambda path: path.plot(solve(path.problem.replace(steps=0), path.recipe)), "steps"),
    ],
)
def test_wrong_arguments_of_a_path_are_named(wrong: Any, field: str) -> None:
    path = continuum(REFERENCE.replace(loss="squared"), Recipe(), until=0.1)
    with pytest.raises(InvalidInput) as refused:
        wrong(path)
    assert refused.value.field == field
    assert " must " in str(refused.value)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_balanced_classes_have_no_bias_however_small_the_weights(loss: str) -> None:
    r"""Rounding of B would outgrow weights of 1e-17; the error is that of the best direction,
    $H(1/\sqrt\Delta)$.
    """
    path = continuum(REFERENCE.replace(loss=loss, rho=0.5), Recipe(), until=60.0, tolerance=1e-6)
    last = path(60.0)
    assert math.sqrt(last.q) < 1e-16
    assert last.bias == last.bias_to_norm == 0.0
    assert last.error == pytest.approx(0.5 * math.erfc(1 / 0.75 / math.sqrt(2)), rel=1e-9)


def test_a_path_that_overflows_is_not_followed_again() -> None:
    """Sharpened so fast, the labels collapse in a finite time: no integrations agree up to it."""
    problem = Problem(0.5, 3.0, 0.4, 0.5625, steps=64)
    with pytest.raises(SelfTrainError, match=r"at tau = 0\.0240\d*: the path overflows"):
        continuum(problem, Recipe(0.05, 1e-3, annealing=0.05))
