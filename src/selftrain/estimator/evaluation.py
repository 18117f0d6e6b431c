"""Evaluation on labelled samples only.

Unlabelled samples belong to every training part and to no test part. scikit-learn's splitters put
them into test folds, where its scorers count the marker as a class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state

from ..arrays import Array
from ..errors import InvalidInput
from .targets import is_marker, plain_targets, warn_like_markers

__all__ = ["LabeledFolds", "LearningCurve", "labeled_learning_curve", "labeled_scorer"]


class LabeledFolds(BaseCrossValidator):  # type: ignore[misc]
    """Stratified folds of the labelled samples; all unlabelled ones are in every training part.

    Arguments:
        n_splits: number of folds, at least 2.
        unlabeled: marks unlabelled samples in `y`.
        random_state: seed of the shuffle.

    >>> y = np.array([0, 1, 0, 1, -1, -1])
    >>> for train, test in LabeledFolds(2, random_state=0).split(np.zeros((6, 1)), y):
    ...     print(len(train), sorted(set(y[test].tolist())))
    4 [0, 1]
    4 [0, 1]
    """

    def __init__(self, n_splits: int = 5, *, unlabeled: Any = -1, random_state: Any = None):
        self.n_splits = n_splits
        self.unlabeled = unlabeled
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        """Yield the positions of training and test samples, fold by fold."""
        values, known = _labeled(y, self.unlabeled)
        others = np.setdiff1d(np.arange(len(values)), known)
        rarest = int(np.unique(values[known], return_counts=True)[1].min())
        if not 2 <= self.n_splits <= rarest:
            accepted = f"must be from 2 to {rarest}, the labelled samples of the rarest class"
            if rarest == 1:
                accepted = "a class has 1 labelled sample; 2 or more per class are needed"
            raise InvalidInput("n_splits", self.n_splits, accepted)
        folds = StratifiedKFold(self.n_splits, shuffle=True, random_state=self.random_state)
        for train, test in folds.split(known, values[known]):
            yield np.sort(np.concatenate([known[train], others])), known[test]


def labeled_scorer(scoring: Any = "accuracy", unlabeled: Any = -1) -> Callable[..., float]:
    """Return a scorer that ignores unlabelled samples.

    Arguments:
        scoring: the name of a scorer of scikit-learn, or a scorer.
        unlabeled: marks unlabelled samples in `y`.

    >>> from sklearn.dummy import DummyClassifier
    >>> rows, y = np.zeros((4, 1)), np.array([0, 1, -1, -1])
    >>> labeled_scorer()(DummyClassifier(strategy="constant", constant=1).fit(rows, y), rows, y)
    0.5
    """
    scorer = get_scorer(scoring)

    def score(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        values, known = _labeled(y, unlabeled)
        classes = values[known]
        if classes.dtype == object:
            classes = np.array(classes.tolist())
        if sample_weight is None:
            return float(scorer(model, _safe_indexing(X, known), classes))
        weights = np.asarray(sample_weight)[known]
        return float(scorer(model, _safe_indexing(X, known), classes, sample_weight=weights))

    return score


@dataclass(frozen=True)
class LearningCurve:
    """Scores by the number of labels.

    Attributes:
        labels: numbers of labelled samples in the fit.
        scores: one row per number, one column per draw; measured on the samples whose label was
            hidden in the fit.
    """

    labels: Array
    scores: Array

    @property
    def mean(self) -> Array:
        """Mean over the draws."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def error(self) -> Array:
        """Standard error over the draws; a lower bound, because the draws share samples."""
        draws = self.scores.shape[1]
        return np.asarray(self.scores.std(axis=1, ddof=1) / np.sqrt(draws))

    def plot(self, ax: Any = None) -> Any:
        """Draw mean and standard error against the number of labels."""
        from ..plots.learning_curve import draw_learning_curve

        return draw_learning_curve(self, ax)


def labeled_learning_curve(
    model: Any,
    X: Any,
    y: Any,
    labels: Sequence[int],
    *,
    draws: int = 5,
    scoring: Any = "balanced_accuracy",
    unlabeled: Any = -1,
    random_state: Any = None,
) -> LearningCurve:
    """Measure the score of a model against the number of labels.

    Arguments:
        labels: numbers of labels that the model gets. The remaining labelled samples are unlabelled
            in the fit, and the score is measured on them.
        draws: number of random choices of labels for each number, at least 2.
        scoring: the name of a scorer of scikit-learn, or a scorer.
        unlabeled: marks unlabelled samples in `y`.
        random_state: seed of the draws.

    >>> from sklearn.datasets import load_digits
    >>> from selftrain import SelfTrainingLinearClassifier
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> curve = labeled_learning_curve(
    ...     SelfTrainingLinearClassifier(random_state=0), X, y, [10, 40], draws=2, random_state=0)
    >>> curve.scores.shape, bool(curve.mean[1] > 0.98)
    ((2, 2), True)
    """
    values, known = _labeled(y, unlabeled)
    names, codes = np.unique(values[known], return_inverse=True)
    for count in labels:
        if not 2 * len(names) <= count < len(known):
            most = len(known) - 1
            accepted = f"must be from {2 * len(names)} (two per class) to {most} (one to test on)"
            raise InvalidInput("labels", count, accepted)
    if draws < 2:
        raise InvalidInput("draws", draws, "must be at least 2, for a standard error")
    random = check_random_state(random_state)
    scorer = labeled_scorer(scoring, unlabeled)
    scores = np.empty((len(labels), draws))
    for column in range(draws):
        order = _drawn(codes, random)
        for line, count in enumerate(labels):
            hidden = known[order[count:]]
            target = values.copy() if _holds(values, unlabeled) else values.astype(object)
            target[hidden] = unlabeled
            fitted = clone(model).fit(X, target)
            scores[line, column] = scorer(fitted, _safe_indexing(X, hidden), values[hidden])
    return LearningCurve(np.asarray(labels, dtype=float), scores)


def _holds(values: Any, marker: Any) -> bool:
    """Return whether an array of classes can hold the marker unchanged: text would be cut, integers
    have no None or NaN.
    """
    return values.dtype.kind in "Oiuf" and isinstance(marker, (int, np.integer))


def _drawn(codes: Any, random: np.random.RandomState) -> Any:
    """Return a random order of the labelled samples in which two of every class come first."""
    order = random.permutation(len(codes))
    first: list[int] = []
    for label in np.unique(codes):
        first.extend(order[codes[order] == label][:2].tolist())
    return np.concatenate([first, order[~np.isin(order, first)]]).astype(int)


def _labeled(y: Any, unlabeled: Any) -> tuple[Any, Any]:
    """Return targets as an array, and the positions of labelled samples.

    Warn if a class looks like another marker: it would be counted in every score.
    """
    values = plain_targets(y)
    known = np.flatnonzero(~is_marker(values, unlabeled))
    if len(known) == 0:
        raise InvalidInput(
            "y",
            f"{len(values)} samples",
            f"must have labelled samples (unlabelled ones are marked by {unlabeled!r})",
        )
    warn_like_markers(values[known], level=4)
    return values, known
