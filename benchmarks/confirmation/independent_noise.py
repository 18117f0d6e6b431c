r"""Averages over the new noise for `independent`: f, f^2 and df/dh at given labels and fields.

The proximal point of the logistic loss is found by bracketed Newton's method. If the noise is
narrow, the average is a Gauss-Hermite rule over the noise; if it is wide, adaptive panels over the
proximal point. Averages of Huber's loss are truncated moments in closed form.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
FEW_X, FEW_W = np.polynomial.hermite_e.hermegauss(8)
MORE_X, MORE_W = np.polynomial.hermite_e.hermegauss(24)
FEW_W, MORE_W = FEW_W / FEW_W.sum(), MORE_W / MORE_W.sum()

WIDE_X = (-9.6 + 3.2 * np.arange(6)[:, None] + 1.6 * (1.0 + NODES)).ravel()
WIDE_W = np.tile(1.6 * WEIGHTS, 6) * np.exp(-0.5 * WIDE_X**2) / math.sqrt(2.0 * math.pi)

GRADES = np.array([0.0, 1.0, 3.5, 10.0, 38.0])
"""Distances from a bend of the integrand at which panels end, in units of its width."""

DEEPEST = 12
"""Largest number of halvings of a panel."""

COARSE = 1e-6
"""Tolerance at which panels are not halved: accurate enough for finite differences."""

ROOT_TAU = math.sqrt(2.0 * math.pi)


class Label(NamedTuple):
    """The label of a sample and the distribution of its field.

    Attributes:
        soft: whether the label is soft.
        at: the logit of a soft label, to which fields are relative; otherwise the label, 0 or 1.
        centre, scale: the field is `centre` + `scale` times the new noise.
        strength: c of the proximal map.
    """

    soft: bool
    at: float
    centre: float
    scale: float
    strength: float


@njit(cache=True, error_model="numpy")
def sigmoid(x: float) -> float:
    """Return 1/(1 + exp(-x)) without overflow."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@njit(cache=True, error_model="numpy")
def bent(x: float) -> float:
    """Return the derivative of the sigmoid."""
    e = math.exp(-abs(x))
    return e / (1.0 + e) ** 2


@njit(cache=True, error_model="numpy")
def slope_soft(y: float, u: float) -> float:
    """Return sigma(y + u) - sigma(y) to full relative accuracy."""
    if abs(u) < 1.0:
        return -sigmoid(y + u) * sigmoid(-y) * math.expm1(-u)
    if y > 0 and y + u > 0:
        return sigmoid(-y) - sigmoid(-y - u)
    return sigmoid(y + u) - sigmoid(y)


@njit(cache=True, error_model="numpy")
def prox_soft(y: float, d: float, c: float) -> float:
    """Solve u + c (sigma(y + u) - sigma(y)) = d for u, between 0 and d, by bracketed Newton's
    method.
    """
    low, high = min(0.0, d), max(0.0, d)
    u = d / (1.0 + c * bent(y))
    for _ in range(200):
        if not low <= u <= high:
            u = 0.5 * (low + high)
        x = y + u
        value = u + c * slope_soft(y, u) - d
        if value > 0:
            high = u
        else:
            low = u
        move = -value / (1.0 + c * bent(x))
        if abs(move) <= 2e-16 * abs(u) or high - low <= 1e-16 * (abs(low) + abs(high)):
            return u + move
        u += move
    return u


@njit(cache=True, error_model="numpy")
def prox_hard(p: float, h: float, c: float) -> float:
    """Solve x + c (sigma(x) - p) = h for x."""
    low, high = h - c * (1.0 - p), h + c * p
    x = min(max(0.0, low), high)
    for _ in range(200):
        f = sigmoid(x) if p == 0.0 else -sigmoid(-x)
        value = x + c * f - h
        if value > 0:
            high = x
        else:
            low = x
        move = -value / (1.0 + c * bent(x))
        new = x + move
        if abs(move) <= 2e-16 * abs(x) or high - low <= 1e-16 * (abs(low) + abs(high)):
            return new
        x = new if low <= new <= high else 0.5 * (low + high)
    return x


@njit(cache=True, error_model="numpy")
def trained(label: Label, noise: float, out: Any) -> float:
    """Write f, f^2 and k = df/dh at one value of the noise to `out`; return the proximal point."""
    field, c = label.centre + label.scale * noise, label.strength
    u = prox_soft(label.at, field, c) if label.soft else prox_hard(label.at, field, c)
    at_u(label, u, out)
    return u


@njit(cache=True, error_model="numpy")
def at_u(label: Label, u: float, out: Any) -> tuple[float, float]:
    """Write f, f^2 and k at a proximal point to `out`; return the field and its derivative in u."""
    y, c = label.at, label.strength
    x = y + u if label.soft else u
    f = slope_soft(y, u) if label.soft else (sigmoid(x) if y == 0.0 else -sigmoid(-x))
    bend = bent(x)
    out[0], out[1], out[2] = f, f * f, bend / (1.0 + c * bend)
    return u + c * f, 1.0 + c * bend


