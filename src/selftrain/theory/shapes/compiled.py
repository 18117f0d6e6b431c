"""Newton's method for a logistic step with diagonal covariances in one kernel: modes, averages,
equations.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel
from ..step.averages import blank
from ..tolerances import BACK_TO_ROUGH, DAMPED, REFINED, ROUGH, ROUGH_STEP
from .averages import At, PointSet, Room, logistic_groups, logistic_labelled
from .equations import Labelling, assemble, newton_step
from .modes import FIRST, Noise, Weights, mode_sums

STALLED = 0.3
"""Newton steps near the root that shrink by less than this factor meet the error of their rule."""

LARGEST_LOG = 650.0
"""Beyond this logarithm a conjugate overflows."""


class StepSetting(NamedTuple):
    """What a step is given; `fixed_bias`: the value of a fixed bias, else NaN; `first`: 1 in step
    0, else 0.
    """

    noise: Noise
    old: Weights
    labels: Labelling
    points: PointSet
    softness: Any
    fixed_bias: float
    first: float


class Work(NamedTuple):
    """Arrays that an evaluation writes to: averages, fields, equations and the Newton step."""

    room: Room
    fields: Any
    system: Any
    step: Any


def work_for(groups: int, nodes: Array) -> Work:
    """Arrays for the evaluations of a run."""
    size = FIRST + 3 * groups
    room = Room(nodes, blank(groups), np.zeros(groups))
    fields, system = np.zeros((1 + 3 * groups, size + 1)), np.zeros((size, size + 1))
    return Work(room, fields, system, np.zeros(size))


@kernel(error_model="numpy")
def anchor_of(x: Any, ridge: float, gamma: float, softness: Any) -> float:
    """The multiple of the old weights that the fields are measured from: none where the ridge
    leaves little of them.
    """
    groups = softness.shape[0]
    stiffness = 0.0
    for k in range(groups):
        stiffness += math.exp(x[FIRST + groups + k]) * softness[k]
    return gamma if ridge < stiffness else 0.0


@kernel(error_model="numpy")
def finite(table: Any) -> bool:
    """Whether a table has finite numbers only."""
    total = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            total += 0.0 * table[i, j]
    return total == 0.0


@kernel(error_model="numpy")
def newton_of_modes(
    x: Any, ridge: float, exponent: float, setting: StepSetting, work: Work
) -> tuple[int, float, float]:
    """Nodes used, size of the Newton step (infinite if there is none) and the factor that bounds
    it; the step is in `work`.
    """
    labels, points, fields = setting.labels, setting.points, work.fields
    anchor = anchor_of(x, ridge, labels.gamma, setting.softness)
    mode_sums(x, ridge, labels.gamma, anchor, setting.noise, setting.old, fields)
    if not finite(fields):
        return 0, math.inf, 0.0
    room, at = work.room, At(x, fields, anchor)
    if setting.first > 0.0:
        used = logistic_labelled(at, points, exponent, None, room)
    else:
        used = logistic_groups(at, labels, points, exponent, None, room)
    if used <= 0:
        return 0, math.inf, 0.0
    fixed = (anchor, setting.fixed_bias, setting.first)
    assemble(x, fields, room.moments, room.shares, labels, fixed, work.system)
    if not finite(work.system):
        return 0, math.inf, 0.0
    size, factor = newton_step(x, fields, labels, anchor, work.system, work.step)
    return used, size, factor


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


@kernel(error_model="numpy")
def enough_of_rough(size: float, last: float) -> bool:
    """Whether a Newton step on the rough rule ends about where that rule can tell no more: it is
    small, or rather small and hardly smaller than the last one.
    """
    return size <= ROUGH_STEP or STALLED * last < size <= BACK_TO_ROUGH


@kernel(error_model="numpy")
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
        used, size, factor = newton_of_modes(x, ridge, rule, setting, work)
        if not size < math.inf:
            return math.inf, iteration + 1, used
        if not size > DAMPED:
            factor = 1.0
        for j in range(x.shape[0]):
            x[j] += factor * work.step[j]
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


class Patience(NamedTuple):
    """How far Newton's method goes: the rule, the step that is small enough, how many steps, and
    whether the root is near (1, else 0), so that no rough rule is worth it.
    """

    exponent: float
    enough: float
    limit: int
    near: float


@kernel(error_model="numpy")
def newton_to_root(
    x: Any, ridge: float, patience: Patience, setting: StepSetting, work: Work
) -> tuple[bool, int, int]:
    """Moves x to the root; whether it settled, evaluations, nodes used last (0: none).

    The same method as `ShapedStage.newton`.
    """
    exponent, used, last = patience.exponent, 0, math.inf
    rough = patience.near == 0.0 and exponent > ROUGH
    for i in range(patience.limit):
        rule = ROUGH if rough else exponent
        more, size, factor = newton_of_modes(x, ridge, rule, setting, work)
        used = more if more > 0 else used
        if not size < math.inf:
            return False, i + 1, used
        largest = 0.0
        for j in range(x.shape[0]):
            x[j] += (factor if size > DAMPED else 1.0) * work.step[j]
            if j >= FIRST + setting.noise.variances.shape[0]:
                largest = max(largest, abs(x[j]))
        if not largest < LARGEST_LOG:
            return False, i + 1, used
        if size <= patience.enough and not rough:
            return True, i + 1, used
        if rough:
            rough = not enough_of_rough(size, last)
        else:
            rough = exponent > ROUGH and size > BACK_TO_ROUGH
        last = size
    return False, patience.limit, used
