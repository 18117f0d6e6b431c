"""The result for clusters with a shape whose rows are used again: what is measured of rows is that
of the rows in use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ..shapes.trajectory import ShapedTrajectory

if TYPE_CHECKING:
    import xarray as xr

    from ...problem import Problem
    from .row_law import RowLaw

_STORED = {
    "measured": ("measure", "t"),
    "pairs": ("t", "step"),
    "answers": ("t", "step"),
    "logit_overlaps": ("t", "class", "step"),
    "kicks": ("t", "class", "step"),
}
"""Fields that a file has as they are, with their dimensions."""


@dataclass(frozen=True, eq=False, repr=False)
class ShapedMemoryTrajectory(ShapedTrajectory):
    r"""A `ShapedTrajectory` with memory.

    Attributes:
        measured: of the unlabelled rows in use, over t: selected share, accuracy of labels, of
            selected labels, mean loss.
        pairs: $\beta_t\cdot\beta_s$ of all pairs of steps.
        answers: $\mathrm{tr}\,\chi_{ts}/N$.
        logit_overlaps: $\beta_t^T\Sigma_c\beta_s$ of both classes, how the logits of new rows
            vary together.
        kicks: $\mathrm{tr}(\Sigma_c\chi_{ts})/N$, how far a row's part in step s moves its
            logit of step t.
    """

    measured: Array = field(kw_only=True)
    pairs: Array = field(kw_only=True)
    answers: Array = field(kw_only=True)
    logit_overlaps: Array = field(kw_only=True)
    kicks: Array = field(kw_only=True)

    def training_logits(self, t: int = -1, samples: str | None = None) -> RowLaw:
        """The law of the training logits of step t; see `Trajectory.training_logits`."""
        from .shaped_laws import ShapedRowLogitLaw

        return ShapedRowLogitLaw(self, t, samples)

    @property
    def fraction_selected(self) -> Array:
        """Share of the batch that the threshold keeps (NaN at t = 0)."""
        return np.array(self.measured[0])

    @property
    def pseudo_label_accuracy(self) -> Array:
        """Agreement of all pseudo-labels of step t with the truth (NaN at t = 0)."""
        return np.array(self.measured[1])

    @property
    def selected_label_accuracy(self) -> Array:
        """Agreement of the selected pseudo-labels of step t with the truth (NaN at t = 0)."""
        return np.array(self.measured[2])

    @cached_property
    def train_loss(self) -> Array:
        """Mean loss of a training point that was selected, at the minimum; of the unlabelled rows
        from step 1 on.
        """
        return np.array(self.measured[3])

    @property
    def overlaps(self) -> Array:
        r"""$\beta_t\cdot\beta_s$ of all pairs of steps, shape (T+1, T+1)."""
        return self.pairs

    @property
    def response(self) -> Array:
        r"""$\mathrm{tr}\,\chi_{ts}/N$: how the weights of step t answer a field on those of step s;
        lower triangular.
        """
        return self.answers

    @cached_property
    def accuracy(self) -> Array:
        """Relative accuracy of the state after each step: each bank goes through all steps, so what
        the banks differ by is what was carried.
        """
        return np.fmax.accumulate(self.stats.accuracy) + 0.0 * self.m

    def parts(self) -> list[xr.Dataset]:
        """What a file of this run has beyond its quantities over t."""
        import xarray as xr

        memory = {f"shape_{name}": (dims, getattr(self, name)) for name, dims in _STORED.items()}
        return [*super().parts(), xr.Dataset(memory)]

    @classmethod
    def from_parts(cls, data: xr.Dataset, problem: Problem) -> dict[str, Any]:
        """The fields that `parts` stored."""
        memory = {name: data[f"shape_{name}"].values.astype(float) for name in _STORED}
        return super().from_parts(data, problem) | memory
