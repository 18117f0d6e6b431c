r"""Banks of rows: Sobol points, scrambled, as Gaussian noise of a group of rows; or a grid where
few numbers make a row.

A row needs one Gaussian number for the cluster direction and one for every new direction of the
weights. The two classes use the same points, mirrored: a problem that treats the classes alike is
then solved by a bank that does so too. The first coordinate of the points, the best one, goes to
the direction of the model that labels the rows first. Up to four numbers per row, and without
jumps, a product of Gauss-Hermite rules is a better bank than any sample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, roots_hermitenorm
from scipy.stats import qmc

from ...arrays import Array

NEGLIGIBLE = 1e-13
"""Rows of a grid with a smaller weight are left out: they change no digit that is promised."""

_EDGE = 2.0**-34
"""Points are kept off 0 and 1, half of the spacing of the scrambled points away."""


def normals(points: int, dimensions: int, seed: np.random.SeedSequence) -> Array:
    """Standard normal numbers from scrambled Sobol points, shape (points, dimensions).

    >>> z = normals(4096, 3, np.random.SeedSequence(0))
    >>> bool(np.abs(z.mean(axis=0)).max() < 1e-3)
    True
    """
    sobol = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed))
    uniform = sobol.random(points)
    return np.asfortranarray(ndtri(np.clip(uniform, _EDGE, 1.0 - _EDGE)))


class Bank(NamedTuple):
    """Standard normal numbers, one row of a bank each, and the weights of the rows, of sum one."""

    noise: Array
    weights: Array


Draw = Callable[[int], Bank]
"""The bank of a group, from how many numbers make a row."""


def scrambled(points: int, seed: np.random.SeedSequence) -> Draw:
    """Scrambled Sobol points of equal weight."""
    return partial(_scrambled, points, seed)


def grid(level: int) -> Draw:
    """A product of Gauss-Hermite rules: `level` nodes along the first number, two thirds of that
    along the others.
    """
    return partial(_grid, level)


def _scrambled(points: int, seed: np.random.SeedSequence, dimensions: int) -> Bank:
    return Bank(normals(points, dimensions, seed), np.full(points, 1.0 / points))


def _grid(level: int, dimensions: int) -> Bank:
    sizes = [level] + [2 * level // 3] * (dimensions - 1)
    rules = [roots_hermitenorm(size) for size in sizes]
    nodes = np.meshgrid(*(x for x, _ in rules), indexing="ij")
    shares = np.meshgrid(*(w / w.sum() for _, w in rules), indexing="ij")
    noise = np.asfortranarray(np.stack([axis.ravel() for axis in nodes], axis=1))
    weights = np.prod([axis.ravel() for axis in shares], axis=0)
    heavy = weights > NEGLIGIBLE
    return Bank(np.asfortranarray(noise[heavy]), weights[heavy])


def turned(noise: Array, direction: Array) -> Array:
    """The noise in axes such that its first column lies along `direction`, which spans the first
    axes.
    """
    size = direction.size
    axis = direction / np.linalg.norm(direction)
    mirror = axis - np.eye(size)[0]
    length = float(mirror @ mirror)
    if length < 1e-28:
        return noise
    result = noise.copy(order="F")
    result[:, :size] -= np.outer(noise[:, :size] @ mirror, 2.0 * mirror / length)
    return result
