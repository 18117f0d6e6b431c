r"""Which problems are their own mirror images: then balanced classes have a bias of zero.

A problem with balanced classes, whose losses and labels treat the classes alike, does not change
under $s \to -s$ and with it every logit and the bias. Its bias is then zero, and so is every
derivative of what the mirror leaves alone in what it turns around. Averages give neither as an
exact zero: the rounding that is left is removed, for weights that shrink magnify it from step to
step.

The mirror $(x, s) \to (-x, -s)$ keeps the mean $\mu$ and exchanges the covariances of the two
classes. Weights see the same problem if an orthogonal map brings it back: one that keeps $\mu$ and
exchanges the covariances, of all sets of samples at once. The law of the weights is then unchanged
by that map, step by step, and a bias of zero remains zero. With one covariance, or two equal ones,
the identity is such a map. With diagonal ones, it can exchange modes.
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
"""By this much, relative to the largest, means of modes of several features may differ: each is the
root of a sum.
"""


def own_mirrors(sets: Sequence[Clusters]) -> NDArray[np.bool_]:
    """Return whether the sets of samples of all steps up to t are their own mirror images, for
    every t.
    """
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
    """Return whether the two classes have one covariance."""
    first, *other = (
        matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, clusters.features))
        for matrix in clusters.covariances
    )
    return all(np.array_equal(first, matrix) for matrix in other)


def _without_sign(means: Array) -> Array:
    """Return the means of the modes (columns) in all sets, each mode with the sign that makes its
    first nonzero mean positive.
    """
    first = means[np.argmax(means != 0.0, axis=0), np.arange(means.shape[1])]
    return means * np.where(first < 0.0, -1.0, 1.0)


def _in_order(columns: Array) -> Array:
    """Return the columns in lexicographic order."""
    return np.asarray(columns[:, np.lexsort(columns[::-1])])


def treats_classes_alike(problem: Problem, recipe: Recipe) -> bool:
    """Return whether losses and labels are the same in the mirror."""
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
