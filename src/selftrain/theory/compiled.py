r"""The logistic engine: one step by Newton's method, a whole trajectory step after step, compiled.

`march` predicts the state of the next step from the last four, makes one Newton step (a second one if
the first was large), and confirms it on a refined rule: at every step that was not predicted well, and
at regular intervals on a smooth stretch. When a step resists it returns, and the caller solves that step
by the slower and surer ways of `stage` before the march goes on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from .equations import BIAS, ETA, LOG_CHI, LOG_R, A, assemble, damping, newton_step, scales
from .moments import COUNT, logistic_moments
from .quadrature import outer_rule
from .stage import LEVELS, REFINED

RELATIVE_SHARPNESS = 4.0
"""Up to this sharpness the unknowns are differences to the (sharpened) old state."""

CONFIRM_EVERY = 16
"""Steps between confirmations on a stretch where the prediction needs one Newton step."""
SMALLEST, LARGEST = 1e-125, 1e125
"""Norms of the weights beyond these lose digits when they are squared."""

DONE, HARD_STEP, COLLAPSED, EMPTY, OVERFLOW = range(5)


@njit(cache=True, error_model="numpy")
def reference_sharpness(sharpness: float) -> float:
    r"""$\gamma_0$: the sharpness if labels and logits are comparable, else 0."""
    return sharpness if sharpness <= RELATIVE_SHARPNESS else 0.0


@njit(cache=True, error_model="numpy")
def evaluate(
    z: Any,
    old: Any,
    batch: Any,
    ridge: float,
    threshold: float,
    sharpness: float,
    fixed_bias: bool,
    anchor: float,
    exponent: float,
    with_loss: bool,
    nodes: Any,
    moments: Any,
    residual: Any,
    jacobian: Any,
) -> tuple[int, float]:
    r"""Residual and Jacobian of a self-training step at z; the points used (-1: too many) and $\ln P_{sel}$.

    `old` is ($\omega, \mu, \nu^2, B'$) of the previous step, `batch` is ($\alpha, \rho, \Delta$), `anchor` is $\gamma_0$ of the
    unknowns: they are differences to the old state, or zero-based where little of that is left.
    """
    omega, mu, nu2, old_bias = old
    alpha, rho, delta = batch
    base = reference_sharpness(sharpness)
    root = math.sqrt(delta)
    _, off = scales(z, nu2)
    a = anchor * omega + z[A]
    slide = z[A] + (anchor - base) * omega
    lift = z[BIAS] + (anchor - base) * old_bias
    chi = math.exp(z[LOG_CHI])
    count, log_share = outer_rule(
        omega, mu * omega, old_bias, rho, delta, threshold, sharpness, root * abs(a),
        mu * a + nu2 * z[ETA], anchor * old_bias + z[BIAS], root * off, chi * delta, exponent, nodes,
    )  # fmt: skip
    if count <= 0:
        return count, log_share
    points = logistic_moments(
        nodes, count, base, sharpness, mu * slide + nu2 * z[ETA], root * slide, lift,
        root * off, chi * delta, exponent, with_loss, moments[0],
    )  # fmt: skip
    if points < 0:
        return -1, log_share
    share = np.empty(1)
    share[0] = alpha * math.exp(log_share)
    spread = np.empty(1)
    spread[0] = delta
    held = (1.0 - anchor) * old_bias if fixed_bias else math.nan
    assemble(
        z, moments, share, spread, ridge, mu, nu2, anchor * omega, False, held, residual, jacobian
    )
    return points, log_share


@njit(cache=True, error_model="numpy")
def evaluate_supervised(
    z: Any,
    groups: Any,
    ridge: float,
    exponent: float,
    with_loss: bool,
    nodes: Any,
    moments: Any,
    residual: Any,
    jacobian: Any,
) -> int:
    r"""The same for a supervised fit; the rows of `groups` are $\alpha, \rho, \Delta$, one column a group."""
    _, off = scales(z, 1.0)
    chi = math.exp(z[LOG_CHI])
    points = 0
    for i in range(groups.shape[1]):
        for side in range(2):
            s = 1.0 - 2.0 * side
            nodes[0, side] = s
            nodes[1, side] = 0.0
            nodes[2, side] = groups[1, i] if side == 0 else 1.0 - groups[1, i]
            nodes[3, side] = s
        root = math.sqrt(groups[2, i])
        points += logistic_moments(
            nodes, 2, 0.0, math.inf, z[ETA], 0.0, z[BIAS], root * off, chi * groups[2, i],
            exponent, with_loss, moments[i],
        )  # fmt: skip
    assemble(
        z, moments, groups[0], groups[2], ridge, 0.0, 1.0, 0.0, True, math.nan, residual, jacobian
    )
    return points


@njit(cache=True, error_model="numpy")
def explicit_start(
    old: Any,
    batch: Any,
    ridge: float,
    threshold: float,
    sharpness: float,
    fixed_bias: bool,
    nodes: Any,
    z: Any,
) -> float:
    r"""The state for $\lambda \to \infty$: the gradient at w = 0 divided by the stiffness there;
    zero-based.

    Returns the minority mass $\min(E p, 1 - E p)$ of the selected pseudo-labels, which tells collapse;
    NaN if nothing is selected, -1 if the rule would be too long.
    """
    omega, mu, _, old_bias = old
    alpha, rho, delta = batch
    count, log_share = outer_rule(
        omega, mu * omega, old_bias, rho, delta, threshold, sharpness, 0.0,
        0.0, 0.0, 0.0, 1.0, 16.0, nodes,
    )  # fmt: skip
    if count < 0:
        return -1.0
    if count == 0 or not log_share > -480.0:
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
    bias = old_bias if fixed_bias else math.log(up / down)
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
            if fixed_bias:
                gap = sharpness * off + (sharpness - 1.0) * old_bias
            if abs(gap) < 1.0:
                f = -top * math.expm1(gap) / (1.0 + math.exp(bias + gap))
            else:
                f = top - 1.0 / (1.0 + math.exp(-bias - gap))
        sf += nodes[2, j] * nodes[0, j] * f
        gf += nodes[2, j] * nodes[1, j] * f
        ff += nodes[2, j] * f * f
    share = alpha * math.exp(log_share)
    chi = 1.0 / (ridge + share * delta * curvature)
    z[LOG_CHI] = math.log(chi)
    z[A] = chi * (-mu * share * sf - share * math.sqrt(delta) * gf)
    z[ETA] = -chi * share * sf
    z[BIAS] = bias
    z[LOG_R] = 0.5 * math.log(chi * chi * share * delta * ff + 1e-290)
    return min(up, down)


@njit(cache=True, error_model="numpy")
def no_update_start(
    old: Any, batch: Any, ridge: float, threshold: float, sharpness: float,
    fixed_bias: bool, nodes: Any, z: Any,
) -> bool:  # fmt: skip
    r"""The state for $\lambda \to 0$: nothing moves, $1/\chi_0 = \alpha\Delta E[l''/(1 + \chi_0\Delta l'')]$; False if $\lambda\chi_0 \ge 0.3$.

    The changes are then guessed as the first-order shrinkage of relative size $\lambda\chi_0$.
    """
    omega, mu, _, old_bias = old
    alpha, rho, delta = batch
    base = reference_sharpness(sharpness)
    if base == 0.0:
        return False
    count, log_share = outer_rule(
        omega, mu * omega, old_bias, rho, delta, threshold, sharpness,
        math.sqrt(delta) * omega, mu * omega, old_bias, 0.0, 1.0, 16.0, nodes,
    )  # fmt: skip
    share = alpha * math.exp(log_share)
    if share <= 1.05:
        return False
    lo = math.log(1e-12)
    hi = math.log(0.3 / ridge)
    for trial in range(60):
        mid = hi if trial == 0 else 0.5 * (lo + hi)
        c = math.exp(mid) * delta
        total = 0.0
        for j in range(count):
            tail = math.exp(-abs(sharpness * nodes[3, j]))
            curvature = tail / (1.0 + tail) ** 2
            total += nodes[2, j] * c * curvature / (1.0 + c * curvature)
        if share * total > 1.0:
            hi = mid
        elif trial == 0:
            return False
        else:
            lo = mid
    small = ridge * math.exp(hi)
    z[LOG_CHI] = hi
    z[A] = -small * base * omega
    z[ETA] = 0.3 * small * mu * base * omega
    z[BIAS] = old_bias * (1.0 - base) if fixed_bias else 0.0
    z[LOG_R] = math.log(0.5 * small * base * omega)
    return True


@njit(cache=True, error_model="numpy")
def newton(
    z: Any,
    old: Any,
    batch: Any,
    ridge: float,
    threshold: float,
    sharpness: float,
    fixed_bias: bool,
    anchor: float,
    exponent: float,
    enough: float,
    limit: int,
    nodes: Any,
    moments: Any,
    work: Any,
) -> tuple[float, int, int]:
    """Newton's method from z, in place; the size of the last step (inf: failed), evaluations, points."""
    residual = work[0]
    jacobian = work[1:6]
    step = work[6]
    offset = anchor * old[0]
    root = math.sqrt(batch[2])
    size = math.inf
    points = 0
    for iteration in range(limit):
        points, _ = evaluate(
            z, old, batch, ridge, threshold, sharpness, fixed_bias, anchor, exponent, False,
            nodes, moments, residual, jacobian,
        )  # fmt: skip
        if points <= 0:
            return math.inf, iteration + 1, points
        size = newton_step(z, residual, jacobian, old[2], offset, anchor * old[3], root, step)
        if not size < math.inf:
            return math.inf, iteration + 1, points
        factor = damping(z, step, old[2], offset, old[0]) if size > 0.1 else 1.0
        for j in range(5):
            z[j] += factor * step[j]
        if not (abs(z[LOG_R]) < 345.0 and abs(z[LOG_CHI]) < 345.0):
            return math.inf, iteration + 1, points
        if size <= enough:
            return size, iteration + 1, points
    return math.inf, limit, points


@njit(cache=True, error_model="numpy")
def to_state(
    z: Any, old: Any, anchor: float, ridge: float, first: bool, row: Any, new: Any
) -> None:
    r"""From z to a row (m, v, B, $\chi$, R, $\hat Q$, $\hat\chi$, $\hat m$, $\hat R$) and the state ($\omega, \mu, \nu^2$, B).

    `anchor` is $\gamma_0$; `first` marks step 0, where R and $\hat R$ do not exist.
    """
    omega, mu, nu2, old_bias = old
    r, _ = scales(z, nu2)
    chi = math.exp(z[LOG_CHI])
    a = anchor * omega + z[A]
    m = mu * a + nu2 * z[ETA]
    rest = math.hypot(math.sqrt(nu2) * (a - mu * z[ETA]), r)
    norm = math.hypot(m, rest)
    bias = anchor * old_bias + z[BIAS]
    if abs(bias) < 1e-15 * (norm + omega):
        bias = 0.0  # rounding of a balanced problem; kept, it would outlive vanishing weights
    row[0] = m
    row[1] = rest * rest
    row[2] = bias
    row[3] = chi
    row[4] = math.nan if first else omega * a
    row[5] = 1.0 / chi - ridge
    row[6] = (r / chi) ** 2
    row[7] = z[ETA] / chi
    row[8] = math.nan if first else (a - mu * z[ETA]) / (chi * omega)
    new[0] = norm
    new[1] = m / norm
    new[2] = (rest / norm) ** 2
    new[3] = row[2]


@njit(cache=True, error_model="numpy")
def vanished(old: Any, fixed_bias: bool) -> bool:
    """Whether nothing but the bias is left of the labelling model, so that it knows one class only.

    With a fixed bias weights may still recover, unless they have left the range of numbers.
    """
    omega = old[0]
    gone = omega < 1e-9 * abs(old[3])
    return bool(gone and (omega <= SMALLEST or not fixed_bias))


@njit(cache=True, error_model="numpy")
def march(
    first: int,
    rows: Any,
    states: Any,
    unknowns: Any,
    alpha: Any,
    rho: Any,
    delta: Any,
    ridges: Any,
    thresholds: Any,
    sharpnesses: Any,
    fixed_bias: bool,
    exponent: float,
    enough: float,
    tolerance: float,
    evaluations: Any,
    points: Any,
    accuracy: Any,
    starts: Any,
    anchors: Any,
    nodes: Any,
) -> tuple[int, int]:
    """Solve steps `first`.. in place as far as Newton's method carries; the next step and why it stopped."""
    steps = alpha.shape[0]
    moments = np.zeros((1, COUNT))
    work = np.zeros((7, 5))
    z = np.empty(5)
    batch = np.empty(3)
    level = 0
    confirmed = first - 1
    t = first
    while t <= steps:
        i = t - 1
        old = states[i]
        batch[0] = alpha[i]
        batch[1] = rho[i]
        batch[2] = delta[i]
        if vanished(old, fixed_bias):
            return t, COLLAPSED
        if not (SMALLEST < old[0] < LARGEST):
            return t, OVERFLOW
        rule = exponent + level * REFINED
        size = math.inf
        used = 0
        base = reference_sharpness(sharpnesses[i])
        anchor = base if anchors[t - 1] > 0.0 else 0.0
        predicted = t >= 2
        for k in range(max(t - 4, 1), t):
            predicted = predicted and (anchors[k] > 0.0) == (anchor > 0.0)
        if predicted:
            predict(t, unknowns, z)
            size, used, points[t] = newton(
                z, old, batch, ridges[i], thresholds[i], sharpnesses[i], fixed_bias, anchor, rule,
                enough, 7, nodes, moments, work,
            )  # fmt: skip
            starts[t] = 0
        if not size < math.inf:
            predicted = False
            mass = explicit_start(
                old, batch, ridges[i], thresholds[i], sharpnesses[i], fixed_bias, nodes, z
            )
            if math.isnan(mass):
                return t, EMPTY
            if mass < 0.0:
                return t, HARD_STEP
            if not fixed_bias and mass < 1e-12:
                return t, COLLAPSED
            starts[t] = 1
            anchor = base if abs(z[A]) > 0.05 * base * old[0] else 0.0
            z[A] -= anchor * old[0]
            z[BIAS] -= anchor * old[3]
            if no_update_start(
                old, batch, ridges[i], thresholds[i], sharpnesses[i], fixed_bias, nodes, z
            ):
                starts[t] = 2
                anchor = base
            size, more, points[t] = newton(
                z, old, batch, ridges[i], thresholds[i], sharpnesses[i], fixed_bias, anchor, rule,
                enough, 25, nodes, moments, work,
            )  # fmt: skip
            used += more
        # what is left of the old weights decides which form of the unknowns keeps its digits
        better = anchor
        left = anchor * old[0] + z[A]
        if anchor > 0.0 and abs(left) < 0.01 * base * old[0]:
            better = 0.0
        elif anchor == 0.0 and abs(left - base * old[0]) < 0.01 * base * old[0]:
            better = base
        if size < math.inf and better != anchor:
            z[A] += (anchor - better) * old[0]
            z[BIAS] += (anchor - better) * old[3]
            anchor = better
            size, more, points[t] = newton(
                z, old, batch, ridges[i], thresholds[i], sharpnesses[i], fixed_bias, anchor, rule,
                enough, 7, nodes, moments, work,
            )  # fmt: skip
            used += more
        evaluations[t] += used
        if not size < math.inf:
            return t, HARD_STEP
        if (not predicted) or used > 1 or t - confirmed >= CONFIRM_EVERY or t == steps:
            accuracy[t], points[t] = confirm(
                z, old, batch, ridges[i], thresholds[i], sharpnesses[i], fixed_bias, anchor,
                rule, nodes, moments, work,
            )  # fmt: skip
            evaluations[t] += 1
            if not accuracy[t] <= tolerance:
                level += 1
                if level > LEVELS:
                    return t, HARD_STEP
                t = confirmed + 1
                continue
            confirmed = t
        for j in range(5):
            unknowns[t, j] = z[j]
        anchors[t] = anchor
        to_state(z, old, anchor, ridges[i], False, rows[t], states[t])
        t += 1
    return steps + 1, DONE


@njit(cache=True, error_model="numpy")
def confirm(
    z: Any,
    old: Any,
    batch: Any,
    ridge: float,
    threshold: float,
    sharpness: float,
    fixed_bias: bool,
    anchor: float,
    exponent: float,
    nodes: Any,
    moments: Any,
    work: Any,
) -> tuple[float, int]:
    """Relative size of the Newton step from z on the refined rule, and its number of points."""
    points, _ = evaluate(
        z, old, batch, ridge, threshold, sharpness, fixed_bias, anchor, exponent + REFINED, False,
        nodes, moments, work[0], work[1:6],
    )  # fmt: skip
    if points <= 0:
        return math.inf, 0
    size = newton_step(
        z,
        work[0],
        work[1:6],
        old[2],
        anchor * old[0],
        anchor * old[3],
        math.sqrt(batch[2]),
        work[6],
    )
    return size, points


@njit(cache=True, error_model="numpy")
def predict(t: int, unknowns: Any, z: Any) -> None:
    """Polynomial extrapolation of the unknowns from up to four steps before t >= 2."""
    for j in range(5):
        last = unknowns[t - 1, j]
        if t >= 5:
            z[j] = 4.0 * (last + unknowns[t - 3, j]) - 6.0 * unknowns[t - 2, j] - unknowns[t - 4, j]
        elif t >= 4:
            z[j] = 3.0 * (last - unknowns[t - 2, j]) + unknowns[t - 3, j]
        elif t >= 3:
            z[j] = 2.0 * last - unknowns[t - 2, j]
        else:
            z[j] = last
