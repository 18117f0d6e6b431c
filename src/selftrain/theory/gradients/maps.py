"""How the state (m, v, B) after a step moves with the state before it, where the weights have one
mode: the reverse pass of single steps, from each of the three numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...runtime.progress import Progress
from .columns import B, M, V, nothing_wanted
from .pulls import carried_for
from .sweep import sweep

if TYPE_CHECKING:
    from ..trajectory import Trajectory


def has_one_mode(run: Trajectory) -> bool:
    """Return whether (m, v, B) is all that a step knows of the one before."""
    return run.weight_means is not None and run.weight_means.shape[1] == 1


def state_maps(run: Trajectory, last: int) -> tuple[Array, int]:
    r"""Return the derivatives of ($m/|\mu|$, v, B) after steps 0..`last` in those before them, each
    in the units of its step, and the first step that has none (`last` + 1 if all have).
    """
    assert run.space is not None
    count = last + 1
    while count > 0:
        try:
            return _maps(run, count), count
        except ConvergenceError as error:
            count = error.step
    return np.empty((0, 3, 3)), 0


def _maps(run: Trajectory, count: int) -> Array:
    """The maps of the first steps; raises if one has none."""
    assert run.space is not None
    law, maps = run.space.no_weights(), np.empty((count, 3, 3))
    copies = float(run.space.trace(np.ones(1)))  # v is the sum of so many variances
    length = run.problem.test_clusters.length
    for i, (column, unit) in enumerate(((M, 1.0 / length), (V, 1.0), (B, 1.0))):
        wanted, carried = nothing_wanted(run), carried_for(law, count + 1)
        wanted.columns[:, column] = unit
        with Progress(count, "steps", False) as bar:
            sweep(run, wanted, count - 1, bar, carried)
        mean, variance = carried.mean[:count, 0], carried.variance[:count, 0] / copies
        maps[:, i] = np.column_stack([mean, variance, carried.bias[:count]])
    return maps
