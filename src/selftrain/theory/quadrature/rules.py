r"""Rules for the Gaussian expectations of the self-consistent equations.

The integrands are analytic in a strip: the label $\sigma(\gamma\tilde h)$ has poles at $\gamma\tilde h = \pm i\pi$, and the
proximal map of the logistic loss has branch points at $\mathrm{Im}\,h = \pm\pi$ for every strength c. Divided
by the scale of the Gaussian argument this gives the distance D of the nearest singularity, and D
gives the size of a rule for an error $e^{-T}$:

- Gauss-Hermite with n nodes errs by $n!\,D^{-2n}$ (for $n \le D^2$);
- the trapezoidal rule of step $2\pi D/(T + D^2/2)$, never longer than $\pi\sqrt{2/T}$;
- where the integrand jumps (thresholds, hard labels) or is steep, 16-point Gauss-Legendre panels
  that keep every singularity off the Bernstein ellipse of error $e^{-T}$, $\eta = T/32$ (`clear_length`).

`outer_rule` integrates over the class and the previous logit, `inner_rule` over the new noise.
"""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
from scipy.special import roots_hermitenorm, roots_legendre

from ...runtime.kernels import kernel

CAPACITY = 24000
HERMITE_MAX = 24

REFINED = 10.0
"""The refined rule aims at an error smaller by exp(-REFINED)."""

LEVELS = 3
"""How often the rule is refined before a step counts as failed."""

PANEL_X, PANEL_W = roots_legendre(16)
HERMITE_X = np.zeros((HERMITE_MAX + 1, HERMITE_MAX))
HERMITE_W = np.zeros((HERMITE_MAX + 1, HERMITE_MAX))
for _n in range(1, HERMITE_MAX + 1):
    _x, _w = roots_hermitenorm(_n)
    HERMITE_X[_n, :_n], HERMITE_W[_n, :_n] = _x, _w / _w.sum()


@kernel(error_model="numpy")
def hermite_size(distance: float, exponent: float) -> int:
    """Nodes of the Gauss-Hermite rule of error exp(-exponent), or 0 if it would be a long one."""
    log_error = 0.0
    for n in range(1, HERMITE_MAX):
        log_error += math.log(n) - 2.0 * math.log(distance)
        if log_error <= -exponent:
            return n + 1
        if n > distance * distance:
            return 0
    return 0


@kernel(error_model="numpy")
def trapezoid_step(distance: float, exponent: float) -> float:
    """Step of the trapezoidal rule against a Gaussian, for an error exp(-exponent)."""
    return min(
        math.pi * math.sqrt(2.0 / exponent),
        2.0 * math.pi * distance / (exponent + 0.5 * distance * distance),
    )


@kernel(error_model="numpy")
def inner_rule(scale: float, exponent: float, x: Any, w: Any) -> int:
    """Standard Gaussian nodes for a function of `scale * x` that is analytic up to Im = pi."""
    distance = math.pi / max(scale, 1e-300)
    n = hermite_size(distance, exponent)
    if n > 0:
        for i in range(n):
            x[i] = HERMITE_X[n, i]
            w[i] = HERMITE_W[n, i]
        return n
    step = trapezoid_step(distance, exponent)
    half = math.ceil(math.sqrt(2.0 * exponent) / step)
    n = 2 * half + 1
    for i in range(n):
        x[i] = (i - half) * step
        w[i] = step * math.exp(-0.5 * x[i] * x[i]) / math.sqrt(2.0 * math.pi)
    return n


@kernel(error_model="numpy")
def clear_length(x: float, longest: float, near: Any, floor: float, exponent: float) -> float:
    r"""Length of a 16-point panel that starts at x, at most `longest`, of error exp(-exponent).

    Convergence is $e^{-32\eta}$ if all singularities lie outside the ellipse with the ends as foci:
    the distances to both ends add up to at least length times $\cosh\eta$. `near` lists (real,
    imaginary) parts of singularities; none is closer to the axis than `floor`.
    """
    eta = exponent / 32.0
    least = min(longest, 2.0 * floor / math.sinh(eta))
    length = longest
    for i in range(near.shape[0]):
        here = math.hypot(x - near[i, 0], near[i, 1])
        while length > least and here + math.hypot(
            x + length - near[i, 0], near[i, 1]
        ) < length * math.cosh(eta):
            length *= 0.85
    return max(length, least)


