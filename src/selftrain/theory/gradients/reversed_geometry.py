r"""The adjoint of the linear half of a step: by modes if covariances are diagonal in common
coordinates, else by matrices.

With the notation of `geometry.modes`, $\kappa_i = \delta_i + a$ the factor of the old weight in the
new one of mode i, and $N_i = g_i^2\sum_k\hat\chi_k s_{ki}/N$ the variance of its new noise,

    b_i = g_i \hat m \mu_i + \kappa_i b'_i          V_i = \kappa_i^2 V'_i + N_i
    m = \sum_i \mu_i b_i                            c_k = \sum_i s_{ki} g_i/N
    \psi_k = \sum_i s_{ki}(b'_i b_i + \kappa_i V'_i)/q'_k
    noise_k^2 = \sum_i s_{ki}[(b_i - \psi_k b'_i)^2 + (\kappa_i - \psi_k)^2 V'_i + N_i]

The noise is minimal in $\psi_k$, so its derivative in $\psi_k$ is zero, that in $b_i$ is
$2 s_{ki}(b_i - \psi_k b'_i)$, and so on. Differences like $\kappa_i - \psi_k$ are computed from the
*changes* $\delta_i$ and $\psi_k - a$, to avoid cancellation. A common factor of all covariances has
the effect of multiplying the conjugates; besides, it changes the units of the fields.

Covariances without common eigenvectors have matrices in place of numbers. With $K = D + a$ the map
from the old weights to the new ones (`geometry.matrices`), $Z = \sum_k\hat\chi_k\Sigma_k/N$ and
derivatives of L written with a bar,

    \beta = \hat m G \mu + K \beta' + \dots         V = K V' K^T + G Z G
    \bar K = 2 \bar V K V' + \bar b b'^T + \dots    \bar S = G \bar K (\gamma_0 - K^T) - G \bar G G

where $\bar G$ does not include the dependence of K on G.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel
from ..geometry.matrices import MatrixStep
from ..geometry.modes import FIRST, HAT_M, Noise, Weights
from .pulls import (
    BY_GROUP,
    FIELD_M,
    LIMIT,
    OLD_M,
    RIDGE,
    SCALE,
    Reversed,
    SolvedStep,
    StepNumbers,
)  # fmt: skip


@kernel(allocates=False)
def pull_modes(
    step: SolvedStep, at: StepNumbers, noise: Noise, old: Weights, pulls: Any, out: Reversed
) -> None:
    """Fill `out` with the derivatives in the unknowns and the old law, and `pulls` with those in
    the ridge and the scale, given those in the new law and the other entries of `pulls`.
    """
    x, fields, gamma, anchor = step.x, step.fields, at.gamma, at.anchor
    overlap, response = out.ends[0], out.ends[1]
    groups, size = noise.variances.shape
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    room = out.room
    for i in range(7):
        for k in range(groups):
            room[i, k] = 0.0
    stiff, chi, turn, wide, width, seen = room[0], room[1], room[2], room[3], room[4], room[5]
    roots, square = room[6], 0.0
    for k in range(groups):
        stiff[k], chi[k] = math.exp(x[q0 + k]), math.exp(x[x0 + k])
        wide[k] = 0.5 * pulls[BY_GROUP + groups + k] / fields[1 + groups + k, 0]
        width[k] = pulls[BY_GROUP + 2 * groups + k] / noise.features
    for i in range(size):
        b = old.mean[i]
        spread = b * b + noise.copies[i] * old.variance[i]
        square += spread
        for k in range(groups):
            seen[k] += noise.variances[k, i] * spread
    for k in range(groups):
        if seen[k] > 0.0:
            turn[k] = pulls[BY_GROUP + k] / seen[k]
            roots[k] = math.sqrt(seen[k])
            seen[k] = 0.5 * pulls[BY_GROUP + 3 * groups + k] / roots[k]
    norm = 0.5 * pulls[LIMIT] * at.limit / square if square > 0.0 else 0.0
    hat_m = x[HAT_M]
    out.x[:] = 0.0
    pulls[RIDGE] = 0.0
    for i in range(size):
        mu, copies, b, v = noise.mean[i], noise.copies[i], old.mean[i], old.variance[i]
        total = pull = push = fresh = fresh_pull = 0.0
        for k in range(groups):
            s = noise.variances[k, i]
            total += stiff[k] * s
            pull += x[t0 + k] * s
            fresh += chi[k] * s
            push += width[k] * s
            fresh_pull += wide[k] * s
        g = 1.0 / (at.ridge + total)
        delta = g * ((gamma - anchor) * total - anchor * at.ridge - pull)
        keep = delta + anchor
        change = g * hat_m * mu + delta * b
        by_mean = out.new_mean[i] + pulls[FIELD_M] * mu + overlap * b
        by_keep = 2.0 * out.new_variance[i] * keep * v + overlap * copies * v
        old_mean = by_mean * keep + overlap * (change + anchor * b) + pulls[OLD_M] * mu
        old_mean += 2.0 * norm * b
        old_variance = out.new_variance[i] * keep * keep + (overlap * keep + norm) * copies
        for k in range(groups):
            s = noise.variances[k, i]
            psi = fields[1 + k, 0]
            left, off = change - psi * b, delta - psi
            by_mean += s * (turn[k] * b + 2.0 * wide[k] * left)
            by_keep += s * copies * v * (turn[k] + 2.0 * wide[k] * off)
            old_mean += s * (
                turn[k] * (left + off * b) + 2.0 * (wide[k] * left * off + seen[k] * b)
            )
            old_variance += s * copies * (off * (turn[k] + wide[k] * off) + seen[k])
        by_fresh = g * g / noise.features * (out.new_variance[i] + copies * fresh_pull)
        # Derivative in g, without the dependence of keep = g (gamma S - tau) on it.
        by_gain = 2.0 * by_fresh * fresh / g + copies * (push + response / noise.features)
        by_gain += by_mean * hat_m * mu
        by_total = g * (by_keep + by_mean * b) * (gamma - anchor - delta) - by_gain * g * g
        by_pull = -g * (by_keep + by_mean * b)
        pulls[RIDGE] += by_pull * keep - by_gain * g * g
        out.x[HAT_M] += by_mean * g * mu
        for k in range(groups):
            s = noise.variances[k, i]
            out.x[t0 + k] += by_pull * s
            out.x[q0 + k] += by_total * s * stiff[k]
            out.x[x0 + k] += by_fresh * s * chi[k]
        out.mean[i] = old_mean
        out.variance[i] = old_variance
    pulls[SCALE] = scale_of(x, fields, roots, pulls, out.x)


@kernel(allocates=False)
def scale_of(x: Any, fields: Any, roots: Any, pulls: Any, by_unknowns: Any) -> float:
    """Return the derivative in the logarithm of a common factor of all covariances, from those in
    the unknowns.

    For the weights, the factor has the effect of multiplying the conjugates; it also scales the
    logits.
    """
    groups = (x.shape[0] - FIRST) // 3
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    total = 0.0
    for k in range(groups):
        total += x[t0 + k] * by_unknowns[t0 + k] + by_unknowns[q0 + k] + by_unknowns[x0 + k]
        total += 0.5 * pulls[BY_GROUP + groups + k] * fields[1 + groups + k, 0]
        total += pulls[BY_GROUP + 2 * groups + k] * fields[1 + 2 * groups + k, 0]
        total += 0.5 * pulls[BY_GROUP + 3 * groups + k] * roots[k]
    return total


def pull_matrices(
    step: SolvedStep, at: StepNumbers, linear: MatrixStep, pulls: Array, out: Reversed
) -> None:
    """Fill `out`, and the ridge and the scale in `pulls`, as `pull_modes` does, with matrices."""
    x, fields, (ridge, limit, gamma, anchor, *_) = step.x, step.fields, at
    overlap, response = out.ends
    k, n, (b, v) = linear.groups, linear.features, linear.old
    q0, x0 = FIRST + k, FIRST + 2 * k
    hat_t, hat_q, hat_chi = x[FIRST:q0], np.exp(x[q0:x0]), np.exp(x[x0:])
    inverse = linear.inverse(hat_q, ridge)
    assert inverse is not None
    identity = np.eye(n)
    top = sum(
        (gamma - anchor) * q * s - t * s
        for q, t, s in zip(hat_q, hat_t, linear.matrices, strict=True)
    )
    turn = inverse @ top - anchor * ridge * inverse
    keep = turn + anchor * identity
    change = x[HAT_M] * (inverse @ linear.mean) + turn @ b
    blur = sum(c * s for c, s in zip(hat_chi, linear.matrices, strict=True)) / n
    by_fresh = out.new_variance.copy()
    by_mean = out.new_mean + pulls[FIELD_M] * linear.mean + overlap * b
    by_keep = 2.0 * out.new_variance @ keep @ v + overlap * v
    by_gain = response / n * identity
    mean = keep.T @ by_mean + overlap * (change + anchor * b) + pulls[OLD_M] * linear.mean
    variance = keep.T @ out.new_variance @ keep + 0.5 * overlap * (keep + keep.T)
    square, roots = float(b @ b + np.trace(v)), np.zeros(k)
    if square > 0.0:
        norm = 0.5 * pulls[LIMIT] * limit / square
        mean += 2.0 * norm * b
        variance += norm * identity
    for i, s in enumerate(linear.matrices):
        by_psi, by_noise, by_c, by_root = pulls[BY_GROUP + i :: k][:4]
        wide = 0.5 * by_noise / fields[1 + k + i, 0]
        by_fresh += wide * s
        by_gain += by_c / n * s
        psi = fields[1 + i, 0]
        left, off, sb = change - psi * b, turn - psi * identity, s @ b
        seen = float(b @ sb + (s * v).sum())
        by_turn = 0.0
        if seen > 0.0:
            roots[i] = np.sqrt(seen)
            by_turn, held = by_psi / seen, 0.5 * by_root / roots[i]
            mean += 2.0 * held * sb
            variance += held * s
        spread = s @ off
        mean += by_turn * (s @ left + off.T @ sb) + 2.0 * wide * (off.T @ (s @ left))
        variance += 0.5 * by_turn * (spread + spread.T) + wide * off.T @ spread
        by_mean = by_mean + by_turn * sb + 2.0 * wide * (s @ left)
        by_keep = by_keep + (by_turn * s + 2.0 * wide * spread) @ v
    by_keep = by_keep + np.outer(by_mean, b)
    mixed = by_fresh @ inverse @ blur
    by_gain = by_gain + mixed + mixed.T + x[HAT_M] * np.outer(by_mean, linear.mean)
    by_inverse = inverse @ by_gain @ inverse
    by_pull = inverse @ by_keep
    by_total = by_pull @ ((gamma - anchor) * identity - turn.T) - by_inverse
    fresh = inverse @ by_fresh @ inverse / n
    out.x[:] = 0.0
    out.x[HAT_M] = by_mean @ inverse @ linear.mean
    for i, s in enumerate(linear.matrices):
        out.x[FIRST + i] = -(by_pull * s).sum()
        out.x[q0 + i] = hat_q[i] * (by_total * s).sum()
        out.x[x0 + i] = hat_chi[i] * (fresh * s).sum()
    out.mean[:], out.variance[:] = mean, variance
    pulls[RIDGE] = -(by_pull * keep).sum() - np.trace(by_inverse)
    pulls[SCALE] = scale_of(x, fields, roots, pulls, out.x)
