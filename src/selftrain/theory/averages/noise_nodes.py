r"""Averages of the logistic loss over the new noise on fixed nodes, by vectorised proximal maps of
many points.

For one node of the new noise all outer nodes are handled together, by loops without branches.
Points are mirrored so that the label prefers the upper class: $p = \sigma(y)$ with $y \ge 0$. The
unknown of a point is $u = x - y$, the root of $g(u) = u + c f - d$ with $d = h - y$; g has its
inflection point at x = 0. Newton steps with a second-order correction are made for all points until
all have converged. A step that crosses x = 0 away from the root is cut off there; from x = 0 plain
Newton steps are monotone.

$f = -\sigma(x)\,\sigma(-y)\,\mathrm{expm1}(-u)$ keeps its relative accuracy where x and y are
nearly equal, as they are at small ridges. A hard label is $y = \infty$: there u is x itself and
$f = -\sigma(-x)$.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import types
from numba.extending import intrinsic, overload

from ...runtime.kernels import kernel
from .quadrature.rules import Logits
from .record import Extra

SHIFT = 1.5 * 2.0**52
"""Adding this to a number puts the nearest integer into the last bits of the result."""

LOG2_E, LN2_HIGH, LN2_LOW = 1.0 / math.log(2.0), 0.6931471803691238, 1.9082149292705877e-10
"""1/ln 2, and ln 2 as a sum of two parts; the product of an integer and the first part is exact."""

LARGEST = 690.0
"""Arguments of exponentials are clipped to this size; larger ones do not change any average."""

C2, C3, C4, C5, C6, C7 = (1.0 / math.factorial(n) for n in range(2, 8))
C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(n) for n in range(8, 14))

BLOCK = 256
"""Outer nodes handled together: their table fits into the level-1 cache."""

LANES = 8
"""Blocks are padded to a multiple of this, so that vector loops have no remainder."""

U, D, SIGN, E, LOW, EDGE, WEIGHT, CLASS, OLD = range(0, 9 * BLOCK, BLOCK)
r"""Offsets of the columns of a block in its flat table: u; $h - y$ without new noise; the sign of
the label; $e^{-y}$; $\sigma(-y)$; -y, the value of u at x = 0; the weight; the class s; the
previous noise $g_1$. They are constants, so that the compiler knows that columns do not overlap.
"""

LARGEST_LABEL = 500.0
"""Logits of labels are clipped to this: beyond it the square of f underflows."""

NEAR = 0.5
"""A point starts from the second-order expansion in the change of its logit if u, to first order,
is at most this, or the change is at most three times this.
"""

SETTLED = 1e-10
"""A block has converged if the sum of the squares of its last steps is below this; the remaining
error is of third order in these steps.
"""

ROUNDING = 1e-25
"""A step whose square is below this fraction of the square of u is a rounding error."""

BENT_PASSES = 12
"""Iterations with the second-order correction; then plain Newton steps follow, which are monotone.
"""

PASSES = 200
"""Largest number of iterations of a block."""


def power_of_two(shifted: float) -> float:
    """Return $2^k$ for `shifted` = k + SHIFT, k between -1022 and 1023."""
    return math.ldexp(1.0, int(shifted - SHIFT))


@intrinsic
def _power_by_bits(typing: Any, shifted: Any) -> Any:
    """Move the last bits of `shifted` to the exponent of a floating-point number."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = context.get_value_type(types.int64)
        bits = builder.shl(builder.bitcast(arguments[0], integer), integer(52))
        one = integer(1023 << 52)
        return builder.bitcast(builder.add(bits, one), context.get_value_type(types.float64))

    return types.float64(types.float64), code


@overload(power_of_two)
def _compiled_power_of_two(shifted: Any) -> Any:
    def compiled(shifted: Any) -> Any:
        return _power_by_bits(shifted)  # type: ignore[call-arg]  # numba passes `typing`

    return compiled


@kernel(allocates=False, fastmath={"contract"}, forceinline=True)
def exponentials(x: float) -> tuple[float, float]:
    r"""Return exp(x) and exp(x) - 1 to rounding accuracy; x is clipped to `LARGEST`.

    There are no branches, so that loops over arrays can be vectorised: $e^x = 2^k e^r$ with k the
    integer nearest to $x/\ln 2$ and the Taylor series of $e^r - 1$.
    """
    x = min(max(x, -LARGEST), LARGEST)
    shifted = x * LOG2_E + SHIFT
    k = shifted - SHIFT
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    high = C8 + r * (C9 + r * (C10 + r * (C11 + r * (C12 + r * C13))))
    tail = C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * (C7 + r * high)))))
    less_one = r + r * r * tail
    power = power_of_two(shifted)
    return power + power * less_one, power * less_one + (power - 1.0)


class NoiseNode(NamedTuple):
    r"""A node of the new noise: $g_2$ and its weight, the noise $b g_2$, the strength c of the
    proximal map, and 1 for hard labels (else 0).
    """

    node: float
    weight: float
    noise: float
    strength: float
    hard: float


