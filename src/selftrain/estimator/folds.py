"""The start: a supervised fit on the labelled samples, its ridge chosen by cross-validation.

Folds depend on the content of a sample, not on its position: a sample that is given twice counts as
one sample of weight two. So it is never in the training and in the test fold at once, and a weight
means the same as repetition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .blocks import Stacked
from .logistic import Student, Targets, fit_student, minimise

FOLDS = 5
RIDGES = tuple(10.0 ** np.arange(-1.0, 3.1, 0.5))
"""Ridges that are tried, for coordinates of mean squared length 1: the weakest is almost none; with
the strongest, the coefficients almost point along the difference of the class means."""

PATIENCE = 2
"""Number of worse ridges in a row after which the search ends; the weaker ones left cost most."""

TRIAL_TOLERANCE = 1e-2
"""Tolerance of the fits that compare ridges. Loose, because Newton's method converges
quadratically: the error after the last step is of the order of its square."""

FALLBACK_RIDGE = 10.0
"""Typical ridge, used if a class has only one labelled sample, which cannot be held out."""


class Labeled(NamedTuple):
    """Distinct labelled samples of a two-class problem: classes are 0 or 1, folds count from 0."""

    coordinates: Array
    classes: Array
    weights: Array
    folds: Array


class Start(NamedTuple):
    """A supervised fit, the out-of-fold scores of its samples, and its ridge."""

    student: Student
    out_of_fold: Array
    ridge: float


def assign_folds(coordinates: Array, classes: Array, random: np.random.RandomState) -> Array:
    """Return the fold of every sample, stratified by class.

    The samples of a class are assigned to the folds in turn, in the order of their projections on a
    random direction: this order depends on their content, not on their position. The largest class
    comes first, of equal ones that with the lowest projection: names of classes do not matter.
    """
    order = coordinates @ random.standard_normal(coordinates.shape[1])
    members = [np.flatnonzero(classes == label) for label in np.unique(classes)]
    ranked = [own[np.lexsort((own, order[own]))] for own in members]
    ranked.sort(key=lambda own: (-len(own), order[own[0]]))
    folds = np.zeros(len(classes), dtype=int)
    folds[np.concatenate(ranked)] = np.arange(len(classes)) % FOLDS
    return folds


def balanced_targets(classes: Array, weights: Array) -> Targets:
    """Return mass and pull (`logistic.py`) of labelled samples, the same total for both classes."""
    total = float(weights.sum())
    positive = float(weights @ classes)
    per_class = np.where(classes == 1, 0.5 * total / positive, 0.5 * total / (total - positive))
    mass = weights * per_class
    return Targets(mass, mass * classes)


def supervised_start(labeled: Labeled, metric: Array) -> Start:
    """Fit class-balanced ridge logistic regression; choose the ridge by out-of-fold log loss.

    The minimiser lies in the span of the labelled samples; if there are fewer samples than
    directions, the fit is done in that span. `metric` has the squared lengths of the axes.
    """
    lengths = np.sqrt(metric)
    rows = labeled.coordinates * lengths
    if rows.shape[1] <= rows.shape[0]:
        return _in_user_metric(_start(labeled._replace(coordinates=rows)), np.diag(lengths))
    span, inside = np.linalg.qr(rows.T)
    start = _start(labeled._replace(coordinates=inside.T))
    return _in_user_metric(start, lengths[:, None] * span)


def _in_user_metric(start: Start, back: Array) -> Start:
    """Return a start with coefficients for the samples X, from those fitted to `X @ back`."""
    student = start.student
    return start._replace(student=student._replace(coefficients=back @ student.coefficients))


def _start(labeled: Labeled) -> Start:
    """Fit in coordinates in which the penalty is the squared norm of the coefficients.

    Folds without which a class would be missing are not held out; their samples get the
    leave-one-out scores of the last fit.
    """
    if np.min(np.bincount(labeled.classes.astype(int), minlength=2)) < 2:
        student = _fit(labeled, FALLBACK_RIDGE)
        return Start(student, student.held_out, FALLBACK_RIDGE)
    folds = np.unique(labeled.folds)
    used = [k for k in folds if len(np.unique(labeled.classes[labeled.folds != k])) == 2]
    checked = np.isin(labeled.folds, used)
    best, scores = _best_ridge(labeled, used, checked)
    student = _fit(labeled, best)
    return Start(student, np.where(checked, scores, student.held_out), best)


def _best_ridge(
    labeled: Labeled, used: list[int], checked: NDArray[np.bool_]
) -> tuple[float, Array]:
    """Return the ridge with the smallest balanced out-of-fold log loss, and its scores.

    Ridges are tried from the strongest down, each fit starting from the extrapolation of the two
    before, until `PATIENCE` in a row have not improved the loss.

    Arguments:
        used: folds that are held out.
        checked: whether a sample is in one of them.
    """
    mass, pull = balanced_targets(labeled.classes, labeled.weights)
    size = labeled.coordinates.shape[1]
    starts: dict[int, Array] = {}
    points: dict[int, Array] = {}
    best, least, kept, worse = RIDGES[-1], np.inf, np.zeros(len(labeled.classes)), 0
    for ridge in reversed(RIDGES):
        scores = np.zeros(len(labeled.classes))
        for fold in used:
            inside = labeled.folds != fold
            rows, *known = (values[inside] for values in labeled[:3])
            targets, penalty = balanced_targets(*known), np.full(size, ridge)
            start = starts.get(fold)
            point = minimise(Stacked(rows), targets, penalty, start, TRIAL_TOLERANCE).point
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


def _fit(labeled: Labeled, ridge: float) -> Student:
    targets = balanced_targets(labeled.classes, labeled.weights)
    penalty = np.full(labeled.coordinates.shape[1], ridge)
    return fit_student(Stacked(labeled.coordinates), targets, penalty)


def held_out_likelihood(labeled: Labeled, fit: Callable[[Labeled], tuple[Array, float]]) -> float:
    """Return the log-likelihood of the labelled classes, each under a fit without its fold.

    Holding a sample out of the last fit alone is not enough if there are many directions: the soft
    labels of the other samples already depend on its class, so that even a useless model seems to
    separate the classes. `fit` is therefore the whole self-training.

    Arguments:
        fit: function from labelled samples to coefficients and intercept of the population
            log-odds.
    """
    total = 0.0
    for fold in np.unique(labeled.folds):
        outside = labeled.folds == fold
        remaining = Labeled(*(values[~outside] for values in labeled))
        if len(np.unique(remaining.classes)) < 2:
            continue
        coefficients, intercept = fit(remaining)
        odds = labeled.coordinates[outside] @ coefficients + intercept
        losses = np.logaddexp(0.0, odds) - labeled.classes[outside] * odds
        total -= float(labeled.weights[outside] @ losses)
    return total
