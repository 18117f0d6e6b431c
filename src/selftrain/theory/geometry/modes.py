r"""The linear half of a step where covariances are diagonal: from the conjugates to what the logits
need.

The new weights are $\beta = G(\hat m\mu + \sum_k \hat R_k\Sigma_k\beta' + \zeta)$ with $G =
(\lambda + \sum_k\hat Q_k\Sigma_k)^{-1}$ and $\zeta \sim N(0, \sum_k\hat\chi_k\Sigma_k/N)$. Mode i
carries the mean $b_i$ and the variance $V_i$ of its weight. The unknowns are $\hat m$, $B -
\gamma_0 B'$, $T_k = \gamma_0\hat Q_k - \hat R_k$, $\ln\hat Q_k$, $\ln\hat\chi_k$; with an anchor a
($\gamma_0$, or 0 where little of the old weights is left) every mode forms the *change* $\beta -
a\beta'$ first:

    S_i = \sum_k \hat Q_k s_{ki}        \tau_i = \sum_k T_k s_{ki}        g_i = 1/(\lambda + S_i)
    \delta_i = g_i(\gamma_0 S_i - \tau_i) - a
    d_i = g_i \hat m \mu_i + \delta_i b'_i
    m - a m' = \sum_i \mu_i d_i
    \psi_k - a = \sum_i s_{ki}(b'_i d_i + \delta_i V'_i)/q'_k
    c_k = \sum_i s_{ki} g_i/N
    noise_k^2 = \sum_i s_{ki}[(d_i - (\psi_k - a) b'_i)^2 + (\delta_i - (\psi_k - a))^2 V'_i]
                + \sum_r \hat\chi_r \sum_i s_{ki} s_{ri} g_i^2/N

($\psi_k = R_k/q'_k$; a mode of several features counts once for each wherever $V_i$ enters, in
$c_k$
and in the last sum). All sums run over non-negative terms where a small number is wanted, so
none is
a difference of large ones.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel

HAT_M, BIAS, FIRST = 0, 1, 2
"""Positions of the unknowns; from `FIRST` on T, ln Q and ln chi of each group."""


class Noise(NamedTuple):
    r"""A set of points in the coordinates of the modes: $\mu_i$, $s_{ki}$, features per mode, N."""

    mean: Any
    variances: Any
    copies: Any
    features: float


class Weights(NamedTuple):
    r"""The law of the weights: mean $b_i$ and variance $V_i$ of every mode."""

    mean: Any
    variance: Any


@kernel(error_model="numpy")
def projections(weights: Weights, noise: Noise, out: Any) -> None:
    r"""$m = \mu\cdot b$, then $q_k = \sum s_{ki}(b_i^2 + V_i)$ of every group, for a set of
    points.
    """
    groups = noise.variances.shape[0]
    for k in range(1 + groups):
        out[k] = 0.0
    for i in range(noise.mean.shape[0]):
        b = weights.mean[i]
        square = b * b + noise.copies[i] * weights.variance[i]
        out[0] += noise.mean[i] * b
        for k in range(groups):
            out[1 + k] += noise.variances[k, i] * square


@kernel(error_model="numpy")
def mode_sums(
    x: Any, ridge: float, gamma: float, anchor: float, noise: Noise, old: Weights, out: Any
) -> None:
    r"""Fields and their derivatives in the unknowns; row 0: m - a m', then $\psi_k - a$, noise_k,
    $c_k$.

    Column 0 of `out` holds the values, column 1 + j the derivatives in unknown j.
    """
    groups, size = noise.variances.shape
    if groups == 1:
        _sums_of_one(x, ridge, gamma, anchor, noise, old, out)
        return
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    hat_m = x[HAT_M]
    stiff, chi = np.empty(groups), np.empty(groups)
    for k in range(groups):
        stiff[k], chi[k] = math.exp(x[q0 + k]), math.exp(x[x0 + k])
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
    gain = np.empty(size)
    delta = np.empty(size)
    change = np.empty(size)
    old_q = np.zeros(groups)
    for i in range(size):
        total = 0.0
        pull = 0.0
        for k in range(groups):
            total += stiff[k] * noise.variances[k, i]
            pull += x[t0 + k] * noise.variances[k, i]
        g = 1.0 / (ridge + total)
        # gamma S - tau - a / g, without forming the difference when a is gamma
        top = (gamma - anchor) * total - anchor * ridge - pull
        d = g * top
        b, v, mu = old.mean[i], noise.copies[i] * old.variance[i], noise.mean[i]
        gain[i] = g
        delta[i] = d
        change[i] = g * hat_m * mu + d * b
        out[0, 0] += mu * change[i]
        out[0, 1] += mu * mu * g
        for k in range(groups):
            s = noise.variances[k, i]
            old_q[k] += s * (b * b + v)
            out[1 + k, 0] += s * (b * change[i] + d * v)
            out[1 + k, 1] += s * b * g * mu
            out[1 + 2 * groups + k, 0] += noise.copies[i] * s * g
            for r in range(groups):
                sr = noise.variances[r, i] * g
                by_q = (gamma - anchor - d) * sr * stiff[r]  # d delta
                move = by_q * b - g * hat_m * mu * sr * stiff[r]  # d change
                if k == 0:
                    out[0, 1 + t0 + r] -= mu * sr * b
                    out[0, 1 + q0 + r] += mu * move
                out[1 + k, 1 + t0 + r] -= s * sr * (b * b + v)
                out[1 + k, 1 + q0 + r] += s * (b * move + v * by_q)
    for k in range(groups):
        if old_q[k] > 0.0:
            for j in range(x.shape[0] + 1):
                out[1 + k, j] /= old_q[k]
    for i in range(size):
        g, d = gain[i], delta[i]
        b, v, mu = old.mean[i], noise.copies[i] * old.variance[i], noise.mean[i]
        for k in range(groups):
            row = 1 + groups + k
            s = noise.variances[k, i]
            psi = out[1 + k, 0]
            left, rest = change[i] - psi * b, (d - psi) * v
            out[row, 0] += s * (left * left + (d - psi) * rest)
            out[row, 1] += 2.0 * s * left * g * mu
            for r in range(groups):
                sr = noise.variances[r, i] * g
                by_q = (gamma - anchor - d) * sr * stiff[r]
                move = by_q * b - g * hat_m * mu * sr * stiff[r]
                out[row, 1 + t0 + r] -= 2.0 * s * sr * (left * b + rest)
                out[row, 1 + q0 + r] += 2.0 * s * (left * move + rest * by_q)
                weight = noise.copies[i] * s * sr * g / noise.features
                push = chi[r] * weight
                out[row, 0] += push
                out[row, 1 + x0 + r] += push
                out[1 + 2 * groups + k, 1 + q0 + r] -= weight * stiff[r] * noise.features
                for j in range(groups):
                    out[row, 1 + q0 + j] -= 2.0 * push * noise.variances[j, i] * g * stiff[j]
    for k in range(groups):
        row = 1 + groups + k
        root = math.sqrt(out[row, 0])
        for j in range(1, x.shape[0] + 1):
            out[row, j] *= 0.5 / root
        out[row, 0] = root
        row += groups
        for j in range(x.shape[0] + 1):
            out[row, j] /= noise.features


@kernel(error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _sums_of_one(
    x: Any, ridge: float, gamma: float, anchor: float, noise: Noise, old: Weights, out: Any
) -> None:
    """`mode_sums` for one covariance: sums in registers and in any order, so that several modes go
    at a time.
    """
    hat_m, pull, stiff = x[HAT_M], x[FIRST], math.exp(x[FIRST + 1])
    push, left_over = math.exp(x[FIRST + 2]) / noise.features, gamma - anchor
    size = noise.mean.shape[0]
    variances = noise.variances[0]
    room = np.empty((3, size))
    gain, delta, change = room[0], room[1], room[2]
    m = m_by_m = m_by_t = m_by_q = 0.0
    psi = psi_by_m = psi_by_t = psi_by_q = old_q = 0.0
    c = c_by_q = fresh = fresh_by_q = 0.0
    for i in range(size):
        s, mu, b, copies = variances[i], noise.mean[i], old.mean[i], noise.copies[i]
        v = copies * old.variance[i]
        g = 1.0 / (ridge + stiff * s)
        d = g * (left_over * stiff * s - anchor * ridge - pull * s)
        sg, by_m = s * g, g * mu
        sq = stiff * sg
        by_q = (left_over - d) * sq
        move = by_q * b - hat_m * by_m * sq
        gain[i], delta[i], change[i] = g, d, hat_m * by_m + d * b
        square = b * b + v
        m += mu * change[i]
        m_by_m += mu * by_m
        m_by_t -= mu * sg * b
        m_by_q += mu * move
        old_q += s * square
        psi += s * (b * change[i] + d * v)
        psi_by_m += s * b * by_m
        psi_by_t -= s * sg * square
        psi_by_q += s * (b * move + v * by_q)
        c += copies * sg
        c_by_q -= copies * sg * sq
        fresh += copies * sg * sg
        fresh_by_q -= 2.0 * copies * sg * sg * sq
    share = 1.0 / old_q if old_q > 0.0 else 1.0
    psi *= share
    wide = wide_by_m = wide_by_t = wide_by_q = 0.0
    for i in range(size):
        s, mu, b = variances[i], noise.mean[i], old.mean[i]
        g, d = gain[i], delta[i]
        sg, by_m = s * g, g * mu
        by_q = (left_over - d) * stiff * sg
        move = by_q * b - hat_m * by_m * stiff * sg
        left, rest = change[i] - psi * b, (d - psi) * noise.copies[i] * old.variance[i]
        wide += s * (left * left + (d - psi) * rest)
        wide_by_m += s * left * by_m
        wide_by_t -= s * sg * (left * b + rest)
        wide_by_q += s * (left * move + rest * by_q)
    root = math.sqrt(wide + push * fresh)
    for i in range(4):
        for j in range(6):
            out[i, j] = 0.0
    t, q, chi = 1 + FIRST, 2 + FIRST, 3 + FIRST
    out[0, 0], out[0, 1], out[0, t], out[0, q] = m, m_by_m, m_by_t, m_by_q
    out[1, 0], out[1, 1] = psi, share * psi_by_m
    out[1, t], out[1, q] = share * psi_by_t, share * psi_by_q
    out[2, 0], out[2, 1], out[2, t] = root, wide_by_m / root, wide_by_t / root
    out[2, q] = (wide_by_q + 0.5 * push * fresh_by_q) / root
    out[2, chi] = 0.5 * push * fresh / root
    out[3, 0], out[3, q] = c / noise.features, c_by_q / noise.features


@kernel(error_model="numpy")
def advance(
    x: Any, ridge: float, gamma: float, noise: Noise, old: Weights, new: Weights, out: Any
) -> None:
    r"""The new law of the weights; `out`: $|\beta|^2$, its part off the mean, $\beta\cdot\beta'$,
    $\mathrm{tr}\,G/N$.
    """
    groups, size = noise.variances.shape
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    for k in range(4):
        out[k] = 0.0
    overlap = 0.0
    length = 0.0
    stiff, kept, chi = np.empty(groups), np.empty(groups), np.empty(groups)
    for k in range(groups):
        stiff[k], chi[k] = math.exp(x[q0 + k]), math.exp(x[x0 + k])
        kept[k] = gamma * stiff[k] - x[t0 + k]
    for i in range(size):
        total = 0.0
        push = 0.0
        spread = 0.0
        for k in range(groups):
            s = noise.variances[k, i]
            total += stiff[k] * s
            push += kept[k] * s
            spread += chi[k] * s
        g = 1.0 / (ridge + total)
        keep = g * push
        new.mean[i] = g * x[HAT_M] * noise.mean[i] + keep * old.mean[i]
        new.variance[i] = keep * keep * old.variance[i] + g * g * spread / noise.features
        out[0] += new.mean[i] ** 2 + noise.copies[i] * new.variance[i]
        out[2] += new.mean[i] * old.mean[i] + noise.copies[i] * keep * old.variance[i]
        out[3] += noise.copies[i] * g / noise.features
        overlap += noise.mean[i] * new.mean[i]
        length += noise.mean[i] ** 2
    for i in range(size):
        off = new.mean[i] - overlap / length * noise.mean[i]
        out[1] += off * off + noise.copies[i] * new.variance[i]
