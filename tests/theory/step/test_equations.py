r"""The equations of a step against their definition in numpy, on a few points instead of integrals.

A group of points is a weighted list of (s, g_1, g_2, p). The logit of a point is $h = s(\mu a +
\nu^2\eta) + B + \sqrt\Delta (a g_1 + |(\nu\eta, r)| g_2)$; its prox is found by bisection.
"""

import math

import numpy as np
import pytest
from scipy.special import expit

from selftrain.theory.step.averages import blank
from selftrain.theory.step.equations import (
    Frame,
    Groups,
    System,
    assemble,
    blank_system,
    damping,
    frame,
    frame_first,
    newton_step,
    solve_linear,
    step_size,
)
from selftrain.theory.step.given import Given

ALPHA, DELTA, MU, NU2, RIDGE = np.array([1.3, 0.6]), np.array([0.7, 1.9]), 0.6, 0.4, 0.3
OFFSET, OLD_BIAS = 0.5, -0.2
Z = np.array([0.35, 0.8, 0.1, math.log(0.9), math.log(1.4)])
LATER = Frame(RIDGE, 0.9, MU, NU2, OFFSET, OLD_BIAS, 0.8, False, math.nan)
FIRST = Frame(RIDGE, 0.0, 0.0, 1.0, 0.0, 0.0, 0.8, True, math.nan)


def points(group: int) -> tuple[np.ndarray, ...]:
    """Class, both noises, label and weight of each point of a group."""
    random = np.random.default_rng(group)
    s = np.where(random.uniform(size=9) < 0.4, 1.0, -1.0)
    g, n = random.standard_normal((2, 9))
    return s, g, n, random.uniform(size=9), random.dirichlet(np.ones(9))


def trained(z: np.ndarray, about: Frame, group: int) -> tuple[np.ndarray, ...]:
    """f, k and k' = dk/dh of the points of a group."""
    s, g, n, p, _ = points(group)
    a, eta, r = about.offset + z[0], z[1], math.exp(z[3])
    root, c = math.sqrt(DELTA[group]), math.exp(z[4]) * DELTA[group]
    off = math.sqrt(about.nu2 * eta**2 + r**2)
    h = s * (about.mu * a + about.nu2 * eta) + about.old_bias + z[2] + root * (a * g + off * n)
    low, high = h - c, h + c
    for _ in range(100):
        x = (low + high) / 2
        below = x + c * (expit(x) - p) < h
        low, high = np.where(below, x, low), np.where(below, high, x)
    bend = expit(x) * expit(-x)
    k = bend / (1 + c * bend)
    return expit(x) - p, k, bend * (1 - 2 * expit(x)) / (1 + c * bend) ** 3


def residual(z: np.ndarray, about: Frame) -> np.ndarray:
    """The five equations as the module states them."""
    m_hat = f_sum = gf_sum = chi_hat = q_hat = 0.0
    for i, (alpha, delta) in enumerate(zip(ALPHA, DELTA, strict=True)):
        (s, g, _, _, w), (f, k, _) = points(i), trained(z, about, i)
        m_hat -= alpha * np.sum(w * s * f)
        f_sum += alpha * np.sum(w * f)
        gf_sum += alpha * math.sqrt(delta) * np.sum(w * g * f)
        chi_hat += alpha * delta * np.sum(w * f * f)
        q_hat += alpha * delta * np.sum(w * k)
    a, eta, log_r, log_chi = about.offset + z[0], z[1], z[3], z[4]
    return np.array(
        [
            0.0 if about.first else about.ridge * a - about.mu * m_hat + gf_sum,
            (q_hat + about.ridge) * eta - m_hat,
            f_sum if math.isnan(about.fixed_bias) else z[2] - about.fixed_bias,
            math.log(chi_hat) + 2 * log_chi - 2 * log_r,
            log_chi + math.log(q_hat + about.ridge),
        ]
    )


def assembled(z: np.ndarray, about: Frame) -> System:
    averages = blank(2)
    for i in range(2):
        s, g, n, _, w = points(i)
        f, k, k3 = trained(z, about, i)
        factors = {"s": s, "g": g, "n": n, "f": f, "k": k}
        for name in averages.dtype.names:
            if name != "loss" and "y" not in name:
                plain = name.removesuffix("k3")
                value = w * (k3 if name.endswith("k3") else 1.0)
                averages[i][name] = np.sum(value * np.prod([factors[x] for x in plain], axis=0))
    out = blank_system()
    assemble(z, Groups(ALPHA, DELTA, averages), about, out)
    return out


@pytest.mark.parametrize(
    "about",
    [LATER, FIRST, LATER._replace(fixed_bias=0.07)],
    ids=["later step", "step 0", "bias fixed"],
)
def test_residuals_and_jacobian(about):
    z = np.where(np.arange(5) == 0, 0.0, Z) if about.first else Z
    found = assembled(z, about)
    np.testing.assert_allclose(found.residual, residual(z, about), rtol=1e-12, atol=1e-14)
    expected = np.empty((5, 5))
    for j in range(5):
        step = 1e-5 * np.eye(5)[j]
        expected[:, j] = (residual(z + step, about) - residual(z - step, about)) / 2e-5
    if about.first:
        expected[:, 0] = 0.0
        expected[0] = np.eye(5)[0]
    np.testing.assert_allclose(found.jacobian, expected, atol=1e-8)


