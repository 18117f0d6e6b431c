"""`SelfTrainingLinearClassifier`: self-training by the conventions of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from ..arrays import Array
from ..errors import InvalidInput, nearest
from ..fields import number
from ..runtime.parallel import one_thread
from ..runtime.progress import Progress, ProgressOption, checked_progress
from .blocks import is_dask
from .checks import GivenRows
from .conventions import FewLabelConventions
from .methods import choose_method
from .settings import METHODS, Settings
from .training import Fitted

__all__ = ["SelfTrainingLinearClassifier"]


class SelfTrainingLinearClassifier(FewLabelConventions):
    """A linear classifier that learns from labelled and unlabelled samples.

    Arguments:
        method: "anchored" (soft labels from a mixture anchored by the labelled samples; switches to
            "gaussian" if the samples pass a test for Gaussian clusters, cross-validation agrees and
            no constant of "anchored" was set), "gaussian" (for Gaussian clusters), or "paper" (the
            recipe of the theory, on raw columns).
        neighbours: use a graph of nearest neighbours as a second teacher of "anchored"; "auto": on
            images.
        class_weight: decisions minimise the plain error (None), the mean over classes of their
            errors ("balanced"), or the error weighted by the true class (a dictionary from class to
            weight). Probabilities do not depend on it.
        unlabeled: marks unlabelled samples in `y`; so do NaN, None and empty strings.
        share: class proportions: "estimated" (from all samples, if the labelled ones were drawn at
            random), "unlabeled" (from the unlabelled samples only, if the classes of the labelled
            ones were chosen), a number (the proportion of the second of two classes) or a
            dictionary from class to proportion.
        settings: all other constants, a `selftrain.estimator.Settings`.
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
        neighbours: bool | str = "auto",
        class_weight: Any = None,
        unlabeled: Any = -1,
        share: Any = "estimated",
        settings: Settings | None = None,
        random_state: Any = None,
        progress: ProgressOption = None,
    ):
        self.method = method
        self.neighbours = neighbours
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.share = share
        self.settings = settings
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to samples X and targets y, where `unlabeled` marks unlabelled samples.

        Arguments:
            X: dense, sparse, a DataFrame, or a Dask array chunked by rows. Missing entries become
                the median of their column; sparse and Dask tables must have none.
            sample_weight: one number >= 0 per sample, labelled or not.
        """
        settings = self._checked_settings()
        matrix, target, rows = self._read(X, y, sample_weight)
        self._keep(self._fit_classes(rows, settings))
        self.transduction_ = self._transduce(matrix, target)
        return self

    def _checked_settings(self) -> Settings:
        """Return the settings; raise `InvalidInput` for the first invalid parameter."""
        if not isinstance(self.method, str) or self.method not in METHODS:
            hint = nearest(str(self.method), METHODS)
            raise InvalidInput("method", self.method, f"unknown; {hint}")
        checked_progress(self.progress)
        settings = Settings() if self.settings is None else self.settings
        if not isinstance(settings, Settings):
            accepted = "must be a selftrain.estimator.Settings, or None"
            raise InvalidInput("settings", settings, accepted)
        settings.check_method(self.method)
        _check_neighbours(self.neighbours, self.method)
        _check_share(self.share)
        return settings

    def _fit_classes(self, rows: GivenRows, settings: Settings) -> list[Fitted]:
        """Fit one model per class against the rest; one for two classes."""
        fitted = []
        with (
            Progress(len(rows.positives), "classes", show=self.progress) as progress,
            one_thread(),
        ):
            random = check_random_state(self.random_state)
            self.method_, fit = choose_method(
                self.method, rows, self.share, self.neighbours, settings, random
            )
            for positive in rows.positives:
                fitted.append(fit(positive))
                progress.advance()
        return fitted

    def _keep(self, fitted: list[Fitted]) -> None:
        """Set the fitted attributes; the intercepts include the shift due to `class_weight`."""
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
        """Return the logarithm of the weight of every class in decisions (`class_weight`)."""
        if not isinstance(self.class_weight, str):
            return self._log_weights
        found = -np.log(self.shares_)
        found[-len(fitted) :] -= [one.even - logit(one.share) for one in fitted]
        return np.asarray(found)

    def _rows(self, X: Any, reset: bool) -> Any:
        if is_dask(X):
            return self._chunked(X, reset)
        kinds = [np.float64, np.float32]
        matrix = self._numbers(X, reset, dtype=kinds, ensure_all_finite=False)
        return self._complete(X, matrix, reset)

    def _chunked(self, X: Any, reset: bool) -> Any:
        if X.ndim != 2:
            raise InvalidInput("X", X.shape, "must have two dimensions")
        if reset and self.neighbours is True:
            raise InvalidInput("neighbours", True, 'must be False or "auto" for a Dask array')
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif X.shape[1] != self.n_features_in_:
            raise InvalidInput("X", X.shape, f"must have {self.n_features_in_} features")
        return X

    def _scores(self, matrix: Any) -> Array:
        return np.asarray(matrix @ self.coef_.T) + self.intercept_

    def _probabilities(self, matrix: Any) -> Array:
        positive = expit(self._scores(matrix) - self._shift)
        if positive.shape[1] == 1:
            return positive
        return np.asarray(positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300))


def _check_neighbours(neighbours: Any, method: str) -> None:
    if not (isinstance(neighbours, bool) or neighbours == "auto"):
        raise InvalidInput("neighbours", neighbours, 'must be "auto", True or False')
    if neighbours is True and method != "anchored":
        accepted = f"must not be True with method={method!r} (used by 'anchored')"
        raise InvalidInput("neighbours", neighbours, accepted)


def _check_share(share: Any) -> None:
    accepted = 'must be "estimated", "unlabeled", a number between 0 and 1, or a dictionary of them'
    if isinstance(share, str):
        if share not in ("estimated", "unlabeled"):
            raise InvalidInput("share", share, accepted)
        return
    for value in share.values() if isinstance(share, dict) else (share,):
        number("share", value, lambda x: 0 < x < 1, accepted)
