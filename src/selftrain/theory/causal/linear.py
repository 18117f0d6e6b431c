"""Samples of a linear problem (squared loss, soft labels, no selection): averages are exact."""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...confusion import class_probabilities
from ...protocol import PseudoLabels, SampleGroup, Use
from .cells import Cell, CellAverages, Kind
from .response import EngineLoss


class LinearCell(Cell):
    """A cell whose logits are linear in its Gaussian numbers: coefficients on (1, z) for points."""

    def __init__(
        self, group: SampleGroup, loss: EngineLoss, kind: Kind, seen: tuple[int, ...]
    ) -> None:
        self._describe(group, loss, kind, seen)
        size = 1 + self.components * len(seen)
        self.weights = np.ones(size)
        self._noise = np.eye(size)[:, 1:]
        self._allocate(size)
        self.columns[1:, 0] = 0.0
        self._factor = 0.0

    def label(self, use: Use, loss: EngineLoss, edge: float) -> None:
        """Set the target: the class, the sharpened logit, or a mixture of both."""
        self.use, self.loss, self._factor = use, loss, use.weight + use.given
        given = np.zeros((self.points, self.components))
        given[0] = loss.codes[self.given]
        self.target = given
        if use.labels is not None:
            self.target = self.made = use.labels.sharpness * self.logits[use.labels.teacher]
            if use.given > 0:
                self.target = (use.weight * self.made + use.given * given) / self._factor

    def averages(self, theta: Array, strength: Array, slopes: bool) -> CellAverages:
        """Return the averages, exactly; the derivative D is one matrix."""
        y, d = self.columns[:, : theta.shape[1]], self.components
        stiffness = self.start_stiffness(strength)
        field = y @ theta.T
        self.f[:] = (field - self.target) @ stiffness.T
        self.u[:] = field - self.f @ strength.T
        along, square = self.f.T @ y, self.f.T @ self.f
        if not slopes:
            return CellAverages(along, square, stiffness)
        outer = stiffness[:, :, None, None]
        cubes = np.zeros((d, d, d))
        return CellAverages(
            along, square, stiffness, outer * (y.T @ y), outer * along,
            cubes[..., None] * along[0], outer * square, cubes[..., None] * square[0],
            outer * stiffness,
        )  # fmt: skip

    def start_averages(self, theta: Array) -> tuple[Array, Array]:
        """Return $E[f y]$ and $E[f f]$ of the slopes at logits that are not fitted yet."""
        y = self.columns[:, : theta.shape[1]]
        f = self._factor * (y @ theta.T - self.target)
        return f.T @ y, f.T @ f

    def start_stiffness(self, strength: Array) -> Array:
        """Return $E[D]$, for a strength."""
        one = np.eye(self.components)
        return np.asarray(self._factor * np.linalg.inv(one + self._factor * strength))

    def quality(self, made: PseudoLabels) -> tuple[float, float, float, float]:
        """Return samples, selected ones, right labels, right and selected labels, per feature."""
        mean, *spread = self.logits[made.teacher]
        noise = np.array(spread)
        chances = class_probabilities(self.loss.basis, mean, noise.T @ noise)
        right = self.share * float(chances[self.kind])
        return self.share, self.share, right, right

    def label_mass(self) -> Array:
        """Soft labels of a regression carry all classes: no mass is missing."""
        return np.full(self.loss.classes, self.share)

    def loss_sums(self, given: bool) -> tuple[float, float]:
        """Return the samples per feature, and the sum of their losses with given or made labels."""
        target = self.made
        if given:
            target = np.zeros_like(self.u)
            target[0] = self.loss.codes[self.given]
        rest = self.u - target
        return self.share, 0.5 * self.share * float((rest**2).sum())
