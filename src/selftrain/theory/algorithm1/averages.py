r"""The averages of the paper's Algorithm 1, as it takes them: points with weights, and one kernel.

Appendix `app: numerical recipe`: Gauss-Hermite quadrature where every point is used, Monte Carlo
where a threshold rejects some, the delta functions of `eq:rs-saddle-hatr` at the threshold by hand.
Each is a list of `WeightedPoints`; `averages` turns a list into the sums that the conjugates are
made of.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, roots_hermitenorm

from ...arrays import Array
from ...problem import Mixture
from ...runtime.kernels import kernel


class GaussRule(NamedTuple):
    r"""Nodes and weights of two standard Gaussian averages: over $\xi_1$ and, given it, over
    $\xi_2$.
    """

    outer: Array
    outer_weights: Array
    inner: Array
    inner_weights: Array


def gauss_hermite(outer: int = 120, inner: int = 40) -> GaussRule:
    """Gauss-Hermite in both directions.

    >>> rule = gauss_hermite(3, 1)
    >>> round(float(rule.outer_weights @ rule.outer**4), 12)
    3.0
    """
    (x, x_weights), (y, y_weights) = (roots_hermitenorm(size) for size in (outer, inner))
    return GaussRule(x, x_weights / x_weights.sum(), y, y_weights / y_weights.sum())


class WeightedPoints(NamedTuple):
    r"""Points of an average: sign s, noises $\xi/\sqrt\Delta$, weight, label p, $dp/d\tilde h$."""

    sign: Array
    first: Array
    second: Array
    weight: Array
    label: Array
    steepness: Array


class PreviousField(NamedTuple):
    r"""$\tilde h = s m' + B' + \sqrt{q'}\xi_1$ (`eq:rs-saddle-local-field1`) and what is made of
    it.

    `scale` is $\sqrt{\Delta q'}$, `edge` is $\Gamma\sqrt{q'}$, the label is $\sigma(\gamma\tilde
    h)$.
    """

    m: float
    bias: float
    scale: float
    edge: float
    sharpness: float

    def label(self, sign: Array, first: Array, second: Array, weight: Array) -> WeightedPoints:
        field = sign * self.m + self.bias + self.scale * first
        label = expit(self.sharpness * field)
        steepness = self.sharpness * label * expit(-self.sharpness * field)
        return WeightedPoints(sign, first, second, weight, label, steepness)


def labeled_points(mixture: Mixture, rule: GaussRule) -> WeightedPoints:
    """Step 0: labels are the classes, one noise."""
    sign = np.repeat([1.0, -1.0], rule.outer.size)
    weight = np.where(sign > 0, mixture.rho, 1 - mixture.rho) * np.tile(rule.outer_weights, 2)
    nothing = np.zeros_like(sign)
    return WeightedPoints(sign, np.tile(rule.outer, 2), nothing, weight, 0.5 * (1 + sign), nothing)


def tensor_points(rho: float, previous: PreviousField, rule: GaussRule) -> WeightedPoints:
    """Both classes times both rules."""
    cells = np.meshgrid([1.0, -1.0], rule.outer, rule.inner, indexing="ij")
    sign, first, second = (cell.ravel() for cell in cells)
    shares = np.array([rho, 1 - rho])[:, None, None]
    weight = shares * rule.outer_weights[:, None] * rule.inner_weights
    return previous.label(sign, first, second, weight.ravel())


def sampled_points(
    rho: float, previous: PreviousField, size: int, rng: np.random.Generator
) -> WeightedPoints:
    """Monte Carlo: the samples that the threshold keeps, each with weight 1/size."""
    sign = np.where(rng.random(size) < rho, 1.0, -1.0)
    first, second = rng.standard_normal((2, size))
    kept = np.abs(sign * previous.m + previous.bias + previous.scale * first) > previous.edge
    weight = np.full(np.count_nonzero(kept), 1.0 / size)
    return previous.label(sign[kept], first[kept], second[kept], weight)


def edge_points(rho: float, previous: PreviousField, rule: GaussRule) -> WeightedPoints:
    r"""The delta functions $\delta(\tilde h - \Gamma\sqrt{q'}) - \delta(\tilde h +
    \Gamma\sqrt{q'})$, averaged over $\xi_2$ by the rule.
    """
    cells = np.meshgrid([1.0, -1.0], [1.0, -1.0], rule.inner, indexing="ij")
    sign, side, second = (cell.ravel() for cell in cells)
    first = (side * previous.edge - sign * previous.m - previous.bias) / previous.scale
    density = np.exp(-0.5 * first**2) / (math.sqrt(2 * math.pi) * previous.scale)
    shares = np.where(sign > 0, rho, 1 - rho)
    weight = side * shares * density * np.tile(rule.inner_weights, 4)
    return previous.label(sign, first, second, weight)


class PointAverages(NamedTuple):
    r"""$E[\partial f/\partial h]$, $E[f^2]$, $E[sf]$, $-E[\partial f/\partial\tilde h]$, $E[f]$."""

    slope: float
    square: float
    signed: float
    response: float
    mean: float


def averages(
    points: WeightedPoints, m: float, bias: float, along: float, across: float, strength: float
) -> PointAverages:
    r"""What `eq:rs-saddle-hatq` to `eq:rs-saddle-b` average, at $h = s m + B$ + along g1 + across
    g2.
    """
    return PointAverages(*_sums(points, m, bias, along, across, strength))


@kernel(error_model="numpy")
def _sums(
    points: WeightedPoints, m: float, bias: float, along: float, across: float, strength: float
) -> tuple[float, float, float, float, float]:
    r"""With x the trained logit, $f = \sigma(x) - p$, $\partial f/\partial h =
    \sigma'/(1+c\sigma')$, $-\partial f/\partial\tilde h = p'/(1+c\sigma')$.

    x is the root of $x + c(\sigma(x) - p) = h$ (`appeq: effective problem u t`), by Newton's method
    from x = 0: monotone for every c, because $\sigma$ is convex below and concave above.
    """
    slope = square = signed = response = mean = 0.0
    for k in range(points.sign.size):
        h = points.sign[k] * m + bias + along * points.first[k] + across * points.second[k]
        x = 0.0
        for _ in range(200):
            s = 1.0 / (1.0 + math.exp(-x))
            step = (x + strength * (s - points.label[k]) - h) / (1.0 + strength * s * (1.0 - s))
            x -= step
            if abs(step) <= 1e-8 + 1e-15 * abs(x):
                break
        s = 1.0 / (1.0 + math.exp(-x))
        f = s - points.label[k]
        stiffness = 1.0 + strength * s * (1.0 - s)
        slope += points.weight[k] * s * (1.0 - s) / stiffness
        square += points.weight[k] * f * f
        signed += points.weight[k] * points.sign[k] * f
        response += points.weight[k] * points.steepness[k] / stiffness
        mean += points.weight[k] * f
    return slope, square, signed, response, mean
