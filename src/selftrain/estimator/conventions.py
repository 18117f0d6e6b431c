"""What both classifiers share: reading samples and targets, decisions, probabilities, scores.

A classifier implements `_rows` (a user's samples as numbers), `_scores` (log-odds, tilted by
`class_weight`; one column per class, a single column for two classes) and `_probabilities` (in the
population, the same columns).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import Array
from ..errors import InvalidInput
from ..fields import number
from .blocks import is_sparse
from .checks import (
    GivenRows,
    check_digits,
    check_finite,
    given,
    medians,
    text_columns,
    warn_about_identifiers,
)
from .evaluation import labeled_scorer
from .same_samples import first_made
from .targets import Classes, no_such_class, read_targets, warn_about_labels


class FewLabelConventions(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of labelled and unlabelled samples by the conventions of scikit-learn."""

    class_weight: Any
    unlabeled: Any
    classes_: Array

    @abstractmethod
    def _rows(self, X: Any, reset: bool) -> Any:
        """Return samples as numbers; `reset` (in `fit`): store the names and number of columns."""

    @abstractmethod
    def _scores(self, matrix: Any) -> Array:
        """Return log-odds, tilted by `class_weight`."""

    @abstractmethod
    def _probabilities(self, matrix: Any) -> Array:
        """Return class probabilities in the population, independent of `class_weight`."""

    def decision_function(self, X: Any) -> Array:
        """Return log-odds, tilted by `class_weight`: positive for the second of two classes.

        For more classes, one column each; the largest decides.
        """
        check_is_fitted(self)
        scores = self._scores(self._rows(X, reset=False))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Return the class of every sample."""
        check_is_fitted(self)
        return self._decide(self._scores(self._rows(X, reset=False)))

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities in the population, independent of `class_weight`."""
        check_is_fitted(self)
        found = self._probabilities(self._rows(X, reset=False))
        return np.column_stack([1 - found, found]) if found.shape[1] == 1 else found

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled samples; unlabelled ones are ignored."""
        return labeled_scorer("accuracy", self.unlabeled)(self, X, y, sample_weight)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Classes, GivenRows]:
        """Return the validated samples, their targets, and the samples of positive weight with
        their targets.
        """
        check_class_weight(self.class_weight)
        target = read_targets(y, self.unlabeled)
        matrix = first_made(X, self._rows(X, reset=True), type(self))
        rows = given(matrix, target, sample_weight)
        self.classes_ = rows.target.names
        check_weighted_classes(self.class_weight, self.classes_.tolist())
        warn_about_labels(rows.target, self.unlabeled)
        warn_about_identifiers(X)
        return matrix, target, rows

    def _numbers(self, X: Any, reset: bool, **options: Any) -> Any:
        """Return samples as an array of floats, dense or sparse; an error names columns of text."""
        try:
            return validate_data(self, X, accept_sparse="csr", reset=reset, **options)
        except (TypeError, ValueError) as error:
            text = text_columns(X)
            if not text or "contains" in str(error):
                raise
            accepted = "columns must be numbers; encode these, for example by OneHotEncoder"
            raise InvalidInput("X", text, accepted) from None

    def _complete(self, X: Any, matrix: Any, reset: bool) -> Any:
        """Check numbers in memory, and replace missing ones by the median of their column in the
        training samples; a sparse matrix must have none.
        """
        check_finite(X, matrix, allow_nan=not is_sparse(matrix))
        if is_sparse(matrix):
            return matrix
        if reset:
            check_digits(X, matrix)
            self._medians = medians(X, matrix)
        missing = np.isnan(matrix)
        if not missing.any():
            return matrix
        return np.where(missing, self._medians.astype(matrix.dtype), matrix)

    def _decide(self, scores: Array) -> Array:
        chosen = (scores[:, 0] > 0) * 1 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def _transduce(self, matrix: Any, target: Classes) -> Array:
        """Return the class of every training sample; labelled samples keep theirs."""
        own = target.names[np.maximum(target.codes, 0)]
        kept = (target.codes >= 0) & np.isin(own, self.classes_)
        return np.where(kept, own, self._decide(self._scores(matrix)))

    @property
    def _log_weights(self) -> Array:
        """Logarithm of the weight of each class if `class_weight` is a dictionary, else zeros."""
        weights = self.class_weight if isinstance(self.class_weight, dict) else {}
        return np.log([weights.get(name, 1.0) for name in self.classes_.tolist()])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def check_class_weight(weight: Any) -> None:
    """Reject what is neither "balanced", a dictionary of numbers > 0, nor None."""
    accepted = 'must be "balanced", a dictionary from class to a number > 0, or None'
    if weight is None or (isinstance(weight, str) and weight == "balanced"):
        return
    if not isinstance(weight, dict):
        raise InvalidInput("class_weight", weight, accepted)
    for value in weight.values():
        number("class_weight", value, lambda x: x > 0, accepted)


def check_weighted_classes(weight: Any, names: list[Any]) -> None:
    """Reject a weight of an unknown class if a known class has none: the name may be misspelt.

    If all known classes have weights, an unknown one may only be absent from these samples.
    """
    if not isinstance(weight, dict) or all(name in weight for name in names):
        return
    for name in weight:
        if name not in names:
            raise no_such_class("class_weight", name, names)
