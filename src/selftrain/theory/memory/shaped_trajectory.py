"""The result for clusters with a shape whose rows are used again: what is measured of rows is that
of the rows in use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...arrays import Array
from ..shapes.trajectory import ShapedTrajectory


@dataclass(frozen=True, eq=False, repr=False)
class ShapedMemoryTrajectory(ShapedTrajectory):
    r"""A `ShapedTrajectory` with memory.

    Attributes:
        measured: of the unlabelled rows in use, over t: selected share, accuracy of labels, of
            selected labels, mean loss.
        pairs: $\beta_t\cdot\beta_s$ of all pairs of steps.
        answers: $\mathrm{tr}\,\chi_{ts}/N$.
    """

    measured: Array = field(kw_only=True)
    pairs: Array = field(kw_only=True)
    answers: Array = field(kw_only=True)

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
