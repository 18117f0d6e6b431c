"""The same fits on Gaussian rows of the data's own shape and sizes.

What it shows and the theory does not: the classifier as it runs, at these few rows. What it
cannot show: everything in which real rows differ from Gaussian clusters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ..anchored import Unlabeled
from ..folds import FALLBACK_RIDGE, assign_folds, balanced_targets
from ..logistic import Coordinates, RowTargets, fit_student
from ..prepared import Prepared
from ..rows import StoredRows
from ..setting import Setting
from .evidence import Rule, fit_rivals
from .shape import Shape


def surrogate_errors(
    prepared: Prepared, shape: Shape, setting: Setting, random: np.random.RandomState
) -> Array:
    """Balanced errors of labels only, of self-training and of every label, on one draw of rows."""
    drawn, hidden = _drawn(prepared, shape, random)
    fits = fit_rivals(drawn, setting)
    rules = (fits.supervised, fits.trained, _every_label(drawn, hidden))
    return np.array([balanced_error(shape, rule) for rule in rules])


def balanced_error(shape: Shape, rule: Rule) -> float:
    """Mean of the two class errors of a rule on the clusters, exactly."""
    clusters = shape.clusters
    spread = float(np.sqrt(rule.weights @ clusters.covariance @ rule.weights))
    reach = float(clusters.mean @ rule.weights)
    return float(0.5 * (ndtr(-(reach + rule.bias) / spread) + ndtr(-(reach - rule.bias) / spread)))


def _drawn(
    prepared: Prepared, shape: Shape, random: np.random.RandomState
) -> tuple[Prepared, Array]:
    """Rows in place of the real ones, with the same labelled classes; the classes of the others."""
    codes = prepared.codes
    rows = prepared.unlabeled.coordinates.shape[0]
    hidden = (random.random_sample(rows) < shape.share).astype(float)
    labeled, others = (_rows(shape, classes, random) for classes in (codes, hidden))
    drawn = replace(
        prepared,
        labeled=labeled,
        weights=np.ones(len(codes)),
        folds=assign_folds(labeled, codes, random),
        unlabeled=Unlabeled(StoredRows(others), np.ones(len(others))),
    )
    return drawn, hidden


def _rows(shape: Shape, classes: Array, random: np.random.RandomState) -> Array:
    variances, directions = np.linalg.eigh(shape.clusters.covariance)
    noise = random.standard_normal((len(classes), len(variances)))
    spread = (noise * np.sqrt(np.maximum(variances, 0.0))) @ directions.T
    return np.asarray(spread + (2 * classes - 1)[:, None] * shape.clusters.mean)


def _every_label(drawn: Prepared, hidden: Array) -> Rule:
    """The balanced fit to all rows with their true classes; with so many a ridge hardly matters."""
    rows = np.concatenate([drawn.labeled, drawn.unlabeled.coordinates.take(slice(None))])
    mass, pull = balanced_targets(
        np.concatenate([drawn.codes, hidden]).astype(float), np.ones(len(rows))
    )
    none = np.zeros(0)
    table = Coordinates(rows, StoredRows(np.zeros((0, rows.shape[1]))))
    penalty = FALLBACK_RIDGE / drawn.basis.weights(0.0)
    student = fit_student(table, RowTargets(mass, pull, none, none), penalty)
    return Rule(student.coefficients, student.bias)
