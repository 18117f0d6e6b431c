"""A linear classifier as the small-ridge theory sees it: `State`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..fields import number, whole

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["State"]


@dataclass(frozen=True)
class State:
    r"""A linear classifier as the theory sees it.

    Attributes:
        m: overlap with the cluster direction, $v \cdot w/N$.
        v: squared norm of the weights off that direction, $q - m^2$.
        bias: $B$.

    >>> State(m=0.6, v=0.64, bias=-0.1).cosine
    0.6
    """

    m: float
    v: float
    bias: float

    def __post_init__(self) -> None:
        for name in ("m", "v", "bias"):
            value = number(name, getattr(self, name), math.isfinite, "must be a finite number")
            object.__setattr__(self, name, value)
        if self.v < 0:
            raise InvalidInput("v", self.v, "must be a finite number >= 0 (q - m^2)")
        if not 1e-307 <= self.q <= 1e307:
            accepted = "must be weights that are not all zero, with m^2 + v from 1e-307 to 1e307"
            raise InvalidInput("m, v", (self.m, self.v), accepted)

    @classmethod
    def at(cls, trajectory: Trajectory, t: int) -> State:
        """The state after step t of a solved run."""
        good = trajectory.good_steps
        accepted = f"must be a solved step, from 0 to {good - 1}"
        t = whole("t", t, lambda n: 0 <= n < good, accepted)
        values = (trajectory.m[t], trajectory.v[t], trajectory.bias[t])
        return cls(*(float(value) for value in values))

    @property
    def q(self) -> float:
        """Squared norm of the weights."""
        return self.m * self.m + self.v

    @property
    def norm(self) -> float:
        r"""$\omega = \sqrt q$."""
        return math.hypot(self.m, math.sqrt(self.v))

    @property
    def cosine(self) -> float:
        r"""$\mu = m/\sqrt q$."""
        return self.m / self.norm

    @property
    def misalignment(self) -> float:
        r"""$\nu^2 = v/q = 1 - M$, to full relative accuracy."""
        return (math.sqrt(self.v) / self.norm) ** 2