@kernel(allocates=False)
def over_noise_nodes(
    nodes: Any, count: int, inner: int, logits: Logits, extra: Extra | None, room: Any, out: Any
) -> int:
    """Add the averages over the first `count` outer nodes and `inner` nodes of the new noise (rows
    of `nodes`) to the record `out`.

    Returns the number of points, -1 if a proximal point was not found. `room` is a buffer for the
    table of a block.
    """
    hard = 1.0 if math.isinf(logits.sharpness) else 0.0
    passes = 0  # iterations that the last node needed
    for first in range(0, count, BLOCK):
        size = min(BLOCK, count - first)
        _fill(nodes, first, size, logits, room)
        size += -size % LANES
        for i in range(inner):
            n = nodes[4, i]
            point = NoiseNode(n, nodes[5, i], logits.noise * n, logits.strength, hard)
            _start(room, size, point)
            moved = math.inf
            for _ in range(passes):
                moved = _approach(room, size, point, 0.5)
            while not _sums(room, size, point, extra, out) <= SETTLED:
                if passes == PASSES:
                    return -1
                moved = _approach(room, size, point, 0.5 if passes < BENT_PASSES else 0.0)
                passes += 1
            if extra is not None and extra.loss:
                _approach(room, size, point, 0.0)
                out.loss += point.weight * _loss(room, size)
            passes = min(passes - 1 if moved <= SETTLED else passes, BENT_PASSES)
    return count * inner


@kernel(allocates=False, fastmath={"contract"})
def _fill(nodes: Any, first: int, size: int, logits: Logits, room: Any) -> None:
    """Fill the table of a block of outer nodes; unused entries at its end have weight zero."""
    hard = math.isinf(logits.sharpness)
    scale = 0.0 if hard else logits.sharpness
    relative = logits.base == scale  # then the old logits cancel in h - y
    for j in range(size):
        s = nodes[0, first + j]
        g = nodes[1, first + j]
        previous = nodes[3, first + j]
        sign = 1.0 if previous > 0.0 else -1.0
        y = scale * abs(previous)
        height = min(y, LARGEST_LABEL)
        change = s * logits.shift + logits.bias + logits.tilt * g
        other = sign * (change + logits.base * previous) - height
        power, _ = exponentials(-height)
        room[D + j] = sign * change if relative and y <= LARGEST_LABEL else other
        room[SIGN + j] = sign
        room[E + j] = power
        room[LOW + j] = 0.0 if hard else power / (1.0 + power)
        room[EDGE + j] = -height
        room[WEIGHT + j] = nodes[2, first + j]
        room[CLASS + j] = s
        room[OLD + j] = g
    for j in range(size, size + -size % LANES):
        for column in (D, SIGN, LOW, EDGE, WEIGHT, CLASS, OLD):
            room[column + j] = 0.0
        room[E + j] = 1.0


@kernel(allocates=False, fastmath={"contract"}, forceinline=True)
def _at(
    u: float, d: float, e: float, low: float, c: float, hard: float
) -> tuple[float, float, float, float, float]:
    r"""Return f, l'', $1 - 2\sigma(x)$, the slope $1/(1 + c l'')$ and the Newton step at u."""
    power, less_one = exponentials(-u)
    weight = e * power
    top = 1.0 / (1.0 + weight)
    f = -top * (low * less_one + hard * weight)
    curvature = top * top * weight
    slope = 1.0 / (1.0 + c * curvature)
    return f, curvature, (weight - 1.0) * top, slope, ((d - u) - c * f) * slope


@kernel(allocates=False, fastmath={"contract"}, forceinline=True)
def _at_root(
    u: float, d: float, e: float, low: float, c: float, hard: float
) -> tuple[float, float, float, float, float]:
    """Return f, k, k' and 1 - ck at the root near u, up to third order in the step to it, and the
    square of that step.
    """
    f, curvature, bend, slope, step = _at(u, d, e, low, c, hard)
    excess = step * step - ROUNDING * u * u
    third = curvature * bend
    fourth = curvature * (1.0 - 6.0 * curvature)
    step -= 0.5 * c * third * slope * step * step
    rise = step * (curvature + 0.5 * step * third)
    f += rise
    bend -= 2.0 * rise
    curvature += step * (third + 0.5 * step * fourth)
    slope = 1.0 / (1.0 + c * curvature)
    k = curvature * slope
    return f, k, k * slope * slope * bend, slope, (0.0 if excess <= 0.0 else excess)


@kernel(allocates=False, fastmath={"contract", "reassoc", "nsz"})
def _start(room: Any, size: int, point: NoiseNode) -> None:
    """Set the starting value of u for every point of a block."""
    noise, c = point.noise, point.strength
    for j in range(size):
        low = room[LOW + j]
        edge = room[EDGE + j]
        d = room[D + j] + room[SIGN + j] * noise
        curve = c * low * (1.0 - low)
        slope = 1.0 / (1.0 + curve)
        near = d * slope
        near -= 0.5 * curve * (2.0 * low - 1.0) * slope * near * near
        above = d > edge + c * (low - 0.5)
        far = max(edge, d - c * low) if above else min(edge, d + c * (1.0 - low))
        room[U + j] = near if abs(d) * min(slope, 1.0 / 3.0) < NEAR else far


