"""The reverse pass over a run in compiled code: the losses and covariances that `step.march`
solves.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..averages.batch import At, batch_averages
from ..geometry.modes import BIAS, FIRST, Noise, Weights, mode_sums
from ..step.equations import assemble, newton_step
from ..step.march import BALANCED, RIDGE, ROW, Samples, Schedule, setting_of
from ..step.newton import StepSetting, Work, anchor_of
from .columns import Seeds
from .edges import COLUMNS, LABELS, fill_edges, fill_sharp
from .equations import Equations, Moves, pull_equations
from .modes import pull_modes
from .moves import is_small, rule_of
from .pulls import LIFT, OLD_BIAS, Bars, Carried, LinearStep, Pulled, Slopes


class Given(NamedTuple):
    """What a run is given: samples, schedule, the exponent of the rules, whether the bias is
    fixed.
    """

    samples: Samples
    plan: Schedule
    exponent: float
    fixed: bool


class Solved(NamedTuple):
    """A solved run: its unknowns, then the bias and by what the model before a step is multiplied
    to be in the units of the step; the laws of the weights. Arrays over the steps.
    """

    numbers: Any
    means: Any
    spreads: Any


@kernel(error_model="numpy")
def pull_run(
    steps: tuple[int, int], given: Given, solved: Solved, seeds: Seeds, work: Work,
    carried: Carried, slopes: Slopes,
) -> int:  # fmt: skip
    """Make the pass from the first of `steps` down to the step after the second; the step whose
    averages have no rule, or -1.
    """
    samples, plan = given.samples, given.plan
    groups, size = samples.variances.shape[1], samples.mean.shape[1]
    count, width = FIRST + 3 * groups, slopes.table.shape[1] - 3
    x, by_unknowns = np.empty(count), np.empty(count)
    seen = np.empty((3, 1 + groups))
    old = Weights(np.zeros(size), np.zeros(size))
    bar_mean, bar_variance = np.empty(size), np.empty(size)
    edges, sharp = np.zeros((groups, 4, COLUMNS)), np.zeros((groups, 5))
    for t in range(steps[0], steps[1], -1):
        row, unit, bias = plan.kinds[t, ROW], solved.numbers[t, count + 1], 0.0
        noise = Noise(samples.mean[row], samples.variances[row], samples.copies, samples.features)
        for i in range(size):
            old.mean[i] = unit * solved.means[t - 1, i] if t > 0 else 0.0
            old.variance[i] = unit * unit * solved.spreads[t - 1, i] if t > 0 else 0.0
        if t > 0:
            bias = unit * solved.numbers[t - 1, count]
        setting = setting_of(t, noise, old, bias, plan, (given.fixed, samples.length), seen)
        labels, ridge = setting.labels, plan.numbers[t, RIDGE]
        mirrored = plan.kinds[t, BALANCED] == 1 and bias == 0.0
        for j in range(count):
            x[j] = solved.numbers[t, j]
        anchor = _at_solution(x, ridge, given.exponent, setting, mirrored, work, edges)
        if math.isnan(anchor):
            return t
        gain = 0.0
        if t > 0:
            gain = fill_sharp(labels, setting.batch.sharpness, work.room.moments, sharp)
        at = LinearStep(x, ridge, labels.gamma, anchor, work.fields)
        moves = Moves(work.room.moments, setting.batch.groups[1], gain, sharp, edges)
        held = given.fixed and t > 0
        equations = Equations(at, labels, moves, work.system, t == 0, held, mirrored)
        pulls, numbers = slopes.table[t, :width], seeds.numbers[t]
        mine = t if carried.bias.shape[0] > 1 else 0
        mean, variance = carried.mean[mine], carried.variance[mine]
        place = seeds.places[t]
        for i in range(size):
            bar_mean[i], bar_variance[i] = mean[i], variance[i]
            if place >= 0:
                bar_mean[i] += seeds.means[place, i]
                bar_variance[i] += seeds.spreads[place, i]
        bars = Bars(bar_mean, bar_variance, numbers[count], numbers[count + 1])
        out = Pulled(by_unknowns, mean, variance, slopes.table[t, width : width + 2])
        limit = setting.batch.limit
        pull_modes(at, noise, old, limit, bars, pulls, out)
        for j in range(count):
            by_unknowns[j] += numbers[j]
        by_unknowns[BIAS] += carried.bias[mine] + pulls[LIFT]
        slopes.table[t, width + 2] = pull_equations(equations, by_unknowns, pulls)
        pull_modes(at, noise, old, limit, bars, pulls, out)
        for i in range(size):
            mean[i] *= unit
            variance[i] *= unit * unit
        by_bias = numbers[count + 2] + carried.bias[mine]
        carried.bias[mine] = unit * (labels.gamma * by_bias + pulls[OLD_BIAS])
    return -1


@kernel(error_model="numpy", inline="always")  # called once: one level less to compile
def _at_solution(
    x: Any, ridge: float, exponent: float, setting: StepSetting, mirrored: bool, work: Work,
    edges: Any,
) -> float:  # fmt: skip
    """Fill fields, averages, edges and equations of a solved step; the anchor, NaN if it has no
    rule.

    Where a step changes the weights by little, its unknowns are made more exact first.
    """
    labels, batch, room, fields = setting.labels, setting.batch, work.room, work.fields
    small = not batch.given and is_small(x, ridge, setting.softness)
    anchor = anchor_of(x, ridge, labels.gamma, setting.softness)
    fixed = (anchor, setting.fixed_bias, 1.0 if batch.given else 0.0)
    rule = math.nan
    for _ in range(2):
        mode_sums(x, ridge, labels.gamma, anchor, setting.noise, setting.old, fields)
        if math.isnan(rule):
            rule = rule_of(exponent, small, batch.given, labels.roots, fields)
        at = At(x[BIAS], fields, anchor)
        if batch_averages(at, labels, batch, rule, LABELS, room) <= 0:
            return math.nan
        assemble(x, fields, room.moments, labels, fixed, work.system)
        if not small:
            break
        small = False
        size, _ = newton_step(x, fields, labels, anchor, ridge, setting.softness, work.system)
        if size < math.inf:
            for j in range(x.shape[0]):
                x[j] += work.system[j, 0]
        if mirrored:
            x[BIAS] = 0.0
    if not batch.given and not fill_edges(at, labels, batch, rule, room.moments, edges):
        return math.nan
    return anchor
