r"""The averages of a batch, all of them, for every loss, against a plain double sum in numpy.

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

from selftrain.arrays import Array
from selftrain.labelers import SoftLabels
from selftrain.losses import Loss
from selftrain.theory.averages.batch import (
    LOGISTIC,
    OTHER,
    SQUARED,
    At,
    Batch,
    Labelling,
    batch_averages,
    room_for,
)
from selftrain.theory.averages.generic.averages import GenericAverages
from selftrain.theory.averages.record import NAMES, Extra
from selftrain.theory.step.march import reference_sharpness

M, ROOTS, OLD_BIAS = 0.7, (1.0, 1.3), -0.3
NEW_M, PSI, BIAS, STRENGTHS = 0.9, (0.75, 0.6), 0.1, (1.4, 2.0)
NOISES = {"small noise": (0.5, 0.4), "large noise": (2.4, 3.0)}
EXPONENT = 30.0
LABELS = {
    "soft": (0.0, 1.0),
    "selected": (0.6, 2.0),
    "steep": (0.4, 9.0),
    "hard": (0.5, math.inf),
    "rare": (6.0, 1.5),
}
GROUPS = {
    "one covariance": np.array([[2.0], [0.35]]),
    "two covariances": np.array([[1.3, 0.7], [0.0, 1.0]]),
}


def previous_noise(k: int, s: float, limit: float) -> tuple[Array, Array]:
    """Selected nodes and weights of g1 for one class of a group."""
    x, w = np.polynomial.legendre.leggauss(12)
    centre, spread = s * M + OLD_BIAS, ROOTS[k]
    cuts = [(logit - centre) / spread for logit in (-limit, 0.0, limit)]
    edges = np.unique([*np.linspace(-11.0, 11.0, 45), *cuts])
    nodes = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(edges)])
    weights = np.concatenate([(b - a) / 2 * w for a, b in pairwise(edges)])
    keep = np.abs(centre + spread * nodes) > limit
    return nodes[keep], (weights * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi))[keep]


def trained(loss: str, h: Array, p: Array, c: float) -> tuple[Array, ...]:
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
def exact(loss: str, labels: str, where: str, k: int, rho: float) -> dict[str, float]:
    """The averages of a group by name; `share` is the probability to be selected."""
    limit, sharpness = LABELS[labels]
    c, noise, root = STRENGTHS[k], NOISES[where][k], ROOTS[k]
    n = np.arange(-8.5, 8.51, 0.125)
    wide = 0.125 * np.exp(-(n**2) / 2) / math.sqrt(2 * math.pi)
    sums = dict.fromkeys(NAMES, 0.0)
    for s, part in ((1.0, rho), (-1.0, 1 - rho)):
        g, weight = (column[:, None] for column in previous_noise(k, s, limit))
        old = s * M + OLD_BIAS + root * g
        y = sharpness * old if math.isfinite(sharpness) else np.sign(old) * math.inf
        gain = np.ones_like(old)
        if loss == "logistic":
            p, gain = expit(y) + 0 * n, expit(y) * expit(-y)
        else:
            p = (y if math.isfinite(sharpness) else np.sign(old)) + 0 * n
        h = s * NEW_M + BIAS + PSI[k] * root * g + noise * n
        f, bend, k3, value = trained(loss, h, p, c)
        by_label, ky = -gain * (1 - c * bend), gain * c * k3
        factors = {"s": s, "g": g, "n": n, "f": f, "k": bend, "y": by_label, "K": k3, "Y": ky}
        w = part * weight * wide
        sums["share"] += w.sum()
        for name in NAMES:
            if name != "share":
                letters = name.replace("k3", "K").replace("ky", "Y")
                product = value if name == "loss" else math.prod(factors[x] for x in letters)
                sums[name] += np.sum(w * product)
    return {name: value / (sums["share"] if name != "share" else 1) for name, value in sums.items()}


def asked(
    labels: str, where: str, groups: Array, loss: int, anchor: float
) -> tuple[At, Labelling, Batch]:
    """What a step gives to the averages, measured from `anchor` times the old weights."""
    limit, sharpness = LABELS[labels]
    count = groups.shape[1]
    gamma = float(reference_sharpness(loss, sharpness))
    values = [NEW_M - anchor * M, *(psi - anchor for psi in PSI[:count])]
    values += [*NOISES[where][:count], *STRENGTHS[:count]]
    at = At(BIAS - gamma * OLD_BIAS, np.array(values)[:, None], anchor)
    labelling = Labelling(M, np.array(ROOTS[:count]), OLD_BIAS, gamma)
    return at, labelling, Batch(groups, limit, sharpness, False, loss, np.zeros(2))


def check(moments: np.recarray, loss: str, case: tuple[str, str, Array], rel: float) -> None:
    labels, where, groups = case
    for k, (weight, rho) in enumerate(groups.T):
        expected = exact(loss, labels, where, k, float(rho))
        assert moments[k].share == pytest.approx(weight * expected["share"], rel=1e-9)
        for name in NAMES:
            if name == "share" or (loss == "squared" and name in ("loss", "ky", "sky", "gky")):
                continue
            gap = abs(moments[k][name] - expected[name])
            assert gap <= rel * (abs(expected[name]) + 0.05), (name, k)


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("where", NOISES)
@pytest.mark.parametrize("labels", LABELS)
def test_logistic(labels: str, where: str, groups: Array) -> None:
    """From both anchors: the fields are measured from the old weights, or from nothing."""
    room = room_for(groups.shape[1])
    for anchor in (0.0, 1.0):
        given = asked(labels, where, groups, LOGISTIC, anchor)
        assert batch_averages(*given, EXPONENT, Extra(loss=True), room) > 0
        check(room.moments, "logistic", (labels, where, groups), 1e-9)


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("labels", LABELS)
def test_squared(labels: str, groups: Array) -> None:
    room = room_for(groups.shape[1])
    given = asked(labels, "small noise", groups, SQUARED, 0.0)
    assert batch_averages(*given, EXPONENT, None, room) > 0
    check(room.moments, "squared", (labels, "small noise", groups), 1e-9)


@pytest.mark.parametrize(
    ("labels", "where"), [("selected", "small noise"), ("hard", "large noise"), ("rare", "soft")]
)
def test_any_loss(labels: str, where: str, plain_logistic: Loss) -> None:
    """The same numbers without any knowledge of the loss; labels are not asked for here."""
    where = "small noise" if where == "soft" else where
    for groups in GROUPS.values():
        at, labelling, batch = asked(labels, where, groups, OTHER, 0.0)
        found = GenericAverages(1, plain_logistic, SoftLabels(), labelling, batch).at(at, EXPONENT)
        assert found is not None
        for k, (weight, rho) in enumerate(groups.T):
            expected = exact("logistic", labels, where, k, float(rho))
            assert found[0][k].share == pytest.approx(weight * expected["share"], rel=1e-9)
            for name in NAMES[: NAMES.index("loss")]:
                gap = abs(found[0][k][name] - expected[name])
                assert gap <= 1e-7 * (abs(expected[name]) + 0.05), (name, k)


def test_nothing_is_selected() -> None:
    at, labelling, batch = asked("soft", "small noise", GROUPS["one covariance"], LOGISTIC, 0.0)
    for loss in (LOGISTIC, SQUARED):
        empty = batch._replace(limit=80.0, loss=loss)
        assert batch_averages(at, labelling, empty, EXPONENT, None, room_for(1)) == 0
