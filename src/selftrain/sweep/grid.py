"""Which points: named axes of plain values, every combination of them, and what they all share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ..errors import InvalidInput
from ..fields import number

__all__ = ["Grid", "geometric", "linear"]

Value = bool | int | float | str | None | tuple[Any, ...]
Point = dict[str, Value]

MOST_POINTS = 100_000_000
"""Points of a grid: more than any machine computes, few enough to be counted."""


def linear(first: float, last: float, points: int) -> tuple[float, ...]:
    """Values of an axis with equal differences, both ends included.

    >>> linear(0, 1, 3)
    (0.0, 0.5, 1.0)
    """
    low, high = (_end(name, end) for name, end in (("from", first), ("to", last)))
    return tuple(np.linspace(low, high, _count(points)).tolist())


def geometric(first: float, last: float, points: int) -> tuple[float, ...]:
    """Values of an axis with equal ratios, both ends included.

    >>> [round(value, 12) for value in geometric(1, 8, 4)]
    [1.0, 2.0, 4.0, 8.0]
    """
    low, high = (_end(name, end) for name, end in (("from", first), ("to", last)))
    for name, end in (("from", low), ("to", high)):
        if end <= 0:
            raise InvalidInput(name, end, "the ends of a logarithmic axis are numbers > 0")
    return tuple(np.geomspace(low, high, _count(points)).tolist())


def _end(name: str, value: Any) -> float:
    return number(name, value, math.isfinite, "a finite number is accepted")


def _count(value: Any) -> int:
    accepted = f"a whole number from 1 to {MOST_POINTS} is accepted"
    return int(number("points", value, lambda n: 1 <= n <= MOST_POINTS and n % 1 == 0, accepted))


@dataclass(frozen=True)
class Grid:
    """The points of a sweep.

    Arguments:
        axes: for each axis the values it takes, different from each other. An axis is a parameter,
            or several that vary together: then it is a mapping of their names to as many values
            each.
        fixed: parameters with the same value at every point.

    A value is a number, a string, a truth value, None, or a tuple of these.

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
        seen = list(self.fixed)
        for name, values in self.axes.items():
            for parameter, column in _columns(name, values).items():
                if parameter in self.fixed:
                    raise InvalidInput(
                        parameter, self.fixed[parameter], "it is an axis, and fixed as well"
                    )
                if parameter in seen:
                    raise InvalidInput(name, parameter, "it belongs to another axis, too")
                seen.append(parameter)
                _check_column(parameter, column)
            if len({len(column) for column in _columns(name, values).values()}) != 1:
                accepted = "parameters that vary together need as many values each"
                raise InvalidInput(name, values, accepted)
            rows = _rows(name, values)
            if len(set(rows)) < len(rows):
                twice = next(row for row in rows if rows.count(row) > 1)
                shown = twice[0] if len(twice) == 1 else twice
                raise InvalidInput(name, shown, "the values of an axis are all different")
        for name, value in self.fixed.items():
            _plain(name, value)
        if len(self) > MOST_POINTS:
            raise InvalidInput("axes", f"{len(self)} points", f"{MOST_POINTS} points are accepted")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(_rows(name, values)) for name, values in self.axes.items())

    def __len__(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def points(self) -> list[Point]:
        """Keyword parameters of every point, the last axis varying fastest."""
        names = [tuple(_columns(name, values)) for name, values in self.axes.items()]
        rows = [_rows(name, values) for name, values in self.axes.items()]
        points = []
        for chosen in product(*rows):
            point: Point = {}
            for parameters, row in zip(names, chosen, strict=True):
                point.update(zip(parameters, row, strict=True))
            points.append({**point, **self.fixed})
        return points

    def columns(self, axis: str) -> dict[str, tuple[Value, ...]]:
        """The parameters of an axis with their values: one, unless several vary together."""
        return _columns(axis, self.axes[axis])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a record."""
        return {
            "axes": {
                name: {key: list(column) for key, column in values.items()}
                if isinstance(values, Mapping)
                else list(values)
                for name, values in self.axes.items()
            },
            "fixed": dict(self.fixed),
        }


def _columns(name: str, values: Any) -> dict[str, tuple[Value, ...]]:
    if isinstance(values, Mapping):
        return {str(key): column for key, column in values.items()}
    return {name: values}


def _rows(name: str, values: Any) -> list[tuple[Value, ...]]:
    return list(zip(*_columns(name, values).values(), strict=True))


def _check_column(name: str, values: Any) -> None:
    if not isinstance(values, (tuple, list)) or not values:
        raise InvalidInput(name, values, "an axis is a sequence of one value or more")
    for value in values:
        _plain(name, value)


def _plain(name: str, value: Any) -> None:
    if isinstance(value, tuple):
        for entry in value:
            _plain(name, entry)
    elif not (value is None or isinstance(value, (bool, int, float, str))):
        accepted = "a number, a string, True, False, None or a tuple of these is accepted"
        raise InvalidInput(name, value, accepted)
    elif isinstance(value, float) and math.isnan(value):
        raise InvalidInput(name, value, "a value equal to itself is needed")
