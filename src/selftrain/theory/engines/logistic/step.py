r"""One self-training step for the logistic loss, compiled: its equations at a point, and Newton's method.

The averages come from `moments` on the rules of `quadrature`, the equations from `equations`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ....runtime.kernels import kernel
from ...quadrature.rules import REFINED, outer_rule
from ...step.equations import BIAS, ETA, LOG_CHI, LOG_R, A, assemble, damping, newton_step, scales
from .averages import logistic_moments

RELATIVE_SHARPNESS = 4.0
"""Up to this sharpness the unknowns are differences to the (sharpened) old state."""


ROUGH = 14.0
"""Exponent of the rule far from the root: averages to about 1e-6."""

ROUGH_STEP = 2e-3
"""A step this small, made on the rough rule, ends about where that rule can tell no more."""


class Step(NamedTuple):
    r"""What a step is given: the old state ($\omega, \mu, \nu^2, B'$), the batch, the recipe."""

    omega: float
    mu: float
    nu2: float
    bias: float
    alpha: float
    rho: float
    delta: float
    ridge: float
    threshold: float
    sharpness: float
    fixed_bias: bool


class Workspace(NamedTuple):
    """Arrays a step is computed in: outer nodes, averages, residuals, Jacobian, Newton step."""

    nodes: Any
    moments: Any
    residual: Any
    jacobian: Any
    move: Any


@kernel(error_model="numpy")
def reference_sharpness(sharpness: float) -> float:
    r"""$\gamma_0$: the sharpness if labels and logits are comparable, else 0."""
    return sharpness if sharpness <= RELATIVE_SHARPNESS else 0.0


@kernel(error_model="numpy")
def evaluate(
    z: Any,
    step: Step,
    anchor: float,
    exponent: float,
    with_loss: bool,
    with_labels: bool,
    work: Workspace,
) -> tuple[int, float]:
    r"""Residual and Jacobian of a self-training step at z; the points used (-1: too many) and $\ln P_{sel}$.

    `anchor` is $\gamma_0$ of the
    unknowns: they are differences to the old state, or zero-based where little of that is left.
    """
    omega, mu, nu2, old_bias = step.omega, step.mu, step.nu2, step.bias
    delta, sharpness = step.delta, step.sharpness
    base = reference_sharpness(sharpness)
    root = math.sqrt(delta)
    _, off = scales(z, nu2)
    a = anchor * omega + z[A]
    slide = z[A] + (anchor - base) * omega
    lift = z[BIAS] + (anchor - base) * old_bias
    chi = math.exp(z[LOG_CHI])
    count, log_share = outer_rule(
        omega, mu * omega, old_bias, step.rho, delta, step.threshold, sharpness, root * abs(a),
        mu * a + nu2 * z[ETA], anchor * old_bias + z[BIAS], root * off, chi * delta, exponent, work.nodes,
    )  # fmt: skip
    if count <= 0:
        return count, log_share
    points = logistic_moments(
        work.nodes, count, base, sharpness, mu * slide + nu2 * z[ETA], root * slide, lift,
        root * off, chi * delta, exponent, with_loss, with_labels, work.moments[0],
    )  # fmt: skip
    if points < 0:
        return -1, log_share
    share = np.empty(1)
    share[0] = step.alpha * math.exp(log_share)
    spread = np.empty(1)
    spread[0] = delta
    held = (1.0 - anchor) * old_bias if step.fixed_bias else math.nan
    assemble(
        z, work.moments, share, spread, step.ridge, mu, nu2, anchor * omega, False, held,
        work.residual, work.jacobian,
    )  # fmt: skip
    return points, log_share


@kernel(error_model="numpy")
def evaluate_supervised(
    z: Any,
    groups: Any,
    ridge: float,
    exponent: float,
    with_loss: bool,
    nodes: Any,
    moments: Any,
    residual: Any,
    jacobian: Any,
) -> int:
    r"""The same for a supervised fit; the rows of `groups` are $\alpha, \rho, \Delta$, one column a group."""
    _, off = scales(z, 1.0)
    chi = math.exp(z[LOG_CHI])
    points = 0
    for i in range(groups.shape[1]):
        for side in range(2):
            s = 1.0 - 2.0 * side
            nodes[0, side] = s
            nodes[1, side] = 0.0
            nodes[2, side] = groups[1, i] if side == 0 else 1.0 - groups[1, i]
            nodes[3, side] = s
        root = math.sqrt(groups[2, i])
        points += logistic_moments(
            nodes, 2, 0.0, math.inf, z[ETA], 0.0, z[BIAS], root * off, chi * groups[2, i],
            exponent, with_loss, True, moments[i],
        )  # fmt: skip
    assemble(
        z, moments, groups[0], groups[2], ridge, 0.0, 1.0, 0.0, True, math.nan, residual, jacobian
    )
    return points


@kernel(error_model="numpy")
def newton(
    z: Any,
    step: Step,
    anchor: float,
    exponent: float,
    enough: float,
    limit: int,
    near: bool,
    work: Workspace,
) -> tuple[float, int, int]:
    """Newton's method from z, in place; the size of the last step (inf: failed), evaluations, points.

    Far from the root a rough rule is as good as a fine one: it is used until a step on it is small, from the
    beginning unless z is known to be `near`.
    """
    offset = anchor * step.omega
    root = math.sqrt(step.delta)
    move = work.move
    size = math.inf
    points = 0
    rough = min(ROUGH, exponent)
    rule = exponent if near else rough
    for iteration in range(limit):
        points, _ = evaluate(z, step, anchor, rule, False, False, work)
        if points <= 0:
            return math.inf, iteration + 1, points
        size = newton_step(
            z, work.residual, work.jacobian, step.nu2, offset, anchor * step.bias, root, move
        )
        if not size < math.inf:
            return math.inf, iteration + 1, points
        factor = damping(z, move, step.nu2, offset, step.omega) if size > 0.1 else 1.0
        for j in range(5):
            z[j] += factor * move[j]
        if not (abs(z[LOG_R]) < 345.0 and abs(z[LOG_CHI]) < 345.0):
            return math.inf, iteration + 1, points
        if size <= enough and rule == exponent:
            return size, iteration + 1, points
        if size <= ROUGH_STEP:
            rule = exponent
        elif size > 0.05:
            rule = rough
    return math.inf, limit, points


@kernel(error_model="numpy")
def confirm(
    z: Any,
    step: Step,
    anchor: float,
    exponent: float,
    work: Workspace,
) -> tuple[float, int]:
    """Relative size of the Newton step from z on the refined rule, and its number of points."""
    points, _ = evaluate(z, step, anchor, exponent + REFINED, False, False, work)
    if points <= 0:
        return math.inf, 0
    size = newton_step(
        z, work.residual, work.jacobian, step.nu2, anchor * step.omega, anchor * step.bias,
        math.sqrt(step.delta), work.move,
    )  # fmt: skip
    return size, points


@kernel(error_model="numpy")
def to_state(
    z: Any, old: Any, anchor: float, ridge: float, first: bool, balanced: bool, row: Any, new: Any
) -> None:
    r"""From z to a row (m, v, B, $\chi$, R, $\hat Q$, $\hat\chi$, $\hat m$, $\hat R$) and the state ($\omega, \mu, \nu^2$, B).

    `anchor` is $\gamma_0$; `first` marks step 0, where R and $\hat R$ do not exist. `balanced` says that nothing tells the
    classes apart: then B is zero, and its rounding must not live on, for steps may magnify it.
    """
    omega, mu, nu2, old_bias = old
    r, _ = scales(z, nu2)
    chi = math.exp(z[LOG_CHI])
    a = anchor * omega + z[A]
    m = mu * a + nu2 * z[ETA]
    rest = math.hypot(math.sqrt(nu2) * (a - mu * z[ETA]), r)
    norm = math.hypot(m, rest)
    bias = anchor * old_bias + z[BIAS]
    if balanced:
        bias = 0.0
    row[0] = m
    row[1] = rest * rest
    row[2] = bias
    row[3] = chi
    row[4] = math.nan if first else omega * a
    row[5] = 1.0 / chi - ridge
    row[6] = (r / chi) ** 2
    row[7] = z[ETA] / chi
    row[8] = math.nan if first else (a - mu * z[ETA]) / (chi * omega)
    new[0] = norm
    new[1] = m / norm
    new[2] = (rest / norm) ** 2
    new[3] = row[2]
