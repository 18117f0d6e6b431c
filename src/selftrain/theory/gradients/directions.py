r"""Errors of the law of the weights, carried forward through the steps for any covariances.

The model after a step is a law of the weights and a bias: a mean and a variance for every mode (or
a vector and a matrix), too many numbers for an ellipsoid of errors. But a step makes errors in its
few unknowns only, and what it makes of old errors is $\delta x = -F_x^{-1}F_\theta\,\delta\theta$
in the same unknowns, besides the part of the old weights that lives on. So errors lie along few
directions, and those are carried: a matrix whose columns span the ellipsoid. Every step maps the
columns, adds one for each of its unknowns, and keeps the `MOST` largest of all. The size of what is
left out is carried as well, as if it grew like the rest.
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
from ..stages import Stages
from ..step.stage import Stage
from ..tolerances import exponent_of
from .equations import Equations, pull_averages, unit_of_unknowns
from .pulls import OLD_BIAS, Bars, Pulled, pulls_for
from .sweep import equations_of, pull_linear

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
    stages, exponent = Stages(run.problem, run.recipe), exponent_of(run.stats.tolerance)
    accuracy, units = np.full(last + 1, math.inf), np.ones(_cuts(run)[-1])
    columns, rest = np.zeros((units.size, 0)), 0.0
    assert run.unknowns is not None
    with threads_of(stages.space):
        for t in range(last + 1):
            old, bias = run.model_before(t)
            mirrored = bool(stages.balanced[t] and bias == 0.0)
            before = _each(run, float(run.unit_changes[t]) ** np.array([1, 2, 1])) * units
            units = _units(run, t)
            try:
                stage = stages.stage(t, old, bias)
                equations = equations_of(stage, run.unknowns[t], exponent, mirrored)
                step = _Step(stages, stage, equations, before)
                kept = step.mapped(columns * before[:, None]) / units[:, None]
                made = step.made(own[t]) / units[:, None]
                if mirrored:
                    kept[-1] = made[-1] = 0.0  # the bias is exactly zero
                columns, rest = _sum(columns, kept, made, rest)
            except (ConvergenceError, np.linalg.LinAlgError):
                break
            accuracy[t] = rest + _largest(run, t, columns)
    return accuracy


def _sum(before: Array, kept: Array, made: Array, rest: float) -> tuple[Array, float]:
    """The ellipsoid of least trace around the sum of old and new errors, along its largest
    directions, and the size of the others.
    """
    size, more = float(np.linalg.norm(kept)), float(np.linalg.norm(made))
    if size > 0.0 and more > 0.0:
        rest *= size / float(np.linalg.norm(before))
        kept, made = kept * math.sqrt(1.0 + more / size), made * math.sqrt(1.0 + size / more)
    left, values, _ = np.linalg.svd(np.hstack([kept, made]), full_matrices=False)
    return left[:, :MOST] * values[:MOST], rest + float(np.linalg.norm(values[MOST:]))


def _cuts(run: Trajectory) -> NDArray[np.int64]:
    """Where the mean, the variances and the bias end in the vector of a model."""
    assert run.weight_means is not None
    assert run.weight_spreads is not None
    sizes = [run.weight_means[0].size, run.weight_spreads[0].size, 1]
    return np.asarray(np.cumsum(sizes), dtype=np.int64)


def _each(run: Trajectory, values: Array) -> Array:
    """A value for the mean, one for the variances and one for the bias, as a vector."""
    return np.repeat(values, np.diff(_cuts(run), prepend=0))


def _units(run: Trajectory, t: int) -> Array:
    r"""What errors are compared with: $|\beta|$, $2|\beta|\sqrt v$, bias and logits."""
    norm, off = math.sqrt(run.scaled_q[t]), math.sqrt(run.scaled("v")[t])
    logits = math.sqrt(run.scaled("logit_variances")[t].max())
    return _each(run, np.array([norm, 2.0 * norm * off, abs(run.scaled("bias")[t]) + logits]))


def _largest(run: Trajectory, t: int, columns: Array) -> float:
    r"""The largest error of m, $\sqrt v$ and B after step t, relative to these units."""
    assert run.space is not None
    test, law, units, h = run.problem.test_clusters, run.law(t), _units(run, t), DIFFERENCE
    size = np.linalg.norm(columns, axis=0)
    steps = h * (columns / np.where(size > 0.0, size, 1.0)) * units[:, None]
    ends = []
    for sign in (1.0, -1.0):
        laws = [_shifted(law, sign * step) for step in steps.T]
        means, spreads = (np.array(each) for each in zip(*laws, strict=True))
        ends.append(run.space.observed(means, spreads, test)[:2])
    cuts = _cuts(run)
    by_m, by_v = ((up - down) * size / (2.0 * h) for up, down in zip(*ends, strict=True))
    rows = [by_m / (test.length * units[0]), by_v / units[cuts[0]], columns[-1]]
    return max(float(np.linalg.norm(row)) for row in rows)


def _shifted(law: Any, step: Array) -> Any:
    """A law of the weights moved by a vector."""
    by_mean, by_variance = np.split(step[:-1], [law.mean.size])
    return type(law)(law.mean + by_mean, law.variance + by_variance.reshape(law.variance.shape))


class _Step:
    """A step as a map of errors: of the model before it, and of its own unknowns.

    Arguments:
        stages: of the run.
        stage, equations: the step at its solution.
        units: of the model before it.
    """

    def __init__(self, stages: Stages, stage: Stage, equations: Equations, units: Array):
        self.space, self.clusters = stages.space, stages.sets[stage.t]
        self.algebra: Any = stage.algebra
        self.limit = stage.averages.batch.limit
        self.equations, self.units = equations, units
        self.scale = np.empty(equations.at.x.size)
        unit_of_unknowns(equations, self.scale)

    def mapped(self, columns: Array) -> Array:
        """What becomes of errors of the model before the step."""
        if columns.shape[1] == 0:
            return columns
        matrix = self.equations.system[:, 1:] * self.scale
        rows = np.abs(matrix).max(axis=1)
        right = (self._slopes() @ columns) / rows[:, None]
        moves = -np.linalg.solve(matrix / rows[:, None], right) * self.scale[:, None]
        pairs = zip(columns.T, moves.T, strict=True)
        return np.array([self._moved(*pair) for pair in pairs]).T

    def made(self, own: float) -> Array:
        """The errors that a relative accuracy of the step stands for (`newton_step`)."""
        labels, (x, _, gamma, _, fields) = self.equations.labels, self.equations.at
        logits = self.scale[BIAS] - abs(x[BIAS] + gamma * labels.bias)
        errors = np.full(x.size, own)
        errors[HAT_M] = own * logits / abs(fields[0, 1 + HAT_M])
        errors[BIAS] = 0.0 if self.equations.fixed_bias else own * self.scale[BIAS]
        for k in range(len(labels.roots)):
            turn = abs(fields[1 + k, 1 + FIRST + k]) * labels.roots[k]
            errors[FIRST + k] = 0.0 if self.equations.given else own * logits / turn
        nothing = np.zeros(self.units.size)
        return np.array([self._moved(nothing, move) for move in np.diag(errors) if move.any()]).T

    def _slopes(self) -> Array:
        r"""$F_\theta$: derivatives of the equations in the model before the step."""
        at, (mean, variance) = self.equations.at, self.algebra.old
        bars = Bars(np.zeros_like(mean), np.zeros_like(variance), 0.0, 0.0)
        out = Pulled(np.zeros(at.x.size), np.zeros_like(mean), np.zeros_like(variance), np.zeros(2))
        pulls, rows = pulls_for(len(self.equations.labels.roots), at.x.size), []
        for adjoint, pull in zip(np.eye(at.x.size), pulls, strict=True):
            pull_averages(self.equations, adjoint, pull)
            pull_linear(self.algebra, at, self.limit, bars, pull, out)
            rows.append(np.hstack([out.mean, out.variance.ravel(), pull[OLD_BIAS]]))
        return np.array(rows)

    def _moved(self, direction: Array, move: Array) -> Array:
        """How the model after the step moves along a direction of the one before it and of the
        unknowns.
        """
        size = max(np.abs(direction / self.units).max(), np.abs(move / self.scale).max())
        if size == 0.0:
            return np.zeros(self.units.size)
        h, at, old, ends = DIFFERENCE / size, self.equations.at, self.algebra.old, []
        for step in (h, -h):
            algebra = self.space.step(_shifted(old, step * direction), self.clusters)
            new, _ = algebra.advance(at.x + step * move, at.ridge, at.gamma)
            ends.append(np.hstack([new.mean, new.variance.ravel()]))
        by_bias = at.gamma * direction[-1] + move[BIAS]
        return np.append((ends[0] - ends[1]) / (2.0 * h), by_bias)
