r"""All Gaussian averages of one step for the logistic loss, with their derivatives, in one pass.

With x the proximal point, $x + c\,l'(x) = h$, a step needs averages of $f = l'(x)$ and of
$k = \partial f/\partial h = l''/(1 + c l'')$; their derivatives need $k' = \partial k/\partial h =
l'''/(1 + c l'')^3$, because $\partial f/\partial c = -f k$ and $\partial k/\partial c = -f k' -
k^2$. The averages run over the class s, the previous noise $g_1$ (the nodes of `quadrature.outer`)
and the new noise $g_2$.

Everything is computed from the *change* of the logit, $h - \gamma\tilde h$, and $f =
-\sigma(x)\sigma(-y)\,\mathrm{expm1}(y-x)$ with $y = \gamma\tilde h$: at small ridge f is a
difference of nearly equal numbers, and this keeps its relative accuracy.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....runtime.kernels import kernel
from ...quadrature.rules import PANEL_W, PANEL_X, inner_rule
from ...quadrature.singularities import clear_length
from ...tolerances import INNER_CAPACITY, INNER_POINTS, NEGLIGIBLE_WEIGHT, PANEL_NOISE


class Logits(NamedTuple):
    r"""The new logits and their labels, as functions of class and noises.

    $h = \gamma_0\tilde h + s\,$`shift` + `bias` + `tilt` $g_1$ + `noise` $g_2$, with $\gamma_0$ =
    `base`; the label is $\sigma(\gamma\tilde h)$ with $\gamma$ = `sharpness` (infinite: the sign);
    `strength` is $c = \chi\Delta$.
    """

    base: float
    sharpness: float
    shift: float
    tilt: float
    bias: float
    noise: float
    strength: float


class Label(NamedTuple):
    r"""A label $p = \sigma(y)$: its logit y, `above` = 1 - p and `below` = p, both to full relative
    accuracy.
    """

    y: float
    above: float
    below: float


@kernel(error_model="numpy")
def prox(field: float, strength: float, above: float) -> float:
    r"""x with $x + c(\sigma(x) - p) = h$, where `above` is 1 - p; Newton from zero, monotone for
    every c.
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


@kernel(error_model="numpy", inline="always")
def _expm1(x: float) -> float:
    """exp(x) - 1; its series where that is shorter than the library's way."""
    if abs(x) > 0.03:
        return math.expm1(x)
    return x * (
        1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x / 720.0))))
    )


@kernel(error_model="numpy", inline="always")
def _at_prox(d: float, height: float, e: float, c: float) -> tuple[float, float, float, float]:
    r"""x, f, l'' and 1 - 2 sigma(x) at the prox of h = `height` + d with soft label
    $\sigma($`height`$)$.

    `height` is not negative and e its exp(-height); the other sign is the mirror image.
    """
    low = e / (1.0 + e)
    top = 1.0 / (1.0 + e)
    if abs(d) > 1.5:
        x = prox(height + d, c, low)
        u = x - height
        tail = math.exp(-abs(x))
        small = tail / (1.0 + tail)
        big = 1.0 / (1.0 + tail)
        if abs(u) < 1.5:
            f = -(big if x >= 0 else small) * low * math.expm1(-u)
        elif x >= 0.0:
            f = low - small
        else:
            f = small - top
        bend = (small - big) if x >= 0 else (big - small)
        return x, f, small * big, bend
    curve = low * top
    slope = 1.0 + c * curve
    u = d / slope
    u -= 0.5 * c * curve * (low - top) * u * u / slope
    f = 0.0
    curvature = 0.0
    bend = 0.0
    for _ in range(60):
        back = _expm1(-u)
        weight = e * (1.0 + back)
        top_x = 1.0 / (1.0 + weight)
        f = -top_x * low * back
        curvature = top_x * top_x * weight
        bend = (weight - 1.0) * top_x
        step = (d - u - c * f) / (1.0 + c * curvature)
        u += step
        if abs(step) < 1e-5:
            # second-order update: the error is of third order in the step
            third = curvature * bend
            fourth = curvature * (1.0 - 6.0 * curvature)
            f += step * (curvature + 0.5 * step * third)
            curvature += step * (third + 0.5 * step * fourth)
            bend -= 2.0 * step * curvature
            break
    return height + u, f, curvature, bend


@kernel(error_model="numpy", inline="always")
def _at_point(x: float, above: float, below: float) -> tuple[float, float, float]:
    r"""f, l'' and 1 - 2 sigma(x) at a given x, label p = `below`, 1 - p = `above`."""
    tail = math.exp(-abs(x))
    small = tail / (1.0 + tail)
    big = 1.0 / (1.0 + tail)
    if x >= 0.0:
        return above - small, small * big, small - big
    return small - below, small * big, big - small


