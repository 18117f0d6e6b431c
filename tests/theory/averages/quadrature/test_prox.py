"""The proximal map against closed forms, and against its own equation in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, lambertw

from selftrain.arrays import Array
from selftrain.errors import InvalidInput
from selftrain.losses import Logistic, Squared
from selftrain.theory.averages.quadrature.prox import proximal


class AccurateLogistic(Logistic):
    """The slope with both tails at full relative accuracy."""

    def slope(self, target: Array, logit: Array) -> Array:
        logit = np.asarray(logit)
        return (1 - target) * expit(logit) - target * expit(-logit)


class Exponential(Squared):
    """exp(-p x): overflows on one side, saturates on the other."""

    def slope(self, target: Array, logit: Array) -> Array:
        return -target * np.exp(-target * logit)

    def curvature(self, target: Array, logit: Array) -> Array:
        return target**2 * np.exp(-target * logit)


class Hinge(Squared):
    """max(0, 1 - p x): its slope jumps at the margin."""

    def slope(self, target: Array, logit: Array) -> Array:
        return np.where(target * logit < 1, -target, 0.0)

    def curvature(self, target: Array, logit: Array) -> Array:
        return np.zeros(np.broadcast(target, logit).shape)


class Linear(Squared):
    """p x, as straight as a convex loss can be."""

    def slope(self, target: Array, logit: Array) -> Array:
        return np.asarray(target + 0 * logit)

    def curvature(self, target: Array, logit: Array) -> Array:
        return 0 * (target + logit)


def wide_range(size: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Signs, fields up to thousands, strengths over 24 decades."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size)
    fields = rng.normal(size=size) * 10 ** rng.uniform(-2, 3, size)
    return signs, fields, 10 ** rng.uniform(-12, 12, size)


def test_squared_loss_is_a_weighted_mean() -> None:
    target, field, strength = wide_range(2_000)
    expected = (field + strength * target) / (1 + strength)
    np.testing.assert_allclose(
        proximal(Squared(), target, field, strength), expected, rtol=1e-14, atol=1e-14
    )


def test_hinge_loss_stops_at_the_kink() -> None:
    sign, field, strength = wide_range(2_000)
    margin = sign * field
    expected = sign * np.where(margin >= 1, margin, np.minimum(1.0, margin + strength))
    np.testing.assert_allclose(
        proximal(Hinge(), sign, field, strength), expected, rtol=1e-14, atol=1e-14
    )


def test_linear_loss_moves_by_the_strength() -> None:
    sign, field, strength = wide_range(2_000)
    expected = field - strength * sign
    scale = np.abs(field) + strength
    assert np.max(np.abs(proximal(Linear(), sign, field, strength) - expected) / scale) < 1e-15


def test_exponential_loss_is_lambert_w() -> None:
    """x - c e^{-x} = h has the root h + W(c e^{-h})."""
    _, field, strength = wide_range(2_000)
    field = np.clip(field, -300, 300)
    expected = field + lambertw(strength * np.exp(-field)).real
    result = proximal(Exponential(), 1.0, field, strength)
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-13)


def test_exponential_loss_where_its_slope_overflows() -> None:
    """There x + log((x - h)/c) = 0 still makes sense."""
    x = proximal(Exponential(), 1.0, np.array([-800.0, -1e4, -1e6]), 1e-3)
    field = np.array([-800.0, -1e4, -1e6])
    np.testing.assert_allclose(-np.log((x - field) / 1e-3), x, rtol=1e-12)


@pytest.mark.parametrize("hard", [True, False])
def test_logistic_loss_solves_its_equation_in_extended_precision(hard: bool) -> None:
    sign, field, strength = wide_range(5_000, seed=1)
    p = 0.5 * (1 + sign) if hard else np.random.default_rng(2).random(field.size)
    x = proximal(AccurateLogistic(), p, field, strength).astype(np.longdouble)
    up, down = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))
    residual = x - field + strength * (up * (1 - p.astype(np.longdouble)) - down * p)
    error = np.abs(residual / (1 + strength * up * down)) / np.maximum(1, np.abs(x))
    assert np.max(error) < 1e-14


@given(
    target=st.floats(0, 1),
    field=st.floats(-1e3, 1e3),
    strength=st.floats(0, 1e12),
    shift=st.floats(0, 10),
)
def test_logistic_prox_is_a_contraction_inside_its_bracket(
    target: float, field: float, strength: float, shift: float
) -> None:
    loss = Logistic()
    first, second = proximal(loss, target, np.array([field, field + shift]), strength)
    slack = 1e-9 * (1 + abs(field))
    assert -slack <= second - first <= shift + slack
    ends = sorted((field, field - strength * float(loss.slope(target, field))))
    assert ends[0] - slack <= first <= ends[1] + slack


def test_shapes_broadcast_and_zero_strength_is_the_identity() -> None:
    field = np.linspace(-2, 2, 5)
    assert proximal(Logistic(), np.zeros((3, 1)), field, 1.0).shape == (3, 5)
    assert proximal(Logistic(), 0.5, np.empty((2, 0)), 1.0).shape == (2, 0)
    np.testing.assert_array_equal(proximal(Logistic(), 0.3, field, 0.0), field)


def test_a_loss_that_is_not_convex_or_not_a_number_is_refused() -> None:
    class Broken(Squared):
        def slope(self, target: Array, logit: Array) -> Array:
            return np.full(np.broadcast(target, logit).shape, np.nan)

    with pytest.raises(InvalidInput, match="slope is NaN at target 1, logit 2"):
        proximal(Broken(), 1.0, 2.0, 1.0)
