r"""One step for the logistic loss, compiled: its equations at a point, Newton's method, the
confirmation.

The averages come from `averages` on the rules of `quadrature`, the equations from `step.equations`.
Step 0 is the step without old weights; it takes the same way.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....runtime.kernels import kernel
from ...quadrature.outer import NewModel, outer_rule
from ...step.averages import BLANK, Extra, blank
from ...step.equations import (
    BIAS,
    ETA,
    LOG_CHI,
    LOG_R,
    A,
    Frame,
    Groups,
    System,
    assemble,
    blank_system,
    damping,
    frame,
    newton_step,
    scales,
)
from ...step.given import Given
from ...tolerances import (
    BACK_TO_ROUGH,
    CAPACITY,
    DAMPED,
    LARGEST_LOG,
    REFINED,
    RELATIVE_SHARPNESS,
    ROUGH,
    ROUGH_STEP,
)
from .averages import logistic_averages
from .logits import Logits


class Workspace(NamedTuple):
    """Arrays a step is computed in: outer nodes, averages, the system of equations."""

    nodes: Any
    averages: Any
    system: System


class Effort(NamedTuple):
    """How Newton's method goes.

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


def workspace() -> Workspace:
    """Arrays for the steps of a run."""
    return Workspace(np.empty((4, CAPACITY)), blank(), blank_system())


@kernel(error_model="numpy")
def reference_sharpness(sharpness: float) -> float:
    r"""$\gamma_0$: the sharpness if labels and logits are comparable, else 0."""
    return sharpness if sharpness <= RELATIVE_SHARPNESS else 0.0


@kernel(error_model="numpy")
def evaluate(
    z: Any,
    step: Given,
    anchor: float,
    exponent: float,
    extra: Extra | None,
    work: Workspace,
) -> tuple[int, float]:
    r"""Residual and Jacobian of a step at z; the points used (-1: too many) and $\ln P_{sel}$.

    `anchor` is $\gamma_0$ of the unknowns: they are differences to the old state, or zero-based
    where little of that is left.
    """
    omega, mu, nu2, old_bias = step.omega, step.mu, step.nu2, step.bias
    delta, sharpness = step.delta, step.sharpness
    base = reference_sharpness(sharpness)
    root = math.sqrt(delta)
    _, off = scales(z, nu2)
    a = anchor * omega + z[A]
    strength = math.exp(z[LOG_CHI]) * delta
    count, log_share = 2, 0.0
    if omega == 0.0:
        true_labels(step.rho, work.nodes)
    else:
        new = NewModel(
            root * abs(a), mu * a + nu2 * z[ETA], anchor * old_bias + z[BIAS], root * off, strength
        )
        count, log_share = outer_rule(step, new, exponent, work.nodes)
    if count <= 0:
        return count, log_share
    slide = z[A] + (anchor - base) * omega
    lift = z[BIAS] + (anchor - base) * old_bias
    if step.fixed_bias:  # the same, but exactly (1 - gamma_0) B' at the solution: nothing cancels
        lift = (1.0 - base) * old_bias + (z[BIAS] - (1.0 - anchor) * old_bias)
    logits = Logits(
        base, sharpness, mu * slide + nu2 * z[ETA], root * slide, lift, root * off, strength
    )
    work.averages[0] = BLANK[0]
    points = logistic_averages(work.nodes, count, logits, exponent, extra, work.averages[0])
    if points < 0:
        return -1, log_share
    share = np.empty(1)
    share[0] = step.alpha * math.exp(log_share)
    spread = np.empty(1)
    spread[0] = delta
    assemble(z, Groups(share, spread, work.averages), frame(step, anchor), work.system)
    return points, log_share


@kernel(error_model="numpy")
def true_labels(rho: float, nodes: Any) -> None:
    """The two outer nodes of a supervised fit: one per class, labelled by its sign."""
    for side in range(2):
        s = 1.0 - 2.0 * side
        nodes[0, side] = s
        nodes[1, side] = 0.0
        nodes[2, side] = rho if side == 0 else 1.0 - rho
        nodes[3, side] = s


@kernel(error_model="numpy")
def evaluate_groups(
    z: Any, groups: Any, about: Frame, exponent: float, extra: Extra | None, work: Workspace
) -> int:
    r"""The same for a supervised fit to several groups; the rows of `groups` are $\alpha, \rho,
    \Delta$.
    """
    _, off = scales(z, 1.0)
    chi = math.exp(z[LOG_CHI])
    points = 0
    for i in range(groups.shape[1]):
        true_labels(groups[1, i], work.nodes)
        noise = math.sqrt(groups[2, i]) * off
        logits = Logits(0.0, math.inf, z[ETA], 0.0, z[BIAS], noise, chi * groups[2, i])
        work.averages[i] = BLANK[0]
        points += logistic_averages(work.nodes, 2, logits, exponent, extra, work.averages[i])
    assemble(z, Groups(groups[0], groups[2], work.averages), about, work.system)
    return points


@kernel(error_model="numpy", inline="always")  # called once: one level less to compile
def newton(
    z: Any, step: Given, anchor: float, effort: Effort, work: Workspace
) -> tuple[float, int, int]:
    """Newton's method from z, in place, with the confirmation; accuracy (inf: failed), evaluations,
    points.

    Far from the root a rough rule is as good as a fine one: it is used until a step on it is small,
    from the beginning unless z is known to be near. When a step is small enough, the next one is
    made on the refined rule: its size is the accuracy.
    """
    about = frame(step, anchor)
    move = work.system.step
    points = 0
    fine = effort.exponent
    rough = min(ROUGH, fine)
    rule = fine if effort.near else rough
    for iteration in range(effort.limit):
        points, _ = evaluate(z, step, anchor, rule, None, work)
        size = newton_step(z, work.system, about) if points > 0 else math.inf
        if not size < math.inf:
            return math.inf, iteration + 1, points
        factor = damping(z, move, about) if size > DAMPED else 1.0
        for j in range(5):
            z[j] += factor * move[j]
        if not (abs(z[LOG_R]) < LARGEST_LOG and abs(z[LOG_CHI]) < LARGEST_LOG):
            return math.inf, iteration + 1, points
        if rule > fine:
            return size, iteration + 1, points
        if rule == fine and size <= effort.enough:
            if effort.agrees and iteration == 0 and size <= effort.tolerance:
                return size, 1, points
            rule = fine + REFINED
        elif size <= ROUGH_STEP:
            rule = fine
        elif size > BACK_TO_ROUGH:
            rule = rough
    return math.inf, effort.limit, points
