r"""The reverse pass over a run: from the last step to the first.

The pass propagates the derivatives of L in the law of the weights and in the bias. At every step,
the derivatives in its own results (`seeds`) are added. The adjoint of the linear half of the step
gives the derivatives in the unknowns, the adjoint of the equations those in fields, labels and
batch, and from all of them follow those in the old law, for the step before.

For the losses and covariances that `step.march` solves there is a compiled pass (`_pull_run`). Its
kernels create no arrays: numba then counts no references to their arguments, which would take a
quarter of the time.
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
from ..averages.record import BLANK
from ..geometry.modes import BIAS, FIRST, Noise, Weights, mode_sums
from ..geometry.space import SpectralStep, threads_of
from ..step.equations import StepSetting, Work, anchor_of, assemble, newton_step
from ..step.march import BALANCED, Schedule, setting_of
from ..step.march import RIDGE as RIDGE_OF_STEP
from ..step.robust import StepEquations
from ..step_inputs import StepInputs
from ..tolerances import exponent_of
from .adjoint import pull_equations
from .moved_averages import (
    LABELS,
    AllWrong,
    all_wrong_for,
    edges_for,
    fill_edges,
    fill_wrong,
    is_small,
    moves_of,
    rule_of,
)
from .pulls import (
    OLD_BIAS,
    SCALE,
    Carried,
    Reversed,
    SolvedStep,
    StepNumbers,
    carried_for,
    reversed_for,
)  # fmt: skip
from .reversed_geometry import pull_matrices, pull_modes
from .seeds import Wanted, in_laws, in_unknowns

if TYPE_CHECKING:
    from ..trajectory import Trajectory

TOO_LONG = "its averages need more nodes than there is room for"

PIECE = 200_000
"""Number of modes times steps between two reports of progress."""


def reverse_pass(
    run: Trajectory, wanted: Wanted, last: int, bar: Progress, carried: Carried | None = None
) -> Array:
    """Return the derivatives of L in the inputs of steps 0..`last`, a row of `pulls` for each.

    Arguments:
        wanted: the derivatives of L in the results of the run.
        last: the last step.
        bar: gets reports of progress.
        carried: filled with the derivatives in the models between steps; one row by default.
    """
    inputs, slopes = StepInputs(run.problem, run.recipe), wanted.pulls[: last + 1].copy()
    numbers, by_scale = in_unknowns(run, inputs, wanted, last)
    if carried is None:
        carried = carried_for(inputs.space.no_weights())

    def seeds_of(steps: slice) -> Seeds:
        column, weights = wanted.columns[steps], run.weight_means[steps]
        means, spreads = in_laws(column, inputs.space, inputs.test, weights)
        return Seeds(numbers[steps], means + wanted.means[steps], spreads + wanted.spreads[steps])

    if inputs.samples is not None:
        seeds, piece = seeds_of(slice(last + 1)), 1 + PIECE // inputs.samples.mean.shape[1]
        solved, rooms = _solved_steps(run, inputs, inputs.samples), _rooms_for(inputs)
        for end in range(last, -1, -piece):
            steps = (end, max(-1, end - piece))
            failed = _pull_run(steps, solved, seeds, rooms, carried, slopes)
            if failed >= 0:
                raise ConvergenceError(failed, TOO_LONG, {}, math.nan)
            bar.reach(last - steps[1])
    else:
        linear = reversed_for(inputs.space.no_weights(), inputs.space.groups)
        with threads_of(inputs.space):
            for t in range(last, -1, -1):
                equations = inputs.equations(t, *run.model_before(t))
                mirrored = bool(inputs.balanced[t] and equations.labels.bias == 0.0)
                exponent = exponent_of(run.stats.tolerance)
                solution = solution_of(equations, run.unknowns[t], exponent, mirrored)
                row = t if len(carried.bias) > 1 else 0
                at = Carried(*(part[row : row + 1] for part in carried))
                _pull_step(equations, solution, linear, seeds_of(slice(t, t + 1)), at, slopes[t])
                for part, power in zip(at, (1, 2, 1), strict=True):
                    part *= float(run.unit_changes[t]) ** power
                bar.reach(last + 1 - t)
    slopes[:, SCALE] += by_scale
    return slopes


class Seeds(NamedTuple):
    r"""The direct derivatives of L, added at every step; one row per step.

    Attributes:
        numbers: in the unknowns, then in $\beta\cdot\beta'$, $\mathrm{tr}\,G/N$ and the bias.
        means, spreads: in the laws of the weights.
    """

    numbers: Any
    means: Any
    spreads: Any


def _pull_step(
    equations: StepEquations, solution: tuple[SolvedStep, StepNumbers], linear: Reversed,
    seeds: Seeds, carried: Carried, pulls: Array,
) -> None:  # fmt: skip
    """Propagate derivatives through one step, for any loss and covariances, in its units."""
    (step, at), numbers = solution, seeds.numbers[0]
    linear.new_mean[:] = carried.mean[0] + seeds.means[0]
    linear.new_variance[:] = carried.variance[0] + seeds.spreads[0]
    linear.ends[:] = numbers[-3:-1]
    pull_linear(equations, step, at, pulls, linear)
    linear.x[:] += numbers[:-3]
    linear.x[BIAS] += carried.bias[0]
    pull_equations(step, at, pulls, linear)
    pull_linear(equations, step, at, pulls, linear)
    carried.mean[0], carried.variance[0] = linear.mean, linear.variance
    carried.bias[0] = at.gamma * (numbers[-1] + carried.bias[0]) + pulls[OLD_BIAS]


def solution_of(
    equations: StepEquations, unknowns: Array, exponent: float, mirrored: bool
) -> tuple[SolvedStep, StepNumbers]:
    """Return a step at its solution, evaluated on the rule that derivatives need.

    If a step changes the weights by little, its unknowns are refined first.
    """
    x, labels, ridge, first = unknowns.copy(), equations.labels, equations.ridge, equations.t == 0
    softness, gamma, batch = equations.softness, labels.gamma, equations.averages.batch
    small = not first and bool(is_small(x, ridge, softness))
    anchor = anchor_of(x, ridge, gamma, softness)
    fields = equations.algebra.fields(x, ridge, gamma, anchor)
    rule = rule_of(exponent, small, first, labels.roots, fields)
    if small:
        size, _, step = equations.step_from(x, ridge, rule)
        if size < math.inf:
            x += step
        if mirrored:
            x[BIAS] = 0.0
        fields = equations.algebra.fields(x, ridge, gamma, anchor)
    moves = moves_of(equations.averages, At(float(x[BIAS]), fields, anchor), rule)
    if moves is None:
        raise ConvergenceError(equations.t, TOO_LONG, {}, math.nan)
    moments, sharp, edges, gain, soft = moves
    system, held = np.empty((x.size, x.size + 1)), not math.isnan(equations.fixed_bias)
    assemble(x, fields, moments, labels, (anchor, equations.fixed_bias, float(first)), system)
    numbers = StepNumbers(
        ridge, float(batch.limit), gamma, anchor, labels.m, labels.bias, gain, soft, first, held,
        mirrored, float(batch.groups[1, 0]),
    )  # fmt: skip
    return SolvedStep(x, fields, labels.roots, moments, sharp, edges, system), numbers


def pull_linear(
    equations: StepEquations, step: SolvedStep, at: StepNumbers, pulls: Array, out: Reversed
) -> None:
    """Fill `out` by the adjoint of the linear half of a step, in its coordinates."""
    linear = equations.algebra
    if isinstance(linear, SpectralStep):
        pull_modes(step, at, linear.noise, linear.old, pulls, out)
    else:
        pull_matrices(step, at, linear, pulls, out)


class SolvedSteps(NamedTuple):
    """A solved run, as compiled code takes it.

    Attributes:
        samples, plan: clusters and inputs of the steps (`step.march`).
        exponent: exponent of the quadrature rules.
        fixed: whether the bias is fixed.
        numbers: the unknowns of every step, the bias, and the factor that converts the model before
            the step to its units.
        means, spreads: the laws of the weights.
    """

    samples: Noise
    plan: Schedule
    exponent: float
    fixed: bool
    numbers: Any
    means: Any
    spreads: Any


def _solved_steps(run: Trajectory, inputs: StepInputs, samples: Noise) -> SolvedSteps:
    """Return the steps of a run for compiled code."""
    numbers = np.column_stack([run.unknowns, run.scaled("bias"), run.unit_changes])
    exponent = exponent_of(run.stats.tolerance)
    return SolvedSteps(
        samples, inputs.schedule, exponent, run.recipe.fix_bias, numbers, run.weight_means,
        run.weight_spreads,
    )  # fmt: skip


class Rooms(NamedTuple):
    """Buffers of the compiled pass: for averages and equations (`work`), the solved step, the old
    weights and their projections on a batch (`seen`), the derivatives of the linear half, averages
    at an edge and of wrong labels.
    """

    work: Work
    step: SolvedStep
    old: Weights
    seen: Any
    linear: Reversed
    edge: Any
    wrong: AllWrong


def _rooms_for(inputs: StepInputs) -> Rooms:
    """Return the buffers of a pass."""
    work, groups, old = inputs.work, inputs.space.groups, inputs.space.no_weights()
    linear, seen = reversed_for(old, groups), np.empty((3, 1 + groups))
    step = SolvedStep(
        np.empty(linear.x.size), work.fields, seen[1, :groups], work.room.moments,
        np.zeros((groups, 5)), edges_for(groups), work.system,
    )  # fmt: skip
    return Rooms(work, step, old, seen, linear, BLANK.copy(), all_wrong_for(groups))


@kernel(allocates=False)
def _pull_run(
    steps: tuple[int, int], run: SolvedSteps, seeds: Seeds, rooms: Rooms, carried: Carried,
    slopes: Any,
) -> int:  # fmt: skip
    """Run the pass from step `steps[0]` down to `steps[1]` + 1; return the step whose averages
    would need too many nodes, or -1.
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
        ridge, gamma = plan.numbers[t, RIDGE_OF_STEP], setting.labels.gamma
        mirrored = plan.kinds[t, BALANCED] == 1 and bias == 0.0
        for j in range(count):
            step.x[j] = run.numbers[t, j]
        anchor = _at_solution(ridge, run.exponent, setting, mirrored, rooms)
        if math.isnan(anchor):
            return t
        sharpness = setting.batch.sharpness
        soft = t > 0 and sharpness < math.inf
        at = StepNumbers(
            ridge, setting.batch.limit, gamma, anchor, setting.labels.m, bias,
            sharpness if soft else 0.0, soft, t == 0, run.fixed and t > 0, mirrored,
            plan.groups[t, 1, 0],
        )  # fmt: skip
        mine = t if carried.bias.shape[0] > 1 else 0
        pulls, by_bias = slopes[t], carried.bias[mine]
        for i in range(size):
            linear.new_mean[i] = carried.mean[mine, i] + seeds.means[t, i]
            linear.new_variance[i] = carried.variance[mine, i] + seeds.spreads[t, i]
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


@kernel(allocates=False)
def _at_solution(
    ridge: float, exponent: float, setting: StepSetting, mirrored: bool, rooms: Rooms
) -> float:
    """Fill fields, averages, edges and equations of a solved step; return the anchor, NaN if the
    averages would need too many nodes.

    If a step changes the weights by little, its unknowns are refined first.
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
    if batch.given:
        moved = fill_wrong(at, labels, batch, rule, room, rooms.wrong)
    else:
        moved = fill_edges(at, labels, batch, rule, room, rooms.edge, edges)
    return anchor if moved else math.nan
