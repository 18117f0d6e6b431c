r"""How a sample answers its field: trained logit, slope of the loss there, and the derivatives of
that slope.

A sample with field H, target p and weight k has the trained logit $u = H - c f$, $f = k\,\partial_2
l(p, u)$, the proximal map of $c k l$. The equations of a step need f, $d = \partial f/\partial H =
e/(1 + c e)$ and $\partial d/\partial H = e'/(1 + c e)^3$ with $e = k\,\partial_2^2 l$. Logistic
loss: compiled; squared loss: explicit; any other: by `quadrature.prox`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...losses import Logistic, Loss, Squared
from ...runtime.kernels import kernel
from ..averages.quadrature.prox import proximal

_WARM, _COLD = 6, 200
"""Halley's steps from the last known logit, and Newton's from 0 behind that (where they converge
for every c).
"""

_LAST_HALLEY, _LAST_NEWTON = 1e-5, 1e-8
"""A step this small is the last one: what it leaves is below its cube, or its square, for every c.
"""


class Answer(NamedTuple):
    """Trained logits u (points, d), slopes f, their derivatives d in the field (points, d, d), and
    the derivatives of those.
    """

    u: Array
    f: Array
    d: Array
    bend: Array

    @classmethod
    def empty(cls, points: int, components: int = 1) -> Answer:
        """Return arrays of zeros."""
        sizes = [(points, *[components] * axes) for axes in (1, 1, 2, 3)]
        return cls(*(np.zeros(size) for size in sizes))

    def part(self, here: slice) -> Answer:
        """Return a view of some points."""
        return Answer(*(values[here] for values in self))


def respond(
    loss: Loss, field: Array, target: Array, weight: Array, strength: Array, out: Answer
) -> None:
    """Fill `out`, whose logits are taken as the start; logits of one component."""
    field, c = field[:, 0], float(strength[0, 0])
    u, f, d, bend = out.u[:, 0], out.f[:, 0], out.d[:, 0, 0], out.bend[:, 0, 0, 0]
    if type(loss) is Logistic:
        _logistic(field, target, weight, c, (u, f, d, bend))
        return
    if type(loss) is Squared:
        f[:] = weight * (field - target) / (1.0 + c * weight)
        u[:] = field - c * f
        d[:] = weight / (1.0 + c * weight)
        bend[:] = 0.0
        return
    u[:] = proximal(loss, target, field, c * weight)
    stretch = 1.0 + c * weight * loss.curvature(target, u)
    f[:] = np.where(weight > 0, weight * loss.slope(target, u), 0.0)
    d[:] = weight * loss.curvature(target, u) / stretch
    bend[:] = weight * loss.third(target, u) / stretch**3


@kernel(error_model="numpy")
def _logistic(field: Any, target: Any, weight: Any, strength: float, out: Any) -> None:
    u, f, d, bend = out
    for i in range(field.size):
        k = weight[i]
        if k == 0.0:
            u[i], f[i], d[i], bend[i] = field[i], 0.0, 0.0, 0.0
            continue
        h, p, c = field[i], target[i], strength * k
        x = u[i]
        for _ in range(_WARM):
            share = 1.0 / (1.0 + math.exp(-x))
            slope = c * share * (1.0 - share)
            step = (x + c * (share - p) - h) / (1.0 + slope)
            step /= 1.0 - 0.5 * step * slope * (1.0 - 2.0 * share) / (1.0 + slope)
            x -= step
            if abs(step) <= _LAST_HALLEY:
                break
        else:
            x = _from_zero(h, p, c)
        share = 1.0 / (1.0 + math.exp(-x))
        curvature = k * share * (1.0 - share)
        stretch = 1.0 + strength * curvature
        u[i], f[i] = x, k * (share - p)
        d[i] = curvature / stretch
        bend[i] = curvature * (1.0 - 2.0 * share) / (stretch * stretch * stretch)


@kernel(error_model="numpy")
def _from_zero(h: float, p: float, c: float) -> float:
    """The proximal map by Newton's method from 0, on one side of the solution all the way."""
    x = 0.0
    for _ in range(_COLD):
        share = 1.0 / (1.0 + math.exp(-x))
        step = (x + c * (share - p) - h) / (1.0 + c * share * (1.0 - share))
        x -= step
        if abs(step) <= _LAST_NEWTON:
            break
    return x