def test_the_frame_of_a_step():
    given = Given(0.9, 0.6, 0.4, -0.5, 2.0, 0.3, 0.49, 0.1, 0.0, 1.0, True)
    expected = (0.1, 0.9, 0.6, 0.4, 0.72, -0.4, 0.7, False, -0.1)
    np.testing.assert_allclose(frame(given, 0.8), expected, rtol=1e-14)
    assert math.isnan(frame(given._replace(fixed_bias=False), 0.8).fixed_bias)
    np.testing.assert_array_equal(frame_first(RIDGE, 0.8), FIRST)


def test_linear_equations_of_any_scale():
    """Rows of very different size, and a zero where the first pivot would be."""
    random = np.random.default_rng(3)
    matrix, exact = random.standard_normal((5, 5)), random.standard_normal(5)
    matrix[0, 0] = matrix[3, 1] = 0.0
    matrix *= np.array([[1e-12], [1.0], [1e9], [1e-3], [1.0]])
    given, found = matrix.copy(), np.empty(5)
    assert solve_linear(matrix, matrix @ exact, found)
    np.testing.assert_allclose(found, exact, rtol=1e-11)
    np.testing.assert_array_equal(matrix, given)


def test_the_largest_pivot_is_taken():
    """Without it, 1e-20 in the corner would lose the second unknown."""
    matrix, found = np.array([[1e-20, 1.0], [1.0, 1.0]]), np.empty(2)
    assert solve_linear(matrix, np.array([1.0, 2.0]), found)
    np.testing.assert_allclose(found, [1.0, 1.0], rtol=1e-14)


@pytest.mark.parametrize(
    "matrix",
    [
        [[1.0, 2.0], [2.0, 4.0]],
        [[0.0, 0.0], [1.0, 1.0]],
        [[np.inf, 1.0], [1.0, 1.0]],
        [[np.nan, 1.0], [1.0, 1.0]],
    ],
    ids=["singular", "empty row", "infinite", "no number"],
)
def test_what_cannot_be_solved(matrix):
    assert not solve_linear(np.array(matrix), np.ones(2), np.empty(2))


def test_a_newton_step_and_its_size():
    system = System(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 10.0 * np.eye(5), np.empty(5))
    assert newton_step(Z, system, LATER) == pytest.approx(0.5, rel=1e-14)
    np.testing.assert_allclose(system.step, [-0.1, -0.2, -0.3, -0.4, -0.5], rtol=1e-14)
    assert newton_step(Z, system._replace(jacobian=np.zeros((5, 5))), LATER) == math.inf


NORM = math.sqrt(0.85**2 + 0.4 * 0.8**2 + 0.9**2)
"""Of the weights at Z: a = 0.85, nu^2 eta^2 and r^2."""


@pytest.mark.parametrize(
    ("step", "size"),
    [
        ([-0.1, 0.0, 0.0, 0.0, 0.0], 0.1 / NORM),
        ([0.0, -0.1, 0.0, 0.0, 0.0], math.sqrt(0.4) * 0.1 / NORM),
        ([0.0, 0.0, -0.1, 0.0, 0.0], 0.1 / (0.1 + 0.8 * NORM)),
        ([0.0, 0.0, 0.0, -0.1, 0.0], 0.1),
        ([0.0, 0.0, 0.0, 0.0, -0.1], 0.1),
    ],
    ids=["a", "eta", "bias", "ln r", "ln chi"],
)
def test_the_size_of_a_step_is_relative_to_the_state(step, size):
    assert step_size(Z, np.array(step), LATER) == pytest.approx(size, rel=1e-12)


def test_a_large_old_overlap_measures_eta_by_itself():
    """nu^2 is small: the weights hardly know eta, but it is a number to get right."""
    about = LATER._replace(nu2=1e-12)
    norm = math.hypot(0.85, 0.9)
    size = step_size(Z, np.array([0.0, 0.1, 0.0, 0.0, 0.0]), about)
    assert size == pytest.approx(0.1 / (0.8 + norm), rel=1e-9)


@pytest.mark.parametrize(
    ("step", "factor"),
    [
        ([0.1, 0.1, 50.0, 1.4, -1.4], 1.0),
        ([0.0, 0.0, 0.0, 3.0, -6.0], 0.25),
        ([0.0, 0.0, 0.0, -6.0, 3.0], 0.25),
        ([-100.0, 0.0, 0.0, 0.0, 0.0], 2.0 * (NORM + 0.9) / 100.0),
        ([0.0, -100.0, 0.0, 0.0, 0.0], 2.0 * (NORM + 0.9) / (100.0 * math.sqrt(0.4))),
        ([-100.0, 0.0, 0.0, 600.0, 0.0], 1.5 / 600.0),
    ],
)
def test_long_steps_are_damped(step, factor):
    """At most 1.5 in the logarithms, twice the old and new weights in these."""
    assert damping(Z, np.array(step), LATER) == pytest.approx(factor, rel=1e-12)
