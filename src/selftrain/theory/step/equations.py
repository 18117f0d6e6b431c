r"""The five equations of one step, their Jacobian, and what a solution means.

The new weights are split along the old ones, along the part of the cluster direction orthogonal to
them, and the rest: with $\omega = \sqrt{q'}$, $\mu = m'/\omega$, $\nu^2 = v'/q'$ and $w \to (a,
\nu\eta, r)$,

    q = a^2 + \nu^2\eta^2 + r^2      m = \mu a + \nu^2\eta      v = \nu^2 (a - \mu\eta)^2 + r^2
    R = \omega a

so no difference of nearly equal numbers is ever formed. In these variables the self-consistent
equations (`eq:rs-saddle-q` to `eq:rs-saddle-b`, with $\hat R$ integrated by parts) read

    \lambda a = \mu \hat m - \sum \alpha\sqrt\Delta\, E[g_1 f]       (\hat Q + \lambda)\eta = \hat m
    0 = \sum\alpha\, E[f]
    r^2 = \chi^2 \hat\chi,  \hat\chi = \sum\alpha\Delta\, E[f^2]
    \chi(\hat Q + \lambda) = 1,  \hat Q = \sum\alpha\Delta\, E[k]

with $\hat m = -\sum\alpha\, E[s f]$: the stationarity conditions of a convex Gaussian min-max
objective, so the solution is unique. Unknowns: $z = (a - \gamma_0\omega,\ \eta,\ B - \gamma_0 B',\
\ln r,\ \ln\chi)$; $\gamma_0$ is the sharpness of the labels where a comparison with them is
meaningful, else 0. The sums run over groups of points with their own $(\alpha, \Delta)$: one batch
in a self-training step, possibly several in a supervised fit. Step 0 is the case $\mu = 0$, $\nu =
1$ without a.

Where each equation of the paper's definition went (step t, step 0):

    \hat Q     `eq:rs-saddle-hatq`, `eq:rs-saddle-qhat0`        sum_k in `assemble`
    \hat\chi   `eq:rs-saddle-hatchi`, `eq:rs-saddle-chihat0`    sum_ff in `assemble`
    \hat m     `eq:rs-saddle-hatm`, `eq:rs-saddle-mhat0`        -sum_sf in `assemble`
    \hat R     `eq:rs-saddle-hatr`                              by parts, in the first residual
    B          `eq:rs-saddle-b`, `eq:rs-saddle-b0`              the third residual
    q          `eq:rs-saddle-q`, `eq:rs-saddle-q0`              the split of w, the fourth residual
    \chi       `eq:rs-saddle-chi`, `eq:rs-saddle-chi0`          the fifth residual
    m          `eq:rs-saddle-m`, `eq:rs-saddle-m0`              the split of w above
    R          `eq:rs-saddle-r`                                 the split of w above
    \hat u     `eq:rs-saddle-uhat`, `eq:rs-saddle-uhat0`        `engines.logistic.logits.prox`
    h          `eq:rs-saddle-local-field1`, `eq:rs-saddle-local-field2`,
               `eq:rs-saddle-local-field0`
               (`eq: intuitive hu1`, `eq: intuitive hu2`)       `quadrature.outer`, `engines`
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..tolerances import LONGEST_LOG_STEP, LONGEST_STEP
from .given import Given

A, ETA, BIAS, LOG_R, LOG_CHI = range(5)
"""Positions of the unknowns."""


class Frame(NamedTuple):
    r"""What the equations of a step know besides the averages.

    Attributes:
        ridge: $\lambda$.
        omega, mu, nu2: the old state; 0, 0, 1 in step 0.
        offset: $\gamma_0\omega$.
        old_bias: $\gamma_0 B'$.
        field_scale: $\sqrt\Delta$, the scale of a logit per unit of weight.
        first: whether this is step 0, which has no a.
        fixed_bias: the value that a fixed bias has in these unknowns, NaN if the bias is trained.
    """

    ridge: float
    omega: float
    mu: float
    nu2: float
    offset: float
    old_bias: float
    field_scale: float
    first: bool
    fixed_bias: float


class Groups(NamedTuple):
    r"""Groups of points: $\alpha P_{sel}$ and $\Delta$ of each, and its averages
    (`averages.AVERAGES`).
    """

    alpha: Any
    delta: Any
    averages: Any


class System(NamedTuple):
    """Residuals and Jacobian of the five equations, and the Newton step."""

    residual: Any
    jacobian: Any
    step: Any


def blank_system() -> System:
    """Arrays for a system of five equations."""
    return System(np.empty(5), np.empty((5, 5)), np.empty(5))


@kernel(error_model="numpy")
def frame(given: Given, anchor: float) -> Frame:
    r"""The frame of a step; `anchor` is $\gamma_0$ of its unknowns."""
    fixed = (1.0 - anchor) * given.bias if given.fixed_bias else math.nan
    return Frame(
        given.ridge, given.omega, given.mu, given.nu2, anchor * given.omega, anchor * given.bias,
        math.sqrt(given.delta), given.omega == 0.0, fixed,
    )  # fmt: skip


def frame_first(ridge: float, field_scale: float) -> Frame:
    """The frame of step 0, or of a supervised fit to several groups of points."""
    return Frame(ridge, 0.0, 0.0, 1.0, 0.0, 0.0, field_scale, True, math.nan)


@kernel(error_model="numpy")
def scales(z: Any, nu2: float) -> tuple[float, float]:
    r"""r and the norm $\sqrt{\nu^2\eta^2 + r^2}$ of the weights off the old direction."""
    r = math.exp(z[LOG_R])
    return r, math.hypot(math.sqrt(nu2) * z[ETA], r)


@kernel(error_model="numpy")
def assemble(z: Any, groups: Groups, about: Frame, out: System) -> None:
    r"""Residuals and Jacobian at z from the averages of each group.

    The residual of r and of $\chi$ is that of the logarithms. In step 0 there is no a.
    """
    ridge, mu, nu2 = about.ridge, about.mu, about.nu2
    alpha, delta = groups.alpha, groups.delta
    residual, jacobian = out.residual, out.jacobian
    r, norm = scales(z, nu2)
    chi = math.exp(z[LOG_CHI])
    gain = np.zeros((5, 5))  # derivatives of E[f], E[s f], E[g1 f], E[f^2], E[k]
    sum_f = sum_sf = sum_gf = sum_ff = sum_k = 0.0
    d_f = np.zeros(5)
    d_sf = np.zeros(5)
    d_gf = np.zeros(5)
    d_ff = np.zeros(5)
    d_k = np.zeros(5)
    for i in range(alpha.shape[0]):
        e = groups.averages[i]
        root = math.sqrt(delta[i])
        c = chi * delta[i]
        along = root * nu2 * z[ETA] / norm
        across = root * r * r / norm
        gain[0, 0] = mu * e.sk + root * e.gk
        gain[0, 1] = nu2 * e.sk + along * e.nk
        gain[0, 2] = e.k
        gain[0, 3] = across * e.nk
        gain[0, 4] = -c * e.fk
        gain[1, 0] = mu * e.k + root * e.sgk
        gain[1, 1] = nu2 * e.k + along * e.snk
        gain[1, 2] = e.sk
        gain[1, 3] = across * e.snk
        gain[1, 4] = -c * e.sfk
        gain[2, 0] = mu * e.sgk + root * e.ggk
        gain[2, 1] = nu2 * e.sgk + along * e.gnk
        gain[2, 2] = e.gk
        gain[2, 3] = across * e.gnk
        gain[2, 4] = -c * e.gfk
        gain[3, 0] = 2.0 * (mu * e.sfk + root * e.gfk)
        gain[3, 1] = 2.0 * (nu2 * e.sfk + along * e.nfk)
        gain[3, 2] = 2.0 * e.fk
        gain[3, 3] = 2.0 * across * e.nfk
        gain[3, 4] = -2.0 * c * e.ffk
        gain[4, 0] = mu * e.sk3 + root * e.gk3
        gain[4, 1] = nu2 * e.sk3 + along * e.nk3
        gain[4, 2] = e.k3
        gain[4, 3] = across * e.nk3
        gain[4, 4] = -c * (e.fk3 + e.kk)
        al = alpha[i]
        sum_f += al * e.f
        sum_sf += al * e.sf
        sum_gf += al * root * e.gf
        sum_ff += al * delta[i] * e.ff
        sum_k += al * delta[i] * e.k
        for j in range(5):
            d_f[j] += al * gain[0, j]
            d_sf[j] += al * gain[1, j]
            d_gf[j] += al * root * gain[2, j]
            d_ff[j] += al * delta[i] * gain[3, j]
            d_k[j] += al * delta[i] * gain[4, j]
    stiffness = sum_k + ridge
    residual[0] = ridge * (about.offset + z[A]) + mu * sum_sf + sum_gf
    residual[1] = stiffness * z[ETA] + sum_sf
    residual[2] = sum_f
    residual[3] = math.log(sum_ff) + 2.0 * (z[LOG_CHI] - z[LOG_R])
    residual[4] = z[LOG_CHI] + math.log(stiffness)
    for j in range(5):
        jacobian[0, j] = mu * d_sf[j] + d_gf[j]
        jacobian[1, j] = z[ETA] * d_k[j] + d_sf[j]
        jacobian[2, j] = d_f[j]
        jacobian[3, j] = d_ff[j] / sum_ff
        jacobian[4, j] = d_k[j] / stiffness
    jacobian[0, A] += ridge
    jacobian[1, ETA] += stiffness
    jacobian[3, LOG_CHI] += 2.0
    jacobian[3, LOG_R] -= 2.0
    jacobian[4, LOG_CHI] += 1.0
    if about.first:
        residual[0] = 0.0
        jacobian[0, :] = 0.0
        jacobian[:, A] = 0.0
        jacobian[0, A] = 1.0
    if not math.isnan(about.fixed_bias):
        residual[2] = z[BIAS] - about.fixed_bias
        jacobian[2, :] = 0.0
        jacobian[2, BIAS] = 1.0


@kernel(error_model="numpy")
def solve_linear(matrix: Any, vector: Any, out: Any) -> bool:
    """Gaussian elimination with row scaling and partial pivoting; False if singular or not
    finite.
    """
    n = vector.shape[0]
    m = matrix.copy()
    for i in range(n):
        out[i] = vector[i]
        top = 0.0
        for j in range(n):
            top = max(top, abs(m[i, j]))
        if not (0.0 < top < math.inf):
            return False
        for j in range(n):
            m[i, j] /= top
        out[i] /= top
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(m[i, k]) > abs(m[best, k]):
                best = i
        if not abs(m[best, k]) > 0.0:
            return False
        if best != k:
            for j in range(n):
                m[k, j], m[best, j] = m[best, j], m[k, j]
            out[k], out[best] = out[best], out[k]
        for i in range(k + 1, n):
            factor = m[i, k] / m[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    m[i, j] -= factor * m[k, j]
                out[i] -= factor * out[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            out[k] -= m[k, j] * out[j]
        out[k] /= m[k, k]
        if not abs(out[k]) < math.inf:
            return False
    return True


@kernel(error_model="numpy")
def newton_step(z: Any, system: System, about: Frame) -> float:
    r"""The Newton step, left in `system.step`, and its size relative to the state; infinite if
    there is none.

    The bias counts relative to itself and the logits.
    """
    step = system.step
    if not solve_linear(system.jacobian, system.residual, step):
        return math.inf
    for j in range(5):
        step[j] = -step[j]
    return step_size(z, step, about)


@kernel(error_model="numpy")
def step_size(z: Any, step: Any, about: Frame) -> float:
    """Size of a change of the unknowns relative to the state at z."""
    _, off = scales(z, about.nu2)
    norm = math.hypot(about.offset + z[A], off)
    size = max(abs(step[A]), math.sqrt(about.nu2) * abs(step[ETA])) / norm
    size = max(size, abs(step[ETA]) / (abs(z[ETA]) + norm))
    logits = abs(about.old_bias + z[BIAS]) + about.field_scale * norm
    size = max(size, abs(step[BIAS]) / logits)
    size = max(size, abs(step[LOG_R]), abs(step[LOG_CHI]))
    return float(size)


@kernel(error_model="numpy")
def damping(z: Any, step: Any, about: Frame) -> float:
    """The largest factor in (0, 1] that keeps the step inside a plausible range."""
    factor = 1.0
    for j in (LOG_R, LOG_CHI):
        if abs(step[j]) > LONGEST_LOG_STEP:
            factor = min(factor, LONGEST_LOG_STEP / abs(step[j]))
    _, off = scales(z, about.nu2)
    norm = math.hypot(about.offset + z[A], off) + about.omega
    largest = max(abs(step[A]), math.sqrt(about.nu2) * abs(step[ETA]))
    if largest > LONGEST_STEP * norm:
        factor = min(factor, LONGEST_STEP * norm / largest)
    return factor
