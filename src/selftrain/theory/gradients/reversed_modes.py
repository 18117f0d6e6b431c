r"""The linear half of a step in reverse, where covariances are diagonal.

With the notation of `geometry.modes`, $\kappa_i = \delta_i + a$ the part of its old weight that
mode i keeps and $N_i = g_i^2\sum_k\hat\chi_k s_{ki}/N$ its new noise,

    b_i = g_i \hat m \mu_i + \kappa_i b'_i          V_i = \kappa_i^2 V'_i + N_i
    m = \sum_i \mu_i b_i                            c_k = \sum_i s_{ki} g_i/N
    \psi_k = \sum_i s_{ki}(b'_i b_i + \kappa_i V'_i)/q'_k
    noise_k^2 = \sum_i s_{ki}[(b_i - \psi_k b'_i)^2 + (\kappa_i - \psi_k)^2 V'_i + N_i]

The noise is least at $\psi_k$, so it does not move with $\psi_k$: its derivative in $b_i$ is
$2 s_{ki}(b_i - \psi_k b'_i)$, and so on. Differences like $\kappa_i - \psi_k$ are formed from the
*changes* $\delta_i$ and $\psi_k - a$, which do not cancel. A common factor of all covariances acts
as if it multiplied the conjugates; what is left are the fields' own units.
"""

from __future__ import annotations

import math
from typing import Any

from ...runtime.kernels import kernel
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
    """Fill `out` with the derivatives in unknowns and old law, and `pulls` with those in ridge and
    scale, from those in the new law and the other `pulls`.
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
        # in g, without what it does in keep = g (gamma S - tau)
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
    """The derivative in the logarithm of a common factor of all covariances, from those in the
    unknowns: a factor multiplies conjugates where the weights are concerned, and the logits.
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
