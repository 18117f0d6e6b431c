"""A problem whose covariances are all diagonal in one set of coordinates: weights mode by mode."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...mixture.clusters import Clusters
from .modes import FIRST, Noise, Weights, advance, mode_sums, projections


class Spectrum:
    """The sets of points of a problem in the coordinates of their modes.

    Arguments:
        shapes: the clusters of every set; equal ones, or all of them diagonal.
    """

    def __init__(self, shapes: list[Clusters]):
        first = shapes[0]
        self.features, self.groups = first.features, 1 + any(shape.pair for shape in shapes)
        self.basis: Array | None = None
        self.group: NDArray[np.intp] | None = None
        self._sets: dict[Clusters, Noise] = {}
        self._best: dict[Clusters, tuple[Array, Array]] = {}
        if all(shape == first for shape in shapes):
            modes = first.modes
            assert modes is not None
            self.basis, self.group = modes.basis, modes.group
            self._sets[first] = self._noise(modes.mean, modes.variances, modes.copies)
            return
        for shape in set(shapes):
            full = np.array([np.broadcast_to(s, self.features) for s in shape.covariances])
            self._sets[shape] = self._noise(shape.mean, full, np.ones(self.features))

    @staticmethod
    def fits(shapes: list[Clusters]) -> bool:
        """Whether these shapes have such coordinates."""
        if all(shape.diagonal for shape in shapes):
            return True
        return not shapes[0].pair and all(shape == shapes[0] for shape in shapes)

    def _noise(self, mean: Array, variances: Array, copies: Array) -> Noise:
        if len(variances) < self.groups:
            variances = np.repeat(variances, self.groups, axis=0)
        # copies: a kernel is compiled anew for arrays that are read-only
        return Noise(
            np.array(mean), np.array(variances, order="C"), np.array(copies), float(self.features)
        )

    def noise(self, shape: Clusters) -> Noise:
        """A set of points in these coordinates."""
        return self._sets[shape]

    @staticmethod
    def law(mean: Array, variance: Array) -> Weights:
        """The law of the weights from its arrays."""
        return Weights(mean, variance)

    def no_weights(self) -> Weights:
        """The weights before step 0."""
        size = len(next(iter(self._sets.values())).mean)
        return Weights(np.zeros(size), np.zeros(size))

    def projections(self, weights: Weights, shape: Clusters) -> Array:
        r"""m and $q_k$ of the logits of these points."""
        out = np.empty(1 + self.groups)
        projections(weights, self._sets[shape], out)
        return out

    def square(self, weights: Weights, shape: Clusters) -> float:
        r"""$|\beta|^2$."""
        copies = self._sets[shape].copies
        return float(weights.mean @ weights.mean + copies @ weights.variance)

    def observed(self, means: Array, spreads: Array, clusters: Clusters) -> tuple[Array, ...]:
        r"""What a set of samples sees of the weights of many steps: m; the square of the weights
        off the mean ($|\beta|^2 - m^2/|\mu|^2$) and, in the metric of the noise, off the best
        direction; the variances of the logits in the negative and the positive class.
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

    def best_direction(self, shape: Clusters) -> tuple[Array, Array]:
        r"""The average variances $\bar s_i$ of a set of points and $\mu_i/\bar s_i$, zero where
        there is no noise.
        """
        if shape not in self._best:
            noise = self._sets[shape]
            s = noise.variances.mean(axis=0)
            ratio = np.divide(noise.mean, s, out=np.zeros_like(s), where=s > 0)
            self._best[shape] = (s, ratio)
        return self._best[shape]

    def mean_of(self, weights: Weights, shape: Clusters) -> Array:
        """The mean of the weights in the coordinates of the rows."""
        if self.basis is not None:
            return np.asarray(self.basis @ weights.mean)
        if self.group is None:
            return np.asarray(weights.mean)
        along = self._sets[shape].mean
        ratio = np.divide(weights.mean, along, out=np.zeros_like(along), where=along > 0)
        return np.asarray(ratio[self.group] * shape.mean)

    def along(self, spreads: Array, direction: Array) -> Array:
        """Variances along a direction of the features, of one covariance of weights or several."""
        if self.basis is not None:
            return np.asarray(spreads @ (direction @ self.basis) ** 2)
        every = spreads if self.group is None else spreads[..., self.group]
        return np.asarray(every @ direction**2)

    def trace(self, spreads: Array) -> Array:
        """Traces of one matrix in these coordinates, or several."""
        copies = next(iter(self._sets.values())).copies
        return np.asarray(spreads @ copies)

    def step(self, old: Weights, shape: Clusters) -> SpectralStep:
        """The algebra of a step that starts from the weights `old`."""
        return SpectralStep(old, self._sets[shape])

    def supervised(self, groups: list[tuple[Clusters, int]]) -> SpectralStep:
        """The algebra of a supervised fit to groups of samples, each of a covariance (its index) of
        some clusters, all around the same means.
        """
        first = self._sets[groups[0][0]]
        rows = [self._sets[clusters].variances[k] for clusters, k in groups]
        noise = Noise(first.mean, np.array(rows), first.copies, first.features)
        return SpectralStep(self.no_weights(), noise)


class SpectralStep:
    """The linear half of one step, by sums over modes (`modes`)."""

    def __init__(self, old: Weights, noise: Noise):
        self.groups, self.old, self.noise = len(noise.variances), old, noise

    @cached_property
    def length(self) -> float:
        return float(np.linalg.norm(self.noise.mean))

    def fields(self, x: Array, ridge: float, gamma: float, anchor: float) -> Array:
        out = np.empty((1 + 3 * self.groups, x.size + 1))
        mode_sums(x, ridge, gamma, anchor, self.noise, self.old, out)
        return out

    @cached_property
    def softness(self) -> Array:
        old, noise = self.old, self.noise
        square = float(old.mean @ old.mean + noise.copies @ old.variance)
        if square == 0:
            return np.asarray(noise.variances @ noise.copies / noise.copies.sum(), dtype=float)
        out = np.empty(1 + self.groups)
        projections(old, noise, out)
        return np.asarray(out[1:] / square)

    def chain(self, x: Array, ridge: float, gamma: float) -> tuple[Array, Array]:
        r"""$\sum_k \hat R_k\Sigma_k$ times G, by which old weights live on, and G, per mode."""
        hat_t, log_q, _ = x[FIRST:].reshape(3, self.groups)
        hat_q = np.exp(log_q)
        inverse = 1.0 / (ridge + hat_q @ self.noise.variances)
        return inverse * ((gamma * hat_q - hat_t) @ self.noise.variances), inverse

    def advance(self, x: Array, ridge: float, gamma: float) -> tuple[Weights, Array]:
        r"""The new weights, and ($|\beta|^2$, its part off the mean, $\beta\cdot\beta'$, tr G /
        N).
        """
        new = Weights(np.empty_like(self.old.mean), np.empty_like(self.old.mean))
        out = np.empty(4)
        advance(x, ridge, gamma, self.noise, self.old, new, out)
        return new, out
