r"""The logistic engine's fast lane: a whole trajectory, step after step, compiled.

`march` predicts the state of the next step from the last four (or rather the difference to a near run, if one is
known), makes one Newton step (a second one if the first was large), and confirms it on a refined rule: at every
step that was not predicted well, and at regular intervals on a smooth stretch. When a step resists it returns, and
the caller solves that step by the slower and surer ways of `stage` before the march goes on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....runtime.kernels import kernel
from ...quadrature.rules import LEVELS, REFINED
from ...step.equations import BIAS, A
from .averages import COUNT
from .starts import explicit_start, no_update_start
from .step import Step, Workspace, confirm, newton, reference_sharpness, to_state

CONFIRM_EVERY = 16
"""Steps between confirmations on a stretch where the prediction needs one Newton step."""

SMALLEST, LARGEST = 1e-125, 1e125
"""Norms of the weights beyond these lose digits when they are squared."""

DONE, HARD_STEP, COLLAPSED, EMPTY, OVERFLOW = range(5)


@kernel(error_model="numpy")
def vanished(old: Any, fixed_bias: bool) -> bool:
    """Whether nothing but the bias is left of the labelling model, so that it knows one class only.

    With a fixed bias weights may still recover, unless they have left the range of numbers.
    """
    omega = old[0]
    gone = omega < 1e-9 * abs(old[3])
    return bool(gone and (omega <= SMALLEST or not fixed_bias))


@kernel(error_model="numpy")
def march(
    first: int,
    rows: Any,
    states: Any,
    unknowns: Any,
    alpha: Any,
    rho: Any,
    delta: Any,
    ridges: Any,
    thresholds: Any,
    sharpnesses: Any,
    fixed_bias: bool,
    exponent: float,
    enough: float,
    tolerance: float,
    evaluations: Any,
    points: Any,
    accuracy: Any,
    starts: Any,
    anchors: Any,
    near: Any,
    near_anchors: Any,
    nodes: Any,
) -> tuple[int, int]:
    """Solve steps `first`.. in place as far as Newton's method carries; the next step and why it stopped.

    `near` holds the unknowns of a similar run and `near_anchors` their anchors; zero and NaN where there is none.
    """
    steps = alpha.shape[0]
    work = Workspace(nodes, np.zeros((1, COUNT)), np.empty(5), np.empty((5, 5)), np.empty(5))
    z = np.empty(5)
    level = 0
    confirmed = first - 1
    t = first
    while t <= steps:
        i = t - 1
        old = states[i]
        step = Step(
            old[0], old[1], old[2], old[3], alpha[i], rho[i], delta[i],
            ridges[i], thresholds[i], sharpnesses[i], fixed_bias,
        )  # fmt: skip
        if vanished(old, fixed_bias):
            return t, COLLAPSED
        if not (SMALLEST < old[0] < LARGEST):
            return t, OVERFLOW
        rule = exponent + level * REFINED
        size = math.inf
        used = 0
        base = reference_sharpness(sharpnesses[i])
        is_near = not math.isnan(near_anchors[t])
        anchor = base if (near_anchors[t] if is_near else anchors[t - 1]) > 0.0 else 0.0
        predicted = t >= 2
        for k in range(max(t - 4, 1), t):
            predicted = predicted and (anchors[k] > 0.0) == (anchor > 0.0)
            if is_near:
                predicted = predicted and (near_anchors[k] > 0.0) == (anchor > 0.0)
        z[:] = near[t]
        if predicted:
            predict(t, unknowns, near, z)
        predicted = predicted or is_near
        if predicted:
            size, used, points[t] = newton(z, step, anchor, rule, enough, 7, True, work)
            starts[t] = 0
        if not size < math.inf:
            predicted = False
            mass = explicit_start(step, nodes, z)
            if math.isnan(mass):
                return t, EMPTY
            if mass < 0.0:
                return t, HARD_STEP
            if not fixed_bias and mass < 1e-12:
                return t, COLLAPSED
            starts[t] = 1
            anchor = base if abs(z[A]) > 0.05 * base * old[0] else 0.0
            z[A] -= anchor * old[0]
            z[BIAS] -= anchor * old[3]
            if no_update_start(step, nodes, z):
                starts[t] = 2
                anchor = base
            size, more, points[t] = newton(z, step, anchor, rule, enough, 25, False, work)
            used += more
        # what is left of the old weights decides which form of the unknowns keeps its digits
        better = anchor
        left = anchor * old[0] + z[A]
        if anchor > 0.0 and abs(left) < 0.01 * base * old[0]:
            better = 0.0
        elif anchor == 0.0 and abs(left - base * old[0]) < 0.01 * base * old[0]:
            better = base
        if size < math.inf and better != anchor:
            z[A] += (anchor - better) * old[0]
            z[BIAS] += (anchor - better) * old[3]
            anchor = better
            size, more, points[t] = newton(z, step, anchor, rule, enough, 7, True, work)
            used += more
        evaluations[t] += used
        if not size < math.inf:
            return t, HARD_STEP
        if (not predicted) or used > 1 or t == 1 or t - confirmed >= CONFIRM_EVERY or t == steps:
            accuracy[t], points[t] = confirm(z, step, anchor, rule, work)
            evaluations[t] += 1
            if not accuracy[t] <= tolerance:
                level += 1
                if level > LEVELS:
                    return t, HARD_STEP
                t = confirmed + 1
                continue
            confirmed = t
        for j in range(5):
            unknowns[t, j] = z[j]
        anchors[t] = anchor
        balanced = old[3] == 0.0 and rho[i] == 0.5
        to_state(z, old, anchor, ridges[i], False, balanced, rows[t], states[t])
        t += 1
    return steps + 1, DONE


@kernel(error_model="numpy")
def predict(t: int, unknowns: Any, near: Any, z: Any) -> None:
    """`near` and the difference of the unknowns to it, extrapolated from up to four steps before t >= 2."""
    for j in range(5):
        one = unknowns[t - 1, j] - near[t - 1, j]
        two = unknowns[t - 2, j] - near[t - 2, j] if t >= 3 else 0.0
        three = unknowns[t - 3, j] - near[t - 3, j] if t >= 4 else 0.0
        if t >= 5:
            z[j] = (
                near[t, j] + 4.0 * (one + three) - 6.0 * two - (unknowns[t - 4, j] - near[t - 4, j])
            )
        elif t >= 4:
            z[j] = near[t, j] + 3.0 * (one - two) + three
        elif t >= 3:
            z[j] = near[t, j] + 2.0 * one - two
        else:
            z[j] = near[t, j] + one
