"""Integrals of many steep functions at once, by halving panels until two estimates agree.

The laws of the logits need, for every point of a plot, an integral whose integrand changes steeply
in a narrow layer, with its own position and width. The caller gives edges that mark the layers (see
`graded`); the panels between them are refined where the 16-point Gauss-Legendre rule has not
converged, for all integrals together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ....arrays import Array
from ....errors import SelfTrainError

Index = NDArray[np.intp]

_X, _W = np.polynomial.legendre.leggauss(16)
_HALVINGS = 40
_MOST_PANELS = 1_000_000


def integrate(
    function: Callable[[Index, Array], Array], rows: Index, edges: Array, tolerance: Array
) -> Array:
    """Return one integral for each row, from its smallest to its largest edge.

    Arguments:
        function: integrand; called with row indices, shape (n, 1), and abscissas, shape (n, 16).
        rows, edges: flat arrays: `edges[i]` is an edge of integral `rows[i]`, in any order.
        tolerance: absolute error allowed on a panel, one number per row.

    >>> edges = np.array([0.0, 1.0, 0.0, 1.0])
    >>> integrate(lambda row, x: x ** (1 + row), np.array([0, 0, 1, 1]), edges, np.full(2, 1e-12))
    array([0.5       , 0.33333333])
    """
    result = np.zeros(tolerance.shape)
    order = np.lexsort((edges, rows))
    rows, edges = rows[order], edges[order]
    panels = (rows[1:] == rows[:-1]) & (edges[1:] > edges[:-1])
    row, low, high = rows[1:][panels], edges[:-1][panels], edges[1:][panels]
    coarse = _rule(function, row, low, high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        left, right = _rule(function, row, low, middle), _rule(function, row, middle, high)
        done = np.abs(left + right - coarse) <= tolerance[row]
        np.add.at(result, row[done], (left + right)[done])
        if done.all():
            return result
        split = ~done
        if 2 * int(split.sum()) > _MOST_PANELS:
            raise SelfTrainError(
                f"an integral over the logits did not settle with {_MOST_PANELS} panels"
            )
        row = np.tile(row[split], 2)
        low, high = np.append(low[split], middle[split]), np.append(middle[split], high[split])
        coarse = np.append(left[split], right[split])
    np.add.at(result, row, coarse)
    return result


def graded(center: Array, left: Array, right: Array, reach: Array) -> Array:
    """Return edges around each center, at distances `left` and `right` times 1, 6, 36, ... up to
    `reach`.

    The result has one row per center. A function that changes over these widths around the center
    is smooth on every panel between the edges.
    """
    narrowest = min(float(left.min(initial=1.0)), float(right.min(initial=1.0)))
    count = int(np.ceil(np.log(float(reach.max(initial=1.0)) / narrowest) / np.log(6.0))) + 1
    powers = 6.0 ** np.arange(count)
    sides = (center[:, None] - left[:, None] * powers, center[:, None] + right[:, None] * powers)
    return np.concatenate([center[:, None], *sides], axis=1)


def _rule(function: Callable[[Index, Array], Array], row: Index, low: Array, high: Array) -> Array:
    half = 0.5 * (high - low)
    values = function(row[:, None], (0.5 * (low + high))[:, None] + half[:, None] * _X)
    result: Array = half * (values @ _W)
    return result
