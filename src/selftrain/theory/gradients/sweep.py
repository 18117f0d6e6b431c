r"""The reverse pass over a run: from the last step to the first.

Carried along are the derivatives of L in the law of the weights and in the bias. At every step
those in its own results (`columns`) are added. The linear half of the step turns them into
derivatives in the unknowns, its equations turn these into derivatives in fields, labels and batch,
and from all of them the linear half gives those in the old law, for the step before. Where
`step.march` solves the run, the pass is compiled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...runtime.kernels import kernel
from ...runtime.progress import Progress
from ..averages.batch import At, batch_averages
from ..geometry.modes import BIAS, FIRST, Noise, Weights, mode_sums
from ..geometry.space import threads_of
from ..geometry.spectrum import SpectralStep, Spectrum
from ..stages import Stages
from ..step.equations import assemble, newton_step
from ..step.march import BALANCED, RIDGE, ROW, Samples, Schedule, setting_of
from ..step.newton import StepSetting, Work, anchor_of
from ..step.stage import Stage
from ..tolerances import exponent_of
from .columns import (
    CHI,
    OVERLAP,
    WIDTH,
    B,
    Seen,
    add_law_of_matrices,
    add_law_of_modes,
    add_unknowns,
)
from .edges import LABELS, fill_edges, fill_sharp
from .equations import Equations, Moves, pull_equations
from .matrices import pull_matrices
from .modes import pull_modes
from .moves import is_small, moves_of, rule_of
from .pulls import LIFT, OLD_BIAS, SCALE, Bars, LinearStep, Pulled, pulls_for

if TYPE_CHECKING:
    from ..trajectory import Trajectory

TOO_LONG = "its averages need more nodes than there is room for"

PIECE = 200_000
"""Modes times steps that are differentiated before progress is reported."""


class Wanted(NamedTuple):
    """Derivatives of L in the results of a run, by themselves: arrays over the steps.

    Attributes:
        columns: in the columns of the run (`columns`).
        means, spreads: in the laws of the weights; of no steps where L does not look at them.
        unknowns: in the unknowns.
        pulls: in fields and labels (`pulls`).
    """

    columns: Array
    means: Array
    spreads: Array
    unknowns: Array
    pulls: Array


def nothing_wanted(run: Trajectory) -> Wanted:
    """Zeros, to be filled."""
    assert run.space is not None
    steps, groups = run.problem.steps + 1, run.space.groups
    law = run.space.no_weights()
    return Wanted(
        np.zeros((steps, WIDTH)),
        np.zeros((0, *law.mean.shape)),
        np.zeros((0, *law.variance.shape)),
        np.zeros((steps, FIRST + 3 * groups)),
        pulls_for(groups, steps),
    )


class Slopes(NamedTuple):
    """Derivatives of L in what every step is given: fields and labels (`pulls`), ridge and scale of
    the noise, and the condition of the step.
    """

    pulls: Array
    rest: Array
    condition: Array


class Carried(NamedTuple):
    """Derivatives of L in the model after a step: law of the weights, bias (an array of one)."""

    mean: Any
    variance: Any
    bias: Any


def sweep(run: Trajectory, wanted: Wanted, last: int, bar: Progress) -> Slopes:
    """The derivatives of L in what steps 0..`last` are given."""
    stages = Stages(run.problem, run.recipe)
    law = stages.space.no_weights()
    slopes = Slopes(wanted.pulls[: last + 1].copy(), np.zeros((last + 1, 2)), np.zeros(last + 1))
    carried = Carried(np.zeros_like(law.mean), np.zeros_like(law.variance), np.zeros(1))
    exponent = exponent_of(run.stats.tolerance)
    if stages.compiled:
        _compiled(run, stages, wanted, last, carried, slopes, bar)
        return slopes
    with threads_of(stages.space):
        for t in range(last, -1, -1):
            pull_step(run, stages, t, wanted, exponent, carried, slopes)
            bar.reach(last + 1 - t)
    return slopes


def pull_step(
    run: Trajectory, stages: Stages, t: int, wanted: Wanted, exponent: float, carried: Carried,
    slopes: Slopes,
) -> None:  # fmt: skip
    """One step of the pass, for any loss and any covariances."""
    old, old_bias = run.model_before(t)
    stage = stages.stage(t, old, old_bias)
    mirrored = bool(stages.balanced[t] and old_bias == 0.0)
    assert run.unknowns is not None
    equations = equations_of(stage, run.unknowns[t], exponent, mirrored)
    at, gamma, column, pulls = equations.at, stage.labels.gamma, wanted.columns[t], slopes.pulls[t]
    mean, variance = carried.mean, carried.variance
    if len(wanted.means):
        mean += wanted.means[t]
        variance += wanted.spreads[t]
    if isinstance(stages.space, Spectrum):
        add_law_of_modes(column, _seen(stages), run.law(t), mean, variance)
    else:
        add_law_of_matrices(column, stages.space, stages.test, run.law(t), mean, variance)
    overlap = column[OVERLAP] if t > 0 else 0.0
    bars = Bars(mean.copy(), variance.copy(), overlap, column[CHI])
    out = Pulled(np.zeros(at.x.size), mean, variance, slopes.rest[t])
    linear, limit = stage.algebra, stage.averages.batch.limit
    direct = wanted.unknowns[t].copy()
    by_scale = add_unknowns(column, at.x, gamma, stages.scales[t], direct)
    pull_linear(linear, at, limit, bars, pulls, out)
    by_unknowns = out.x + direct
    by_unknowns[BIAS] += carried.bias[0] + pulls[LIFT]
    by_bias = gamma * (column[B] + carried.bias[0])
    slopes.condition[t] = pull_equations(equations, by_unknowns, pulls)
    pull_linear(linear, at, limit, bars, pulls, out)
    slopes.rest[t, SCALE] += by_scale
    unit = float(run.unit_changes[t])
    mean *= unit
    variance *= unit**2
    carried.bias[0] = unit * (by_bias + pulls[OLD_BIAS])


def equations_of(stage: Stage, unknowns: Array, exponent: float, mirrored: bool) -> Equations:
    """The equations of a step at its solution, on the rule that derivatives need.

    Where a step changes the weights by little, its unknowns are made more exact first.
    """
    x, labels, ridge, first = unknowns.copy(), stage.labels, stage.ridge, stage.t == 0
    softness, gamma = stage.algebra.softness, stage.labels.gamma
    small = not first and bool(is_small(x, ridge, softness))
    anchor = anchor_of(x, ridge, gamma, softness)
    fields = stage.algebra.fields(x, ridge, gamma, anchor)
    rule = rule_of(exponent, small, first, labels.roots, fields)
    if small:
        size, _, step = stage.step_from(x, ridge, rule)
        if size < math.inf:
            x += step
        if mirrored:
            x[BIAS] = 0.0
        fields = stage.algebra.fields(x, ridge, gamma, anchor)
    averages: Any = stage.averages
    moves = moves_of(averages, At(float(x[BIAS]), fields, anchor), rule)
    if moves is None:
        raise ConvergenceError(stage.t, TOO_LONG, {}, math.nan)
    system = np.empty((x.size, x.size + 1))
    fixed = (anchor, stage.fixed_bias, float(first))
    assemble(x, fields, moves.moments, labels, fixed, system)
    at, held = LinearStep(x, ridge, gamma, anchor, fields), not math.isnan(stage.fixed_bias)
    return Equations(at, labels, moves, system, first, held, mirrored)


def pull_linear(
    linear: Any, at: LinearStep, limit: float, bars: Bars, pulls: Array, out: Pulled
) -> None:
    """The linear half of a step in reverse, in its coordinates."""
    if isinstance(linear, SpectralStep):
        pull_modes(at, linear.noise, linear.old, limit, bars, pulls, out)
    else:
        pull_matrices(at, linear, limit, bars, pulls, out)


def _seen(stages: Stages) -> Seen:
    """The test samples in the coordinates of the modes."""
    test, space = stages.test, stages.space
    assert isinstance(space, Spectrum)
    average, best = space.best_direction(test)
    return Seen(space.noise(test), average, best, test.separation)


class Solved(NamedTuple):
    """A solved run: unknowns, laws of the weights, biases, and by what the model before a step is
    multiplied to be in the units of the step; arrays over the steps.
    """

    unknowns: Any
    means: Any
    spreads: Any
    biases: Any
    units: Any


def _compiled(
    run: Trajectory, stages: Stages, wanted: Wanted, last: int, carried: Carried, slopes: Slopes,
    bar: Progress,
) -> None:  # fmt: skip
    """The pass in compiled code."""
    given, solved = given_of(run, stages), solved_of(run)
    piece = 1 + PIECE // solved.means.shape[1]
    for end in range(last, -1, -piece):
        steps = (end, max(-1, end - piece))
        failed = pull_run(steps, given, solved, wanted, stages.work, carried, slopes)
        if failed >= 0:
            raise ConvergenceError(failed, TOO_LONG, {}, math.nan)
        bar.reach(last - steps[1])


class Given(NamedTuple):
    """What a run is given: samples, test samples, schedule, mean variances of a feature in every
    step and group; the exponent of the rules, whether the bias is fixed.
    """

    samples: Samples
    test: Seen
    plan: Schedule
    scales: Any
    exponent: float
    fixed: bool


def given_of(run: Trajectory, stages: Stages) -> Given:
    """Return what compiled code needs to know of a run besides its solution."""
    return Given(
        stages.samples, _seen(stages), stages.schedule, stages.scales,
        exponent_of(run.stats.tolerance), bool(run.recipe.fix_bias),
    )  # fmt: skip


def solved_of(run: Trajectory) -> Solved:
    """Return the solution of a run as compiled code takes it."""
    return Solved(
        np.ascontiguousarray(run.unknowns), run.weight_means, run.weight_spreads,
        run.scaled("bias"), run.unit_changes,
    )  # fmt: skip


@kernel(error_model="numpy")
def pull_run(
    steps: tuple[int, int], given: Given, solved: Solved, wanted: Wanted, work: Work,
    carried: Carried, slopes: Slopes,
) -> int:  # fmt: skip
    """The pass from the first of `steps` down to the step after the second; the step whose averages
    have no rule, or -1.
    """
    samples, plan, fixed = given.samples, given.plan, given.fixed
    groups, size = samples.variances.shape[1], samples.mean.shape[1]
    count = FIRST + 3 * groups
    x, direct, by_unknowns = np.empty(count), np.empty(count), np.empty(count)
    seen = np.empty((3, 1 + groups))
    old = Weights(np.zeros(size), np.zeros(size))
    bar_mean, bar_variance = np.empty(size), np.empty(size)
    edges, sharp = np.zeros((groups, 4, 8)), np.zeros((groups, 5))
    for t in range(steps[0], steps[1], -1):
        row, unit, bias = plan.kinds[t, ROW], solved.units[t], 0.0
        noise = Noise(samples.mean[row], samples.variances[row], samples.copies, samples.features)
        for i in range(size):
            old.mean[i] = unit * solved.means[t - 1, i] if t > 0 else 0.0
            old.variance[i] = unit * unit * solved.spreads[t - 1, i] if t > 0 else 0.0
        if t > 0:
            bias = unit * solved.biases[t - 1]
        setting = setting_of(t, noise, old, bias, plan, (fixed, samples.length), seen)
        labels, ridge = setting.labels, plan.numbers[t, RIDGE]
        mirrored = plan.kinds[t, BALANCED] == 1 and bias == 0.0
        for j in range(count):
            x[j] = solved.unknowns[t, j]
        anchor = _at_solution(x, ridge, given.exponent, setting, mirrored, work, edges)
        if math.isnan(anchor):
            return t
        gain = 0.0
        if t > 0:
            gain = fill_sharp(labels, setting.batch.sharpness, work.room.moments, sharp)
        at = LinearStep(x, ridge, labels.gamma, anchor, work.fields)
        moves = Moves(work.room.moments, setting.batch.groups[1], gain, sharp, edges)
        held = fixed and t > 0
        equations = Equations(at, labels, moves, work.system, t == 0, held, mirrored)
        column, pulls = wanted.columns[t], slopes.pulls[t]
        for i in range(size):
            bar_mean[i], bar_variance[i] = carried.mean[i], carried.variance[i]
            if wanted.means.shape[0] > 0:
                bar_mean[i] += wanted.means[t, i]
                bar_variance[i] += wanted.spreads[t, i]
        law = Weights(solved.means[t], solved.spreads[t])
        add_law_of_modes(column, given.test, law, bar_mean, bar_variance)
        bars = Bars(bar_mean, bar_variance, column[OVERLAP] if t > 0 else 0.0, column[CHI])
        for j in range(count):
            direct[j] = wanted.unknowns[t, j]
        by_scale = add_unknowns(column, x, labels.gamma, given.scales[t], direct)
        out = Pulled(by_unknowns, carried.mean, carried.variance, slopes.rest[t])
        limit = setting.batch.limit
        pull_modes(at, noise, old, limit, bars, pulls, out)
        for j in range(count):
            by_unknowns[j] += direct[j]
        by_unknowns[BIAS] += carried.bias[0] + pulls[LIFT]
        by_bias = labels.gamma * (column[B] + carried.bias[0])
        slopes.condition[t] = pull_equations(equations, by_unknowns, pulls)
        pull_modes(at, noise, old, limit, bars, pulls, out)
        slopes.rest[t, SCALE] += by_scale
        for i in range(size):
            carried.mean[i] *= unit
            carried.variance[i] *= unit * unit
        carried.bias[0] = unit * (by_bias + pulls[OLD_BIAS])
    return -1


@kernel(error_model="numpy")
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
