r"""Rows of a linear problem, exactly: squared loss, soft labels, no selection.

Every number of a row is then an affine function of its sign s and its Gaussian noise, so it is kept
as its coefficients on $(1, s, z_v, z_0, z_1, \ldots)$ and averages are products with the moments
$E[1] = E[s^2] = E[z^2] = 1$, $E[s] = 2\rho - 1$. The equations and their solution are those of any
other loss (`sums`, `step`); no bank is drawn and nothing is estimated.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ...losses import Loss
from ...rows import RowGroup
from .process import Labels, Path, coefficients_of, field_of
from .sums import Layout, Sums


class Linear:
    """A group of rows as coefficients; the methods are those of `process.Returning`."""

    def __init__(self, group: RowGroup, loss: Loss, path: Path):
        self.group, self.loss = group, loss
        steps = len(group.weights)
        size = 3 + steps
        self.moments = np.eye(size)
        self.moments[0, 1] = self.moments[1, 0] = 2 * group.rho - 1
        self._root = math.sqrt(group.delta)
        self.columns = np.zeros((size, 4 + 2 * steps), order="F")
        self.columns[0, 0] = 1.0
        self.columns[1, 1], self.columns[2, 1] = 1.0, self._root
        for place, k in enumerate(path.live):
            self.columns[3 + k, 2 + 2 * place] = self._root
        first = group.steps[0]
        self.logits = np.zeros(size)
        if first > 0:
            self.logits = self.columns[:, : 2 + 2 * len(path.live)] @ field_of(path, first - 1)
        self.target, self.slope, self.weight = np.zeros(size), np.zeros(size), 0.0

    def set_targets(self, t: int, labels: Labels | None) -> None:
        """Targets of step t: the class, or the sharpened logit."""
        self.weight = self.group.weights[t]
        if self.group.labeled or labels is None:
            self.target = np.zeros(self.logits.size)
            self.target[1] = 1.0
        else:
            self.target = labels.sharpness * self.logits

    def begin(self, t: int, layout: Layout) -> None:
        """Put the fresh noise of step t into its column."""
        self.columns[:, layout.new] = 0.0
        self.columns[3 + t, layout.new] = self._root

    def sum(self, sums: Sums, z: Array, layout: Layout) -> None:
        """Add the averages at the unknowns z."""
        lin, past = coefficients_of(z, layout)
        kappa, delta, alpha = float(np.exp(z[-1])), self.group.delta, self.group.alpha
        y = self.columns[:, : layout.new + 1]
        d = self.weight / (1.0 + delta * kappa * self.weight)
        f = d * (y @ lin - self.target)
        g = f - y @ past / (kappa * delta)
        project = alpha * y.T @ self.moments
        along_f, along_g = project @ f, project @ g
        sums.f += along_f
        sums.slope_f += delta * d * along_f
        sums.slope_g += delta * d * along_g
        sums.g += along_g
        sums.curved += d * project @ y
        sums.d += alpha * delta * d
        sums.d_change -= alpha * delta**2 * d * d
        sums.noise += alpha * delta * float(g @ self.moments @ g)
        sums.noise_change -= alpha * delta**2 * d * float(f @ self.moments @ g)
        sums.mixed += alpha * delta * float(g @ self.moments @ (f - g))

    def finish(self, z: Array, layout: Layout, lives: bool) -> None:
        """Take the solution of the step."""
        lin, past = coefficients_of(z, layout)
        kappa, delta = float(np.exp(z[-1])), self.group.delta
        y = self.columns[:, : layout.new + 1]
        d = self.weight / (1.0 + delta * kappa * self.weight)
        self.slope = d * (y @ lin - self.target)
        self.logits = y @ lin - delta * kappa * self.slope
        if lives:
            size = math.sqrt(z[layout.new]) / kappa
            self.columns[:, layout.new + 1] = (delta * self.slope - y @ past / kappa) / size

    def cross(self, layout: Layout) -> Array:
        r"""$\alpha\Delta E[\varphi_t\varphi_k]$ with the earlier directions, then with itself."""
        new = self.group.alpha / self.group.delta * self.moments @ self.columns[:, layout.new + 1]
        places = np.append(layout.past, layout.new + 1)
        return np.asarray(new @ self.columns[:, places])

    def settle(self, layout: Layout, overlap: Array, norm: float) -> None:
        """Make the new reaction orthogonal to the earlier ones, and enter it."""
        new = layout.new
        reaction = (self.columns[:, new + 1] - self.columns[:, layout.past] @ overlap) / norm
        self.columns[:, new] -= reaction
        self.columns[:, new + 1] = reaction

    def start_sums(self, layout: Layout) -> tuple[Array, float]:
        r"""Of the slopes at the present logits: averages with the past reactions, and of their
        square with $\Delta$.
        """
        slope = self.weight * (self.logits - self.target)
        weighted = self.group.alpha * self.moments @ slope
        return weighted @ self.columns[:, layout.past], self.group.delta * float(weighted @ slope)

    def gram(self, directions: int) -> Array:
        r"""$\alpha\Delta E[\varphi_j\varphi_k]$ of these rows."""
        past = self.columns[:, Layout.of(directions).past]
        share = self.group.alpha / self.group.delta
        return np.asarray(share * past.T @ self.moments @ past)

    @property
    def signal(self) -> float:
        r"""$-\alpha E[s f]$."""
        return -self.group.alpha * float(self.moments[1] @ self.slope)

    def quality(self) -> tuple[float, float, float, float]:
        """Rows, selected rows, right labels, right and selected labels, per feature."""
        spread = float(np.linalg.norm(self.logits[2:]))
        right = 0.0
        for sign, share in ((1.0, self.group.rho), (-1.0, 1 - self.group.rho)):
            mean = float(self.logits[0] + sign * self.logits[1])
            right += share * float(ndtr(sign * mean / spread))
        alpha = self.group.alpha
        return alpha, alpha, alpha * right, alpha * right

    def label_mass(self) -> tuple[float, float, float]:
        """Soft labels of a regression carry both classes: no mass is missing."""
        return self.group.alpha, self.group.alpha, self.group.alpha

    def loss_sums(self) -> tuple[float, float]:
        """Rows per feature, and the sum of their losses."""
        rest = self.logits - self.target
        return self.group.alpha, 0.5 * self.group.alpha * float(rest @ self.moments @ rest)
