"""The law of the logit of a sample (two classes), given all its Gaussian numbers but the last."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .response import Binary

_ROOT_2PI = math.sqrt(2 * math.pi)


class ConditionalLogit(NamedTuple):
    """The conditional law of the logit of each sample.

    The logit is an increasing function of the field H, which is Gaussian.

    Attributes:
        center, spread: mean of H for each sample, and its standard deviation.
        loss: loss of the fit.
        target, weight: target and weight of each sample in the fit; with weight 0 the fit does not
            use the sample, and its logit is H.
        strength: decrease of the logit per unit of slope and weight.
    """

    center: Array
    spread: float
    loss: Binary
    target: Array
    weight: Array
    strength: float

    def number_at(self, u: Array) -> Array:
        """Return the last Gaussian number of each sample at which its logit is u, (points, m)."""
        pull = self.pull[:, None]
        moved = np.where(pull > 0, pull * self.loss.slope(self.target, u), 0.0)
        return np.asarray((u + moved - self.center[:, None]) / self.spread)

    def density(self, u: Array) -> Array:
        """Return the density of the logit of each sample at u, (points, m)."""
        z = self.number_at(u)
        stretch = 1.0 + self.pull[:, None] * self.loss.curvature(self.target, u)[:, :, 0]
        return np.asarray(stretch * np.exp(-0.5 * z * z) / (_ROOT_2PI * self.spread))

    @property
    def pull(self) -> Array:
        """The decrease of the logit of each sample per unit of its slope."""
        return self.strength * self.weight
