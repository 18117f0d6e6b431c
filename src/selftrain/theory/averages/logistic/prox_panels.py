r"""Averages over the new noise as integrals over the trained logit x, on a row of panels.

$h = x + c(\sigma(x) - p)$, so $dh = (1 + c\,\sigma'(x))\,dx$: no prox has to be solved. What
depends on x alone ($\sigma(x)$, k, k', the weights) is computed once for a row of panels that
neighbouring outer nodes share; each node adds its label p and the Gaussian density of its own new
noise, in vector code.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....runtime.kernels import kernel
from ...tolerances import INNER_POINTS, NEGLIGIBLE_WEIGHT
from ..quadrature.exponential import exponentials
from ..quadrature.rules import PANEL_W, PANEL_X
from ..quadrature.singularities import clear_length
from ..record import Extra
from .logits import Logits, prox

PANEL_NOISE_SPAN = 3.0
"""The longest panel, in units of the new noise."""

ROW_POINTS = 2048
"""Points of a row before it is begun anew, unless a single node needs more."""

STRONG = 1e12
r"""Up to this strength $x + c\,\sigma(x)$ has digits enough to tell places apart; beyond it, x."""

PLACE, TAIL, MEASURE, K, K3, REST, ROWS = range(7)
r"""Rows of the table of points: x; $-\sigma(-x)$ for $x \ge 0$, else $\sigma(x)$; the weight in dh
over $b\sqrt{2\pi}$; k; k'; 1 - ck.
"""


class Target(NamedTuple):
    """One outer node: its new logit without new noise, its label (`above` = 1 - p, `below` = p, to
    full relative accuracy), and from where to where it needs panels, as the `order` of x.
    """

    centre: float
    above: float
    below: float
    low: float
    high: float


class Inner(NamedTuple):
    """The inner averages of one outer node; names as in `step.averages`.

    The last two are of 1 - ck, alone and times f: under a strong prox that is a small number, which
    1 - c E[k] would lose.
    """

    f: float
    ff: float
    k: float
    nk: float
    fk: float
    nfk: float
    ffk: float
    k3: float
    nk3: float
    fk3: float
    kk: float
    rest: float
    f_rest: float


@kernel(error_model="numpy")
def over_prox_panels(
    nodes: Any,
    count: int,
    logits: Logits,
    exponent: float,
    extra: Extra | None,
    out: Any,
) -> int:
    """`averages.logistic_averages` for large new noise; the points used, -1 if too many."""
    noise, c = logits.noise, logits.strength
    reach = math.sqrt(2.0 * exponent) * noise
    near = _branch_points(c)
    row = np.empty((ROWS, ROW_POINTS))
    ends = np.empty((2, 1 + INNER_POINTS // 16))  # of panels: x and its order
    panels = int(np.int64(0))  # no constant, so that `_append` is compiled once
    points = 0
    for j in range(count):
        if nodes[2, j] < NEGLIGIBLE_WEIGHT:
            continue
        target = _target(nodes, j, logits, reach)
        if panels > 0 and not ends[1, 0] <= target.low < ends[1, panels]:
            panels = 0
        own = panels == 0
        while panels == 0 or ends[1, panels] < target.high:
            if 16 * panels + 16 > row.shape[1]:
                if own and row.shape[1] == INNER_POINTS:
                    return -1
                if own:
                    row = np.empty((ROWS, INNER_POINTS))
                panels, own = 0, True
            if panels == 0:
                ends[0, 0] = prox(target.centre - reach, c, target.above)
                ends[1, 0] = target.low
            if not _append(target, near, exponent, logits, row, ends, panels):
                return -1
            panels += 1
        first = 0
        while ends[1, first + 1] <= target.low:
            first += 1
        last = panels
        while ends[1, last - 1] >= target.high:
            last -= 1
        points += 16 * (last - first)
        part = row[:, 16 * first : 16 * last]
        found = _node_averages(part, target, c, 1.0 / noise)
        _add(found, nodes[:, j], out)
        if extra is not None:
            if extra.labels:
                _add_labels(found, nodes[:, j], target.above * target.below, c, out)
            if extra.loss:
                out.loss += nodes[2, j] * _loss(part, target, c, 1.0 / noise)
    return points


@kernel(error_model="numpy")
def _branch_points(c: float) -> Any:
    """Where k has its poles as a function of x, and where sigma bends."""
    root = math.sqrt(1.0 + 4.0 / c)
    near = np.empty((3, 2))
    near[:, 0] = math.log((root + 1.0) / (root - 1.0))
    near[0, 0] *= -1.0
    near[1, 0] = 0.0
    near[:, 1] = math.pi
    return near


@kernel(error_model="numpy")
def _target(nodes: Any, j: int, logits: Logits, reach: float) -> Target:
    r"""Logit, label and range of an outer node. The order of x is $x + c\,\sigma(x)$, the same
    function for all nodes.
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


