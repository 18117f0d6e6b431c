r"""Errors, gain and share from left-out labelled rows and many unlabelled ones, in one posterior.

Every row falls into one of four cells, by what the supervised and the self-trained rule call it.
How many rows are in a cell, $f_j$, is counted on the unlabelled rows; how likely a row in it is
positive, $q_j$, is learned from left-out labelled rows, a Beta law for each cell. Errors are those
of the unlabelled rows themselves, and $n_j$ of them are in the cell: the share $r_j$ of positive
ones is a binomial count over $n_j$. All else follows (post-stratification): the share of the class
is $\pi = \sum_j f_j r_j$, a rule misses $\sum_{\text{called negative}} f_j r_j/\pi$ of the
positive rows, and so on. Where the rules agree they cannot differ in error: the gain is decided in
the two cells of disagreement alone, and is never larger than those cells.

The count matters: a dispute is often over ten rows, and all of them are right for one rule. A
continuous law of $r_j$ gives no weight to 0 and 1, so its interval leaves out just those ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .evidence import Evidence, Places, Rivals

DRAWS = 4000
LEVEL = 0.9

COUNTED = 0.4
"""A left-out row counts as less than one: the folds share rows, and the error of the one fit that
will be used differs from the average over fits that left-out rows estimate. Intervals of whole rows
covered too rarely (docs/plan.md).
"""

EVEN_ODDS = (0.1, 0.65, 0.35, 0.9)
"""Share of positive rows in each cell, before any is seen, were both classes equally common: rules
that agree are wrong on a tenth, self-training is right on two thirds of what is disputed.
"""

STRENGTH = (1.0, 2.0, 2.0, 1.0)
"""Rows of the rarer class that this belief is worth; of the other as many more as it is more
common.
"""


class Interval(NamedTuple):
    """An estimate with the ends of its 90 % interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


def interval(draws: Array) -> Interval:
    """Mean and central 90 % of draws."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(np.mean(draws)), float(low), float(high))


class Cells(NamedTuple):
    """The four cells (both negative; only self-training positive; only the supervised rule
    positive; both).

    Attributes:
        sizes: shares of the unlabelled rows.
        positive, negative: left-out labelled rows of each class, by weight.
        share: of the positive class, as self-training estimates it.
        rows: how many unlabelled rows there are.
    """

    sizes: Array
    positive: Array
    negative: Array
    share: float
    rows: int

    @property
    def counts(self) -> Places:
        """Unlabelled rows in each cell; one at least, for a cell without any has no weight."""
        return np.asarray(np.maximum(np.rint(self.sizes * self.rows), 1), dtype=np.intp)


@dataclass(frozen=True)
class Posterior:
    """Draws of the share of the positive class and of the balanced errors of both rules."""

    share: Array
    supervised: Array
    trained: Array

    @property
    def gain(self) -> Array:
        """By how much self-training errs less."""
        return self.supervised - self.trained


def cells_of(evidence: Evidence, weights: Array, rows: int) -> Cells:
    """Counts of both kinds; `weights` are those of the unlabelled rows that were read, of `rows`
    in all.
    """
    sizes = np.bincount(_cell(evidence.unlabeled), weights, minlength=4)
    own = _cell(evidence.held_out)
    weights_of_positive = evidence.weights * evidence.classes
    positive = np.asarray(np.bincount(own, weights_of_positive, minlength=4), dtype=float)
    whole = np.asarray(np.bincount(own, evidence.weights, minlength=4), dtype=float)
    return Cells(sizes / sizes.sum(), positive, whole - positive, evidence.share, rows)


def _cell(rivals: Rivals) -> Places:
    return np.asarray(2 * (rivals.supervised > 0) + (rivals.trained > 0), dtype=np.intp)


def positive_shares(
    cells: Cells, random: np.random.Generator, size: tuple[int, ...], counted: float = COUNTED
) -> Array:
    """Draws of the share of positive rows among the unlabelled ones of every cell, the last axis;
    `counted` is what a left-out row counts as.
    """
    even, strength = np.array(EVEN_ODDS), np.array(STRENGTH)
    rarer = min(cells.share, 1 - cells.share)
    positive = counted * cells.positive + strength * even * cells.share / rarer
    negative = counted * cells.negative + strength * (1 - even) * (1 - cells.share) / rarer
    counts = cells.counts
    return random.binomial(counts, random.beta(positive, negative, (*size, 4))) / counts


def posterior(sizes: Array, shares: Array) -> Posterior:
    """What follows from cell sizes and shares of positive rows (last axis: cells)."""
    positive, negative = sizes * shares, sizes * (1 - shares)
    share = positive.sum(axis=-1)
    in_positive = positive / np.maximum(share, 1e-300)[..., None]
    in_negative = negative / np.maximum(1 - share, 1e-300)[..., None]
    errors = [
        0.5 * (in_positive[..., missed].sum(axis=-1) + in_negative[..., wrong].sum(axis=-1))
        for missed, wrong in (([0, 1], [2, 3]), ([0, 2], [1, 3]))
    ]
    return Posterior(share, *errors)
