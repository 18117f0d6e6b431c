r"""Averages over the new noise for one outer node, against thirty digits of mpmath.

The integral runs over the trained logit x, with $h = x + c(\sigma(x) - p)$, on pieces of twenty
points each; where it begins and ends is found by bisection.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from selftrain.arrays import Array
from selftrain.theory.averages.batch import logistic_averages, room_for
from selftrain.theory.averages.quadrature.rules import Logits
from selftrain.theory.averages.record import Extra, blank
from selftrain.theory.tolerances import PANEL_NOISE

EXPONENT = 34.0
NAMES = ("f", "ff", "k", "nk", "fk", "ffk", "k3", "fk3", "kk", "y", "fy", "ky", "loss")
RULE = np.polynomial.legendre.leggauss(20)
ROOM = room_for(1)


def add_averages(nodes: Array, logits: Logits, extra: Extra | None, out: Any) -> int:
    """Add the averages over some outer nodes (class, previous noise, weight, logit)."""
    ROOM.nodes[:4, : nodes.shape[1]] = nodes
    return logistic_averages(nodes.shape[1], logits, EXPONENT, extra, ROOM, out)


def sigma(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def exact(centre: Any, label: Any, noise: float, c: float) -> dict[str, Any]:
    """The averages by definition; `label` is the logit y of the label."""
    p, rest_p = sigma(label), sigma(-label)

    def slope(x: Any) -> Any:
        return rest_p - sigma(-x) if x > 0 else sigma(x) - p

    def prox(h: Any) -> Any:
        low, high = h - c, h + c
        for _ in range(140):
            middle = (low + high) / 2
            if middle + c * slope(middle) < h:
                low = middle
            else:
                high = middle
        return low

    ends = [prox(centre + t * mp.mpf(noise)) for t in range(-12, 13)]
    ends = sorted(ends + [mp.mpf(t) for t in range(-60, 61, 2) if ends[0] < t < ends[-1]])
    found = dict.fromkeys(NAMES, mp.mpf(0))
    for low, high in pairwise(ends):
        for place, share in zip(*RULE, strict=True):
            x = low + (high - low) * (1 + mp.mpf(float(place))) / 2
            f, bend = slope(x), sigma(x) * sigma(-x)
            free = 1 / (1 + c * bend)
            n = (x + c * f - centre) / noise
            w = mp.mpf(float(share)) * (high - low) / 2 * mp.npdf(n) / noise / free
            k = bend * free
            k3, gain = k * free**2 * (1 - 2 * sigma(x)), p * rest_p
            loss = mp.log1p(mp.exp(-abs(x))) + (rest_p * x if x >= 0 else -p * x)
            values = (f, f * f, k, n * k, f * k, f * f * k, k3, f * k3, k * k)
            values += (-gain * free, -gain * free * f, gain * c * k3, loss)
            for name, value in zip(NAMES, values, strict=True):
                found[name] += w * value
    return found


@pytest.mark.parametrize("noise", [1e-3, 0.2, 1.4, 1.6, 8.0])
@pytest.mark.parametrize("c", [0.3, 40.0, 1e6])
@pytest.mark.parametrize("sharpness", [1.0, 7.0, math.inf])
def test_one_node(noise: float, c: float, sharpness: float) -> None:
    """Soft, steep and hard labels, weak and strong prox; both sides of the change of method."""
    previous, shift, bias = -0.8, 0.3, 0.25
    base = sharpness if sharpness < 4.0 else 0.0
    logits = Logits(base, sharpness, shift, 0.0, bias, noise, c)
    node = np.array([[1.0], [0.0], [1.0], [previous]])
    out = blank()
    points = add_averages(node, logits, Extra(loss=True), out[0])
    assert points > 0
    with mp.workdps(30):
        label = mp.mpf(sharpness) * mp.mpf(previous)
        centre = mp.mpf(base) * mp.mpf(previous) + mp.mpf(shift) + mp.mpf(bias)
        for name, value in exact(centre, label, noise, mp.mpf(c)).items():
            size = abs(value) if name != "nk" else abs(value) + abs(out[0].k)
            assert abs(out[0][name] - value) <= 1e-9 * size, name


def test_without_extras_the_rest_is_the_same() -> None:
    """None leaves out the loss and the derivatives in the label, and nothing else."""
    node = np.array([[1.0, -1.0], [0.4, -1.1], [0.6, 0.4], [0.7, -1.3]])
    for noise in (0.5 * PANEL_NOISE, 2.0 * PANEL_NOISE):
        logits = Logits(1.0, 1.0, 0.2, 0.1, -0.3, noise, 3.0)
        bare, full = blank(), blank()
        add_averages(node, logits, None, bare[0])
        add_averages(node, logits, Extra(loss=True), full[0])
        assert bare[0].loss == bare[0].y == bare[0].sgf == 0.0
        assert full[0].loss > 0.0 > full[0].y
        for name in NAMES[:9]:
            assert bare[0][name] == pytest.approx(full[0][name], rel=1e-15)


@pytest.mark.parametrize("bias", [40.0, -40.0, 0.2])
@pytest.mark.parametrize("noise", [0.5 * PANEL_NOISE, 2.0 * PANEL_NOISE])
@pytest.mark.parametrize("c", [3.0, 1e13])
def test_nodes_add_up_in_any_order(noise: float, bias: float, c: float) -> None:
    """Neighbours share panels; those that are no neighbours must not."""
    previous = np.array([25.0, 3.0, -20.0, 8.0, 2.5, -1.0])
    side, old = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0]), 0.3 * previous
    nodes = np.array([side, old, np.linspace(0.1, 0.3, 6), previous])
    logits, extra = Logits(1.0, 1.0, 0.2, 0.1, bias, noise, c), Extra(loss=True)
    together = blank()
    add_averages(nodes, logits, extra, together[0])
    sums = blank()
    for j in range(6):
        add_averages(nodes[:, j : j + 1], logits, extra, sums[0])
    for name in together.dtype.names:
        size = abs(sums[0][name]) + 1e-3 * abs(sums[0].f)
        assert abs(together[0][name] - sums[0][name]) <= 1e-8 * size, name
