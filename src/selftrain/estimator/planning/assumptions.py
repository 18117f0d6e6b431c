"""What a plan assumes: that labelled samples were drawn like the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ..blocks import is_sparse
from .inputs import Input
from .posterior import Cells

RARE = 0.01
"""Significance level: what is rarer by chance is a violation."""

PREDICTED = (
    "both models predict the negative class",
    "only the candidate predicts the positive class",
    "only the baseline predicts the positive class",
    "both models predict the positive class",
)
"""The four cells in words, in the order of `Cells`."""

CHOICES = 499
"""Random subsets of the samples that the labelled ones are compared with."""


class Assumption(NamedTuple):
    """One assumption.

    Attributes:
        name: what is assumed.
        holds: whether the data support it.
        found: what was found, in words with numbers.
        effect: what a violation does to the numbers.
    """

    name: str
    holds: bool
    found: str
    effect: str

    def __str__(self) -> str:
        mark = "holds" if self.holds else "VIOLATED"
        tail = "" if self.holds else f" {self.effect}"
        return f"{mark}: {self.name}. {self.found}{tail}"


class Assumptions(tuple[Assumption, ...]):
    """All assumptions; printed, one per line."""

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self)

    __repr__ = __str__

    @property
    def violated(self) -> list[Assumption]:
        """Those that the data do not support."""
        return [each for each in self if not each.holds]


def check(rows: Input, cells: Cells) -> Assumptions:
    """Judge all assumptions."""
    table = _numbers(rows.X)
    judged = [] if table is None else [_same_means(table, rows.codes >= 0)]
    return Assumptions([*judged, _same_cells(cells)])


def _numbers(X: Any) -> Array | None:
    """Return the columns of numbers, standardised; None if there are none (text has no mean) or the
    table is sparse, whose columns are too many to compare.
    """
    if is_sparse(X):
        return None
    table = X.select_dtypes(["number", "bool"]) if hasattr(X, "select_dtypes") else X
    try:
        table = np.array(table, dtype=float)
    except (TypeError, ValueError):
        return None
    if table.ndim != 2:
        return None
    spread = np.nanstd(table, axis=0)
    table = (table - np.nanmean(table, axis=0))[:, spread > 0] / spread[spread > 0]
    return np.nan_to_num(table) if table.size else None


def _same_means(table: Array, labeled: Any) -> Assumption:
    """Test whether labelled samples have the same mean as all samples.

    The distance of the two means is compared with that of random subsets of the same size: a
    closed-form test would be wrong for heavy tails.
    """
    random = np.random.default_rng(0)

    def distance(chosen: Any) -> float:
        return float((table[chosen].mean(axis=0) ** 2).sum())

    own, labels = distance(labeled), int(labeled.sum())
    choices = (random.choice(len(table), labels, replace=False) for _ in range(CHOICES))
    chance = (1 + sum(distance(chosen) >= own for chosen in choices)) / (1 + CHOICES)
    return Assumption(
        "labelled samples are drawn like the others",
        chance > RARE,
        f"The means of {chance:.1%} of random subsets of this size are as far from those of all"
        " samples, or farther.",
        "All errors are then for samples like the labelled ones; the advice may not carry over.",
    )


def _same_cells(cells: Cells) -> Assumption:
    """Compare the cells of held-out samples with those of unlabelled ones, by Pearson's statistic
    and simulation; report the cell that adds most to the statistic.
    """
    seen = cells.positive + cells.negative
    labels = int(seen.sum())
    expected = labels * np.maximum(cells.sizes, 0.5 / cells.rows)
    drawn = np.random.default_rng(0).multinomial(labels, expected / expected.sum(), 4000)

    def distance(counts: Any) -> Array:
        return np.asarray(((counts - expected) ** 2 / expected).sum(axis=-1))

    chance = (1 + np.sum(distance(drawn) >= distance(seen))) / 4001
    cell = int(np.argmax((seen - expected) ** 2 / expected))
    return Assumption(
        "predictions for held-out labelled samples are distributed like those for the others",
        bool(chance > RARE),
        f"Largest difference: {PREDICTED[cell]} for {seen[cell] / labels:.1%} of the held-out and"
        f" {cells.sizes[cell]:.1%} of the unlabelled samples (probability by chance {chance:.2g}).",
        "If classes were chosen when labelling, errors of the plan are uncertain.",
    )
