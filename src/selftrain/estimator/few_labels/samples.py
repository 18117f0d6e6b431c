"""The samples of a fit as the scores of a table see them: distinct, labelled or not, with folds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ..folds import assign_folds
from ..prepared import different_rows
from ..same_samples import per_samples


class Samples(NamedTuple):
    """Dense samples; equal labelled ones are one of their total weight.

    Attributes:
        rows: all samples.
        codes: class of each, -1 if unlabelled.
        weights: how often each was given.
        folds: fold of each labelled sample, in their order.
        classes: number of classes.
    """

    rows: Array
    codes: Array
    weights: Array
    folds: Array
    classes: int

    @property
    def known(self) -> Any:
        """Positions of the labelled samples."""
        return np.flatnonzero(self.codes >= 0)

    @property
    def unknown(self) -> Any:
        """Positions of the unlabelled samples."""
        return np.flatnonzero(self.codes < 0)

    @property
    def positives(self) -> list[int]:
        """Classes that are scored against the rest; only the second of two."""
        return [1] if self.classes == 2 else list(range(self.classes))

    @property
    def targets(self) -> Array:
        """Classes of the labelled samples, 0 or 1: a column per class against the rest."""
        own = self.codes[self.known]
        return np.column_stack([(own == positive) * 1.0 for positive in self.positives])

    def usable_folds(self) -> list[int]:
        """Return the folds without which every class still has a labelled sample."""
        own = self.codes[self.known]
        return [
            int(fold)
            for fold in np.unique(self.folds)
            if len(np.unique(own[self.folds != fold])) == self.classes
        ]

    def without(self, fold: int) -> Array:
        """Return the codes with the labels of a fold hidden."""
        codes = self.codes.copy()
        codes[self.known[self.folds == fold]] = -1
        return codes


def distinct_samples(
    rows: Array, codes: Array, classes: int, random: np.random.RandomState
) -> Samples:
    """Merge equal labelled samples and assign folds, by content rather than position.

    Samples keep their order, so that it does not depend on which of them are labelled.
    """
    known = np.flatnonzero(codes >= 0)
    first, mass = different_rows(rows[known], codes[known], np.ones(len(known)))
    weights = np.where(codes < 0, 1.0, 0.0)
    weights[known[first]] = mass
    used = weights > 0
    spread = _spread(rows)
    coordinates = rows[known[first]] / np.where(spread > 0, spread, 1.0)
    folds = assign_folds(coordinates, codes[known[first]], random)
    different = rows if used.all() else rows[used]
    return Samples(different, codes[used], weights[used], folds, classes)


@per_samples
def _spread(rows: Array) -> Array:
    return np.asarray(rows.std(axis=0))
