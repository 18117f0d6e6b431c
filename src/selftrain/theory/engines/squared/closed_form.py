r"""What the closed forms of the squared loss share: the averages, the susceptibility, and how a
closed form is confirmed.

With $f = (h - \hat y)/(1+c)$ all averages are truncated Gaussian moments. On one side of the
threshold, for one class, $h - \hat y = d + \kappa g_1 + b g_2$ with constants d and $\kappa$, so
with $P, T_1, T_2$ the moments of order 0, 1, 2 of $g_1$ there, $E f = k\langle dP + \kappa
T_1\rangle$, $E[g_1 f] = k\langle dT_1 + \kappa T_2\rangle$, $E f^2 = k^2\langle d^2P + 2d\kappa T_1
+ \kappa^2T_2 + b^2P\rangle$ and $k = 1/(1+c)$: a quadratic equation gives c, a linear system $(a,
\eta, B)$, and then $r^2$ follows. Classes are coded as -1 and +1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ....arrays import Array
from ....errors import ConvergenceError
from ...step.averages import blank
from ...step.equations import (
    LOG_CHI,
    Frame,
    Groups,
    System,
    assemble,
    blank_system,
    newton_step,
)
from ...step.stage import StageSolution
from ...tolerances import ACCEPTED

CLOSED = 1e-13
"""A closed form this near to its equations is as good as rounding allows."""


class Sides(NamedTuple):
    r"""The four pieces (class, side of the threshold) of a batch: class sign, weighted moments of
    $g_1$ of order 0, 1, 2, and what the labels add to d and $\kappa$.
    """

    sign: Array
    zeroth: Array
    first: Array
    second: Array
    constant: Array
    slope: Array


def sides(
    mean: float, spread: float, bias: float, rho: float, limit: float, sharpness: float, base: float
) -> Sides:
    r"""The pieces of a batch with $\tilde h = s\,$`mean` + `bias` + `spread` $g_1$, selected where
    $|\tilde h| >$ `limit`; d and $\kappa$ are measured from `base` $\tilde h$.
    """
    table = []
    for s, share in ((1.0, rho), (-1.0, 1.0 - rho)):
        centre = s * mean + bias
        for side in (1.0, -1.0):
            edge = (limit - side * centre) / spread  # the region side * g > edge
            density = math.exp(-0.5 * edge * edge) / math.sqrt(2 * math.pi)
            zeroth = float(ndtr(-edge))
            if math.isinf(sharpness):
                constant, slope = -side, 0.0
            else:
                constant, slope = (base - sharpness) * centre, (base - sharpness) * spread
            second = zeroth + edge * density
            table.append(
                (s, share * zeroth, share * side * density, share * second, constant, slope)
            )
    return Sides(*np.array(table).T)


def averages(
    s: Array,
    zeroth: Array,
    first: Array,
    second: Array,
    d: Array,
    kappa: Array,
    noise: float,
    c: float,
) -> Any:
    r"""The averages for $f = k(d + \kappa g_1 + b g_2)$ on pieces with the moments of $g_1$
    given.
    """
    k = 1.0 / (1.0 + c)
    f = k * (d * zeroth + kappa * first)
    gf = k * (d * first + kappa * second)
    square = d**2 * zeroth + 2 * d * kappa * first + kappa**2 * second
    ff = k * k * (square + noise**2 * zeroth)
    e = blank()[0]
    e.f, e.sf, e.gf, e.sgf = f.sum(), s @ f, gf.sum(), s @ gf
    e.ff, e.sff = ff.sum(), s @ ff
    e.k, e.sk, e.kk = k, k * (s @ zeroth), k * k
    e.gk, e.sgk, e.ggk = k * first.sum(), k * (s @ first), k * second.sum()
    e.fk, e.sfk, e.gfk, e.nfk, e.ffk = k * e.f, k * e.sf, k * e.gf, k * k * noise, k * e.ff
    e.y, e.sy, e.gy, e.sgy, e.ggy = -e.k, -e.sk, -e.gk, -e.sgk, -e.ggk
    e.fy, e.sfy, e.gfy = -e.fk, -e.sfk, -e.gfk
    return e


def system(z: Array, averages: list[Any], alpha: Array, delta: Array, about: Frame) -> System:
    """The equations that all engines share, at z."""
    system, table = blank_system(), blank(len(averages))
    for i, row in enumerate(averages):
        table[i] = row
    assemble(z, Groups(alpha, delta, table), about, system)
    return system


def confirmed(
    t: int, z: Array, equations: Callable[[Array], System], about: Frame
) -> StageSolution:
    """A closed form with its distance from the equations, improved by a Newton step where rounding
    shows.
    """
    for evaluations in (1, 2):
        system = equations(z)
        accuracy = float(newton_step(z, system, about))
        if not CLOSED < accuracy < math.inf or evaluations == 2:
            break
        z = z + system.step
    if not accuracy <= ACCEPTED:
        reason = "the closed form does not satisfy the equations"
        raise ConvergenceError(t, reason, {"chi": math.exp(z[LOG_CHI])}, accuracy)
    return StageSolution(z, "closed form", evaluations, 0, accuracy)


def susceptibility(alpha: Array, delta: Array, ridge: float) -> float:
    r"""$\chi$ with $\chi(\sum\alpha\Delta/(1+\chi\Delta) + \lambda) = 1$; a quadratic equation for
    a single group.
    """
    if alpha.size == 1:
        a, d = float(alpha[0]), float(delta[0])
        b = ridge + d * (a - 1.0)
        root = math.sqrt(b * b + 4.0 * ridge * d)
        chi = (
            2.0 / (b + root) if b > 0 else (root - b) / (2.0 * ridge * d) if ridge > 0 else math.inf
        )
    elif ridge == 0.0 and float(alpha.sum()) <= 1.0:
        chi = math.inf
    else:

        def excess(x: float) -> float:
            y = math.exp(x)
            return y * (float((alpha * delta) @ (1.0 / (1.0 + y * delta))) + ridge) - 1.0

        chi = math.exp(brentq(excess, -600.0, 600.0, xtol=1e-15, rtol=1e-15))
    if not chi < 1e150:  # its square must be a number
        reason = "without ridge and with fewer points than features there is no unique minimiser"
        raise ConvergenceError(0, reason, {}, math.nan)
    return chi
