r"""Posterior of errors, gain and class proportion, from cross-validation and unlabelled samples.

Every sample falls into one of four cells, by the classes that the supervised and the self-trained
rule predict. The size of a cell, $f_j$, is counted on the unlabelled samples; the probability that
a sample in it is positive, $q_j$, is learned from held-out labelled samples, a Beta law for each
cell. Errors are those of the unlabelled samples themselves, $n_j$ of which are in the cell: the
proportion $r_j$ of positive ones is a binomial count over $n_j$. All else follows
(post-stratification): the class proportion is $\pi = \sum_j f_j r_j$, a rule misses
$\sum_{\text{predicted negative}} f_j r_j/\pi$ of the positive samples, and so on. Where the rules
agree their errors cannot differ: the gain comes from the two cells of disagreement alone.

The count matters: rules often disagree on ten samples, all of which one rule gets right. A
continuous law of $r_j$ gives no weight to 0 and 1, so its interval would exclude those ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .evidence import Evidence, Places, Scores

DRAWS = 4000
LEVEL = 0.9

COUNTED = 0.4
"""Weight of a held-out sample: the folds share samples, and the error of the one fit that will be
used differs from the average over fits that cross-validation estimates. With weight 1 the intervals
covered too rarely (docs/plan.md)."""

EVEN_ODDS = (0.1, 0.65, 0.35, 0.9)
"""Prior proportion of positive samples in each cell for balanced classes: rules that agree err on a
tenth, self-training is right on two thirds of what they disagree on."""

STRENGTH = (1.0, 2.0, 2.0, 1.0)
"""Strength of the prior in samples of the rarer class; of the other in proportion to its size."""


class Interval(NamedTuple):
    """An estimate with the ends of its 90 % interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


def interval(draws: Array) -> Interval:
    """Return mean and central 90 % of draws."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(np.mean(draws)), float(low), float(high))


class Cells(NamedTuple):
    """The four cells: both negative, only self-training positive, only supervised positive, both.

    Attributes:
        sizes: proportions of the unlabelled samples.
        positive, negative: held-out labelled samples of each class, by weight.
        share: proportion of the positive class, as self-training estimates it.
        rows: number of unlabelled samples.
    """

    sizes: Array
    positive: Array
    negative: Array
    share: float
    rows: int

    @property
    def counts(self) -> Places:
        """Unlabelled samples in each cell, at least one."""
        return np.asarray(np.maximum(np.rint(self.sizes * self.rows), 1), dtype=np.intp)


@dataclass(frozen=True)
class Posterior:
    """Draws of the proportion of the positive class and of the balanced errors of both rules."""

    share: Array
    supervised: Array
    trained: Array

    @property
    def gain(self) -> Array:
        """Error of the supervised baseline minus that of self-training."""
        return self.supervised - self.trained


def cells_of(evidence: Evidence, weights: Array, rows: int) -> Cells:
    """Count samples by cell; `weights` belong to the unlabelled samples read, of `rows` in all."""
    sizes = np.bincount(_cell(evidence.unlabeled), weights, minlength=4)
    own = _cell(evidence.held_out)
    weights_of_positive = evidence.weights * evidence.classes
    positive = np.asarray(np.bincount(own, weights_of_positive, minlength=4), dtype=float)
    whole = np.asarray(np.bincount(own, evidence.weights, minlength=4), dtype=float)
    return Cells(sizes / sizes.sum(), positive, whole - positive, evidence.share, rows)


def _cell(scores: Scores) -> Places:
    return np.asarray(2 * (scores.supervised > 0) + (scores.trained > 0), dtype=np.intp)


def positive_shares(
    cells: Cells, random: np.random.Generator, size: tuple[int, ...], counted: float = COUNTED
) -> Array:
    """Draw the proportion of positive samples in every cell (last axis); `counted` is the weight
    of a held-out sample.
    """
    even, strength = np.array(EVEN_ODDS), np.array(STRENGTH)
    rarer = min(cells.share, 1 - cells.share)
    positive = counted * cells.positive + strength * even * cells.share / rarer
    negative = counted * cells.negative + strength * (1 - even) * (1 - cells.share) / rarer
    counts = cells.counts
    return random.binomial(counts, random.beta(positive, negative, (*size, 4))) / counts


def posterior(sizes: Array, shares: Array) -> Posterior:
    """Return the errors from cell sizes and proportions of positive samples (last axis: cells)."""
    positive, negative = sizes * shares, sizes * (1 - shares)
    share = positive.sum(axis=-1)
    in_positive = positive / np.maximum(share, 1e-300)[..., None]
    in_negative = negative / np.maximum(1 - share, 1e-300)[..., None]
    errors = [
        0.5 * (in_positive[..., missed].sum(axis=-1) + in_negative[..., wrong].sum(axis=-1))
        for missed, wrong in (([0, 1], [2, 3]), ([0, 2], [1, 3]))
    ]
    return Posterior(share, *errors)
