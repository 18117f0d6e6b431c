"""Grids: named axes of plain values, all their combinations, and parameters that do not vary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..fields import number, whole

Value = bool | int | float | str | None | tuple[Any, ...]
Point = dict[str, Value]

MOST_POINTS = 100_000_000
"""Largest number of points of a grid; a larger one is surely a mistake."""


def linear(first: float, last: float, points: int) -> tuple[float, ...]:
    """Return equally spaced values of an axis, both ends included.

    >>> linear(0, 1, 3)
    (0.0, 0.5, 1.0)
    """
    return tuple(np.linspace(_end("from", first), _end("to", last), _count(points)).tolist())


def geometric(first: float, last: float, points: int) -> tuple[float, ...]:
    """Return values of an axis with equal ratios, both ends included.

    >>> [round(value, 12) for value in geometric(1, 8, 4)]
    [1.0, 2.0, 4.0, 8.0]
    """
    low, high = _end("from", first), _end("to", last)
    for name, end in (("from", low), ("to", high)):
        if end <= 0:
            raise InvalidInput(name, end, "both ends of a logarithmic axis must be > 0")
    return tuple(np.geomspace(low, high, _count(points)).tolist())


def _end(name: str, value: Any) -> float:
    return number(name, value, math.isfinite, "must be a finite number")


def _count(value: Any) -> int:
    accepted = f"must be a whole number from 1 to {MOST_POINTS}"
    return whole("points", value, lambda n: 1 <= n <= MOST_POINTS, accepted)


@dataclass(frozen=True)
class Grid:
    """The points of a sweep.

    Arguments:
        axes: the values of each axis, all different. An axis is one parameter, or several that vary
            together: a mapping from their names to equally many values.
        fixed: parameters with the same value at every point.

    A value is a number, a string, a boolean, None, or a tuple of these.

    >>> grid = Grid({"rho": (0.2, 0.5), "steps": (1, 2, 4)}, fixed={"delta": 1.0})
    >>> len(grid), grid.shape
    (6, (2, 3))
    >>> grid.points[0]
    {'rho': 0.2, 'steps': 1, 'delta': 1.0}
    >>> Grid({"case": {"rho": (0.2, 0.5), "steps": (1, 4)}}).points
    [{'rho': 0.2, 'steps': 1}, {'rho': 0.5, 'steps': 4}]
    """

    axes: Mapping[str, Any]
    fixed: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for axis in self.axes:
            columns = self.columns(axis)
            for name, column in columns.items():
                if name in self.fixed:
                    accepted = "must not be fixed: it is an axis"
                    raise InvalidInput(name, self.fixed[name], accepted)
                if name in seen:
                    raise InvalidInput(axis, name, "it belongs to two axes")
                seen.add(name)
                if not isinstance(column, (tuple, list)) or not column:
                    raise InvalidInput(name, column, "must be a sequence of one value or more")
                for value in column:
                    _check_plain(name, value)
            if len({len(column) for column in columns.values()}) != 1:
                accepted = "must have equally many values of each parameter"
                raise InvalidInput(axis, self.axes[axis], accepted)
            rows = self._rows(axis)
            if len(set(rows)) < len(rows):
                twice = next(row for row in rows if rows.count(row) > 1)
                shown = twice[0] if len(twice) == 1 else twice
                raise InvalidInput(axis, shown, "the values of an axis must be different")
        for name, value in self.fixed.items():
            _check_plain(name, value)
        if len(self) > MOST_POINTS:
            accepted = f"must have at most {MOST_POINTS} points"
            raise InvalidInput("axes", f"{len(self)} points", accepted)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values of each axis."""
        return tuple(len(self._rows(axis)) for axis in self.axes)

    def __len__(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def points(self) -> list[Point]:
        """The parameters of every point by name, the last axis varying fastest."""
        names = [name for axis in self.axes for name in self.columns(axis)]
        rows = product(*(self._rows(axis) for axis in self.axes))
        return [
            {**dict(zip(names, (value for part in row for value in part), strict=True)),
             **self.fixed}
            for row in rows
        ]  # fmt: skip

    def columns(self, axis: str) -> dict[str, tuple[Value, ...]]:
        """Return the values along an axis for each of its parameters."""
        values = self.axes[axis]
        return dict(values) if isinstance(values, Mapping) else {axis: values}

    def _rows(self, axis: str) -> list[tuple[Value, ...]]:
        return list(zip(*self.columns(axis).values(), strict=True))


def _check_plain(name: str, value: Any) -> None:
    if isinstance(value, tuple):
        for entry in value:
            _check_plain(name, entry)
    elif not (value is None or isinstance(value, (bool, int, float, str))):
        accepted = "must be a number, a string, True, False, None or a tuple of these"
        raise InvalidInput(name, value, accepted)
    elif isinstance(value, float) and math.isnan(value):
        raise InvalidInput(name, value, "NaN is not allowed")
