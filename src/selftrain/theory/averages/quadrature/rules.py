r"""Rules for Gaussian averages, sized by the singularities of the integrand for an error $e^{-T}$;
T is the exponent.

With D the distance of the nearest singularity from the real axis, in standard deviations:

- Gauss-Hermite with n nodes has the error $n!\,D^{-2n}$ (for $n \le D^2$);
- the trapezoidal rule has the step $2\pi D/(T + D^2/2)$, never longer than $\pi\sqrt{2/T}$;
- 16-point Gauss-Legendre panels converge like $e^{-32\eta}$ if no singularity is inside the
  Bernstein ellipse $\eta$ of a panel (`clear_length`). They end at jumps: thresholds, hard labels.

The label $\sigma(\gamma\tilde h)$ has poles at $\gamma\tilde h = \pm i\pi$. The proximal map of the
logistic loss has branch points at $\mathrm{Im}\,h = \pm\pi$ for every strength c. `outer_rule`
integrates over the class and the previous noise $g_1$, given selection; `given_labels` over class
and label if labels are given; `inner_rule` over the new noise $g_2$.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import roots_hermitenorm, roots_legendre

from ....runtime.kernels import kernel
from ...tolerances import MILD_CHANGE, PANEL_SPAN, TRAPEZOID_DISTANCE

HERMITE_MAX = 24
"""Longest Gauss-Hermite rule; if it is not enough, the trapezoidal rule needs no more nodes."""

PANEL_X, PANEL_W = roots_legendre(16)
HERMITE_X = np.zeros((HERMITE_MAX + 1, HERMITE_MAX))
HERMITE_W = np.zeros((HERMITE_MAX + 1, HERMITE_MAX))
for _n in range(1, HERMITE_MAX + 1):
    _x, _w = roots_hermitenorm(_n)
    HERMITE_X[_n, :_n], HERMITE_W[_n, :_n] = _x, _w / _w.sum()

SINGULAR = (2, 11, 2)
"""Shape of the table of singularities: for each class the pole of the label and up to ten branch
points of the prox, their real and imaginary parts.
"""


class OldModel(NamedTuple):
    r"""The labelling model on a group of samples: $\tilde h = s\,$`mean` + `bias` + `spread`
    $g_1$, selected if $|\tilde h| >$ `limit`; `rho` is the proportion of s = 1. The label is
    $\sigma(\gamma\tilde h)$ with $\gamma$ = `sharpness` (the sign of $\tilde h$ if infinite).
    """

    mean: float
    spread: float
    bias: float
    rho: float
    limit: float
    sharpness: float


class Logits(NamedTuple):
    r"""The new logits: $h = \gamma_0\tilde h + s\,$`shift` + `bias` + `tilt` $g_1$ + `noise` $g_2$
    with $\gamma_0$ = `base`. `sharpness` is that of the labels, `strength` c of the proximal map.
    """

    base: float
    sharpness: float
    shift: float
    tilt: float
    bias: float
    noise: float
    strength: float


@kernel(allocates=False)
def hermite_size(distance: float, exponent: float) -> int:
    """Return the size of the Gauss-Hermite rule of error exp(-exponent), 0 if it would exceed
    `HERMITE_MAX`.
    """
    log_error = 0.0
    for n in range(1, HERMITE_MAX):
        log_error += math.log(n) - 2.0 * math.log(distance)
        if log_error <= -exponent:
            return n + 1
        if n > distance * distance:
            return 0
    return 0


@kernel(allocates=False)
def trapezoid_step(distance: float, exponent: float) -> float:
    """Return the step of the trapezoidal rule for a Gaussian average of error exp(-exponent)."""
    return min(
        math.pi * math.sqrt(2.0 / exponent),
        2.0 * math.pi * distance / (exponent + 0.5 * distance * distance),
    )


@kernel(allocates=False)
def inner_rule(scale: float, exponent: float, rule: Any) -> int:
    """Write nodes and weights of a rule for standard Gaussian averages to the two rows of `rule`;
    return their number.

    For functions f(scale * x) with f analytic in the strip |Im| < pi its error is exp(-exponent).
    """
    distance = math.pi / max(scale, 1e-300)
    n = hermite_size(distance, exponent)
    if n > 0:
        for i in range(n):
            rule[0, i], rule[1, i] = HERMITE_X[n, i], HERMITE_W[n, i]
        return n
    step = trapezoid_step(distance, exponent)
    half = math.ceil(math.sqrt(2.0 * exponent) / step)
    n = 2 * half + 1
    for i in range(n):
        x = (i - half) * step
        rule[0, i], rule[1, i] = x, step * math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return n


@kernel(allocates=False)
def clear_length(x: float, longest: float, near: Any, floor: float, exponent: float) -> float:
    r"""Return the length of a 16-point panel that starts at x, at most `longest`, of error
    exp(-exponent).

    A singularity lies outside the ellipse with the ends of the panel as foci if its distances to
    both ends add up to at least the length times $\cosh\eta$. `near` lists (real, imaginary) parts
    of singularities; none is closer to the axis than `floor`.
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


