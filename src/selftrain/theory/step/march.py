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
surer methods of `robust` before the march continues.

Tables are few arrays with named columns: numba takes long to compile, and some time to pass,
records of many arrays.
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
    NEWTON_STEPS,
    NEWTON_STEPS_NEAR,
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
    Effort,
    StepSetting,
    Work,
    X,
    newton_confirmed,
    raise_stiffness,
)
from .prediction import predict, steps_alike

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

PREDICTED, EXPLICIT = range(2)
"""Where Newton's method began: positions in `stats.START_NAMES`."""


class Schedule(NamedTuple):
    """What steps 0..T are given apart from the weights: arrays over the steps.

    Attributes:
        numbers: threshold, sharpness (infinite for given and hard labels), ridge.
        kinds: row of the set of samples, loss (`averages.batch`), whether a bias of zero remains
            zero.
        groups: samples per feature and proportion of positives of every group.
        wrong: share of wrong ones among the given labels of the negative and the positive class.
        length: half the distance of the labelled class means, the unit of the thresholds.
    """

    numbers: Any
    kinds: Any
    groups: Any
    wrong: Any
    length: float


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
        means, spreads: the law of the weights before every step, and after the last.
        numbers: bias, $\chi$, overlap with the old weights, accuracy.
        counts: evaluations, nodes, start.
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
    r"""Solve the steps from the first of `steps` up to the second; the first that is not solved,
    and how it ended (UNCONFIRMED: another method may). `samples` has all sets of samples along its
    first axis; `near` the unknowns of a similar run and their $\gamma_0$, NaN where there is none.
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
        labels, ridge = setting.labels, plan.numbers[t, RIDGE]
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
            limit = NEWTON_STEPS
            if attempt == 0:
                if not predicted:
                    continue
                predict(t, known, table.unknowns, near, labels, work.rows[HISTORY:], x)
                limit = NEWTON_STEPS_NEAR
            else:
                raise_stiffness(x, ridge, setting.softness)
                begun = EXPLICIT
            effort = Effort(
                fine, demands.enough, demands.tolerance, limit, attempt == 0,
                agrees and attempt == 0,
            )  # fmt: skip
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
        new = Weights(table.means[t + 1], table.spreads[t + 1])
        advance(x, ridge, labels.gamma, setting.noise, old, new, out)
        for j in range(size):
            table.unknowns[t, j] = x[j]
        table.unknowns[t, size] = labels.gamma
        table.numbers[t, OLD_BIAS] = labels.gamma * bias + x[BIAS]
        table.numbers[t, CHI], table.numbers[t, OVERLAP] = out[1], out[0]
        table.numbers[t, ACCURACY], table.counts[t, START] = accuracy, begun
        t += 1
    return end, Ending.SOLVED


@kernel(allocates=False, inline="always")  # called once: one level less to compile
def setting_of(
    t: int, samples: Noise, plan: Schedule, old: Weights, bias: float, fixed_bias: bool, seen: Any
) -> StepSetting:
    """Return what step t is given, from the old weights and bias; `seen` has room for what a batch
    sees of them.
    """
    row = plan.kinds[t, ROW]
    noise = Noise(
        samples.mean[row], samples.variances[row], samples.copies, samples.features, samples.room
    )
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
    limit = plan.numbers[t, THRESHOLD] * math.sqrt(square) * plan.length
    batch = Batch(plan.groups[t], limit, sharpness, False, loss, plan.wrong)
    held = (1.0 - gamma) * bias if fixed_bias else math.nan
    return StepSetting(
        noise, old, Labelling(projected[0], roots, bias, gamma), batch, softness, held
    )


@kernel(allocates=False)
def reference_sharpness(loss: int, sharpness: float) -> float:
    r"""$\gamma_0$: the sharpness if labels and logits are comparable, else 0. Labels of the squared
    loss are linear in the old logits, so that any finite sharpness will do.
    """
    if loss == OTHER:
        return 0.0
    most = 1e300 if loss == SQUARED else RELATIVE_SHARPNESS
    return sharpness if sharpness <= most else 0.0


@kernel(allocates=False)
def before_step(spread: float, bias: float, fixed_bias: bool, faded: bool) -> Ending:
    r"""Return how a step ends before it begins, from the largest standard deviation of its old
    logits within a class, and the old bias; SOLVED: it can begin.

    Where nothing but the bias is left, the labelling model knows one class only. With a fixed bias
    the weights may still recover, unless they underflow. `faded` says that the scale of the
    weights is carried apart (`theory.fading`): then FADED and OVERFLOW ask for another scale.
    """
    only_bias = spread < ONLY_BIAS * abs(bias)
    if only_bias and (spread <= SMALLEST or not fixed_bias):
        return Ending.COLLAPSED
    if not spread > SMALLEST:
        return Ending.FADED
    if not spread < (REGROWN if faded else LARGEST):
        return Ending.OVERFLOW
    return Ending.SOLVED


@kernel(allocates=False, internal=True)
def _both_classes(labels: Labelling, batch: Batch) -> bool:
    """Return whether neither class of labels can be as rare as in a collapse, from lower bounds.

    A label on its own side of the threshold is at least one half. The other class has at least the
    label one standard deviation beyond threshold and mean for all samples nearer than that.
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
                other *= 0.5 * math.exp(-sharpness * far)  # sigma(-y) is at least that
            up += 0.5 * inside if above else other
            down += other if above else 0.5 * inside
    return min(up, down) > COLLAPSED_MASS * total
