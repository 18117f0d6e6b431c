"""A whole run, step after step, in compiled code: logistic or squared loss, covariances that are
diagonal in one set of coordinates. The sphere is one mode.

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

Tables are few arrays with named columns: numba takes long to compile, and some time to pass,
records of many arrays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..averages.batch import SQUARED, Batch, Labelling, reference_sharpness
from ..averages.without_weights import explicit_start
from ..ending import Ending, before_step
from ..geometry.modes import BIAS, FIRST, Noise, Weights, advance, projections
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
from .equations import unknown_scales
from .newton import Effort, StepSetting, Work, newton_confirmed
from .prediction import LONGEST_HISTORY, extrapolate
from .starts import no_update_start, raise_stiffness

THRESHOLD, SHARPNESS, RIDGE = range(3)
ROW, LOSS, BALANCED = range(3)
"""Columns of `Schedule.numbers` and `Schedule.kinds`."""

OLD_BIAS, CHI, OVERLAP, ACCURACY = range(4)
EVALUATIONS, NODES, START = range(3)
"""Columns of `Table.numbers` and `Table.counts`."""

MODERATE = 20.0
"""Half of the labels of a class whose mean logit is smaller than this have at least exp(-20) of
either class.
"""

PREDICTED, EXPLICIT, NO_UPDATE = range(3)
"""Where Newton's method began: positions in `stats.START_NAMES`."""


class Samples(NamedTuple):
    """The sets of samples of a problem in the coordinates of the modes.

    Attributes:
        mean, variances: of every mode, (sets, modes) and (sets, groups, modes).
        copies: features per mode.
        features: their sum.
        length: half the distance of the labelled class means, the unit of the thresholds.
    """

    mean: Any
    variances: Any
    copies: Any
    features: float
    length: float


class Schedule(NamedTuple):
    """What steps 0..T are given apart from the weights: arrays over the steps.

    Attributes:
        numbers: threshold, sharpness (infinite for given and hard labels), ridge.
        kinds: row of the set of samples, loss (`averages.batch`), whether a bias of zero remains
            zero.
        groups: samples per feature and proportion of positives of every group.
        wrong: share of wrong ones among the given labels of the negative and the positive class.
    """

    numbers: Any
    kinds: Any
    groups: Any
    wrong: Any


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
    r"""What a run stores of every step.

    Attributes:
        unknowns: as `geometry.modes` orders them, and last their $\gamma_0$.
        means, spreads: the law of the weights.
        numbers: bias, $\chi$, overlap with the old weights, accuracy.
        counts: evaluations, nodes, start.
    """

    unknowns: Any
    means: Any
    spreads: Any
    numbers: Any
    counts: Any


