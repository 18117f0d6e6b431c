r"""Where Newton's method begins for the logistic loss, by the definitions of these states.

Averages over selected points are integrals of scipy over the previous noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, logit

from selftrain.losses import Logistic
from selftrain.theory.engines.generic.supervised import GenericSupervised
from selftrain.theory.engines.logistic.engine import SupervisedStage
from selftrain.theory.engines.logistic.starts import explicit_start, no_update_start
from selftrain.theory.engines.logistic.step import workspace
from selftrain.theory.step.given import Given, given_first

OMEGA, MU, NU2, OLD_BIAS, ALPHA, RHO, DELTA, RIDGE = 1.2, 0.6, 0.64, -0.3, 2.0, 0.35, 0.7, 0.4
STEP = Given(OMEGA, MU, NU2, OLD_BIAS, ALPHA, RHO, DELTA, RIDGE, 0.3, 1.5, False)
GIVEN = {
    "selected": STEP,
    "all": STEP._replace(threshold=0.0),
    "steep": STEP._replace(sharpness=6.0),
    "hard": STEP._replace(sharpness=math.inf),
    "bias fixed": STEP._replace(fixed_bias=True),
    "bias fixed, hard": STEP._replace(sharpness=math.inf, fixed_bias=True),
}


def selected(step: Given, function: Callable[[float, float, float], float]) -> float:
    """The integral of a function of class, previous noise and old logit over selected points."""
    spread, total = math.sqrt(step.delta) * step.omega, 0.0
    for s, share in ((1.0, step.rho), (-1.0, 1.0 - step.rho)):
        centre = s * step.mu * step.omega + step.bias

        def integrand(g: float, s: float = s, centre: float = centre) -> float:
            density = math.exp(-g * g / 2) / math.sqrt(2 * math.pi)
            return density * function(s, g, centre + spread * g)

        low, high = ((side * step.threshold * step.omega - centre) / spread for side in (-1, 1))
        for a, b in ((-12.0, low), (high, 12.0)):
            total += share * quad(integrand, a, b, epsabs=1e-12, epsrel=1e-12, limit=200)[0]
    return total


def label(step: Given, old: float) -> float:
    return float(expit(step.sharpness * old)) if step.sharpness < math.inf else float(old > 0)


@pytest.mark.parametrize("name", GIVEN)
def test_the_state_for_a_large_ridge(name: str) -> None:
    """The gradient at w = 0, with the best bias there, over the stiffness."""
    step, z = GIVEN[name], np.empty(5)
    mass = explicit_start(step, workspace().nodes, z)
    share = selected(step, lambda s, g, old: 1.0)
    positive = selected(step, lambda s, g, old: label(step, old)) / share
    bias = OLD_BIAS if step.fixed_bias else logit(positive)
    p0 = expit(bias)
    sf = ALPHA * selected(step, lambda s, g, old: s * (p0 - label(step, old)))
    gf = ALPHA * selected(step, lambda s, g, old: g * (p0 - label(step, old)))
    ff = ALPHA * selected(step, lambda s, g, old: (p0 - label(step, old)) ** 2)
    chi = 1.0 / (RIDGE + ALPHA * share * DELTA * p0 * (1 - p0))
    expected = [
        -chi * (MU * sf + math.sqrt(DELTA) * gf),
        -chi * sf,
        bias,
        math.log(chi * math.sqrt(DELTA * ff)),
        math.log(chi),
    ]
    assert mass == pytest.approx(min(positive, 1.0 - positive), rel=1e-6)
    np.testing.assert_allclose(z, expected, rtol=1e-6)


@pytest.mark.parametrize("rho", [0.2, 0.7])
def test_the_same_in_step_0(rho: float) -> None:
    """There the labels are true: E[s f] = -2 rho (1 - rho), E[f^2] = rho (1 - rho)."""
    z, product = np.empty(5), rho * (1 - rho)
    group = np.array([ALPHA, rho, DELTA])
    mass = explicit_start(given_first(group, RIDGE), workspace().nodes, z)
    chi = 1.0 / (RIDGE + ALPHA * DELTA * product)
    size = math.log(chi * math.sqrt(ALPHA * DELTA * product))
    expected = [0.0, 2.0 * ALPHA * chi * product, logit(rho), size, math.log(chi)]
    assert mass == pytest.approx(min(rho, 1.0 - rho), rel=1e-14)
    np.testing.assert_allclose(z, expected, rtol=1e-12)
    stage = SupervisedStage(group[:, None], RIDGE)
    np.testing.assert_allclose(stage.explicit(RIDGE), expected, rtol=1e-12)


def test_the_bias_of_several_groups_is_that_of_all_points() -> None:
    groups = np.array([[1.0, 3.0], [0.2, 0.6], [0.5, 2.0]])
    share = (0.2 + 1.8) / 4.0
    chi = 1.0 / (RIDGE + share * (1 - share) * (0.5 + 6.0))
    square = 0.5 * (0.2 * 0.25 + 0.8 * 0.25) + 6.0 * (0.6 * 0.25 + 0.4 * 0.25)
    expected = [0.0, 4.0 * 0.5 * chi, 0.0, math.log(chi * math.sqrt(square)), math.log(chi)]
    for stage in (SupervisedStage(groups, RIDGE), GenericSupervised(Logistic(), groups, RIDGE)):
        found = stage.explicit(RIDGE)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert stage.frame.field_scale == pytest.approx(math.sqrt(6.5 / 4.0), rel=1e-14)


def test_nothing_selected_and_everything_in_one_class() -> None:
    nodes, z = workspace().nodes, np.empty(5)
    assert math.isnan(explicit_start(STEP._replace(threshold=80.0), nodes, z))
    assert 0.0 <= explicit_start(STEP._replace(bias=30.0), nodes, z) < 1e-12


@pytest.mark.parametrize("threshold", [0.0, 0.3])
@pytest.mark.parametrize("fixed_bias", [False, True])
def test_the_state_for_a_small_ridge(threshold: float, fixed_bias: bool) -> None:
    r"""$1/\chi_0 = \alpha\Delta E[l''/(1 + \chi_0\Delta l'')]$ at the old logits, times the
    sharpness; the state is the old one, but for changes of relative size $\lambda\chi_0$.
    """
    step = STEP._replace(alpha=3.0, ridge=1e-4, threshold=threshold, fixed_bias=fixed_bias)
    z = np.empty(5)
    assert no_update_start(step, workspace().nodes, z)

    def excess(log_chi: float) -> float:
        c = math.exp(log_chi) * DELTA

        def one(s: float, g: float, old: float) -> float:
            curvature = expit(1.5 * old) * expit(-1.5 * old)
            return c * curvature / (1 + c * curvature)

        return 3.0 * selected(step, one) - 1.0

    assert z[4] == pytest.approx(brentq(excess, -5.0, 8.0, xtol=1e-9), abs=1e-6)
    small = 1e-4 * math.exp(z[4]) * 1.5 * OMEGA
    assert z[2] == pytest.approx(0.5 * -OLD_BIAS if fixed_bias else 0.0, abs=1e-15)
    assert z[0] == pytest.approx(-small, rel=1e-12)
    assert max(abs(z[1]), math.exp(z[3])) < small


@pytest.mark.parametrize(
    "step",
    [
        STEP._replace(ridge=50.0),
        STEP._replace(ridge=1e-4, alpha=0.9),
        STEP._replace(ridge=1e-4, sharpness=math.inf),
        given_first(np.array([2.0, 0.4, 0.7]), 1e-4),
    ],
    ids=["large ridge", "fewer points than features", "hard labels", "step 0"],
)
def test_where_there_is_no_such_state(step: Given) -> None:
    assert not no_update_start(step, workspace().nodes, np.empty(5))
