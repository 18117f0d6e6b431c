r"""The linear half of a step in reverse, for covariances without common directions.

The derivatives of `reversed_modes` with matrices in place of numbers. With $K = D + a$ the map from
the old weights to the new ones (`geometry.matrices`), $Z = \sum_k\hat\chi_k\Sigma_k/N$ and
derivatives of L written with a bar,

    \beta = \hat m G \mu + K \beta' + \dots         V = K V' K^T + G Z G
    \bar K = 2 \bar V K V' + \bar b b'^T + \dots    \bar S = G \bar K (\gamma_0 - K^T) - G \bar G G

where $\bar G$ leaves out what G does in K.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..geometry.matrices import MatrixStep
from ..geometry.modes import FIRST, HAT_M
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
from .reversed_modes import scale_of


def pull_matrices(
    step: SolvedStep, at: StepNumbers, linear: MatrixStep, pulls: Array, out: Reversed
) -> None:
    """Fill `out`, and ridge and scale of `pulls`, as `pull_modes` does."""
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
