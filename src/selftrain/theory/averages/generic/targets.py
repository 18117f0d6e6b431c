"""The label of a step as a function of the logit, and how it moves with logit and sharpness, for
any labeler.

Derivatives are differences, taken from the side on which no jump of the label passes over a point.
"""

from __future__ import annotations

import math

import numpy as np

from ....arrays import Array
from ....errors import InvalidInput
from ....labelers import Labeler
from ....losses import Loss
from .noise import DIFFERENCE


class Targets:
    """The labels that a labeler gives at one sharpness, for one loss."""

    def __init__(self, labeler: Labeler, loss: Loss, sharpness: float):
        self.labeler, self.loss, self.sharpness = labeler, loss, sharpness

    @property
    def jumps(self) -> tuple[float, ...]:
        """Logits at which the label jumps."""
        return tuple(self.labeler.jumps(self.sharpness))

    def at(self, logit: Array, sharpness: float | None = None) -> Array:
        """The labels at these logits, at this sharpness or another."""
        gamma = self.sharpness if sharpness is None else sharpness
        return np.asarray(self.labeler.target(logit, gamma, self.loss), dtype=float)

    def slopes(self, logit: Array) -> tuple[Array, Array]:
        """Derivatives of the target in the logit and in the sharpness, by central differences."""
        if math.isinf(self.sharpness):
            step = DIFFERENCE
            by_sharpness = np.zeros(logit.size)
        else:
            step = DIFFERENCE / max(1.0, self.sharpness)
            by_sharpness = self._by_sharpness(logit)
        steps = np.full(logit.size, step)
        for jump in self.jumps:
            steps = np.minimum(steps, 0.5 * np.abs(logit - jump))
        by_logit = (self.at(logit + steps) - self.at(logit - steps)) / (2 * steps)
        return by_logit, by_sharpness

    def _by_sharpness(self, logit: Array) -> Array:
        """The derivative of the target in the sharpness, from the side on which no jump passes over
        a point.
        """
        gamma, change = self.sharpness, DIFFERENCE * self.sharpness
        here = self.at(logit)
        up = (self.at(logit, gamma + change) - here) / change
        down = (here - self.at(logit, gamma - change)) / change
        slope = 0.5 * (up + down)
        now, after, before = (self._jumps_at(gamma + side * change) for side in (0.0, 1.0, -1.0))
        for at, above, below in zip(now, after, before, strict=True):
            slope = np.where((logit > at) != (logit > above), down, slope)
            slope = np.where((logit > at) != (logit > below), up, slope)
        return slope

    def _jumps_at(self, sharpness: float) -> Array:
        """Where the label jumps; as many places as at the sharpness of the step."""
        jumps = np.array(self.labeler.jumps(sharpness), dtype=float)
        if jumps.size != len(self.jumps):
            accepted = "for a gradient the number of its jumps may not change with the sharpness"
            raise InvalidInput("labeler", self.labeler.name, accepted)
        return jumps

    def jump_slopes(self) -> Array:
        """Derivatives of the places where the label jumps in the sharpness."""
        if math.isinf(self.sharpness):
            return np.zeros(len(self.jumps))
        change = DIFFERENCE * self.sharpness
        after, before = (self._jumps_at(self.sharpness + side * change) for side in (1.0, -1.0))
        slopes: Array = (after - before) / (2 * change)
        return slopes
