"""The compiled averages of a step as its equations ask for them."""

from __future__ import annotations

from typing import Any

from ...arrays import Array
from .batch import At, Batch, Labelling, Room, batch_averages
from .record import Extra
from .without_weights import explicit_start


class CompiledAverages:
    """Logistic or squared loss, soft, hard or given labels.

    Arguments:
        labels: the labelling model (of zeros at step 0).
        batch: the samples.
        room: where averages are put; shared by the steps of a run.
    """

    def __init__(self, labels: Labelling, batch: Batch, room: Room):
        self.labels, self.batch, self.room = labels, batch, room

    def at(self, at: At, exponent: float, with_loss: bool = False) -> tuple[Any, int] | None:
        """See `step.stage.Averages`."""
        extra = Extra(loss=True, labels=False) if with_loss else None
        used = batch_averages(at, self.labels, self.batch, exponent, extra, self.room)
        return (self.room.moments, used) if used > 0 else None

    def start(self, fixed_bias: float, x: Array) -> float:
        """See `step.stage.Averages`."""
        return float(explicit_start(self.labels, self.batch, fixed_bias, self.room, x))
