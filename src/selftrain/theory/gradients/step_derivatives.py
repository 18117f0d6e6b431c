r"""How the equations of one step move with what the step is given.

At a solved step the equations $F(z; \theta) = 0$ define z as a function of $\theta$, the fields of
`step.given.Given`: the old state ($\omega, \mu, \nu^2, B'$), the batch ($\alpha, \rho, \Delta$) and
the recipe ($\lambda, \Gamma, \gamma$). Here is $\partial F/\partial\theta$, from the averages that
Newton's method takes anyway and thirteen more:

- the new logit h moves with $\mu, \nu^2$ and $\Delta$: averages of k, as in the Jacobian;
- the label moves with $\tilde h$ and $\gamma$: the averages `y`, `fy`, `ky`;
- the class weights move with $\rho$: $\partial E[X]/\partial\rho = E[X|s{=}1] - E[X|s{=}{-}1]$,
  from E[X] and E[sX];
- where the integrand jumps, at a threshold or at the sign of a hard label, the jump moves: with
  $g_e$ its place, $\varphi(g_e)\,(\bar X_- - \bar X_+)\,\partial g_e/\partial\theta$, where $\bar
  X$ is averaged over the new noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...runtime.kernels import kernel
from ..step.equations import BIAS, ETA, LOG_CHI, A, scales
from ..step.given import Given, given_first

OMEGA, MU, NU2, OLD_BIAS, ALPHA, RHO, DELTA, RIDGE, THRESHOLD, SHARPNESS = range(10)
"""Columns of the derivatives: the fields of `Given`, in their order."""

FIELDS = 10

E_CLASS, E_PLACE, E_WEIGHT, E_F, E_FF, E_K, E_OMEGA, E_THRESHOLD, E_SHARPNESS = range(9)
"""A jump: class s, place g, weight, fall of the averages of f, f^2 and k across it, and the
derivatives of the logit at which it sits.
"""


class LabelMoves(NamedTuple):
    r"""How the labels of a step move.

    Attributes:
        gain: $\partial y/\partial\tilde h$ of the logit y of the label.
        sharp: derivatives of E[f], E[s f], E[g f], E[f^2], E[k] through the label in the sharpness.
        edges: the jumps, one row each.
    """

    gain: float
    sharp: Any
    edges: Any


@kernel(error_model="numpy")
def shifts(z: Any, step: Given, share: float, e: Any, moves: LabelMoves, out: Any) -> None:
    r"""$\partial F/\partial\theta$, one row per equation, one column per field of `Given`.

    Arguments:
        z: the unknowns, with a and B themselves (not differences to the old state).
        share: $\alpha P_{sel}$.
        e: the averages over selected points, a record of `step.averages`.
        moves: how the labels move.
    """
    gain, sharp = moves.gain, moves.sharp
    mu, nu2, omega, delta = step.mu, step.nu2, step.omega, step.delta
    a, eta = z[A], z[ETA]
    root = math.sqrt(delta)
    _, norm = scales(z, nu2)
    chi = math.exp(z[LOG_CHI])
    by_class = (e.sk, e.k, e.sgk, 2.0 * e.sfk, e.sk3)
    by_old = (e.gk, e.sgk, e.ggk, 2.0 * e.gfk, e.gk3)
    by_new = (e.nk, e.snk, e.gnk, 2.0 * e.nfk, e.nk3)
    by_strength = (-e.fk, -e.sfk, -e.gfk, -2.0 * e.ffk, -e.fk3 - e.kk)
    label = (e.y, e.sy, e.gy, 2.0 * e.fy, e.ky)
    label_class = (e.sy, e.y, e.sgy, 2.0 * e.sfy, e.sky)
    label_old = (e.gy, e.sgy, e.ggy, 2.0 * e.gfy, e.gky)
    mean = (e.f, e.sf, e.gf, e.ff, e.k)
    signed = (e.sf, e.f, e.sgf, e.sff, e.sk)
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
    for edge in moves.edges:
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
    pull = share * e.sf
    push = share * e.gf
    firm = share * e.k
    stiffness = delta * firm + step.ridge
    for j in range(FIELDS):
        out[0, j] = share * (mu * d[1, j] + root * d[2, j])
        out[1, j] = share * (eta * delta * d[4, j] + d[1, j])
        out[2, j] = share * d[0, j]
        out[3, j] = d[3, j] / e.ff
        out[4, j] = delta * share * d[4, j] / stiffness
    out[0, MU] += pull
    out[0, ALPHA] = (mu * pull + root * push) / step.alpha
    out[1, ALPHA] = (eta * delta * firm + pull) / step.alpha
    out[2, ALPHA] = share * e.f / step.alpha
    out[3, ALPHA] = 1.0 / step.alpha
    out[4, ALPHA] = delta * firm / (stiffness * step.alpha)
    out[0, DELTA] += 0.5 * push / root
    out[1, DELTA] += eta * firm
    out[3, DELTA] += 1.0 / delta
    out[4, DELTA] += firm / stiffness
    out[0, RIDGE] = a
    out[1, RIDGE] = eta
    out[4, RIDGE] = 1.0 / stiffness
    if step.omega == 0.0:
        out[0, :] = 0.0
    if step.fixed_bias:
        out[2, :] = 0.0
        out[2, OLD_BIAS] = -1.0


def first_shifts(z: Any, group: Any, ridge: float, e: Any) -> Any:
    r"""The same for step 0, with labels that do not move; `group` is ($\alpha, \rho, \Delta$)."""
    step = given_first(group, ridge)
    out = np.zeros((5, FIELDS))
    label = LabelMoves(0.0, np.zeros(5), np.empty((0, 9)))
    shifts(z, step, step.alpha, e, label, out)
    return out


@kernel(error_model="numpy")
def scaled_label(step: Given, e: Any, sharp: Any) -> float:
    r"""For labels with the logit $y = \gamma\tilde h$: fills `sharp` of `shifts`, returns its
    `gain`.
    """
    sharp[:] = 0.0
    if math.isinf(step.sharpness):
        return 0.0
    mean, tilt = step.mu * step.omega, math.sqrt(step.delta) * step.omega
    sharp[0] = mean * e.sy + step.bias * e.y + tilt * e.gy
    sharp[1] = mean * e.y + step.bias * e.sy + tilt * e.sgy
    sharp[2] = mean * e.sgy + step.bias * e.gy + tilt * e.ggy
    sharp[3] = 2.0 * (mean * e.sfy + step.bias * e.fy + tilt * e.gfy)
    sharp[4] = mean * e.sky + step.bias * e.ky + tilt * e.gky
    return float(step.sharpness)


def drop_odd(jacobians: Array, moves: Array, balanced: NDArray[np.bool_]) -> None:
    r"""Set to zero, in place, the derivatives of `balanced` steps that the mirror (`step.symmetry`)
    makes zero.

    It turns around the equation of the bias, B, B' and $\rho - 1/2$, and leaves the rest alone. So
    the derivatives of one kind of equation in the other kind of number vanish.
    """
    equation = np.zeros(jacobians.shape[1], dtype=bool)
    equation[BIAS] = True
    field = np.zeros(FIELDS, dtype=bool)
    field[[OLD_BIAS, RHO]] = True
    for matrices, odd in ((jacobians, equation), (moves, field)):
        matrices[balanced[:, None, None] & (equation[:, None] != odd)] = 0.0