@kernel(error_model="numpy")
def _loss(x: float, y: float) -> float:
    r"""$l(\sigma(y), x)$; y may be infinite."""
    if math.isinf(y):
        z = -x if y > 0 else x
        return max(z, 0.0) + math.log1p(math.exp(-abs(z)))
    top = 1.0 / (1.0 + math.exp(-abs(y)))
    p = top if y >= 0 else 1.0 - top
    return max(x, 0.0) + math.log1p(math.exp(-abs(x))) - p * x


@kernel(error_model="numpy", fastmath={"contract"})
def logistic_averages(
    nodes: Any,
    count: int,
    logits: Logits,
    exponent: float,
    with_loss: bool,
    with_labels: bool,
    out: Any,
) -> int:
    """Add the averages over the outer nodes and the new noise to `out`, a record of
    `step.averages`.

    The loss, and the derivatives in the label, are included when asked for. Returns the number of
    points used (-1: too many).
    """
    old_sharpness, sharpness, noise, c = (
        logits.base,
        logits.sharpness,
        logits.noise,
        logits.strength,
    )
    x_in = np.empty(INNER_CAPACITY)
    w_in = np.empty(INNER_CAPACITY)
    inner = np.empty(14)
    hard = math.isinf(sharpness)
    relative = old_sharpness == sharpness
    panels = noise > PANEL_NOISE
    size = 0
    points = 0
    if not panels:
        size = inner_rule(noise, exponent, x_in, w_in)
    for j in range(count):
        s = nodes[0, j]
        g = nodes[1, j]
        weight = nodes[2, j]
        if weight < NEGLIGIBLE_WEIGHT:
            continue
        previous = nodes[3, j]
        change = s * logits.shift + logits.bias + logits.tilt * g
        y = math.inf if hard else sharpness * previous
        if hard and previous <= 0.0:
            y = -math.inf
        tail = math.exp(-abs(y))
        small = tail / (1.0 + tail)
        above, below = (small, 1.0 / (1.0 + tail)) if y >= 0 else (1.0 / (1.0 + tail), small)
        sign = 1.0 if y >= 0.0 else -1.0
        rest = f_rest = 0.0
        if relative and not panels and not with_loss and not with_labels:
            points += size
            fm, ffm, km, nkm, fkm, nfkm, ffkm, k3m, nk3m, fk3m, kkm = _over_change(
                sign * change, sign * y, tail, sign * noise, c, x_in[:size], w_in[:size]
            )
            fm, fkm, nfkm, k3m, nk3m = sign * fm, sign * fkm, sign * nfkm, sign * k3m, sign * nk3m
            loss = 0.0
        elif not panels:
            inner[:] = 0.0
            points += size
            for i in range(size):
                n = x_in[i]
                if relative:
                    x, f, curvature, bend = _at_prox(sign * (change + noise * n), sign * y, tail, c)
                    x, f, bend = sign * x, sign * f, sign * bend
                else:
                    x = prox(old_sharpness * previous + change + noise * n, c, above)
                    f, curvature, bend = _at_point(x, above, below)
                _accumulate(inner, w_in[i], n, f, curvature, bend, c)
                if with_loss:
                    inner[11] += w_in[i] * _loss(x, y)
            fm, ffm, km, nkm, fkm, nfkm, ffkm, k3m, nk3m, fk3m, kkm, loss, rest, f_rest = inner
        else:
            inner[:] = 0.0
            centre = old_sharpness * previous + change
            more = _over_prox(inner, centre, Label(y, above, below), noise, c, exponent, with_loss)
            if more < 0:
                return -1
            points += more
            fm, ffm, km, nkm, fkm, nfkm, ffkm, k3m, nk3m, fk3m, kkm, loss, rest, f_rest = inner
        out.f += weight * fm
        out.sf += weight * s * fm
        out.gf += weight * g * fm
        out.ff += weight * ffm
        out.k += weight * km
        out.sk += weight * s * km
        out.gk += weight * g * km
        out.nk += weight * nkm
        out.sgk += weight * s * g * km
        out.snk += weight * s * nkm
        out.ggk += weight * g * g * km
        out.gnk += weight * g * nkm
        out.fk += weight * fkm
        out.sfk += weight * s * fkm
        out.gfk += weight * g * fkm
        out.nfk += weight * nfkm
        out.ffk += weight * ffkm
        out.k3 += weight * k3m
        out.sk3 += weight * s * k3m
        out.gk3 += weight * g * k3m
        out.nk3 += weight * nk3m
        out.fk3 += weight * fk3m
        out.kk += weight * kkm
        out.loss += weight * loss
        if with_labels:
            out.sgf += weight * s * g * fm
            out.sff += weight * s * ffm
            gain = weight * above * below
            yf = -gain * rest
            yff = -gain * f_rest
            yk = gain * c * k3m
            out.y += yf
            out.sy += s * yf
            out.gy += g * yf
            out.sgy += s * g * yf
            out.ggy += g * g * yf
            out.fy += yff
            out.sfy += s * yff
            out.gfy += g * yff
            out.ky += yk
            out.sky += s * yk
            out.gky += g * yk
    return points


