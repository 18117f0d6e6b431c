"""`SelfTrainingLinearClassifier`: self-training by the conventions of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..arrays import Array
from ..errors import InvalidInput, nearest
from ..recipe import Recipe
from ..runtime.progress import Progress
from .anchored import Share
from .normality import departure
from .options import Options, checked_options
from .paper import STEPS, follow_recipe
from .rows import is_dask
from .setting import GAUSSIAN, TABLE, Setting
from .targets import Classes, read_targets
from .training import Candidate, Fitted, Prepared, gaussian_if_it_agrees, prepare, train

__all__ = ["SelfTrainingLinearClassifier"]


class SelfTrainingLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier that learns from rows with and without labels.

    Arguments:
        method: "anchored" (soft labels from a mixture that the labelled rows anchor; becomes
            "gaussian" where rows pass for Gaussian clusters, labelled rows left out agree and no
            constant of it is set), "gaussian"
            (for such rows), "paper" (the recipe of the theory, on raw columns).
        neighbours: let a graph of nearest neighbours help the teacher.
        unlabeled: marks rows of `y` without a label.
        class_weight: what the decision minimises: None the plain error, "balanced" the mean error
            of the classes, a dictionary the error with these weights. Probabilities do not depend
            on it.
        preprocessing: "table" (each column to unit variance), "shared" (one scale: images, text),
            "auto" decides.
        anchor, ridge, steps, sharpness, annealing, shrinkage, metrics, directions: constants of the
            method; None takes its own (`docs/estimator.md` says why they are what they are).
        clip: limit of standardised entries while fitting.
        share: "estimated" (labelled rows are drawn at random), "unlabeled" (their classes were
            chosen: only the other rows say how common a class is), a number (of the second of two
            classes) or a dictionary from class to share.
        slope_spread: prior standard deviation of the log-slope of the probabilities.
        tolerance: mean change of a soft label below which steps end.
        recipe: a `selftrain.Recipe` for the method "paper"; None is `Recipe()`.
        random_state: for the folds, the random directions of wide tables, and batches of "paper".
        progress: show how many classes are done.

    Attributes:
        classes_: names of the classes.
        method_: what was run: "anchored", "gaussian" or "paper".
        coef_, intercept_: of `decision_function`, in the units of the columns.
        shares_: estimated share of every class in the population.
        transduction_: class of every training row; labelled rows keep theirs.
        history_: one dictionary per step: class, metric, share, separation, mean change of labels.
        n_iter_: steps of the longest run.

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
        neighbours: bool = False,
        unlabeled: Any = -1,
        class_weight: Any = None,
        preprocessing: str = "auto",
        anchor: float | None = None,
        ridge: float | None = None,
        steps: int | None = None,
        sharpness: float | None = None,
        annealing: float | None = None,
        shrinkage: float | None = None,
        metrics: tuple[float, ...] | None = None,
        directions: int | None = None,
        clip: float | None = 8.0,
        share: Any = "estimated",
        slope_spread: float = 0.3,
        tolerance: float = 1e-4,
        recipe: Any = None,
        random_state: Any = None,
        progress: bool = False,
    ):
        self.method = method
        self.neighbours = neighbours
        self.unlabeled = unlabeled
        self.class_weight = class_weight
        self.preprocessing = preprocessing
        self.anchor = anchor
        self.ridge = ridge
        self.steps = steps
        self.sharpness = sharpness
        self.annealing = annealing
        self.shrinkage = shrinkage
        self.metrics = metrics
        self.directions = directions
        self.clip = clip
        self.share = share
        self.slope_spread = slope_spread
        self.tolerance = tolerance
        self.recipe = recipe
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows X and targets y, where `unlabeled` marks rows without a label.

        Arguments:
            X: dense, sparse, a DataFrame, or a Dask array cut by rows.
            sample_weight: one number >= 0 per row, labelled or not.
        """
        options = checked_options(self)
        target = read_targets(y, self.unlabeled)
        matrix = self._rows(X, reset=True)
        if len(target.codes) != matrix.shape[0]:
            raise InvalidInput(
                "y",
                f"{len(target.codes)} entries",
                f"one per row of X is needed: {matrix.shape[0]}",
            )
        weights = _weights(sample_weight, matrix)
        target = _present(target, weights)
        self.classes_ = target.names
        self._warn(target)
        fitted = self._fit_classes(matrix, target, weights, options)
        self._keep(fitted, options)
        self.transduction_ = self._transduce(matrix, target)
        return self

    def _fit_classes(
        self, matrix: Any, target: Classes, weights: Array, options: Options
    ) -> list[Fitted]:
        """One model per class against the rest; one for two classes."""
        random = check_random_state(self.random_state)
        used = weights > 0
        if not used.all():
            which = np.flatnonzero(used)
            matrix, weights = matrix[which], weights[which]
            target = target._replace(codes=target.codes[which])
        with Progress(len(_positives(target)), "classes", show=self.progress) as progress:
            if self.method == "paper":
                work = self._by_recipe(matrix, target, weights, options, random)
            else:
                work = self._by_mixture(matrix, target, weights, options, random)
            fitted = []
            for positive in _positives(target):
                fitted.append(work(positive))
                progress.advance()
        return fitted

    def _by_mixture(
        self,
        matrix: Any,
        target: Classes,
        weights: Array,
        options: Options,
        random: np.random.RandomState,
    ) -> Callable[[int], Fitted]:
        """Anchored or Gaussian self-training of one class.

        The first changes to the second on Gaussian rows, if labelled rows left out agree in every
        class.
        """

        def prepare_for(setting: Setting) -> Prepared:
            return prepare(
                matrix,
                target.codes,
                weights,
                options.preprocessing,
                options.clip,
                setting.directions,
                check_random_state(random.randint(2**31 - 1)),
            )

        setting = options.setting(GAUSSIAN if self.method == "gaussian" else TABLE)
        own = Candidate(prepare_for(setting), setting)
        shares = _shares(self.share, target.names)

        def share_of(positive: int) -> Share:
            return Share(shares.get(positive), self.share != "unlabeled")

        def work(positive: int) -> Fitted:
            return train(
                own.prepared,
                positive,
                own.setting,
                share_of(positive),
                options.slope_spread,
                options.tolerance,
                self.neighbours,
            )

        self.method_, self.setting_ = self.method, setting
        if not self._may_change(own.prepared) or not _looks_gaussian(own.prepared):
            return work
        setting = options.setting(GAUSSIAN)
        other = replace(prepare_for(setting), folds=own.prepared.folds)
        found: dict[int, Fitted] = {}
        for positive in _positives(target):
            fitted = gaussian_if_it_agrees(
                Candidate(other, setting),
                own,
                positive,
                share_of(positive),
                options.slope_spread,
                options.tolerance,
            )
            if fitted is None:
                return work
            found[positive] = fitted
        self.method_, self.setting_ = "gaussian", setting
        return found.__getitem__

    def _may_change(self, prepared: Prepared) -> bool:
        """Whether "anchored" may become "gaussian": a table, and nothing that only it has was asked
        for.

        Pixels and words are not Gaussian, though sums of many of them look so.
        """
        asked = (self.anchor, self.ridge, self.shrinkage, self.metrics)
        anchored = self.method == "anchored" and not self.neighbours
        return anchored and prepared.kind == "table" and all(value is None for value in asked)

    def _by_recipe(
        self,
        matrix: Any,
        target: Classes,
        weights: Array,
        options: Options,
        random: np.random.RandomState,
    ) -> Callable[[int], Fitted]:
        """The paper's self-training of one class; every class deals the rows into the same
        batches.
        """
        steps = options.changes.get("steps", STEPS)
        recipe = Recipe() if self.recipe is None else self.recipe
        seed = random.randint(2**31 - 1)
        self.method_ = "paper"

        def work(positive: int) -> Fitted:
            classes = np.where(target.codes < 0, -1, target.codes == positive)
            return follow_recipe(matrix, classes, weights, recipe, steps, check_random_state(seed))

        return work

    def _keep(self, fitted: list[Fitted], options: Options) -> None:
        """Store the model at the odds the decision asks for."""
        if len(fitted) == 1:
            share = fitted[0].share
            self.shares_ = np.array([1 - share, share])
        else:
            found = np.array([model.share for model in fitted])
            self.shares_ = found / found.sum()
        tilt = self._tilt()
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

    def _tilt(self) -> Array:
        """Logarithm of the weight of every class in the decision."""
        if self.class_weight is None:
            return np.zeros(len(self.classes_))
        if isinstance(self.class_weight, str):
            return np.asarray(-np.log(self.shares_))
        return np.array(
            [np.log(self.class_weight.get(name, 1.0)) for name in self.classes_.tolist()]
        )

    def _warn(self, target: Classes) -> None:
        counts = np.bincount(target.codes[target.codes >= 0], minlength=len(target.names))
        if not (target.codes < 0).any():
            warnings.warn(
                "y has no unlabelled row: this is a supervised fit "
                f"(the marker of a row without label is {self.unlabeled!r})",
                UserWarning,
                stacklevel=3,
            )
        if counts.min() < 2:
            few = target.names[counts.argmin()]
            warnings.warn(
                f"class {few!r} has 1 labelled row: nothing can be checked on rows left out, "
                "2 or more per class are needed for that",
                UserWarning,
                stacklevel=3,
            )

    def _rows(self, X: Any, reset: bool) -> Any:
        if is_dask(X):
            return self._chunked(X, reset)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
        )

    def _chunked(self, X: Any, reset: bool) -> Any:
        if X.ndim != 2:
            raise InvalidInput("X", X.shape, "a Dask array of two dimensions is needed")
        if reset and self.neighbours:
            raise InvalidInput(
                "neighbours", True, "rows of a Dask array have no graph of neighbours: False"
            )
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif X.shape[1] != self.n_features_in_:
            raise InvalidInput("X", X.shape, f"{self.n_features_in_} features are expected")
        return X

    def decision_function(self, X: Any) -> Array:
        """Log-odds at the weights of the decision: positive for the second of two classes.

        For more classes, one column each; the largest wins.
        """
        check_is_fitted(self)
        scores = self._scores(self._rows(X, reset=False))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores(self, rows: Any) -> Array:
        return np.asarray(rows @ self.coef_.T) + self.intercept_

    def predict(self, X: Any) -> Array:
        """The class of every row."""
        return self._decide(self.decision_function(X))

    def _decide(self, scores: Array) -> Array:
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes in the population, whatever the weights of the decision."""
        check_is_fitted(self)
        odds = self._scores(self._rows(X, reset=False)) - self._shift
        positive = expit(odds)
        if positive.shape[1] == 1:
            return np.column_stack([1 - positive[:, 0], positive[:, 0]])
        return np.asarray(positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))

    def _transduce(self, matrix: Any, target: Classes) -> Array:
        scores = self._scores(matrix)
        found = self._decide(scores[:, 0] if scores.shape[1] == 1 else scores)
        return np.where(target.codes >= 0, target.names[np.maximum(target.codes, 0)], found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _positives(target: Classes) -> list[int]:
    """Classes that are fitted against the rest; the second of two."""
    return [1] if len(target.names) == 2 else list(range(len(target.names)))


def _looks_gaussian(prepared: Prepared) -> bool:
    """Whether the unlabelled rows pass for Gaussian clusters."""
    return departure(prepared.unlabeled, prepared.basis.variances).small


def _weights(sample_weight: Any, matrix: Any) -> Array:
    if is_dask(matrix):
        given = (
            np.ones(matrix.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
        )
    else:
        given = _check_sample_weight(sample_weight, matrix, dtype=np.float64)
    if (given < 0).any() or not np.isfinite(given).all() or not given.any():
        raise InvalidInput("sample_weight", float(given.min()), "finite numbers >= 0, not all 0")
    return np.asarray(given, dtype=float)


def _present(target: Classes, weights: Array) -> Classes:
    """Only classes that have labelled rows of positive weight."""
    seen = np.unique(target.codes[(target.codes >= 0) & (weights > 0)])
    if len(seen) < 2:
        raise InvalidInput(
            "y",
            target.names[seen].tolist(),
            "the labelled rows of positive weight have fewer than 2 classes, at least 2 classes are"
            " needed",
        )
    if len(seen) == len(target.names):
        return target
    codes = np.full(len(target.names) + 1, -1)
    codes[seen] = np.arange(len(seen))
    return Classes(target.names[seen], codes[target.codes])


def _shares(share: Any, names: Array) -> dict[int, float]:
    """Known shares by the index of their class."""
    if isinstance(share, str):
        return {}
    if isinstance(share, dict):
        listed = names.tolist()
        for name in share:
            if name not in listed:
                raise InvalidInput(
                    "share", name, f"no such class; {nearest(str(name), map(str, listed))}"
                )
        return {listed.index(name): float(value) for name, value in share.items()}
    if len(names) != 2:
        raise InvalidInput(
            "share", share, "with more than two classes: a dictionary from class to share"
        )
    return {1: float(share)}
