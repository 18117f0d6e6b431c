r"""Prediction of the theory: the large-system limit for the class means and covariance of the data.

A balanced fit to $n_+$ and $n_-$ samples has the noise of $4 n_+ n_-/n$ samples of balanced
classes, which is what the problem of a supervised fit has. Self-training is that of the paper: a
supervised step, then steps on fresh parts of the unlabelled samples.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import ndtr

from ...errors import StageError
from ...problem import Problem
from ...recipe import Recipe
from ...theory.solve import solve
from ..folds import RIDGES
from .shape import Shape

STEPS = 6
"""Parts of the unlabelled samples."""

RIDGES_PER_ROW = (0.003, 0.03, 0.3)
"""Ridges of the later steps, per sample and per mean variance of a direction."""


def balanced_rows(rows: float, share: float) -> float:
    """Return the number of balanced samples with the same noise in the difference of means."""
    return 4 * share * (1 - share) * rows


def supervised_error(shape: Shape, rows: float, ridge: float | None) -> float:
    """Return the balanced error of a fit to so many balanced samples; None: at the best ridge."""
    if ridge is None:
        return min(supervised_error(shape, rows, each) for each in RIDGES)
    clusters = shape.clusters
    size = clusters.features
    problem = Problem(alpha_l=rows / size, alpha_u=1.0, rho=0.5, clusters=clusters, steps=0)
    recipe = Recipe(lambda_l=_lambda(shape, ridge))
    return float(solve(problem, recipe).class_errors[0].mean())


def _lambda(shape: Shape, ridge: float) -> float:
    """Return the ridge of `supervised_start` in the units of the theory."""
    return ridge * _variance(shape) / shape.clusters.features


def _variance(shape: Shape) -> float:
    """Return the mean variance of a direction."""
    spectrum, mean = shape.clusters.spectrum
    share = shape.share
    return float((spectrum.sum() + 4 * share * (1 - share) * (mean @ mean)) / spectrum.size)


def trained_error(shape: Shape, labeled: int, unlabeled: int, recipe: Recipe) -> float:
    """Return the balanced error of the paper's self-training, its threshold between the classes."""
    clusters = shape.clusters
    problem = Problem(
        alpha_l=labeled / clusters.features,
        alpha_u=unlabeled / STEPS / clusters.features,
        rho=shape.share,
        clusters=clusters,
        steps=STEPS,
    )
    run = solve(problem, recipe)
    if run.collapsed_at is not None:
        return 0.5
    return float(ndtr(-run.m[-1] / np.sqrt(run.logit_variances[-1])).mean())


def best_recipe(shape: Shape, labeled: int, unlabeled: int, ridge: float) -> tuple[Recipe, float]:
    """Return the recipe of the smallest predicted error, and that error.

    The first ridge is the one that cross-validation chose: the theory alone would choose strong
    ridges, where real samples depart from it.
    """
    rows = unlabeled / STEPS / shape.clusters.features
    solved = []
    failure: StageError | None = None
    for annealing, each in product((0.0, 0.2), RIDGES_PER_ROW):
        later = each * rows * _variance(shape)
        recipe = Recipe(_lambda(shape, ridge), later, annealing=annealing, fix_bias=True)
        try:
            solved.append((trained_error(shape, labeled, unlabeled, recipe), recipe))
        except StageError as stopped:
            failure = stopped
    if not solved:
        assert failure is not None
        raise failure
    error, recipe = min(solved, key=lambda pair: pair[0])
    return recipe, error
