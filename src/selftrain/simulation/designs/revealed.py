r"""A Gaussian matrix that is drawn only as far as its products need it, with the exact law.

Given $Z V = P$ for orthonormal columns V and $U^\top Z = S$ for orthonormal U, the rest of an iid
Gaussian Z is isotropic: for a unit vector $r \perp V$, $Z r = U (S r) + (I - U U^\top) g$ with
new standard normal g, and likewise for $Z^\top$. So any algorithm that uses Z only through products
needs $O((M+N) k)$ numbers for k products instead of $M N$ (Y. M. Lu, "Householder dice", 2021; here
the same conditioning is written with orthonormal bases instead of reflections).
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array


class RevealedGaussian:
    """An M x N matrix of independent standard normal entries, drawn as products need them.

    >>> z = RevealedGaussian(200, 100, np.random.default_rng(0))
    >>> w, r = np.ones(100), np.ones(200)
    >>> abs(float(r @ z.times(w)) - float(w @ z.transposed_times(r))) < 1e-9
    True
    """

    def __init__(self, rows: int, columns: int, random: np.random.Generator):
        self.shape = (rows, columns)
        self._random = random
        self._asked = _Basis(columns, rows)
        self._answered = _Basis(rows, columns)

    @property
    def known(self) -> tuple[int, int]:
        """Number of directions revealed on the column and on the row side."""
        return self._asked.count, self._answered.count

    def times(self, weights: Array) -> Array:
        return self._product(weights, self._asked, self._answered)

    def transposed_times(self, rows: Array) -> Array:
        return self._product(rows, self._answered, self._asked)

    def _product(self, vector: Array, here: _Basis, there: _Basis) -> Array:
        """Return the product with a vector, or the columns of a matrix, in the space of `here`; it
        is in the space of `there`. Each vector may reveal one more direction.
        """
        if vector.ndim > 1:
            return np.column_stack([self._product(one, here, there) for one in vector.T])
        inside, rest = here.split(vector)
        length = float(np.linalg.norm(rest))
        if length > 1e-13 * float(np.linalg.norm(vector)) and here.count < here.directions.shape[1]:
            direction = rest / length
            fresh = there.split(self._random.standard_normal(there.directions.shape[1]))[1]
            known = there.images[: there.count] @ direction
            here.append(direction, known @ there.directions[: there.count] + fresh)
            inside = np.append(inside, length)
        return inside @ here.images[: here.count]


class _Basis:
    """Orthonormal directions in one of the two spaces, and their products with Z, one per row."""

    def __init__(self, size: int, image_size: int):
        self.count = 0
        self.directions = np.empty((0, size))
        self.images = np.empty((0, image_size))

    def split(self, vector: Array) -> tuple[Array, Array]:
        """Return the coordinates of a vector in the basis, and the rest. (After 300 products one
        pass of Gram-Schmidt is not accurate enough, so there are two.)
        """
        known = self.directions[: self.count]
        inside = known @ vector
        rest = vector - inside @ known
        correction = known @ rest
        return inside + correction, rest - correction @ known

    def append(self, direction: Array, image: Array) -> None:
        if self.count == len(self.directions):
            self.directions = _grown(self.directions)
            self.images = _grown(self.images)
        self.directions[self.count] = direction
        self.images[self.count] = image
        self.count += 1


def _grown(rows: Array) -> Array:
    larger = np.empty((max(16, 3 * len(rows) // 2), rows.shape[1]))
    larger[: len(rows)] = rows
    return larger