@kernel(allocates=False)
def _panels(
    lo: float, hi: float, near: Any, floor: float, exponent: float, nodes: Any, count: int
) -> int:
    """Append Gauss-Legendre nodes on [lo, hi] to rows 1 (g) and 2 (weight) of `nodes`."""
    x = lo
    while x < hi:
        length = clear_length(x, min(PANEL_SPAN, hi - x), near, floor, exponent)
        if count + 16 > nodes.shape[1] or x + length <= x:
            return -1
        for i in range(16):
            nodes[1, count] = x + 0.5 * length * (1.0 + PANEL_X[i])
            nodes[2, count] = 0.5 * length * PANEL_W[i]
            count += 1
        x = hi if length == hi - x else x + length
    return count


@kernel(allocates=False)
def _branch_points(s: float, old: OldModel, new: Logits, reach: float, near: Any) -> None:
    r"""Fill the rows of `near` from 1 on with the branch points of the proximal map of class s as a
    function of $g_1$.

    The map depends on $G = h + c\,p$ alone, with branch points at $-e \pm i\pi$ and $c + e \pm
    i\pi$. The average over new noise of scale b removes them, but grows like $\exp((\mathrm{Im}^2 -
    \mathrm{Re}^2)/2b^2)$ around these points; therefore points at height 3b are treated as
    singular. For hard labels h is linear in $g_1$ on each side; for soft ones $G(g_1)$ is inverted
    by bisection on the real axis and by Newton's method off it.
    """
    sharpness, noise, c = old.sharpness, new.noise, new.strength
    centre = s * old.mean + old.bias
    new_centre = new.base * centre + s * new.shift + new.bias
    scale = max(abs(new.tilt + new.base * old.spread), 1e-300)
    root = math.sqrt(1.0 + 4.0 / c)
    edge = math.log((root + 1.0) / (root - 1.0)) + 2.0 / (1.0 + root)
    height = max(math.pi, 3.0 * noise)
    for k in range(1, near.shape[0]):
        near[k, 0], near[k, 1] = near[0, 0], near[0, 1]
    if math.isinf(sharpness):
        for i in range(4):
            target = edge if i < 2 else edge + c
            near[1 + i, 0] = ((target if i % 2 == 0 else -target) - new_centre) / scale
            near[1 + i, 1] = height / scale
        return
    rate = sharpness * old.spread
    k = 1
    for place in range(10):
        offset, side = place // 2 - 2, 2.0 * (place % 2) - 1.0
        if offset != 0 and 3.0 * noise < math.pi:
            continue
        target = -edge + 1.5 * offset * noise
        # The upper branch points are the lower ones after h -> -h, y -> -y.
        lo, hi = -reach, reach
        for _ in range(30):
            g = 0.5 * (lo + hi)
            label = 1.0 / (1.0 + math.exp(side * (sharpness * centre + rate * g)))
            if (-side * (new_centre + scale * g) + c * label > target) == (side < 0):
                hi = g
            else:
                lo = g
        if abs(lo) > 0.999 * reach:
            continue
        # G grows from here like k Y + A exp(Y): start Newton at a root of (A + k)(exp(Y) - 1).
        label = 1.0 / (1.0 + math.exp(side * (sharpness * centre + rate * lo)))
        turn = height / (c * label + scale / rate)
        first, height_of_first = 0.5 * math.log1p(turn * turn) / rate, math.atan(turn) / rate
        x, y = lo - side * first, -side * height_of_first
        for _ in range(6):
            # 1/(1 + e^z) in real arithmetic: complex division takes long to compile
            size = math.exp(side * (sharpness * centre + rate * x))
            e_re, e_im = size * math.cos(rate * y), side * size * math.sin(rate * y)
            below = (1.0 + e_re) ** 2 + e_im * e_im
            p_re, p_im = (1.0 + e_re) / below, -e_im / below
            bend_re = p_re * (1.0 - p_re) + p_im * p_im
            bend_im = p_im * (1.0 - 2.0 * p_re)
            v_re = target + side * (new_centre + scale * x) - c * p_re
            v_im = height + side * scale * y - c * p_im
            d_re, d_im = -side * (scale + c * rate * bend_re), -side * c * rate * bend_im
            below = d_re * d_re + d_im * d_im
            move_re = (v_re * d_re + v_im * d_im) / below
            move_im = (v_im * d_re - v_re * d_im) / below
            move = math.hypot(move_re, move_im)
            if not move < 1e3 / rate:
                break
            x, y = x + move_re, y + move_im
            if move < 1e-3 * abs(y):
                break
        trusted = 0.0 < abs(y) < math.pi / rate
        near[k, 0] = x if trusted else lo - side * first
        near[k, 1] = abs(y) if trusted else height_of_first
        k += 1


