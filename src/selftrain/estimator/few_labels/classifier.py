"""`FewLabelClassifier`: few labels, many samples, decided by the kind of data."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

from ...arrays import Array
from ...errors import InvalidInput, nearest
from ...runtime.parallel import one_thread
from ..blocks import is_dask, is_sparse
from ..conventions import FewLabelConventions
from ..prepared import MOST_IN_GRAPH
from ..same_samples import same_samples
from ..targets import Classes
from .averaged import PREPROCESSING, Averaged, fit_averaged, self_training
from .ensemble import Ensemble, fit_ensemble
from .graph import ClassGraph, class_graph
from .heavy_tails import ranks_of_heavy_tails, units_of
from .kinds import KINDS, recognise
from .samples import distinct_samples
from .scores import ANCHORED, self_trained

__all__ = ["FewLabelClassifier"]

DISAGREES = 0.22
"""Disagreement of linear model and forest above which runs are degraded two to four times as
often."""


SMALLEST = 1e-12
"""Smallest probability of a class, so that its logarithm is finite."""


class FewLabelClassifier(FewLabelConventions):
    """A classifier for few labelled and many unlabelled samples.

    Tables get a weighted sum of self-training, a random forest and a linear model; images,
    embeddings and text the mean of several self-trained linear models.

    Arguments:
        kind: "table", "image", "embedding" (vectors of a neural network), "text" (word counts or
            weights) or "auto".
        safe: on tables, give more weight to the supervised linear model; the mean gain is then
            smaller (docs/comparison.md has what it saves). No effect on other kinds of data.
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
        with same_samples():
            matrix, target, _ = self._read(X, y)
            self.kind_ = recognise(matrix) if self.kind == "auto" else self.kind
            random = check_random_state(self.random_state)
            with one_thread(), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # said above, once
                self._model = self._fit_model(matrix, target, random)
                self._graph = self._fit_graph(matrix, target, random)
            self._describe()
            self.transduction_ = self._transduce(matrix, target)
        return self

    def _fit_model(
        self, matrix: Any, target: Classes, random: np.random.RandomState
    ) -> Averaged | Ensemble:
        seed = random.randint(2**31 - 4)
        self._units = units_of(matrix) if self.kind_ == "table" else None
        if self._units is None:
            return fit_averaged(matrix, target.codes, self.kind_, seed)
        matrix = self._units.transform(matrix)
        ranks = ranks_of_heavy_tails(matrix)
        samples = distinct_samples(matrix, target.codes, len(target.names), random)
        ranked = samples._replace(rows=ranks.transform(samples.rows))
        model = self_training(seed, ANCHORED if ranks.columns.size else None, neighbours=False)
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
        probabilities = _normalised(expit(self._log_odds(matrix)))
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
                " result is uncertain, with safe=True too; label more samples, or ask"
                " selftrain.plan whether it is better than a supervised fit",
                UserWarning,
                stacklevel=3,
            )

    def _check_parameters(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise InvalidInput("kind", self.kind, f"unknown; {nearest(str(self.kind), KINDS)}")
        if not isinstance(self.safe, (bool, np.bool_)):
            raise InvalidInput("safe", self.safe, "must be True or False")

    def _rows(self, X: Any, reset: bool) -> Any:
        """Return samples as numbers, with missing entries replaced."""
        if is_dask(X):
            accepted = "must be in memory: X.compute(), or use SelfTrainingLinearClassifier"
            raise InvalidInput("X", "a Dask array", accepted)
        matrix = self._numbers(X, reset, dtype=np.float64, ensure_all_finite=False)
        if is_sparse(matrix) and self.kind not in ("auto", "text"):
            accepted = 'must be "text" or "auto" for a sparse X; pass X.toarray() for other kinds'
            raise InvalidInput("kind", self.kind, accepted)
        return self._complete(X, matrix, reset)

    def _log_odds(self, matrix: Any) -> Array:
        """Return the log-odds of the model at the estimated class proportions."""
        rows = matrix if self._units is None else self._units.transform(matrix)
        return self._model.log_odds(rows)

    def _scores(self, matrix: Any) -> Array:
        odds, tilt = self._log_odds(matrix), self._log_weights
        if isinstance(self.class_weight, str):
            odds = odds - self._model.even
        if odds.shape[1] == 1:
            return np.asarray(odds + tilt[1] - tilt[0])
        return np.asarray(np.log(self._smoothed(expit(odds), matrix)) + tilt)

    def _probabilities(self, matrix: Any) -> Array:
        positive = expit(self._log_odds(matrix))
        return positive if positive.shape[1] == 1 else self._smoothed(positive, matrix)

    def _smoothed(self, probabilities: Array, matrix: Any) -> Array:
        """Return probabilities times the factors of the graph, normalised."""
        found = _normalised(probabilities)
        return found if self._graph is None else _normalised(found * self._graph.factors(matrix))


def _normalised(probabilities: Array) -> Array:
    """Return probabilities >= 0 with a sum of 1 in every row."""
    found = np.maximum(probabilities, SMALLEST)
    return np.asarray(found / found.sum(axis=1, keepdims=True))
