"""Cross-validation of two models: each labelled sample is judged by fits without its label.

Both models are fitted to the same folds, so their mistakes are compared sample by sample. A
held-out sample joins the unlabelled ones, as if it had no label; the samples stay the same,
and all fits share what does not depend on labels (`same_samples.py`). How often the models disagree
is counted on the many unlabelled samples; only who is right needs labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array
from ..same_samples import Results
from .inputs import Flags, Input
from .models import Pair, fit, positive
from .posterior import Cells

FOLDS, FEW_LABELS, FEWER_FOLDS = 10, 60, 5
"""Folds of the labelled samples, number of labels up to which there are so many, and folds of more
labels, whose fits lose less by a fifth of them."""


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
