r"""The equations of one step (Definition `def: self-consistent equations`): residuals and Jacobian
in the conjugates, and Newton's method on them, compiled.

With the fields of `geometry.modes` (or `geometry.matrices`) and the averages of every group of
samples,

    a_k = \alpha p_k P_k(\text{selected})
    \hat m = -\sum_k a_k E_k[s f]
    T_k = a_k \{ E_k[g_1 f]/\sqrt{q'_k} - (\psi_k - \gamma_0) E_k[\partial f/\partial h] \}
    0 = \sum_k a_k E_k[f]
    \hat Q_k = a_k E_k[\partial f/\partial h]
    \hat\chi_k = a_k E_k[f^2]

A group is a class with its own covariance, or both classes if they share one. $T_k = \gamma_0\hat
Q_k - \hat R_k$ replaces the conjugate $\hat R_k$ (integrated by parts): it is small, without
cancellation, if a step hardly changes the weights. The step is a convex problem
(docs/theory-derivations.md), so its solution is unique, and a small residual proves it.

Where each equation of the paper's definition is (step t, step 0):

    \hat Q     `eq:rs-saddle-hatq`, `eq:rs-saddle-qhat0`        here
    \hat\chi   `eq:rs-saddle-hatchi`, `eq:rs-saddle-chihat0`    here
    \hat m     `eq:rs-saddle-hatm`, `eq:rs-saddle-mhat0`        here
    \hat R     `eq:rs-saddle-hatr`                              by parts, in T
    B          `eq:rs-saddle-b`, `eq:rs-saddle-b0`              here
    q, m, R    `eq:rs-saddle-q`, `eq:rs-saddle-m`, `eq:rs-saddle-r`,
               `eq:rs-saddle-q0`, `eq:rs-saddle-m0`             `geometry.modes.advance`
    \chi       `eq:rs-saddle-chi`, `eq:rs-saddle-chi0`          `geometry.modes.advance`: tr G/N
    \hat u     `eq:rs-saddle-uhat`, `eq:rs-saddle-uhat0`        `averages.prox_panels.prox`
    h          `eq:rs-saddle-local-field1`, `eq:rs-saddle-local-field2`,
               `eq:rs-saddle-local-field0`
               (`eq: intuitive hu1`, `eq: intuitive hu2`)       `averages.batch`
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..averages.batch import At, Batch, Labelling, Room, batch_averages, room_for
from ..geometry.modes import BIAS, FIRST, HAT_M, Noise, Weights, mode_sums
from ..tolerances import (
    BACK_TO_ROUGH,
    DAMPED,
    LARGEST_LOG,
    LONGEST_LOG_STEP,
    LONGEST_STEP,
    NEWTON_STEPS,
    NEWTON_STEPS_NEAR,
    NO_STIFFNESS,
    REFINED,
    ROUGH,
    ROUGH_STEP,
    STALLED,
)
from .prediction import LONGEST_HISTORY

X, SEEN, OUT, HISTORY = 0, 1, 4, 5
"""First rows of the parts of `Work.rows`: the unknowns; the projections of the old weights on the
batch, their roots and the softness; overlap and chi of the new weights; unknowns of previous steps.
"""


class StepSetting(NamedTuple):
    r"""Inputs of a step.

    Attributes:
        noise, old: its clusters and the old weights in the coordinates of the modes.
        labels, batch: the model that makes the labels, and the samples it labels.
        ridge: ridge of the step.
        softness: $q'_k/|\beta'|^2$, the variance of each group along the old weights.
        fixed_bias: the value of a fixed bias minus $\gamma_0 B'$; NaN if the bias is trained.
    """

    noise: Noise
    old: Weights
    labels: Labelling
    batch: Batch
    ridge: float
    softness: Any
    fixed_bias: float


class Work(NamedTuple):
    """Buffers of an evaluation.

    Attributes:
        room: for the averages.
        fields: fields and their derivatives.
        system: residuals (column 0, later the Newton step) and Jacobian.
        rows: vectors as long as the unknowns, see `X`, `SEEN`, `OUT` and `HISTORY`.
    """

    room: Room
    fields: Any
    system: Any
    rows: Any


class Demands(NamedTuple):
    """Options of a run.

    Attributes:
        exponent: exponent of the quadrature rules (`tolerances`), at least.
        enough: size of a Newton step after which a solution is confirmed.
        tolerance: largest size of a Newton step that confirms.
        fixed_bias: whether the bias is fixed.
        since: first step with the current units of the weights (`theory.fading`).
        faded: whether the weights are rescaled.
    """

    exponent: float
    enough: float
    tolerance: float
    fixed_bias: bool
    since: int
    faded: bool


def work_for(groups: int) -> Work:
    """Return the buffers of the evaluations of a run with this many groups of samples."""
    size = FIRST + 3 * groups
    fields, system = np.zeros((1 + 3 * groups, size + 1)), np.zeros((size, size + 1))
    return Work(room_for(groups), fields, system, np.empty((HISTORY + LONGEST_HISTORY + 1, size)))


@kernel(allocates=False)
def assemble(
    x: Any, fields: Any, moments: Any, labels: Labelling, fixed: tuple[float, float, float],
    system: Any,
) -> None:  # fmt: skip
    """Fill `system` with the residuals (column 0) and the Jacobian (other columns).

    `fixed` is (anchor of the fields, the value of a fixed bias or NaN, 1 in step 0 else 0).
    """
    anchor, fixed_bias, first = fixed
    groups = moments.shape[0]
    size = x.shape[0]
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    for i in range(size):
        for j in range(size + 1):
            system[i, j] = 0.0
    system[HAT_M, 0] = x[HAT_M]
    system[HAT_M, 1 + HAT_M] = 1.0
    for k in range(groups):
        e = moments[k]
        a = e.share
        root = labels.roots[k]
        psi = fields[1 + k, 0] + (anchor - labels.gamma)
        system[HAT_M, 0] += a * e.sf
        system[BIAS, 0] += a * e.f
        system[t0 + k, 0] = x[t0 + k]
        system[q0 + k, 0] = x[q0 + k] - math.log(a * e.k)
        system[x0 + k, 0] = x[x0 + k] - math.log(a * e.ff)
        if first == 0.0:
            system[t0 + k, 0] -= a * (e.gf / root - psi * e.k)
        for j in range(size):
            shift = fields[0, 1 + j]
            turn = fields[1 + k, 1 + j]
            tilt = turn * root
            wide = fields[1 + groups + k, 1 + j]
            c = fields[1 + 2 * groups + k, 1 + j]
            lift = 1.0 if j == BIAS else 0.0
            d_f = e.sk * shift + e.gk * tilt + e.nk * wide - e.fk * c + e.k * lift
            d_sf = e.k * shift + e.sgk * tilt + e.snk * wide - e.sfk * c + e.sk * lift
            d_gf = e.sgk * shift + e.ggk * tilt + e.gnk * wide - e.gfk * c + e.gk * lift
            d_ff = e.sfk * shift + e.gfk * tilt + e.nfk * wide - e.ffk * c + e.fk * lift
            d_k = e.sk3 * shift + e.gk3 * tilt + e.nk3 * wide - (e.fk3 + e.kk) * c + e.k3 * lift
            system[HAT_M, 1 + j] += a * d_sf
            system[BIAS, 1 + j] += a * d_f
            system[q0 + k, 1 + j] -= d_k / e.k
            system[x0 + k, 1 + j] -= 2.0 * d_ff / e.ff
            if first == 0.0:
                system[t0 + k, 1 + j] -= a * (d_gf / root - turn * e.k - psi * d_k)
        system[t0 + k, 1 + t0 + k] += 1.0
        system[q0 + k, 1 + q0 + k] += 1.0
        system[x0 + k, 1 + x0 + k] += 1.0
    if not math.isnan(fixed_bias):
        system[BIAS, 0] = x[BIAS] - fixed_bias
        for j in range(size):
            system[BIAS, 1 + j] = 1.0 if j == BIAS else 0.0


@kernel(allocates=False)
def solve_in_place(system: Any) -> bool:
    """Solve linear equations by Gaussian elimination with row scaling and partial pivoting; return
    whether they are finite and not singular.

    Column 0 of `system` is the right side, and afterwards the solution.
    """
    n = system.shape[0]
    for i in range(n):
        top = 0.0
        for j in range(1, n + 1):
            top = max(top, abs(system[i, j]))
        if not (0.0 < top < math.inf):
            return False
        scale = 1.0 / top
        for j in range(n + 1):
            system[i, j] *= scale
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(system[i, k + 1]) > abs(system[best, k + 1]):
                best = i
        if not abs(system[best, k + 1]) > 0.0:
            return False
        if best != k:
            for j in range(n + 1):
                system[k, j], system[best, j] = system[best, j], system[k, j]
        for i in range(k + 1, n):
            factor = system[i, k + 1] / system[k, k + 1]
            if factor != 0.0:
                for j in range(k + 2, n + 1):
                    system[i, j] -= factor * system[k, j]
                system[i, 0] -= factor * system[k, 0]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            system[k, 0] -= system[k, j + 1] * system[j, 0]
        system[k, 0] /= system[k, k + 1]
        if not abs(system[k, 0]) < math.inf:
            return False
    return True


@kernel(allocates=False)
def newton_step(
    x: Any, fields: Any, labels: Labelling, anchor: float, ridge: float, softness: Any, system: Any
) -> tuple[float, float]:
    r"""Return the size of the Newton step relative to the state (infinite if there is none), and
    the factor that limits it; the step is written to column 0 of `system`.

    The size is the largest relative change of m, $\psi_k$, noise_k, $c_k$, the bias, $\hat Q$ and
    $\sqrt{\hat\chi}$.
    """
    size, groups = x.shape[0], labels.roots.shape[0]
    if not solve_in_place(system):
        return math.inf, 0.0
    for j in range(size):
        system[j, 0] = -system[j, 0]
    factor, old_scale = 1.0, 0.0
    scale = abs(fields[0, 0] + anchor * labels.m)
    for k in range(groups):
        root = labels.roots[k]
        along = (fields[1 + k, 0] + anchor) * root
        scale = max(scale, math.hypot(along, fields[1 + groups + k, 0]))
        old_scale = max(old_scale, root)
    bias = x[BIAS] + labels.gamma * labels.bias
    worst, largest = abs(system[BIAS, 0]) / (abs(bias) + scale), 0.0
    for row in range(1 + 3 * groups):
        moved = 0.0
        for j in range(size):
            moved += fields[row, 1 + j] * system[j, 0]
        if row > groups:
            worst = max(worst, abs(moved) / fields[row, 0])
        else:
            largest = max(largest, abs(moved) * (labels.roots[row - 1] if row > 0 else 1.0))
    worst = max(worst, largest / scale)
    for k in range(groups):
        stiff, noisy = FIRST + groups + k, FIRST + 2 * groups + k
        worst = max(worst, abs(system[stiff, 0]))
        worst = max(worst, 0.5 * abs(system[noisy, 0]))  # the root of hat chi scales as weights do
        factor = min(factor, LONGEST_LOG_STEP / abs(system[noisy, 0]))
        counts = math.exp(x[stiff]) * softness[k] >= NO_STIFFNESS * ridge
        if counts or system[stiff, 0] > 0.0:
            factor = min(factor, LONGEST_LOG_STEP / abs(system[stiff, 0]))
    longest = LONGEST_STEP * (scale + old_scale)
    if largest > longest:
        factor = min(factor, longest / largest)
    if not worst < math.inf:
        return math.inf, 0.0
    return worst, factor


@kernel(allocates=False)
def stiffness_of(x: Any, softness: Any) -> float:
    """Return the curvature of the mean loss along the old weights, to compare with the ridge."""
    groups = softness.shape[0]
    stiffness = 0.0
    for k in range(groups):
        stiffness += math.exp(x[FIRST + groups + k]) * softness[k]
    return stiffness


@kernel(allocates=False)
def anchor_of(x: Any, ridge: float, gamma: float, softness: Any) -> float:
    """Return the anchor, the multiple of the old weights that fields are differences from: gamma,
    or 0 if the ridge leaves little of the old weights.
    """
    return gamma if ridge < stiffness_of(x, softness) else 0.0


@kernel(allocates=False)
def finite(table: Any) -> bool:
    """Return whether a table has finite numbers only."""
    total = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            total += 0.0 * table[i, j]
    return total == 0.0


@kernel(allocates=False)
def evaluate(x: Any, exponent: float, setting: StepSetting, work: Work) -> tuple[int, float, float]:
    """Return the number of nodes, the size of the Newton step from x (infinite if there is none)
    and the factor that limits it; the step is in column 0 of `work.system`.
    """
    labels, ridge, fields, room = setting.labels, setting.ridge, work.fields, work.room
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
    """Return whether to leave the rough rule, because its Newton steps have reached its accuracy.

    This is the case if a step is small, or if it is moderate and hardly smaller than the last one.
    """
    return size <= ROUGH_STEP or STALLED * last < size <= BACK_TO_ROUGH


@kernel(allocates=False)
def newton_confirmed(
    x: Any, fine: float, near: bool, agrees: bool, demands: Demands, setting: StepSetting,
    work: Work,
) -> tuple[float, int, int]:  # fmt: skip
    """Run Newton's method from x, in place, and confirm the solution; return its accuracy (infinite
    if it failed) and the numbers of evaluations and nodes.

    Arguments:
        fine: exponent of the quadrature rule of the step.
        near: whether x is near the root.
        agrees: whether a first step below the tolerance counts as a confirmation, because x was
            extrapolated from steps that were solved on different rules.

    Far from the root a rough rule is as good as a fine one. It is used from the beginning, unless x
    is near the root, until its steps are small. When a step on the fine rule is small
    enough, the next one is on the refined rule: its size is the accuracy.
    """
    used = 0
    rough = min(ROUGH, fine)
    rule = fine if near else rough
    limit = NEWTON_STEPS_NEAR if near else NEWTON_STEPS
    logs = FIRST + setting.noise.variances.shape[0]
    last = math.inf
    for iteration in range(limit):
        used, size, factor = evaluate(x, rule, setting, work)
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
        if rule == fine and size <= demands.enough:
            if agrees and iteration == 0 and size <= demands.tolerance:
                return size, 1, used
            rule = fine + REFINED
        elif enough_of_rough(size, last):
            rule = fine
        elif size > BACK_TO_ROUGH:
            rule = rough
        last = size
    return math.inf, limit, used


@kernel(allocates=False)
def raise_stiffness(x: Any, ridge: float, softness: Any) -> None:
    """Raise a negligible stiffness to `NO_STIFFNESS` times the ridge, in place.

    A model with a large bias and small weights has almost no stiffness; from there Newton's method
    would need many steps in its logarithm.
    """
    groups = softness.shape[0]
    for k in range(groups):
        least = NO_STIFFNESS * ridge / softness[k]
        if least > 0.0:
            x[FIRST + groups + k] = max(x[FIRST + groups + k], math.log(least))
