r"""How the equations of one step move with what the step is given.

At a solved step the equations $F(z; \theta) = 0$ define z as a function of $\theta$, the fields of `step.Step`:
the old state ($\omega, \mu, \nu^2, B'$), the batch ($\alpha, \rho, \Delta$) and the recipe ($\lambda, \Gamma, \gamma$). Here is
$\partial F/\partial\theta$, from the averages that Newton's method takes anyway and thirteen more:

- the new logit h moves with $\mu, \nu^2$ and $\Delta$: averages of k, as in the Jacobian;
- the label moves with $\tilde h$ and $\gamma$: the averages Y, FY, KY of `moments`;
- the class weights move with $\rho$: $\partial E[X]/\partial\rho = E[X|s{=}1] - E[X|s{=}{-}1]$, from E[X] and E[sX];
- where the integrand jumps, at a threshold or at the sign of a hard label, the jump moves: with $g_e$ its
  place, $\varphi(g_e)\,(\bar X_- - \bar X_+)\,\partial g_e/\partial\theta$, where $\bar X$ is averaged over the new noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...runtime.kernels import kernel
from ..engines.logistic.averages import (  # fmt: skip
    COUNT,
    FF,
    FFK,
    FK,
    FK3,
    FY,
    GF,
    GFK,
    GFY,
    GGK,
    GGY,
    GK,
    GK3,
    GKY,
    GNK,
    GY,
    KK,
    KY,
    NFK,
    NK,
    NK3,
    SF,
    SFF,
    SFK,
    SFY,
    SGF,
    SGK,
    SGY,
    SK,
    SK3,
    SKY,
    SNK,
    SY,
    F,
    K,
    Y,
    logistic_moments,
)
from ..engines.logistic.step import Step, Workspace, evaluate, reference_sharpness
from ..quadrature.rules import CAPACITY, REFINED
from ..step.equations import BIAS, ETA, LOG_CHI, LOG_R, A, newton_step, scales

OMEGA, MU, NU2, OLD_BIAS, ALPHA, RHO, DELTA, RIDGE, THRESHOLD, SHARPNESS = range(10)
"""Columns of the derivatives: the fields of `Step`, in their order."""

FIELDS = 10

SMALL_STEP = 1e-4
"""Below this $\\lambda\\chi$ a step changes the weights by less than the solver's tolerance tells of the change."""

LARGE_LOGITS = 5.0
"""Beyond this scale of the old logits the averages of k' are small differences and need a finer rule."""

E_CLASS, E_PLACE, E_WEIGHT, E_F, E_FF, E_K, E_OMEGA, E_THRESHOLD, E_SHARPNESS = range(9)
"""A jump: class s, place g, weight, fall of the averages of f, f^2 and k across it, and the derivatives of
the logit at which it sits."""


