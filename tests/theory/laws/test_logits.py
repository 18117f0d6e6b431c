"""The law of the logits against its definition, adaptive quadrature and the solver's equations."""

from __future__ import annotations

import math
import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import kstest, norm

from selftrain.arrays import Array
from selftrain.errors import InvalidInput
from selftrain.losses import Loss, Squared
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.solve import solve
from selftrain.theory.trajectory import Trajectory

PROBLEM = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.5625, steps=3)
RECIPES = {
    "soft": Recipe(),
    "selection": Recipe(threshold=0.5),
    "weak ridge": Recipe(lambda_u=1e-3),
    "weak ridge, selection": Recipe(lambda_u=1e-5, threshold=0.7),
    "hard": Recipe(sharpness=math.inf),
    "hard, selection": Recipe(sharpness=math.inf, threshold=0.3),
    "sharp, bias fixed": Recipe(lambda_u=0.01, sharpness=30.0, fix_bias=True),
    "annealed": Recipe(annealing=0.5, threshold=0.2),
    "squared": Recipe(threshold=0.3),
}
STEP = 2


@cache
def run_of(name: str) -> Trajectory:
    loss = "squared" if name == "squared" else "logistic"
    return solve(PROBLEM.replace(loss=loss), RECIPES[name])


def conditions(run: Trajectory) -> list[dict[str, Any]]:
    choices = [None, True, False] if run.recipe.threshold else [None, True]
    return [{"y": y, "selected": selected} for y in (None, 0, 1) for selected in choices]


@pytest.mark.parametrize("name", RECIPES)
def test_law_is_normalised_and_its_density_is_the_slope_of_the_cdf(name: str) -> None:
    run = run_of(name)
    law = run.training_logits(STEP)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    starts = np.array([-1.3, -0.21, 0.4])
    inside = starts[:, None] + 0.05 * (1 + nodes)
    for condition in conditions(run):
        cdf = law.cdf(np.concatenate([[-1e3], np.linspace(-6, 6, 13), [1e3]]), **condition)
        assert (np.diff(cdf) >= -1e-12).all()
        np.testing.assert_allclose(cdf[[0, -1]], [0, 1], atol=1e-11)
        mass = 0.05 * law.density(inside, **condition) @ weights
        change = law.cdf(starts + 0.1, **condition) - law.cdf(starts, **condition)
        np.testing.assert_allclose(mass, change, atol=1e-10)


@pytest.mark.parametrize("name", ["selection", "weak ridge, selection", "hard, selection"])
def test_selected_and_rejected_points_and_classes_add_up(name: str) -> None:
    run = run_of(name)
    law, u = run.training_logits(STEP), np.linspace(-3, 3, 7)
    share = law.selected_probability
    assert share == pytest.approx(run.fraction_selected[STEP], rel=1e-13)
    parts = share * law.cdf(u, selected=True) + (1 - share) * law.cdf(u, selected=False)
    np.testing.assert_allclose(parts, law.cdf(u), atol=1e-12)
    classes = PROBLEM.rho * law.cdf(u, y=1) + (1 - PROBLEM.rho) * law.cdf(u, y=0)
    np.testing.assert_allclose(classes, law.cdf(u), atol=1e-12)


def by_definition(run: Trajectory, y: int, point: float, kept: bool) -> tuple[float, float]:
    """P(u <= point | y, kept) and P(kept | y) of a logistic run by adaptive quadrature on
    slices.
    """
    t, root_delta, sign = STEP, math.sqrt(PROBLEM.delta), 2 * y - 1
    root = math.sqrt(run.q[t - 1])
    spread = root_delta * math.sqrt(run.q[t] - run.overlap[t] ** 2 / run.q[t - 1])
    settings = run.recipe.at_steps(PROBLEM.steps)
    threshold, sharpness = settings.threshold[t - 1], settings.sharpness[t - 1]
    before_mean, mean = (sign * run.m[k] + run.bias[k] for k in (t - 1, t))

    def integrand(g: float) -> float:
        before = before_mean + root_delta * root * g
        label = float(before > 0) if math.isinf(sharpness) else expit(sharpness * before)
        pull = run.chi[t] * PROBLEM.delta * (expit(point) - label) if kept else 0.0
        field = mean + run.overlap[t] / root * root_delta * g
        return float(norm.pdf(g) * ndtr((point + pull - field) / spread))

    low, middle, high = (
        (edge * root - before_mean) / (root_delta * root) for edge in (-threshold, 0.0, threshold)
    )
    ends = ((-9.0, low), (high, 9.0)) if kept else ((low, middle), (middle, high))
    total = sum(
        quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
        for start, end in ends
        for a, b in np.lib.stride_tricks.sliding_window_view(np.linspace(start, end, 41), 2)
    )
    share = norm.cdf(low) + norm.sf(high) if kept else norm.cdf(high) - norm.cdf(low)
    return float(total / share), float(share)


