"""A grid says its points, and refuses what no point can be."""

from __future__ import annotations

from typing import Any

import pytest

from selftrain import SelfTrainError
from selftrain.sweeps import Grid


def test_every_combination_once() -> None:
    grid = Grid({"a": (1, 2), "b": ("x", "y", None)}, fixed={"c": 0.5})
    assert len(grid.points) == len(grid) == 6
    assert grid.points[1] == {"a": 1, "b": "y", "c": 0.5}
    assert len({tuple(point.items()) for point in grid.points}) == 6


@pytest.mark.parametrize(
    ("axes", "fixed", "named"),
    [
        ({"a": ()}, {}, "a must be a sequence"),
        ({"a": "xyz"}, {}, "a must be a sequence"),
        ({"a": (1, 1)}, {}, "a = 1: the values of an axis must be different"),
        ({"a": (1,)}, {"a": 2}, "a must not be fixed: it is an axis, got 2"),
        ({"a": ([1],)}, {}, "a must be a number"),
        ({"a": (float("nan"),)}, {}, "a = nan"),
        ({}, {"b": {1: 2}}, "b must be a number"),
    ],
)
def test_what_is_no_grid_is_refused(
    axes: dict[str, Any], fixed: dict[str, Any], named: str
) -> None:
    with pytest.raises(SelfTrainError, match=named):
        Grid(axes, fixed)