@kernel(error_model="numpy")
def shifts(
    z: Any, step: Step, share: float, e: Any, gain: float, sharp: Any, edges: Any, first: bool, out: Any
) -> None:  # fmt: skip
    r"""$\partial F/\partial\theta$, one row an equation, one column a field of `Step`.

    Arguments:
        z: the unknowns, with a and B themselves (not differences to the old state).
        share: $\alpha P_{sel}$.
        e: the averages over selected points.
        gain: $\partial y/\partial\tilde h$ of the logit y of the label.
        sharp: derivatives of E[f], E[s f], E[g f], E[f^2], E[k] through the label in the sharpness.
        edges: the jumps, one row each.
    """
    mu, nu2, omega, delta = step.mu, step.nu2, step.omega, step.delta
    a, eta = z[A], z[ETA]
    root = math.sqrt(delta)
    _, norm = scales(z, nu2)
    chi = math.exp(z[LOG_CHI])
    by_class = (e[SK], e[K], e[SGK], 2.0 * e[SFK], e[SK3])
    by_old = (e[GK], e[SGK], e[GGK], 2.0 * e[GFK], e[GK3])
    by_new = (e[NK], e[SNK], e[GNK], 2.0 * e[NFK], e[NK3])
    by_strength = (-e[FK], -e[SFK], -e[GFK], -2.0 * e[FFK], -e[FK3] - e[KK])
    label = (e[Y], e[SY], e[GY], 2.0 * e[FY], e[KY])
    label_class = (e[SY], e[Y], e[SGY], 2.0 * e[SFY], e[SKY])
    label_old = (e[GY], e[SGY], e[GGY], 2.0 * e[GFY], e[GKY])
    mean = (e[F], e[SF], e[GF], e[FF], e[K])
    signed = (e[SF], e[F], e[SGF], e[SFF], e[SK])
    d = np.zeros((5, FIELDS))  # derivatives of E[f], E[s f], E[g f], E[f^2], E[k]
    for i in range(5):
        d[i, OMEGA] = gain * (mu * label_class[i] + root * label_old[i])
        d[i, MU] = gain * omega * label_class[i] + a * by_class[i]
        d[i, NU2] = eta * by_class[i] + 0.5 * root * eta * eta / norm * by_new[i]
        d[i, OLD_BIAS] = gain * label[i]
        d[i, RHO] = 0.5 * (mean[i] + signed[i]) / step.rho
        d[i, RHO] -= 0.5 * (mean[i] - signed[i]) / (1.0 - step.rho)
        d[i, DELTA] = chi * by_strength[i]
        d[i, DELTA] += 0.5 / root * (a * by_old[i] + norm * by_new[i] + gain * omega * label_old[i])
        d[i, SHARPNESS] = sharp[i]
    for edge in edges:
        s, g = edge[E_CLASS], edge[E_PLACE]
        fall = (edge[E_F], s * edge[E_F], g * edge[E_F], edge[E_FF], edge[E_K])
        width = root * omega
        for i in range(5):
            weight = edge[E_WEIGHT] * fall[i]
            d[i, OMEGA] += weight * ((edge[E_OMEGA] - s * mu) / width - g / omega)
            d[i, MU] -= weight * s / root
            d[i, OLD_BIAS] -= weight / width
            d[i, DELTA] -= weight * 0.5 * g / delta
            d[i, THRESHOLD] += weight * edge[E_THRESHOLD] / width
            d[i, SHARPNESS] += weight * edge[E_SHARPNESS] / width
    pull = share * e[SF]
    push = share * e[GF]
    firm = share * e[K]
    stiffness = delta * firm + step.ridge
    for j in range(FIELDS):
        out[0, j] = share * (mu * d[1, j] + root * d[2, j])
        out[1, j] = share * (eta * delta * d[4, j] + d[1, j])
        out[2, j] = share * d[0, j]
        out[3, j] = d[3, j] / e[FF]
        out[4, j] = delta * share * d[4, j] / stiffness
    out[0, MU] += pull
    out[0, ALPHA] = (mu * pull + root * push) / step.alpha
    out[1, ALPHA] = (eta * delta * firm + pull) / step.alpha
    out[2, ALPHA] = share * e[F] / step.alpha
    out[3, ALPHA] = 1.0 / step.alpha
    out[4, ALPHA] = delta * firm / (stiffness * step.alpha)
    out[0, DELTA] += 0.5 * push / root
    out[1, DELTA] += eta * firm
    out[3, DELTA] += 1.0 / delta
    out[4, DELTA] += firm / stiffness
    out[0, RIDGE] = a
    out[1, RIDGE] = eta
    out[4, RIDGE] = 1.0 / stiffness
    if first:
        out[0, :] = 0.0
    if step.fixed_bias:
        out[2, :] = 0.0
        out[2, OLD_BIAS] = -1.0


def first_shifts(z: Any, group: Any, ridge: float, e: Any) -> Any:
    r"""The same for step 0, with labels that do not move; `group` is ($\alpha, \rho, \Delta$)."""
    alpha, rho, delta = (float(value) for value in group)
    step = Step(0.0, 0.0, 1.0, 0.0, alpha, rho, delta, ridge, 0.0, math.inf, False)
    out = np.zeros((5, FIELDS))
    shifts(z, step, alpha, e, 0.0, np.zeros(5), np.empty((0, 9)), True, out)
    return out


