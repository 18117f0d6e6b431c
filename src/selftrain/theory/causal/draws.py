r"""Points for the average over samples: scrambled Sobol points as Gaussian numbers, or a grid where
few numbers make a sample.

A sample needs one Gaussian number for every fit in which its logit matters. The first coordinate of
the points, the best one, goes to the logit that labels the sample first. Up to four numbers, and
without jumps, a product of Gauss-Hermite rules is better than any sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, roots_hermitenorm
from scipy.stats import qmc

from ...arrays import Array

NEGLIGIBLE = 1e-13
"""Points of a grid with a smaller weight are left out: they change no digit that is promised."""

_EDGE = 2.0**-34
"""Points stay off 0 and 1, half of the spacing of the scrambled points away."""


class Points(NamedTuple):
    """Standard normal numbers, one point each, and the weights of the points, of sum one."""

    noise: Array
    weights: Array


Draw = Callable[[int, int], Points]
"""The points of a group, from how many numbers make a sample, and the class."""


def normals(points: int, dimensions: int, seed: np.random.SeedSequence) -> Array:
    """Return standard normal numbers from scrambled Sobol points, shape (points, dimensions).

    >>> z = normals(4096, 3, np.random.SeedSequence(0))
    >>> bool(np.abs(z.mean(axis=0)).max() < 1e-3)
    True
    """
    sobol = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed))
    uniform = sobol.random(points)
    return np.asfortranarray(ndtri(np.clip(uniform, _EDGE, 1.0 - _EDGE)))


def scrambled(points: int, seeds: Sequence[np.random.SeedSequence]) -> Draw:
    """Return scrambled Sobol points of equal weight: one seed for each class, or one for two
    classes, whose points are mirrored: a problem that treats them alike stays so.
    """
    return partial(_scrambled, points, seeds)


def grid(level: int) -> Draw:
    """Return a product of Gauss-Hermite rules: `level` nodes along the first number, two thirds of
    that along the others.
    """
    return partial(_grid, level)


def _scrambled(
    points: int, seeds: Sequence[np.random.SeedSequence], dimensions: int, kind: int
) -> Points:
    mirrored = len(seeds) == 1 and kind == 0
    noise = normals(points, dimensions, seeds[kind % len(seeds)])
    return Points(-noise if mirrored else noise, np.full(points, 1.0 / points))


def _grid(level: int, dimensions: int, kind: int) -> Points:
    sizes = [level] + [2 * level // 3] * (dimensions - 1)
    rules = [roots_hermitenorm(size) for size in sizes]
    nodes = np.meshgrid(*(x for x, _ in rules), indexing="ij")
    shares = np.meshgrid(*(w / w.sum() for _, w in rules), indexing="ij")
    noise = np.stack([axis.ravel() for axis in nodes], axis=1)
    weights = np.prod([axis.ravel() for axis in shares], axis=0)
    heavy = weights > NEGLIGIBLE
    return Points(np.asfortranarray(noise[heavy]), weights[heavy])
