r"""The derivatives of a logistic step in its unknowns and in what it is given, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....runtime.kernels import kernel
from ...gradients.step_derivatives import (
    E_CLASS,
    E_F,
    E_FF,
    E_K,
    E_OMEGA,
    E_PLACE,
    E_THRESHOLD,
    E_WEIGHT,
    LabelMoves,
    scaled_label,
    shifts,
)
from ...step.averages import BLANK, Extra
from ...step.equations import BIAS, ETA, LOG_CHI, A, frame, newton_step, scales
from ...step.given import Given, Schedule, given
from ...tolerances import REFINED
from .averages import logistic_averages
from .logits import Logits
from .step import Workspace, evaluate, reference_sharpness

LABELS = Extra(loss=False, labels=True)

SMALL_STEP = 1e-4
"""Below this $\\lambda\\chi$ a step changes the weights by less than the solver's tolerance
can resolve.
"""

LARGE_LOGITS = 5.0
"""Beyond this scale of the old logits the averages of k' are small differences and need a finer
rule.
"""

STRONG_PROX = 1e3
r"""Beyond this strength $\chi\Delta$ the prox bends sharply, and k' lives in its bends: averages of
f are right long before those of k' are. They take twice the refinement.
"""


@kernel(error_model="numpy")
def _edges(z: Any, step: Given, exponent: float, log_share: float, edges: Any) -> int:
    """The jumps of a logistic step: both thresholds for both classes; how many, -1 if a rule is too
    long.

    Without threshold and with soft labels the two sides of the plane meet without a jump, and what
    is left is the derivative in a threshold that opens a gap there.
    """
    node = np.empty((4, 1))
    found = BLANK.copy()
    root = math.sqrt(step.delta)
    width = root * step.omega
    base = reference_sharpness(step.sharpness)
    _, off = scales(z, step.nu2)
    slide = z[A] - base * step.omega
    lift = z[BIAS] - base * step.bias
    logits = Logits(
        base, step.sharpness, step.mu * slide + step.nu2 * z[ETA], root * slide, lift, root * off,
        math.exp(z[LOG_CHI]) * step.delta,
    )  # fmt: skip
    together = step.threshold == 0.0 and not math.isinf(step.sharpness)
    count = 0
    for side in (1.0, -1.0):
        if together and side < 0.0:
            break
        for s in (1.0, -1.0):
            share = step.rho if s > 0.0 else 1.0 - step.rho
            g = (side * step.threshold * step.omega - s * step.mu * step.omega - step.bias) / width
            node[0, 0] = s
            node[1, 0] = g
            node[2, 0] = 1.0
            node[3, 0] = side * max(step.threshold * step.omega, 1e-300)
            found[0] = BLANK[0]
            points = logistic_averages(node, 1, logits, exponent, None, found[0])
            if points < 0:
                return -1
            edge = edges[count]
            edge[:] = 0.0
            edge[E_CLASS] = s
            edge[E_PLACE] = g
            edge[E_WEIGHT] = share * math.exp(-0.5 * g * g - log_share) / math.sqrt(2.0 * math.pi)
            edge[E_F] = -side * found[0].f
            edge[E_FF] = -side * found[0].ff
            edge[E_K] = -side * found[0].k
            edge[E_OMEGA] = side * step.threshold
            edge[E_THRESHOLD] = side * step.omega
            count += 1
    if together:
        for i in range(2):
            edges[2 + i, :] = edges[i]
            for j in (E_F, E_FF, E_K, E_THRESHOLD):
                edges[2 + i, j] = -edges[i, j]
        count = 4
    return count


@kernel(error_model="numpy")
def derivatives_at(
    z: Any, step: Given, exponent: float, work: Workspace, jacobian: Any, move: Any
) -> bool:
    r"""$\partial F/\partial z$ and $\partial F/\partial\theta$ of one step, in place; False if it
    has no rule.

    The unknowns are zero-based. Where a step changes the weights by little they are made more
    exact.
    """
    small = step.ridge * math.exp(z[LOG_CHI]) < SMALL_STEP
    large = math.sqrt(step.delta) * step.omega > LARGE_LOGITS
    strong = math.exp(z[LOG_CHI]) * step.delta > STRONG_PROX
    rule = exponent + (2.0 * REFINED if strong else REFINED if small or large else 0.0)
    points, log_share = evaluate(z, step, 0.0, rule, LABELS, work)
    if points > 0 and small and newton_step(z, work.system, frame(step, 0.0)) < math.inf:
        # the change of the weights is small against them: this Newton step recovers its digits
        for j in range(5):
            z[j] += work.system.step[j]
        points, log_share = evaluate(z, step, 0.0, rule, LABELS, work)
    edges = np.empty((4, 9))
    count = _edges(z, step, rule, log_share, edges)
    if points <= 0 or count < 0:
        return False
    e = work.averages[0]
    sharp = np.empty(5)
    gain = scaled_label(step, e, sharp)
    share = step.alpha * math.exp(log_share)
    shifts(z, step, share, e, LabelMoves(gain, sharp, edges[:count]), move)
    jacobian[:, :] = work.system.jacobian
    return True


@kernel(error_model="numpy")
def derivatives_of_run(
    plan: Schedule, states: Any, unknowns: Any, exponent: float, work: Workspace, jacobians: Any,
    moves: Any,
) -> int:  # fmt: skip
    """The same for steps 1.. of a run, as many as there are unknowns; the step that has no rule, or
    0.
    """
    for t in range(1, unknowns.shape[0]):
        step = given(plan, t, states[t - 1])
        if not derivatives_at(unknowns[t], step, exponent, work, jacobians[t], moves[t]):
            return t
    return 0
