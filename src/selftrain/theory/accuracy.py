r"""How accurate the state after t steps is: the errors of all steps, carried forward.

Each step is confirmed to a relative accuracy of its own (`SolverStats.accuracy`). The steps after
it shrink or magnify that error, by the derivative of the new state (m, v, B) in the old one. Here
the set of possible errors is an ellipsoid. A step maps it linearly, and adds an ellipsoid of its
own errors; of all ellipsoids around the sum, the one of least trace is kept. So errors that always
point the same way are counted in full. Where the weights have several modes, the state is their law
(`gradients.directions`).

m is measured by $\sqrt q$, v by $2\sqrt{q v}$ (so $\sqrt v$ by $\sqrt q$), B by itself and the
spread of the logits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..runtime.kernels import kernel
from .gradients.directions import carry_directions
from .gradients.maps import has_one_mode, state_maps

if TYPE_CHECKING:
    from .trajectory import Trajectory

ROUNDING = float(np.finfo(float).eps)
"""No step is more accurate than the numbers it is written in."""


def carried(trajectory: Trajectory) -> Array:
    r"""Return the relative accuracy of the state after each step.

    Infinite from the step on whose derivatives do not exist; NaN after the last solved step. Where
    samples are reused each replicate goes through all steps, so what the replicates differ by is
    what was carried.
    """
    accuracy = np.full(trajectory.problem.steps + 1, np.nan)
    last = trajectory.good_steps - 1
    if trajectory.reuse is not None:
        return np.fmax.accumulate(trajectory.stats.accuracy) + 0.0 * trajectory.m
    if last < 0:
        return accuracy
    own = np.maximum(trajectory.stats.accuracy[: last + 1], ROUNDING)
    if not has_one_mode(trajectory):
        accuracy[: last + 1] = carry_directions(trajectory, last, own)
        return accuracy
    maps, count = state_maps(trajectory, last)
    q, v, bias, variance = (
        values[: last + 1]
        for values in (
            trajectory.scaled_q, trajectory.scaled("v"), trajectory.scaled("bias"),
            trajectory.scaled("logit_variances")[:, 1],
        )
    )  # fmt: skip
    norm = np.sqrt(q)  # q v would underflow where its root does not
    units = np.column_stack([norm, 2.0 * norm * np.sqrt(v), np.abs(bias) + np.sqrt(variance)])
    done = carry(maps[:count], units, own, bias == 0.0, trajectory.recipe.fix_bias, accuracy)
    accuracy[done : last + 1] = math.inf
    return accuracy


@kernel(error_model="numpy")
def carry(maps: Any, units: Any, own: Any, no_bias: Any, fixed_bias: bool, accuracy: Any) -> int:
    """Fill the accuracy after each step; how many steps have one."""
    # a square root of the ellipsoid of errors, in the units of each step
    spread, through, added = np.zeros((3, 3)), np.empty((3, 3)), np.zeros((3, 3))
    for t in range(maps.shape[0]):
        for i in range(3):
            added[i, i] = own[t]
            for j in range(3):
                through[i, j] = 0.0
                for k in range(3):
                    if t > 0:
                        gain = maps[t, i, k] * units[t - 1, k] / units[t, i]
                        through[i, j] += gain * spread[k, j]
        if fixed_bias and t > 0:
            added[2, 2] = 0.0
        if no_bias[t]:  # classes that nothing distinguishes: B is exactly zero
            added[2, 2] = 0.0
            for j in range(3):
                through[2, j] = 0.0
        _sum(through, added, spread)
        worst = 0.0
        for i in range(3):
            size = math.sqrt((spread[i] ** 2).sum())
            if not size < math.inf:
                return t
            worst = max(worst, size)
        accuracy[t] = worst
    return int(maps.shape[0])


@kernel(error_model="numpy")
def _sum(one: Any, other: Any, out: Any) -> None:
    """A square root of the ellipsoid of least trace around the sum of two ellipsoids, given by
    theirs.

    Their square roots side by side are one with many columns; orthogonalising its rows leaves
    three. The product of the matrix with its transpose would do so too, but loses half of the
    digits where the ellipsoid is thin.
    """
    size, added = math.sqrt((one**2).sum()), math.sqrt((other**2).sum())
    stretch = widen = 1.0
    if size > 0.0 and added > 0.0:
        stretch, widen = math.sqrt(1.0 + added / size), math.sqrt(1.0 + size / added)
    both = np.empty((3, 6))
    for i in range(3):
        for j in range(3):
            both[i, j], both[i, 3 + j], out[i, j] = stretch * one[i, j], widen * other[i, j], 0.0
    for i in range(3):
        length = math.sqrt((both[i] ** 2).sum())
        out[i, i] = length
        if length == 0.0:
            continue
        for j in range(6):
            both[i, j] /= length
        for j in range(i + 1, 3):
            out[j, i] = (both[i] * both[j]).sum()
            for k in range(6):
                both[j, k] -= out[j, i] * both[i, k]
