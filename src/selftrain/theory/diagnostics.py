"""Averages that need another pass over a solved trajectory: the training loss of every step."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from .trajectory import Trajectory


def train_loss(trajectory: Trajectory) -> Array:
    r"""$E[l(\hat y, h + \hat u)]$ over the selected training points of each step, at the minimum."""
    from .solve import stages

    losses = np.full(trajectory.problem.steps + 1, np.nan)
    for t, stage in enumerate(stages(trajectory)):
        losses[t] = stage.mean_loss(unknowns(trajectory, t, stage.offset, stage.old_bias), 30.0)
    return losses


def unknowns(trajectory: Trajectory, t: int, offset: float, old_bias: float) -> Array:
    r"""The unknowns z of the stage equations at a solved step, from its order parameters."""
    chi = trajectory.chi[t]
    z = np.zeros(5)
    if t > 0:
        norm = np.hypot(trajectory.m[t - 1], np.sqrt(trajectory.v[t - 1]))
        z[0] = trajectory.overlap[t] / norm - offset
    z[1] = trajectory.m_hat[t] * chi
    z[2] = trajectory.bias[t] - old_bias
    z[3] = 0.5 * np.log(trajectory.chi_hat[t]) + np.log(chi)
    z[4] = np.log(chi)
    return z
