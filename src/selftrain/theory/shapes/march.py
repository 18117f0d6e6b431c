"""A whole run, step after step, in compiled code: logistic loss, covariances that are diagonal in
one set of coordinates. The sphere is one mode.

`march` predicts the unknowns of the next step from those of the last ones (or rather their
difference to a similar run, if one is given) and makes Newton steps until one is small. Every step
is confirmed, in one of two ways:

- by a Newton step on a refined rule, below the tolerance;
- by its neighbours: the step was extrapolated from at least four steps before, solved on two rules
  in turn, and the Newton step from there is below the tolerance. An error of one of the rules would
  be magnified by the extrapolation and show. At least every 16th step, and the last one, is
  confirmed on the refined rule.

When a step does not converge `march` returns, and the caller solves that step by the slower and
surer ways of `solver` before the march continues.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..engines.logistic.step import reference_sharpness
from ..step.ending import Ending, before_step
from ..step.prediction import LONGEST_HISTORY
from ..tolerances import (
    ALTERNATE,
    COLLAPSED_MASS,
    CONFIRM_EVERY,
    LEVELS,
    NEIGHBOURS,
    NEWTON_STEPS,
    NEWTON_STEPS_NEAR,
    REFINED,
)
from .averages import PointSet
from .compiled import Effort, StepSetting, Work, newton_confirmed
from .equations import Labelling, unknown_scales
from .extrapolation import extrapolate
from .modes import BIAS, FIRST, HAT_M, Noise, Weights, advance, off_squares, projections
from .starts import explicit_start, no_update_start

PREDICTED, EXPLICIT, NO_UPDATE = range(3)
"""Where Newton's method began: positions in `step.table.START_NAMES`."""


class Samples(NamedTuple):
    """The sets of samples of a problem in the coordinates of the modes, one row per set.

    Attributes:
        mean, variances: of every mode, (sets, modes) and (sets, groups, modes).
        copies: features per mode.
        features: their sum.
        scales: mean variance of a feature, (sets, groups).
    """

    mean: Any
    variances: Any
    copies: Any
    features: float
    scales: Any


class Test(NamedTuple):
    """The test set: its row, its average variances, the best direction on it, its separation."""

    row: int
    average: Any
    direction: Any
    separation: float


class Schedule(NamedTuple):
    """What steps 0..T are given apart from the weights: arrays over the steps. True labels have
    infinite sharpness; a bias of zero remains zero in `balanced` steps.
    """

    row: Any
    alpha: Any
    rho: Any
    threshold: Any
    sharpness: Any
    ridge: Any
    balanced: Any


class Near(NamedTuple):
    """A similar run to predict from: its unknowns, and their gammas (NaN where there is none)."""

    unknowns: Any
    gammas: Any


class Demands(NamedTuple):
    """What is asked for: the exponent of the rules, the last Newton step, the tolerance; whether
    the bias is fixed; the first step in the units of the weights, and whether they have faded
    (`theory.fading`).
    """

    exponent: float
    enough: float
    tolerance: float
    fixed_bias: bool
    since: int
    faded: bool


class Table(NamedTuple):
    """What a run stores of every step, as in `engine.Run`."""

    unknowns: Any
    gammas: Any
    rows: Any
    variances: Any
    strengths: Any
    off_best: Any
    means: Any
    spreads: Any
    evaluations: Any
    points: Any
    accuracy: Any
    starts: Any


