r"""The map from conjugates to the law of the weights and the logit fields, for covariances that are
diagonal in common coordinates (*modes*).

The new weights are $\beta = G(\hat m\mu + \sum_k \hat R_k\Sigma_k\beta' + \zeta)$ with $G =
(\lambda + \sum_k\hat Q_k\Sigma_k)^{-1}$ and $\zeta \sim N(0, \sum_k\hat\chi_k\Sigma_k/N)$. The
weight of mode i has the mean $b_i$ and the variance $V_i$; group k of samples has the variance
$s_{ki}$ in it. The unknowns of a step are $\hat m$, $B - \gamma_0 B'$, $T_k = \gamma_0\hat Q_k -
\hat R_k$, $\ln\hat Q_k$, $\ln\hat\chi_k$. To avoid cancellation, every mode computes the *change*
$\beta - a\beta'$ from a multiple of the old weights, with the *anchor* $a = \gamma_0$, or 0 if
little of the old weights is left:

    S_i = \sum_k \hat Q_k s_{ki}        \tau_i = \sum_k T_k s_{ki}        g_i = 1/(\lambda + S_i)
    \delta_i = g_i(\gamma_0 S_i - \tau_i) - a
    d_i = g_i \hat m \mu_i + \delta_i b'_i
    m - a m' = \sum_i \mu_i d_i
    \psi_k - a = \sum_i s_{ki}(b'_i d_i + \delta_i V'_i)/q'_k
    c_k = \sum_i s_{ki} g_i/N
    noise_k^2 = \sum_i s_{ki}[(d_i - (\psi_k - a) b'_i)^2 + (\delta_i - (\psi_k - a))^2 V'_i]
                + \sum_r \hat\chi_r \sum_i s_{ki} s_{ri} g_i^2/N

Here $\psi_k = R_k/q'_k$. A mode that stands for several features counts once for each of them in
$c_k$, in the last sum, and wherever $V_i$ enters. Quantities that may be small are sums of
non-negative terms, never differences of large numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...runtime.kernels import kernel

HAT_M, BIAS, FIRST = 0, 1, 2
"""Positions of the unknowns; from `FIRST` on: T of each group, ln Q of each, ln chi of each."""


class Noise(NamedTuple):
    r"""Clusters in the coordinates of the modes.

    Attributes:
        mean: $\mu_i$; with a leading axis if several clusters are stacked.
        variances: $s_{ki}$, likewise.
        copies: number of features that each mode stands for.
        features: N.
        room: buffer for four numbers per mode.
    """

    mean: Any
    variances: Any
    copies: Any
    features: float
    room: Any


class Weights(NamedTuple):
    r"""The law of the weights: mean $b_i$ and variance $V_i$ of every mode."""

    mean: Any
    variance: Any


@kernel(allocates=False)
def projections(weights: Weights, noise: Noise, out: Any) -> None:
    r"""Fill `out` with $m = \mu\cdot b$ and, for every group, $q_k = \sum s_{ki}(b_i^2 + V_i)$."""
    groups = noise.variances.shape[0]
    for k in range(1 + groups):
        out[k] = 0.0
    for i in range(noise.mean.shape[0]):
        b = weights.mean[i]
        square = b * b + noise.copies[i] * weights.variance[i]
        out[0] += noise.mean[i] * b
        for k in range(groups):
            out[1 + k] += noise.variances[k, i] * square


@kernel(allocates=False, fastmath={"reassoc", "nsz", "contract"})
def mode_sums(
    x: Any, ridge: float, gamma: float, anchor: float, noise: Noise, old: Weights, out: Any
) -> None:
    r"""Fill `out` with the fields and their derivatives in the unknowns.

    Row 0 is m - a m'; then come the rows of $\psi_k - a$, noise_k and $c_k$ of all groups. Column 0
    has the values, column 1 + j the derivatives in unknown j. Loops over the modes are innermost
    and sums may be reordered, so that the compiler can vectorise them.
    """
    groups, size = noise.variances.shape
    t0, q0, x0 = 1 + FIRST, 1 + FIRST + groups, 1 + FIRST + 2 * groups
    hat_m, left_over = x[HAT_M], gamma - anchor
    gain, delta, change, fresh = noise.room[0], noise.room[1], noise.room[2], noise.room[3]
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
    for i in range(size):
        gain[i] = delta[i] = fresh[i] = 0.0
    for k in range(groups):
        stiff, pull, chi = math.exp(x[FIRST + groups + k]), x[FIRST + k], math.exp(x[x0 - 1 + k])
        for i in range(size):
            s = noise.variances[k, i]
            gain[i] += stiff * s
            # adds (gamma - a) S - tau; with a = gamma there is no difference of large terms
            delta[i] += (left_over * stiff - pull) * s
            fresh[i] += chi * s
    for i in range(size):
        g = 1.0 / (ridge + gain[i])
        gain[i] = g
        delta[i] = g * (delta[i] - anchor * ridge)
        change[i] = g * hat_m * noise.mean[i] + delta[i] * old.mean[i]
        fresh[i] *= noise.copies[i] * g * g / noise.features
        out[0, 0] += noise.mean[i] * change[i]
        out[0, 1] += noise.mean[i] ** 2 * g
    for k in range(groups):
        old_q = psi = psi_by_m = c = 0.0
        for i in range(size):
            s, b, v = noise.variances[k, i], old.mean[i], noise.copies[i] * old.variance[i]
            old_q += s * (b * b + v)
            psi += s * (b * change[i] + delta[i] * v)
            psi_by_m += s * b * gain[i] * noise.mean[i]
            c += noise.copies[i] * s * gain[i]
        share = 1.0 / old_q if old_q > 0.0 else 1.0
        psi *= share
        wide = wide_by_m = 0.0
        for i in range(size):
            s, b, d = noise.variances[k, i], old.mean[i], delta[i] - psi
            left, rest = change[i] - psi * b, d * noise.copies[i] * old.variance[i]
            wide += s * (left * left + d * rest + fresh[i])
            wide_by_m += s * left * gain[i] * noise.mean[i]
        root = math.sqrt(wide)
        psi_row, row, c_row = 1 + k, 1 + groups + k, 1 + 2 * groups + k
        out[psi_row, 0], out[psi_row, 1] = psi, share * psi_by_m
        out[row, 0], out[row, 1], out[c_row, 0] = root, wide_by_m / root, c / noise.features
        for r in range(groups):
            stiff, chi = math.exp(x[FIRST + groups + r]), math.exp(x[x0 - 1 + r])
            m_by_t = m_by_q = psi_by_t = psi_by_q = c_by_q = 0.0
            wide_by_t = wide_by_q = wide_by_x = 0.0
            for i in range(size):
                s, mu, b, copies = (
                    noise.variances[k, i],
                    noise.mean[i],
                    old.mean[i],
                    noise.copies[i],
                )
                v, g = copies * old.variance[i], gain[i]
                sg = noise.variances[r, i] * g
                sq = sg * stiff
                by_q = (left_over - delta[i]) * sq  # derivative of delta in ln Q
                move = by_q * b - g * hat_m * mu * sq  # derivative of the change
                left, rest = change[i] - psi * b, (delta[i] - psi) * v
                m_by_t -= mu * sg * b
                m_by_q += mu * move
                psi_by_t -= s * sg * (b * b + v)
                psi_by_q += s * (b * move + v * by_q)
                c_by_q -= copies * s * g * sq
                wide_by_t -= s * sg * (left * b + rest)
                wide_by_q += s * (left * move + rest * by_q - fresh[i] * sq)
                wide_by_x += copies * s * sg * g
            out[0, t0 + r], out[0, q0 + r] = m_by_t, m_by_q
            out[psi_row, t0 + r], out[psi_row, q0 + r] = share * psi_by_t, share * psi_by_q
            out[row, t0 + r], out[row, q0 + r] = wide_by_t / root, wide_by_q / root
            out[row, x0 + r] = 0.5 * chi * wide_by_x / (noise.features * root)
            out[c_row, q0 + r] = c_by_q / noise.features


@kernel(allocates=False)
def advance(
    x: Any, ridge: float, gamma: float, noise: Noise, old: Weights, new: Weights, out: Any
) -> None:
    r"""Fill `new` with the law of the new weights, `out` with $\beta\cdot\beta'$ and
    $\mathrm{tr}\,G/N$.
    """
    groups, size = noise.variances.shape
    total, push, fresh = noise.room[0], noise.room[1], noise.room[2]
    out[0] = out[1] = 0.0
    for i in range(size):
        total[i], push[i], fresh[i] = ridge, 0.0, 0.0
    for k in range(groups):
        stiff, chi = math.exp(x[FIRST + groups + k]), math.exp(x[FIRST + 2 * groups + k])
        kept = gamma * stiff - x[FIRST + k]
        for i in range(size):
            s = noise.variances[k, i]
            total[i] += stiff * s
            push[i] += kept * s
            fresh[i] += chi * s
    for i in range(size):
        g, copies = 1.0 / total[i], noise.copies[i]
        keep = g * push[i]
        new.mean[i] = g * x[HAT_M] * noise.mean[i] + keep * old.mean[i]
        new.variance[i] = keep * keep * old.variance[i] + g * g * fresh[i] / noise.features
        out[0] += new.mean[i] * old.mean[i] + copies * keep * old.variance[i]
        out[1] += copies * g / noise.features
