"""A whole run for clusters with a shape: step after step, each predicted from the last ones, solved
and confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput, StageError
from ...labelers import HardLabels, SoftLabels
from ...losses import Logistic, Squared
from ...mixture.clusters import Clusters
from ...problem import Problem
from ...recipe import Recipe
from ...runtime.parallel import one_thread
from ...runtime.progress import ProgressOption
from ..diagnostics import in_own_units
from ..engines.logistic.step import reference_sharpness
from ..step.ending import Ending, before_step
from ..step.prediction import LONGEST_HISTORY
from ..step.table import START_NAMES, Record
from ..tolerances import COLLAPSED_MASS, LEVELS, REFINED, last_step_of
from .averages import PointSet
from .compiled import work_for
from .equations import Labelling, unknown_scales
from .extrapolation import extrapolated
from .march import Demands, Near, Samples, Schedule, Table, Test, march
from .matrices import FullWeights, MatrixSpace
from .mirror import own_mirrors
from .modes import BIAS, FIRST, HAT_M, Weights
from .points import GenericAverages, LogisticAverages, SquaredAverages, node_store
from .solver import solve_stage
from .spectral import Spectrum
from .stage import CompiledStage, ShapedStage
from .trajectory import ShapedTrajectory

MARCHED = 200_000
"""Modes times steps of compiled code between two reports of progress."""


class Run:
    """The tables of a run while it is solved."""

    def __init__(self, problem: Problem, recipe: Recipe, tolerance: float):
        assert problem.clusters is not None
        self.problem, self.recipe, self.tolerance = problem, recipe, tolerance
        self.test = problem.test_clusters
        self.shapes = [problem.clusters, *problem.batch_clusters]
        self.space = space_of_problem(problem)
        self.record = Record(problem, recipe, tolerance)
        steps, groups = problem.steps, self.space.groups
        self.unknowns = np.full((steps + 1, FIRST + 3 * groups), np.nan)
        self.gammas = np.zeros(steps + 1)
        self.weights: list[Any] = []
        self.variances = np.full((steps + 1, 2), np.nan)
        self.strengths = np.full((steps + 1, 2), np.nan)
        self.off_best = np.full(steps + 1, np.nan)
        self.values, self.length = recipe.at_steps(steps), problem.clusters.length
        self.balanced = np.append(problem.rho, problem.unlabeled.rho) == 0.5
        if self.balanced.any():
            self.balanced &= self.record.mirrored & own_mirrors(self.shapes)
        self.since = 1  # the first step whose unknowns are in the units of the weights
        self.nodes = node_store()
        self.work = work_for(groups, self.nodes)
        logistic = self._kind(0) is self._kind(1) is Logistic
        self.marches = logistic and isinstance(self.space, Spectrum)
        modes = len(self.space.no_weights().mean) if self.marches else 0
        self.means, self.spreads = np.empty((2, steps + 1, modes))

    def scale(self, shape: Clusters) -> Array:
        """The mean variance of a feature in every group of a set of samples."""
        return np.array([mean_variance(s, shape.features) for s in shape.covariances])

    def stage(self, t: int, old: Any, bias: float) -> ShapedStage:
        """The equations of step t from the weights and the bias before it."""
        problem, recipe, shape = self.problem, self.recipe, self.shapes[t]
        algebra = self.space.step(old, shape)
        if t == 0:
            points = PointSet(problem.alpha_l, problem.rho, 0.0, math.inf)
            labels = Labelling(0.0, np.ones(self.space.groups), 0.0, 0.0)
            ridge, fixed_bias = recipe.lambda_l, math.nan
        else:
            batches, values = problem.unlabeled, self.values
            m, *squares = self.space.projections(old, shape)
            norm = math.sqrt(self.space.square(old, shape)) * self.length
            sharpness = float(values.sharpness[t - 1])
            if isinstance(recipe.label_function, HardLabels):
                sharpness = math.inf
            points = PointSet(
                float(batches.alpha[t - 1]),
                float(batches.rho[t - 1]),
                float(values.threshold[t - 1]) * norm,
                sharpness,
            )
            gamma = self._gamma(t, sharpness)
            labels = Labelling(float(m), np.sqrt(np.array(squares)), bias, gamma)
            ridge, fixed_bias = float(values.lambda_u[t - 1]), bias if recipe.fix_bias else math.nan
        given = (t, algebra, self._averages(t, labels, points, fixed_bias), labels, points, ridge)
        if self._kind(t) is Logistic and isinstance(self.space, Spectrum):
            return CompiledStage(self.work, *given, recipe.fix_bias)
        return ShapedStage(*given, recipe.fix_bias)

    def _kind(self, t: int) -> type | None:
        """The loss of step t if its averages with these labels are known, else None."""
        plain = type(self.recipe.label_function) in (SoftLabels, HardLabels)
        loss = type(self.problem.loss_at(t))
        return loss if plain and loss in (Logistic, Squared) else None

    def _gamma(self, t: int, sharpness: float) -> float:
        r"""$\gamma_0$ of the unknowns: the sharpness where labels and logits are comparable, else
        0. Those of the squared loss are so for any finite one.
        """
        if self._kind(t) is Squared:
            return 0.0 if math.isinf(sharpness) else sharpness
        return float(reference_sharpness(sharpness)) if self._kind(t) is Logistic else 0.0

    def _averages(
        self, t: int, labels: Labelling, points: PointSet, fixed_bias: float
    ) -> LogisticAverages | SquaredAverages | GenericAverages:
        if self._kind(t) is Squared:
            return SquaredAverages(t == 0, labels, points, fixed_bias)
        if self._kind(t) is Logistic:
            return LogisticAverages(t == 0, labels, points, self.nodes, fixed_bias)
        loss = self.problem.loss_at(t)
        return GenericAverages(t, loss, self.recipe.label_function, labels, points, fixed_bias)

    def guess(self, t: int, labels: Labelling, warm: ShapedTrajectory | None) -> Array | None:
        """The unknowns of step t, extrapolated from the steps before, or those of a similar run."""
        if warm is not None and t < warm.good_steps:
            other = 0 if warm.fading is None else warm.fading.exponents[t]
            return self._in_units(t, warm.unknowns[t], other)
        if t < 2:
            return None
        begin = max(1, t - LONGEST_HISTORY)
        if np.any((self.gammas[begin:t] > 0) != (labels.gamma > 0)):
            return None
        scale = np.empty(self.unknowns.shape[1])
        unknown_scales(self.unknowns[t - 1], labels, scale)
        exponents = self.record.exponents
        before = [self._in_units(t, self.unknowns[k], exponents[k]) for k in range(begin, t)]
        return extrapolated(np.array(before), scale)

    def _in_units(self, t: int, unknowns: Array, exponent: int) -> Array:
        """Unknowns in units of another exponent, in those of step t."""
        power, x = int(self.record.exponents[t] - exponent), np.array(unknowns)
        x[[HAT_M, BIAS]] *= 2.0**power
        x[FIRST + 2 * self.space.groups :] += 2 * power * math.log(2.0)
        return x

    def store(self, t: int, stage: ShapedStage, solution: Any, old: Any, bias: float) -> float:
        """Enter the solution of step t and return its bias."""
        x, gamma, record = solution.x, stage.labels.gamma, self.record
        if self.balanced[t] and bias == 0.0:
            x = x.copy()
            x[BIAS] = 0.0
        new_bias = float(gamma * bias + x[BIAS])
        weights, (_, _, overlap, chi) = stage.algebra.advance(x, stage.ridge, gamma)
        self.unknowns[t], self.gammas[t] = x, gamma
        self.weights.append(weights)
        if self.marches:
            self.means[t], self.spreads[t] = weights
        m, *squares = self.space.projections(weights, self.test)
        v, self.off_best[t] = self.space.off(weights, self.test)
        self.variances[t] = squares
        at = stage.algebra.fields(x, stage.ridge, gamma, 0.0)
        self.strengths[t] = at[1 + 2 * self.space.groups :, 0]
        hat_q, hat_chi = np.exp(x[stage.log_q]), np.exp(x[stage.log_chi])
        hat_r = gamma * hat_q - x[stage.hat_t]
        scale = self.scale(self.shapes[t])
        sums = [float((scale * hat).sum()) for hat in (hat_q, hat_chi, hat_r)]
        first = t == 0
        record.rows[t] = [
            m, v, new_bias, chi, math.nan if first else overlap,
            sums[0], sums[1], x[0], math.nan if first else sums[2],
        ]  # fmt: skip
        record.evaluations[t], record.points[t] = solution.evaluations, solution.points
        record.accuracy[t] = solution.accuracy
        record.starts[t] = START_NAMES.index(solution.start)
        record.reached(t)
        return new_bias

    def solve(self, warm: ShapedTrajectory | None) -> None:
        """Fill the tables."""
        record, old, bias = self.record, self.space.no_weights(), 0.0
        exponent = (
            record.exponent
        )  # a step that needed a finer rule is followed by one that needs it
        compiled = self.compiled_run(warm)
        t = 0
        while t <= self.problem.steps:
            if compiled is not None and not (t == self.since > 1):
                done, ending = compiled(t, exponent)
                if done > t:
                    t, old, bias = done, self.weights[-1], float(record.rows[done - 1, 2])
                if ending == Ending.SOLVED:
                    continue
                if ending in (Ending.COLLAPSED, Ending.EMPTY):
                    record.end(t, ending)
                    return
            if t > 0:
                power = self._power(t, old, bias)
                if power is None:
                    record.collapsed_at = t
                    return
                if power != 0:
                    old = type(old)(old[0] * 2.0**power, old[1] * 4.0**power)
                    bias, self.since = bias * 2.0**power, t
            stage = self.stage(t, old, bias)
            if t > 0:
                mass = stage.averages.label_mass()
                if math.isnan(mass):
                    threshold = self.values.threshold[t - 1]
                    state = record.described(t - 1)
                    raise Ending.EMPTY.error(t, state, threshold=float(threshold))
                if not self.recipe.fix_bias and mass < COLLAPSED_MASS:
                    record.collapsed_at = t
                    return
            guess = self.guess(t, stage.labels, warm)
            solution = solve_stage(stage, exponent, record.confirmable, guess)
            exponent = min(solution.exponent, record.exponent + LEVELS * REFINED)
            bias = self.store(t, stage, solution, old, bias)
            old = self.weights[-1]
            t += 1

    def compiled_run(
        self, warm: ShapedTrajectory | None
    ) -> Callable[[int, float], tuple[int, Ending]] | None:
        """Solve steps from some t on in compiled code; the first that was not, and how it ended.
        None where there is no compiled code.
        """
        space, record, values, problem = self.space, self.record, self.values, self.problem
        if not self.marches:
            return None
        assert isinstance(space, Spectrum)
        sets = [*dict.fromkeys([*self.shapes, self.test])]
        noises = [space.noise(shape) for shape in sets]
        samples = Samples(
            np.array([noise.mean for noise in noises]),
            np.array([noise.variances for noise in noises]),
            noises[0].copies,
            noises[0].features,
            np.array([np.broadcast_to(self.scale(shape), space.groups) for shape in sets]),
        )
        test = Test(sets.index(self.test), *space.best_direction(self.test), self.test.separation)
        batches = problem.unlabeled
        sharpness = np.array(values.sharpness)
        if isinstance(self.recipe.label_function, HardLabels):
            sharpness[:] = math.inf
        plan = Schedule(
            np.array([sets.index(shape) for shape in self.shapes]),
            np.append(problem.alpha_l, batches.alpha),
            np.append(problem.rho, batches.rho),
            np.append(0.0, values.threshold),
            np.append(math.inf, sharpness),
            np.append(self.recipe.lambda_l, values.lambda_u),
            self.balanced,
        )
        near = Near(np.zeros_like(self.unknowns), np.full(len(self.gammas), math.nan))
        if warm is not None:
            good = warm.good_steps
            near.unknowns[:good], near.gammas[:good] = warm.unknowns[:good], warm.gammas[:good]
        table = Table(
            self.unknowns, self.gammas, record.rows, self.variances, self.strengths, self.off_best,
            self.means, self.spreads, record.evaluations, record.points, record.accuracy,
            record.starts,
        )  # fmt: skip
        enough = last_step_of(record.confirmable)
        piece = 1 + MARCHED // max(1, self.means.shape[1])

        def run(t: int, exponent: float) -> tuple[int, Ending]:
            demands = Demands(
                exponent, enough, record.confirmable, self.recipe.fix_bias, self.since,
                bool(record.exponents[t] > 0),
            )  # fmt: skip
            if self.since > 1:
                near.gammas[:] = math.nan  # the similar run is in other units
            last = min(problem.steps + 1, t + piece)
            done, ending = march((t, last), samples, test, plan, near, demands, table, self.work)
            for at in range(t, done):
                self.weights.append(Weights(self.means[at], self.spreads[at]))
            if done > t:
                record.reached(done - 1)
            return done, Ending(ending)

        return run

    def _power(self, t: int, old: Any, bias: float) -> int | None:
        """The power of two by which the labelling model has to be multiplied to be in range; None
        if nothing but its bias is left. Raises if it overflows or underflows.
        """
        root, record = math.sqrt(max(self.space.projections(old, self.shapes[t])[1:])), self.record
        state, faded = np.array([root, 0.0, 0.0, bias]), bool(record.exponents[t] > 0)
        ending = Ending(before_step(state, self.recipe.fix_bias, faded))
        power = record.shift(t, ending, root)
        if power == 0 and ending in (Ending.FADED, Ending.OVERFLOW):
            raise ending.error(t, record.described(t - 1))
        return None if ending == Ending.COLLAPSED else power

    def trajectory(self) -> ShapedTrajectory:
        """The finished result."""
        record = self.record
        record.truncate(len(self.weights))
        finished = record.finished()
        columns = {"logit_variances": self.variances, "off_best": self.off_best}
        return ShapedTrajectory(
            self.problem,
            self.recipe,
            **finished | record.in_units(columns, finished.get("fading")),
            strengths=self.strengths,
            unknowns=self.unknowns,
            gammas=self.gammas,
            history=tuple(self.weights),
            space=self.space,
        )


def solve_shaped(
    problem: Problem,
    recipe: Recipe,
    tolerance: float,
    on_failure: str,
    warm_start: Any = None,
    progress: ProgressOption = None,
) -> ShapedTrajectory:
    """`solve` for a problem with clusters."""
    _check_ridge(problem, recipe)
    run = Run(problem, recipe, tolerance)
    warm = warm_start if isinstance(warm_start, ShapedTrajectory) else None
    if warm is not None and warm.unknowns.shape != run.unknowns.shape:
        warm = None
    with run.record.reporting(progress), threads_of(run.space):
        try:
            run.solve(warm)
        except StageError as error:
            if on_failure == "raise":
                raise
            run.record.failure = error
    return run.trajectory()


def train_loss(trajectory: ShapedTrajectory) -> Array:
    """Mean loss of the selected training points of every solved step, at the minimum."""
    run = Run(trajectory.problem, trajectory.recipe, trajectory.stats.tolerance)
    losses = np.full(trajectory.problem.steps + 1, math.nan)
    for t in range(len(trajectory.history)):
        stage, x = run.stage(t, *trajectory.model_before(t)), trajectory.unknowns[t]
        fields = stage.algebra.fields(x, stage.ridge, stage.labels.gamma, 0.0)
        found = stage.averages.at(x, fields, 0.0, run.record.exponent, with_loss=True)
        assert found is not None
        losses[t] = float(found[1] @ found[0].loss / found[1].sum())
    return in_own_units(trajectory, losses, trajectory.t)


def space_of(shapes: list[Clusters]) -> Spectrum | MatrixSpace:
    """The coordinates that suit these shapes."""
    return Spectrum(shapes) if Spectrum.fits(shapes) else MatrixSpace(shapes)


def space_of_problem(problem: Problem) -> Spectrum | MatrixSpace:
    """The coordinates that suit all sets of points of a problem."""
    assert problem.clusters is not None
    return space_of([problem.clusters, *problem.batch_clusters, problem.test_clusters])


def threads_of(space: Spectrum | MatrixSpace) -> AbstractContextManager[object]:
    """The threads that suit these coordinates; a spectrum needs no linear algebra."""
    return one_thread() if isinstance(space, MatrixSpace) else nullcontext()


def law_of(space: Spectrum | MatrixSpace, mean: Array, spread: Array) -> Weights | FullWeights:
    """The law of the weights in these coordinates: mean, and variances or a covariance."""
    return (FullWeights if isinstance(space, MatrixSpace) else Weights)(mean, spread)


def mean_variance(covariance: Array, features: int) -> float:
    """The trace of a covariance per feature."""
    if covariance.ndim == 2:
        return float(np.trace(covariance)) / features
    return float(np.mean(covariance))


def _check_ridge(problem: Problem, recipe: Recipe) -> None:
    """Without ridge a direction without noise in which the means differ would separate the classes
    for free.
    """
    assert problem.clusters is not None
    if recipe.lambda_l == 0 and math.isinf(problem.clusters.separation):
        accepted = (
            "lambda_l > 0 is accepted: the means differ in a direction in which the noise has no"
            " variance"
        )
        raise InvalidInput("lambda_l", recipe.lambda_l, accepted)
