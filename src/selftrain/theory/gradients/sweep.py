r"""The reverse pass over a run: from the last step to the first.

Carried along are the derivatives of L in the law of the weights and in the bias. At every step
those in its own results (`columns`) are added. The linear half of the step turns them into
derivatives in the unknowns, its equations turn these into derivatives in fields, labels and batch,
and from all of them the linear half gives those in the old law, for the step before. Where
everything is diagonal and logistic, the pass is compiled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...labelers import HardLabels
from ...runtime.kernels import kernel
from ...runtime.progress import Progress
from ..shapes.averages import At, logistic_groups, logistic_labelled
from ..shapes.compiled import StepSetting, Work, anchor_of
from ..shapes.engine import Run, threads_of
from ..shapes.equations import assemble, newton_step
from ..shapes.march import Samples, Schedule, _setting
from ..shapes.modes import BIAS, FIRST, Noise, Weights, mode_sums
from ..shapes.spectral import SpectralStep, Spectrum
from ..shapes.stage import ShapedStage
from ..shapes.trajectory import ShapedTrajectory
from ..state import unit_changes
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
from .edges import fill_edges, fill_sharp
from .equations import Equations, Moves, pull_equations
from .matrices import pull_matrices
from .modes import pull_modes
from .moves import LABELS, is_small, moves_of, rule_of
from .pulls import LIFT, OLD_BIAS, SCALE, Bars, LinearStep, Pulled, pulls_for

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


def nothing_wanted(run: ShapedTrajectory) -> Wanted:
    """Zeros, to be filled."""
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


def sweep(run: ShapedTrajectory, wanted: Wanted, last: int, bar: Progress) -> Slopes:
    """The derivatives of L in what steps 0..`last` are given."""
    tables, law = Run(run.problem, run.recipe, run.stats.tolerance), run.space.no_weights()
    slopes = Slopes(wanted.pulls[: last + 1].copy(), np.zeros((last + 1, 2)), np.zeros(last + 1))
    carried = Carried(np.zeros_like(law.mean), np.zeros_like(law.variance), np.zeros(1))
    exponent = exponent_of(run.stats.tolerance)
    if tables.marches:
        _compiled(run, tables, wanted, last, exponent, carried, slopes, bar)
        return slopes
    with threads_of(run.space):
        for t in range(last, -1, -1):
            _pull_step(run, tables, t, wanted, exponent, carried, slopes)
            bar.reach(last + 1 - t)
    return slopes


def _pull_step(
    run: ShapedTrajectory, tables: Run, t: int, wanted: Wanted, exponent: float, carried: Carried,
    slopes: Slopes,
) -> None:  # fmt: skip
    """One step of the pass, for any loss and any covariances."""
    old, old_bias = run.model_before(t)
    stage = tables.stage(t, old, old_bias)
    mirrored = bool(tables.balanced[t] and old_bias == 0.0)
    equations = _equations(stage, run.unknowns[t], exponent, mirrored)
    at, gamma, column, pulls = equations.at, stage.labels.gamma, wanted.columns[t], slopes.pulls[t]
    mean, variance = carried.mean, carried.variance
    if len(wanted.means):
        mean += wanted.means[t]
        variance += wanted.spreads[t]
    law, test = run.history[t], run.problem.test_clusters
    if isinstance(run.space, Spectrum):
        add_law_of_modes(column, _seen(run), law, mean, variance)
    else:
        add_law_of_matrices(column, run.space, test, law, mean, variance)
    overlap = column[OVERLAP] if t > 0 else 0.0
    bars = Bars(mean.copy(), variance.copy(), overlap, column[CHI])
    out = Pulled(np.zeros(at.x.size), mean, variance, slopes.rest[t])
    linear, limit = stage.algebra, stage.points.threshold
    scales = np.broadcast_to(tables.scale(tables.shapes[t]), run.space.groups).copy()
    direct = wanted.unknowns[t].copy()
    by_scale = add_unknowns(column, at.x, gamma, scales, direct, pulls)
    _pull_linear(linear, at, limit, bars, pulls, out)
    by_unknowns = out.x + direct
    by_unknowns[BIAS] += carried.bias[0] + pulls[LIFT]
    by_bias = gamma * (column[B] + carried.bias[0])
    slopes.condition[t] = pull_equations(equations, by_unknowns, pulls)
    _pull_linear(linear, at, limit, bars, pulls, out)
    slopes.rest[t, SCALE] += by_scale
    unit = float(unit_changes(run)[t])
    mean *= unit
    variance *= unit**2
    carried.bias[0] = unit * (by_bias + pulls[OLD_BIAS])


def _equations(stage: ShapedStage, unknowns: Array, exponent: float, mirrored: bool) -> Equations:
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
    moves = moves_of(stage.averages, x, fields, anchor, rule)
    if moves is None:
        raise ConvergenceError(stage.t, TOO_LONG, {}, math.nan)
    system = np.empty((x.size, x.size + 1))
    fixed = (anchor, stage.fixed_bias, float(first))
    assemble(x, fields, moves.moments, moves.shares, labels, fixed, system)
    at, held = LinearStep(x, ridge, gamma, anchor, fields), not math.isnan(stage.fixed_bias)
    return Equations(at, labels, moves, system, first, held, mirrored)


def _pull_linear(
    linear: Any, at: LinearStep, limit: float, bars: Bars, pulls: Array, out: Pulled
) -> None:
    """The linear half of a step in reverse, in its coordinates."""
    if isinstance(linear, SpectralStep):
        pull_modes(at, linear.noise, linear.old, limit, bars, pulls, out)
    else:
        pull_matrices(at, linear, limit, bars, pulls, out)


def _seen(run: ShapedTrajectory) -> Seen:
    """The test samples in the coordinates of the modes."""
    test, space = run.problem.test_clusters, run.space
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
    run: ShapedTrajectory, tables: Run, wanted: Wanted, last: int, exponent: float,
    carried: Carried, slopes: Slopes, bar: Progress,
) -> None:  # fmt: skip
    """The pass in compiled code."""
    samples, plan = _plan(tables)
    means, spreads = (np.array(each) for each in zip(*run.history[: last + 1], strict=True))
    solved = Solved(run.unknowns, means, spreads, run.scaled("bias"), unit_changes(run))
    piece = 1 + PIECE // solved.means.shape[1]
    fixed = bool(run.recipe.fix_bias)
    for end in range(last, -1, -piece):
        steps = (end, max(-1, end - piece))
        failed = pull_run(
            steps, samples, _seen(run), plan, solved, wanted, (exponent, fixed), tables.work,
            carried, slopes,
        )  # fmt: skip
        if failed >= 0:
            raise ConvergenceError(failed, TOO_LONG, {}, math.nan)
        bar.reach(last - steps[1])


def _plan(tables: Run) -> tuple[Samples, Schedule]:
    """The samples and the schedule of a run, as its march takes them."""
    problem, recipe, space = tables.problem, tables.recipe, tables.space
    assert isinstance(space, Spectrum)
    sets = [*dict.fromkeys(tables.shapes)]
    noises = [space.noise(shape) for shape in sets]
    samples = Samples(
        np.array([noise.mean for noise in noises]),
        np.array([noise.variances for noise in noises]),
        noises[0].copies,
        noises[0].features,
        np.array([np.broadcast_to(tables.scale(shape), space.groups) for shape in sets]),
    )
    values, batches = tables.values, problem.unlabeled
    sharpness = np.array(values.sharpness)
    if isinstance(recipe.label_function, HardLabels):
        sharpness[:] = math.inf
    plan = Schedule(
        np.array([sets.index(shape) for shape in tables.shapes]),
        np.append(problem.alpha_l, batches.alpha),
        np.append(problem.rho, batches.rho),
        np.append(0.0, values.threshold),
        np.append(math.inf, sharpness),
        np.append(recipe.lambda_l, values.lambda_u),
        tables.balanced,
    )
    return samples, plan


@kernel(error_model="numpy")
def pull_run(
    steps: tuple[int, int],
    samples: Samples,
    test: Seen,
    plan: Schedule,
    solved: Solved,
    wanted: Wanted,
    demands: tuple[float, bool],
    work: Work,
    carried: Carried,
    slopes: Slopes,
) -> int:
    """The pass from the first of `steps` down to the step after the second; the step whose averages
    have no rule, or -1.
    """
    exponent, fixed = demands
    groups, size = samples.variances.shape[1:]
    count = FIRST + 3 * groups
    x, direct, by_unknowns = np.empty(count), np.empty(count), np.empty(count)
    seen = np.empty(1 + groups)
    old = Weights(np.zeros(size), np.zeros(size))
    bar_mean, bar_variance = np.empty(size), np.empty(size)
    edges, sharp, positive = np.zeros((groups, 4, 8)), np.zeros((groups, 5)), np.empty(groups)
    for t in range(steps[0], steps[1], -1):
        row, unit, bias = plan.row[t], solved.units[t], 0.0
        noise = Noise(samples.mean[row], samples.variances[row], samples.copies, samples.features)
        if t == 0:
            old.mean[:] = 0.0
            old.variance[:] = 0.0
        else:
            bias = unit * solved.biases[t - 1]
            for i in range(size):
                old.mean[i] = unit * solved.means[t - 1, i]
                old.variance[i] = unit * unit * solved.spreads[t - 1, i]
        setting = _setting(t, noise, old, bias, plan, fixed, seen)
        labels, ridge = setting.labels, plan.ridge[t]
        mirrored = plan.balanced[t] and bias == 0.0
        x[:] = solved.unknowns[t]
        anchor = _at_solution(x, ridge, exponent, setting, mirrored, work, edges, sharp)
        if math.isnan(anchor):
            return t
        gain = 0.0
        if t > 0:
            gain = fill_sharp(labels, setting.points.sharpness, work.room.moments, sharp)
        positive[:] = plan.rho[t]
        at = LinearStep(x, ridge, labels.gamma, anchor, work.fields)
        moves = Moves(work.room.moments, work.room.shares, positive, gain, sharp, edges)
        held = fixed and t > 0
        equations = Equations(at, labels, moves, work.system, t == 0, held, mirrored)
        column, pulls = wanted.columns[t], slopes.pulls[t]
        bar_mean[:] = carried.mean
        bar_variance[:] = carried.variance
        if wanted.means.shape[0] > 0:
            bar_mean += wanted.means[t]
            bar_variance += wanted.spreads[t]
        law = Weights(solved.means[t], solved.spreads[t])
        add_law_of_modes(column, test, law, bar_mean, bar_variance)
        bars = Bars(bar_mean, bar_variance, column[OVERLAP] if t > 0 else 0.0, column[CHI])
        direct[:] = wanted.unknowns[t]
        by_scale = add_unknowns(column, x, labels.gamma, samples.scales[row], direct, pulls)
        out = Pulled(by_unknowns, carried.mean, carried.variance, slopes.rest[t])
        limit = setting.points.threshold
        pull_modes(at, noise, old, limit, bars, pulls, out)
        by_unknowns += direct
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
    edges: Any, sharp: Any,
) -> float:  # fmt: skip
    """Fill fields, averages, edges and equations of a solved step; the anchor, NaN if it has no
    rule.

    Where a step changes the weights by little, its unknowns are made more exact first.
    """
    labels, points, room, fields = setting.labels, setting.points, work.room, work.fields
    first = setting.first > 0.0
    small = not first and is_small(x, ridge, setting.softness)
    anchor = anchor_of(x, ridge, labels.gamma, setting.softness)
    fixed = (anchor, setting.fixed_bias, setting.first)
    rule = math.nan
    for _ in range(2):
        mode_sums(x, ridge, labels.gamma, anchor, setting.noise, setting.old, fields)
        if math.isnan(rule):
            rule = rule_of(exponent, small, first, labels.roots, fields)
        at = At(x, fields, anchor)
        if first:
            used = logistic_labelled(at, points, rule, LABELS, room)
        else:
            used = logistic_groups(at, labels, points, rule, LABELS, room)
        if used <= 0:
            return math.nan
        assemble(x, fields, room.moments, room.shares, labels, fixed, work.system)
        if not small:
            break
        small = False
        size, _ = newton_step(x, fields, labels, anchor, work.system, work.step)
        if size < math.inf:
            x += work.step
        if mirrored:
            x[BIAS] = 0.0
    if not first and not fill_edges(at, labels, points, False, rule, room.shares, edges):
        return math.nan
    return anchor
