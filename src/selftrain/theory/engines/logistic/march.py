r"""The logistic engine's fast lane: a whole trajectory, step after step, compiled.

`march` predicts the state of the next step from the last ones (or rather the difference to a near
run, if one is known) and makes Newton steps until one is small. Every step is confirmed, in one of
two ways:

- by a Newton step on a refined rule, below the tolerance;
- by its neighbours: the step was extrapolated from at least four steps before, solved on two rules
  in turn, and the Newton step from there is below the tolerance. An error of one of the rules would
  be magnified by the extrapolation and show. At least every 16th step, and the last one, is
  confirmed on the refined rule.

When a step does not converge `march` returns, and the caller solves that step by the slower and
surer ways of `step.solver` before the march goes on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....runtime.kernels import kernel
from ...state import to_state
from ...step.ending import Ending, before_step
from ...step.equations import BIAS, A, frame
from ...step.given import NO_MODEL, Schedule, given
from ...step.prediction import LONGEST_HISTORY, predict
from ...tolerances import (
    ALTERNATE,
    CHANGE_OF_FORM,
    COLLAPSED_MASS,
    CONFIRM_EVERY,
    LEFT_OF_OLD,
    LEVELS,
    NEIGHBOURS,
    NEWTON_STEPS,
    NEWTON_STEPS_NEAR,
    REFINED,
)
from .starts import explicit_start, no_update_start
from .step import Effort, Workspace, newton, reference_sharpness

PREDICTED, EXPLICIT, NO_UPDATE = range(3)
"""Where Newton's method began: positions in `step.table.START_NAMES`."""

FROM_PREDICTION, FROM_START, IN_OTHER_FORM = range(3)
"""Attempts at a step, in this order."""


class RunTable(NamedTuple):
    """The arrays of `step.table.Record` that a march fills."""

    rows: Any
    states: Any
    unknowns: Any
    anchors: Any
    evaluations: Any
    points: Any
    accuracy: Any
    starts: Any


class Near(NamedTuple):
    """A similar run to predict from: its unknowns and their anchors; zero and NaN where there is
    none.
    """

    unknowns: Any
    anchors: Any


class Demands(NamedTuple):
    """What is asked for: the exponent of the rules, the size of the last Newton step, the
    tolerance; whether the scale of the weights is carried apart.
    """

    exponent: float
    enough: float
    tolerance: float
    faded: bool


@kernel(error_model="numpy")
def march(
    first: int, plan: Schedule, table: RunTable, near: Near, limits: Demands, work: Workspace
) -> tuple[int, Ending]:
    """Solve steps `first`.. in place as far as Newton's method carries; the next step and how the
    last one ended.

    UNCONFIRMED: the step needs another way.
    """
    last = plan.alpha.shape[0] - 1
    states, unknowns, anchors = table.states, table.unknowns, table.anchors
    nodes = work.nodes
    nothing = NO_MODEL.copy()
    z = np.empty(5)
    level = 0
    refined = first - 1  # the last step that was confirmed on the refined rule
    t = first
    while t <= last:
        old = states[t - 1] if t > 0 else nothing
        step = given(plan, t, old)
        ending = before_step(old, plan.fixed_bias, limits.faded) if t > 0 else Ending.SOLVED
        if ending != Ending.SOLVED:
            return t, ending
        fine = limits.exponent + level * REFINED + (ALTERNATE if t % 2 == 1 else 0.0)
        used = 0
        base = reference_sharpness(step.sharpness)
        is_near = not math.isnan(near.anchors[t])
        anchor = base if (near.anchors[t] if is_near else anchors[t - 1]) > 0.0 else 0.0
        history = alike(t, anchor, anchors, near.anchors) if t > 0 else 0
        agrees = history >= NEIGHBOURS and not is_near and t < last and t - refined < CONFIRM_EVERY
        attempt = FROM_PREDICTION if history > 0 or is_near else FROM_START
        if history > 0:
            predict(t, history, unknowns, near.unknowns, old, z)
        else:
            for j in range(5):
                z[j] = near.unknowns[t, j]
        table.starts[t] = PREDICTED
        while True:
            if attempt == FROM_START:
                mass = explicit_start(step, nodes, z)
                if math.isnan(mass):
                    return t, Ending.EMPTY
                if mass < 0.0:
                    return t, Ending.UNCONFIRMED
                if t > 0 and not plan.fixed_bias and mass < COLLAPSED_MASS:
                    return t, Ending.COLLAPSED
                table.starts[t] = EXPLICIT
                anchor = base if abs(z[A]) > LEFT_OF_OLD * base * old[0] else 0.0
                z[A] -= anchor * old[0]
                z[BIAS] -= anchor * old[3]
                if no_update_start(step, nodes, z):
                    table.starts[t] = NO_UPDATE
                    anchor = base
            close = attempt != FROM_START
            steps = NEWTON_STEPS_NEAR if close else NEWTON_STEPS
            trusted = agrees and attempt == FROM_PREDICTION
            effort = Effort(fine, limits.enough, limits.tolerance, steps, close, trusted)
            accuracy, more, table.points[t] = newton(z, step, anchor, effort, work)
            used += more
            better = better_form(z, anchor, base, old[0])
            if not accuracy < math.inf and attempt == FROM_PREDICTION:
                attempt = FROM_START
            elif accuracy < math.inf and better != anchor and attempt != IN_OTHER_FORM:
                z[A] += (anchor - better) * old[0]
                z[BIAS] += (anchor - better) * old[3]
                anchor = better
                attempt = IN_OTHER_FORM
            else:
                break
        table.evaluations[t] += used
        if not accuracy < math.inf:
            return t, Ending.UNCONFIRMED
        if not accuracy <= limits.tolerance:
            level += 1
            if level > LEVELS:
                return t, Ending.UNCONFIRMED
            t = refined + 1
            continue
        if used > 1:
            refined = t
        table.accuracy[t] = accuracy
        for j in range(5):
            unknowns[t, j] = z[j]
        anchors[t] = anchor
        balanced = old[3] == 0.0 and step.rho == 0.5
        to_state(z, frame(step, anchor), balanced, table.rows[t], states[t])
        t += 1
    return last + 1, Ending.SOLVED


@kernel(error_model="numpy")
def alike(t: int, anchor: float, anchors: Any, near_anchors: Any) -> int:
    """How many steps before t, down to step 1, have unknowns of the same form."""
    is_near = not math.isnan(near_anchors[t])
    count = 0
    for k in range(t - 1, 0, -1):
        if (anchors[k] > 0.0) != (anchor > 0.0) or count == LONGEST_HISTORY:
            break
        if is_near and (near_anchors[k] > 0.0) != (anchor > 0.0):
            break
        count += 1
    return count


@kernel(error_model="numpy")
def better_form(z: Any, anchor: float, base: float, omega: float) -> float:
    """What is left of the old weights decides which form of the unknowns keeps its digits: its
    anchor.
    """
    left = anchor * omega + z[A]
    if anchor > 0.0 and abs(left) < CHANGE_OF_FORM * base * omega:
        return 0.0
    if anchor == 0.0 and abs(left - base * omega) < CHANGE_OF_FORM * base * omega:
        return base
    return anchor
