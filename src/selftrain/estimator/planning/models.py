"""The two models of a plan: defaults, how any classifier is fitted, and their cross-validation.

Each labelled sample is judged by fits without its label. Both models are fitted to the same folds,
so their mistakes are compared sample by sample. A held-out sample joins the unlabelled ones, as if
it had no label; the samples stay the same, and all fits share what does not depend on labels
(`same_samples.py`). How often the models disagree is counted on the many unlabelled samples; only
who is right needs labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from ...arrays import Array
from ...errors import InvalidInput
from ..classifier import SelfTrainingLinearClassifier
from ..few_labels.classifier import FewLabelClassifier
from ..same_samples import Results, same_samples
from ..settings import Settings
from .inputs import Flags, Input
from .posterior import Cells

FOLDS, FEW_LABELS, FEWER_FOLDS = 10, 60, 5
"""Folds of the labelled samples, number of labels up to which there are so many, and folds of more
labels, whose fits lose less by a fifth of them."""


class Pair(NamedTuple):
    """Baseline and candidate: classifiers, predictions, errors or names."""

    baseline: Any
    candidate: Any


def default_baseline(seed: int) -> Any:
    """Return the supervised linear fit, its ridge chosen by cross-validation."""
    settings = Settings(steps=0, metrics=0.0)
    return SelfTrainingLinearClassifier(
        class_weight="balanced", settings=settings, random_state=seed
    )


def default_candidate(seed: int) -> Any:
    """Return the package's classifier for few labels."""
    return FewLabelClassifier(random_state=seed)


def checked(field: str, model: Any) -> Any:
    """Return a classifier, or reject what is none."""
    if isinstance(model, type) or not all(hasattr(model, n) for n in ("fit", "get_params")):
        accepted = "must be a classifier of scikit-learn's conventions (an object, not its class)"
        raise InvalidInput(field, model, accepted)
    return model


def encoded(model: Any, text: list[str]) -> Any:
    """Return a pipeline that one-hot encodes columns of text first."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, text), remainder="passthrough")
    return make_pipeline(columns, model)


def last_step(model: Any) -> Any:
    """Return the classifier itself: the last step of a pipeline, what a search searches."""
    if isinstance(model, Pipeline):
        return last_step(model.steps[-1][1])
    # not the attribute: that of a forest is one of its trees
    inner = model.get_params(deep=False).get("estimator")
    own = _is_semi_supervised(model) or inner is None
    return model if own else last_step(inner)


def _is_semi_supervised(model: Any) -> bool:
    own = type(model).__module__.startswith("sklearn.semi_supervised")
    return own or "unlabeled" in model.get_params(deep=False)


def fit(model: Any, rows: Input, known: Flags, results: Results | None = None) -> Any:
    """Return a clone fitted with the labels of `known` samples.

    A model from `sklearn.semi_supervised`, or with the parameter `unlabeled`, gets all samples;
    any other the known ones alone.

    Arguments:
        results: what earlier fits found out about the samples, for this one and later ones.
    """
    own, last = clone(model), last_step(model)
    with same_samples(results), warnings.catch_warnings():
        # Folds hold few labels of a rare class, which the plan counts itself.
        warnings.simplefilter("ignore", UserWarning)
        if _is_semi_supervised(last):
            return own.fit(rows.X, rows.targets(known, _marker(last_step(own), rows)))
        return own.fit(rows.part(known), rows.names[rows.codes[known]])


def _marker(last: Any, rows: Input) -> Any:
    """Return the marker of unlabelled samples for a model, which is told that of the plan: its own
    may be a class here.
    """
    if "unlabeled" in last.get_params(deep=False):
        last.set_params(unlabeled=rows.marker)
        return rows.marker
    if rows.names.dtype.kind not in "iu" or rows.names.min() < 0:
        accepted = "must be whole numbers >= 0 for the classifiers of sklearn.semi_supervised"
        raise InvalidInput("y", rows.names.tolist(), accepted)
    return -1


def positive(model: Any, rows: Input, which: Flags) -> Flags:
    """Return which of some samples a fitted model calls positive."""
    return np.asarray(model.predict(rows.part(which)) == rows.names[1])


def safe_mode(model: Any) -> Any | None:
    """Return the model with its parameter `safe` set, None if it has none."""
    for name, value in model.get_params().items():
        if name.split("__")[-1] == "safe" and isinstance(value, bool):
            return clone(model).set_params(**{name: True})
    return None


def name_of(model: Any) -> str:
    """Return the name of a classifier, that of its last step if it has several."""
    return type(last_step(model)).__name__


@dataclass(frozen=True)
class Evidence:
    """Which samples both models call positive.

    Attributes:
        classes: of the labelled samples, 0 or 1.
        held_out: of the labelled samples, by fits without their labels.
        unlabeled: of the unlabelled samples, by fits to all labels.
        fitted: these fits.
    """

    classes: Array
    held_out: Pair
    unlabeled: Pair
    fitted: Pair

    def cells(self, rows: int) -> Cells:
        """Count samples by the classes of both models; `rows` are unlabelled in all."""
        sizes = np.bincount(_cell(self.unlabeled), minlength=4)
        own = _cell(self.held_out)
        positive, negative = (
            np.bincount(own[self.classes == label], minlength=4).astype(float) for label in (1, 0)
        )
        return Cells(sizes / sizes.sum(), positive, negative, rows)


def _cell(called: Pair) -> Any:
    return 2 * called.baseline.astype(int) + called.candidate


def number_of_folds(labels: int) -> int:
    """Return the number of folds for so many labels."""
    return FOLDS if labels <= FEW_LABELS else FEWER_FOLDS


def gather(
    rows: Input,
    models: Pair,
    random: np.random.RandomState,
    report: Callable[[], None] = lambda: None,
) -> Evidence:
    """Fit both models to all labels and without every fold; `report` is called after each pair."""
    labeled, results = rows.codes >= 0, Results()
    fitted = Pair(*(fit(model, rows, labeled, results) for model in models))
    unlabeled = Pair(*(positive(model, rows, ~labeled) for model in fitted))
    report()
    called = np.zeros((2, len(rows.codes)), dtype=bool)
    for outside in folds(rows, random):
        known = labeled & ~outside
        for own, model in zip(called, models, strict=True):
            own[outside] = positive(fit(model, rows, known, results), rows, outside)
        report()
    held_out = Pair(*called[:, labeled])
    return Evidence(rows.codes[labeled].astype(float), held_out, unlabeled, fitted)


def folds(rows: Input, random: np.random.RandomState) -> Iterator[Flags]:
    """Yield the samples of each fold, stratified by class.

    Equal samples share a fold, so that none is in a fit and held out of it at once. A class is
    never held out completely.
    """
    labeled = np.flatnonzero(rows.codes >= 0)
    _, first, group = np.unique(rows.contents[labeled], return_index=True, return_inverse=True)
    classes = rows.codes[labeled][first]
    number = number_of_folds(len(labeled))
    found = np.zeros(len(first), dtype=int)
    offset = 0
    for label in np.unique(classes):
        members = random.permutation(np.flatnonzero(classes == label))
        found[members] = (np.arange(len(members)) + offset) % number
        offset += len(members)
    for fold in range(number):
        outside = np.zeros(len(rows.codes), dtype=bool)
        outside[labeled[found[group] == fold]] = True
        left = rows.codes[(rows.codes >= 0) & ~outside]
        if outside.any() and len(np.unique(left)) == 2:
            yield outside