@kernel(error_model="numpy")
def scaled_label(step: Step, e: Any, sharp: Any) -> float:
    r"""For labels with the logit $y = \gamma\tilde h$: fills `sharp` of `shifts`, returns its `gain`."""
    sharp[:] = 0.0
    if math.isinf(step.sharpness):
        return 0.0
    mean, tilt = step.mu * step.omega, math.sqrt(step.delta) * step.omega
    sharp[0] = mean * e[SY] + step.bias * e[Y] + tilt * e[GY]
    sharp[1] = mean * e[Y] + step.bias * e[SY] + tilt * e[SGY]
    sharp[2] = mean * e[SGY] + step.bias * e[GY] + tilt * e[GGY]
    sharp[3] = 2.0 * (mean * e[SFY] + step.bias * e[FY] + tilt * e[GFY])
    sharp[4] = mean * e[SKY] + step.bias * e[KY] + tilt * e[GKY]
    return float(step.sharpness)


@kernel(error_model="numpy")
def _edges(z: Any, step: Step, exponent: float, log_share: float, edges: Any) -> int:
    """The jumps of a logistic step: both thresholds for both classes; how many, -1 if a rule is too long.

    Without threshold and with soft labels the two sides of the plane meet without a jump, and what
    is left is the derivative in a threshold that opens a gap there.
    """
    node = np.empty((4, 1))
    found = np.empty(COUNT)
    root = math.sqrt(step.delta)
    width = root * step.omega
    base = reference_sharpness(step.sharpness)
    _, off = scales(z, step.nu2)
    slide = z[A] - base * step.omega
    lift = z[BIAS] - base * step.bias
    chi = math.exp(z[LOG_CHI])
    together = step.threshold == 0.0 and not math.isinf(step.sharpness)
    count = 0
    for side in (1.0, -1.0):
        if together and side < 0.0:
            break
        for s in (1.0, -1.0):
            share = step.rho if s > 0.0 else 1.0 - step.rho
            g = (side * step.threshold * step.omega - s * step.mu * step.omega - step.bias) / width
            node[0, 0] = s
            node[1, 0] = g
            node[2, 0] = 1.0
            node[3, 0] = side * max(step.threshold * step.omega, 1e-300)
            points = logistic_moments(
                node, 1, base, step.sharpness, step.mu * slide + step.nu2 * z[ETA], root * slide,
                lift, root * off, chi * step.delta, exponent, False, False, found,
            )  # fmt: skip
            if points < 0:
                return -1
            edge = edges[count]
            edge[:] = 0.0
            edge[E_CLASS] = s
            edge[E_PLACE] = g
            edge[E_WEIGHT] = share * math.exp(-0.5 * g * g - log_share) / math.sqrt(2.0 * math.pi)
            edge[E_F] = -side * found[F]
            edge[E_FF] = -side * found[FF]
            edge[E_K] = -side * found[K]
            edge[E_OMEGA] = side * step.threshold
            edge[E_THRESHOLD] = side * step.omega
            count += 1
    if together:
        for i in range(2):
            edges[2 + i, :] = edges[i]
            for j in (E_F, E_FF, E_K, E_THRESHOLD):
                edges[2 + i, j] = -edges[i, j]
        count = 4
    return count


@kernel(error_model="numpy")
def logistic_derivatives(
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
    last: int,
    jacobians: Any,
    moves: Any,
) -> int:
    r"""$\partial F/\partial z$ and $\partial F/\partial\theta$ of steps 1..`last`, in place; the step that has no rule, or 0."""
    work = Workspace(
        np.empty((4, CAPACITY)), np.zeros((1, COUNT)), np.empty(5), np.empty((5, 5)), np.empty(5)
    )
    edges = np.empty((4, 9))
    sharp = np.empty(5)
    for t in range(1, last + 1):
        i = t - 1
        old = states[i]
        step = Step(
            old[0], old[1], old[2], old[3], alpha[i], rho[i], delta[i],
            ridges[i], thresholds[i], sharpnesses[i], fixed_bias,
        )  # fmt: skip
        z = unknowns[t]
        small = step.ridge * math.exp(z[LOG_CHI]) < SMALL_STEP
        large = math.sqrt(delta[i]) * old[0] > LARGE_LOGITS
        rule = exponent + REFINED if small or large else exponent
        points, log_share = evaluate(z, step, 0.0, rule, False, True, work)
        if points > 0 and small:
            # the change of the weights is small against them: its digits are recovered by a Newton step
            size = newton_step(
                z, work.residual, work.jacobian, step.nu2, 0.0, 0.0, math.sqrt(delta[i]), work.move
            )
            if size < math.inf:
                for j in range(5):
                    z[j] += work.move[j]
                points, log_share = evaluate(z, step, 0.0, rule, False, True, work)
        count = _edges(z, step, rule, log_share, edges)
        if points <= 0 or count < 0:
            return t
        e = work.moments[0]
        gain = scaled_label(step, e, sharp)
        share = step.alpha * math.exp(log_share)
        shifts(z, step, share, e, gain, sharp, edges[:count], False, moves[t])
        jacobians[t] = work.jacobian
    return 0


