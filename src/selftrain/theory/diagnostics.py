"""Averages that need another pass over a solved trajectory: the training loss of its steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .state import unknowns_at
from .trajectory import Trajectory


def train_loss(trajectory: Trajectory, steps: NDArray[np.int64]) -> Array:
    r"""$E[l(\hat y, h + \hat u)]$ over the selected training points of some steps, at the minimum;
    NaN where a step has no solution.
    """
    from .solve import stages

    losses = np.full(steps.size, np.nan)
    solved = steps[steps < trajectory.good_steps].tolist()
    for i, (t, stage) in enumerate(zip(solved, stages(trajectory, solved), strict=True)):
        losses[i] = stage.mean_loss(unknowns_at(trajectory, t, stage.frame), 30.0)
    return losses
