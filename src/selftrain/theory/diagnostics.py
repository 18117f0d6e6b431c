"""Averages that need another pass over a solved trajectory: the training loss of every step."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .state import unknowns_at
from .trajectory import Trajectory


def train_loss(trajectory: Trajectory) -> Array:
    r"""$E[l(\hat y, h + \hat u)]$ over the selected training points of each step, at the
    minimum.
    """
    from .solve import stages

    losses = np.full(trajectory.problem.steps + 1, np.nan)
    for t, stage in enumerate(stages(trajectory)):
        losses[t] = stage.mean_loss(unknowns_at(trajectory, t, stage.frame), 30.0)
    return losses
