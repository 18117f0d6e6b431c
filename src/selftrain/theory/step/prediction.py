"""The unknowns of the next step, extrapolated from those of the steps before."""

from __future__ import annotations

import math
from typing import Any

from ...runtime.kernels import kernel
from ..averages.batch import Labelling
from ..geometry.modes import BIAS, FIRST, HAT_M

LONGEST_HISTORY = 7
"""Largest number of steps that a prediction uses: more would magnify their rounding errors."""


@kernel(allocates=False)
def unknown_scales(x: Any, labels: Labelling, out: Any) -> None:
    """Fill `out` with the scale of each unknown at x: the stiffness of the group for conjugates,
    the scale of the logits for the bias, 1 for logarithms.
    """
    groups = labels.roots.shape[0]
    stiffness = root = 0.0
    for k in range(groups):
        stiff = math.exp(x[FIRST + groups + k])
        stiffness = max(stiffness, stiff)
        root = max(root, labels.roots[k])
        out[FIRST + k] = stiff
        out[FIRST + groups + k] = 1.0
        out[FIRST + 2 * groups + k] = 1.0
    out[HAT_M] = abs(x[HAT_M]) + stiffness * root
    out[BIAS] = abs(labels.bias) + root


@kernel(allocates=False)
def steps_alike(t: int, since: int, gamma: float, unknowns: Any, near: Any) -> int:
    """Return how many steps before t, down to `since`, have unknowns that a prediction can use.

    The reference sharpness of such a step, and that of the similar run in `near` if there is one,
    must be positive if `gamma`, that of step t, is, and zero if `gamma` is zero.
    """
    last = near.shape[1] - 1
    is_near = not math.isnan(near[t, last])
    count = 0
    for k in range(t - 1, since - 1, -1):
        if (unknowns[k, last] > 0.0) != (gamma > 0.0) or count == LONGEST_HISTORY:
            break
        if is_near and (math.isnan(near[k, last]) or (near[k, last] > 0.0) != (gamma > 0.0)):
            break
        count += 1
    return count


@kernel(allocates=False)
def predict(
    t: int, known: int, unknowns: Any, near: Any, labels: Labelling, history: Any, x: Any
) -> None:
    """Fill x with the unknowns of step t, extrapolated from the `known` steps before it; if `near`
    has a similar run, the differences from it are extrapolated.
    """
    size = x.shape[0]
    is_near = not math.isnan(near[t, size])
    for j in range(size):
        x[j] = 0.0
    if known > 0:
        scale = history[LONGEST_HISTORY]
        unknown_scales(unknowns[t - 1], labels, scale)
        for i in range(known):
            k = t - known + i
            for j in range(size):
                history[i, j] = unknowns[k, j] - (near[k, j] if is_near else 0.0)
        extrapolate(history, known, scale, x)
    if is_near:
        for j in range(size):
            x[j] += near[t, j]


@kernel(allocates=False)
def extrapolate(table: Any, count: int, scale: Any, ahead: Any) -> None:
    """Fill `ahead` with an extrapolation of the first `count` rows of a table by one row: the sum
    of their backward differences, up to the smallest one.

    The k-th difference is the error that the extrapolation of order k had at the last row. `scale`
    has the scale of each column, by which differences are divided. Both inputs are overwritten: the
    rows by their differences, `scale` by its inverse.
    """
    size = ahead.shape[0]
    best, smallest = 1, math.inf
    for j in range(size):
        scale[j] = 1.0 / scale[j]
        ahead[j] = table[count - 1, j]
    for order in range(1, count):
        largest = 0.0
        for i in range(count - order):
            for j in range(size):
                table[i, j] = table[i + 1, j] - table[i, j]
        for j in range(size):
            largest = max(largest, abs(table[count - 1 - order, j]) * scale[j])
        if largest < smallest:
            best, smallest = order, largest
    if best == count - 1:
        best = count
    for order in range(1, best):
        for j in range(size):
            ahead[j] += table[count - 1 - order, j]
