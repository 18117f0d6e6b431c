"""The reverse pass over a run in compiled code: the losses and covariances that `step.march`
solves.

Its kernels make no arrays: numba then counts no references to those they are given, which would
take a quarter of the time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..averages.batch import At, batch_averages
from ..averages.record import BLANK
from ..geometry.modes import BIAS, FIRST, Weights, mode_sums
from ..step.equations import StepSetting, Work, anchor_of, assemble, newton_step
from ..step.march import BALANCED, RIDGE, Samples, Schedule, setting_of
from .adjoint import pull_equations
from .moved_averages import LABELS, edges_for, fill_edges, is_small, rule_of
from .pulls import OLD_BIAS, Carried, Reversed, SolvedStep, StepNumbers
from .reversed_modes import pull_modes
from .seeds import Seeds


class SolvedRun(NamedTuple):
    """A run: samples, schedule, exponent of its rules, whether the bias is fixed. Of every step its
    unknowns, then the bias and by what the model before it is multiplied to be in its units; the
    laws of the weights.
    """

    samples: Samples
    plan: Schedule
    exponent: float
    fixed: bool
    numbers: Any
    means: Any
    spreads: Any


class Rooms(NamedTuple):
    """Arrays that a step of the pass writes to: averages and equations (`work`), the step itself,
    the old weights, what a batch sees of them, the two halves in reverse, averages at an edge.
    """

    work: Work
    step: SolvedStep
    old: Weights
    seen: Any
    linear: Reversed
    edge: Any


def rooms_for(work: Work, linear: Reversed) -> Rooms:
    """Return the arrays of a pass."""
    groups = work.room.moments.size
    seen, x = np.empty((3, 1 + groups)), np.empty(linear.x.size)
    step = SolvedStep(
        x, work.fields, seen[1, :groups], work.room.moments, np.empty(groups),
        np.zeros((groups, 5)), edges_for(groups), work.system,
    )  # fmt: skip
    old = Weights(np.zeros_like(linear.mean), np.zeros_like(linear.mean))
    return Rooms(work, step, old, seen, linear, BLANK.copy())


@kernel(allocates=False)
def pull_run(
    steps: tuple[int, int], run: SolvedRun, seeds: Seeds, rooms: Rooms, carried: Carried,
    slopes: Any,
) -> int:  # fmt: skip
    """Run the pass backwards over `steps`, from the first down to just above the second; return the
    step whose averages have no rule, or -1.
    """
    samples, plan, step, old, linear = run.samples, run.plan, rooms.step, rooms.old, rooms.linear
    groups, size = samples.variances.shape[1], samples.mean.shape[1]
    count = FIRST + 3 * groups
    for t in range(steps[0], steps[1], -1):
        unit, bias = run.numbers[t, count + 1], 0.0
        for i in range(size):
            old.mean[i] = unit * run.means[t - 1, i] if t > 0 else 0.0
            old.variance[i] = unit * unit * run.spreads[t - 1, i] if t > 0 else 0.0
        if t > 0:
            bias = unit * run.numbers[t - 1, count]
        setting = setting_of(t, samples, plan, old, bias, run.fixed, rooms.seen)
        ridge, gamma = plan.numbers[t, RIDGE], setting.labels.gamma
        mirrored = plan.kinds[t, BALANCED] == 1 and bias == 0.0
        for j in range(count):
            step.x[j] = run.numbers[t, j]
        for k in range(groups):
            step.positive[k] = plan.groups[t, 1, k]
        anchor = _at_solution(ridge, run.exponent, setting, mirrored, rooms)
        if math.isnan(anchor):
            return t
        sharpness = setting.batch.sharpness
        soft = t > 0 and sharpness < math.inf
        at = StepNumbers(
            ridge, setting.batch.limit, gamma, anchor, setting.labels.m, bias,
            sharpness if soft else 0.0, soft, t == 0, run.fixed and t > 0, mirrored,
        )  # fmt: skip
        mine, place = t if carried.bias.shape[0] > 1 else 0, seeds.places[t]
        pulls, by_bias = slopes[t], carried.bias[mine]
        for i in range(size):
            linear.new_mean[i] = carried.mean[mine, i]
            linear.new_variance[i] = carried.variance[mine, i]
            if place >= 0:
                linear.new_mean[i] += seeds.means[place, i]
                linear.new_variance[i] += seeds.spreads[place, i]
        linear.ends[0], linear.ends[1] = seeds.numbers[t, count], seeds.numbers[t, count + 1]
        pull_modes(step, at, setting.noise, old, pulls, linear)
        for j in range(count):
            linear.x[j] += seeds.numbers[t, j]
        linear.x[BIAS] += by_bias
        pull_equations(step, at, pulls, linear)
        pull_modes(step, at, setting.noise, old, pulls, linear)
        for i in range(size):
            carried.mean[mine, i] = unit * linear.mean[i]
            carried.variance[mine, i] = unit * unit * linear.variance[i]
        by_bias = gamma * (seeds.numbers[t, count + 2] + by_bias) + pulls[OLD_BIAS]
        carried.bias[mine] = unit * by_bias
    return -1


@kernel(allocates=False, inline="always")  # called once: one level less to compile
def _at_solution(
    ridge: float, exponent: float, setting: StepSetting, mirrored: bool, rooms: Rooms
) -> float:
    """Fill fields, averages, edges and equations of a solved step, and return the anchor, NaN if it
    has no rule. Where a step changes the weights by little, its unknowns are made more exact first.
    """
    labels, batch, x, edges = setting.labels, setting.batch, rooms.step.x, rooms.step.edges
    room, fields, system = rooms.work.room, rooms.work.fields, rooms.work.system
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
        assemble(x, fields, room.moments, labels, fixed, system)
        if not small:
            break
        small = False
        size, _ = newton_step(x, fields, labels, anchor, ridge, setting.softness, system)
        if size < math.inf:
            for j in range(x.shape[0]):
                x[j] += system[j, 0]
        if mirrored:
            x[BIAS] = 0.0
    if not batch.given and not fill_edges(at, labels, batch, rule, room, rooms.edge, edges):
        return math.nan
    return anchor