@njit(cache=True, error_model="numpy")
def panel_u(label: Label, lo: float, hi: float, out: Any) -> None:
    """Write the integrals of f, f^2, k and 1 over a panel of the proximal point to `out`."""
    row = np.empty(3)
    half = 0.5 * (hi - lo)
    out[:] = 0.0
    for j in range(16):
        field, stretch = at_u(label, lo + half * (1.0 + NODES[j]), row)
        g = (field - label.centre) / label.scale
        w = half * WEIGHTS[j] * math.exp(-0.5 * g * g) / ROOT_TAU * stretch / label.scale
        for i in range(3):
            out[i] += w * row[i]
        out[3] += w


@njit(cache=True, error_model="numpy")
def inner_logistic(label: Label, tol: float, out: Any) -> None:
    """Write the averages of f, f^2 and k over the new noise to `out`."""
    out[:3] = 0.0
    if label.scale < 0.3:
        few = label.scale < 0.03
        over_noise(label, FEW_X if few else MORE_X, FEW_W if few else MORE_W, out)
    elif label.scale < 1.2:
        over_noise(label, WIDE_X, WIDE_W, out)
    else:
        over_prox(label, tol, out)


@njit(cache=True, error_model="numpy")
def over_noise(label: Label, nodes: Any, weights: Any, out: Any) -> None:
    """Add the averages of f, f^2 and k, by a quadrature over the noise, to `out`."""
    row = np.empty(3)
    for j in range(nodes.size):
        if weights[j] > 1e-20:
            trained(label, nodes[j], row)
            for i in range(3):
                out[i] += weights[j] * row[i]


@njit(cache=True, error_model="numpy")
def prox_ends(label: Label) -> Any:
    """Return the ends of the initial panels of the proximal point, in order."""
    row, edges = np.empty(3), np.empty(27)
    n = 0
    for g in (-9.0, -5.0, -2.2, 0.0, 2.2, 5.0, 9.0):
        edges[n] = trained(label, g, row)
        n += 1
    low, high = edges[0], edges[n - 1]
    bend = -label.at if label.soft else 0.0  # where x = 0
    for side in (-1.0, 1.0):
        for grade in GRADES[1:]:
            edges[n] = min(max(bend + side * grade, low), high)
            n += 1
    edges[n] = min(max(0.0, low), high)
    return np.sort(edges[: n + 1])


@njit(cache=True, error_model="numpy")
def over_prox(label: Label, tol: float, out: Any) -> None:
    """Add the averages of f, f^2 and k, as integrals over the proximal point, to `out`; panels are
    halved until the integrals converge.
    """
    ends = prox_ends(label)
    stack = np.empty((200, 3))
    whole, left, right = np.empty(4), np.empty(4), np.empty(4)
    size = np.zeros(4)
    count = 0
    for j in range(ends.size - 1):
        if ends[j + 1] > ends[j]:
            stack[count, 0], stack[count, 1], stack[count, 2] = ends[j], ends[j + 1], 0
            count += 1
            panel_u(label, ends[j], ends[j + 1], whole)
            size += np.abs(whole)
            if tol >= COARSE:
                out[:3] += whole[:3]
    if tol >= COARSE:
        return
    while count > 0:
        count -= 1
        lo, hi, depth = stack[count]
        mid = lo + 0.47 * (hi - lo)
        panel_u(label, lo, hi, whole)
        panel_u(label, lo, mid, left)
        panel_u(label, mid, hi, right)
        good = depth >= DEEPEST or count > 190
        if not good:
            good = True
            for i in range(4):
                good &= abs(left[i] + right[i] - whole[i]) <= 0.1 * tol * size[i]
        if good:
            for i in range(3):
                out[i] += left[i] + right[i]
        else:
            stack[count, 0], stack[count, 1], stack[count, 2] = lo, mid, depth + 1
            stack[count + 1, 0], stack[count + 1, 1], stack[count + 1, 2] = mid, hi, depth + 1
            count += 2


@njit(cache=True, error_model="numpy")
def inner_huber(d0: float, b: float, c: float, width: float, out: Any) -> None:
    """Write the averages of f, f^2 and k of Huber's loss to `out`.

    They are truncated moments of f = clip(d/(1+c), -width, width), with the distance d to the
    target.
    """
    k = 1.0 / (1.0 + c)
    edge = width * (1.0 + c)
    lo, hi = (-edge - d0) / b, (edge - d0) / b
    below, above = 0.5 * math.erfc(-lo / math.sqrt(2.0)), 0.5 * math.erfc(hi / math.sqrt(2.0))
    if lo > 0:  # probability of the linear range, without cancellation
        inside = 0.5 * (math.erfc(lo / math.sqrt(2.0)) - math.erfc(hi / math.sqrt(2.0)))
    elif hi < 0:
        inside = 0.5 * (math.erfc(-hi / math.sqrt(2.0)) - math.erfc(-lo / math.sqrt(2.0)))
    else:
        inside = 0.5 * (math.erf(hi / math.sqrt(2.0)) - math.erf(lo / math.sqrt(2.0)))
    at_lo, at_hi = math.exp(-0.5 * lo * lo) / ROOT_TAU, math.exp(-0.5 * hi * hi) / ROOT_TAU
    first = at_lo - at_hi
    second = inside + (lo * at_lo if at_lo > 0 else 0.0) - (hi * at_hi if at_hi > 0 else 0.0)
    out[0] = k * (d0 * inside + b * first) + width * (above - below)
    out[1] = k * k * (d0 * d0 * inside + 2 * d0 * b * first + b * b * second) + width**2 * (
        above + below
    )
    out[2] = k * inside
