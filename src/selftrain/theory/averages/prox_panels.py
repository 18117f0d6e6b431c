r"""Averages of the logistic loss over large new noise, as integrals over the trained logit x.

$h = x + c(\sigma(x) - p)$, so $dh = (1 + c\,\sigma'(x))\,dx$: no proximal problem has to be solved.
Functions of x alone ($\sigma(x)$, k, k', the weights) are computed once for a row of panels that
neighbouring outer nodes share. For each node, its label p and the Gaussian density of its new noise
are added in vectorised loops.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..tolerances import INNER_POINTS, NEGLIGIBLE_WEIGHT
from .noise_nodes import exponentials
from .quadrature.rules import PANEL_W, PANEL_X, Logits, clear_length
from .record import Extra

PANEL_NOISE_SPAN = 3.0
"""The longest panel, in standard deviations of the new noise."""

ROW_POINTS = 2048
"""Largest number of points of a row of panels, unless a single node needs more."""

STRONG = 1e12
r"""Up to this strength points are ordered by $x + c\,\sigma(x)$; beyond it, by x, because the sum
has too few digits to distinguish them.
"""

PLACE, TAIL, MEASURE, K, K3, REST, END = range(0, 7 * INNER_POINTS, INNER_POINTS)
r"""Offsets of the columns of the points in their flat table: x; $-\sigma(-x)$ for $x \ge 0$, else
$\sigma(x)$; the weight in dh divided by $b\sqrt{2\pi}$; k; k'; 1 - ck. Then the ends of the panels.
"""

ORDER = END + 1 + INNER_POINTS // 16
"""Offset of the sort keys (`order` of x, see `_target`) of the ends of the panels."""

TABLE = ORDER + 1 + INNER_POINTS // 16
"""Size of the table."""


class Target(NamedTuple):
    r"""One outer node.

    Attributes:
        centre: its new logit without new noise.
        above, below: 1 - p and p of its label, both to full relative accuracy.
        low, high: ends of the range of x that its panels must cover, as values of the sort key in
            `_target`.
    """

    centre: float
    above: float
    below: float
    low: float
    high: float


@kernel(allocates=False)
def over_prox_panels(
    nodes: Any, count: int, logits: Logits, exponent: float, extra: Extra | None, room: Any,
    near: Any, out: Any,
) -> int:  # fmt: skip
    """Add the averages over the outer nodes and the new noise to the record `out`.

    Returns the number of points, -1 if too many. `room` is a buffer for the table of points, `near`
    for the singularities of k and sigma as functions of x.
    """
    noise, c = logits.noise, logits.strength
    reach = math.sqrt(2.0 * exponent) * noise
    root = math.sqrt(1.0 + 4.0 / c)
    for k in range(3):
        near[k, 0] = (k - 1.0) * math.log((root + 1.0) / (root - 1.0))
        near[k, 1] = math.pi
    panels, points = int(np.int64(0)), 0  # not a literal: else `_append` is compiled twice
    for j in range(count):
        if nodes[2, j] < NEGLIGIBLE_WEIGHT:
            continue
        target = _target(nodes, j, logits, reach)
        if panels > 0 and not room[ORDER] <= target.low < room[ORDER + panels]:
            panels = 0
        own = panels == 0
        while panels == 0 or room[ORDER + panels] < target.high:
            if 16 * panels + 16 > (INNER_POINTS if own else ROW_POINTS):
                if own:
                    return -1
                panels, own = 0, True
            if panels == 0:
                room[END] = prox(target.centre - reach, c, target.above)
                room[ORDER] = target.low
            if not _append(target, near, exponent, logits, room, panels):
                return -1
            panels += 1
        first = 0
        while room[ORDER + first + 1] <= target.low:
            first += 1
        last = panels
        while room[ORDER + last - 1] >= target.high:
            last -= 1
        points += 16 * (last - first)
        part = (16 * first, 16 * last)
        _add_node(room, part, target, c, 1.0 / noise, nodes[:, j], extra, out)
        if extra is not None and extra.loss:
            out.loss += nodes[2, j] * _loss(room, part, target, c, 1.0 / noise)
    return points


@kernel(allocates=False)
def prox(field: float, strength: float, above: float) -> float:
    r"""Return the root x of $x + c(\sigma(x) - p) = h$, where `above` is 1 - p, by Newton's method
    from zero, which is monotone for every c.
    """
    flip = field + strength * (0.5 - above) < 0.0
    if flip:
        field, above = -field, 1.0 - above
    rest = field - strength * above
    x = max(0.0, rest)
    for _ in range(200):
        e = math.exp(-x)
        tail = e / (1.0 + e)
        step = (rest - x + strength * tail) / (1.0 + strength * tail * (1.0 - tail))
        x += step
        if step <= 1e-13 * (1.0 + x):
            break
    return -x if flip else x


@kernel(allocates=False)
def _target(nodes: Any, j: int, logits: Logits, reach: float) -> Target:
    r"""Return the logit, label and range of outer node j. The *order* of x is $x + c\,\sigma(x)$,
    an increasing function that is the same for all nodes.
    """
    previous, c = nodes[3, j], logits.strength
    centre = logits.base * previous + (
        nodes[0, j] * logits.shift + logits.bias + logits.tilt * nodes[1, j]
    )
    tail = 0.0
    if not math.isinf(logits.sharpness):
        tail = math.exp(-logits.sharpness * abs(previous))
    above, below = tail / (1.0 + tail), 1.0 / (1.0 + tail)
    if previous <= 0.0:
        above, below = below, above
    low, high = centre + c * below - reach, centre + c * below + reach
    if c > STRONG:
        low, high = prox(centre - reach, c, above), prox(centre + reach, c, above)
    return Target(centre, above, below, low, high)


@kernel(allocates=False)
def _append(
    target: Target, near: Any, exponent: float, logits: Logits, room: Any, panels: int
) -> bool:
    """Append a panel to a row of `panels` panels; return False if its length would be zero."""
    noise, c, x = logits.noise, logits.strength, room[END + panels]
    tail = math.exp(-abs(x))
    small = tail / (1.0 + tail)
    f = target.above - small if x >= 0.0 else small - target.below
    longest = prox(x + c * f + PANEL_NOISE_SPAN * noise, c, target.above) - x
    length = clear_length(x, longest, near, math.pi, exponent)
    if not x + length > x:
        return False
    for i in range(16):
        j = 16 * panels + i
        u = x + 0.5 * length * (1.0 + PANEL_X[i])
        tail = math.exp(-abs(u))
        small, large = tail / (1.0 + tail), 1.0 / (1.0 + tail)
        curvature = small * large
        slope = 1.0 / (1.0 + c * curvature)
        k = curvature * slope
        room[PLACE + j] = u
        room[TAIL + j] = -small if u >= 0.0 else small
        room[MEASURE + j] = length * PANEL_W[i] / (slope * noise * math.sqrt(8.0 * math.pi))
        room[K + j] = k
        room[REST + j] = slope
        room[K3 + j] = k * slope * slope * (small - large if u >= 0.0 else large - small)
    x += length
    room[END + panels + 1] = x
    room[ORDER + panels + 1] = x if c > STRONG else x + c / (1.0 + math.exp(-x))
    return True


@kernel(allocates=False, fastmath={"contract", "reassoc", "nsz"})
def _add_node(
    room: Any, part: tuple[int, int], target: Target, c: float, per_noise: float, node: Any,
    extra: Extra | None, out: Any,
) -> None:  # fmt: skip
    r"""Add the averages of one outer node (class, previous noise, weight) over a part of the row.

    `rest`, the average of 1 - ck, is summed separately: for large c it is small, and 1 - c E[k]
    would cancel.
    """
    centre, above, below = target.centre, target.above, target.below
    f0 = ff = k0 = nk = fk = nfk = ffk = q0 = nq = fq = kk = rest = f_rest = 0.0
    for i in range(part[0], part[1]):
        x = room[PLACE + i]
        f = room[TAIL + i] + (above if x >= 0.0 else -below)
        n = (x + c * f - centre) * per_noise
        density, _ = exponentials(-0.5 * n * n)
        w = room[MEASURE + i] * density
        k = room[K + i]
        wf, wk, wq = w * f, w * k, w * room[K3 + i]
        f0 += wf
        ff += wf * f
        k0 += wk
        nk += wk * n
        fk += wk * f
        nfk += wk * f * n
        ffk += wk * f * f
        q0 += wq
        nq += wq * n
        fq += wq * f
        kk += wk * k
        rest += w * room[REST + i]
        f_rest += wf * room[REST + i]
    s, g, w = node[0], node[1], node[2]
    out.f += w * f0
    out.sf += w * s * f0
    out.gf += w * g * f0
    out.ff += w * ff
    out.k += w * k0
    out.sk += w * s * k0
    out.gk += w * g * k0
    out.nk += w * nk
    out.sgk += w * s * g * k0
    out.snk += w * s * nk
    out.ggk += w * g * g * k0
    out.gnk += w * g * nk
    out.fk += w * fk
    out.sfk += w * s * fk
    out.gfk += w * g * fk
    out.nfk += w * nfk
    out.ffk += w * ffk
    out.k3 += w * q0
    out.sk3 += w * s * q0
    out.gk3 += w * g * q0
    out.nk3 += w * nq
    out.fk3 += w * fq
    out.kk += w * kk
    if extra is not None:
        gain = w * above * below  # the derivative of the label in its logit
        y, fy, ky = -gain * rest, -gain * f_rest, gain * c * q0
        out.sgf += w * s * g * f0
        out.sff += w * s * ff
        out.y += y
        out.sy += s * y
        out.gy += g * y
        out.sgy += s * g * y
        out.ggy += g * g * y
        out.fy += fy
        out.sfy += s * fy
        out.gfy += g * fy
        out.ky += ky
        out.sky += s * ky
        out.gky += g * ky


@kernel(allocates=False)
def _loss(room: Any, part: tuple[int, int], target: Target, c: float, per_noise: float) -> float:
    r"""Return the average loss of one outer node: $\ln(1 + e^{-|x|})$ plus $(1 - p)x$ for x > 0,
    $-px$ for x < 0.
    """
    total = 0.0
    for i in range(part[0], part[1]):
        x = room[PLACE + i]
        side = target.above if x >= 0.0 else -target.below
        n = (x + c * (room[TAIL + i] + side) - target.centre) * per_noise
        loss = math.log1p(math.exp(-abs(x))) + side * x
        total += room[MEASURE + i] * math.exp(-0.5 * n * n) * loss
    return total
