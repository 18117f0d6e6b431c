"""All steps of a run, one after the other, in compiled code: for the logistic or squared loss and
covariances that are diagonal in the same coordinates (a sphere has one mode).

`march` extrapolates the unknowns of the next step from those of the last ones (or the differences
from a similar run, if one is given) and makes Newton steps until one is small. Every step is
confirmed in one of two ways:

- by a Newton step on a refined rule, below the tolerance;
- by the steps before: it was extrapolated from at least four steps, which were solved on two rules
  alternately, and the first Newton step is below the tolerance. The extrapolation would magnify an
  error of one of the rules, and so reveal it. At least every 16th step, and the last one, is
  confirmed on the refined rule.

When a step does not converge `march` returns, and the caller solves that step by the slower and
more reliable methods of `robust` before the march continues.

Tables are few arrays with named columns: records of many arrays would take numba long to compile
and some time to pass.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...runtime.kernels import kernel
from ..averages.batch import OTHER, SQUARED, Batch, Labelling, explicit_start
from ..ending import Ending
from ..geometry.modes import BIAS, FIRST, Noise, Weights, advance, projections
from ..tolerances import (
    ALTERNATE,
    COLLAPSED_MASS,
    CONFIRM_EVERY,
    LARGEST,
    LEVELS,
    NEIGHBOURS,
    ONLY_BIAS,
    REFINED,
    REGROWN,
    RELATIVE_SHARPNESS,
    SMALLEST,
)
from .equations import (
    HISTORY,
    OUT,
    SEEN,
    Demands,
    StepSetting,
    Work,
    X,
    newton_confirmed,
    raise_stiffness,
)
from .prediction import predict, steps_alike

THRESHOLD, SHARPNESS, RIDGE = range(3)
ROW, LOSS, BALANCED = range(3)
"""Columns of `Schedule.numbers` (first line) and `Schedule.kinds`."""

OLD_BIAS, CHI, OVERLAP, ACCURACY = range(4)
EVALUATIONS, NODES, START = range(3)
"""Columns of `Table.numbers` (first line) and `Table.counts`."""

MODERATE = 20.0
"""If the mean logit of a class (times the sharpness) is below this, at least half of its soft
labels give either class a probability above about exp(-20): then labels have not collapsed.
"""

PREDICTED, EXPLICIT = range(2)
"""Starting points of Newton's method: positions in `stats.START_NAMES`."""


class Schedule(NamedTuple):
    """Inputs of steps 0..T apart from the weights: arrays over the steps.

    Attributes:
        numbers: threshold, sharpness (infinite for given and hard labels), ridge.
        kinds: row of the clusters in `samples`, loss (a constant of `averages.batch`), whether a
            bias of zero remains zero.
        groups: samples per feature and proportion of the positive class, of every group.
        wrong: proportions of wrong given labels in the negative and the positive class.
        length: half the distance of the labelled class means, the unit of the thresholds.
    """

    numbers: Any
    kinds: Any
    groups: Any
    wrong: Any
    length: float


class Table(NamedTuple):
    r"""Results of every step.

    Attributes:
        unknowns: in the order of `geometry.modes`, then their $\gamma_0$.
        means, spreads: the law of the weights before every step, and after the last.
        numbers: bias, $\chi$, overlap with the old weights, accuracy.
        counts: evaluations, nodes, starting point.
    """

    unknowns: Any
    means: Any
    spreads: Any
    numbers: Any
    counts: Any


@kernel(allocates=False)
def march(
    steps: tuple[int, int], samples: Noise, plan: Schedule, near: Any, demands: Demands,
    table: Table, work: Work,
) -> tuple[int, Ending]:  # fmt: skip
    r"""Solve the steps from `steps[0]` to `steps[1]` - 1; return the first step that is not solved,
    and how it ended (UNCONFIRMED: another method may solve it).

    Arguments:
        samples: the distinct clusters, stacked along the first axis.
        plan: inputs of the steps.
        near: unknowns of a similar run and their $\gamma_0$, one row per step; NaN if unknown.
        table: filled with the results.
        work: buffers.
    """
    groups, x, out = samples.variances.shape[1], work.rows[X], work.rows[OUT]
    size = FIRST + 3 * groups
    t, end = steps
    level = 0
    refined = t - 1  # the last step that was confirmed on the refined rule
    while t < end:
        old = Weights(table.means[t], table.spreads[t])
        bias = table.numbers[t - 1, OLD_BIAS] if t > 0 else 0.0
        seen = work.rows[SEEN:OUT]
        setting = setting_of(t, samples, plan, old, bias, demands.fixed_bias, seen)
        labels = setting.labels
        if t > 0:
            spread = labels.roots[0]
            for k in range(1, groups):
                spread = max(spread, labels.roots[k])
            ending = before_step(spread, bias, demands.fixed_bias, demands.faded)
            if ending != Ending.SOLVED:
                return t, ending
        fine = demands.exponent + level * REFINED + (ALTERNATE if t % 2 == 1 else 0.0)
        is_near = not math.isnan(near[t, size])
        known = steps_alike(t, demands.since, labels.gamma, table.unknowns, near)
        agrees = known >= NEIGHBOURS and not is_near and t < end - 1 and t - refined < CONFIRM_EVERY
        # A confirmation costs little with the squared loss, and makes the step exact.
        agrees = agrees and plan.kinds[t, LOSS] != SQUARED
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
                predict(t, known, table.unknowns, near, labels, work.rows[HISTORY:], x)
            else:
                raise_stiffness(x, setting.ridge, setting.softness)
                begun, agrees = EXPLICIT, False
            accuracy, more, nodes = newton_confirmed(
                x, fine, attempt == 0, agrees, demands, setting, work
            )
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
        new = Weights(table.means[t + 1], table.spreads[t + 1])
        advance(x, setting.ridge, labels.gamma, setting.noise, old, new, out)
        for j in range(size):
            table.unknowns[t, j] = x[j]
        table.unknowns[t, size] = labels.gamma
        table.numbers[t, OLD_BIAS] = labels.gamma * bias + x[BIAS]
        table.numbers[t, CHI], table.numbers[t, OVERLAP] = out[1], out[0]
        table.numbers[t, ACCURACY], table.counts[t, START] = accuracy, begun
        t += 1
    return end, Ending.SOLVED


