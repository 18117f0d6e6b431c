"""The supervised fit to all samples of a problem, as if all were labelled."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from ..batches import new_samples
from ..errors import InvalidInput
from ..labelers import SoftLabels
from ..mixture.clusters import Clusters
from ..observables import one_minus_cosine
from ..problem import Problem
from ..recipe import Recipe
from .averages.batch import Batch, Labelling, kind_of, room_for
from .averages.generic.averages import averages_of
from .exact import solve_exact
from .geometry.mirror import own_mirrors, treats_classes_alike
from .geometry.modes import BIAS
from .geometry.space import mean_variance, space_of, threads_of
from .step.robust import StepEquations, solve_step
from .tolerances import TOLERANCE, confirmable, exponent_of


class SupervisedModel(NamedTuple):
    """Error and cosine of a supervised fit on the test mixture."""

    error: float
    cosine: float


def supervised_model(
    problem: Problem, ridge: float, tolerance: float = TOLERANCE
) -> SupervisedModel:
    """Fit all samples of a problem, as if all had labels with the label noise of the labelled ones.

    Under domain shift every batch has its own proportions and covariance; the class means must be
    the same.
    """
    sets, test = problem.sample_clusters, problem.test_clusters
    if any(not np.array_equal(one.mean, sets[0].mean) for one in set(sets)):
        accepted = "must have the class means of clusters: all samples enter one fit"
        raise InvalidInput("clusters_u", problem.clusters_u, accepted)
    alpha = np.append(problem.alpha_l, new_samples(problem))
    rho = np.append(problem.rho, problem.unlabeled.rho)
    if len(set(sets)) == 1:
        share = float(rho[0] if np.all(rho == rho[0]) else alpha @ rho / alpha.sum())
        alone = problem.labeled_alone().replace(
            alpha_l=float(alpha.sum()), rho=share, test=problem.test_pair
        )
        run = solve_exact(alone, Recipe(lambda_l=ridge), tolerance)
        return SupervisedModel(float(run.error[0]), float(run.cosine[0]))
    # A group is the samples of one class with one covariance, or of both classes if they share it.
    groups: dict[tuple[Clusters, int], list[float]] = {}
    for one, a, r in zip(sets, alpha, rho, strict=True):
        parts = [(0, a * (1 - r), 0.0), (1, a * r, a * r)] if one.pair else [(0, a, a * r)]
        for k, count, positive in parts:
            total = groups.setdefault((one, k), [0.0, 0.0])
            total[0] += count
            total[1] += positive
    weights, positives = np.array(list(groups.values())).T
    space = space_of([*dict.fromkeys([*sets, test])])
    algebra = space.supervised([*groups])
    loss, labeler = problem.loss_at(0), SoftLabels()
    labels = Labelling(0.0, np.ones(weights.size), 0.0, 0.0)
    groups_of = np.array([weights, positives / weights])
    kind, wrong = kind_of(loss, labeler), problem.wrong_labels
    batch = Batch(groups_of, 0.0, math.inf, True, kind, wrong)
    averages = averages_of(0, loss, labeler, labels, batch, room_for(weights.size))
    softness = [mean_variance(one.covariances[k], one.features) for one, k in groups]
    equations = StepEquations(0, algebra, averages, ridge, False, np.array(softness))
    with threads_of(space):
        solution = solve_step(equations, exponent_of(tolerance), confirmable(tolerance))
        law: Any
        law, _ = algebra.advance(solution.x, ridge, 0.0)
    m, *squares = space.projections(law, test)
    balanced = bool(np.all(rho == 0.5)) and own_mirrors(sets)[-1]
    alone = problem.labeled_alone()
    bias = 0.0 if balanced and treats_classes_alike(alone, Recipe()) else float(solution.x[BIAS])
    negative, positive = math.sqrt(squares[0]), math.sqrt(squares[-1])
    share = problem.test_mixture.rho
    error = share * ndtr(-(m + bias) / positive) + (1 - share) * ndtr(-(m - bias) / negative)
    off = space.observed(law.mean[None], law.variance[None], test)[2]
    along = np.array([m / test.separation])
    return SupervisedModel(float(error), 1.0 - float(one_minus_cosine(along, off)[0]))
