"""Averages over the new noise for `extended`, in long doubles, with complex-step derivatives.

The proximal point is found in real numbers; one more Newton step in the complex plane gives its
derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

REAL = np.longdouble

PLAIN_NOISE = 0.05
"""Scale of the new noise below which a Gauss-Hermite rule is exact to all digits."""

NARROW_NOISE = 1.2
"""Scale of the new noise above which the proximal point is the variable of integration."""

TAIL = 11.5
"""End of Gaussian integrals in standard deviations: 1e-29 of the peak."""

NEAR = 1e-13
"""Distance from the root at which one more Newton step completes a proximal point."""


def _legendre(count: int) -> tuple[Any, Any]:
    """Return Gauss-Legendre nodes and weights, refined in long doubles."""
    x = np.polynomial.legendre.leggauss(count)[0].astype(REAL)
    for _ in range(3):
        before, here = np.ones_like(x), x
        for n in range(1, count):
            before, here = here, ((2 * n + 1) * x * here - n * before) / REAL(n + 1)
        slope = count * (x * here - before) / (x * x - 1)
        x = x - here / slope
    return x, 2 / ((1 - x * x) * slope * slope)


def _hermite(count: int) -> tuple[Any, Any]:
    """Return Gauss-Hermite nodes and weights for a standard Gaussian, refined in long doubles."""
    x = np.polynomial.hermite_e.hermegauss(count)[0].astype(REAL)
    for _ in range(3):
        before, here = np.ones_like(x), x
        for n in range(1, count):
            before, here = here, x * here - n * before
        x = x - here / (count * before)
    weights = 1 / before**2
    return x, weights / weights.sum()


NODES, WEIGHTS = _legendre(20)
PLAIN_X, PLAIN_W = _hermite(16)
ROOT_TAU = np.sqrt(8 * np.arctan(REAL(1)))


def sigmoid(x: Any) -> Any:
    """Return 1/(1 + exp(-x)), without overflow."""
    up = np.real(x) >= 0
    e = np.exp(np.where(up, -x, x))
    return np.where(up, 1 / (1 + e), e / (1 + e))


def slope(y: Any, u: Any) -> Any:
    """Return sigma(y + u) - sigma(y) to full relative accuracy."""
    near = np.abs(np.real(u)) < 1
    small = -sigmoid(y + u) * sigmoid(-y) * np.expm1(np.where(near, -u, 0))
    upper = sigmoid(-y) - sigmoid(-y - u)
    lower = sigmoid(y + u) - sigmoid(y)
    far = np.where((np.real(y) > 0) & (np.real(y + u) > 0), upper, lower)
    return np.where(near, small, far)


def bend(x: Any) -> Any:
    """Return the derivative of the sigmoid."""
    return sigmoid(x) * sigmoid(-x)


def pull(soft: bool, y: Any, u: Any) -> Any:
    """Return f at the proximal point u.

    For a soft label, y is its logit and u is relative to it; for a hard label, y is 0 or 1 and u is
    the logit itself.
    """
    if soft:
        return slope(y, u)
    return np.where(np.real(y) > 0.5, -sigmoid(-u), sigmoid(u))


def prox(soft: bool, y: Any, d: Any, c: Any) -> Any:
    """Solve u + c f = d by bracketed Newton's method, with a last step in the complex plane."""
    y, d, strength = np.broadcast_arrays(np.real(y), np.real(d), np.real(c))
    low = np.minimum(d, 0) if soft else np.where(y > 0.5, d, d - strength)
    high = np.maximum(d, 0) if soft else np.where(y > 0.5, d + strength, d)
    u = np.clip(-y if soft else np.zeros_like(d), low, high)
    for _ in range(200):
        value = u + strength * pull(soft, y, u) - d
        high, low = np.where(value > 0, u, high), np.where(value > 0, low, u)
        new = u - value / (1 + strength * bend(y + u if soft else u))
        inside = (new > low) & (new < high)
        new = np.where(inside, new, np.where(value == 0, u, 0.5 * (low + high)))
        done = np.abs(new - u) <= NEAR * np.abs(u)
        u = new
        if done.all():
            break
    return u


def _lifted(soft: bool, y: Any, u: Any, d: Any, c: Any) -> Any:
    """Return the proximal point with its imaginary part, one Newton step from the real one."""
    value = u + c * pull(soft, y, u) - d
    return u - value / (1 + c * bend(y + u if soft else u))


def gaussian(g: Any) -> Any:
    return np.exp(-0.5 * g * g) / ROOT_TAU


def inner(soft: bool, y: Any, d0: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """Return averages of f, f^2, k over the new noise, field d0 + b n, for arrays y and d0."""
    y, d0 = np.broadcast_arrays(y, d0)
    if np.real(b) < NARROW_NOISE:
        if np.real(b) < PLAIN_NOISE:
            n, w = PLAIN_X, PLAIN_W
        else:
            edges = np.linspace(-TAIL, TAIL, 13, dtype=REAL)
            half = 0.5 * (edges[1:] - edges[:-1])[:, None]
            n = (edges[:-1, None] + half * (1 + NODES)).ravel()
            w = (half * WEIGHTS).ravel() * gaussian(n)
        d = d0[..., None] + b * n
        label = y[..., None]
        u = _lifted(soft, label, prox(soft, label, d, c), d, c)
        f = pull(soft, label, u)
        k = bend(label + u if soft else u)
        k = k / (1 + c * k)
        return (f * w).sum(-1), (f * f * w).sum(-1), (k * w).sum(-1)
    return _over_prox(soft, y, d0, b, c)


def _over_prox(soft: bool, y: Any, d0: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """Return the averages of `inner`, with the proximal point as variable of integration."""
    label, centre = np.real(y)[..., None], np.real(d0)[..., None]
    marks = np.array([-TAIL, -8, -5.5, -3.5, -2, -1, 0, 1, 2, 3.5, 5.5, 8, TAIL], dtype=REAL)
    ends = prox(soft, label, centre + np.real(b) * marks, c)
    grades = np.array([-45, -22, -12, -7, -4, -2, 0, 2, 4, 7, 12, 22, 45], dtype=REAL)
    bends = (-label if soft else np.zeros_like(label)) + grades
    bends = np.clip(bends, ends[..., :1], ends[..., -1:])
    ends = np.sort(np.concatenate([ends, bends], axis=-1), axis=-1)
    half = 0.5 * (ends[..., 1:] - ends[..., :-1])[..., None]
    u = ends[..., :-1, None] + half * (1 + NODES)
    label = y[..., None, None]
    f = pull(soft, label, u)
    curve = bend(label + u if soft else u)
    stretch = 1 + c * curve
    w = half * WEIGHTS * gaussian((u + c * f - d0[..., None, None]) / b) * stretch / b
    parts = (f, f * f, curve / stretch)
    return tuple((part * w).sum((-1, -2)) for part in parts)