@kernel(allocates=False)
def setting_of(
    t: int, samples: Noise, plan: Schedule, old: Weights, bias: float, fixed_bias: bool, seen: Any
) -> StepSetting:
    """Return the inputs of step t, given the old weights and bias; `seen` is a buffer for the
    projections of the old weights on the batch.
    """
    row = plan.kinds[t, ROW]
    noise = Noise(
        samples.mean[row], samples.variances[row], samples.copies, samples.features, samples.room
    )
    groups, modes = noise.variances.shape
    loss, sharpness, ridge = plan.kinds[t, LOSS], plan.numbers[t, SHARPNESS], plan.numbers[t, RIDGE]
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
        labels = Labelling(0.0, roots, 0.0, 0.0)
        return StepSetting(noise, old, labels, batch, ridge, softness, math.nan)
    projections(old, noise, projected)
    gamma = reference_sharpness(loss, sharpness)
    for k in range(groups):
        roots[k] = math.sqrt(projected[1 + k])
        softness[k] = projected[1 + k] / square
    limit = plan.numbers[t, THRESHOLD] * math.sqrt(square) * plan.length
    batch = Batch(plan.groups[t], limit, sharpness, False, loss, plan.wrong)
    held = (1.0 - gamma) * bias if fixed_bias else math.nan
    labels = Labelling(projected[0], roots, bias, gamma)
    return StepSetting(noise, old, labels, batch, ridge, softness, held)


@kernel(allocates=False)
def reference_sharpness(loss: int, sharpness: float) -> float:
    r"""Return $\gamma_0$: the sharpness up to `RELATIVE_SHARPNESS`, 0 above it. With the squared
    loss it is any finite sharpness, because labels are linear in the old logits.
    """
    if loss == OTHER:
        return 0.0
    most = 1e300 if loss == SQUARED else RELATIVE_SHARPNESS
    return sharpness if sharpness <= most else 0.0


@kernel(allocates=False)
def before_step(spread: float, bias: float, fixed_bias: bool, faded: bool) -> Ending:
    r"""Return whether a step can begin: SOLVED if it can, else how the run ends before it.

    If the weights are negligible beside the bias, the old model predicts one class only: COLLAPSED.
    With a fixed bias the weights may still recover, unless they underflow. FADED and OVERFLOW mean
    that the weights leave the range of floats; with homogeneous steps the caller rescales them.

    Arguments:
        spread: largest standard deviation of the old logits within a class.
        bias: the old bias.
        faded: whether the weights are rescaled already (`theory.fading`).
    """
    only_bias = spread < ONLY_BIAS * abs(bias)
    if only_bias and (spread <= SMALLEST or not fixed_bias):
        return Ending.COLLAPSED
    if not spread > SMALLEST:
        return Ending.FADED
    if not spread < (REGROWN if faded else LARGEST):
        return Ending.OVERFLOW
    return Ending.SOLVED


@kernel(allocates=False)
def _both_classes(labels: Labelling, batch: Batch) -> bool:
    """Return whether lower bounds of the weight of each class among the labels exclude a collapse.

    A label gives its own class at least one half. It gives the other class at least the value at
    one standard deviation beyond threshold and mean, for all samples nearer than that.
    """
    sharpness, limit = batch.sharpness, batch.limit
    soft = sharpness < math.inf
    if soft and batch.loss == SQUARED:
        return True
    if limit == 0.0 and sharpness * (abs(labels.m) + abs(labels.bias)) < MODERATE:
        return True
    up = down = total = 0.0
    for k in range(labels.roots.shape[0]):
        root = labels.roots[k]
        scale = math.sqrt(0.5) / root
        total += batch.groups[0, k]
        for piece in range(4):
            positive, above = piece % 2 == 1, piece < 2
            part = batch.groups[0, k] * (
                batch.groups[1, k] if positive else 1.0 - batch.groups[1, k]
            )
            centre = (labels.m if positive else -labels.m) + labels.bias
            centre = centre if above else -centre
            inside = 0.5 * part * math.erfc((limit - centre) * scale)
            far, other = max(centre, limit) + root, 0.0
            if soft:
                other = inside - 0.5 * part * math.erfc((far - centre) * scale)
                other *= 0.5 * math.exp(-sharpness * far)  # a lower bound of sigma(-sharpness far)
            up += 0.5 * inside if above else other
            down += other if above else 0.5 * inside
    return min(up, down) > COLLAPSED_MASS * total
