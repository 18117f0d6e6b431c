"""Which points: named axes of plain values, every combination of them, and what they all share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ..errors import InvalidInput

Value = bool | int | float | str | None | tuple[Any, ...]
Point = dict[str, Value]


@dataclass(frozen=True)
class Grid:
    """The points of a sweep.

    Arguments:
        axes: for each varied parameter the values it takes, different from each other.
        fixed: parameters with the same value at every point.

    A value is a number, a string, a truth value, None, or a tuple of these.

    >>> grid = Grid({"rho": (0.2, 0.5), "steps": (1, 2, 4)}, fixed={"delta": 1.0})
    >>> len(grid), grid.shape
    (6, (2, 3))
    >>> grid.points[0]
    {'rho': 0.2, 'steps': 1, 'delta': 1.0}
    """

    axes: Mapping[str, tuple[Value, ...]]
    fixed: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in self.axes.items():
            if name in self.fixed:
                raise InvalidInput(name, self.fixed[name], "it is an axis, and fixed as well")
            if isinstance(values, str) or not isinstance(values, (tuple, list)) or not values:
                raise InvalidInput(name, values, "an axis is a sequence of one value or more")
            seen: list[Value] = []
            for value in values:
                _plain(name, value)
                if value in seen:
                    raise InvalidInput(name, value, "the values of an axis are all different")
                seen.append(value)
        for name, value in self.fixed.items():
            _plain(name, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(values) for values in self.axes.values())

    def __len__(self) -> int:
        return math.prod(self.shape)

    @property
    def points(self) -> list[Point]:
        """Keyword parameters of every point, the last axis varying fastest."""
        return [
            {**dict(zip(self.axes, values, strict=True)), **self.fixed}
            for values in product(*self.axes.values())
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a record."""
        return {
            "axes": {name: list(values) for name, values in self.axes.items()},
            "fixed": dict(self.fixed),
        }


def _plain(name: str, value: Any) -> None:
    if isinstance(value, tuple):
        for entry in value:
            _plain(name, entry)
    elif not (value is None or isinstance(value, (bool, int, float, str))):
        accepted = "a number, a string, True, False, None or a tuple of these is accepted"
        raise InvalidInput(name, value, accepted)
    elif isinstance(value, float) and math.isnan(value):
        raise InvalidInput(name, value, "a value equal to itself is needed")
