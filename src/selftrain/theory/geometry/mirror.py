r"""Mirror symmetry of the classes: which problems have a bias that is exactly zero.

A problem with balanced classes, whose losses and labels treat the classes alike, is invariant when
the signs of s, of all logits and of the bias are reversed. Its bias is then zero, and so is every
derivative of an even quantity (unchanged by the mirror) in an odd one (which changes its sign).
Computed averages give these zeros only up to rounding errors, which shrinking weights would magnify
from step to step; so they are set to exact zeros.

The mirror $(x, s) \to (-x, -s)$ keeps the mean $\mu$ and exchanges the covariances of the two
classes. The problem is symmetric if an orthogonal map undoes this: a map that keeps $\mu$ and
exchanges the covariances, of all clusters at once. The law of the weights is then invariant under
that map in every step, and a bias of zero remains zero. With one covariance, or two equal ones, the
identity is such a map. With diagonal ones, it can be a permutation of modes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...labelers import Labeler
from ...losses import Loss
from ...mixture.clusters import Clusters
from ...problem import Problem
from ...recipe import Recipe
from .space import Spectrum

ROUNDING = 1e-14
"""Allowed difference of the means of two modes, relative to the largest: the mean of a mode with
several features is a rounded root of a sum of squares.
"""


def own_mirrors(sets: Sequence[Clusters]) -> NDArray[np.bool_]:
    """Return, for every t, whether the clusters of all steps up to t are mirror symmetric."""
    found = np.zeros(len(sets), dtype=bool)
    distinct: list[Clusters] = []
    for t, clusters in enumerate(sets):
        if clusters not in distinct:
            distinct.append(clusters)
            if not _own_mirror(distinct):
                break
        found[t] = True
    return found


def _own_mirror(sets: list[Clusters]) -> bool:
    if all(_alike(clusters) for clusters in sets):
        return True
    if not all(clusters.diagonal for clusters in sets):
        return False
    spectrum = Spectrum(sets)
    noises = [spectrum.noise(clusters) for clusters in sets]
    negative, positive = np.stack([noise.variances for noise in noises], axis=1)
    means = _without_sign(np.array([noise.mean for noise in noises]))
    ours, theirs = (
        _in_order(np.vstack([*classes, noises[0].copies, means]))
        for classes in ((negative, positive), (positive, negative))
    )
    rest, largest = -len(means), np.abs(means).max()
    same = np.array_equal(ours[:rest], theirs[:rest])
    return same and bool(np.abs(ours[rest:] - theirs[rest:]).max() <= ROUNDING * largest)


def _alike(clusters: Clusters) -> bool:
    """Return whether the two classes have the same covariance."""
    first, *other = (
        matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, clusters.features))
        for matrix in clusters.covariances
    )
    return all(np.array_equal(first, matrix) for matrix in other)


def _without_sign(means: Array) -> Array:
    """Return means of modes (columns) in all clusters (rows), with the sign of each column chosen
    so that its first nonzero entry is positive.
    """
    first = means[np.argmax(means != 0.0, axis=0), np.arange(means.shape[1])]
    return means * np.where(first < 0.0, -1.0, 1.0)


def _in_order(columns: Array) -> Array:
    """Return the columns in lexicographic order."""
    return np.asarray(columns[:, np.lexsort(columns[::-1])])


def treats_classes_alike(problem: Problem, recipe: Recipe) -> bool:
    """Return whether losses and labels are invariant under the mirror."""
    negative, positive = problem.wrong_labels
    if negative != positive:
        return False
    sharpness = np.unique(recipe.at_steps(problem.steps).sharpness)
    losses = (problem.loss_at(t) for t in (0, 1))
    return all(_loss_alike(loss, recipe.label_function, sharpness) for loss in losses)


def _loss_alike(loss: Loss, labeler: Labeler, sharpness: Array) -> bool:
    ends = sum(loss.classes)
    logits = np.geomspace(1e-3, 30.0, 25)
    targets = np.linspace(*loss.classes, 5)[:, None]
    slopes = loss.slope(targets, logits), -loss.slope(ends - targets, -logits)
    labels = [
        (labeler.target(logits, value, loss), ends - labeler.target(-logits, value, loss))
        for value in sharpness
    ]
    return all(np.allclose(*pair, rtol=1e-12, atol=1e-14) for pair in (slopes, *labels))
