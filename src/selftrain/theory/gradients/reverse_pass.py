r"""The reverse pass over a run: from the last step to the first.

Carried along are the derivatives of L in the law of the weights and in the bias. At every step
those in its own results (`seeds`) are added. The linear half of the step turns them into
derivatives in the unknowns, its equations turn these into derivatives in fields, labels and batch,
and from all of them the linear half gives those in the old law, for the step before. Where
`step.march` solves the run, the pass is compiled (`compiled_pass`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from ...runtime.progress import Progress
from ..averages.batch import At
from ..geometry.modes import BIAS
from ..geometry.space import SpectralStep, threads_of
from ..step.equations import anchor_of, assemble
from ..step.robust import StepEquations
from ..step_inputs import StepInputs
from ..tolerances import exponent_of
from .adjoint import pull_equations
from .compiled_pass import SolvedRun, pull_run, rooms_for
from .moved_averages import is_small, moves_of, rule_of
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
from .reversed_matrices import pull_matrices
from .reversed_modes import pull_modes
from .seeds import Seeds, Wanted, seeds_of

if TYPE_CHECKING:
    from ..trajectory import Trajectory

TOO_LONG = "its averages need more nodes than there is room for"

PIECE = 200_000
"""Modes times steps that are differentiated before progress is reported."""


def reverse_pass(
    run: Trajectory, wanted: Wanted, last: int, bar: Progress, carried: Carried | None = None
) -> Array:
    """Return the derivatives of L in what steps 0..`last` are given, a row of `pulls` for each.

    Arguments:
        wanted: the derivatives in the results of the run.
        bar: hears of the progress.
        carried: where the derivatives in the models between steps are put; one row by default.
    """
    inputs = StepInputs(run.problem, run.recipe)
    seeds, by_scale = seeds_of(run, inputs, wanted, last)
    slopes, exponent = wanted.pulls[: last + 1].copy(), exponent_of(run.stats.tolerance)
    assert run.unknowns is not None
    law = inputs.space.no_weights()
    linear = reversed_for(law, inputs.space.groups)
    if carried is None:
        carried = carried_for(law)
    if inputs.samples is not None:
        numbers = np.column_stack([run.unknowns, run.scaled("bias"), run.unit_changes])
        solved = SolvedRun(
            inputs.samples, inputs.schedule, exponent, run.recipe.fix_bias, numbers,
            run.weight_means, run.weight_spreads,
        )  # fmt: skip
        rooms = rooms_for(inputs.work, linear)
        piece = 1 + PIECE // inputs.samples.mean.shape[1]
        for end in range(last, -1, -piece):
            steps = (end, max(-1, end - piece))
            failed = pull_run(steps, solved, seeds, rooms, carried, slopes)
            if failed >= 0:
                raise ConvergenceError(failed, TOO_LONG, {}, math.nan)
            bar.reach(last - steps[1])
    else:
        with threads_of(inputs.space):
            for t in range(last, -1, -1):
                equations = inputs.equations(t, *run.model_before(t))
                mirrored = bool(inputs.balanced[t] and equations.labels.bias == 0.0)
                solution = solution_of(equations, run.unknowns[t], exponent, mirrored)
                row = t if len(carried.bias) > 1 else 0
                at = Carried(*(part[row : row + 1] for part in carried))
                _pull_step(equations, solution, linear, seeds, at, slopes[t])
                for part, power in zip(at, (1, 2, 1), strict=True):
                    part *= float(run.unit_changes[t]) ** power
                bar.reach(last + 1 - t)
    slopes[:, SCALE] += by_scale
    return slopes


def _pull_step(
    equations: StepEquations, solution: tuple[SolvedStep, StepNumbers], linear: Reversed,
    seeds: Seeds, carried: Carried, pulls: Array,
) -> None:  # fmt: skip
    """Make one step of the pass, for any loss and any covariances, in the units of the step."""
    (step, at), t, place = solution, equations.t, seeds.places[equations.t]
    linear.new_mean[:], linear.new_variance[:] = carried.mean[0], carried.variance[0]
    if place >= 0:
        linear.new_mean[:] += seeds.means[place]
        linear.new_variance[:] += seeds.spreads[place]
    linear.ends[:] = seeds.numbers[t, -3:-1]
    pull_linear(equations, step, at, pulls, linear)
    linear.x[:] += seeds.numbers[t, :-3]
    linear.x[BIAS] += carried.bias[0]
    pull_equations(step, at, pulls, linear)
    pull_linear(equations, step, at, pulls, linear)
    carried.mean[0], carried.variance[0] = linear.mean, linear.variance
    carried.bias[0] = at.gamma * (seeds.numbers[t, -1] + carried.bias[0]) + pulls[OLD_BIAS]


def solution_of(
    equations: StepEquations, unknowns: Array, exponent: float, mirrored: bool
) -> tuple[SolvedStep, StepNumbers]:
    """Return a step at its solution, on the rule that derivatives need.

    Where a step changes the weights by little, its unknowns are made more exact first.
    """
    x, labels, ridge, first = unknowns.copy(), equations.labels, equations.ridge, equations.t == 0
    softness, gamma, batch = equations.algebra.softness, labels.gamma, equations.averages.batch
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
    averages: Any = equations.averages
    moves = moves_of(averages, At(float(x[BIAS]), fields, anchor), rule)
    if moves is None:
        raise ConvergenceError(equations.t, TOO_LONG, {}, math.nan)
    moments, sharp, edges, gain, soft = moves
    system, held = np.empty((x.size, x.size + 1)), not math.isnan(equations.fixed_bias)
    assemble(x, fields, moments, labels, (anchor, equations.fixed_bias, float(first)), system)
    numbers = StepNumbers(
        ridge, float(batch.limit), gamma, anchor, labels.m, labels.bias, gain, soft, first, held,
        mirrored,
    )  # fmt: skip
    positive = np.array(batch.groups[1])
    return SolvedStep(x, fields, labels.roots, moments, positive, sharp, edges, system), numbers


def pull_linear(
    equations: StepEquations, step: SolvedStep, at: StepNumbers, pulls: Array, out: Reversed
) -> None:
    """Fill `out` by the linear half of a step in reverse, in its coordinates."""
    linear: Any = equations.algebra
    if isinstance(linear, SpectralStep):
        pull_modes(step, at, linear.noise, linear.old, pulls, out)
    else:
        pull_matrices(step, at, linear, pulls, out)
