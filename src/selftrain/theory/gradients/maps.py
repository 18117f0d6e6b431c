"""How the state (m, v, B) after a step moves with the state before it, where the weights have one
mode: the reverse pass of single steps, from each of the three numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...runtime.kernels import kernel
from ..stages import Stages
from ..step.newton import Work
from ..tolerances import exponent_of
from .sweep import (
    Carried,
    Given,
    Slopes,
    Solved,
    Wanted,
    given_of,
    nothing_wanted,
    pull_run,
    pull_step,
    solved_of,
)

if TYPE_CHECKING:
    from ..trajectory import Trajectory


def has_one_mode(run: Trajectory) -> bool:
    """Whether (m, v, B) is all that a step knows of the one before."""
    return run.weight_means is not None and run.weight_means.shape[1] == 1


def state_maps(run: Trajectory, last: int) -> tuple[Array, int]:
    """Return the derivatives of (m, v, B) after steps 0..`last` in those before them, each in the
    units of its step, and the first step that has none (`last` + 1 if all have).
    """
    stages, wanted = Stages(run.problem, run.recipe), nothing_wanted(run)
    maps = np.full((last + 1, 3, 3), np.nan)
    carried = Carried(np.zeros(1), np.zeros(1), np.zeros(1))
    slopes = Slopes(wanted.pulls[: last + 1].copy(), np.zeros((last + 1, 2)), np.zeros(last + 1))
    if stages.compiled:
        given = given_of(run, stages)
        failed = _fill(last, given, solved_of(run), wanted, stages.work, carried, slopes, maps)
        return maps, int(failed)
    exponent = exponent_of(run.stats.tolerance)
    for t in range(last + 1):
        for i in range(3):
            _begin(carried, slopes, t, i)
            try:
                pull_step(run, stages, t, wanted, exponent, carried, slopes)
            except ConvergenceError:
                return maps, t
            maps[t, i] = carried.mean[0], carried.variance[0], carried.bias[0]
    return maps, last + 1


@kernel(error_model="numpy")
def _begin(carried: Carried, slopes: Slopes, t: int, i: int) -> None:
    """Begin the pass of step t at one number of the state after it."""
    carried.mean[0] = 1.0 if i == 0 else 0.0
    carried.variance[0] = 1.0 if i == 1 else 0.0
    carried.bias[0] = 1.0 if i == 2 else 0.0
    for j in range(slopes.pulls.shape[1]):
        slopes.pulls[t, j] = 0.0


@kernel(error_model="numpy")
def _fill(
    last: int, given: Given, solved: Solved, wanted: Wanted, work: Work, carried: Carried,
    slopes: Slopes, maps: Any,
) -> int:  # fmt: skip
    """Fill the maps of steps 0..`last`; the first that has none."""
    for t in range(last + 1):
        for i in range(3):
            _begin(carried, slopes, t, i)
            if pull_run((t, t - 1), given, solved, wanted, work, carried, slopes) >= 0:
                return t
            maps[t, i, 0] = carried.mean[0]
            maps[t, i, 1] = carried.variance[0]
            maps[t, i, 2] = carried.bias[0]
    return last + 1
