"""`SelfTrainingLinearClassifier`: self-training by the conventions of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..arrays import Array
from ..errors import InvalidInput
from ..runtime.parallel import one_thread
from ..runtime.progress import Progress, ProgressOption
from .blocks import is_dask
from .checks import GivenRows, check_digits, check_finite, given, text_columns
from .evaluation import labeled_scorer
from .methods import choose_method
from .options import check_weighted_classes, checked_settings
from .settings import Settings
from .targets import Classes, read_targets, warn_about_labels
from .training import Fitted

__all__ = ["SelfTrainingLinearClassifier"]


class SelfTrainingLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier that learns from labelled and unlabelled samples.

    Arguments:
        method: "anchored" (soft labels from a mixture anchored by the labelled samples; becomes
            "gaussian" if the samples pass for Gaussian clusters, cross-validation agrees and no
            constant of it is set), "gaussian" (for such samples), "paper" (the recipe of the
            theory, on raw columns).
        class_weight: what the decision minimises: None the plain error, "balanced" the mean error
            of the classes, a dictionary the error with these weights. Probabilities do not depend
            on it.
        unlabeled: marks unlabelled samples in `y`; so do NaN, None and empty strings.
        share: class proportions: "estimated" (labelled samples are drawn at random), "unlabeled"
            (their classes were chosen: only unlabelled samples count), a number (the proportion of
            the second of two classes) or a dictionary from class to proportion.
        settings: every other constant, a `selftrain.estimator.Settings`.
        random_state: seed of folds, random directions of wide tables, and batches of "paper".
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    Attributes:
        classes_: names of the classes.
        method_: the method that was used: "anchored", "gaussian" or "paper".
        coef_, intercept_: of `decision_function`, in the units of the columns.
        shares_: estimated class proportions in the population.
        transduction_: class of every training sample; labelled samples keep theirs.
        history_: one dictionary per step: class, proportion, separation, mean change of labels (and
            the metric of "gaussian").
        n_iter_: number of steps of the longest run.

    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(n_class=2, return_X_y=True)
    >>> y = np.where(np.arange(len(digit)) < 20, digit, -1)
    >>> model = SelfTrainingLinearClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, digit) > 0.99)
    True
    """

    def __init__(
        self,
        method: str = "anchored",
        *,
        class_weight: Any = None,
        unlabeled: Any = -1,
        share: Any = "estimated",
        settings: Settings | None = None,
        random_state: Any = None,
        progress: ProgressOption = None,
    ):
        self.method = method
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.share = share
        self.settings = settings
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples X and targets y, where `unlabeled` marks unlabelled samples.

        Arguments:
            X: dense, sparse, a DataFrame, or a Dask array chunked by rows.
            sample_weight: one number >= 0 per sample, labelled or not.
        """
        settings = checked_settings(self)
        target = read_targets(y, self.unlabeled)
        matrix = self._rows(X, reset=True)
        rows = given(matrix, target, sample_weight)
        self.classes_ = rows.target.names
        check_weighted_classes(self.class_weight, self.classes_.tolist())
        warn_about_labels(rows.target, self.unlabeled)
        self._keep(self._fit_classes(rows, settings))
        self.transduction_ = self._transduce(matrix, target)
        return self

    def _fit_classes(self, rows: GivenRows, settings: Settings) -> list[Fitted]:
        """Fit one model per class against the rest; one for two classes."""
        fitted = []
        with (
            Progress(len(rows.positives), "classes", show=self.progress) as progress,
            one_thread(),
        ):
            random = check_random_state(self.random_state)
            method = choose_method(self.method, rows, self.share, settings, random)
            self.method_ = method.name
            for positive in rows.positives:
                fitted.append(method.fit(positive))
                progress.advance()
        return fitted

    def _keep(self, fitted: list[Fitted]) -> None:
        """Store the model at the odds that the decision needs."""
        if len(fitted) == 1:
            share = fitted[0].share
            self.shares_ = np.array([1 - share, share])
        else:
            found = np.array([model.share for model in fitted])
            self.shares_ = found / found.sum()
        tilt = self._tilt(fitted)
        shift = tilt[1:] - tilt[0] if len(fitted) == 1 else tilt
        self.coef_ = np.array([model.coefficients for model in fitted])
        self.intercept_ = np.array([model.intercept for model in fitted]) + shift
        self._shift = shift
        names = self.classes_[1:] if len(fitted) == 1 else self.classes_
        self.history_ = [
            {"class": name, **entry}
            for name, model in zip(names.tolist(), fitted, strict=True)
            for entry in model.history
        ]
        self.n_iter_ = max((entry["step"] for entry in self.history_), default=0)

    def _tilt(self, fitted: list[Fitted]) -> Array:
        """Return the logarithm of the weight of every class in the decision."""
        if self.class_weight is None:
            return np.zeros(len(self.classes_))
        if isinstance(self.class_weight, str):
            found = -np.log(self.shares_)
            found[-len(fitted) :] -= [one.even - logit(one.share) for one in fitted]
            return np.asarray(found)
        return np.array(
            [np.log(self.class_weight.get(name, 1.0)) for name in self.classes_.tolist()]
        )

    def _rows(self, X: Any, reset: bool) -> Any:
        if is_dask(X):
            return self._chunked(X, reset)
        try:
            matrix = validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
                reset=reset,
            )
        except (TypeError, ValueError) as error:
            text = text_columns(X)
            if not text or "contains" in str(error):
                raise
            accepted = "columns must be numbers; encode these, for example by OneHotEncoder"
            raise InvalidInput("X", text, accepted) from None
        check_finite(X, matrix)
        if reset:
            check_digits(X, matrix)
        return matrix

    def _chunked(self, X: Any, reset: bool) -> Any:
        if X.ndim != 2:
            raise InvalidInput("X", X.shape, "must have two dimensions")
        if reset and self.settings is not None and self.settings.neighbours is True:
            raise InvalidInput("neighbours", True, 'must be False or "auto" for a Dask array')
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif X.shape[1] != self.n_features_in_:
            raise InvalidInput("X", X.shape, f"must have {self.n_features_in_} features")
        return X

    def decision_function(self, X: Any) -> Array:
        """Return log-odds at the weights of the decision: positive for the second of two classes.

        For more classes, one column each; the largest wins.
        """
        check_is_fitted(self)
        scores = self._scores(self._rows(X, reset=False))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores(self, rows: Any) -> Array:
        return np.asarray(rows @ self.coef_.T) + self.intercept_

    def predict(self, X: Any) -> Array:
        """Return the class of every sample."""
        return self._decide(self.decision_function(X))

    def _decide(self, scores: Array) -> Array:
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled samples; unlabelled ones are ignored."""
        return labeled_scorer("accuracy", self.unlabeled)(self, X, y, sample_weight)

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities in the population, independent of the decision weights."""
        check_is_fitted(self)
        odds = self._scores(self._rows(X, reset=False)) - self._shift
        positive = expit(odds)
        if positive.shape[1] == 1:
            return np.column_stack([1 - positive[:, 0], positive[:, 0]])
        return np.asarray(positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))

    def _transduce(self, matrix: Any, target: Classes) -> Array:
        scores = self._scores(matrix)
        found = self._decide(scores[:, 0] if scores.shape[1] == 1 else scores)
        own = target.names[np.maximum(target.codes, 0)]
        return np.where((target.codes >= 0) & np.isin(own, self.classes_), own, found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
