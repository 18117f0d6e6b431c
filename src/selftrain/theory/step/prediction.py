"""The unknowns of the next step, extrapolated from those of the steps before."""

from __future__ import annotations

import math
from typing import Any

from ...runtime.kernels import kernel
from ..averages.batch import Labelling
from ..geometry.modes import BIAS, FIRST, HAT_M

LONGEST_HISTORY = 7
"""Steps before t that a prediction may use: the rounding of earlier ones would be magnified."""


@kernel(allocates=False)
def unknown_scales(x: Any, labels: Labelling, out: Any) -> None:
    """Fill `out` with the scale of each unknown at x: for conjugates the stiffness of their group,
    for the bias that of the logits, for logarithms 1.
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
    """Count the steps before t, down to step `since`, whose unknowns have the same form."""
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


@kernel(allocates=False, inline="always")  # called once: one level less to compile
def predict(
    t: int, known: int, unknowns: Any, near: Any, labels: Labelling, history: Any, x: Any
) -> None:
    """Extrapolate the difference of the unknowns to those of the similar run, where there is
    one.
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
    """Fill `ahead` with the row after the first `count` rows of a table: the sum of their backward
    differences, up to the smallest one.

    The k-th difference is the error that the prediction of order k made for the last row. `scale`
    is what a change of each column is compared with. The rows become their differences, the last
    row first; `scale` becomes its inverse.
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