@kernel(error_model="numpy")
def _panels(
    lo: float, hi: float, near: Any, floor: float, exponent: float, nodes: Any, count: int
) -> int:
    """Append Gauss-Legendre nodes on [lo, hi] to rows 1 (g) and 2 (weight) of `nodes`."""
    x = lo
    while x < hi:
        longest = min(3.5, hi - x)
        length = clear_length(x, longest, near, floor, exponent)
        if count + 16 > nodes.shape[1] or x + length <= x:
            return -1
        for i in range(16):
            nodes[1, count] = x + 0.5 * length * (1.0 + PANEL_X[i])
            nodes[2, count] = 0.5 * length * PANEL_W[i]
            count += 1
        x = hi if length == hi - x else x + length
    return count


@kernel(error_model="numpy")
def _branch_points(
    new_centre: float,
    new_scale: float,
    noise: float,
    c: float,
    centre: float,
    spread: float,
    sharpness: float,
    reach: float,
    near: Any,
) -> None:
    r"""Where the prox has branch points as a function of $g_1$; fills the rows of `near` from 1 on.

    The prox depends on $G = h + c\,p$ alone, with branch points at $-e \pm i\pi$ and $c + e \pm i\pi$. The average
    over new noise of scale b replaces them by growth like $\exp((\mathrm{Im}^2 - \mathrm{Re}^2)/2b^2)$ around these
    points, kept off by treating a row of points at height 3b as singular. For hard labels h is linear in
    $g_1$ on each side; for soft ones $G(g_1)$ is inverted by bisection on the axis and Newton off it.
    """
    root = math.sqrt(1.0 + 4.0 / c)
    edge = math.log((root + 1.0) / (root - 1.0)) + 2.0 / (1.0 + root)
    height = max(math.pi, 3.0 * noise)
    new_scale = max(new_scale, 1e-300)
    near[1:, 0] = near[0, 0]
    near[1:, 1] = near[0, 1]
    if math.isinf(sharpness):
        for i in range(4):
            target = edge if i < 2 else edge + c
            near[1 + i, 0] = ((target if i % 2 == 0 else -target) - new_centre) / new_scale
            near[1 + i, 1] = height / new_scale
        return
    rate = sharpness * spread
    k = 1
    for offset in range(-2, 3):
        if offset != 0 and 3.0 * noise < math.pi:
            continue
        target = -edge + 1.5 * offset * noise
        for side in (-1.0, 1.0):
            # the upper edge is the lower one after h -> -h, y -> -y
            lo, hi = -reach, reach
            for _ in range(30):
                g = 0.5 * (lo + hi)
                label = 1.0 / (1.0 + math.exp(side * sharpness * (centre + spread * g)))
                if (-side * (new_centre + new_scale * g) + c * label > target) == (side < 0):
                    hi = g
                else:
                    lo = g
            if abs(lo) > 0.999 * reach:
                continue
            # from there G grows like k Y + A exp(Y): start Newton at a root of (A + k)(exp(Y) - 1)
            label = 1.0 / (1.0 + math.exp(side * sharpness * (centre + spread * lo)))
            first = cmath.log(complex(1.0, height / (c * label + new_scale / rate))) / rate
            z = lo - side * first
            for _ in range(6):
                e = cmath.exp(side * sharpness * (centre + spread * z))
                label_z = 1.0 / (1.0 + e)
                value = -side * (new_centre + new_scale * z) + c * label_z
                slope = -side * (new_scale + c * rate * label_z * (1.0 - label_z))
                move = (complex(target, height) - value) / slope
                if not abs(move) < 1e3 / rate:
                    break
                z += move
                if abs(move) < 1e-3 * abs(z.imag):
                    break
            trusted = 0.0 < abs(z.imag) < math.pi / rate
            near[k, 0] = z.real if trusted else lo - side * first.real
            near[k, 1] = abs(z.imag) if trusted else first.imag
            k += 1