@kernel(error_model="numpy")
def pull_back(
    states: Any,
    unknowns: Any,
    jacobians: Any,
    moves: Any,
    bars: Any,
    last: int,
    out: Any,
    conditions: Any,
) -> None:
    r"""The adjoint recursion: from $\partial L/\partial$row of each step to $dL/d\theta$ of each step.

    `bars` are the derivatives of L in the rows of `trajectory.STATE`; those in m, v and B are
    completed on the way down by what later steps make of them. `conditions` tells how errors of the
    averages are magnified, the Skeel condition number of each stage in the scales of its state.
    """
    pull = np.empty(5)
    adjoint = np.empty(5)
    for t in range(last, -1, -1):
        z = unknowns[t]
        bar = bars[t]
        omega, mu, nu2 = (0.0, 0.0, 1.0)
        if t > 0:
            omega, mu, nu2 = states[t - 1, 0], states[t - 1, 1], states[t - 1, 2]
        a, eta = z[A], z[ETA]
        r, norm = scales(z, nu2)
        chi = math.exp(z[LOG_CHI])
        off = a - mu * eta
        noise = (r / chi) ** 2
        pull[A] = bar[0] * mu + 2.0 * bar[1] * nu2 * off + bar[4] * omega
        pull[ETA] = bar[0] * nu2 - 2.0 * bar[1] * nu2 * off * mu + bar[7] / chi
        pull[BIAS] = bar[2]
        pull[LOG_R] = 2.0 * bar[1] * r * r + 2.0 * bar[6] * noise
        pull[LOG_CHI] = bar[3] * chi - bar[5] / chi - 2.0 * bar[6] * noise - bar[7] * eta / chi
        direct = out[t]
        direct[:] = 0.0
        direct[RIDGE] = -bar[5]
        if t > 0:
            spread = off / (chi * omega)
            pull[A] += bar[8] / (chi * omega)
            pull[ETA] -= bar[8] * mu / (chi * omega)
            pull[LOG_CHI] -= bar[8] * spread
            direct[OMEGA] = bar[4] * a - bar[8] * spread / omega
            direct[MU] = bar[0] * a - 2.0 * bar[1] * nu2 * off * eta - bar[8] * eta / (chi * omega)
            direct[NU2] = bar[0] * eta + bar[1] * off * off
        size = math.hypot(a, norm)
        inverse = np.linalg.inv(jacobians[t])
        conditions[t] = _condition(jacobians[t], inverse, size, abs(z[BIAS]) + size)
        for i in range(5):
            adjoint[i] = 0.0
            for j in range(5):
                adjoint[i] += inverse[j, i] * pull[j]
        for j in range(FIELDS):
            for i in range(5):
                direct[j] -= adjoint[i] * moves[t, i, j]
        if t > 0:
            below = bars[t - 1]
            below[0] += direct[OMEGA] * mu + (direct[MU] - 2.0 * direct[NU2] * mu) * nu2 / omega
            below[1] += 0.5 * direct[OMEGA] / omega
            below[1] += (direct[NU2] * mu * mu - 0.5 * direct[MU] * mu) / (omega * omega)
            below[2] += direct[OLD_BIAS]


@kernel(error_model="numpy")
def _condition(jacobian: Any, inverse: Any, size: float, bias: float) -> float:
    """Largest relative change of an unknown when every entry of the Jacobian changes by one part."""
    scale = (size, size, bias, 1.0, 1.0)
    worst = 0.0
    for i in range(5):
        total = 0.0
        for k in range(5):
            row = 0.0
            for j in range(5):
                row += abs(jacobian[k, j]) * scale[j]
            total += abs(inverse[i, k]) * row
        worst = max(worst, total / scale[i])
    return worst