@kernel(allocates=False, fastmath={"contract", "reassoc", "nsz"})
def _approach(room: Any, size: int, point: NoiseNode, bent: float) -> float:
    """Make one Newton step for every point of a block; return the sum of the squares of the steps.

    `bent` is 1 for steps with the second-order correction, 0 for plain ones.
    """
    noise, c, hard = point.noise, point.strength, point.hard
    moved = 0.0
    for j in range(size):
        u = room[U + j]
        low = room[LOW + j]
        edge = room[EDGE + j]
        d = room[D + j] + room[SIGN + j] * noise
        _, curvature, bend, slope, step = _at(u, d, room[E + j], low, c, hard)
        excess = step * step - ROUNDING * u * u
        moved += 0.0 if excess <= 0.0 else excess
        lean = bent * c * curvature * bend * slope * step
        u += step * (1.0 - min(max(lean, -0.5), 0.5))
        above = d > edge + c * (low - 0.5)
        room[U + j] = max(u, edge) if above else min(u, edge)
    return moved


@kernel(allocates=False, fastmath={"contract", "reassoc", "nsz"})
def _sums(room: Any, size: int, point: NoiseNode, extra: Extra | None, out: Any) -> float:
    r"""Add the averages over the points of a block to `out`, unless their last steps are large.

    Returns the sum of the squares of these steps. With `extra`, derivatives in the label are added:
    $\partial f/\partial y = -p'(1 - ck)$ with $p' = \sigma(y)\sigma(-y)$. The factor 1 - ck is
    computed directly, because it is small for large c and the difference would cancel.
    """
    noise, c, hard = point.noise, point.strength, point.hard
    f0 = fs = fg = ff = k0 = ks = kg = ksg = kgg = 0.0
    fk0 = fks = fkg = ffk = q0 = qs = qg = fq = kk = moved = 0.0
    sgf = sff = y0 = ys = yg = ysg = ygg = fy0 = fys = fyg = ky0 = kys = kyg = 0.0
    for j in range(size):
        sign, s, g, low = room[SIGN + j], room[CLASS + j], room[OLD + j], room[LOW + j]
        d = room[D + j] + sign * noise
        f, k, q, rest, excess = _at_root(room[U + j], d, room[E + j], low, c, hard)
        moved += excess
        w = room[WEIGHT + j]
        wf, wk, wq = w * sign * f, w * k, w * sign * q
        f0 += wf
        fs += wf * s
        fg += wf * g
        ff += w * f * f
        k0 += wk
        ks += wk * s
        kg += wk * g
        ksg += wk * s * g
        kgg += wk * g * g
        kk += wk * k
        ffk += wk * f * f
        fk0 += wf * k
        fks += wf * k * s
        fkg += wf * k * g
        q0 += wq
        qs += wq * s
        qg += wq * g
        fq += w * f * q
        if extra is not None:
            gain = low * (1.0 - low)
            y, ky = -w * gain * rest, wq * gain * c
            fy = y * sign * f
            sgf += wf * s * g
            sff += w * f * f * s
            y0 += y
            ys += y * s
            yg += y * g
            ysg += y * s * g
            ygg += y * g * g
            fy0 += fy
            fys += fy * s
            fyg += fy * g
            ky0 += ky
            kys += ky * s
            kyg += ky * g
    if not moved <= SETTLED:
        return moved
    w, n = point.weight, point.node
    out.f += w * f0
    out.sf += w * fs
    out.gf += w * fg
    out.ff += w * ff
    out.k += w * k0
    out.sk += w * ks
    out.gk += w * kg
    out.nk += w * n * k0
    out.sgk += w * ksg
    out.snk += w * n * ks
    out.ggk += w * kgg
    out.gnk += w * n * kg
    out.fk += w * fk0
    out.sfk += w * fks
    out.gfk += w * fkg
    out.nfk += w * n * fk0
    out.ffk += w * ffk
    out.k3 += w * q0
    out.sk3 += w * qs
    out.gk3 += w * qg
    out.nk3 += w * n * q0
    out.fk3 += w * fq
    out.kk += w * kk
    if extra is not None:
        out.sgf += w * sgf
        out.sff += w * sff
        out.y += w * y0
        out.sy += w * ys
        out.gy += w * yg
        out.sgy += w * ysg
        out.ggy += w * ygg
        out.fy += w * fy0
        out.sfy += w * fys
        out.gfy += w * fyg
        out.ky += w * ky0
        out.sky += w * kys
        out.gky += w * kyg
    return moved


@kernel(allocates=False)
def _loss(room: Any, size: int) -> float:
    r"""Return the average loss of a block: $\ln(1 + e^{-|x|})$ plus $(1 - p)x$ for x > 0, $-px$
    for x < 0.
    """
    total = 0.0
    for j in range(size):
        x = room[U + j] - room[EDGE + j]
        slope = room[LOW + j] if x >= 0.0 else room[LOW + j] - 1.0
        total += room[WEIGHT + j] * (math.log1p(math.exp(-abs(x))) + slope * x)
    return total
