r"""What the theory says of these sizes: the large-system limit for clusters of the data's own
shape.

A fit with balanced weights to $n_+$ and $n_-$ rows has the noise of $4 n_+ n_-/n$ rows of balanced
classes, and that is what the problem of a supervised fit is given. Self-training is that of the
paper: a supervised step, then steps on fresh parts of the unlabelled rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from ...errors import StageError
from ...problem import Problem
from ...recipe import Recipe
from ...theory.solve import solve
from ..folds import RIDGES
from .shape import Shape

STEPS = 6
"""Parts of the unlabelled rows."""

RIDGES_PER_ROW = (0.003, 0.03, 0.3)
"""Ridges of the later steps, per row and per mean variance of a direction."""


def balanced_rows(rows: float, share: float) -> float:
    """Rows of balanced classes with the same noise in the difference of the means."""
    return 4 * share * (1 - share) * rows


def supervised_error(shape: Shape, rows: float, ridge: float | None) -> float:
    """Balanced error of the fit to so many balanced rows; at the best ridge of the fit's own list
    if None.
    """
    if ridge is None:
        return min(supervised_error(shape, rows, each) for each in RIDGES)
    clusters = shape.clusters
    size = clusters.features
    problem = Problem(alpha_l=rows / size, alpha_u=1.0, rho=0.5, clusters=clusters, steps=0)
    recipe = Recipe(lambda_l=_lambda(shape, ridge))
    return float(solve(problem, recipe).class_errors[0].mean())


def _lambda(shape: Shape, ridge: float) -> float:
    """The ridge of `supervised_start` in the units of the theory."""
    return ridge * _variance(shape) / shape.clusters.features


def _variance(shape: Shape) -> float:
    spectrum, mean = shape.clusters.spectrum
    share = shape.share
    return float((spectrum.sum() + 4 * share * (1 - share) * (mean @ mean)) / spectrum.size)


def trained_error(shape: Shape, labeled: int, unlabeled: int, recipe: Recipe) -> float:
    """Balanced error of the paper's self-training, thresholds between the classes."""
    run = solve(_problem(shape, labeled, unlabeled), recipe)
    if run.collapsed_at is not None:
        return 0.5
    return float(ndtr(-run.m[-1] / np.sqrt(run.logit_variances[-1])).mean())


def _problem(shape: Shape, labeled: int, unlabeled: int) -> Problem:
    size = shape.clusters.features
    return Problem(
        alpha_l=labeled / size,
        alpha_u=unlabeled / STEPS / size,
        rho=shape.share,
        clusters=shape.clusters,
        steps=STEPS,
    )


def best_recipe(shape: Shape, labeled: int, unlabeled: int, ridge: float) -> tuple[Recipe, float]:
    """The recipe of the smallest predicted error, and that error.

    The first ridge is the one that left-out rows chose: a prediction that is free to choose it runs
    to strong ridges, where real rows depart from the theory.
    """
    solved = []
    failure: StageError | None = None
    for recipe in _recipes(shape, unlabeled, ridge):
        try:
            solved.append((trained_error(shape, labeled, unlabeled, recipe), recipe))
        except StageError as stopped:
            failure = stopped
    if not solved:
        assert failure is not None
        raise failure
    error, recipe = min(solved, key=lambda pair: pair[0])
    return recipe, error


def _recipes(shape: Shape, unlabeled: int, ridge: float) -> Iterator[Recipe]:
    rows = unlabeled / STEPS / shape.clusters.features
    for annealing in (0.0, 0.2):
        for each in RIDGES_PER_ROW:
            yield Recipe(
                lambda_l=_lambda(shape, ridge),
                lambda_u=each * rows * _variance(shape),
                annealing=annealing,
                fix_bias=True,
            )
