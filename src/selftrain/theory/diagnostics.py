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
    return in_own_units(trajectory, losses, steps)


def in_own_units(trajectory: Trajectory, losses: Array, steps: NDArray[np.int64]) -> Array:
    """Losses of steps in the units of their step: above that of no weights they are quadratic."""
    if trajectory.fading is None:
        return losses
    loss, nothing = trajectory.problem.loss_at(1), np.zeros(1)
    least = float(loss.value(loss.link(nothing), nothing)[0])
    faded = trajectory.fading.exponents[steps]
    rest = np.ldexp(losses - least, -2 * faded)
    return np.where(faded > 0, least + rest, losses)
