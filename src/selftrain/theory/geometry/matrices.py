r"""The map from conjugates to the law of the weights and the logit fields, for covariances without
common eigenvectors: traces of matrices take the place of the sums over modes in `modes`.

The law of the weights is a mean vector b and a covariance V. With $A_r = \Sigma_r G$ and $\beta -
a\beta' = D\beta' + \dots$,

    D = G[(\gamma_0 - a) \sum_k \hat Q_k \Sigma_k - a\lambda - \sum_k T_k \Sigma_k]
    d = \hat m G \mu + D b'
    \partial D/\partial T_r = -A_r^T
    \partial D/\partial\ln\hat Q_r = \hat Q_r A_r^T (\gamma_0 - a - D)
    \partial d/\partial\ln\hat Q_r = \hat Q_r A_r^T ((\gamma_0 - a) b' - d)

and every field and derivative is a trace of products of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from ...arrays import Array
from ...mixture.clusters import Clusters
from .modes import FIRST, HAT_M, Weights


class MatrixSpace:
    """The clusters of a problem in the coordinates of the features.

    Methods as of `space.Spectrum`; `Weights.variance` is a covariance matrix here.
    """

    basis = group = None
    law = staticmethod(Weights)

    def __init__(self, sets: Sequence[Clusters]):
        self.features = sets[0].features
        self.groups = 1 + any(clusters.pair for clusters in sets)
        self._sets = {clusters: self._matrices(clusters) for clusters in set(sets)}

    def _matrices(self, clusters: Clusters) -> tuple[Array, ...]:
        full = [
            matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, self.features))
            for matrix in clusters.covariances
        ]
        return tuple(full) if len(full) == self.groups else (full[0],) * self.groups

    def no_weights(self) -> Weights:
        """Return the law of weights that are zero, as before step 0."""
        return Weights(np.zeros(self.features), np.zeros((self.features, self.features)))

    def projections(self, weights: Weights, clusters: Clusters) -> Array:
        r"""Return m and the $q_k$ of the logits of samples of these clusters."""
        b, v = weights
        squares = [float(b @ s @ b + (s * v).sum()) for s in self._sets[clusters]]
        return np.array([float(clusters.mean @ b), *squares])

    def observed(self, means: Array, spreads: Array, clusters: Clusters) -> tuple[Array, ...]:
        """Return the projections of the weights of many steps on clusters; see
        `Spectrum.observed`.
        """
        mean, separation = clusters.mean, clusters.separation
        m, matrices = means @ mean, self._sets[clusters]
        plain = means - (m / clusters.length**2)[:, None] * mean
        v = (plain**2).sum(axis=1) + self.trace(spreads)
        off = np.full(m.shape, np.nan)
        if np.isfinite(separation):
            average = np.asarray(sum(matrices)) / self.groups
            best = np.linalg.lstsq(average, mean, rcond=None)[0]
            off = _squares(average, means - (m / separation**2)[:, None] * best, spreads)
        squares = np.column_stack([_squares(s, means, spreads) for s in matrices])
        return m, v, off, squares if self.groups == 2 else np.repeat(squares, 2, axis=1)

    def mean_of(self, weights: Weights, clusters: Clusters) -> Array:
        """Return the mean of the weights in the coordinates of the features."""
        return np.asarray(weights.mean)

    def along(self, spreads: Array, direction: Array) -> Array:
        """Return the variance of the weights along a direction in feature space, for one covariance
        of the weights or several.
        """
        return np.asarray(spreads @ direction @ direction)

    def trace(self, spreads: Array) -> Array:
        """Return the trace of one matrix, or of several."""
        return np.asarray(np.trace(spreads, axis1=-2, axis2=-1))

    def step(self, old: Weights, clusters: Clusters) -> MatrixStep:
        """Return the algebra of a step that starts from the weights `old`."""
        return MatrixStep(clusters.mean, self._sets[clusters], old)

    def supervised(self, groups: list[tuple[Clusters, int]]) -> MatrixStep:
        """Return the algebra of a supervised fit to groups of samples."""
        matrices = tuple(self._sets[clusters][k] for clusters, k in groups)
        return MatrixStep(groups[0][0].mean, matrices, self.no_weights())


class MatrixStep:
    """The map from conjugates to weights and fields of one step, by traces of matrices."""

    def __init__(self, mean: Array, matrices: tuple[Array, ...], old: Weights):
        self.mean, self.matrices, self.old = mean, matrices, old
        self.groups, self.features = len(matrices), len(mean)
        self.length = float(np.linalg.norm(mean))
        self.first = not old.mean.any()

    @cached_property
    def _seen(self) -> list[tuple[Array, Array, float]]:
        r"""For every group, $V'\Sigma_k$, $\Sigma_k b'$ and $q'_k$."""
        b, v = self.old
        rows = [(v @ s, s @ b) for s in self.matrices]
        return [(vs, sb, float(b @ sb + np.trace(vs))) for vs, sb in rows]

    def fields(self, x: Array, ridge: float, gamma: float, anchor: float) -> Array:
        k, n = self.groups, self.features
        q0, x0 = FIRST + k, FIRST + 2 * k
        hat_q, hat_chi = np.exp(x[q0:x0]), np.exp(x[x0:])
        out = np.zeros((1 + 3 * k, x.size + 1))
        inverse = self.inverse(hat_q, ridge)
        if inverse is None:
            out[:] = np.nan
            return out
        a = [s @ inverse for s in self.matrices]
        self._means(x, (inverse, a), (ridge, gamma, anchor), out)
        blur = sum(value * ar for value, ar in zip(hat_chi, a, strict=True)) / n
        for i in range(k):
            noise, c = out[1 + k + i], out[1 + 2 * k + i]
            pairs = np.array([(a[i] * ar.T).sum() / n for ar in a])
            c[0] = np.trace(a[i]) / n
            c[1 + q0 : 1 + x0] = -hat_q * pairs
            noise[1 + x0 :] = hat_chi * pairs
            noise[0] += hat_chi @ pairs
            mixed = blur @ a[i] + a[i] @ blur
            noise[1 + q0 : 1 + x0] -= hat_q * [(ar.T * mixed).sum() for ar in a]
            noise[0] = np.sqrt(noise[0])
            noise[1:] *= 0.5 / noise[0]
        return out

    def _means(
        self,
        x: Array,
        products: tuple[Array, list[Array]],
        scales: tuple[float, float, float],
        out: Array,
    ) -> None:
        """Fill the rows of m and psi in `out`, and add the contribution of the means and the old
        weights to the squared noise.
        """
        (inverse, a), (ridge, gamma, anchor) = products, scales
        k, (b, v) = self.groups, self.old
        t0, q0 = FIRST, FIRST + self.groups
        hat_t, hat_q = x[t0:q0], np.exp(x[q0 : q0 + k])
        lift, keep = inverse @ self.mean, gamma - anchor
        d = x[HAT_M] * lift
        turn = np.zeros_like(inverse)
        if not self.first:
            top = sum(
                (keep * q - t) * s for q, t, s in zip(hat_q, hat_t, self.matrices, strict=True)
            )
            turn = inverse @ top - anchor * ridge * inverse
            d = d + turn @ b
        moves = [lift, *(-(ar.T @ b) for ar in a)]
        moves += [q * (ar.T @ (keep * b - d)) for q, ar in zip(hat_q, a, strict=True)]
        places = [1 + HAT_M, *range(1 + t0, 1 + q0 + k)]
        out[0, 0] = self.mean @ d
        out[0, places] = [self.mean @ move for move in moves]
        spread = turn @ v if not self.first else v
        for i, s in enumerate(self.matrices):
            psi_row, noise = out[1 + i], out[1 + k + i]
            rest = d
            if not self.first:
                seen, sb, old_q = self._seen[i]
                psi_row[0] = (sb @ d + (seen * turn.T).sum()) / old_q
                psi_row[places] = [sb @ move for move in moves]
                wide = spread @ s
                flat = np.array([(seen * ar).sum() for ar in a])
                psi_row[1 + t0 : 1 + q0] -= flat
                turned = np.array([(wide * ar).sum() for ar in a])
                psi_row[1 + q0 : 1 + q0 + k] += hat_q * (keep * flat - turned)
                psi_row[places] /= old_q
                psi = psi_row[0]
                rest = d - psi * b
                pull = s @ (spread - psi * v)
                noise[0] = (pull * turn).sum() - psi * np.trace(pull)
                flat = np.array([(ar.T * pull).sum() for ar in a])
                cross = turn @ pull.T
                turned = np.array([(ar * cross).sum() for ar in a])
                noise[1 + t0 : 1 + q0] -= 2 * flat
                noise[1 + q0 : 1 + q0 + k] += 2 * hat_q * (keep * flat - turned)
            sr = s @ rest
            noise[0] += rest @ sr
            noise[places] += [2 * (sr @ move) for move in moves]

    def chain(self, x: Array, ridge: float, gamma: float) -> tuple[Array, Array]:
        r"""Return the factor of the old weights in the new ones, $G\sum_k \hat R_k\Sigma_k$, and
        the response G.
        """
        hat_t, log_q, _ = x[FIRST:].reshape(3, self.groups)
        hat_q = np.exp(log_q)
        inverse = self.inverse(hat_q, ridge)
        assert inverse is not None
        parts = zip(hat_q, hat_t, self.matrices, strict=True)
        return inverse @ sum((gamma * q - t) * s for q, t, s in parts), inverse

    def advance(self, x: Array, ridge: float, gamma: float) -> tuple[Weights, Array]:
        r"""Return the law of the new weights, and an array ($\beta\cdot\beta'$, tr G / N)."""
        turn, inverse = self.chain(x, ridge, gamma)
        hat_chi = np.exp(x[FIRST + 2 * self.groups :])
        b, v = self.old
        mean = x[HAT_M] * (inverse @ self.mean) + turn @ b
        blur = sum(chi * s for chi, s in zip(hat_chi, self.matrices, strict=True)) / self.features
        variance = turn @ v @ turn.T + inverse @ blur @ inverse
        variance = 0.5 * (variance + variance.T)
        overlap = float(mean @ b + (turn * v).sum())
        return Weights(mean, variance), np.array([overlap, np.trace(inverse) / self.features])

    def inverse(self, hat_q: Array, ridge: float) -> Array | None:
        total = sum(q * s for q, s in zip(hat_q, self.matrices, strict=True))
        total = total + ridge * np.eye(self.features)
        factor, bad = dpotrf(total, lower=1)
        if bad:
            return None
        inverse, bad = dpotri(factor, lower=1)
        if bad:
            return None
        lower = np.tril(inverse, -1)
        return np.asarray(lower + lower.T + np.diag(np.diag(inverse)), dtype=float)


def _squares(matrix: Array, means: Array, spreads: Array) -> Array:
    r"""Return $b^T\Sigma b + \mathrm{tr}(\Sigma V)$ for many laws of the weights."""
    squares: Array = ((means @ matrix) * means).sum(axis=1) + (spreads * matrix).sum(axis=(1, 2))
    return squares
