"""Step after step in compiled code, for logistic loss and one diagonal shape of all points.

`march` solves steps while each is plain: predicted from those before, settled by Newton's method,
confirmed on the refined rule. It returns at the first that is not, which `engine` then solves by
its slower and surer ways, or ends the run at.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...runtime.kernels import kernel
from ..engines.logistic.step import reference_sharpness
from ..step.ending import Ending, before_step
from ..step.prediction import LONGEST_HISTORY
from ..tolerances import COLLAPSED_MASS, REFINED
from .averages import At, PointSet, Room, logistic_groups
from .compiled import Patience, StepSetting, Work, newton_of_modes, newton_to_root
from .equations import Labelling
from .extrapolation import extrapolate
from .modes import BIAS, FIRST, HAT_M, Noise, Weights, advance, off_squares, projections
from .points import ROUGH

TRIES = 12
"""Newton steps from a prediction; one that needs more was none."""


class BestRule(NamedTuple):
    """What weights are compared with: average variances, the best direction, its separation."""

    average: Any
    direction: Any
    separation: float


class Batches(NamedTuple):
    """The batch and the recipe of every step from 1 on."""

    alpha: Any
    rho: Any
    threshold: Any
    sharpness: Any
    ridge: Any


class Demands(NamedTuple):
    """What is asked for: the exponent of the rules, the last Newton step, the tolerance; whether
    the bias is fixed, and whether losses and labels treat the classes alike (1, else 0); the first
    step in the units of the weights, and whether they have faded (`theory.fading`).
    """

    exponent: float
    enough: float
    tolerance: float
    fixed_bias: float
    mirrored: float
    since: int
    faded: bool


class Table(NamedTuple):
    """What a run keeps of every step, as in `engine.Run`."""

    unknowns: Any
    gammas: Any
    rows: Any
    variances: Any
    strengths: Any
    off_best: Any
    means: Any
    spreads: Any
    effort: Any


class Points(NamedTuple):
    """The noise of the points, their mean variances, and the best rule on them."""

    noise: Noise
    scales: Any
    best: BestRule


@kernel(error_model="numpy")
def march(
    steps: tuple[int, int],
    points: Points,
    batches: Batches,
    demands: Demands,
    table: Table,
    work: Work,
) -> int:
    """Solve the steps from the first of `steps` up to the second, at least two after step 0; the
    first that was not solved.
    """
    noise = points.noise
    groups = noise.variances.shape[0]
    seen, out = np.empty(1 + groups), np.empty(4)
    length = math.sqrt((noise.mean * noise.mean).sum())
    for t in range(steps[0], steps[1]):
        old = Weights(table.means[t - 1], table.spreads[t - 1])
        bias = table.rows[t - 1, 2]
        projections(old, noise, seen)
        root = math.sqrt(seen[1:].max())
        fixed = demands.fixed_bias > 0.0
        if before_step(np.array([root, 0.0, 0.0, bias]), fixed, demands.faded) != Ending.SOLVED:
            return t
        sharpness = batches.sharpness[t - 1]
        gamma = reference_sharpness(sharpness)
        begin = max(demands.since, t - LONGEST_HISTORY)
        for before in range(begin, t):
            if (table.gammas[before] > 0.0) != (gamma > 0.0):
                return t
        square = (old.mean * old.mean).sum() + (noise.copies * old.variance).sum()
        labels = Labelling(seen[0], np.sqrt(seen[1:]), bias, gamma)
        batch = PointSet(
            batches.alpha[t - 1],
            batches.rho[t - 1],
            batches.threshold[t - 1] * math.sqrt(square) * length,
            sharpness,
        )
        mass = _label_mass(labels, batch, work.room)
        if not (mass >= COLLAPSED_MASS or (fixed and mass == mass)):
            return t
        held = (1.0 - gamma) * bias if fixed else math.nan
        setting = StepSetting(noise, old, labels, batch, seen[1:] / square, held, 0.0)
        x, ridge = np.empty(FIRST + 3 * groups), batches.ridge[t - 1]
        extrapolate(table.unknowns[begin:t].copy(), x)
        patience = Patience(demands.exponent, demands.enough, TRIES, 0.0)
        settled, evaluations, _ = newton_to_root(x, ridge, patience, setting, work)
        if not settled:
            return t
        used, accuracy, _ = newton_of_modes(x, ridge, demands.exponent + REFINED, setting, work)
        if not accuracy <= demands.tolerance:
            return t
        if groups == 1 and batch.rho == 0.5 and bias == 0.0 and demands.mirrored > 0.0:
            x[BIAS] = 0.0
        new = Weights(table.means[t], table.spreads[t])
        advance(x, ridge, gamma, noise, old, new, out)
        _enter(t, x, labels, points, new, table)
        table.rows[t, 3], table.rows[t, 4] = out[3], out[2]
        for k in range(2):
            table.strengths[t, k] = work.fields[1 + 2 * groups + min(k, groups - 1), 0]
        table.effort[t, 0], table.effort[t, 1] = evaluations + 1, used
        table.effort[t, 2] = accuracy
    return steps[1]


@kernel(error_model="numpy")
def _label_mass(labels: Labelling, batch: PointSet, room: Room) -> float:
    """The share of the rarer class among the selected labels; NaN if nothing is selected."""
    groups = labels.roots.shape[0]
    fields = np.zeros((1 + 3 * groups, 1))
    fields[1 + groups : 1 + 2 * groups] = 1e-9
    fields[1 + 2 * groups :] = 1e-12
    x = np.zeros(2)
    x[BIAS] = -labels.gamma * labels.bias
    if logistic_groups(At(x, fields, 0.0), labels, batch, ROUGH, None, room) <= 0:
        return math.nan
    pull = total = 0.0
    for k in range(groups):
        pull += room.shares[k] * room.moments[k].f
        total += room.shares[k]
    positive = 0.5 - pull / total
    return min(positive, 1.0 - positive)


@kernel(error_model="numpy")
def _enter(t: int, x: Any, labels: Labelling, points: Points, new: Weights, table: Table) -> None:
    """The solution of step t: unknowns, what the test points see of the weights, and the row of the
    trajectory but for its chi and overlap.
    """
    groups = labels.roots.shape[0]
    seen = np.empty(1 + groups)
    projections(new, points.noise, seen)
    best = points.best
    v, off = off_squares(new, points.noise, best.average, best.direction, best.separation)
    table.unknowns[t] = x
    table.gammas[t] = labels.gamma
    table.off_best[t] = off if best.separation < math.inf else math.nan
    hat_q = hat_chi = hat_r = 0.0
    for k in range(groups):
        scale, stiff = points.scales[k], math.exp(x[FIRST + groups + k])
        hat_q += scale * stiff
        hat_chi += scale * math.exp(x[FIRST + 2 * groups + k])
        hat_r += scale * (labels.gamma * stiff - x[FIRST + k])
    for k in range(2):
        table.variances[t, k] = seen[1 + min(k, groups - 1)]
    row = table.rows[t]
    row[0], row[1], row[2] = seen[0], v, labels.gamma * labels.bias + x[BIAS]
    row[5], row[6], row[7], row[8] = hat_q, hat_chi, x[HAT_M], hat_r
