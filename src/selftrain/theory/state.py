"""A linear classifier as the small-ridge theory sees it: `State`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidInput
from ..fields import number

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
        for name, accepts, accepted in _FIELDS:
            object.__setattr__(self, name, number(name, getattr(self, name), accepts, accepted))
        if not 1e-307 <= self.q <= 1e307:
            accepted = (
                "weights that are not all zero, with m^2 + v from 1e-307 to 1e307, are accepted"
            )
            raise InvalidInput("m, v", (self.m, self.v), accepted)

    @classmethod
    def at(cls, trajectory: Trajectory, t: int) -> State:
        """The state after step t of a solved run."""
        whole = isinstance(t, (int, np.integer)) and not isinstance(t, bool)
        if not whole or not 0 <= t < trajectory.good_steps:
            accepted = f"a solved step, from 0 to {trajectory.good_steps - 1}"
            raise InvalidInput("t", t, accepted)
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


def _finite(value: float) -> bool:
    return math.isfinite(value)


_FIELDS: tuple[tuple[str, Any, str], ...] = (
    ("m", _finite, "a finite number is accepted"),
    ("v", lambda value: 0 <= value < math.inf, "a finite number >= 0 is accepted (q - m^2)"),
    ("bias", _finite, "a finite number is accepted"),
)