@kernel(error_model="numpy")
def outer_rule(
    omega: float,
    mean: float,
    bias: float,
    rho: float,
    delta: float,
    threshold: float,
    sharpness: float,
    new_scale: float,
    new_mean: float,
    new_bias: float,
    new_noise: float,
    strength: float,
    exponent: float,
    nodes: Any,
) -> tuple[int, float]:
    r"""Nodes over the class s and the previous logit $\tilde h = s m' + B' + \sqrt{\Delta}\,\omega g$, given selection.

    Fills the rows of `nodes`: s, g, weight (they sum to one over the selected points), $\tilde h$.
    `new_*` and `strength` (c) describe the new logits as far as they are known: scale $\sqrt\Delta a$, m, B,
    noise b. Returns the number of nodes (-1: too many) and the logarithm of the selected fraction.
    """
    spread = math.sqrt(delta) * omega
    hard = math.isinf(sharpness)
    jumps = threshold > 0.0 or hard
    reach = math.sqrt(2.0 * exponent)
    near = np.empty((2, 11, 2))
    steep = new_scale if hard else max(sharpness * spread, new_scale)
    floor = math.pi / max(steep, 1e-300)
    mild = not hard and (
        abs(new_scale - sharpness * spread) * reach
        + abs(new_mean - sharpness * mean)
        + abs(new_bias - sharpness * bias)
        < 0.5
    )
    for side in range(2):
        s = 1.0 if side == 0 else -1.0
        centre = s * mean + bias
        near[side, 0, 0] = -centre / spread
        near[side, 0, 1] = 1e300 if hard else math.pi / (sharpness * spread)
        if mild:
            near[side, 1:, 0] = near[side, 0, 0]
            near[side, 1:, 1] = floor
            continue
        _branch_points(
            s * new_mean + new_bias, new_scale, new_noise, strength,
            centre, spread, sharpness, reach + min(sharpness * spread, abs(centre) / spread), near[side],
        )  # fmt: skip
        if not hard:
            for k in range(1, 11):
                floor = min(floor, near[side, k, 1])
    hermite = 0
    if not jumps:
        hermite = hermite_size(floor, exponent)
    smooth = (not jumps) and (hermite > 0 or floor >= 0.35)
    count = 0
    peak = -1e300
    for side in range(2):
        s = 1.0 if side == 0 else -1.0
        share = rho if side == 0 else 1.0 - rho
        centre = s * mean + bias
        tilt = 0.0
        if not hard:
            tilt = min(sharpness * spread, abs(centre) / spread)
        first = count
        if smooth and hermite > 0:
            for i in range(hermite):
                nodes[1, count] = HERMITE_X[hermite, i]
                nodes[2, count] = HERMITE_W[hermite, i] * math.exp(0.5 * HERMITE_X[hermite, i] ** 2)
                count += 1
        elif smooth:
            step = trapezoid_step(floor, exponent)
            half = math.ceil((reach + tilt) / step)
            if count + 2 * half + 1 > nodes.shape[1]:
                return -1, 0.0
            for i in range(-half, half + 1):
                nodes[1, count] = i * step
                nodes[2, count] = step
                count += 1
        else:
            for branch_side in range(2):
                if branch_side == 0:
                    lo = (threshold * omega - centre) / spread
                    hi = math.sqrt(max(lo, 0.0) ** 2 + 2.0 * exponent) + tilt
                    lo = max(lo, -reach - tilt)
                else:
                    hi = (-threshold * omega - centre) / spread
                    lo = -math.sqrt(max(-hi, 0.0) ** 2 + 2.0 * exponent) - tilt
                    hi = min(hi, reach + tilt)
                if lo < hi:
                    count = _panels(lo, hi, near[side], floor, exponent, nodes, count)
                    if count < 0:
                        return -1, 0.0
        for i in range(first, count):
            g = nodes[1, i]
            nodes[0, i] = s
            nodes[3, i] = centre + spread * g
            nodes[2, i] *= share
            peak = max(peak, -0.5 * g * g)
    if threshold == 0.0:
        peak = 0.0
    total = 0.0
    for i in range(count):
        nodes[2, i] *= math.exp(-0.5 * nodes[1, i] ** 2 - peak)
        total += nodes[2, i]
    for i in range(count):
        nodes[2, i] /= total
    if threshold == 0.0:
        return count, 0.0
    return count, peak + math.log(total) - 0.5 * math.log(2.0 * math.pi)
