r"""Banks of rows: Sobol points, scrambled, as Gaussian noise of a group of rows.

A row needs one Gaussian number for the cluster direction and one for every new direction of the weights. The
two classes use the same points, mirrored: a problem that treats the classes alike is then solved by a bank that does so too.
The first coordinate of the points, the best one, goes to the direction of the model that labels the rows first.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from ...arrays import Array

_EDGE = 2.0**-34
"""Points are kept off 0 and 1, half of the spacing of the scrambled points away."""


def normals(points: int, dimensions: int, seed: np.random.SeedSequence) -> Array:
    """Standard normal numbers from scrambled Sobol points, shape (points, dimensions).

    >>> z = normals(1024, 3, np.random.SeedSequence(0))
    >>> bool(np.abs(z.mean(axis=0)).max() < 1e-3)
    True
    """
    sobol = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed))
    uniform = sobol.random(points)
    return np.asfortranarray(ndtri(np.clip(uniform, _EDGE, 1.0 - _EDGE)))


def turned(noise: Array, direction: Array) -> Array:
    """The noise in axes such that its first column lies along `direction`, which spans the first axes."""
    size = direction.size
    axis = direction / np.linalg.norm(direction)
    mirror = axis - np.eye(size)[0]
    length = float(mirror @ mirror)
    if length < 1e-28:
        return noise
    result = noise.copy(order="F")
    result[:, :size] -= np.outer(noise[:, :size] @ mirror, 2.0 * mirror / length)
    return result
