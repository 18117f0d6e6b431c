r"""The coordinates of the weights: the clusters of a protocol, by modes or as matrices.

Clusters have a mean and a covariance for each class. If all covariances are diagonal in a common
basis, operators on the weights are numbers per mode (a sphere has one mode); else they are
matrices. Weights are arrays (d, n, c): d components of the logit, n coordinates, and c columns. The
first column is the mean, the others are the coefficients of independent Gaussian numbers (for a
mode that stands for several features, multiplied by the root of their number).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...mixture.clusters import Clusters
from ..geometry.matrices import MatrixSpace
from ..geometry.space import mean_variance, space_of


class SampleSet(NamedTuple):
    """Clusters in these coordinates: the class means, (n, K), and the index of the covariance of
    each class.
    """

    means: Array
    sources: tuple[int, ...]


class Source(NamedTuple):
    r"""A covariance $\Sigma$.

    Attributes:
        sigma: $\Sigma$ as numbers per mode, (n,), or a matrix, (n, n).
        noise: its root, (n, j): the noise that samples with this covariance add to the weights.
        variance: the mean variance of a feature.
    """

    sigma: Array
    noise: Array
    variance: float


class Coordinates:
    """The clusters of a protocol in the coordinates of the weights.

    Arguments:
        laws: the clusters of every group, and of the test samples.
    """

    def __init__(self, laws: Iterable[Clusters]):
        self.sources: list[Source] = []
        self.sets: dict[Clusters, SampleSet] = {}
        distinct = list(dict.fromkeys(laws))
        if distinct[0].classes > 2:
            self._several_classes(distinct)
            return
        axes = space_of(distinct)
        self.features = float(axes.features)
        for law in distinct:
            scales = [mean_variance(s, law.features) for s in law.covariances]
            if isinstance(axes, MatrixSpace):
                self.copies, mean = np.ones(law.features), law.mean
                pairs = zip(law.covariances, scales, strict=True)
                sources = [self._full(covariance, scale) for covariance, scale in pairs]
            else:
                noise = axes.noise(law)
                self.copies, mean = noise.copies, noise.mean
                variances = noise.variances[: len(scales)]
                roots = np.sqrt(variances * noise.copies / self.features)[..., None]
                sources = [Source(*parts) for parts in zip(variances, roots, scales, strict=True)]
            ends = (len(self.sources), len(self.sources) + len(sources) - 1)
            self.sets[law] = SampleSet(np.stack([-mean, mean], axis=1), ends)
            self.sources.extend(sources)

    def _several_classes(self, laws: list[Clusters]) -> None:
        """Set the coordinates for K > 2 classes: the modes of the covariance if there is one only,
        the features if all covariances are diagonal, else matrices.
        """
        features = laws[0].features
        self.features, self.copies = float(features), np.ones(features)
        for law in laws:
            scale = mean_variance(law.covariance, features)
            means = law.means.T
            if len(laws) == 1:
                variances, means, self.copies = law.class_modes
            elif all(one.diagonal for one in laws):
                variances = np.array(np.broadcast_to(law.covariance, features))
            else:
                self.sets[law] = SampleSet(means, (len(self.sources),) * law.classes)
                self.sources.append(self._full(law.covariance, scale))
                continue
            self.sets[law] = SampleSet(means, (len(self.sources),) * law.classes)
            root = np.sqrt(variances * self.copies / features)[:, None]
            self.sources.append(Source(variances, root, scale))

    def _full(self, covariance: Array, scale: float) -> Source:
        size = int(self.features)
        full = covariance if covariance.ndim == 2 else np.diag(np.broadcast_to(covariance, size))
        values, vectors = np.linalg.eigh(full)
        root = (vectors * np.sqrt(np.maximum(values, 0.0) / size)) @ vectors.T
        return Source(full, root, scale)

    @property
    def size(self) -> int:
        """The number n of coordinates."""
        return len(self.copies)

    @property
    def by_modes(self) -> bool:
        """Whether operators are numbers per mode."""
        return self.sources[0].sigma.ndim == 1

    def sigma(self, a: int, x: Array) -> Array:
        r"""Apply $\Sigma_a$ to weights (..., n, c)."""
        sigma = self.sources[a].sigma
        if sigma.ndim == 1:
            return np.asarray(sigma[:, None] * x)
        return np.asarray(sigma @ x)

    def gain(self, ridge: float, stiffness: dict[int, Array], size: int) -> Array:
        r"""Return $G = (\lambda + \sum_a \hat Q_a \Sigma_a)^{-1}$ for logits of `size` components:
        (n, d, d) by modes, else one matrix over components and coordinates.
        """
        one = np.eye(size)
        if self.by_modes:
            total = np.broadcast_to(ridge * one, (self.size, size, size))
            for a, q in stiffness.items():
                total = total + self.sources[a].sigma[:, None, None] * q
            return 1.0 / total if size == 1 else np.asarray(np.linalg.inv(total))
        full = ridge * np.eye(size * self.size)
        for a, q in stiffness.items():
            full = full + np.kron(q, self.sources[a].sigma)
        return np.asarray(np.linalg.inv(full))

    def mean_gain(self, gain: Array, size: int) -> float:
        r"""Return $\mathrm{tr}\,G/N$, averaged over the components of the logit."""
        if self.by_modes:
            traces = np.trace(gain, axis1=1, axis2=2)
        else:
            traces = np.diag(gain).reshape(size, -1).sum(axis=0)
        return float(self.copies @ traces) / (size * self.features)

    def apply(self, gain: Array, x: Array) -> Array:
        """Apply G to weights (..., d, n, c)."""
        size = x.shape[-3]
        if self.by_modes:
            if size == 1:
                return np.asarray(gain[:, 0] * x)
            out = np.zeros(x.shape)
            for i in range(size):
                for j in range(size):
                    out[..., i, :, :] += gain[:, i, j, None] * x[..., j, :, :]
            return out
        if size == 1:
            return np.asarray(gain @ x)
        flat = x.reshape(*x.shape[:-3], size * self.size, x.shape[-1])
        return np.asarray(gain @ flat).reshape(x.shape)


def inner(x: Array, y: Array) -> Array:
    """Return the inner products of weights (..., d, n, c) with others (r, n, c), (..., d, r)."""
    size = y.shape[-1] * y.shape[-2]
    return np.asarray(x.reshape(*x.shape[:-2], size) @ y.reshape(-1, size).T)
