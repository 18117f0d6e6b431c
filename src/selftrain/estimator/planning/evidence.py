"""Cross-validation: each labelled sample is judged by models that were fitted without it.

Two fits are compared in the same coordinates: the balanced supervised baseline on the labelled
samples, and anchored self-training as the classifier runs it. Both use the same folds, so their
mistakes are compared sample by sample. A held-out sample joins the unlabelled ones, as if nobody
had labelled it. How often the fits disagree is counted on the many unlabelled samples; only who is
right needs labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ..anchored import Share, Unlabeled
from ..blocks import StoredRows
from ..folds import assign_folds, supervised_start
from ..prepared import Prepared
from ..preprocessing import Basis, Scaling
from ..settings import Constants
from ..training import Candidate, train

Places = NDArray[np.intp]

FOLDS = 10
"""Folds of the labelled samples: each fit uses nine tenths of them."""

SLOPE_SPREAD, TOLERANCE = 0.3, 1e-4
"""Defaults of the classifier."""


class Scores(NamedTuple):
    """Scores of some samples from both fits; the predicted class is positive above zero."""

    supervised: Array
    trained: Array


class Rule(NamedTuple):
    """A linear rule that decides at even odds of the classes: positive above zero."""

    weights: Array
    bias: float

    def scores(self, rows: Array) -> Array:
        """Return the scores of samples in the same coordinates."""
        return np.asarray(rows @ self.weights + self.bias)


class Fits(NamedTuple):
    """Both rules, the class proportion found by self-training, the ridge of the supervised fit."""

    supervised: Rule
    trained: Rule
    share: float
    ridge: float

    def scores(self, rows: Array) -> Scores:
        """Return the scores of both rules."""
        return Scores(self.supervised.scores(rows), self.trained.scores(rows))


@dataclass(frozen=True)
class Evidence:
    """Held-out scores of labelled samples, and scores of unlabelled ones from the full fits.

    Attributes:
        classes, weights: of the distinct labelled samples, classes 0 or 1.
        held_out: their scores.
        unlabeled: scores of the other samples.
        share: proportion of the positive class, as self-training estimates it.
        ridge: of the supervised fit.
    """

    classes: Array
    weights: Array
    held_out: Scores
    unlabeled: Scores
    share: float
    ridge: float


def in_coordinates(prepared: Prepared) -> Prepared:
    """Return the same samples as a table whose columns are the principal directions."""
    size = prepared.basis.variances.size
    scaling = Scaling(np.zeros(size), np.ones(size), None)
    return replace(prepared, basis=Basis(scaling, np.eye(size), prepared.basis.variances))


def gather(
    prepared: Prepared,
    constants: Constants,
    random: np.random.RandomState,
    report: Callable[[], None] = lambda: None,
) -> Evidence:
    """Fit both to all labelled samples and without every fold; `report` is called after each."""
    others = prepared.unlabeled.coordinates.take(slice(None))
    fits = fit_both(prepared, constants)
    report()
    held_out = Scores(np.zeros(len(prepared.codes)), np.zeros(len(prepared.codes)))
    for outside in folds(prepared.codes, random):
        part = fit_both(without(prepared, others, outside, random), constants)
        scores = part.scores(prepared.labeled[outside])
        for all_scores, some in zip(held_out, scores, strict=True):
            all_scores[outside] = some
        report()
    classes, unlabeled = prepared.codes.astype(float), fits.scores(others)
    return Evidence(classes, prepared.weights, held_out, unlabeled, fits.share, fits.ridge)


def folds(codes: Array, random: np.random.RandomState) -> Iterator[Places]:
    """Yield the samples of each fold, at most `FOLDS` folds, stratified by class."""
    found = np.zeros(len(codes), dtype=int)
    offset = 0
    for label in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == label))
        found[members] = (np.arange(len(members)) + offset) % FOLDS
        offset += len(members)
    for fold in np.unique(found):
        yield np.flatnonzero(found == fold)


def without(
    prepared: Prepared, others: Array, outside: Places, random: np.random.RandomState
) -> Prepared:
    """Return the samples with some labels removed."""
    kept = np.setdiff1d(np.arange(len(prepared.codes)), outside)
    labeled, codes = prepared.labeled[kept], prepared.codes[kept]
    coordinates = np.concatenate([others, prepared.labeled[outside]])
    weights = np.concatenate([prepared.unlabeled.weights, prepared.weights[outside]])
    return replace(
        prepared,
        labeled=labeled,
        codes=codes,
        weights=prepared.weights[kept],
        folds=assign_folds(labeled, codes, random),
        unlabeled=Unlabeled(StoredRows(coordinates), weights),
    )


def fit_both(prepared: Prepared, constants: Constants) -> Fits:
    """Fit the supervised baseline and self-training."""
    neighbours = prepared.has_neighbours("auto")
    start = supervised_start(prepared.against_rest(1), prepared.basis.weights(0.0))
    own = Candidate(prepared, constants)
    fitted = train(own, 1, Share(), neighbours)
    supervised = Rule(start.student.coefficients, start.student.bias)
    trained = Rule(fitted.coefficients, fitted.intercept - fitted.even)
    return Fits(supervised, trained, fitted.share, start.ridge)
