r"""The rule over the class and the previous logit, given selection: the outer average of a step.

Smooth integrands take Gauss-Hermite or the trapezoidal rule, whichever is shorter. Where the
integrand jumps (thresholds, hard labels) or is steep, 16-point Gauss-Legendre panels end at the
jumps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....runtime.kernels import kernel
from ...tolerances import MILD_CHANGE, PANEL_SPAN, TRAPEZOID_DISTANCE
from .rules import HERMITE_W, HERMITE_X, PANEL_W, PANEL_X, hermite_size, trapezoid_step
from .singularities import NewLogit, OldLogit, branch_points, clear_length


class OldModel(NamedTuple):
    r"""The labelling model on a group of samples: $\tilde h = s\,$`mean` + `bias` + `spread`
    $g_1$, selected where $|\tilde h| >$ `limit`; `rho` is the proportion of s = 1.
    """

    mean: float
    spread: float
    bias: float
    rho: float
    limit: float
    sharpness: float


class NewModel(NamedTuple):
    r"""The new model as far as it is known, for the size of a rule.

    Attributes:
        scale: of the old noise $g_1$ in a logit.
        mean: m.
        bias: B.
        noise: b, the scale of the new noise in a logit.
        strength: c of the proximal map.
    """

    scale: float
    mean: float
    bias: float
    noise: float
    strength: float


@kernel(error_model="numpy")
def _panels(
    lo: float, hi: float, near: Any, floor: float, exponent: float, nodes: Any, count: int
) -> int:
    """Append Gauss-Legendre nodes on [lo, hi] to rows 1 (g) and 2 (weight) of `nodes`."""
    x = lo
    while x < hi:
        longest = min(PANEL_SPAN, hi - x)
        length = clear_length(x, longest, near, floor, exponent)
        if count + 16 > nodes.shape[1] or x + length <= x:
            return -1
        for i in range(16):
            nodes[1, count] = x + 0.5 * length * (1.0 + PANEL_X[i])
            nodes[2, count] = 0.5 * length * PANEL_W[i]
            count += 1
        x = hi if length == hi - x else x + length
    return count


@kernel(error_model="numpy")
def outer_rule(old: OldModel, new: NewModel, exponent: float, nodes: Any) -> tuple[int, float]:
    r"""Nodes over the class s and the previous logit $\tilde h$, given selection.

    Fills the rows of `nodes`: s, g, weight (they sum to one over the selected points), $\tilde h$.
    Returns the number of nodes (-1: too many) and the logarithm of the selected fraction.
    """
    mean, spread, bias, limit, sharpness = old.mean, old.spread, old.bias, old.limit, old.sharpness
    hard = math.isinf(sharpness)
    jumps = limit > 0.0 or hard
    reach = math.sqrt(2.0 * exponent)
    near = np.empty((2, 11, 2))
    steep = new.scale if hard else max(sharpness * spread, new.scale)
    floor = math.pi / max(steep, 1e-300)
    mild = (not hard and floor >= TRAPEZOID_DISTANCE) and (
        abs(new.scale - sharpness * spread) * reach
        + abs(new.mean - sharpness * mean)
        + abs(new.bias - sharpness * bias)
        < MILD_CHANGE
    )
    for side in range(2):
        s = 1.0 if side == 0 else -1.0
        centre = s * mean + bias
        near[side, 0, 0] = -centre / spread
        near[side, 0, 1] = 1e300 if hard else math.pi / (sharpness * spread)
        if mild:
            near[side, 1:, 0] = near[side, 0, 0]
            near[side, 1:, 1] = floor
            continue
        branch_points(
            OldLogit(centre, spread, sharpness),
            NewLogit(s * new.mean + new.bias, new.scale, new.noise, new.strength),
            reach + min(sharpness * spread, abs(centre) / spread),
            near[side],
        )
        if not hard:
            for k in range(1, 11):
                floor = min(floor, near[side, k, 1])
    hermite = 0
    if not jumps:
        hermite = hermite_size(floor, exponent)
    smooth = (not jumps) and (hermite > 0 or floor >= TRAPEZOID_DISTANCE)
    count = int(np.int64(0))  # no constant, so that `_panels` is compiled once
    peak = -1e300
    for side in range(2):
        s = 1.0 if side == 0 else -1.0
        share = old.rho if side == 0 else 1.0 - old.rho
        centre = s * mean + bias
        tilt = 0.0
        if not hard:
            tilt = min(sharpness * spread, abs(centre) / spread)
        first = count
        if smooth and hermite > 0:
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
                nodes[1, count] = i * step
                nodes[2, count] = step
                count += 1
        else:
            for branch_side in range(2):
                if branch_side == 0:
                    lo = (limit - centre) / spread
                    hi = math.sqrt(max(lo, 0.0) ** 2 + 2.0 * exponent) + tilt
                    lo = max(lo, -reach - tilt)
                else:
                    hi = (-limit - centre) / spread
                    lo = -math.sqrt(max(-hi, 0.0) ** 2 + 2.0 * exponent) - tilt
                    hi = min(hi, reach + tilt)
                if lo < hi:
                    count = _panels(lo, hi, near[side], floor, exponent, nodes, count)
                    if count < 0:
                        return -1, 0.0
        for i in range(first, count):
            g = nodes[1, i]
            nodes[0, i] = s
            nodes[3, i] = centre + spread * g
            nodes[2, i] *= share
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
