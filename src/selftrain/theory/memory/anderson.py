"""Anderson's acceleration of a fixed point in few unknowns: the best combination of the last
answers of the map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...arrays import Array

WINDOW = 8
"""Earlier answers that are combined; more are rounding."""

REGULAR = 1e-10
"""Weight of the combination itself in its least squares, relative to the largest column."""

FIRST_SHARE = 0.5
"""How far the first steps go towards the answer of the map."""


class FixedPoint(NamedTuple):
    """A point, how far the map moves it (relative), and how often the map was evaluated."""

    x: Array
    residual: float
    evaluations: int


def fixed_point(
    map_: Callable[[Array], Array],
    scale: Callable[[Array], Array],
    start: Array,
    tolerance: float,
    limit: int,
    window: int = WINDOW,
) -> FixedPoint:
    """Follow a map to its fixed point.

    Arguments:
        map_: the map; an answer that is not finite ends the search.
        scale: what counts as a change of size one, at a point.
        window: 0: plain damped substitution (Picard), for comparison.

    >>> found = fixed_point(lambda x: np.cos(x), np.ones_like, np.array([1.0]), 1e-12, 100)
    >>> round(float(found.x[0]), 10), found.evaluations < 15
    (0.7390851332, True)
    """
    x = start.copy()
    points: list[Array] = []
    moves: list[Array] = []
    best = FixedPoint(x, np.inf, 0)
    for evaluations in range(1, limit + 1):
        move = map_(x) - x
        unit = scale(x)
        residual = float(np.abs(move / unit).max())
        if not np.isfinite(residual):
            break
        if residual < best.residual:
            best = FixedPoint(x, residual, evaluations)
        if residual <= tolerance:
            return FixedPoint(x + move, residual, evaluations)
        points.append(x)
        moves.append(move)
        x = _combined(points[-window - 1 :], moves[-window - 1 :], unit)
    return FixedPoint(best.x, best.residual if best.evaluations else np.inf, limit)


def _combined(points: list[Array], moves: list[Array], unit: Array) -> Array:
    """The next point: the combination of the last ones that the map would move least, and a share
    of that move.
    """
    share = FIRST_SHARE if len(moves) < 4 else 1.0
    x, move = points[-1], moves[-1]
    if len(points) == 1:
        return np.asarray(x + share * move)
    steps = np.array([x - other for other in points[:-1]]).T
    changes = np.array([move - other for other in moves[:-1]]).T / unit[:, None]
    size = np.linalg.norm(changes, axis=0)
    size[size == 0] = 1.0
    system = np.vstack([changes / size, REGULAR * np.eye(size.size)])
    right = np.concatenate([move / unit, np.zeros(size.size)])
    weights = np.linalg.lstsq(system, right, rcond=None)[0] / size
    fitted = changes @ weights * unit
    return np.asarray(x - steps @ weights + share * (move - fitted))
