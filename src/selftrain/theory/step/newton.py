"""Newton's method for one step, compiled: diagonal covariances, logistic or squared loss."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..averages.batch import At, Batch, Labelling, Room, batch_averages, room_for
from ..geometry.modes import BIAS, FIRST, Noise, Weights, mode_sums
from ..tolerances import (
    BACK_TO_ROUGH,
    DAMPED,
    LARGEST_LOG,
    NO_STIFFNESS,
    REFINED,
    ROUGH,
    ROUGH_STEP,
    STALLED,
)
from .equations import assemble, newton_step

LONGEST_HISTORY = 7
"""Steps before t that a prediction may use: the rounding of earlier ones would be magnified."""

X, SEEN, OUT, HISTORY = 0, 1, 4, 5
"""Rows of `Work.rows`: the unknowns; what a batch sees of the old weights (projections, roots,
softness); numbers of the new weights; the steps before and their scale.
"""


class StepSetting(NamedTuple):
    r"""What a step is given.

    Attributes:
        noise, old: its samples and the old weights in the coordinates of the modes.
        labels, batch: the labelling model and the samples it labels.
        softness: $q'_k/|\beta'|^2$, the variance of each group that the old weights see.
        fixed_bias: the value of a fixed bias, measured from $\gamma_0 B'$; NaN if it is trained.
    """

    noise: Noise
    old: Weights
    labels: Labelling
    batch: Batch
    softness: Any
    fixed_bias: float


class Work(NamedTuple):
    """Arrays that an evaluation writes to: averages, fields, equations (then the Newton step); rows
    of unknowns.
    """

    room: Room
    fields: Any
    system: Any
    rows: Any


class Effort(NamedTuple):
    """How Newton's method is carried out.

    Attributes:
        exponent: of the rule.
        enough: size of the last step before the confirmation.
        tolerance: what the confirmation demands.
        limit: how many steps.
        near: whether it begins near the root.
        agrees: whether a first step below the tolerance is a confirmation: the point was
            extrapolated from steps on other rules.
    """

    exponent: float
    enough: float
    tolerance: float
    limit: int
    near: bool
    agrees: bool


def work_for(groups: int) -> Work:
    """Return arrays for the evaluations of a run."""
    size = FIRST + 3 * groups
    fields, system = np.zeros((1 + 3 * groups, size + 1)), np.zeros((size, size + 1))
    return Work(room_for(groups), fields, system, np.empty((HISTORY + LONGEST_HISTORY + 1, size)))


@kernel(allocates=False)
def stiffness_of(x: Any, softness: Any) -> float:
    """The stiffness that the old weights see, to compare with the ridge."""
    groups = softness.shape[0]
    stiffness = 0.0
    for k in range(groups):
        stiffness += math.exp(x[FIRST + groups + k]) * softness[k]
    return stiffness


@kernel(allocates=False)
def anchor_of(x: Any, ridge: float, gamma: float, softness: Any) -> float:
    """The multiple of the old weights that the fields are measured from: none where the ridge
    leaves little of them.
    """
    return gamma if ridge < stiffness_of(x, softness) else 0.0


@kernel(allocates=False, internal=True)
def finite(table: Any) -> bool:
    """Whether a table has finite numbers only."""
    total = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            total += 0.0 * table[i, j]
    return total == 0.0


@kernel(allocates=False, inline="always")  # called once: one level less to compile
def evaluate(
    x: Any, ridge: float, exponent: float, setting: StepSetting, work: Work
) -> tuple[int, float, float]:
    """Nodes used, size of the Newton step (infinite if there is none) and the factor that bounds
    it; the step is in column 0 of `work.system`.
    """
    labels, fields, room = setting.labels, work.fields, work.room
    anchor = anchor_of(x, ridge, labels.gamma, setting.softness)
    mode_sums(x, ridge, labels.gamma, anchor, setting.noise, setting.old, fields)
    if not finite(fields):
        return 0, math.inf, 0.0
    used = batch_averages(At(x[BIAS], fields, anchor), labels, setting.batch, exponent, None, room)
    if used <= 0:
        return 0, math.inf, 0.0
    fixed = (anchor, setting.fixed_bias, 1.0 if setting.batch.given else 0.0)
    assemble(x, fields, room.moments, labels, fixed, work.system)
    if not finite(work.system):
        return 0, math.inf, 0.0
    size, factor = newton_step(x, fields, labels, anchor, ridge, setting.softness, work.system)
    return used, size, factor


@kernel(allocates=False)
def enough_of_rough(size: float, last: float) -> bool:
    """Whether a Newton step on the rough rule ends about where that rule can tell no more: it is
    small, or rather small and hardly smaller than the last one.
    """
    return size <= ROUGH_STEP or STALLED * last < size <= BACK_TO_ROUGH


@kernel(allocates=False, inline="always")  # called once: one level less to compile
def newton_confirmed(
    x: Any, ridge: float, effort: Effort, setting: StepSetting, work: Work
) -> tuple[float, int, int]:
    """Newton's method from x, in place, with the confirmation; accuracy (inf: failed), evaluations,
    nodes.

    Far from the root a rough rule is as good as a fine one: it is used until a step on it is small,
    from the beginning unless x is known to be near. When a step is small enough, the next one is
    made on the refined rule: its size is the accuracy.
    """
    used = 0
    fine = effort.exponent
    rough = min(ROUGH, fine)
    rule = fine if effort.near else rough
    logs = FIRST + setting.noise.variances.shape[0]
    last = math.inf
    for iteration in range(effort.limit):
        used, size, factor = evaluate(x, ridge, rule, setting, work)
        if not size < math.inf:
            return math.inf, iteration + 1, used
        if not size > DAMPED:
            factor = 1.0
        for j in range(x.shape[0]):
            x[j] += factor * work.system[j, 0]
            if j >= logs and not abs(x[j]) < LARGEST_LOG:
                return math.inf, iteration + 1, used
        if rule > fine:
            return size, iteration + 1, used
        if rule == fine and size <= effort.enough:
            if effort.agrees and iteration == 0 and size <= effort.tolerance:
                return size, 1, used
            rule = fine + REFINED
        elif enough_of_rough(size, last):
            rule = fine
        elif size > BACK_TO_ROUGH:
            rule = rough
        last = size
    return math.inf, effort.limit, used


@kernel(allocates=False)
def raise_stiffness(x: Any, ridge: float, softness: Any) -> None:
    """Raise a stiffness that does not matter beside the ridge to where it begins to: a model of a
    large bias alone has hardly any, and Newton's method would have a long way up.
    """
    groups = softness.shape[0]
    for k in range(groups):
        least = NO_STIFFNESS * ridge / softness[k]
        if least > 0.0:
            x[FIRST + groups + k] = max(x[FIRST + groups + k], math.log(least))
