r"""The reverse pass over a run: from the last step to the first.

Carried along are the derivatives of L in the law of the weights and in the bias. At every step
those in its own results (`columns`) are added. The linear half of the step turns them into
derivatives in the unknowns, its equations turn these into derivatives in fields, labels and batch,
and from all of them the linear half gives those in the old law, for the step before. Where
`step.march` solves the run, the pass is compiled (`compiled`).
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
from ..geometry.space import threads_of
from ..geometry.spectrum import SpectralStep
from ..stages import Stages
from ..step.equations import assemble
from ..step.newton import anchor_of
from ..step.stage import Stage
from ..tolerances import exponent_of
from .columns import Seeds, Wanted, seeds_of
from .compiled import Given, Solved, pull_run
from .equations import Equations, pull_equations
from .matrices import pull_matrices
from .modes import pull_modes
from .moves import is_small, moves_of, rule_of
from .pulls import (
    LIFT,
    OLD_BIAS,
    Bars,
    Carried,
    LinearStep,
    Pulled,
    Slopes,
    carried_for,
)

if TYPE_CHECKING:
    from ..trajectory import Trajectory

TOO_LONG = "its averages need more nodes than there is room for"

PIECE = 200_000
"""Modes times steps that are differentiated before progress is reported."""


def sweep(
    run: Trajectory, wanted: Wanted, last: int, bar: Progress, carried: Carried | None = None
) -> Slopes:
    """Return the derivatives of L in what steps 0..`last` are given.

    Arguments:
        wanted: the derivatives in the results of the run.
        bar: hears of the progress.
        carried: where the derivatives in the models between steps are put; one row by default.
    """
    stages = Stages(run.problem, run.recipe)
    seeds, by_scale = seeds_of(run, stages, wanted, last)
    slopes = Slopes(np.hstack([wanted.pulls[: last + 1], np.zeros((last + 1, 3))]))
    if carried is None:
        carried = carried_for(stages.space.no_weights())
    if stages.compiled:
        _compiled(run, stages, seeds, last, carried, slopes, bar)
    else:
        with threads_of(stages.space):
            for t in range(last, -1, -1):
                _pull_step(run, stages, t, seeds, carried, slopes)
                bar.reach(last + 1 - t)
    slopes.table[:, -2] += by_scale
    return slopes


def _compiled(
    run: Trajectory, stages: Stages, seeds: Seeds, last: int, carried: Carried, slopes: Slopes,
    bar: Progress,
) -> None:  # fmt: skip
    """The pass in compiled code."""
    given = Given(
        stages.samples, stages.schedule, exponent_of(run.stats.tolerance), run.recipe.fix_bias
    )
    assert run.unknowns is not None
    numbers = np.column_stack([run.unknowns, run.scaled("bias"), run.unit_changes])
    solved = Solved(numbers, run.weight_means, run.weight_spreads)
    piece = 1 + PIECE // stages.samples.mean.shape[1]
    for end in range(last, -1, -piece):
        steps = (end, max(-1, end - piece))
        failed = pull_run(steps, given, solved, seeds, stages.work, carried, slopes)
        if failed >= 0:
            raise ConvergenceError(failed, TOO_LONG, {}, math.nan)
        bar.reach(last - steps[1])


def _pull_step(
    run: Trajectory, stages: Stages, t: int, seeds: Seeds, carried: Carried, slopes: Slopes
) -> None:
    """One step of the pass, for any loss and any covariances."""
    old, old_bias = run.model_before(t)
    stage = stages.stage(t, old, old_bias)
    mirrored = bool(stages.balanced[t] and old_bias == 0.0)
    assert run.unknowns is not None
    exponent = exponent_of(run.stats.tolerance)
    equations = equations_of(stage, run.unknowns[t], exponent, mirrored)
    at, pulls, row = equations.at, slopes.table[t, :-3], t if len(carried.bias) > 1 else 0
    mean, variance, bias = carried.mean[row], carried.variance[row], float(carried.bias[row])
    if seeds.places[t] >= 0:
        mean += seeds.means[seeds.places[t]]
        variance += seeds.spreads[seeds.places[t]]
    by_unknowns, (overlap, response, by_bias) = seeds.numbers[t, :-3], seeds.numbers[t, -3:]
    bars = Bars(mean.copy(), variance.copy(), overlap, response)
    out = Pulled(np.zeros(at.x.size), mean, variance, slopes.table[t, -3:-1])
    linear, limit = stage.algebra, stage.averages.batch.limit
    pull_linear(linear, at, limit, bars, pulls, out)
    by_unknowns = by_unknowns + out.x
    by_unknowns[BIAS] += bias + pulls[LIFT]
    slopes.table[t, -1] = pull_equations(equations, by_unknowns, pulls)
    pull_linear(linear, at, limit, bars, pulls, out)
    unit = float(run.unit_changes[t])
    mean *= unit
    variance *= unit**2
    carried.bias[row] = unit * (at.gamma * (by_bias + bias) + pulls[OLD_BIAS])


def equations_of(stage: Stage, unknowns: Array, exponent: float, mirrored: bool) -> Equations:
    """Return the equations of a step at its solution, on the rule that derivatives need.

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
    """Fill `out` by the linear half of a step in reverse, in its coordinates."""
    if isinstance(linear, SpectralStep):
        pull_modes(at, linear.noise, linear.old, limit, bars, pulls, out)
    else:
        pull_matrices(at, linear, limit, bars, pulls, out)