@kernel(error_model="numpy")
def march(
    steps: tuple[int, int],
    samples: Samples,
    test: Test,
    plan: Schedule,
    near: Near,
    demands: Demands,
    table: Table,
    work: Work,
) -> tuple[int, Ending]:
    """Solve the steps from the first of `steps` up to the second; the first that is not solved,
    and how it ended (UNCONFIRMED: it needs another way).
    """
    groups = samples.variances.shape[1]
    first, end = steps
    x = np.empty(FIRST + 3 * groups)
    seen = np.empty(1 + groups)
    history = np.empty((LONGEST_HISTORY, FIRST + 3 * groups))
    out = np.empty(4)
    nothing = np.zeros(samples.mean.shape[1])
    level = 0
    refined = first - 1  # the last step that was confirmed on the refined rule
    t = first
    while t < end:
        row = plan.row[t]
        noise = Noise(samples.mean[row], samples.variances[row], samples.copies, samples.features)
        old = Weights(nothing, nothing)
        bias = 0.0
        if t > 0:
            old = Weights(table.means[t - 1], table.spreads[t - 1])
            bias = table.rows[t - 1, 2]
        setting = _setting(t, noise, old, bias, plan, demands.fixed_bias, seen)
        labels = setting.labels
        if t > 0:
            state = np.array([labels.roots.max(), 0.0, 0.0, bias])
            ending = before_step(state, demands.fixed_bias, demands.faded)
            if ending != Ending.SOLVED:
                return t, ending
        ridge = plan.ridge[t]
        fine = demands.exponent + level * REFINED + (ALTERNATE if t % 2 == 1 else 0.0)
        is_near = not math.isnan(near.gammas[t])
        known = _alike(t, demands.since, labels.gamma, table.gammas, near.gammas)
        agrees = known >= NEIGHBOURS and not is_near and t < end - 1 and t - refined < CONFIRM_EVERY
        predicted = (known > 0 or is_near) and (
            t == 0 or demands.fixed_bias or _both_classes(labels, setting.points)
        )
        used, accuracy = 0, math.inf
        if predicted:
            _predict(t, known, table.unknowns, near, labels, history, x)
            effort = Effort(
                fine, demands.enough, demands.tolerance, NEWTON_STEPS_NEAR, True, agrees
            )
            accuracy, used, table.points[t] = newton_confirmed(x, ridge, effort, setting, work)
            table.starts[t] = PREDICTED
        if not accuracy < math.inf:
            mass = explicit_start(setting, work, x)
            if math.isnan(mass):
                return t, Ending.EMPTY
            if mass < 0.0:
                return t, Ending.UNCONFIRMED
            if t > 0 and not demands.fixed_bias and mass < COLLAPSED_MASS:
                return t, Ending.COLLAPSED
            table.starts[t] = EXPLICIT
            if no_update_start(setting, ridge, work, x):
                table.starts[t] = NO_UPDATE
            effort = Effort(fine, demands.enough, demands.tolerance, NEWTON_STEPS, False, False)
            accuracy, more, table.points[t] = newton_confirmed(x, ridge, effort, setting, work)
            used += more
        table.evaluations[t] += used
        if not accuracy < math.inf:
            return t, Ending.UNCONFIRMED
        if not accuracy <= demands.tolerance:
            level += 1
            if level > LEVELS:
                return t, Ending.UNCONFIRMED
            t = refined + 1
            continue
        if used > 1:
            refined = t
        table.accuracy[t] = accuracy
        if plan.balanced[t] and bias == 0.0:
            x[BIAS] = 0.0
        new = Weights(table.means[t], table.spreads[t])
        advance(x, ridge, labels.gamma, noise, old, new, out)
        _enter(t, x, setting, samples, row, test, new, out, table)
        for k in range(2):
            table.strengths[t, k] = work.fields[1 + 2 * groups + min(k, groups - 1), 0]
        t += 1
    return end, Ending.SOLVED


@kernel(error_model="numpy")
def _setting(
    t: int, noise: Noise, old: Weights, bias: float, plan: Schedule, fixed_bias: bool, seen: Any
) -> StepSetting:
    """What step t is given; `seen` has room for the projections of the old weights."""
    groups = noise.variances.shape[0]
    if t == 0:
        points = PointSet(plan.alpha[0], plan.rho[0], 0.0, math.inf)
        labels = Labelling(0.0, np.ones(groups), 0.0, 0.0)
        softness = np.empty(groups)
        for k in range(groups):
            softness[k] = (noise.variances[k] * noise.copies).sum() / noise.copies.sum()
        return StepSetting(noise, old, labels, points, softness, math.nan, 1.0)
    projections(old, noise, seen)
    gamma = reference_sharpness(plan.sharpness[t])
    square = 0.0
    length = 0.0
    for i in range(noise.mean.shape[0]):
        square += old.mean[i] * old.mean[i] + noise.copies[i] * old.variance[i]
        length += noise.mean[i] * noise.mean[i]
    points = PointSet(
        plan.alpha[t], plan.rho[t], plan.threshold[t] * math.sqrt(square * length),
        plan.sharpness[t],
    )  # fmt: skip
    labels = Labelling(seen[0], np.sqrt(seen[1:]), bias, gamma)
    held = (1.0 - gamma) * bias if fixed_bias else math.nan
    return StepSetting(noise, old, labels, points, seen[1:] / square, held, 0.0)


