"""User-defined losses for random problems: the logistic one in other units, and Huber's."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit


class Steep:
    """The logistic loss in other units, l(k x)/k."""

    classes = (0.0, 1.0)
    kinks = ()

    def __init__(self, k: float) -> None:
        self.k, self.name = k, f"steep {k:g}"

    def link(self, logit: Any) -> Any:
        return expit(self.k * np.asarray(logit))

    def value(self, target: Any, logit: Any) -> Any:
        up, down = (np.logaddexp(0.0, side * self.k * logit) for side in (1, -1))
        return ((1 - target) * up + target * down) / self.k

    def slope(self, target: Any, logit: Any) -> Any:
        x = self.k * logit
        return (1 - target) * expit(x) - target * expit(-x)

    def curvature(self, target: Any, logit: Any) -> Any:
        x = self.k * logit
        return self.k * expit(x) * expit(-x) + 0 * target

    def third(self, target: Any, logit: Any) -> Any:
        return -self.k * np.tanh(0.5 * self.k * logit) * self.curvature(target, logit)


class Huber:
    """Half the squared distance to the target up to a width, linear beyond: its kinks move with the
    target.
    """

    classes = (-1.0, 1.0)

    def __init__(self, width: float) -> None:
        self.width, self.name = width, f"huber {width:g}"

    def kinks(self, target: Any) -> Any:
        return target - self.width, target + self.width

    def link(self, logit: Any) -> Any:
        return np.asarray(logit, dtype=float)

    def value(self, target: Any, logit: Any) -> Any:
        off = np.abs(np.asarray(logit) - target)
        return np.where(off < self.width, 0.5 * off**2, self.width * (off - 0.5 * self.width))

    def slope(self, target: Any, logit: Any) -> Any:
        return np.clip(np.asarray(logit) - target, -self.width, self.width)

    def curvature(self, target: Any, logit: Any) -> Any:
        return 1.0 * (np.abs(np.asarray(logit) - target) < self.width)

    def third(self, target: Any, logit: Any) -> Any:
        return np.zeros(np.broadcast(target, logit).shape)
