r"""The averages of a step, all of them, for each engine, against a plain double sum in numpy.

The previous noise is summed on short Gauss panels that end at thresholds and at jumps of the label,
the new one on an even grid, which is exact to rounding for smooth functions that fall as a
Gaussian; the prox is found by bisection.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from selftrain.labelers import SoftLabels
from selftrain.losses import Loss
from selftrain.theory.engines.generic.engine import MASS, SHARP, GenericStage
from selftrain.theory.engines.logistic.step import evaluate, reference_sharpness, workspace
from selftrain.theory.engines.squared.stage import ClosedStage
from selftrain.theory.step.averages import COUNT, NAMES, Extra, named
from selftrain.theory.step.given import Given

OMEGA, MU, NU2, OLD_BIAS, ALPHA, RHO, DELTA, RIDGE = 1.2, 0.6, 0.64, -0.3, 2.0, 0.35, 0.7, 0.1
EXPONENT = 30.0
Z = {
    "small noise": np.array([0.9, 0.5, 0.1, math.log(0.4), math.log(2.0)]),
    "large noise": np.array([0.9, 0.5, 0.1, math.log(2.6), math.log(0.7)]),
}
LABELS = {"soft": (0.0, 1.0), "selected": (0.5, 2.0), "steep": (0.3, 9.0), "hard": (0.4, math.inf)}


def given(labels: str) -> Given:
    threshold, sharpness = LABELS[labels]
    return Given(OMEGA, MU, NU2, OLD_BIAS, ALPHA, RHO, DELTA, RIDGE, threshold, sharpness, False)


def previous_noise(s: float, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Selected nodes and weights of g1 for one class."""
    x, w = np.polynomial.legendre.leggauss(12)
    centre, spread = s * MU * OMEGA + OLD_BIAS, math.sqrt(DELTA) * OMEGA
    cuts = [(logit * OMEGA - centre) / spread for logit in (-threshold, 0.0, threshold)]
    edges = np.unique([*np.linspace(-8.5, 8.5, 35), *cuts])
    nodes = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(edges)])
    weights = np.concatenate([(b - a) / 2 * w for a, b in pairwise(edges)])
    keep = np.abs(centre + spread * nodes) > threshold * OMEGA
    return nodes[keep], (weights * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi))[keep]


def trained(loss: str, h: np.ndarray, p: np.ndarray, c: float) -> tuple[np.ndarray, ...]:
    """f, k, k' and the loss at the prox of h."""
    if loss == "squared":
        f, k = (h - p) / (1 + c), np.full_like(h, 1 / (1 + c))
        return f, k, 0 * h, f**2 / 2
    low, high = h - c, h + c
    for _ in range(60):
        x = (low + high) / 2
        below = x + c * (expit(x) - p) < h
        low, high = np.where(below, x, low), np.where(below, high, x)
    bend = expit(x) * expit(-x)
    k = bend / (1 + c * bend)
    value = np.logaddexp(0.0, x) - p * x
    return expit(x) - p, k, bend * (1 - 2 * expit(x)) / (1 + c * bend) ** 3, value


