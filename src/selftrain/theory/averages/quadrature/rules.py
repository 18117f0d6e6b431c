r"""One-dimensional rules against a Gaussian, sized for an error $e^{-T}$, T the exponent.

With D the distance of the nearest singularity from the axis, in units of the Gaussian:

- Gauss-Hermite with n nodes errs by $n!\,D^{-2n}$ (for $n \le D^2$);
- the trapezoidal rule has the step $2\pi D/(T + D^2/2)$, never longer than $\pi\sqrt{2/T}$;
- 16-point Gauss-Legendre panels are placed by `singularities.clear_length`.

`inner_rule` integrates over the new noise; `outer.outer_rule` over the class and the previous
logit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import roots_hermitenorm, roots_legendre

from ....runtime.kernels import kernel

HERMITE_MAX = 24
"""Longest Gauss-Hermite rule; where it is not enough the trapezoidal rule is as short."""

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
