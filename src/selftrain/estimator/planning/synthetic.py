"""The same fits on synthetic Gaussian data with the covariance and sizes of the real samples.

Unlike the theory, it shows the classifier as it runs, with so few samples. It cannot show how real
samples differ from Gaussian clusters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ..anchored import Unlabeled
from ..blocks import StoredRows
from ..folds import FALLBACK_RIDGE, assign_folds, balanced_problem
from ..logistic import fit_student
from ..prepared import Prepared
from ..settings import Constants
from .evidence import Rule, fit_both
from .shape import Shape


def synthetic_errors(
    prepared: Prepared, shape: Shape, constants: Constants, random: np.random.RandomState
) -> Array:
    """Return balanced errors of supervised, self-trained and fully supervised fit on one draw."""
    drawn, hidden = _drawn(prepared, shape, random)
    fits = fit_both(drawn, constants)
    rules = (fits.supervised, fits.trained, _fully_supervised(drawn, hidden))
    return np.array([balanced_error(shape, rule) for rule in rules])


def balanced_error(shape: Shape, rule: Rule) -> float:
    """Return the mean of the two class errors of a rule on the clusters, exactly."""
    clusters = shape.clusters
    spread = float(np.sqrt(rule.weights @ clusters.covariance @ rule.weights))
    reach = float(clusters.mean @ rule.weights)
    return float(0.5 * (ndtr(-(reach + rule.bias) / spread) + ndtr(-(reach - rule.bias) / spread)))


def _drawn(
    prepared: Prepared, shape: Shape, random: np.random.RandomState
) -> tuple[Prepared, Array]:
    """Draw samples with the same labelled classes; return them and the classes of the others."""
    codes = prepared.codes
    rows = prepared.unlabeled.coordinates.shape[0]
    hidden = (random.random_sample(rows) < shape.share).astype(float)
    labeled, others = (_samples(shape, classes, random) for classes in (codes, hidden))
    drawn = replace(
        prepared,
        labeled=labeled,
        weights=np.ones(len(codes)),
        folds=assign_folds(labeled, codes, random),
        unlabeled=Unlabeled(StoredRows(others), np.ones(len(others))),
    )
    return drawn, hidden


def _samples(shape: Shape, classes: Array, random: np.random.RandomState) -> Array:
    variances, directions = np.linalg.eigh(shape.clusters.covariance)
    noise = random.standard_normal((len(classes), len(variances)))
    spread = (noise * np.sqrt(np.maximum(variances, 0.0))) @ directions.T
    return np.asarray(spread + (2 * classes - 1)[:, None] * shape.clusters.mean)


def _fully_supervised(drawn: Prepared, hidden: Array) -> Rule:
    """Fit all samples with their true classes; with so many the ridge hardly matters."""
    rows = np.concatenate([drawn.labeled, drawn.unlabeled.coordinates.take(slice(None))])
    classes = np.concatenate([drawn.codes, hidden]).astype(float)
    penalty = FALLBACK_RIDGE / drawn.basis.weights(0.0)
    student = fit_student(*balanced_problem(rows, classes, np.ones(len(rows))), penalty)
    return Rule(student.coefficients, student.bias)