@kernel(error_model="numpy")
def march(
    steps: tuple[int, int], samples: Samples, plan: Schedule, near: Any, demands: Demands,
    table: Table, work: Work,
) -> tuple[int, Ending]:  # fmt: skip
    r"""Solve the steps from the first of `steps` up to the second; the first that is not solved,
    and how it ended (UNCONFIRMED: it needs another way). `near` has the unknowns of a similar run
    and their $\gamma_0$, NaN where there is none.
    """
    groups, modes = samples.variances.shape[1], samples.mean.shape[1]
    first, end = steps
    size = FIRST + 3 * groups
    x, out, seen = np.empty(size), np.empty(4), np.empty((3, 1 + groups))
    history, nothing = np.empty((LONGEST_HISTORY + 1, size)), np.zeros(modes)
    level = 0
    refined = first - 1  # the last step that was confirmed on the refined rule
    t = first
    while t < end:
        old = Weights(nothing, nothing)
        bias = 0.0
        if t > 0:
            old = Weights(table.means[t - 1], table.spreads[t - 1])
            bias = table.numbers[t - 1, OLD_BIAS]
        setting = setting_of(t, samples, plan, old, bias, demands.fixed_bias, seen)
        labels = setting.labels
        if t > 0:
            spread = labels.roots[0]
            for k in range(1, groups):
                spread = max(spread, labels.roots[k])
            ending = before_step(spread, bias, demands.fixed_bias, demands.faded)
            if ending != Ending.SOLVED:
                return t, ending
        ridge = plan.numbers[t, RIDGE]
        fine = demands.exponent + level * REFINED + (ALTERNATE if t % 2 == 1 else 0.0)
        is_near = not math.isnan(near[t, size])
        known = _alike(t, demands.since, labels.gamma, table.unknowns, near)
        agrees = known >= NEIGHBOURS and not is_near and t < end - 1 and t - refined < CONFIRM_EVERY
        agrees = agrees and plan.kinds[t, LOSS] != SQUARED  # cheap, and exact with one step more
        predicted = known > 0 or is_near
        sure = t == 0 or demands.fixed_bias or _both_classes(labels, setting.batch)
        evaluations, accuracy, begun = 0, math.inf, PREDICTED
        for attempt in range(2):
            if attempt == 1 or (predicted and not sure):
                mass = explicit_start(labels, setting.batch, setting.fixed_bias, work.room, x)
                if math.isnan(mass):
                    return t, Ending.EMPTY
                if mass < 0.0:
                    return t, Ending.UNCONFIRMED
                if t > 0 and not demands.fixed_bias and mass < COLLAPSED_MASS:
                    return t, Ending.COLLAPSED
            if attempt == 0:
                if not predicted:
                    continue
                _predict(t, known, table.unknowns, near, labels, history, x)
            else:
                raise_stiffness(x, ridge, setting.softness)
                begun = NO_UPDATE if no_update_start(setting, ridge, work, x) else EXPLICIT
            limit = NEWTON_STEPS_NEAR if attempt == 0 else NEWTON_STEPS
            effort = Effort(
                fine,
                demands.enough,
                demands.tolerance,
                limit,
                attempt == 0,
                agrees and attempt == 0,
            )
            accuracy, more, nodes = newton_confirmed(x, ridge, effort, setting, work)
            evaluations += more
            table.counts[t, NODES] = nodes
            if accuracy < math.inf:
                break
        table.counts[t, EVALUATIONS] += evaluations
        if not accuracy < math.inf:
            return t, Ending.UNCONFIRMED
        if not accuracy <= demands.tolerance:
            level += 1
            if level > LEVELS:
                return t, Ending.UNCONFIRMED
            t = refined + 1
            continue
        if evaluations > 1:
            refined = t
        if plan.kinds[t, BALANCED] == 1 and bias == 0.0:
            x[BIAS] = 0.0
        new = Weights(table.means[t], table.spreads[t])
        advance(x, ridge, labels.gamma, setting.noise, old, new, out)
        for j in range(size):
            table.unknowns[t, j] = x[j]
        table.unknowns[t, size] = labels.gamma
        table.numbers[t, OLD_BIAS] = labels.gamma * bias + x[BIAS]
        table.numbers[t, CHI] = out[3]
        table.numbers[t, OVERLAP] = out[2]
        table.numbers[t, ACCURACY] = accuracy
        table.counts[t, START] = begun
        t += 1
    return end, Ending.SOLVED