@kernel(error_model="numpy")
def _append(
    target: Target, near: Any, exponent: float, logits: Logits, row: Any, ends: Any, panels: int
) -> bool:
    """Append a panel to a row of `panels` panels; False if it would have no length."""
    noise, c, x = logits.noise, logits.strength, ends[0, panels]
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
        row[PLACE, j] = u
        row[TAIL, j] = -small if u >= 0.0 else small
        row[MEASURE, j] = length * PANEL_W[i] / (slope * noise * math.sqrt(8.0 * math.pi))
        row[K, j] = curvature * slope
        row[REST, j] = slope
        row[K3, j] = row[K, j] * slope * slope * (small - large if u >= 0.0 else large - small)
    x += length
    ends[0, panels + 1] = x
    ends[1, panels + 1] = x if c > STRONG else x + c / (1.0 + math.exp(-x))
    return True


@kernel(error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _node_averages(row: Any, target: Target, c: float, per_noise: float) -> Inner:
    """The inner averages of one outer node over a part of the row."""
    centre, above, below = target.centre, target.above, target.below
    f0 = ff = k0 = nk = fk = nfk = ffk = q0 = nq = fq = kk = rest = f_rest = 0.0
    for i in range(row.shape[1]):
        x = row[PLACE, i]
        f = row[TAIL, i] + (above if x >= 0.0 else -below)
        n = (x + c * f - centre) * per_noise
        density, _ = exponentials(-0.5 * n * n)
        w = row[MEASURE, i] * density
        k = row[K, i]
        wf, wk, wq = w * f, w * k, w * row[K3, i]
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
        rest += w * row[REST, i]
        f_rest += wf * row[REST, i]
    return Inner(f0, ff, k0, nk, fk, nfk, ffk, q0, nq, fq, kk, rest, f_rest)


@kernel(error_model="numpy")
def _loss(row: Any, target: Target, c: float, per_noise: float) -> float:
    r"""The average loss of one outer node: $\ln(1 + e^{-|x|})$ and, by the side of x, $(1 - p)x$ or
    $-px$.
    """
    total = 0.0
    for i in range(row.shape[1]):
        x = row[PLACE, i]
        side = target.above if x >= 0.0 else -target.below
        n = (x + c * (row[TAIL, i] + side) - target.centre) * per_noise
        loss = math.log1p(math.exp(-abs(x))) + side * x
        total += row[MEASURE, i] * math.exp(-0.5 * n * n) * loss
    return total


@kernel(error_model="numpy")
def _add(found: Inner, node: Any, out: Any) -> None:
    """Add the averages of one outer node (class, previous noise, weight) to those of the step."""
    s, g, w = node[0], node[1], node[2]
    out.f += w * found.f
    out.sf += w * s * found.f
    out.gf += w * g * found.f
    out.ff += w * found.ff
    out.k += w * found.k
    out.sk += w * s * found.k
    out.gk += w * g * found.k
    out.nk += w * found.nk
    out.sgk += w * s * g * found.k
    out.snk += w * s * found.nk
    out.ggk += w * g * g * found.k
    out.gnk += w * g * found.nk
    out.fk += w * found.fk
    out.sfk += w * s * found.fk
    out.gfk += w * g * found.fk
    out.nfk += w * found.nfk
    out.ffk += w * found.ffk
    out.k3 += w * found.k3
    out.sk3 += w * s * found.k3
    out.gk3 += w * g * found.k3
    out.nk3 += w * found.nk3
    out.fk3 += w * found.fk3
    out.kk += w * found.kk


@kernel(error_model="numpy")
def _add_labels(found: Inner, node: Any, gain: float, c: float, out: Any) -> None:
    r"""Add the derivatives in the label, with `gain` $= \sigma(y)\sigma(-y)$."""
    s, g, w = node[0], node[1], node[2]
    y = -w * gain * found.rest
    fy = -w * gain * found.f_rest
    ky = w * gain * c * found.k3
    out.sgf += w * s * g * found.f
    out.sff += w * s * found.ff
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
