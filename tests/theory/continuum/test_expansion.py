"""The expansion in the ridge: against the solver at small ridges, closed forms, quadrature, and
refusals.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit

import selftrain
from selftrain import Problem, Recipe, SelfTrainError, Trajectory, solve
from selftrain.errors import InvalidInput, NoExpansion, StateOverflow
from selftrain.expansions import State, first_order
from selftrain.theory.continuum.expansion import measured_noise, second_order_noise
from selftrain.theory.continuum.linear_response import GivenBatch, respond

BASE: dict[str, Any] = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "delta": 0.75**2}

SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "logistic": ({}, {}),
    "logistic, balanced": ({"rho": 0.5}, {"lambda_l": 0.01}),
    "logistic, imbalanced": ({"rho": 0.1, "alpha_u": 5.0}, {}),
    "logistic, bias fixed": ({"rho": 0.2}, {"fix_bias": True}),
    "logistic, selection": ({"alpha_u": 4.0}, {"threshold": 0.5}),
    "logistic, selection, bias fixed": (
        {"alpha_u": 4.0, "rho": 0.15, "delta": 1.2},
        {"threshold": 1.0, "fix_bias": True, "lambda_l": 0.005},
    ),
    "logistic, domain shift": ({"rho_u": 0.7, "delta_u": 1.5, "alpha_l": 3.0}, {}),
    "logistic, large weights": ({"alpha_l": 2.0, "alpha_u": 8.0}, {"lambda_l": 1e-4}),
    "squared": ({"loss": "squared"}, {}),
    "squared, bias fixed": ({"loss": "squared", "rho": 0.2}, {"fix_bias": True}),
    "squared, selection": ({"loss": "squared", "alpha_u": 3.0}, {"threshold": 0.4}),
    "squared, selection, bias fixed": (
        {"loss": "squared", "alpha_u": 3.0, "rho": 0.7, "delta_u": 1.1},
        {"threshold": 0.4, "fix_bias": True},
    ),
}


def measured(run: Trajectory, t: int, ridge: float) -> dict[str, float]:
    """The coefficients as differences of step t of a solved run, divided by its ridge."""
    old = {name: getattr(run, name)[t - 1] for name in ("m", "q", "v", "bias")}
    slopes = {f"{name}1": (getattr(run, name)[t] - old[name]) / ridge for name in old}
    squared = run.m**2 / run.q
    noise = measured_noise(run)
    return {
        **slopes,
        "overlap1": (run.overlap[t] - old["q"]) / ridge,
        "m_hat1": run.m_hat[t] / ridge,
        "delta_hat1": (run.r_hat[t] - run.q_hat[t]) / ridge,
        "chi0": run.chi[t],
        "q_hat0": run.q_hat[t],
        "squared_cosine1": (squared[t] - squared[t - 1]) / ridge,
        "chi_hat": float(np.asarray(noise.chi_hat)[t]),
        "fresh": float(np.asarray(noise.fresh)[t]),
    }


def check_order(
    problem: Problem, recipe: Recipe, ridges: list[Any], t: int = 1, sharpening: float = 0.0
) -> None:
    """Every coefficient is what the solver's differences go to, with an error proportional to the
    ridge; the labels of step t have the sharpness 1 + ridge * sharpening.
    """
    last = [float(np.ravel(ridge)[-1]) for ridge in ridges]
    recipes = [
        recipe.replace(
            lambda_u=ridge, annealing=[0.0] * (t - 1) + [sharpening * end / t] if sharpening else 0
        )
        for ridge, end in zip(ridges, last, strict=True)
    ]
    runs = [solve(problem, one, tolerance=1e-13) for one in recipes]
    first = first_order(problem, recipes[0], runs[0], t)
    noise = second_order_noise(problem, recipes[0], runs[0], t)
    expected = {**vars(first), **vars(noise)}
    table = [measured(run, t, ridge) for run, ridge in zip(runs, last, strict=True)]
    norm = State.at(runs[0], t - 1).norm
    natural = {"m_hat1": norm, "bias1": norm * first.chi0, "squared_cosine1": first.chi0}
    errors = {
        name: [
            (row[name] - expected[name]) / max(abs(expected[name]), natural.get(name, 1.0))
            for row in table
        ]
        for name in table[0]
    }
    worst = max(abs(values[-1]) for values in errors.values())
    assert worst < 0.03, errors
    for name, values in errors.items():
        # what is left when the part proportional to the ridge is removed
        left = (10 * values[-1] - values[-2]) / 9
        assert abs(left) < 20 * worst**2 + 1e-7, (name, values, worst)
        if abs(values[-1]) > 0.2 * worst:
            assert 8 < values[-2] / values[-1] < 11, (name, values, worst)


@pytest.mark.parametrize("name", SETTINGS)
def test_coefficients_are_slopes_of_the_solver(name: str) -> None:
    data, chosen = SETTINGS[name]
    problem = Problem(**{**BASE, **data}, steps=1)
    check_order(problem, Recipe(**chosen), [1e-2, 1e-3, 1e-4, 1e-5])


@pytest.mark.parametrize("sharpening", [0.7, 30.0])
@pytest.mark.parametrize("name", SETTINGS)
def test_coefficients_of_a_step_with_sharpened_labels(name: str, sharpening: float) -> None:
    data, chosen = SETTINGS[name]
    problem = Problem(**{**BASE, **data}, steps=1)
    check_order(problem, Recipe(**chosen), [1e-4, 1e-5, 1e-6], sharpening=sharpening)


@pytest.mark.parametrize("sharpening", [0.0, 5.0])
def test_a_later_step_uses_its_own_batch(sharpening: float) -> None:
    problem = Problem(0.5, (2.0, 3.0), 0.4, 0.5625, steps=2, rho_u=(0.4, 0.25), delta_u=(0.5, 0.8))
    recipe = Recipe(threshold=(0.0, 0.3))
    ridges = [(0.05, ridge) for ridge in (1e-2, 1e-3, 1e-4, 1e-5)]
    check_order(problem, recipe, ridges, t=2, sharpening=sharpening)


def test_sharpened_labels_scale_a_model_whose_bias_is_trained() -> None:
    """A trained bias follows the labels: weights and bias grow at the rate of the sharpening, and
    the direction turns as it does without.
    """
    problem, state, sharpening = Problem(**BASE, steps=1), State(0.7, 0.9, -0.3), 2.5
    plain = first_order(problem, Recipe(lambda_u=0.1), state)
    sharp = first_order(problem, Recipe(lambda_u=0.1, annealing=0.1 * sharpening), state)
    assert sharp.m1 - plain.m1 == pytest.approx(sharpening * state.m, rel=1e-11)
    assert sharp.q1 - plain.q1 == pytest.approx(2 * sharpening * state.q, rel=1e-11)
    assert sharp.bias1 - plain.bias1 == pytest.approx(sharpening * state.bias, rel=1e-11)
    assert sharp.alignment_rate == pytest.approx(plain.alignment_rate, rel=1e-12)


class SquaredHinge:
    """A loss with jumps of its curvature, flat for logits the label agrees with."""

    name = "squared hinge"
    classes = (0.0, 1.0)
    kinks = (-1.0, 1.0)

    def link(self, logit: Any) -> Any:
        return np.clip(0.5 * (1.0 + np.asarray(logit)), 0.0, 1.0)

    def value(self, target: Any, logit: Any) -> Any:
        below, above = np.maximum(1.0 - logit, 0.0), np.maximum(1.0 + logit, 0.0)
        return 0.5 * (target * below**2 + (1.0 - target) * above**2)

    def slope(self, target: Any, logit: Any) -> Any:
        below, above = np.maximum(1.0 - logit, 0.0), np.maximum(1.0 + logit, 0.0)
        return (1.0 - target) * above - target * below

    def curvature(self, target: Any, logit: Any) -> Any:
        return target * (logit < 1.0) + (1.0 - target) * (logit > -1.0)

    def third(self, target: Any, logit: Any) -> Any:
        return np.zeros(np.broadcast(target, logit).shape)


def test_a_loss_of_the_users(plain_logistic: Any) -> None:
    state = State(0.7, 0.9, -0.3)
    for threshold in (0.0, 0.4):
        recipe = Recipe(threshold=threshold)
        ours = first_order(Problem(**{**BASE, "alpha_u": 3.0}, steps=1), recipe, state)
        theirs = Problem(**{**BASE, "alpha_u": 3.0, "loss": plain_logistic}, steps=1)
        found = first_order(theirs, recipe, state)
        assert vars(found) == pytest.approx(vars(ours), rel=1e-12)


@pytest.mark.parametrize("annealing", [0.0, 3.0])
def test_a_loss_with_kinks_and_flat_parts(annealing: float) -> None:
    problem = Problem(1.0, 3.0, 0.4, 0.5, steps=1, loss=SquaredHinge())
    recipe = Recipe(lambda_l=0.05)
    recipes = [recipe.replace(lambda_u=x, annealing=annealing * x) for x in (1e-2, 1e-3)]
    runs = [solve(problem, one, tolerance=1e-8) for one in recipes]
    first = first_order(problem, recipes[0], runs[0])
    plain = first_order(problem, recipe.replace(lambda_u=1e-2), runs[0])
    for name in ("m1", "q1", "bias1", "chi0", "m_hat1"):
        value = getattr(first, name)
        size = max(abs(value), abs(getattr(plain, name)))  # annealing may balance the ridge
        errors = [
            abs(measured(run, 1, ridge)[name] - value) / size
            for run, ridge in zip(runs, (1e-2, 1e-3), strict=True)
        ]
        assert errors[1] < 0.03, name
        assert errors[1] < 0.3 * errors[0], name
    # only points inside the margin hold the weights: 1/(alpha E[c l''/(1 + c l'')]) counts those
    assert first.points < problem.unlabeled.alpha[0]


def scale(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


STATES = st.builds(State, m=scale(0.01, 4), v=scale(1e-4, 9), bias=st.floats(-4, 4))
BATCHES = st.builds(
    GivenBatch,
    alpha=scale(1.05, 20),
    rho=st.floats(0.02, 0.98),
    delta=scale(0.1, 4),
    threshold=st.sampled_from([0.0, 0.3, 1.0]),
)


@settings(max_examples=60, derandomize=True)
@given(STATES, BATCHES, st.booleans())
def test_squared_loss_is_known_in_closed_form(state: State, batch: GivenBatch, fixed: bool) -> None:
    """Prediction 8, with errata 5 and 10, and the limit of the noise."""
    problem = Problem(1.0, batch.alpha, batch.rho, batch.delta, steps=1, loss="squared")
    recipe = Recipe(fix_bias=fixed)
    found = first_order(problem, recipe, state)
    room, delta = batch.alpha - 1, batch.delta
    variance = 1.0 if fixed else 4 * batch.rho * (1 - batch.rho)
    m1 = -state.m / (room * (delta + variance))
    assert found.chi0 == pytest.approx(1 / (delta * room), rel=1e-10)
    assert found.m1 == pytest.approx(m1, rel=1e-10)
    lean = 0.0 if fixed else 2 * batch.rho - 1
    assert found.bias1 == pytest.approx(-lean * m1, rel=1e-9, abs=1e-11 * state.norm)
    rate = 2 * variance / (delta * room * (delta + variance))
    assert found.alignment_rate == pytest.approx(rate, rel=1e-10)
    assert found.v1 == pytest.approx(-2 * state.v / (delta * room), rel=1e-10)
    noise = (delta * state.m**2 / (delta + variance) + state.v) / room
    assert second_order_noise(problem, recipe, state).chi_hat == pytest.approx(noise, rel=1e-9)


@settings(max_examples=120, derandomize=True)
@given(STATES, BATCHES, st.booleans())
def test_weights_shrink_and_a_trained_bias_aligns(
    state: State, batch: GivenBatch, fixed: bool
) -> None:
    """Two theorems: the rate of the norm is bounded away from zero, and C > 0 with a trained
    bias.
    """
    problem = Problem(1.0, batch.alpha, batch.rho, batch.delta, steps=1)
    try:
        found = first_order(problem, Recipe(threshold=batch.threshold, fix_bias=fixed), state)
    except NoExpansion:
        assume(False)
    largest = 0.25
    bound = -1 / (batch.alpha * largest * (state.cosine**2 + batch.delta))
    assert found.overlap1 / state.q <= bound * (1 - 1e-9)
    if not fixed:
        assert found.alignment_rate > 0


def test_with_a_fixed_bias_the_plane_can_turn_away() -> None:
    """Erratum 12, and the first remark on the paper."""
    problem = Problem(0.5, 4.0, 0.15, 1.2, steps=1)
    for fixed, rate in ((True, -7.27), (False, 8.77)):
        recipe = Recipe(lambda_l=0.005, fix_bias=fixed)
        run = solve(problem, recipe.replace(lambda_u=1e-7), tolerance=1e-13)
        found = first_order(problem, recipe, run).alignment_rate
        assert found == pytest.approx(rate, abs=0.005)
        assert np.sign(run.cosine[1] - run.cosine[0]) == np.sign(rate)


def test_averages_agree_with_adaptive_quadrature() -> None:
    state, batch = State(0.9, 1.3, -0.4), GivenBatch(3.0, 0.3, 0.8, 0.6)
    answer = respond(Problem(**BASE, steps=1).loss_at(0), state, batch, False)
    c, spread = answer.chi * batch.delta, math.sqrt(batch.delta) * state.norm

    def average(power: int) -> float:
        total = 0.0
        for s, share in ((1.0, batch.rho), (-1.0, 1 - batch.rho)):
            centre = s * state.m + state.bias

            def density(h: float, centre: float = centre, share: float = share) -> float:
                curvature = float(expit(h) * expit(-h))
                x = (h - centre) / spread
                k = curvature / (1 + c * curvature)
                return share * k**power * math.exp(-0.5 * x * x) / (spread * math.sqrt(2 * math.pi))

            edge = batch.threshold * state.norm
            for low, high in ((-30.0, -edge), (edge, 30.0)):
                total += quad(density, low, high, epsabs=1e-14, epsrel=1e-13, limit=200)[0]
        return total

    assert batch.alpha * batch.delta * average(1) * answer.chi == pytest.approx(1, rel=1e-11)
    strength = answer.chi * batch.delta
    assert answer.stiffness == pytest.approx(strength**2 * average(2), rel=1e-11)


def test_rates_blow_up_as_the_batch_shrinks_to_the_number_of_features() -> None:
    r"""$\chi_0\Delta(\alpha-1) \to E[1/l'']$, a closed form for the logistic loss: $2 + 2
    E\cosh\tilde h$.
    """
    state, rho, delta = State(0.9, 1.3, -0.4), 0.3, 0.8
    spread = math.exp(0.5 * delta * state.q)
    limit = 2 + 2 * spread * (
        rho * math.cosh(state.m + state.bias) + (1 - rho) * math.cosh(state.m - state.bias)
    )
    errors = []
    for room in (1e-3, 1e-4, 1e-5):
        problem = Problem(0.5, 1 + room, rho, delta, steps=1)
        found = first_order(problem, Recipe(), state)
        errors.append(abs(found.chi0 * delta * room / limit - 1))
        assert found.alignment_rate > 1e-2 / room
    assert errors[2] < 1e-3
    assert errors[2] < 0.3 * errors[0]


def test_below_one_point_a_feature_a_step_moves_without_ridge() -> None:
    r"""Why it is refused: $\lambda\chi \to 1 - \alpha_U$, and the weights lose a finite part."""
    problem = Problem(**{**BASE, "alpha_u": 0.8}, steps=1)
    run = solve(problem, Recipe(lambda_u=1e-7))
    assert 1e-7 * run.chi[1] == pytest.approx(0.2, abs=1e-3)
    assert run.q[1] < 0.9 * run.q[0]
    with pytest.raises(NoExpansion, match=r"selected share must be > 1, got 0\.8") as refused:
        first_order(problem, Recipe(), run)
    assert refused.value.points == pytest.approx(0.8)
    assert refused.value.tau is None
    copy = pickle.loads(pickle.dumps(refused.value))
    assert str(copy) == str(refused.value)
    selected = Problem(**BASE, steps=1)
    with pytest.raises(NoExpansion):
        second_order_noise(selected, Recipe(threshold=1.0), run)


class OtherLink:
    """Logistic, with a link that is not its own."""

    def __init__(self, plain: Any):
        self.plain, self.name = plain, "other link"
        self.classes, self.kinks = plain.classes, plain.kinks

    def link(self, logit: Any) -> Any:
        return expit(2 * np.asarray(logit))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


class OwnLabels:
    """Labels that are the link, under another name."""

    name = "own"

    def target(self, logit: Any, sharpness: float, loss: Any) -> Any:
        return loss.link(logit)

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        return ()


@pytest.mark.parametrize(
    ("recipe", "field"),
    [
        (Recipe(sharpness=2.0), "sharpness"),
        (Recipe(sharpness=math.inf), "sharpness"),
        (Recipe(sharpness=(1.5,)), "sharpness"),
        (Recipe(labeler="hard"), "labeler"),
    ],
)
def test_labels_that_move_the_model_are_refused(recipe: Recipe, field: str) -> None:
    problem = Problem(**BASE, steps=1)
    with pytest.raises(InvalidInput, match="without any ridge") as refused:
        first_order(problem, recipe, State(1.0, 1.0, 0.0))
    assert refused.value.field == field


def test_a_loss_that_disagrees_with_its_own_label_is_refused(plain_logistic: Any) -> None:
    problem = Problem(**{**BASE, "loss": OtherLink(plain_logistic)}, steps=1)
    with pytest.raises(InvalidInput, match="slope vanishes") as refused:
        first_order(problem, Recipe(), State(1.0, 1.0, 0.0))
    assert refused.value.field == "loss"


def test_a_labeler_equal_to_the_link_is_accepted() -> None:
    problem, state = Problem(**BASE, steps=1), State(1.0, 1.0, -0.2)
    own = first_order(problem, Recipe(labeler=OwnLabels()), state)
    assert own == first_order(problem, Recipe(), state)


def test_labels_that_do_not_follow_the_annealing_are_rejected() -> None:
    problem, recipe = Problem(**BASE, steps=1), Recipe(annealing=0.1, labeler=OwnLabels())
    with pytest.raises(InvalidInput, match="link of the logit times the sharpness") as rejected:
        first_order(problem, recipe, State(1.0, 1.0, -0.2))
    assert rejected.value.field == "labeler"


def test_bad_arguments_are_named() -> None:
    problem, state = Problem(**BASE, steps=2), State(1.0, 1.0, 0.0)
    run = solve(problem, Recipe())
    for t in (0, 3, True):
        with pytest.raises(InvalidInput, match="t must be a step from 1 to"):
            first_order(problem, Recipe(), state, t)
    with pytest.raises(InvalidInput, match="state"):
        first_order(problem, Recipe(), (1.0, 1.0, 0.0), 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"v must be a finite number >= 0.*got -1"):
        State(1.0, -1.0, 0.0)
    with pytest.raises(InvalidInput, match="not all zero"):
        State(0.0, 0.0, 1.0)
    with pytest.raises(InvalidInput, match="t must be a solved step"):
        State.at(run, 3)
    with pytest.raises(SelfTrainError, match="problem"):
        first_order("problem", Recipe(), state)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="t must be a solved step"):
        State.at(run, "x")  # type: ignore[arg-type]
    for m, v in ((1e160, 1.0), (1e-200, 0.0), (0.0, 1e-320)):
        with pytest.raises(InvalidInput, match=r"m\^2 \+ v from 1e-307 to 1e307"):
            State(m, v, 0.0)


def test_coefficients_beyond_the_range_of_numbers_are_refused() -> None:
    r"""With all logits near 400, $\chi_0 \sim e^{400}$: the first order is a number, its square is
    not.
    """
    problem, state = Problem(**BASE, steps=1), State(1.0, 1.0, 400.0)
    assert first_order(problem, Recipe(), state).chi0 > 1e170
    near = second_order_noise(problem, Recipe(), State(1.0, 1.0, 300.0))
    far = second_order_noise(problem, Recipe(), State(1.0, 1.0, 350.0))
    assert far.chi_hat == pytest.approx(near.chi_hat, rel=1e-9)
    with pytest.raises(StateOverflow, match=r"step 1: fresh .* overflows \(state m=1, v=1"):
        second_order_noise(problem, Recipe(), state)


def test_curvature_too_small_for_a_number_is_not_taken_for_selection() -> None:
    problem = Problem(**{**BASE, "alpha_u": 2.0}, steps=1)
    with pytest.raises(NoExpansion, match=r"must be > 1, got 0 \(2 are selected") as refused:
        first_order(problem, Recipe(), State(1.0, 1.0, 1000.0))
    assert "zero or underflows" in str(refused.value)
    assert (refused.value.points, refused.value.selected) == (0.0, pytest.approx(2.0))
    copy = pickle.loads(pickle.dumps(refused.value))
    assert str(copy) == str(refused.value)


def test_the_error_is_at_home_with_the_others() -> None:
    assert selftrain.errors.NoExpansion is NoExpansion
    assert NoExpansion.__module__ == "selftrain.errors"
