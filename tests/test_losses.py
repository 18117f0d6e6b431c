"""Losses: derivatives against finite differences of a 50-digit evaluation, extremes, registry."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from selftrain import Problem, Recipe, losses, simulate, solve
from selftrain.errors import ConvergenceError, InvalidInput
from selftrain.losses import Logistic, Squared, get_loss, register
from selftrain.mixture.clusters import Clusters
from selftrain.theory.averages.generic import noise

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
    with pytest.raises(InvalidInput, match=r"loss must be .*attributes of"):
        register(object())
    with pytest.raises(InvalidInput, match="unknown loss; did you mean 'squared'"):
        get_loss("square")


class Softplus:
    """A logistic loss in units of `unit`, one of whose functions is off by a percent beyond some
    logit.
    """

    name = "softplus"
    classes = (0.0, 1.0)
    kinks: tuple[float, ...] = ()

    def __init__(self, wrong: str = "", beyond: float = np.inf, unit: float = 1.0):
        self.wrong, self.beyond, self.unit = wrong, beyond, unit
        self.true = Logistic()

    def link(self, logit):
        return self.true.link(np.asarray(logit) / self.unit)

    def _told(self, name, power, target, logit):
        exact = self.unit**power * getattr(self.true, name)(target, np.asarray(logit) / self.unit)
        off = (np.abs(logit) > self.beyond) * (1.0 + np.abs(np.asarray(logit) - self.beyond))
        return exact * (1.0 + 0.01 * off) if name == self.wrong else exact

    def value(self, target, logit):
        return self._told("value", 1, target, logit)

    def slope(self, target, logit):
        return self._told("slope", 0, target, logit)

    def curvature(self, target, logit):
        return self._told("curvature", -1, target, logit)

    def third(self, target, logit):
        return self._told("third", -2, target, logit)


@pytest.mark.parametrize("wrong", ["value", "slope", "curvature", "third"])
@pytest.mark.parametrize("beyond", [3.2, 5.0, 12.0])
def test_a_loss_that_contradicts_its_derivatives_far_out_is_rejected(wrong, beyond):
    named = {"value": "slope", "slope": "slope|curvature"}.get(wrong, wrong)
    with pytest.raises(InvalidInput, match=rf"({named}) must be the derivative of .* at target"):
        get_loss(Softplus(wrong, beyond))


@pytest.mark.parametrize("unit", [1e-3, 1.0, 100.0])
def test_a_loss_that_is_right_is_accepted_in_any_unit(unit):
    assert get_loss(Softplus(unit=unit)).unit == unit


class Naive(Softplus):
    """Overflows beyond 710, as formulas from a book do."""

    def value(self, target, logit):
        return (1 - target) * np.log(1 + np.exp(logit)) + target * np.log(1 + np.exp(-logit))


def test_a_loss_may_overflow_far_out():
    get_loss(Naive())


@pytest.mark.parametrize("wrong", ["value", "slope", "curvature", "third"])
def test_what_no_check_foresees_is_found_where_it_is_used(wrong):
    """In units of 1000 the logits of a run are in the thousands."""
    loss = Softplus(wrong, beyond=1200.0, unit=1000.0)
    problem = Problem(1.0, 2.0, 0.4, 0.5, steps=1, loss=loss)
    recipe = Recipe(lambda_l=1e-6, lambda_u=1e-6)
    with pytest.raises(InvalidInput, match="must be the derivative of"):
        solve(problem, recipe)
    with pytest.raises(InvalidInput, match="must be the derivative of"):
        simulate(problem, recipe, 100, 2, "dense", probes=0)


class Scalar(Squared):
    name = "scalar"

    def curvature(self, target, logit):
        return 1.0


def test_a_derivative_that_is_a_scalar_is_rejected():
    with pytest.raises(InvalidInput, match=r"curvature must return an array .* not shape \(\)"):
        get_loss(Scalar())


class Rippled(Squared):
    """Convex and consistent, but its slope has more steps than panels can follow."""

    name = "rippled"

    def value(self, target, logit):
        return 0.5 * (logit - target) ** 2 - 1e-8 * np.cos(1e4 * logit)

    def slope(self, target, logit):
        return logit - target + 1e-4 * np.sin(1e4 * logit)

    def curvature(self, target, logit):
        return 1.0 + np.cos(1e4 * logit) + 0 * target

    def third(self, target, logit):
        return -1e4 * np.sin(1e4 * logit) + 0 * target


def test_a_loss_too_rough_to_integrate_ends_in_bounded_time(monkeypatch):
    monkeypatch.setattr(noise, "MOST_AT_ONCE", 2_000)
    monkeypatch.setattr(noise, "MOST_WORK", 20_000)
    problem = Problem(1.0, 2.0, 0.4, 0.5, steps=1, loss=Rippled())
    with pytest.raises(ConvergenceError):
        solve(problem, Recipe())


def test_clusters_with_a_loss_of_the_generic_engine_end_in_bounded_time(monkeypatch, plain_squared):
    """The panels of a step are bounded, and so are those of one point of the search."""
    monkeypatch.setattr(noise, "MOST_AT_ONCE", 10_000)
    monkeypatch.setattr(noise, "MOST_WORK", 40_000)
    clusters = Clusters([1.0, 0.0, 0.0, 0.0, 0.0], 0.9035)
    problem = Problem(5.9618, 0.1678, 0.000333, clusters=clusters, steps=1, loss=plain_squared)
    recipe = Recipe(0, 7.73e-11, threshold=0.24446, sharpness=14.711, fix_bias=True)
    with pytest.raises(ConvergenceError):
        solve(problem, recipe)


class Windowed(Softplus):
    """All derivatives are doubled for targets of a window; the value is not."""

    def __init__(self, low: float, high: float):
        super().__init__()
        self.low, self.high = low, high

    def _told(self, name, power, target, logit):
        doubled = (target > self.low) & (target < self.high) & (name != "value")
        return np.where(doubled, 2.0, 1.0) * super()._told(name, power, target, logit)


@pytest.mark.parametrize("window", [(0.05, 0.2), (0.4, 0.45), (0.731, 0.733)])
def test_a_loss_that_contradicts_itself_for_some_soft_targets_is_rejected(window):
    with pytest.raises(InvalidInput, match=r"slope must be the derivative of value: .* at"):
        Problem(0.5, 2.0, 0.4, 0.5, steps=1, loss=Windowed(*window))


class Jumping(Squared):
    """A squared loss plus `height` times the distance from `place` (None: from the target)."""

    name = "jumping"

    def __init__(self, height, place=None, listed=True):
        self.height, self.place = height, place
        self.kinks = (lambda target: (self._corner(target),)) if listed else ()

    def _corner(self, target):
        return target if self.place is None else np.full(np.shape(target), self.place)

    def value(self, target, logit):
        return super().value(target, logit) + self.height * np.abs(logit - self._corner(target))

    def slope(self, target, logit):
        return super().slope(target, logit) + self.height * np.sign(logit - self._corner(target))


class Hinge(Softplus):
    """The hinge, its corners listed."""

    name = "hinge"
    kinks = (-1.0, 1.0)

    def value(self, target, logit):
        return target * np.maximum(1.0 - logit, 0.0) + (1 - target) * np.maximum(1.0 + logit, 0.0)

    def slope(self, target, logit):
        return (1 - target) * (logit > -1.0) - target * (logit < 1.0)

    def curvature(self, target, logit):
        return np.zeros(np.broadcast(target, logit).shape)

    third = curvature


@pytest.mark.parametrize(
    ("loss", "where"),
    [
        (Hinge(), "from 0 to 1 at target 0, logit -1"),
        (Jumping(1e-3), "at target -0.4, logit -0.4"),
        (Jumping(1.0, listed=False), "at target -0.4, logit -0.4"),
        (Jumping(0.5, place=77.0), "from 77.5 to 78.5 at target -1, logit 77"),
    ],
)
def test_a_loss_whose_slope_jumps_is_rejected_at_once(loss, where):
    with pytest.raises(InvalidInput, match=f"the slope jumps .*{where}; it must be continuous"):
        Problem(0.5, 2.0, 0.4, 0.5, steps=1, loss=loss)


@pytest.mark.parametrize("lost", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["value", "slope", "curvature", "third"])
def test_a_function_that_is_never_finite_is_rejected(name, lost):
    loss = Softplus()
    setattr(loss, name, lambda target, logit: np.full(np.shape(logit), lost))
    with pytest.raises(InvalidInput, match=f"{name} must be finite; it is not at target 0, logit"):
        get_loss(loss)


@pytest.mark.parametrize(
    ("attribute", "wrong", "sentence"),
    [
        ("slope", lambda t, x: list(Logistic().slope(t, x)), "loss = .*array .* not a list"),
        ("link", lambda x: 0.5, r"loss.link = 0.5: .* not shape \(\)"),
        ("link", lambda x: np.zeros(3), r"loss.link = .* not shape \(3,\)"),
        ("link", lambda x: list(x), "loss.link = .* not a list"),
        ("link", lambda x: np.full(np.shape(x), np.nan), "loss.link must be finite"),
        ("link", lambda x: Logistic().link(-x), "loss.link must increase with the logit"),
        ("link", lambda x: np.zeros(np.shape(x)), "loss.link must increase with the logit"),
        ("kinks", "abc", "loss.kinks must be a tuple of finite logits.* got 'abc'"),
        ("kinks", None, "loss.kinks must be a tuple of finite logits.* got None"),
        ("kinks", lambda target: (target[:1, None] + target,), "loss.kinks must .* of its shape"),
        ("classes", (0.0, 0.5, 1.0), "loss.classes must be two finite numbers"),
        ("classes", "01", "loss.classes must be two finite numbers.* got '01'"),
        ("classes", (1.0, 0.0), r"loss.classes must be .* the smaller first.* got \(1.0, 0.0\)"),
        ("classes", (0.0, np.nan), "loss.classes must be two finite numbers"),
        ("name", 3, "loss.name must be a string"),
    ],
)
def test_what_a_loss_cannot_be_is_named_with_a_remedy(attribute, wrong, sentence):
    loss = Softplus()
    setattr(loss, attribute, wrong)
    with pytest.raises(InvalidInput, match=sentence):
        get_loss(loss)
