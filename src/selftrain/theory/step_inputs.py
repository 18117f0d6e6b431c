"""The inputs and the equations of every step of a run: two classes, every sample used once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..labelers import HardLabels
from ..problem import Problem
from ..recipe import Recipe
from .averages.batch import OTHER, Batch, Labelling, kind_of
from .averages.generic.averages import averages_of
from .geometry.mirror import own_mirrors, treats_classes_alike
from .geometry.modes import Noise
from .geometry.space import Spectrum, mean_variance, space_of
from .step.equations import work_for
from .step.march import (
    BALANCED,
    LOSS,
    RIDGE,
    ROW,
    SHARPNESS,
    THRESHOLD,
    Schedule,
    reference_sharpness,
)
from .step.robust import StepEquations
from .tolerances import exponent_of

if TYPE_CHECKING:
    from .trajectory import Trajectory


class StepInputs:
    """Inputs of the steps of a problem with a recipe.

    Attributes:
        space: the coordinates of the weights.
        sets: the clusters of steps 0..T.
        distinct: the distinct ones among these and the test clusters.
        schedule: the inputs of the steps apart from the weights, arrays over the steps.
        length: half the distance of the labelled class means, the unit of the thresholds.
        work: buffers for the evaluations of compiled steps.
        samples: the distinct clusters, stacked for `step.march`; None if it cannot solve these
            steps.
        scales: the mean variance of a feature in every group, a row for every step.
    """

    def __init__(self, problem: Problem, recipe: Recipe):
        self.problem, self.recipe = problem, recipe
        self.test, self.sets = problem.test_clusters, problem.sample_clusters
        self.distinct, self.length = problem.distinct_clusters, self.sets[0].length
        self.space = space_of(self.distinct)
        self.work = work_for(self.space.groups)
        self.schedule = self._schedule()
        self.samples, self.scales = self._sets_of_samples()

    def _schedule(self) -> Schedule:
        """Return the inputs of every step as arrays."""
        problem, recipe = self.problem, self.recipe
        values, batches, size = recipe.at_steps(problem.steps), problem.unlabeled, problem.steps + 1
        numbers, kinds = np.empty((size, 3)), np.empty((size, 3), dtype=np.int64)
        numbers[0] = 0.0, math.inf, recipe.lambda_l
        numbers[1:, THRESHOLD], numbers[1:, RIDGE] = values.threshold, values.lambda_u
        labeler, losses = recipe.label_function, [problem.loss_at(t) for t in (0, 1)]
        hard, wrong = isinstance(labeler, HardLabels), problem.wrong_labels
        numbers[1:, SHARPNESS] = math.inf if hard else values.sharpness
        rho = np.append(problem.rho, batches.rho)
        alpha = np.append(problem.alpha_l, batches.alpha)
        groups = np.empty((size, 2, self.space.groups))
        groups[:, 0, 0], groups[:, 1, 0] = alpha, rho
        if self.space.groups == 2:
            groups[:, 0, 0], groups[:, 0, 1] = alpha * (1.0 - rho), alpha * rho
            groups[:, 1] = 0.0, 1.0
        balanced = rho == 0.5
        if balanced.any():
            balanced &= treats_classes_alike(problem, recipe) & own_mirrors(self.sets)
        kinds[0, LOSS], kinds[1:, LOSS] = (kind_of(loss, labeler) for loss in losses)
        kinds[:, ROW] = 0
        if len(self.distinct) > 1:
            kinds[:, ROW] = [self.distinct.index(one) for one in self.sets]
        kinds[:, BALANCED] = balanced
        return Schedule(numbers, kinds, groups, wrong, self.length)

    @property
    def balanced(self) -> Array:
        """For every step, whether a bias of zero remains zero, by symmetry of the classes."""
        return np.asarray(self.schedule.kinds[:, BALANCED])

    def _sets_of_samples(self) -> tuple[Noise | None, Array]:
        """Return the attributes `samples` and `scales`."""
        rows, groups = [], self.space.groups
        for clusters in self.distinct:
            found = [mean_variance(s, clusters.features) for s in clusters.covariances]
            rows.append(found if len(found) == groups else found * groups)
        scales = np.asarray(np.array(rows)[self.schedule.kinds[:, ROW]])
        if OTHER in self.schedule.kinds[:2, LOSS] or not isinstance(self.space, Spectrum):
            return None, scales
        noises = [self.space.noise(clusters) for clusters in self.distinct]
        means, variances = (np.array(parts) for parts in list(zip(*noises, strict=True))[:2])
        return Noise(means, variances, *noises[0][2:]), scales

    def equations(self, t: int, old: Any, bias: float) -> StepEquations:
        """Return the equations of step t, given the weights `old` and the bias of step t - 1."""
        plan, clusters, limit, softness = self.schedule, self.sets[t], 0.0, self.scales[t]
        threshold, sharpness, ridge = (float(value) for value in plan.numbers[t])
        kind = int(plan.kinds[t, LOSS])
        labels = Labelling(0.0, np.ones(self.space.groups), 0.0, 0.0)
        if t > 0:
            m, *squares = self.space.projections(old, clusters)
            square = float(old.mean @ old.mean + self.space.trace(old.variance))
            limit = threshold * math.sqrt(square) * self.length
            softness = np.array(squares) / square
            gamma = float(reference_sharpness(kind, sharpness))
            labels = Labelling(float(m), np.sqrt(np.array(squares)), bias, gamma)
        batch = Batch(plan.groups[t], limit, sharpness, t == 0, kind, plan.wrong)
        loss, labeler = self.problem.loss_at(t), self.recipe.label_function
        averages = averages_of(t, loss, labeler, labels, batch, self.work.room)
        algebra = self.space.step(old, clusters)
        return StepEquations(t, algebra, averages, ridge, self.recipe.fix_bias, softness)


def train_loss(trajectory: Trajectory, steps: NDArray[np.int64]) -> Array:
    r"""Return $E[l(\hat y, h + \hat u)]$ over the selected training samples of some steps, at the
    minimum; NaN where a step has no solution.
    """
    inputs = StepInputs(trajectory.problem, trajectory.recipe)
    losses, exponent = np.full(len(steps), math.nan), exponent_of(trajectory.stats.tolerance)
    for i, t in enumerate(steps.tolist()):
        if t < trajectory.good_steps:
            equations = inputs.equations(t, *trajectory.model_before(t))
            losses[i] = equations.mean_loss(trajectory.unknowns[t], exponent)
    if trajectory.fading is None:
        return losses
    # The loss of small weights exceeds that of zero weights by a term quadratic in the weights.
    loss, nothing = trajectory.problem.loss_at(1), np.zeros(1)
    least = float(loss.value(loss.link(nothing), nothing)[0])
    faded = trajectory.fading.exponents[steps]
    return np.where(faded > 0, least + np.ldexp(losses - least, -2 * faded), losses)
