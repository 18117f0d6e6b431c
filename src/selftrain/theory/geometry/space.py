"""Coordinates for the clusters of a problem: modes if all covariances are diagonal in the same
coordinates, else those of the features (`matrices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...mixture.clusters import Clusters
from ...runtime.parallel import one_thread
from .matrices import MatrixSpace, MatrixStep
from .modes import FIRST, Noise, Weights, advance, mode_sums, projections


class Spectrum:
    """The clusters of a problem in the coordinates of their modes.

    Arguments:
        sets: the clusters; either all equal, or all with diagonal covariances.
    """

    law = staticmethod(Weights)

    def __init__(self, sets: Sequence[Clusters]):
        first = sets[0]
        self.features, self.groups = first.features, 1 + any(clusters.pair for clusters in sets)
        self.basis: Array | None = None
        self.group: NDArray[np.intp] | None = None
        self._sets: dict[Clusters, Noise] = {}
        if len(set(sets)) == 1:
            modes = first.modes
            assert modes is not None
            self.basis, self.group = modes.basis, modes.group
            self._sets[first] = self._noise(modes.mean, modes.variances, modes.copies)
            return
        for clusters in set(sets):
            full = np.array([np.broadcast_to(s, self.features) for s in clusters.covariances])
            self._sets[clusters] = self._noise(clusters.mean, full, np.ones(self.features))

    def _noise(self, mean: Array, variances: Array, copies: Array) -> Noise:
        if len(variances) < self.groups:
            variances = np.repeat(variances, self.groups, axis=0)
        # Arrays are copied: for read-only arrays numba would compile the kernels again.
        return Noise(
            np.array(mean), np.array(variances, order="C"), np.array(copies), float(self.features),
            np.empty((4, len(mean))),
        )  # fmt: skip

    def noise(self, clusters: Clusters) -> Noise:
        """Return clusters in these coordinates."""
        return self._sets[clusters]

    def no_weights(self) -> Weights:
        """Return the law of weights that are zero, as before step 0."""
        return Weights(*np.zeros((2, self._copies.size)))

    def projections(self, weights: Weights, clusters: Clusters) -> Array:
        r"""Return m and the $q_k$ of the logits of samples of these clusters."""
        out = np.empty(1 + self.groups)
        projections(weights, self._sets[clusters], out)
        return out

    def observed(self, means: Array, spreads: Array, clusters: Clusters) -> tuple[Array, ...]:
        r"""Return the projections of the weights of many steps (first axis) on clusters.

        Returns:
            m; the squared norm of the weights orthogonal to the mean, $|\beta|^2 - m^2/|\mu|^2$;
            the squared norm, in the metric of the average covariance, of the part orthogonal to the
            best direction; the variances of the logits in the negative and the positive class.
        """
        noise, (average, best) = self._sets[clusters], self.best_direction(clusters)
        m, total = means @ noise.mean, spreads * noise.copies
        plain = means - (m / (noise.mean @ noise.mean))[:, None] * noise.mean
        rest = means - (m / clusters.separation**2)[:, None] * best
        v = (plain**2 + total).sum(axis=1)
        off = (rest**2 + total) @ average
        off = off if np.isfinite(clusters.separation) else np.full(m.shape, np.nan)
        squares = (means**2 + total) @ noise.variances.T
        return m, v, off, squares if self.groups == 2 else np.repeat(squares, 2, axis=1)

    def best_direction(self, clusters: Clusters) -> tuple[Array, Array]:
        r"""Return the average variances $\bar s_i$ of clusters and the best direction
        $\mu_i/\bar s_i$, zero where $\bar s_i$ is.
        """
        noise = self._sets[clusters]
        s = noise.variances.mean(axis=0)
        return s, np.divide(noise.mean, s, out=np.zeros_like(s), where=s > 0)

    def mean_of(self, weights: Weights, clusters: Clusters) -> Array:
        """Return the mean of the weights in the coordinates of the features."""
        if self.basis is not None:
            return np.asarray(self.basis @ weights.mean)
        if self.group is None:
            return np.asarray(weights.mean)
        along = self._sets[clusters].mean
        ratio = np.divide(weights.mean, along, out=np.zeros_like(along), where=along > 0)
        return np.asarray(ratio[self.group] * clusters.mean)

    def along(self, spreads: Array, direction: Array) -> Array:
        """Return the variance of the weights along a direction in feature space, for one covariance
        of the weights or several.
        """
        if self.basis is not None:
            return np.asarray(spreads @ (direction @ self.basis) ** 2)
        every = spreads if self.group is None else spreads[..., self.group]
        return np.asarray(every @ direction**2)

    def trace(self, spreads: Array) -> Array:
        """Return the trace of one matrix in these coordinates, or of several."""
        return np.asarray(spreads @ self._copies)

    @property
    def _copies(self) -> Array:
        return np.asarray(next(iter(self._sets.values())).copies)

    def step(self, old: Weights, clusters: Clusters) -> SpectralStep:
        """Return the algebra of a step that starts from the weights `old`."""
        return SpectralStep(old, self._sets[clusters])

    def supervised(self, groups: list[tuple[Clusters, int]]) -> SpectralStep:
        """Return the algebra of a supervised fit to groups of samples, given as pairs of clusters
        and the index of one of their covariances. The means of all must be the same.
        """
        first = self._sets[groups[0][0]]
        rows = [self._sets[clusters].variances[k] for clusters, k in groups]
        return SpectralStep(self.no_weights(), first._replace(variances=np.array(rows)))


class SpectralStep:
    """The map from conjugates to weights and fields of one step, by sums over modes (`modes`)."""

    def __init__(self, old: Weights, noise: Noise):
        self.groups, self.old, self.noise = len(noise.variances), old, noise

    @cached_property
    def length(self) -> float:
        r"""Half the distance of the class means, $|\mu|$."""
        return float(np.linalg.norm(self.noise.mean))

    def fields(self, x: Array, ridge: float, gamma: float, anchor: float) -> Array:
        """Return the values (column 0) and derivatives in the unknowns x of m - a m', psi - a,
        noise and c; see `modes.mode_sums`.
        """
        out = np.empty((1 + 3 * self.groups, x.size + 1))
        mode_sums(x, ridge, gamma, anchor, self.noise, self.old, out)
        return out

    def chain(self, x: Array, ridge: float, gamma: float) -> tuple[Array, Array]:
        r"""Return, per mode, the factor of the old weights in the new ones,
        $G\sum_k \hat R_k\Sigma_k$, and the response G.
        """
        hat_t, log_q, _ = x[FIRST:].reshape(3, self.groups)
        hat_q = np.exp(log_q)
        inverse = 1.0 / (ridge + hat_q @ self.noise.variances)
        return inverse * ((gamma * hat_q - hat_t) @ self.noise.variances), inverse

    def advance(self, x: Array, ridge: float, gamma: float) -> tuple[Weights, Array]:
        r"""Return the law of the new weights, and an array of their overlap $\beta\cdot\beta'$ with
        the old ones and the susceptibility tr G / N.
        """
        new = Weights(np.empty_like(self.old.mean), np.empty_like(self.old.mean))
        out = np.empty(2)
        advance(x, ridge, gamma, self.noise, self.old, new, out)
        return new, out


Space = Spectrum | MatrixSpace
Algebra = SpectralStep | MatrixStep


def space_of(sets: Sequence[Clusters]) -> Space:
    """Return the coordinates for these clusters: modes if their covariances have common axes."""
    first = sets[0]
    common = len(set(sets)) == 1 and first.modes is not None
    return Spectrum(sets) if common or all(one.diagonal for one in sets) else MatrixSpace(sets)


def threads_of(space: Space) -> AbstractContextManager[object]:
    """Return a context that limits BLAS to one thread if these coordinates use linear algebra."""
    return one_thread() if isinstance(space, MatrixSpace) else nullcontext()


def mean_variance(covariance: Array, features: int) -> float:
    """Return the mean variance of a feature, from a covariance matrix or its diagonal."""
    if covariance.ndim == 2:
        return float(np.trace(covariance)) / features
    return float(np.mean(covariance))
