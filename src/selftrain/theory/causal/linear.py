"""Samples of a linear problem (squared loss, soft labels, no selection): averages are exact."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ...losses import Loss
from ...protocol import SampleGroup, Use
from .cells import Cell, CellAverages


class LinearCell(Cell):
    """A cell whose logits are linear in its Gaussian numbers: coefficients on (1, z) for points."""

    def __init__(self, group: SampleGroup, loss: Loss, kind: int, seen: tuple[int, ...]) -> None:
        self.group, self.loss, self.kind, self.seen = group, loss, kind, seen
        self.share = group.alpha * group.proportions[kind]
        size = 1 + len(seen)
        self.weights = np.ones(size)
        self._noise = np.eye(size)[:, 1:]
        self._allocate(size)
        self.columns[1:, 0] = 0.0
        self._factor = 0.0

    def label(self, t: int, use: Use, edge: float) -> None:
        """Set the target: the class, or the sharpened logit."""
        self._factor = use.weight
        self.target = np.zeros(self.points)
        if use.labels is None:
            self.target[0] = self.loss.classes[self.kind]
        else:
            self.target = use.labels.sharpness * self.logits[use.labels.teacher]

    def averages(self, theta: Array, strength: Array, slopes: bool) -> CellAverages:
        """Return the averages, exactly; the derivative D is one number."""
        y = self.columns[:, : theta.shape[1]]
        field = y @ theta[0]
        stiffness = self._factor / (1.0 + float(strength[0, 0]) * self._factor)
        f = stiffness * (field - self.target)
        self.answer.f[:, 0] = f
        self.answer.u[:, 0] = field - float(strength[0, 0]) * f
        along, square = (f @ y)[None, :], np.full((1, 1), f @ f)
        d, one = np.full((1, 1), stiffness), np.ones((1, 1, 1, 1))
        if not slopes:
            return CellAverages(along, square, d)
        return CellAverages(
            along, square, d,
            stiffness * (y.T @ y)[None, None], stiffness * along[None, None],
            0.0 * along[None, None], stiffness * square * one, 0.0 * one, stiffness**2 * one,
        )  # fmt: skip

    def start_averages(self, theta: Array) -> tuple[Array, Array]:
        """Return $E[f y]$ and $E[f f]$ of the slopes at logits that are not fitted yet."""
        y = self.columns[:, : theta.shape[1]]
        f = self._factor * (y @ theta[0] - self.target)
        return (f @ y)[None], np.full((1, 1), f @ f)

    def start_stiffness(self, strength: Array) -> Array:
        """Return $E[D]$, for a strength."""
        return np.full((1, 1), self._factor / (1.0 + float(strength[0, 0]) * self._factor))

    def quality(self, teacher: int) -> tuple[float, float, float, float]:
        """Return samples, selected ones, right labels, right and selected labels, per feature."""
        logits = self.logits[teacher]
        side = 1.0 if self.kind else -1.0
        right = self.share * float(ndtr(side * logits[0] / np.linalg.norm(logits[1:])))
        return self.share, self.share, right, right

    def label_mass(self) -> tuple[float, float, float]:
        """Soft labels of a regression carry both classes: no mass is missing."""
        return self.share, self.share, self.share

    def loss_sums(self) -> tuple[float, float]:
        """Return the samples per feature, and the sum of their losses."""
        rest = self.answer.u[:, 0] - self.target
        return self.share, 0.5 * self.share * float(rest @ rest)
