"""The training loss of solved steps: another pass over their equations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .step_inputs import StepInputs
from .tolerances import exponent_of

if TYPE_CHECKING:
    from .trajectory import Trajectory


def train_loss(trajectory: Trajectory, steps: NDArray[np.int64]) -> Array:
    r"""Return $E[l(\hat y, h + \hat u)]$ over the selected training samples of some steps, at the
    minimum; NaN where a step has no solution.
    """
    inputs = StepInputs(trajectory.problem, trajectory.recipe)
    losses, exponent = np.full(len(steps), math.nan), exponent_of(trajectory.stats.tolerance)
    assert trajectory.unknowns is not None
    for i, t in enumerate(steps.tolist()):
        if t < trajectory.good_steps:
            equations = inputs.equations(t, *trajectory.model_before(t))
            losses[i] = equations.mean_loss(trajectory.unknowns[t], exponent)
    if trajectory.fading is None:
        return losses
    # above the loss of no weights it is quadratic in them
    loss, nothing = trajectory.problem.loss_at(1), np.zeros(1)
    least = float(loss.value(loss.link(nothing), nothing)[0])
    faded = trajectory.fading.exponents[steps]
    return np.where(faded > 0, least + np.ldexp(losses - least, -2 * faded), losses)
