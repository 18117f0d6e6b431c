r"""The accuracy of the state after t steps: the errors of all steps, propagated.

Each step is confirmed to a relative accuracy of its own (`SolverStats.accuracy`). Later steps
shrink or magnify that error, by the derivative of the new state (m, v, B) in the old one. The set
of possible errors is an ellipsoid. A step maps it linearly and adds an ellipsoid of its own errors;
the sum is enclosed by the ellipsoid of least trace. Errors that always have the same sign thus add
up in full.

Errors are relative: those of m to $\sqrt q$, of v to $2\sqrt{q v}$ (so of $\sqrt v$ to $\sqrt q$),
of B to |B| plus the standard deviation of the logits.

With general covariances the weights have several modes, and the model after a step is the law of
all weights and a bias: too many numbers for a full ellipsoid. But a step makes errors in its few
unknowns x only. It turns errors $\delta\theta$ of the old model into $\delta x =
-F_x^{-1}F_\theta\,\delta\theta$, besides the direct effect of the old weights on the new ones.
Errors therefore lie along few directions, the columns of a matrix that spans the ellipsoid. Every
step maps the columns, adds one for each of its unknowns, and continues with the `MOST` largest
principal axes. The size of the others is added up separately, as if it grew like the whole.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import ConvergenceError
from ..runtime.progress import Progress
from .geometry.modes import BIAS, FIRST, HAT_M
from .geometry.space import threads_of
from .gradients.adjoint import pull_averages, unit_of_unknowns
from .gradients.pulls import (
    OLD_BIAS,
    SolvedStep,
    StepNumbers,
    carried_for,
    pulls_for,
    reversed_for,
)
from .gradients.reverse_pass import pull_linear, reverse_pass, solution_of
from .gradients.seeds import VARIANCES, B, M, V, in_laws, nothing_wanted
from .step.robust import StepEquations
from .step_inputs import StepInputs
from .tolerances import exponent_of

if TYPE_CHECKING:
    from .trajectory import Trajectory

ROUNDING = float(np.finfo(float).eps)
"""Smallest relative error of a step: the rounding of floating-point numbers."""

MOST = 24
"""Number of error directions propagated: three times the unknowns of a step with two groups."""

DIFFERENCE = 1e-5
"""Relative step of the central differences that map an error direction through a step."""


def carried(run: Trajectory) -> Array:
    r"""Return the relative accuracy of the state after each step.

    Infinite from the first step without derivatives; NaN after the last solved step. With data
    reuse each replicate runs through all steps, so the spread of the replicates includes the
    propagated errors.
    """
    accuracy, last = np.full(run.problem.steps + 1, np.nan), run.good_steps - 1
    if run.reuse is not None:
        return np.fmax.accumulate(run.stats.accuracy) + 0.0 * run.m
    if last < 0:
        return accuracy
    own = np.maximum(run.stats.accuracy[: last + 1], ROUNDING)
    one_mode = run.weight_means.shape[1] == 1  # then a step depends on the last through (m, v, B)
    carry = _carry_states if one_mode else carry_directions
    accuracy[: last + 1] = carry(run, last, own)
    return accuracy


def _carry_states(run: Trajectory, last: int, own: Array) -> Array:
    """Return the accumulated accuracy after steps 0..`last`, for weights with one mode.

    `own` is the accuracy of each step alone. Infinite from the first step without derivatives.
    """
    accuracy, maps = np.full(last + 1, math.inf), _state_maps(run, last)
    units, bias, columns = _units(run), run.scaled("bias"), np.zeros((3, 0))
    for t, gain in enumerate(maps):
        kept = (gain * units[t - 1]) @ columns / units[t][:, None]
        made = own[t] * np.eye(3)
        if bias[t] == 0.0:  # by symmetry of the classes: then B is exactly zero
            kept[2] = 0.0
        if bias[t] == 0.0 or (run.recipe.fix_bias and t > 0):
            made[2] = 0.0
        try:
            columns, _ = around_both(columns, kept, made)
        except np.linalg.LinAlgError:  # not finite
            break
        accuracy[t] = np.linalg.norm(columns, axis=1).max()
    return accuracy


def _state_maps(run: Trajectory, last: int) -> Array:
    r"""Return, for each step up to the first without derivatives, the 3 x 3 derivatives of
    ($m/|\mu|$, v, B) after the step in the same numbers before it.

    They are computed by reverse passes through single steps, one for each of the three numbers, and
    are in the units of the step (`theory.fading`).
    """
    law, count = run.space.no_weights(), last + 1
    copies = float(run.space.trace(np.ones(1)))  # v is the sum of this many equal variances
    units = ((M, 1.0 / run.problem.test_clusters.length), (V, 1.0), (B, 1.0))
    while count > 0:
        maps = np.empty((count, 3, 3))
        try:
            for i, (column, unit) in enumerate(units):
                wanted, at = nothing_wanted(run), carried_for(law, count + 1)
                wanted.columns[:, column] = unit
                with Progress(count, "steps", False) as bar:
                    reverse_pass(run, wanted, count - 1, bar, at)
                rows = (at.mean[:, 0], at.variance[:, 0] / copies, at.bias)
                maps[:, i] = np.column_stack(rows)[:count]
            return maps
        except ConvergenceError as error:
            count = error.step
    return np.empty((0, 3, 3))


def carry_directions(run: Trajectory, last: int, own: Array) -> Array:
    """Return the accumulated accuracy after steps 0..`last`, for weights with several modes.

    `own` is the accuracy of each step alone. Infinite from the first step without derivatives.
    """
    inputs, exponent = StepInputs(run.problem, run.recipe), exponent_of(run.stats.tolerance)
    accuracy, units = np.full(last + 1, math.inf), _each(run, np.ones(3))
    columns, rest, scales = np.zeros((units.size, 0)), 0.0, _units(run)
    with threads_of(inputs.space):
        for t in range(last + 1):
            old, bias = run.model_before(t)
            mirrored = bool(inputs.balanced[t] and bias == 0.0)
            before = _each(run, float(run.unit_changes[t]) ** np.array([1, 2, 1])) * units
            units = _each(run, scales[t])
            try:
                equations = inputs.equations(t, old, bias)
                solved, numbers = solution_of(equations, run.unknowns[t], exponent, mirrored)
                step = _Step(inputs, equations, solved, numbers, before)
                kept = step.mapped(columns * before[:, None]) / units[:, None]
                made = step.made(own[t]) / units[:, None]
                if mirrored:
                    kept[-1] = made[-1] = 0.0  # the bias is exactly zero
                columns, rest = around_both(columns, kept, made, rest)
            except (ConvergenceError, np.linalg.LinAlgError):
                break
            accuracy[t] = rest + _largest(run, t, units, columns)
    return accuracy


def around_both(before: Array, kept: Array, made: Array, rest: float = 0.0) -> tuple[Array, float]:
    """Return the `MOST` largest principal axes of the ellipsoid of least trace around the sum of
    two ellipsoids, and the total size of the neglected directions.

    Ellipsoids are given by matrices whose columns span them.

    Arguments:
        before: errors before the step.
        kept: the same errors, propagated through the step.
        made: errors of the step itself.
        rest: size of the directions that were neglected before the step.
    """
    size, more = float(np.linalg.norm(kept)), float(np.linalg.norm(made))
    if size > 0.0 and more > 0.0:
        rest *= size / float(np.linalg.norm(before))
        kept, made = kept * math.sqrt(1.0 + more / size), made * math.sqrt(1.0 + size / more)
    # The SVD, not the eigenvalues of the Gram matrix, which would lose half of the digits.
    left, values, _ = np.linalg.svd(np.hstack([kept, made]), full_matrices=False)
    return left[:, :MOST] * values[:MOST], rest + float(np.linalg.norm(values[MOST:]))


def _each(run: Trajectory, values: Array) -> Array:
    """Return a vector with the first of three `values` for every mean of the weights, the second
    for every variance, and the third for the bias.
    """
    return np.repeat(values, [run.weight_means[0].size, run.weight_spreads[0].size, 1])


def _units(run: Trajectory) -> Array:
    r"""Return the scales of the errors of m, v and B, one row per step: $|\beta|$,
    $2|\beta|\sqrt v$, and |B| plus the standard deviation of the logits.
    """
    norm = np.sqrt(run.scaled_q)  # the product q v may underflow, this does not
    logits = np.abs(run.scaled("bias")) + np.sqrt(run.scaled("logit_variances").max(axis=1))
    return np.column_stack([norm, 2.0 * norm * np.sqrt(run.scaled("v")), logits])


def _largest(run: Trajectory, t: int, units: Array, columns: Array) -> float:
    r"""Return the largest error of m, $\sqrt v$ and B after step t, relative to `units`."""
    test, wanted = run.problem.test_clusters, np.eye(VARIANCES + 2)
    slopes = in_laws(wanted[[M, V]], run.space, test, run.weight_means[[t, t]])
    along = np.hstack([slope.reshape(2, -1) for slope in slopes]) * units[:-1]
    by_m, by_v = along @ columns[:-1]
    rows = [by_m / (test.length * units[0]), by_v / units[run.weight_means[0].size], columns[-1]]
    return max(float(np.linalg.norm(row)) for row in rows)


def _shifted(law: Any, step: Array) -> Any:
    """Return a law of the weights with the vector `step` added to its means and variances."""
    by_mean, by_variance = np.split(step[:-1], [law.mean.size])
    return type(law)(law.mean + by_mean, law.variance + by_variance.reshape(law.variance.shape))


class _Step:
    """Derivatives of a step at its solution: how errors of the old model, in `units`, and of the
    unknowns of the step change the new model.
    """

    def __init__(
        self,
        inputs: StepInputs,
        equations: StepEquations,
        step: SolvedStep,
        at: StepNumbers,
        units: Array,
    ):
        self.space, self.clusters = inputs.space, inputs.sets[equations.t]
        self.equations, self.step, self.at, self.units = equations, step, at, units
        self.old = equations.algebra.old
        self.scale = np.empty(step.x.size)
        unit_of_unknowns(step, at, self.scale)

    def mapped(self, columns: Array) -> Array:
        """Return the error directions `columns` of the old model, propagated through the step."""
        if columns.shape[1] == 0:
            return columns
        matrix = self.step.system[:, 1:] * self.scale
        rows = np.abs(matrix).max(axis=1)
        right = (self._slopes() @ columns) / rows[:, None]
        moves = -np.linalg.solve(matrix / rows[:, None], right) * self.scale[:, None]
        pairs = zip(columns.T, moves.T, strict=True)
        return np.array([self._moved(*pair) for pair in pairs]).T

    def made(self, own: float) -> Array:
        """Return the error directions of a step of relative accuracy `own`, one per unknown;
        `newton_step` defines the accuracy.
        """
        x, fields, roots, *_ = self.step
        logits = self.scale[BIAS] - abs(x[BIAS] + self.at.gamma * self.at.bias)
        errors = np.full(x.size, own)
        errors[HAT_M] = own * logits / abs(fields[0, 1 + HAT_M])
        errors[BIAS] = 0.0 if self.at.fixed_bias else own * self.scale[BIAS]
        for k in range(len(roots)):
            turn = abs(fields[1 + k, 1 + FIRST + k]) * roots[k]
            errors[FIRST + k] = 0.0 if self.at.given else own * logits / turn
        nothing = np.zeros(self.units.size)
        return np.array([self._moved(nothing, move) for move in np.diag(errors) if move.any()]).T

    def _slopes(self) -> Array:
        r"""Return $F_\theta$, the derivatives of the equations in the old model."""
        out, size = reversed_for(self.old, self.equations.groups), self.step.x.size
        pulls, rows = pulls_for(self.equations.groups, size), []
        for adjoint, pull in zip(np.eye(size), pulls, strict=True):
            pull_averages(self.step, self.at, adjoint, pull)
            pull_linear(self.equations, self.step, self.at, pull, out)
            rows.append(np.hstack([out.mean, out.variance.ravel(), pull[OLD_BIAS]]))
        return np.array(rows)

    def _moved(self, direction: Array, move: Array) -> Array:
        """Return the derivative of the new model when the old one changes along `direction` and the
        unknowns along `move`.
        """
        size = max(np.abs(direction / self.units).max(), np.abs(move / self.scale).max())
        if size == 0.0:
            return np.zeros(self.units.size)
        h, x, at, ends = DIFFERENCE / size, self.step.x, self.at, []
        for step in (h, -h):
            algebra = self.space.step(_shifted(self.old, step * direction), self.clusters)
            new, _ = algebra.advance(x + step * move, at.ridge, at.gamma)
            ends.append(np.hstack([new.mean, new.variance.ravel()]))
        by_bias = at.gamma * direction[-1] + move[BIAS]
        return np.append((ends[0] - ends[1]) / (2.0 * h), by_bias)