@kernel(error_model="numpy", fastmath={"contract"})
def _over_change(
    d: float, height: float, e: float, noise: float, c: float, x_in: Any, w_in: Any
) -> tuple[
    float, float, float, float, float, float, float, float, float, float, float
]:  # fmt: skip
    """The eleven inner averages of `_accumulate` for a soft label, kept in registers: the hot
    loop.
    """
    fm = ffm = km = nkm = fkm = nfkm = ffkm = k3m = nk3m = fk3m = kkm = 0.0
    for i in range(x_in.shape[0]):
        n = x_in[i]
        w = w_in[i]
        _, f, curvature, bend = _at_prox(d + noise * n, height, e, c)
        slope = 1.0 / (1.0 + c * curvature)
        k = curvature * slope
        wk = w * k
        wk3 = wk * slope * slope * bend
        wf = w * f
        fm += wf
        ffm += wf * f
        km += wk
        nkm += wk * n
        fkm += wk * f
        nfkm += wk * f * n
        ffkm += wk * f * f
        k3m += wk3
        nk3m += wk3 * n
        fk3m += wk3 * f
        kkm += wk * k
    return fm, ffm, km, nkm, fkm, nfkm, ffkm, k3m, nk3m, fk3m, kkm


@kernel(error_model="numpy", inline="always")
def _accumulate(
    inner: Any, w: float, n: float, f: float, curvature: float, bend: float, c: float
) -> None:
    """Add one point of the new noise to the inner averages.

    The last two are of 1 - c k, alone and times f: where c is large that is a small number, which
    1 - c E[k] would lose.
    """
    slope = 1.0 / (1.0 + c * curvature)
    k = curvature * slope
    k3 = k * slope * slope * bend
    wf = w * f
    wk = w * k
    wk3 = w * k3
    inner[0] += wf
    inner[1] += wf * f
    inner[2] += wk
    inner[3] += wk * n
    inner[4] += wk * f
    inner[5] += wk * f * n
    inner[6] += wk * f * f
    inner[7] += wk3
    inner[8] += wk3 * n
    inner[9] += wk3 * f
    inner[10] += wk * k
    inner[12] += w * slope
    inner[13] += wf * slope


@kernel(error_model="numpy")
def _over_prox(
    inner: Any,
    centre: float,
    label: Label,
    noise: float,
    c: float,
    exponent: float,
    with_loss: bool,
) -> int:
    r"""The inner averages as integrals over x: $h = x + c(\sigma(x)-p)$, $dh = (1 + c\sigma')\,dx$;
    no prox to solve.
    """
    y, above, below = label
    reach = math.sqrt(2.0 * exponent)
    root = math.sqrt(1.0 + 4.0 / c)
    near = np.empty((3, 2))
    near[:, 0] = math.log((root + 1.0) / (root - 1.0))
    near[0, 0] *= -1.0
    near[1, 0] = 0.0
    near[:, 1] = math.pi
    x = prox(centre - reach * noise, c, above)
    end = prox(centre + reach * noise, c, above)
    points = 0
    while x < end:
        f, _, _ = _at_point(x, above, below)
        longest = min(prox(x + c * f + 3.0 * noise, c, above), end) - x
        length = clear_length(x, longest, near, math.pi, exponent)
        if points > INNER_POINTS or x + length <= x:
            return -1
        for i in range(16):
            u = x + 0.5 * length * (1.0 + PANEL_X[i])
            f, curvature, bend = _at_point(u, above, below)
            n = (u + c * f - centre) / noise
            w = 0.5 * length * PANEL_W[i] * (1.0 + c * curvature) / noise
            w *= math.exp(-0.5 * n * n) / math.sqrt(2.0 * math.pi)
            _accumulate(inner, w, n, f, curvature, bend, c)
            if with_loss:
                inner[11] += w * _loss(u, y)
        points += 16
        x = end if length == end - x else x + length
    return points