@cache
def exact(loss: str, labels: str, where: str) -> tuple[dict[str, float], float, np.ndarray]:
    """The averages by name, the selected share, and what the sharpness does to five of them."""
    threshold, sharpness = LABELS[labels]
    z, root = Z[where], math.sqrt(DELTA)
    a, eta, c = z[0], z[1], math.exp(z[4]) * DELTA
    off = math.sqrt(NU2 * eta**2 + math.exp(2 * z[3]))
    n = np.arange(-8.5, 8.51, 0.125)
    wide = 0.125 * np.exp(-(n**2) / 2) / math.sqrt(2 * math.pi)
    sums, share, sharp = dict.fromkeys(NAMES, 0.0), 0.0, np.zeros(5)
    for s, part in ((1.0, RHO), (-1.0, 1 - RHO)):
        g, weight = (column[:, None] for column in previous_noise(s, threshold))
        old = s * MU * OMEGA + OLD_BIAS + root * OMEGA * g
        y = sharpness * old if math.isfinite(sharpness) else np.sign(old) * math.inf
        if loss == "logistic":
            p, gain = expit(y) + 0 * n, expit(y) * expit(-y)
        else:
            p = (y if math.isfinite(sharpness) else np.sign(old)) + 0 * n
            gain = np.ones_like(y)
        h = s * (MU * a + NU2 * eta) + z[2] + root * (a * g + off * n)
        f, k, k3, value = trained(loss, h, p, c)
        by_label = -gain * (1 - c * k)
        ky = gain * c * k3
        factors = {"s": s, "g": g, "n": n, "f": f, "k": k, "y": by_label, "K": k3, "Y": ky}
        w = part * weight * wide
        share += w.sum()
        for name in NAMES:
            letters = name.replace("k3", "K").replace("ky", "Y")
            product = value if name == "loss" else math.prod(factors[x] for x in letters)
            sums[name] += np.sum(w * product)
        moves = (by_label, s * by_label, g * by_label, 2 * f * by_label, ky)
        sharp += [np.sum(w * old * move) for move in moves]
    return {name: value / share for name, value in sums.items()}, share, sharp / share


def assert_same(found: dict[str, float], expected: dict[str, float], tolerance: float) -> None:
    for name, value in found.items():
        assert abs(value - expected[name]) <= tolerance * (abs(expected[name]) + 0.05), name


@pytest.mark.parametrize("where", Z)
@pytest.mark.parametrize("labels", LABELS)
def test_the_compiled_engine(labels: str, where: str) -> None:
    step, work = given(labels), workspace()
    expected, share, _ = exact("logistic", labels, where)
    for anchor in {0.0, float(reference_sharpness(step.sharpness))}:
        z = Z[where] - np.array([anchor * OMEGA, 0.0, anchor * OLD_BIAS, 0.0, 0.0])
        _, log_share = evaluate(z, step, anchor, EXPONENT, Extra(True, True), work)
        assert math.exp(log_share) == pytest.approx(share, rel=1e-10)
        assert_same({name: work.averages[0][name] for name in NAMES}, expected, 1e-9)


@pytest.mark.parametrize(
    ("labels", "where"), [("selected", "small noise"), ("hard", "large noise")]
)
def test_the_engine_for_any_loss(labels: str, where: str, plain_logistic: Loss) -> None:
    """It writes what labels do per old logit, not per logit of the label."""
    step = given(labels)
    stage = GenericStage(
        plain_logistic, SoftLabels(), 1, np.array(step[:4]), np.array(step[4:7]), *step[7:]
    )
    found, _ = stage._integrals(Z[where], EXPONENT, with_labels=True)
    expected, share, sharp = exact("logistic", labels, where)
    per_logit = {
        name: value * (step.sharpness if "y" in name and value else 1.0)
        for name, value in expected.items()
    }
    assert found[MASS] == pytest.approx(share, rel=1e-10)
    averages = named(found[:COUNT].copy())
    assert_same({name: averages[name] for name in NAMES}, per_logit, 1e-7)
    if math.isfinite(step.sharpness):
        np.testing.assert_allclose(found[SHARP], sharp, atol=1e-7)


@pytest.mark.parametrize("labels", LABELS)
def test_the_closed_form(labels: str) -> None:
    """Of the loss it knows the average by other means."""
    step, z = given(labels), Z["small noise"]
    stage = ClosedStage(1, step)
    slide, lift = z[0] - stage.base * OMEGA, z[2] - stage.base * OLD_BIAS
    found_share, found = stage._moments(z, slide, lift)
    expected, share, _ = exact("squared", labels, "small noise")
    assert found_share == pytest.approx(share, rel=1e-12)
    names = [name for name in NAMES if name != "loss"]
    assert_same({name: found[name] for name in names}, expected, 1e-10)