@kernel(allocates=False)
def given_share(sign: float, label: float, rho: float, wrong: Any) -> float:
    """Return the proportion of samples with class `sign` and given label `label`, both -1 or 1;
    `wrong` has the proportions of wrong labels in the negative and in the positive class.
    """
    flipped: float = wrong[1] if sign > 0.0 else wrong[0]
    return (rho if sign > 0.0 else 1.0 - rho) * (1.0 - flipped if sign == label else flipped)


@kernel(allocates=False)
def given_labels(rho: float, wrong: Any, nodes: Any) -> int:
    """Fill `nodes` for given labels, one node for each pair of class and label that occurs; return
    their number.
    """
    count = 0
    for kind in range(4):
        s = 1.0 - 2.0 * (kind % 2)
        label = s if kind < 2 else -s
        weight = given_share(s, label, rho, wrong)
        if weight > 0.0:
            nodes[0, count], nodes[1, count] = s, 0.0
            nodes[2, count], nodes[3, count] = weight, label
            count += 1
    return count


@kernel(allocates=False)
def outer_rule(
    old: OldModel, new: Logits, exponent: float, near: Any, nodes: Any
) -> tuple[int, float]:
    r"""Fill `nodes` for averages over the class s and the previous logit $\tilde h$ of the selected
    samples.

    The rows of `nodes` are s, g, weight (the sum is one) and $\tilde h$; `near` is a buffer for
    singularities. Returns the number of nodes (-1: too many) and the logarithm of the selected
    proportion.
    """
    mean, spread, bias, limit, sharpness = old.mean, old.spread, old.bias, old.limit, old.sharpness
    hard = math.isinf(sharpness)
    jumps = limit > 0.0 or hard
    reach = math.sqrt(2.0 * exponent)
    scale = abs(new.tilt + new.base * spread)
    steep = scale if hard else max(sharpness * spread, scale)
    floor = math.pi / max(steep, 1e-300)
    off = new.base - sharpness
    mild = (not hard and floor >= TRAPEZOID_DISTANCE) and (
        abs(scale - sharpness * spread) * reach
        + abs(new.shift + off * mean)
        + abs(new.bias + off * bias)
        < MILD_CHANGE
    )
    for side in range(2):
        s = 1.0 - 2.0 * side
        centre = s * mean + bias
        near[side, 0, 0] = -centre / spread
        near[side, 0, 1] = 1e300 if hard else math.pi / (sharpness * spread)
        if mild:
            for k in range(1, near.shape[1]):
                near[side, k, 0], near[side, k, 1] = near[side, 0, 0], floor
            continue
        widened = reach + min(sharpness * spread, abs(centre) / spread)
        _branch_points(s, old, new, widened, near[side])
        if not hard:
            for k in range(1, near.shape[1]):
                floor = min(floor, near[side, k, 1])
    hermite = 0 if jumps else hermite_size(floor, exponent)
    smooth = (not jumps) and (hermite > 0 or floor >= TRAPEZOID_DISTANCE)
    count = int(np.int64(0))  # not a literal: else `_panels` is compiled twice
    peak = -1e300
    for side in range(2):
        s = 1.0 - 2.0 * side
        centre = s * mean + bias
        tilt = 0.0 if hard else min(sharpness * spread, abs(centre) / spread)
        first = count
        if hermite > 0:
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
                nodes[1, count], nodes[2, count] = i * step, step
                count += 1
        else:
            for below in range(2):  # logits > threshold; then, mirrored, those < -threshold
                turn = 1.0 - 2.0 * below
                lo = (limit - turn * centre) / spread
                hi = math.sqrt(max(lo, 0.0) ** 2 + 2.0 * exponent) + tilt
                lo = max(lo, -reach - tilt)
                if below == 1:
                    lo, hi = -hi, -lo
                if lo < hi:
                    count = _panels(lo, hi, near[side], floor, exponent, nodes, count)
                    if count < 0:
                        return -1, 0.0
        for i in range(first, count):
            g = nodes[1, i]
            nodes[0, i], nodes[3, i] = s, centre + spread * g
            nodes[2, i] *= old.rho if side == 0 else 1.0 - old.rho
            peak = max(peak, -0.5 * g * g)
    if limit == 0.0:
        peak = 0.0
    total = 0.0
    for i in range(count):
        nodes[2, i] *= math.exp(-0.5 * nodes[1, i] ** 2 - peak)
        total += nodes[2, i]
    for i in range(count):
        nodes[2, i] /= total
    if limit == 0.0:
        return count, 0.0
    return count, peak + math.log(total) - 0.5 * math.log(2.0 * math.pi)