@kernel(error_model="numpy")
def _alike(t: int, since: int, gamma: float, gammas: Any, near: Any) -> int:
    """How many steps before t, down to step `since`, have unknowns of the same form."""
    is_near = not math.isnan(near[t])
    count = 0
    for k in range(t - 1, since - 1, -1):
        if (gammas[k] > 0.0) != (gamma > 0.0) or count == LONGEST_HISTORY:
            break
        if is_near and (math.isnan(near[k]) or (near[k] > 0.0) != (gamma > 0.0)):
            break
        count += 1
    return count


@kernel(error_model="numpy")
def _predict(
    t: int, known: int, unknowns: Any, near: Near, labels: Labelling, history: Any, x: Any
) -> None:
    """Extrapolate the difference of the unknowns to those of the similar run (zeros: none)."""
    x[:] = 0.0
    if known > 0:
        scale = np.empty(x.shape[0])
        unknown_scales(unknowns[t - 1], labels, scale)
        for i in range(known):
            for j in range(x.shape[0]):
                history[i, j] = unknowns[t - known + i, j] - near.unknowns[t - known + i, j]
        extrapolate(history[:known], scale, x)
    x += near.unknowns[t]


@kernel(error_model="numpy")
def _both_classes(labels: Labelling, points: PointSet) -> bool:
    """Whether neither class of labels can be as rare as in a collapse, from a bound: a label
    beyond the threshold is at least one half, and without one half of the labels of a class lie
    beyond that of its mean logit.
    """
    up = down = 0.0
    groups = labels.roots.shape[0]
    for k in range(groups):
        for side in range(2):
            if groups == 2 and side != k:
                continue
            share = points.rho if side == 1 else 1.0 - points.rho
            centre = (labels.m if side == 1 else -labels.m) + labels.bias
            scale = math.sqrt(0.5) / labels.roots[k]
            above = 0.5 * math.erfc((points.threshold - centre) * scale)
            below = 0.5 * math.erfc((points.threshold + centre) * scale)
            if points.threshold == 0.0:
                above = max(above, 1.0 / (1.0 + math.exp(-points.sharpness * centre)))
                below = max(below, 1.0 / (1.0 + math.exp(points.sharpness * centre)))
            up += share * above
            down += share * below
    return 0.5 * min(up, down) > COLLAPSED_MASS


@kernel(error_model="numpy")
def _enter(
    t: int, x: Any, setting: StepSetting, samples: Samples, row: int, test: Test, new: Weights,
    out: Any, table: Table,
) -> None:  # fmt: skip
    """The solution of step t: unknowns, what the test samples see of the weights, and the row of
    the trajectory.
    """
    labels = setting.labels
    groups = labels.roots.shape[0]
    noise = Noise(
        samples.mean[test.row], samples.variances[test.row], samples.copies, samples.features
    )
    seen = np.empty(1 + groups)
    projections(new, noise, seen)
    v, off = off_squares(new, noise, test.average, test.direction, test.separation)
    table.unknowns[t] = x
    table.gammas[t] = labels.gamma
    table.off_best[t] = off if test.separation < math.inf else math.nan
    hat_q = hat_chi = hat_r = 0.0
    for k in range(groups):
        scale, stiff = samples.scales[row, k], math.exp(x[FIRST + groups + k])
        hat_q += scale * stiff
        hat_chi += scale * math.exp(x[FIRST + 2 * groups + k])
        hat_r += scale * (labels.gamma * stiff - x[FIRST + k])
    for k in range(2):
        table.variances[t, k] = seen[1 + min(k, groups - 1)]
    here = table.rows[t]
    here[0], here[1], here[2] = seen[0], v, labels.gamma * labels.bias + x[BIAS]
    here[3], here[4] = out[3], math.nan if t == 0 else out[2]
    here[5], here[6], here[7] = hat_q, hat_chi, x[HAT_M]
    here[8] = math.nan if t == 0 else hat_r
