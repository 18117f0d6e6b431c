"""`FewLabelClassifier`: few labels, many samples, decided by the kind of data."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ...arrays import Array
from ...errors import InvalidInput, nearest
from ...runtime.parallel import one_thread
from ..blocks import is_dask, is_sparse
from ..checks import check_digits, check_finite, given, text_columns
from ..evaluation import labeled_scorer
from ..options import check_class_weight, check_weighted_classes
from ..prepared import MOST_IN_GRAPH
from ..settings import Settings
from ..targets import Classes, read_targets, warn_about_labels
from .averaged import PREPROCESSING, Averaged, fit_averaged, self_training
from .ensemble import Ensemble, fit_ensemble
from .graph import ClassGraph, class_graph
from .heavy_tails import ranks_of_heavy_tails
from .kinds import KINDS, recognise
from .missing import fit_imputer
from .samples import distinct_samples
from .scores import ANCHORED, self_trained

__all__ = ["FewLabelClassifier"]

DISAGREES = 0.22
"""Disagreement of linear model and forest above which runs are degraded two to four times as
often."""


SMALLEST = 1e-12
"""Smallest probability of a class, so that its logarithm is finite."""


class FewLabelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for few labelled and many unlabelled samples.

    Tables get a weighted sum of self-training, a random forest and a linear model; images,
    embeddings and text the mean of several self-trained linear models.

    Arguments:
        kind: "table", "image", "embedding" (vectors of a neural network), "text" (word counts or
            weights) or "auto".
        safe: on tables, lean more on the linear model of the labels, for a smaller gain.
        class_weight: what the decision minimises: "balanced" the mean error of the classes, None
            the plain error, a dictionary the error with these weights. Probabilities do not depend
            on it.
        unlabeled: marks unlabelled samples in `y`; so do NaN, None and empty strings.
        random_state: seed of folds, forest and random directions.

    Attributes:
        classes_: names of the classes.
        kind_: the kind of data that was used.
        method_: "ensemble", "self-training", "gaussian" (self-training of samples that pass for
            Gaussian clusters) or "supervised" (classes were not separated).
        weights_: weight of each score in the result, by name.
        disagreement_: on tables, fraction of unlabelled samples to which linear model and forest
            give different classes; else NaN.
        shares_: estimated class proportions in the population.
        transduction_: class of every training sample; labelled samples keep theirs.

    >>> from selftrain.datasets import hide_labels, load_breast_cancer
    >>> X, classes = load_breast_cancer(return_X_y=True)
    >>> y = hide_labels(classes, 30)
    >>> model = FewLabelClassifier(random_state=0).fit(X, y)
    >>> model.kind_, bool(model.score(X, classes) > 0.93)
    ('table', True)
    """

    def __init__(
        self,
        kind: str = "auto",
        *,
        safe: bool = False,
        class_weight: Any = "balanced",
        unlabeled: Any = -1,
        random_state: Any = None,
    ):
        self.kind = kind
        self.safe = safe
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to samples X (dense, a DataFrame, or sparse text) and targets y, where `unlabeled`
        marks unlabelled samples.
        """
        self._check_parameters()
        target = read_targets(y, self.unlabeled)
        matrix = self._rows(X, reset=True)
        target = given(matrix, target, None).target
        self.classes_ = target.names
        check_weighted_classes(self.class_weight, self.classes_.tolist())
        warn_about_labels(target, self.unlabeled)
        self.kind_ = recognise(matrix) if self.kind == "auto" else self.kind
        random = check_random_state(self.random_state)
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said above, once
            self._model = self._fit_model(matrix, target, random)
            self._graph = self._fit_graph(matrix, target, random)
        self._describe()
        found = self._decide(self._scores(matrix))
        own = self.classes_[np.maximum(target.codes, 0)]
        self.transduction_ = np.where(target.codes >= 0, own, found)
        return self

    def _fit_model(
        self, matrix: Any, target: Classes, random: np.random.RandomState
    ) -> Averaged | Ensemble:
        seed = random.randint(2**31 - 4)
        if self.kind_ != "table":
            return fit_averaged(matrix, target.codes, self.kind_, seed)
        ranks = ranks_of_heavy_tails(matrix)
        samples = distinct_samples(matrix, target.codes, len(target.names), random)
        ranked = samples._replace(rows=ranks.transform(samples.rows))
        free = Settings(neighbours=False)
        model = self_training(seed, ANCHORED if ranks.columns.size else free)
        model.fit(ranked.rows, ranked.codes, ranked.weights)
        if model.method_ == "gaussian":
            return Averaged((model,), "gaussian")
        trained = self_trained(ranked, model)
        return fit_ensemble(samples, ranked.rows, ranks, trained, self.safe, seed)

    def _fit_graph(
        self, matrix: Any, target: Classes, random: np.random.RandomState
    ) -> ClassGraph | None:
        """Return the graph of more than two classes; none for text and for too many samples."""
        few = len(self.classes_) == 2 or len(target.codes) > MOST_IN_GRAPH
        if few or self.kind_ == "text" or self._model.method == "gaussian":
            return None
        probabilities = _normalised(expit(self._model.log_odds(matrix)))
        return class_graph(matrix, target.codes, probabilities, PREPROCESSING[self.kind_], random)

    def _describe(self) -> None:
        """Store what a user may want to know of the model, and warn if it is likely to be poor."""
        model = self._model
        shares = model.shares
        self.shares_ = np.append(1 - shares, shares) if len(shares) == 1 else shares / shares.sum()
        self.method_ = model.method
        self.weights_ = model.weights
        self.disagreement_ = model.disagreement
        if self.method_ == "supervised":
            warnings.warn(
                "the unlabelled samples do not separate the classes: they were not used, and the"
                " result is a supervised fit",
                UserWarning,
                stacklevel=3,
            )
        if self.disagreement_ > DISAGREES:
            warnings.warn(
                f"linear model and forest disagree on {self.disagreement_:.0%} of the samples: the"
                " result is uncertain; label more samples, or use safe=True",
                UserWarning,
                stacklevel=3,
            )

    def _check_parameters(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise InvalidInput("kind", self.kind, f"unknown; {nearest(str(self.kind), KINDS)}")
        if not isinstance(self.safe, (bool, np.bool_)):
            raise InvalidInput("safe", self.safe, "must be True or False")
        check_class_weight(self.class_weight)

    def _rows(self, X: Any, reset: bool) -> Any:
        """Return samples as numbers, with missing entries replaced."""
        if is_dask(X):
            accepted = "must be in memory: X.compute(), or use SelfTrainingLinearClassifier"
            raise InvalidInput("X", "a Dask array", accepted)
        try:
            matrix = validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype=np.float64,
                reset=reset,
                ensure_all_finite="allow-nan",
            )
        except (TypeError, ValueError) as error:
            text = text_columns(X)
            if not text or "contains" in str(error):
                raise
            accepted = "columns must be numbers; encode these, for example by OneHotEncoder"
            raise InvalidInput("X", text, accepted) from None
        if is_sparse(matrix):
            check_finite(X, matrix)
            return self._sparse(matrix)
        if reset:
            check_digits(X, matrix)
            self._imputer = fit_imputer(X, matrix)
        return self._imputer.transform(matrix)

    def _sparse(self, matrix: Any) -> Any:
        if self.kind not in ("auto", "text"):
            accepted = 'must be "text" or "auto" for a sparse X; pass X.toarray() for other kinds'
            raise InvalidInput("kind", self.kind, accepted)
        return matrix

    def _scores(self, matrix: Any) -> Array:
        """Return scores at the weights of the decision, a column per class (one for two)."""
        odds = self._model.log_odds(matrix)
        balanced = isinstance(self.class_weight, str)
        if balanced:
            odds = odds - self._model.even
        weights = self.class_weight if isinstance(self.class_weight, dict) else {}
        tilt = np.log([weights.get(name, 1.0) for name in self.classes_.tolist()])
        if odds.shape[1] == 1:
            return np.asarray(odds + tilt[1] - tilt[0])
        return np.asarray(np.log(self._smoothed(expit(odds), matrix)) + tilt)

    def _smoothed(self, probabilities: Array, matrix: Any) -> Array:
        """Return probabilities times the factors of the graph, normalised."""
        found = _normalised(probabilities)
        return found if self._graph is None else _normalised(found * self._graph.factors(matrix))

    def decision_function(self, X: Any) -> Array:
        """Return log-odds at the weights of the decision: positive for the second of two classes.

        For more classes, a column of log-probabilities each; the largest wins.
        """
        check_is_fitted(self)
        scores = self._scores(self._rows(X, reset=False))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Return the class of every sample."""
        check_is_fitted(self)
        return self._decide(self._scores(self._rows(X, reset=False)))

    def _decide(self, scores: Array) -> Array:
        chosen = (scores[:, 0] > 0) * 1 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities in the population, independent of the decision weights."""
        check_is_fitted(self)
        matrix = self._rows(X, reset=False)
        positive = expit(self._model.log_odds(matrix))
        if positive.shape[1] == 1:
            return np.column_stack([1 - positive[:, 0], positive[:, 0]])
        return self._smoothed(positive, matrix)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled samples; unlabelled ones are ignored."""
        return labeled_scorer("accuracy", self.unlabeled)(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _normalised(probabilities: Array) -> Array:
    """Return probabilities >= 0 with a sum of 1 in every row."""
    found = np.maximum(probabilities, SMALLEST)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
