r"""Errors of the law of the weights, carried forward through the steps for any covariances.

The model after a step is a law of the weights and a bias: a mean and a variance for every mode (or
a vector and a matrix), too many numbers for an ellipsoid of errors. But a step makes errors in its
few unknowns only, and what it makes of old errors is $\delta x = -F_x^{-1}F_\theta\,\delta\theta$
in the same unknowns, besides the part of the old weights that lives on. So errors lie along few
directions, and those are carried: a matrix whose columns span the ellipsoid. Every step maps the
columns, adds one for each of its unknowns, and continues with the `MOST` largest of all. The size
of the others is carried as well, as if it grew like the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...errors import ConvergenceError
from ..geometry.modes import BIAS, FIRST, HAT_M
from ..geometry.space import threads_of
from ..step.robust import StepEquations
from ..step_inputs import StepInputs
from ..tolerances import exponent_of
from .adjoint import pull_averages, unit_of_unknowns
from .pulls import OLD_BIAS, SolvedStep, StepNumbers, pulls_for, reversed_for
from .reverse_pass import pull_linear, solution_of
from .seeds import VARIANCES, M, V, in_laws

if TYPE_CHECKING:
    from ..trajectory import Trajectory

MOST = 24
"""Directions that are carried: three times as many as a step of two groups has unknowns."""

DIFFERENCE = 1e-5
"""Relative size of the differences that map a direction: the map is explicit and smooth."""


def carry_directions(run: Trajectory, last: int, own: Array) -> Array:
    """Return the relative accuracy after steps 0..`last` from those of the steps by themselves;
    infinite from the first step that has no derivatives.
    """
    inputs, exponent = StepInputs(run.problem, run.recipe), exponent_of(run.stats.tolerance)
    accuracy, units = np.full(last + 1, math.inf), np.ones(_cuts(run)[-1])
    columns, rest = np.zeros((units.size, 0)), 0.0
    assert run.unknowns is not None
    with threads_of(inputs.space):
        for t in range(last + 1):
            old, bias = run.model_before(t)
            mirrored = bool(inputs.balanced[t] and bias == 0.0)
            before = _each(run, float(run.unit_changes[t]) ** np.array([1, 2, 1])) * units
            units = _units(run, t)
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
            accuracy[t] = rest + _largest(run, t, columns)
    return accuracy


def around_both(before: Array, kept: Array, made: Array, rest: float = 0.0) -> tuple[Array, float]:
    """Return the ellipsoid of least trace around the sum of two ellipsoids, along its largest
    directions, and the size of the others.

    Ellipsoids are given by columns that span them. `kept` is what a step made of `before`, of which
    directions of the size `rest` were left out; `made` are its own errors.
    """
    size, more = float(np.linalg.norm(kept)), float(np.linalg.norm(made))
    if size > 0.0 and more > 0.0:
        rest *= size / float(np.linalg.norm(before))
        kept, made = kept * math.sqrt(1.0 + more / size), made * math.sqrt(1.0 + size / more)
    # not through the product of the columns: that loses half of the digits of a thin ellipsoid
    left, values, _ = np.linalg.svd(np.hstack([kept, made]), full_matrices=False)
    return left[:, :MOST] * values[:MOST], rest + float(np.linalg.norm(values[MOST:]))


def _cuts(run: Trajectory) -> NDArray[np.int64]:
    """Return the ends of mean, variances and bias in the vector of a model."""
    assert run.weight_means is not None
    assert run.weight_spreads is not None
    sizes = [run.weight_means[0].size, run.weight_spreads[0].size, 1]
    return np.asarray(np.cumsum(sizes), dtype=np.int64)


def _each(run: Trajectory, values: Array) -> Array:
    """Return one value for every mean, one for every variance and one for the bias, as a vector."""
    return np.repeat(values, np.diff(_cuts(run), prepend=0))


def _units(run: Trajectory, t: int) -> Array:
    r"""Return the scales of errors: $|\beta|$, $2|\beta|\sqrt v$, bias and logits."""
    norm, off = math.sqrt(run.scaled_q[t]), math.sqrt(run.scaled("v")[t])
    logits = math.sqrt(run.scaled("logit_variances")[t].max())
    return _each(run, np.array([norm, 2.0 * norm * off, abs(run.scaled("bias")[t]) + logits]))


def _largest(run: Trajectory, t: int, columns: Array) -> float:
    r"""The largest error of m, $\sqrt v$ and B after step t, relative to these units."""
    assert run.space is not None
    test, law, units, wanted = (
        run.problem.test_clusters,
        run.law(t),
        _units(run, t),
        np.eye(VARIANCES + 2),
    )
    laws = [np.array([part, part]) for part in law]
    slopes = in_laws(wanted[[M, V]], run.space, test, *laws)
    along = np.hstack([slope.reshape(2, -1) for slope in slopes]) * units[:-1]
    by_m, by_v = along @ columns[:-1]
    rows = [by_m / (test.length * units[0]), by_v / units[_cuts(run)[0]], columns[-1]]
    return max(float(np.linalg.norm(row)) for row in rows)


def _shifted(law: Any, step: Array) -> Any:
    """A law of the weights moved by a vector."""
    by_mean, by_variance = np.split(step[:-1], [law.mean.size])
    return type(law)(law.mean + by_mean, law.variance + by_variance.reshape(law.variance.shape))


class _Step:
    """A step at its solution as a map of errors: of the model before it, measured in `units`, and
    of its own unknowns.
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
        algebra: Any = equations.algebra
        self.old = algebra.old
        self.scale = np.empty(step.x.size)
        unit_of_unknowns(step, at, self.scale)

    def mapped(self, columns: Array) -> Array:
        """Return errors of the model before the step, propagated through the step."""
        if columns.shape[1] == 0:
            return columns
        matrix = self.step.system[:, 1:] * self.scale
        rows = np.abs(matrix).max(axis=1)
        right = (self._slopes() @ columns) / rows[:, None]
        moves = -np.linalg.solve(matrix / rows[:, None], right) * self.scale[:, None]
        pairs = zip(columns.T, moves.T, strict=True)
        return np.array([self._moved(*pair) for pair in pairs]).T

    def made(self, own: float) -> Array:
        """Return the errors that correspond to a relative accuracy of the step (`newton_step`)."""
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
        r"""$F_\theta$: derivatives of the equations in the model before the step."""
        out, size = reversed_for(self.old, self.equations.groups), self.step.x.size
        pulls, rows = pulls_for(self.equations.groups, size), []
        for adjoint, pull in zip(np.eye(size), pulls, strict=True):
            pull_averages(self.step, self.at, adjoint, pull)
            pull_linear(self.equations, self.step, self.at, pull, out)
            rows.append(np.hstack([out.mean, out.variance.ravel(), pull[OLD_BIAS]]))
        return np.array(rows)

    def _moved(self, direction: Array, move: Array) -> Array:
        """How the model after the step moves along a direction of the one before it and of the
        unknowns.
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
