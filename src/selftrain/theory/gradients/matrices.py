r"""The linear half of a step in reverse, for covariances without common directions.

The derivatives of `modes` with matrices in place of numbers. With $K = D + a$ the map from the old
weights to the new ones (`geometry.matrices`), $Z = \sum_k\hat\chi_k\Sigma_k/N$ and derivatives of L
written with a bar,

    \beta = \hat m G \mu + K \beta' + \dots         V = K V' K^T + G Z G
    \bar K = 2 \bar V K V' + \bar b b'^T + \dots    \bar S = G \bar K (\gamma_0 - K^T) - G \bar G G

where $\bar G$ leaves out what G does in K.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ..geometry.matrices import MatrixStep
from ..geometry.modes import FIRST, HAT_M
from .modes import scale_of
from .pulls import FIRST_FIELD, LIMIT, OLD_M, RIDGE, SCALE, Bars, LinearStep, Pulled


def pull_matrices(
    at: LinearStep, step: MatrixStep, limit: float, bars: Bars, pulls: Array, out: Pulled
) -> None:
    """Fill `out` with the derivatives in unknowns, old law, ridge and scale; see `pull_modes`."""
    x, ridge, gamma, anchor, fields = at
    k, n, (b, v) = step.groups, step.features, step.old
    q0, x0, first = FIRST + k, FIRST + 2 * k, FIRST_FIELD + 1
    hat_t, hat_q, hat_chi = x[FIRST:q0], np.exp(x[q0:x0]), np.exp(x[x0:])
    inverse = step.inverse(hat_q, ridge)
    assert inverse is not None
    identity = np.eye(n)
    top = sum(
        (gamma - anchor) * q * s - t * s
        for q, t, s in zip(hat_q, hat_t, step.matrices, strict=True)
    )
    turn = inverse @ top - anchor * ridge * inverse
    keep = turn + anchor * identity
    change = x[HAT_M] * (inverse @ step.mean) + turn @ b
    blur = sum(c * s for c, s in zip(hat_chi, step.matrices, strict=True)) / n
    by_fresh = bars.variance.copy()
    by_mean = bars.mean + pulls[FIRST_FIELD] * step.mean + bars.overlap * b
    by_keep = 2.0 * bars.variance @ keep @ v + bars.overlap * v
    by_gain = bars.response / n * identity
    mean = keep.T @ by_mean + bars.overlap * (change + anchor * b) + pulls[OLD_M] * step.mean
    variance = keep.T @ bars.variance @ keep + 0.5 * bars.overlap * (keep + keep.T)
    square, roots = float(b @ b + np.trace(v)), np.zeros(k)
    if square > 0.0:
        norm = 0.5 * pulls[LIMIT] * limit / square
        mean += 2.0 * norm * b
        variance += norm * identity
    for i, s in enumerate(step.matrices):
        by_psi, by_noise, by_c, by_root = pulls[first + i :: k][:4]
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
    by_gain = by_gain + mixed + mixed.T + x[HAT_M] * np.outer(by_mean, step.mean)
    by_inverse = inverse @ by_gain @ inverse
    by_pull = inverse @ by_keep
    by_total = by_pull @ ((gamma - anchor) * identity - turn.T) - by_inverse
    fresh = inverse @ by_fresh @ inverse / n
    out.x[:] = 0.0
    out.x[HAT_M] = by_mean @ inverse @ step.mean
    for i, s in enumerate(step.matrices):
        out.x[FIRST + i] = -(by_pull * s).sum()
        out.x[q0 + i] = hat_q[i] * (by_total * s).sum()
        out.x[x0 + i] = hat_chi[i] * (fresh * s).sum()
    out.mean[:], out.variance[:] = mean, variance
    out.rest[RIDGE] = -(by_pull * keep).sum() - np.trace(by_inverse)
    out.rest[SCALE] = scale_of(x, fields, roots, pulls, out.x)