@pytest.mark.parametrize(
    ("name", "point", "kept"),
    [
        ("soft", 0.3, True),
        ("weak ridge", -0.7, True),
        ("selection", 0.9, True),
        ("selection", 0.1, False),
        ("hard", -0.4, True),
        ("hard, selection", 0.2, True),
        ("hard, selection", -0.5, False),
        ("sharp, bias fixed", 1.1, True),
        ("annealed", 0.5, True),
    ],
)
def test_cdf_against_its_definition(name: str, point: float, kept: bool) -> None:
    run = run_of(name)
    law = run.training_logits(STEP)
    (zero, zero_share), (one, one_share) = (by_definition(run, y, point, kept) for y in (0, 1))
    assert law.cdf(point, y=0, selected=kept) == pytest.approx(zero, abs=1e-10)
    assert law.cdf(point, y=1, selected=kept) == pytest.approx(one, abs=1e-10)
    shares = np.array([0.6 * zero_share, 0.4 * one_share])
    both = shares @ [zero, one] / shares.sum()
    assert law.cdf(point, selected=kept) == pytest.approx(both, abs=1e-10)


@pytest.mark.parametrize("name", RECIPES)
def test_samples_follow_the_law(name: str) -> None:
    run = run_of(name)
    law = run.training_logits(STEP)
    points = law.sample(1500, seed=11)
    for condition in conditions(run):
        chosen = np.full(points.y.shape, True)
        if condition["y"] is not None:
            chosen &= points.y == condition["y"]
        if condition["selected"] is not None:
            chosen &= points.selected == condition["selected"]
        cdf = lambda u, condition=condition: law.cdf(u, **condition)  # noqa: E731
        assert kstest(points.u[chosen], cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", RECIPES)
def test_samples_obey_the_equations_that_the_solver_solved(name: str) -> None:
    r"""$E f = 0$, $\hat m = -\alpha E[s f]$ and $\hat\chi = \alpha\Delta E[f^2]$ with f from
    sampled logits.
    """
    run = run_of(name)
    loss = run.problem.loss_at(0)
    settings = run.recipe.at_steps(PROBLEM.steps)
    points = run.training_logits(STEP).sample(200_000, seed=5)
    target = run.recipe.label_function.target(
        points.previous, float(settings.sharpness[STEP - 1]), loss
    )
    slope = np.where(points.selected, loss.slope(target, points.u), 0.0)
    expected = {
        "signed": ((2 * points.y - 1) * slope, -run.m_hat[STEP] / 2.0),
        "square": (slope**2, run.chi_hat[STEP] / (2.0 * PROBLEM.delta)),
    }
    if not run.recipe.fix_bias:
        expected["mean"] = (slope, 0.0)
    for values, value in expected.values():
        assert abs(values.mean() - value) < 4.5 * values.std() / math.sqrt(values.size)


def test_joint_density_has_the_law_of_each_logit_as_marginal() -> None:
    run = run_of("selection")
    law = run.training_logits(STEP)
    edge = 0.5 * math.sqrt(run.q[STEP - 1])
    nodes, weights = np.polynomial.legendre.leggauss(400)
    pieces = [(-8.0, -edge), (-edge, edge), (edge, 8.0)]
    previous = np.concatenate([(a + b) / 2 + (b - a) / 2 * nodes for a, b in pieces])
    measure = np.concatenate([(b - a) / 2 * weights for a, b in pieces])
    u = np.array([-1.0, 0.2, 0.8])
    for y, share in ((0, 0.6), (1, 0.4)):
        joint = law.joint_density(previous, u[:, None], y)
        np.testing.assert_allclose(joint @ measure, share * law.density(u, y=y), rtol=1e-9)
        kept = np.abs(previous) > edge
        share = share * float(measure[kept] @ _previous_density(run, previous[kept], y))
        np.testing.assert_allclose(
            joint[:, kept] @ measure[kept], share * law.density(u, y=y, selected=True), rtol=1e-9
        )


def _previous_density(run: Trajectory, previous: Array, y: int) -> Array:
    mean = (2 * y - 1) * run.m[STEP - 1] + run.bias[STEP - 1]
    return np.asarray(norm.pdf(previous, mean, math.sqrt(PROBLEM.delta * run.q[STEP - 1])))


@pytest.mark.parametrize("name", ["soft", "squared"])
def test_step_zero_is_a_transformed_gaussian(name: str) -> None:
    run = run_of(name)
    law, u = run.training_logits(0), np.linspace(-3, 3, 13)
    strength, scale = run.chi[0] * PROBLEM.delta, math.sqrt(PROBLEM.delta * run.q[0])
    for y in (0, 1):
        pull = (
            (u - (2 * y - 1), np.ones(13))
            if name == "squared"
            else (expit(u) - y, expit(u) * expit(-u))
        )
        z = (u + strength * pull[0] - (2 * y - 1) * run.m[0] - run.bias[0]) / scale
        np.testing.assert_allclose(law.cdf(u, y=y), norm.cdf(z), rtol=1e-10, atol=1e-14)
        density = norm.pdf(z) * (1 + strength * pull[1]) / scale
        np.testing.assert_allclose(law.density(u, y=y), density, rtol=1e-10, atol=1e-14)
    points = law.sample(1000, seed=0)
    assert np.isnan(points.previous).all()
    assert points.selected.all()
    assert law.selected_probability == pytest.approx(1.0, abs=1e-15)


class SmoothHinge(Squared):
    """Quadratic below the margin of s x at 1 and zero above: its curvature jumps."""

    name = "smooth hinge"
    kinks = (-1.0, 1.0)

    def link(self, logit: Array) -> Array:
        return np.clip(logit, -1.0, 1.0)

    def value(self, target: Array, logit: Array) -> Array:
        down, up = np.maximum(0.0, 1 + logit), np.maximum(0.0, 1 - logit)
        return 0.25 * (1 - target) * down**2 + 0.25 * (1 + target) * up**2

    def slope(self, target: Array, logit: Array) -> Array:
        up, down = np.maximum(0.0, 1 - np.asarray(logit)), np.maximum(0.0, 1 + np.asarray(logit))
        return 0.5 * (1 - target) * down - 0.5 * (1 + target) * up

    def curvature(self, target: Array, logit: Array) -> Array:
        below, above = np.asarray(logit) < 1, np.asarray(logit) > -1
        return 0.5 * (1 - target) * above + 0.5 * (1 + target) * below


class Doubtful:
    """A labeler that is no monotone function of the logit: far points are not believed."""

    name = "doubtful"

    def target(self, logit: Array, sharpness: float, loss: Loss) -> Array:
        trusted = np.abs(logit) < 1.5
        return np.where(trusted, loss.link(sharpness * np.asarray(logit)), 0.5)

    def jumps(self, sharpness: float) -> tuple[float, ...]:
        return (-1.5, 1.5)


@pytest.mark.parametrize(
    ("loss", "labeler"),
    [(SmoothHinge(), "soft"), (SmoothHinge(), "hard"), ("logistic", Doubtful())],
)
def test_any_loss_and_any_labeler(loss: Any, labeler: Any) -> None:
    problem, recipe = PROBLEM.replace(loss=loss, steps=STEP), RECIPES["selection"]
    run = solve(problem, recipe.replace(labeler=labeler), tolerance=1e-6)
    law = run.training_logits(STEP)
    points = law.sample(3000, seed=2)
    for selected in (True, False):
        cdf = lambda u, selected=selected: law.cdf(u, selected=selected)  # noqa: E731
        assert kstest(points.u[points.selected == selected], cdf).pvalue > 1e-4
    nodes, weights = np.polynomial.legendre.leggauss(16)
    mass = 0.05 * law.density(0.35 + 0.05 * nodes) @ weights
    assert mass == pytest.approx(float(law.cdf(0.4) - law.cdf(0.3)), abs=1e-10)


def test_law_of_very_rare_selected_points() -> None:
    """So few points train no weights: u is B, pulled up or down by the sign of the label."""
    run = solve(PROBLEM.replace(steps=1), Recipe(threshold=6.0, lambda_u=0.5, fix_bias=True))
    law = run.training_logits(1)
    scale = math.sqrt(PROBLEM.delta * run.q[0])
    edge = 6.0 * math.sqrt(run.q[0])
    up, down = (
        sum(p * norm.cdf((-edge + side * (s * run.m[0] + run.bias[0])) / scale) for s, p in SHARES)
        for side in (1, -1)
    )
    assert up + down < 1e-9
    assert law.selected_probability == pytest.approx(up + down, rel=1e-12)
    below = law.cdf(np.array([-20.0, run.bias[1], 20.0]), selected=True)
    np.testing.assert_allclose(below, [0, down / (up + down), 1], atol=1e-10)


SHARES = ((1, 0.4), (-1, 0.6))


def test_shapes_and_refusals() -> None:
    law = run_of("soft").training_logits(-1)
    assert law.t == 3
    assert law.cdf(0.0).shape == ()
    assert law.density(np.zeros((2, 3))).shape == (2, 3)
    with pytest.raises(InvalidInput, match="no such sample"):
        law.cdf(0.0, selected=False)
    with pytest.raises(InvalidInput, match="0, 1, or None"):
        law.cdf(0.0, y=2)
    with pytest.raises(InvalidInput, match="from step 1 on"):
        run_of("soft").training_logits(0).joint_density(0.0, 0.0, 1)


def test_faded_weights_take_no_more_memory() -> None:
    """Logits within a few standard deviations of a bias 1e17 times larger: halves on both sides, no
    endless panels.
    """
    run = solve(Problem(1.0, 2.6, 0.38, 0.095, steps=10), Recipe(24.0, 42.0, fix_bias=True))
    tracemalloc.start()
    try:
        below, above = run.training_logits(10).cdf(run.bias[10] + np.array([-1e-12, 1e-12]))
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()
    assert below < 1e-9
    assert above > 1 - 1e-9
