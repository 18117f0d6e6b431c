r"""The unknowns of a fit: its bias and conjugates, and their positions in one vector.

For each law of samples (their clusters) there is $\hat m_t$ (by classes), for each covariance the
rows $\hat Q_{ts}$ and $\hat\chi_{ts}$, $s \le t$, in the orthonormal bases of `weights`: $\tilde
Q_{tr}$ (`along`) and $\hat Q_{tt}$ (`stiffness`), $\Phi_{tk}$ (`slopes`) and
$\Phi_{tt}\Phi_{tt}^\top$ (`fresh`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...mixture.clusters import Clusters

Law = Clusters


def inverse(square: Array) -> Array:
    """Return the inverse of a matrix over the components of a logit; NaN if it is singular
    (Newton's method then shortens its step).
    """
    if square.size == 1:
        return np.asarray(1.0 / square)
    try:
        return np.asarray(np.linalg.inv(square), dtype=float)
    except np.linalg.LinAlgError:
        return np.full(square.shape, np.nan)


def factor(square: Array) -> Array:
    """Return the lower triangular factor of a covariance; NaN if it is not positive definite."""
    if square.size == 1:
        return np.asarray(np.sqrt(np.maximum(square, 1e-290)))
    try:
        return np.asarray(np.linalg.cholesky(square), dtype=float)
    except np.linalg.LinAlgError:
        return np.full(square.shape, np.nan)


class Hats(NamedTuple):
    """The conjugates of one fit: `means` by laws of samples, the others by covariances."""

    means: dict[Law, Array]
    stiffness: dict[int, Array]
    along: dict[int, Array]
    slopes: dict[int, Array]
    fresh: dict[int, Array]


class Layout:
    r"""The positions of the unknowns of a fit in one vector: bias, then `Hats`, with
    $\hat Q_{tt}^{-1}$ in place of $\hat Q_{tt}$, because the strength $X_{tt}$ is nearly linear in
    it.

    Arguments:
        components: d.
        laws: the laws of the samples in use, with their number of classes.
        sources: the covariances in use, with the sizes of their two bases.
    """

    def __init__(
        self, components: int, laws: dict[Law, int], sources: dict[int, tuple[int, int]]
    ) -> None:
        d = self.components = components
        self.laws, self.sources = laws, sources
        self.low = np.tril_indices(d)
        self.size = 0
        self.bias = self._next(d)
        self.means = {law: self._next(d * classes) for law, classes in laws.items()}
        self.softness: dict[int, slice] = {}
        self.along: dict[int, slice] = {}
        self.slopes: dict[int, slice] = {}
        self.fresh: dict[int, slice] = {}
        for a, (r, k) in sources.items():
            self.softness[a] = self._next(self.low[0].size)
            self.along[a] = self._next(d * r)
            self.slopes[a] = self._next(d * k)
            self.fresh[a] = self._next(self.low[0].size)

    def _next(self, count: int) -> slice:
        self.size += count
        return slice(self.size - count, self.size)

    def unpack(self, z: Array) -> tuple[Array, Hats]:
        """Return the bias and the conjugates of a vector of unknowns."""
        d = self.components
        return z[self.bias], Hats(
            {law: z[at].reshape(d, -1) for law, at in self.means.items()},
            {a: inverse(self.symmetric(z[at])) for a, at in self.softness.items()},
            {a: z[at].reshape(d, self.sources[a][0]) for a, at in self.along.items()},
            {a: z[at].reshape(d, self.sources[a][1]) for a, at in self.slopes.items()},
            {a: self.symmetric(z[at]) for a, at in self.fresh.items()},
        )

    def pack(self, bias: Array, hats: Hats) -> Array:
        """Return the vector of unknowns."""
        return self.join(bias, hats, {a: inverse(q) for a, q in hats.stiffness.items()})

    def join(self, bias: Array, hats: Hats, softness: dict[int, Array]) -> Array:
        """Return the vector of unknowns, or derivatives of it (with leading axes), from bias,
        conjugates and the inverse `softness` of the stiffness.
        """
        lead = bias.shape[:-1]
        z = np.zeros((*lead, self.size))
        z[..., self.bias] = bias
        for law, at in self.means.items():
            z[..., at] = hats.means[law].reshape(*lead, -1)
        for a in self.sources:
            z[..., self.softness[a]] = softness[a][..., *self.low]
            z[..., self.along[a]] = hats.along[a].reshape(*lead, -1)
            z[..., self.slopes[a]] = hats.slopes[a].reshape(*lead, -1)
            z[..., self.fresh[a]] = hats.fresh[a][..., *self.low]
        return z

    def symmetric(self, entries: Array) -> Array:
        """Return a symmetric matrix from its lower entries."""
        full = np.zeros((self.components, self.components))
        full[self.low] = entries
        full.T[self.low] = entries
        return full

    def move(self, start: Array, z: Array) -> Array:
        r"""Return the move from a start to z: their difference; for new squares the ratio
        $L^{-1} B L^{-T}$ of the one in z, B, to the one in the start, $A = LL^T$.
        """
        move = z - start
        for at in self.fresh.values():
            left = inverse(factor(self.symmetric(start[at])))
            move[at] = (left @ self.symmetric(z[at]) @ left.T)[self.low]
        return np.asarray(move)

    def moved(self, start: Array, move: Array) -> Array:
        """Return the unknowns at a start after a `move`."""
        z = start + move
        for at in self.fresh.values():
            root = factor(self.symmetric(start[at]))
            z[at] = (root @ self.symmetric(move[at]) @ root.T)[self.low]
        return np.asarray(z)

    def directions(self) -> Array:
        """Return the basis of symmetric matrices that belongs to the lower entries."""
        return np.array([self.symmetric(row) for row in np.eye(self.low[0].size)])

    def stiffening(self, stiffness: Array) -> Array:
        r"""Return the derivatives of $\hat Q_{tt}$ in the entries of its inverse."""
        return np.asarray(-stiffness @ self.directions() @ stiffness)
