r"""The logistic engine's fast lane: a whole trajectory, step after step, compiled.

`march` predicts the state of the next step from the last four (or rather the difference to a near run, if one is
known), makes one Newton step (a second one if the first was large), and confirms it on a refined rule: at every
step that was not predicted well, and at regular intervals on a smooth stretch. When a step does not converge it
returns, and the caller solves that step by the slower and surer ways of `step.solver` before the march goes on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....runtime.kernels import kernel
from ...state import to_state
from ...step.ending import Ending, before_step
from ...step.equations import BIAS, A, frame
from ...step.given import Schedule, given
from ...step.prediction import predict
from ...tolerances import (
    CHANGE_OF_FORM,
    COLLAPSED_MASS,
    LEFT_OF_OLD,
    LEVELS,
    NEWTON_STEPS,
    NEWTON_STEPS_NEAR,
    REFINED,
)
from .starts import explicit_start, no_update_start
from .step import Effort, Workspace, confirm, newton, reference_sharpness

CONFIRM_EVERY = 16
"""Steps between confirmations on a stretch where the prediction needs one Newton step."""


class Table(NamedTuple):
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
    """A similar run to predict from: its unknowns and their anchors; zero and NaN where there is none."""

    unknowns: Any
    anchors: Any


class Limits(NamedTuple):
    """What is asked for: the exponent of the rules, the size of the last Newton step, the tolerance."""

    exponent: float
    enough: float
    tolerance: float


@kernel(error_model="numpy")
def march(
    first: int, plan: Schedule, table: Table, near: Near, limits: Limits, work: Workspace
) -> tuple[int, Ending]:
    """Solve steps `first`.. in place as far as Newton's method carries; the next step and how the last one ended.

    UNCONFIRMED: the step needs another way.
    """
    steps = plan.alpha.shape[0]
    states, unknowns, anchors = table.states, table.unknowns, table.anchors
    evaluations, points, accuracy, starts = (
        table.evaluations,
        table.points,
        table.accuracy,
        table.starts,
    )
    nodes = work.nodes
    z = np.empty(5)
    level = 0
    confirmed = first - 1
    t = first
    while t <= steps:
        old = states[t - 1]
        step = given(plan, t, old)
        ending = before_step(old, plan.fixed_bias)
        if ending != Ending.SOLVED:
            return t, ending
        rule = limits.exponent + level * REFINED
        size = math.inf
        used = 0
        base = reference_sharpness(step.sharpness)
        is_near = not math.isnan(near.anchors[t])
        anchor = base if (near.anchors[t] if is_near else anchors[t - 1]) > 0.0 else 0.0
        predicted = t >= 2
        for k in range(max(t - 4, 1), t):
            predicted = predicted and (anchors[k] > 0.0) == (anchor > 0.0)
            if is_near:
                predicted = predicted and (near.anchors[k] > 0.0) == (anchor > 0.0)
        z[:] = near.unknowns[t]
        if predicted:
            predict(t, unknowns, near.unknowns, z)
        predicted = predicted or is_near
        if predicted:
            size, used, points[t] = newton(
                z, step, anchor, Effort(rule, limits.enough, NEWTON_STEPS_NEAR, True), work
            )
            starts[t] = 0
        if not size < math.inf:
            predicted = False
            mass = explicit_start(step, nodes, z)
            if math.isnan(mass):
                return t, Ending.EMPTY
            if mass < 0.0:
                return t, Ending.UNCONFIRMED
            if not plan.fixed_bias and mass < COLLAPSED_MASS:
                return t, Ending.COLLAPSED
            starts[t] = 1
            anchor = base if abs(z[A]) > LEFT_OF_OLD * base * old[0] else 0.0
            z[A] -= anchor * old[0]
            z[BIAS] -= anchor * old[3]
            if no_update_start(step, nodes, z):
                starts[t] = 2
                anchor = base
            size, more, points[t] = newton(
                z, step, anchor, Effort(rule, limits.enough, NEWTON_STEPS, False), work
            )
            used += more
        # what is left of the old weights decides which form of the unknowns keeps its digits
        better = anchor
        left = anchor * old[0] + z[A]
        if anchor > 0.0 and abs(left) < CHANGE_OF_FORM * base * old[0]:
            better = 0.0
        elif anchor == 0.0 and abs(left - base * old[0]) < CHANGE_OF_FORM * base * old[0]:
            better = base
        if size < math.inf and better != anchor:
            z[A] += (anchor - better) * old[0]
            z[BIAS] += (anchor - better) * old[3]
            anchor = better
            size, more, points[t] = newton(
                z, step, anchor, Effort(rule, limits.enough, NEWTON_STEPS_NEAR, True), work
            )
            used += more
        evaluations[t] += used
        if not size < math.inf:
            return t, Ending.UNCONFIRMED
        if (not predicted) or used > 1 or t == 1 or t - confirmed >= CONFIRM_EVERY or t == steps:
            accuracy[t], points[t] = confirm(z, step, anchor, rule, work)
            evaluations[t] += 1
            if not accuracy[t] <= limits.tolerance:
                level += 1
                if level > LEVELS:
                    return t, Ending.UNCONFIRMED
                t = confirmed + 1
                continue
            confirmed = t
        for j in range(5):
            unknowns[t, j] = z[j]
        anchors[t] = anchor
        balanced = old[3] == 0.0 and step.rho == 0.5
        to_state(z, frame(step, anchor), balanced, table.rows[t], states[t])
        t += 1
    return steps + 1, Ending.SOLVED
