"""Losses: derivatives against finite differences of a 50-digit evaluation, extremes, registry."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from selftrain import losses
from selftrain.errors import InvalidInput
from selftrain.losses import Logistic, Squared, get_loss, register

LOGITS = [-30.0, -3.0, -0.2, 0.0, 1e-3, 0.7, 5.0, 30.0]


def logistic_value(target, logit):
    return (1 + logit.exp()).ln() - target * logit


def squared_value(target, logit):
    return (logit - target) ** 2 / 2


def differences(value, target, logit):
    """First three derivatives in the logit by central differences, exact to about 1e-18."""
    with localcontext() as context:
        context.prec = 60
        t, x, h = Decimal(target), Decimal(logit), Decimal("1e-10")
        far_left, left, middle, right, far_right = (value(t, x + k * h) for k in range(-2, 3))
        return (
            float((right - left) / (2 * h)),
            float((right - 2 * middle + left) / h**2),
            float((far_right - 2 * right + 2 * left - far_left) / (2 * h**3)),
        )


@pytest.mark.parametrize("logit", LOGITS)
@pytest.mark.parametrize(
    ("loss", "value", "targets"),
    [(Logistic(), logistic_value, (0.0, 0.25, 1.0)), (Squared(), squared_value, (-1.0, 0.3, 1.0))],
)
def test_derivatives_agree_with_finite_differences(loss, value, targets, logit):
    for target in targets:
        t, x = np.array(target), np.array(logit)
        slope, curvature, third = differences(value, target, logit)
        assert loss.slope(t, x) == pytest.approx(slope, rel=1e-12, abs=1e-15)
        assert loss.curvature(t, x) == pytest.approx(curvature, rel=1e-12, abs=1e-15)
        assert loss.third(t, x) == pytest.approx(third, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("loss", "value"), [(Logistic(), logistic_value), (Squared(), squared_value)]
)
def test_values(loss, value):
    for logit in LOGITS:
        with localcontext() as context:
            context.prec = 60
            expected = float(value(Decimal("0.25"), Decimal(logit)))
        assert loss.value(np.array(0.25), np.array(logit)) == pytest.approx(expected, rel=1e-13)


def test_link_keeps_relative_accuracy_in_the_tail():
    assert float(Logistic().link(np.array(-40.0))) == pytest.approx(math.exp(-40), rel=1e-15)


@pytest.mark.parametrize("logit", [-1e4, 1e4])
def test_logistic_is_finite_and_silent_far_out(logit):
    loss, target, x = Logistic(), np.array(0.5), np.array(logit)
    assert float(loss.value(target, x)) == pytest.approx(5e3)
    assert float(loss.slope(target, x)) == math.copysign(0.5, logit)
    assert float(loss.curvature(target, x)) == 0.0
    assert float(loss.third(target, x)) == 0.0


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_soft_target_of_a_logit_is_where_the_slope_vanishes(loss):
    logit = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(loss.slope(loss.link(logit), logit), 0, atol=1e-15)


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_derivatives_broadcast(loss):
    target, logit = np.zeros((3, 1)), np.linspace(-1, 1, 4)
    for derivative in (loss.value, loss.slope):
        assert derivative(target, logit).shape == (3, 4)
    assert np.broadcast_shapes(loss.curvature(target, logit).shape, (3, 4)) == (3, 4)


class Shifted(Squared):
    name = "shifted"


def test_registered_loss_is_known_by_name(monkeypatch):
    monkeypatch.setattr(losses, "_registry", dict(losses._registry))
    mine = register(Shifted())
    assert get_loss("shifted") is mine


def test_what_is_not_a_loss_is_refused():
    with pytest.raises(InvalidInput, match=r"loss = .*attributes of"):
        register(object())
    with pytest.raises(InvalidInput, match="unknown loss; did you mean 'squared'"):
        get_loss("square")
