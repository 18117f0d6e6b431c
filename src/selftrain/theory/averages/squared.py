r"""The averages of the squared loss in closed form.

With $f = (h - \hat y)/(1+c)$ all averages are truncated Gaussian moments. On one side of the
threshold, for one class, $h - \hat y = d + \kappa g_1 + b g_2$ with constants d and $\kappa$; with
P, $T_1$, $T_2$ the moments of order 0, 1, 2 of $g_1$ there and $k = 1/(1+c)$,

    E[f] = k<d P + \kappa T_1>
    E[g_1 f] = k<d T_1 + \kappa T_2>
    E[f^2] = k^2<d^2 P + 2 d \kappa T_1 + \kappa^2 T_2 + b^2 P>

Classes are coded as -1 and +1.
"""

from __future__ import annotations

import math
from typing import Any

from ...runtime.kernels import kernel
from ..tolerances import EMPTY_SHARE
from .quadrature.rules import Logits, OldModel, given_share


@kernel(allocates=False)
def squared_averages(
    old: OldModel, given: bool, wrong: Any, logits: Logits, e: Any
) -> tuple[int, float]:
    """Fill the record `e` of a group; return the number of pieces (0: no sample is selected) and
    the logarithm of the selected proportion.
    """
    gain = 1.0 / (1.0 + logits.strength)
    share = 0.0
    for piece in range(4):
        sign = 1.0 if piece < 2 else -1.0
        side = 1.0 - 2.0 * (piece % 2)
        weight = old.rho if sign > 0.0 else 1.0 - old.rho
        if given:
            p = given_share(sign, side, old.rho, wrong)
            if not p > 0.0:
                continue
            mean, spread, constant, slope = 0.0, 1.0, -side, 0.0
        else:
            centre = sign * old.mean + old.bias
            edge = (old.limit - side * centre) / old.spread  # the region side * g1 > edge
            p = weight * 0.5 * math.erfc(edge * math.sqrt(0.5))
            if not p > 0.0:
                continue
            ratio = weight * math.exp(-0.5 * edge * edge) / math.sqrt(2.0 * math.pi) / p
            mean = side * ratio
            spread = max(0.0, 1.0 + edge * ratio - ratio * ratio)
            constant, slope = -side, 0.0
            if logits.sharpness < math.inf:
                off = logits.base - logits.sharpness
                constant, slope = off * centre, off * old.spread
        d, kappa = sign * logits.shift + logits.bias + constant, logits.tilt + slope
        at_mean = d + kappa * mean
        f = gain * p * at_mean
        gf = gain * p * (at_mean * mean + kappa * spread)
        ff = gain * gain * p * (at_mean * at_mean + kappa * kappa * spread + logits.noise**2)
        share += p
        e.f += f
        e.sf += sign * f
        e.gf += gf
        e.sgf += sign * gf
        e.ff += ff
        e.sff += sign * ff
        e.sk += gain * sign * p
        e.gk += gain * p * mean
        e.sgk += gain * sign * p * mean
        e.ggk += gain * p * (mean * mean + spread)
    if not share > EMPTY_SHARE:
        return 0, -math.inf
    e.f, e.sf, e.gf, e.sgf = e.f / share, e.sf / share, e.gf / share, e.sgf / share
    e.ff, e.sff, e.sk = e.ff / share, e.sff / share, e.sk / share
    e.gk, e.sgk, e.ggk = e.gk / share, e.sgk / share, e.ggk / share
    e.k, e.kk, e.loss = gain, gain * gain, 0.5 * e.ff
    e.nfk = gain * gain * logits.noise
    e.fk, e.sfk, e.gfk, e.ffk = gain * e.f, gain * e.sf, gain * e.gf, gain * e.ff
    e.y, e.sy, e.gy, e.sgy, e.ggy = -e.k, -e.sk, -e.gk, -e.sgk, -e.ggk
    e.fy, e.sfy, e.gfy = -e.fk, -e.sfk, -e.gfk
    return 4, math.log(share)
