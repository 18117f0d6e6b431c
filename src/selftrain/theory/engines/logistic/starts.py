r"""Where Newton's method begins when there is nothing to predict from: the two ends of the
ridge.
"""

from __future__ import annotations

import math
from typing import Any

from ....runtime.kernels import kernel
from ...quadrature.outer import NewModel, outer_rule
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, A
from ...step.given import Given
from ...tolerances import EMPTY_LOG_SHARE, NO_UPDATE, SPARE_POINTS
from .step import reference_sharpness, true_labels

START_RULE = 16.0
"""Exponent of the rules of a start: averages to 1e-7."""


@kernel(error_model="numpy")
def explicit_start(step: Given, nodes: Any, z: Any) -> float:
    r"""The state for $\lambda \to \infty$: the gradient at w = 0 divided by the stiffness there;
    zero-based.

    Returns the minority mass $\min(E p, 1 - E p)$ of the selected pseudo-labels, which shows
    a collapse; NaN if nothing is selected, -1 if the rule would be too long.
    """
    omega, mu, old_bias = step.omega, step.mu, step.bias
    delta, sharpness = step.delta, step.sharpness
    count, log_share = 2, 0.0
    if omega == 0.0:
        true_labels(step.rho, nodes)
    else:
        nothing = NewModel(0.0, 0.0, 0.0, 0.0, 1.0)
        count, log_share = outer_rule(step, nothing, START_RULE, nodes)
    if count < 0:
        return -1.0
    if count == 0 or not log_share > EMPTY_LOG_SHARE:
        return math.nan
    up = 0.0
    down = 0.0
    for j in range(count):
        y = nodes[3, j] * (1e300 if math.isinf(sharpness) else sharpness)
        tail = math.exp(-abs(y))
        big = 1.0 / (1.0 + tail)
        small = tail / (1.0 + tail)
        up += nodes[2, j] * (big if y > 0 else small)
        down += nodes[2, j] * (small if y > 0 else big)
    bias = old_bias if step.fixed_bias else math.log(up / down)
    top = 1.0 / (1.0 + math.exp(-bias))
    curvature = top / (1.0 + math.exp(bias))
    sf = 0.0
    gf = 0.0
    ff = 0.0
    for j in range(count):
        if math.isinf(sharpness):
            f = top - (1.0 if nodes[3, j] > 0 else 0.0)
        else:
            # sigma(b) - sigma(y), from y - b without cancellation of a common fixed bias
            off = nodes[0, j] * mu * omega + math.sqrt(delta) * omega * nodes[1, j]
            gap = sharpness * off + (sharpness * old_bias - bias)
            if step.fixed_bias:
                gap = sharpness * off + (sharpness - 1.0) * old_bias
            if abs(gap) < 1.0:
                f = -top * math.expm1(gap) / (1.0 + math.exp(bias + gap))
            else:
                f = top - 1.0 / (1.0 + math.exp(-bias - gap))
        sf += nodes[2, j] * nodes[0, j] * f
        gf += nodes[2, j] * nodes[1, j] * f
        ff += nodes[2, j] * f * f
    share = step.alpha * math.exp(log_share)
    chi = 1.0 / (step.ridge + share * delta * curvature)
    z[LOG_CHI] = math.log(chi)
    z[A] = chi * (-mu * share * sf - share * math.sqrt(delta) * gf)
    z[ETA] = -chi * share * sf
    z[BIAS] = bias
    z[LOG_R] = 0.5 * math.log(chi * chi * share * delta * ff + 1e-290)
    return min(up, down)


@kernel(error_model="numpy")
def no_update_start(step: Given, nodes: Any, z: Any) -> bool:
    r"""The state for $\lambda \to 0$: nothing moves, $1/\chi_0 = \alpha\Delta E[l''/(1 +
    \chi_0\Delta l'')]$; False if $\lambda\chi_0$ is large.

    The changes are then guessed as the first-order shrinkage of relative size $\lambda\chi_0$.
    """
    omega, mu, old_bias = step.omega, step.mu, step.bias
    delta, sharpness = step.delta, step.sharpness
    base = reference_sharpness(sharpness)
    if base == 0.0 or omega == 0.0:
        return False
    same = NewModel(math.sqrt(delta) * omega, mu * omega, old_bias, 0.0, 1.0)
    count, log_share = outer_rule(step, same, START_RULE, nodes)
    share = step.alpha * math.exp(log_share)
    if share <= SPARE_POINTS:
        return False
    curvatures = nodes[1]  # the previous noise is not needed any more
    for j in range(count):
        tail = math.exp(-abs(sharpness * nodes[3, j]))
        curvatures[j] = tail / (1.0 + tail) ** 2
    lo = math.log(1e-12)
    hi = math.log(NO_UPDATE / step.ridge)
    for trial in range(60):
        mid = hi if trial == 0 else 0.5 * (lo + hi)
        c = math.exp(mid) * delta
        total = 0.0
        for j in range(count):
            total += nodes[2, j] * c * curvatures[j] / (1.0 + c * curvatures[j])
        if share * total > 1.0:
            hi = mid
        elif trial == 0:
            return False
        else:
            lo = mid
    small = step.ridge * math.exp(hi)
    z[LOG_CHI] = hi
    z[A] = -small * base * omega
    z[ETA] = 0.3 * small * mu * base * omega
    z[BIAS] = old_bias * (1.0 - base) if step.fixed_bias else 0.0
    z[LOG_R] = math.log(0.5 * small * base * omega)
    return True
