"""What the labelled rows say: each is judged by models that were fitted without it.

Two rivals are fitted in the same coordinates: the balanced supervised fit to labelled rows alone,
and anchored self-training as the classifier runs it. Both see the same folds, so their
mistakes are compared row by row. A row that is left out joins the unlabelled ones, as it would
had nobody labelled it. How often the rivals disagree is counted on the unlabelled rows, of
which there are many; only the question who is right needs labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ..anchored import Share, Unlabeled
from ..folds import assign_folds, supervised_start
from ..prepared import Prepared
from ..preprocessing import Basis, Scaling
from ..rows import StoredRows
from ..setting import Setting
from ..training import Candidate, train

Places = NDArray[np.intp]

FOLDS = 10
"""Fits without a part of the labelled rows: each keeps nine tenths of them."""

SLOPE_SPREAD, TOLERANCE = 0.3, 1e-4
"""Defaults of the classifier."""


@dataclass(frozen=True)
class Rivals:
    """Scores of some rows from both fits; a row is called positive above zero."""

    supervised: Array
    trained: Array


class Rule(NamedTuple):
    """A linear rule that decides at even odds of the classes: positive above zero."""

    weights: Array
    bias: float

    def scores(self, rows: Array) -> Array:
        """Of rows in the same coordinates."""
        return np.asarray(rows @ self.weights + self.bias)


class Fits(NamedTuple):
    """The supervised rule and the self-trained one, the share the latter found, the ridge of the
    former.
    """

    supervised: Rule
    trained: Rule
    share: float
    ridge: float

    def scores(self, rows: Array) -> Rivals:
        """Of both rules."""
        return Rivals(self.supervised.scores(rows), self.trained.scores(rows))


@dataclass(frozen=True)
class Evidence:
    """Scores of labelled rows from fits without them, and of unlabelled rows from the full fits.

    Attributes:
        classes, weights: of the different labelled rows, classes 0 or 1.
        held_out: their scores.
        unlabeled: scores of the other rows.
        share: of the positive class, as self-training estimates it.
        ridge: of the supervised fit.
    """

    classes: Array
    weights: Array
    held_out: Rivals
    unlabeled: Rivals
    share: float
    ridge: float


def in_coordinates(prepared: Prepared) -> Prepared:
    """The same rows as a table whose columns are the principal directions."""
    size = prepared.basis.variances.size
    scaling = Scaling(np.zeros(size), np.ones(size), None)
    plain = Basis(scaling, np.eye(size), prepared.basis.variances)
    return replace(prepared, basis=plain)


def gather(
    prepared: Prepared,
    setting: Setting,
    random: np.random.RandomState,
    report: Callable[[], None] = lambda: None,
) -> Evidence:
    """Fit both rivals to all labelled rows and to every fold; `report` is called after each."""
    others = prepared.unlabeled.coordinates.take(slice(None))
    fits = fit_rivals(prepared, setting)
    report()
    held_out = Rivals(np.zeros(len(prepared.codes)), np.zeros(len(prepared.codes)))
    for outside in left_out(prepared.codes, random):
        part = fit_rivals(without(prepared, others, outside, random), setting)
        scores = part.scores(prepared.labeled[outside])
        held_out.supervised[outside] = scores.supervised
        held_out.trained[outside] = scores.trained
        report()
    classes = prepared.codes.astype(float)
    return Evidence(
        classes, prepared.weights, held_out, fits.scores(others), fits.share, fits.ridge
    )


def left_out(codes: Array, random: np.random.RandomState) -> Iterator[Places]:
    """Rows of each fold, at most `FOLDS` folds; every class is dealt out evenly."""
    folds = np.zeros(len(codes), dtype=int)
    offset = 0
    for label in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == label))
        folds[members] = (np.arange(len(members)) + offset) % FOLDS
        offset += len(members)
    for fold in np.unique(folds):
        yield np.flatnonzero(folds == fold)


def without(
    prepared: Prepared, others: Array, outside: Places, random: np.random.RandomState
) -> Prepared:
    """The rows with some labels taken away."""
    kept = np.setdiff1d(np.arange(len(prepared.codes)), outside)
    labeled, codes = prepared.labeled[kept], prepared.codes[kept]
    return replace(
        prepared,
        labeled=labeled,
        codes=codes,
        weights=prepared.weights[kept],
        folds=assign_folds(labeled, codes, random),
        unlabeled=Unlabeled(
            StoredRows(np.concatenate([others, prepared.labeled[outside]])),
            np.concatenate([prepared.unlabeled.weights, prepared.weights[outside]]),
        ),
    )


def fit_rivals(prepared: Prepared, setting: Setting) -> Fits:
    """Both rivals, fitted to the rows as they are."""
    own = Candidate(prepared, setting)
    neighbours = prepared.has_neighbours("auto")
    start = supervised_start(prepared.against_rest(1), prepared.basis.weights(0.0))
    fitted = train(own, 1, Share(), SLOPE_SPREAD, TOLERANCE, neighbours)
    return Fits(
        Rule(start.student.coefficients, start.student.bias),
        Rule(fitted.coefficients, fitted.intercept - fitted.even),
        fitted.share,
        start.ridge,
    )
