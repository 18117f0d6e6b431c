r"""The accuracy of the state after t steps: the errors of all steps, propagated.

Each step is confirmed to a relative accuracy of its own (`SolverStats.accuracy`). The steps after
it shrink or magnify that error, by the derivative of the new state (m, v, B) in the old one. The
set of possible errors is an ellipsoid. A step maps it linearly and adds an ellipsoid of its own
errors; of all ellipsoids around the sum, the one of least trace is taken. So errors that always
point the same way are counted in full. Where the weights have several modes, the state is their law
(`gradients.directions`).

m is measured by $\sqrt q$, v by $2\sqrt{q v}$ (so $\sqrt v$ by $\sqrt q$), B by itself and the
spread of the logits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from ..errors import ConvergenceError
from ..runtime.progress import Progress
from .gradients.directions import around_both, carry_directions
from .gradients.pulls import carried_for
from .gradients.reverse_pass import reverse_pass
from .gradients.seeds import B, M, V, nothing_wanted

if TYPE_CHECKING:
    from .trajectory import Trajectory

ROUNDING = float(np.finfo(float).eps)
"""No step is more accurate than the numbers it is written in."""


def carried(run: Trajectory) -> Array:
    r"""Return the relative accuracy of the state after each step.

    Infinite from the first step without derivatives; NaN after the last solved step. With data
    reuse each replicate runs through all steps, so the spread of the replicates includes the
    propagated errors.
    """
    accuracy, last = np.full(run.problem.steps + 1, np.nan), run.good_steps - 1
    if run.reuse is not None:
        return np.fmax.accumulate(run.stats.accuracy) + 0.0 * run.m
    if last < 0:
        return accuracy
    assert run.weight_means is not None
    own = np.maximum(run.stats.accuracy[: last + 1], ROUNDING)
    one_mode = run.weight_means.shape[1] == 1  # (m, v, B) is all a step knows of the one before
    carry = _carry_states if one_mode else carry_directions
    accuracy[: last + 1] = carry(run, last, own)
    return accuracy


def _carry_states(run: Trajectory, last: int, own: Array) -> Array:
    """Return the accuracy after steps 0..`last` from those of the steps by themselves, where the
    weights have one mode.
    """
    accuracy, maps = np.full(last + 1, math.inf), _state_maps(run, last)
    norm, bias = np.sqrt(run.scaled_q), run.scaled("bias")  # q v would underflow, its root does not
    logits = np.abs(bias) + np.sqrt(run.scaled("logit_variances")[:, 1])
    units = np.column_stack([norm, 2.0 * norm * np.sqrt(run.scaled("v")), logits])
    columns = np.zeros((3, 0))
    for t, gain in enumerate(maps):
        kept = (gain * units[t - 1]) @ columns / units[t][:, None]
        made = own[t] * np.eye(3)
        if bias[t] == 0.0:  # classes that nothing distinguishes: B is exactly zero
            kept[2] = 0.0
        if bias[t] == 0.0 or (run.recipe.fix_bias and t > 0):
            made[2] = 0.0
        try:
            columns, _ = around_both(columns, kept, made)
        except np.linalg.LinAlgError:  # not finite
            break
        accuracy[t] = np.linalg.norm(columns, axis=1).max()
    return accuracy


def _state_maps(run: Trajectory, last: int) -> Array:
    r"""Return the derivatives of ($m/|\mu|$, v, B) after steps 0, 1, ... in those before them, each
    in the units of its step, up to the first step that has none: the reverse pass of single steps,
    from each of the three numbers.
    """
    assert run.space is not None
    law, count = run.space.no_weights(), last + 1
    copies = float(run.space.trace(np.ones(1)))  # v is the sum of so many variances
    units = ((M, 1.0 / run.problem.test_clusters.length), (V, 1.0), (B, 1.0))
    while count > 0:
        maps = np.empty((count, 3, 3))
        try:
            for i, (column, unit) in enumerate(units):
                wanted, at = nothing_wanted(run), carried_for(law, count + 1)
                wanted.columns[:, column] = unit
                with Progress(count, "steps", False) as bar:
                    reverse_pass(run, wanted, count - 1, bar, at)
                rows = (at.mean[:, 0], at.variance[:, 0] / copies, at.bias)
                maps[:, i] = np.column_stack(rows)[:count]
            return maps
        except ConvergenceError as error:
            count = error.step
    return np.empty((0, 3, 3))
