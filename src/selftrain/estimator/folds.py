"""The start: a supervised fit on the labelled rows, its ridge chosen on rows it has not seen.

Folds depend on what a row contains, not on where it stands: a row that is given twice is one
row of weight two, so it never sits in the fit and in the check at once, and weights mean the
same as repetition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .logistic import Coordinates, RowTargets, Student, fit_student, minimise
from .rows import StoredRows

FOLDS = 5
RIDGES = tuple(10.0 ** np.arange(-1.0, 3.1, 0.5))
"""Relative to coordinates of mean squared length 1: from nearly none to nearly the mean
difference.
"""

PATIENCE = 2
"""Ridges in a row that do worse than the best before the search ends: weak ones cost most."""

TRIAL_TOLERANCE = 1e-2
"""Of a fit that is made to compare ridges; the last Newton step squares it."""

FALLBACK_RIDGE = 10.0
"""Where a class has a single labelled row nothing can be checked; the middle of what is chosen
elsewhere.
"""


class Labeled(NamedTuple):
    """Different labelled rows of a two-class problem: coordinates, classes 0 or 1, weights,
    folds.
    """

    coordinates: Array
    classes: Array
    weights: Array
    folds: Array


class Start(NamedTuple):
    """A supervised fit and the scores of its rows from folds without them."""

    student: Student
    out_of_fold: Array
    ridge: float


def assign_folds(coordinates: Array, classes: Array, random: np.random.RandomState) -> Array:
    """Folds with every class in each, dealt along a random direction within the class."""
    order = coordinates @ random.standard_normal(coordinates.shape[1])
    folds = np.zeros(len(classes), dtype=int)
    offset = 0
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        ranked = members[np.lexsort((members, order[members]))]
        folds[ranked] = (np.arange(len(ranked)) + offset) % FOLDS
        offset += len(ranked)
    return folds


def balanced_targets(classes: Array, weights: Array) -> tuple[Array, Array]:
    """Mass and pull of labelled rows, both classes with the same total."""
    total = float(weights.sum())
    positive = float(weights @ classes)
    per_class = np.where(classes == 1, 0.5 * total / positive, 0.5 * total / (total - positive))
    mass = weights * per_class
    return mass, mass * classes


def supervised_start(labeled: Labeled, metric: Array) -> Start:
    """Balanced ridge logistic regression, the ridge by balanced log loss out of fold.

    The minimiser lies in the span of the labelled rows; where these are fewer than the directions,
    the fits are made there.
    """
    lengths = np.sqrt(metric)
    rows = labeled.coordinates * lengths
    if rows.shape[1] <= rows.shape[0]:
        return _in_user_metric(_start(labeled._replace(coordinates=rows)), np.diag(lengths))
    span, inside = np.linalg.qr(rows.T)
    start = _start(labeled._replace(coordinates=inside.T))
    return _in_user_metric(start, lengths[:, None] * span)


def _in_user_metric(start: Start, back: Array) -> Start:
    """A start whose coefficients were found for rows times `back`."""
    student = start.student
    return start._replace(student=student._replace(coefficients=back @ student.coefficients))


def _start(labeled: Labeled) -> Start:
    """The same where a ridge is the plain squared length of the coefficients."""
    used = [fold for fold in np.unique(labeled.folds) if _trainable(labeled, labeled.folds != fold)]
    everything = np.ones(len(labeled.classes), dtype=bool)
    if not _checkable(labeled):
        student = _fit(labeled, everything, FALLBACK_RIDGE)
        return Start(student, student.held_out, FALLBACK_RIDGE)
    checked = np.isin(labeled.folds, used)
    best, scores = _best_ridge(labeled, used, checked)
    student = _fit(labeled, everything, best)
    return Start(student, np.where(checked, scores, student.held_out), best)


def _best_ridge(
    labeled: Labeled, used: list[int], checked: NDArray[np.bool_]
) -> tuple[float, Array]:
    """The ridge with the smallest balanced log loss out of fold, and the scores there.

    From the strongest ridge down, each fit beginning where the two before point to, until the loss
    has grown `PATIENCE` times in a row.
    """
    mass, pull = balanced_targets(labeled.classes, labeled.weights)
    starts: dict[int, Array] = {}
    points: dict[int, Array] = {}
    best, least, kept, worse = RIDGES[-1], np.inf, np.zeros(len(labeled.classes)), 0
    for ridge in reversed(RIDGES):
        scores = np.zeros(len(labeled.classes))
        for fold in used:
            inside = labeled.folds != fold
            start = starts.get(fold, np.zeros(labeled.coordinates.shape[1] + 1))
            begin = (start[:-1], float(start[-1]))
            problem = _problem(labeled, inside, ridge)
            point = minimise(*problem, begin, TRIAL_TOLERANCE).point
            starts[fold] = 2 * point - points.get(fold, point)
            points[fold] = point
            scores[~inside] = labeled.coordinates[~inside] @ point[:-1] + point[-1]
        loss = float((mass * np.logaddexp(0.0, scores) - pull * scores)[checked].sum())
        worse = 0 if loss < least else worse + 1
        if loss < least:
            best, least, kept = ridge, loss, scores
        if worse == PATIENCE:
            break
    return best, kept


def _checkable(labeled: Labeled) -> bool:
    return bool(np.min(np.bincount(labeled.classes.astype(int), minlength=2)) >= 2)


def _trainable(labeled: Labeled, inside: Array) -> bool:
    return len(np.unique(labeled.classes[inside])) == 2


def _fit(labeled: Labeled, inside: Array, ridge: float) -> Student:
    return fit_student(*_problem(labeled, inside, ridge))


def _problem(
    labeled: Labeled, inside: Array, ridge: float
) -> tuple[Coordinates, RowTargets, Array]:
    """Some labelled rows as a table, their balanced targets, and the penalty."""
    mass, pull = balanced_targets(labeled.classes[inside], labeled.weights[inside])
    none = np.zeros(0)
    coordinates = labeled.coordinates[inside]
    table = Coordinates(coordinates, StoredRows(np.zeros((0, coordinates.shape[1]))))
    return table, RowTargets(mass, pull, none, none), np.full(coordinates.shape[1], ridge)