@kernel(error_model="numpy", inline="always")  # called once: one level less to compile
def setting_of(
    t: int, samples: Samples, plan: Schedule, old: Weights, bias: float, fixed_bias: bool, seen: Any
) -> StepSetting:
    """What step t is given, from the old weights and bias; `seen` has room for what a batch sees of
    them.
    """
    row = plan.kinds[t, ROW]
    noise = Noise(samples.mean[row], samples.variances[row], samples.copies, samples.features)
    groups, modes = noise.variances.shape
    loss, sharpness = plan.kinds[t, LOSS], plan.numbers[t, SHARPNESS]
    projected, roots, softness = seen[0], seen[1, :groups], seen[2, :groups]
    square = total = 0.0
    for i in range(modes):
        square += old.mean[i] * old.mean[i] + noise.copies[i] * old.variance[i]
        total += noise.copies[i]
    if t == 0:
        for k in range(groups):
            roots[k] = 1.0
            softness[k] = 0.0
            for i in range(modes):
                softness[k] += noise.variances[k, i] * noise.copies[i] / total
        batch = Batch(plan.groups[0], 0.0, math.inf, True, loss, plan.wrong)
        return StepSetting(noise, old, Labelling(0.0, roots, 0.0, 0.0), batch, softness, math.nan)
    projections(old, noise, projected)
    gamma = reference_sharpness(loss, sharpness)
    for k in range(groups):
        roots[k] = math.sqrt(projected[1 + k])
        softness[k] = projected[1 + k] / square
    limit = plan.numbers[t, THRESHOLD] * math.sqrt(square) * samples.length
    batch = Batch(plan.groups[t], limit, sharpness, False, loss, plan.wrong)
    held = (1.0 - gamma) * bias if fixed_bias else math.nan
    return StepSetting(
        noise, old, Labelling(projected[0], roots, bias, gamma), batch, softness, held
    )


@kernel(error_model="numpy")
def _alike(t: int, since: int, gamma: float, unknowns: Any, near: Any) -> int:
    """How many steps before t, down to step `since`, have unknowns of the same form."""
    last = near.shape[1] - 1
    is_near = not math.isnan(near[t, last])
    count = 0
    for k in range(t - 1, since - 1, -1):
        if (unknowns[k, last] > 0.0) != (gamma > 0.0) or count == LONGEST_HISTORY:
            break
        if is_near and (math.isnan(near[k, last]) or (near[k, last] > 0.0) != (gamma > 0.0)):
            break
        count += 1
    return count


@kernel(error_model="numpy", inline="always")  # called once: one level less to compile
def _predict(
    t: int, known: int, unknowns: Any, near: Any, labels: Labelling, history: Any, x: Any
) -> None:
    """Extrapolate the difference of the unknowns to those of the similar run, where there is
    one.
    """
    size = x.shape[0]
    is_near = not math.isnan(near[t, size])
    for j in range(size):
        x[j] = 0.0
    if known > 0:
        scale = history[LONGEST_HISTORY]
        unknown_scales(unknowns[t - 1], labels, scale)
        for i in range(known):
            k = t - known + i
            for j in range(size):
                history[i, j] = unknowns[k, j] - (near[k, j] if is_near else 0.0)
        extrapolate(history, known, scale, x)
    if is_near:
        for j in range(size):
            x[j] += near[t, j]


@kernel(error_model="numpy")
def _both_classes(labels: Labelling, batch: Batch) -> bool:
    """Whether neither class of labels can be as rare as in a collapse, from a bound: a label
    beyond the threshold is at least one half, and without one half of the labels of a class lie
    beyond that of its mean logit.
    """
    soft = batch.sharpness < math.inf
    if soft and batch.loss == SQUARED:
        return True
    if batch.limit == 0.0 and batch.sharpness * (abs(labels.m) + abs(labels.bias)) < MODERATE:
        return True
    up = down = total = 0.0
    for k in range(labels.roots.shape[0]):
        scale = math.sqrt(0.5) / labels.roots[k]
        weight, positive = batch.groups[0, k], batch.groups[1, k]
        total += weight
        for side in range(2):
            part = weight * (positive if side == 1 else 1.0 - positive)
            centre = (labels.m if side == 1 else -labels.m) + labels.bias
            above = 0.5 * math.erfc((batch.limit - centre) * scale)
            below = 0.5 * math.erfc((batch.limit + centre) * scale)
            if soft and batch.limit == 0.0:
                above = max(above, 1.0 / (1.0 + math.exp(-batch.sharpness * centre)))
                below = max(below, 1.0 / (1.0 + math.exp(batch.sharpness * centre)))
            up += part * above
            down += part * below
    return 0.5 * min(up, down) > COLLAPSED_MASS * total
