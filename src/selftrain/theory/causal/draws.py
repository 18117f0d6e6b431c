r"""Points for the averages over samples.

A sample needs one Gaussian number (for each component of the logit) for every fit in which its
logit is needed. The numbers of a replicate are scrambled Sobol points; their first and most uniform
coordinate is used for the logit that labels the sample first. For up to four numbers, and without
jumps, a product of Gauss-Hermite rules is more accurate. If everything is linear in the numbers, no
points are needed: functions are represented by their coefficients on (1, z) instead of values.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, roots_hermitenorm

from ...arrays import Array

NEGLIGIBLE = 1e-13
"""Points of a grid with a smaller weight are omitted; their effect is far below any tolerance."""

_EDGE = 2.0**-34
"""Smallest distance of points from 0 and 1: half the spacing of the scrambled points."""


RARE = 2 / 3
"""A given label that is rarer by a factor x gets fewer points, by the factor x to this power
(rounded up to a power of two): optimal for given work if errors fall as one over the points.
"""

FEWEST = 64
"""Smallest number of points of a label, however rare."""


class Kind(NamedTuple):
    """A kind of samples: those of one cell.

    Attributes:
        true, given: class and given label.
        share: samples per feature.
        part: frequency of this label in the class, relative to its most frequent label.
    """

    true: int
    given: int
    share: float
    part: float = 1.0


class Points(NamedTuple):
    """Points for averages.

    Attributes:
        noise: standard normal numbers z, (points, dimensions).
        weights: such that E[a b] is the weighted sum of the products of values of a and b.
        one: the values of the constant 1.
    """

    noise: Array
    weights: Array
    one: Array


class PointSource(NamedTuple):
    """The source of the points of a replicate: scrambled Sobol points, a grid, or exact moments (if
    both `points` and `level` are 0).

    Attributes:
        points: number of Sobol points of a class of a group (with its most frequent label).
        replicate: the number of the replicate; empty for the one that searches use.
        level: number of grid nodes along the first Gaussian number; two thirds of it along others.
    """

    points: int = 0
    replicate: tuple[int, ...] = ()
    level: int = 0

    @property
    def exact(self) -> bool:
        """Whether averages are exact."""
        return self.points == 0 and self.level == 0

    @property
    def work(self) -> float:
        """The approximate number of points, as a measure of the work."""
        return float(max(self.points, self.level**3, 1))

    def draw(self, group: int, kind: Kind, classes: int, dimensions: int) -> Points:
        """Return the points of one kind of samples of a group, independent of those of others.

        A rare given label has fewer points.
        """
        if self.exact:
            numbers = np.eye(1 + dimensions)
            return Points(numbers[:, 1:], np.ones(1 + dimensions), numbers[0])
        if self.level:
            noise, weights = grid(self.level, dimensions)
        else:
            two = classes == 2
            own = () if two else (kind.true,)
            wrong = () if kind.given == kind.true else (kind.given,)
            # A Sobol sequence takes the next child of its seed, so that two classes can share one.
            seed = np.random.SeedSequence(
                self.points,
                spawn_key=(*self.replicate, group, *own, *wrong),
                n_children_spawned=kind.true if two else 0,
            )
            points = max(FEWEST, self.points >> int(-RARE * math.log2(kind.part)))
            noise = normals(points, dimensions, seed)
            noise = -noise if two and kind.true == 0 else noise
            weights = np.full(points, 1.0 / points)
        return Points(noise, weights, np.ones(len(weights)))


def normals(points: int, dimensions: int, seed: np.random.SeedSequence) -> Array:
    """Return standard normal numbers from scrambled Sobol points, shape (points, dimensions).

    >>> z = normals(4096, 3, np.random.SeedSequence(0))
    >>> bool(np.abs(z.mean(axis=0)).max() < 1e-3)
    True
    """
    from scipy.stats import qmc  # imported here: it takes 0.25 s and exact runs do not need it

    sobol = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed))
    uniform = sobol.random(points)
    return np.asfortranarray(ndtri(np.clip(uniform, _EDGE, 1.0 - _EDGE)))


def grid(level: int, dimensions: int) -> tuple[Array, Array]:
    """Return nodes and weights of a product of Gauss-Hermite rules."""
    sizes = [level] + [2 * level // 3] * (dimensions - 1)
    rules = [roots_hermitenorm(size) for size in sizes]
    nodes = np.meshgrid(*(x for x, _ in rules), indexing="ij")
    shares = np.meshgrid(*(w / w.sum() for _, w in rules), indexing="ij")
    noise = np.stack([axis.ravel() for axis in nodes], axis=1)
    weights = np.prod([axis.ravel() for axis in shares], axis=0)
    heavy = weights > NEGLIGIBLE
    return np.asfortranarray(noise[heavy]), weights[heavy]
