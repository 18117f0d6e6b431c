r"""The averages of one step over all rows that it uses, and the equations made of them.

Unknowns of step t: the bias B, the overlap m, the coordinates $a_k$ of the weights along the
directions of earlier steps, the size r of the new direction, the susceptibility $\kappa =
\chi_{tt}$, and $b_k = \kappa\Phi_{tk}$, the share of the past slopes in the new ones. A row of a
group with noise $\Delta$ has the field $H = B + m x_v + \sum_k (a_k x_k + b_k y_k) + r\sqrt\Delta
z_t$ and $u = H - \Delta\kappa f$. With $\langle\cdot\rangle = \sum_g \alpha_g E_g[\cdot]$ and $g =
f - \sum_k b_k y_k/(\kappa\Delta)$:

$$\langle f\rangle = 0,\quad \langle f x_v\rangle = -\lambda m,\quad \langle f x_k\rangle = -\lambda
a_k,\quad \langle f y_k\rangle = b_k/\kappa,\quad r^2 = \kappa^2\langle\Delta g^2\rangle,\quad
1/\kappa = \lambda + \langle\Delta d\rangle.$$

The average of $g^2$ is over all rows, those that the step does not use too.

Given the past these are the stationary point of a convex problem; labels are data of the step, so
nothing here differentiates a jump.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from .response import RowAnswer

Places = NDArray[np.intp]

BLOCK = 8192
"""Rows that are summed at a time, so that they stay in the cache."""


class Active(NamedTuple):
    """The rows of a group that a step uses.

    Attributes:
        columns: 1, $x_v$, $x_0, y_0, x_1, y_1, \\ldots, \\sqrt\\Delta z_t$.
        shares: weight of each row in an average, with $\\alpha$.
        delta: $\\Delta$ of the group.
    """

    columns: Array
    shares: Array
    delta: float


class Sums:
    """Accumulated averages of a step; names follow the equations above."""

    def __init__(self, size: int):
        self.f, self.slope_f, self.slope_g, self.g, self.bend = np.zeros((5, size))
        self.curved = np.zeros((size, size))
        self.d = self.d_change = self.noise = self.noise_change = self.mixed = 0.0

    def add(self, rows: Active, answer: RowAnswer, coefficients: Array, kappa: float) -> None:
        """Add the rows of a group. `coefficients` holds $b_k$ at the columns $y_k$ and 0
        elsewhere.
        """
        delta = rows.delta
        for begin in range(0, rows.shares.size, BLOCK):
            here = slice(begin, begin + BLOCK)
            y, w = rows.columns[here], rows.shares[here]
            f, d, bend = answer.f[here], answer.d[here], answer.bend[here]
            g = f - y @ coefficients / (kappa * delta)
            wd = w * d
            together = np.stack([w * f, delta * wd * f, delta * wd * g, w * g, delta * w * bend])
            for total, value in zip(
                (self.f, self.slope_f, self.slope_g, self.g, self.bend), together @ y, strict=True
            ):
                total += value
            root = y * np.sqrt(wd)[:, None]
            self.curved += root.T @ root
            self.d += delta * float(wd.sum())
            self.d_change -= delta * delta * float(w @ (d * d + f * bend))
            self.noise += delta * float(w @ (g * g))
            self.noise_change -= delta * delta * float(wd @ (f * g))
            self.mixed += delta * float(w @ (g * (f - g)))

    def add_idle(self, idle: Array, past: Places, b: Array, kappa: float) -> None:
        r"""Add the rows that the step does not use: their slopes are 0, their part of g is $-\sum_k
        b_k\varphi_k/\kappa$.

        Arguments:
            idle: $\langle\Delta\varphi_j\varphi_k\rangle$ over these rows.
        """
        image = idle @ b
        square = float(b @ image) / kappa**2
        self.noise += square
        self.mixed -= square
        self.g[past] -= image / kappa


class Layout(NamedTuple):
    """Where the unknowns of a step are: columns of the rows, then $\\ln\\kappa$ at the end.

    Attributes:
        along: positions of the coordinates $a_k$.
        past: positions of $b_k$.
        new: position of r (as an unknown: $r^2$).
    """

    along: Places
    past: Places
    new: int

    @classmethod
    def of(cls, directions: int) -> Layout:
        """The layout after that many directions."""
        first: Places = 2 + 2 * np.arange(directions, dtype=np.intp)
        return cls(first, first + 1, 2 + 2 * directions)

    @property
    def size(self) -> int:
        return self.new + 2


def equations(
    sums: Sums, z: Array, layout: Layout, ridge: float, train_bias: bool
) -> tuple[Array, Array]:
    r"""Residuals of the equations at the unknowns z, and their Jacobian."""
    new, past, kappa, square = layout.new, layout.past, float(np.exp(z[-1])), float(z[layout.new])
    r = np.sqrt(square)
    weighted = np.concatenate([[1], layout.along])
    residual, jacobian = np.zeros(layout.size), np.zeros((layout.size, layout.size))
    columns = slice(0, new + 1)
    residual[columns] = sums.f
    jacobian[columns, columns] = sums.curved
    jacobian[columns, -1] = -kappa * sums.slope_f
    residual[weighted] += ridge * z[weighted]
    jacobian[weighted, weighted] += ridge
    residual[past] -= z[past] / kappa
    jacobian[past, past] -= 1.0 / kappa
    jacobian[past, -1] += z[past] / kappa

    residual[new] = kappa**2 * sums.noise - square
    row = 2.0 * kappa**2 * sums.slope_g
    row[past] -= 2.0 * kappa * sums.g[past]
    jacobian[new, columns] = row
    change = kappa * sums.noise_change + sums.mixed
    jacobian[new, -1] = 2.0 * kappa**2 * (sums.noise + change)

    stiffness = ridge + sums.d
    residual[-1] = np.log(kappa * stiffness)
    jacobian[-1, columns] = sums.bend / stiffness
    jacobian[-1, -1] = 1.0 + kappa * sums.d_change / stiffness

    jacobian[:, new] /= 2.0 * r
    jacobian[new, new] -= 1.0
    if not train_bias:
        residual[0] = 0.0
        jacobian[0] = 0.0
        jacobian[0, 0] = 1.0
    return residual, jacobian
