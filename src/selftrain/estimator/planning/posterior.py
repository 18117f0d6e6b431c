r"""Posterior of two errors and their difference, from held-out labels and unlabelled samples.

Every sample falls into one of four cells, by the classes that baseline and candidate predict. The
size of a cell, $f_j$, is counted on the unlabelled samples; the probability that a sample in it is
positive, $q_j$, is learned from held-out labelled samples, a Beta law for each cell. Errors are
those of the unlabelled samples themselves, $n_j$ of which are in the cell: the proportion $r_j$ of
positive ones is a binomial count over $n_j$. All else follows (post-stratification): the class
proportion is $\pi = \sum_j f_j r_j$, a model misses $\sum_{\text{predicted negative}} f_j r_j/\pi$
of the positive samples, and so on. Where the models agree their errors cannot differ: the gain
comes from the two cells of disagreement alone.

The count matters: models often disagree on ten samples, all of which one of them gets right. A
continuous law of $r_j$ gives no weight to 0 and 1, so its interval would exclude those ends.

A second source is plain cross-validation, which knows nothing of the unlabelled samples. If
labelled samples are drawn like the others, both say the same. What they differ by beyond chance
is added to the spread.

A posterior gives one of three answers. "do": degradation and guessing are unlikely, and some gain
is expected. "do not": a worthwhile gain is unlikely. "cannot tell": neither; then more labels
decide, and simulated labels say how many.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from ...arrays import Array

DRAWS = 4000
LEVEL = 0.9

COUNTED = 0.45
"""Weight of a held-out sample: the folds share samples, and the error of the one fit that will be
used differs from the average over fits that cross-validation estimates. With weight 1 the intervals
covered too rarely (docs/plan.md)."""

AGREED_ERRORS = (0.003, 0.01, 0.03, 0.1, 0.3)
"""Prior errors of models that agree, for balanced classes: equally likely before labels are
seen."""

FAVOUR = 0.65
"""Prior probability that the candidate is right where the models disagree."""

STRENGTH = (1.0, 2.0, 2.0, 1.0)
"""Strength of the prior in samples of the rarer class; of the other in proportion to its size."""


FINEST = 0.005
"""Errors that differ by less than this cannot be told apart by so few labels: without it intervals
missed errors of exactly 0."""

CHANCE = 2.0
"""Standard errors that two sources may differ by chance."""

DEGRADED = 0.02
"""An error larger than that of the supervised baseline by more than this is a degradation."""

WORTH = 0.01
"""A gain below this is not worth another model."""

EXPECTED = 0.005
"""Smallest expected gain for the advice "do": half a point."""

RISK = 0.05
"""Accepted posterior probability that "do" degrades the error."""

GUESSING = 0.05
"""Accepted probability that the candidate is no better than guessing."""

MISSED = 0.1
"""Accepted probability that "do not" misses a gain worth having."""

LIKELY = 2 / 3
"""More labels suffice if this fraction of simulated ones ends in "do" or "do not"."""

NUMBERS: tuple[int, ...] = tuple(
    digit * int(10**power) for power in range(1, 6) for digit in (1, 2, 4, 7)
)
"""Numbers of labels that are tried."""

SIMULATED, INNER = 100, 400
"""Simulated sets of labels, and draws to judge each."""

Flags = NDArray[np.bool_]
Answer = Literal["do", "do not", "cannot tell"]


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


def error_interval(draws: Array) -> Interval:
    """Return the interval of an error, its ends rounded outwards to half a point."""
    told = interval(draws)
    low, high = np.floor(told.low / FINEST) * FINEST, np.ceil(told.high / FINEST) * FINEST
    return told._replace(low=float(low), high=float(high))


class Cells(NamedTuple):
    """The four cells: both negative, only the candidate positive, only the baseline, both.

    Attributes:
        sizes: proportions of the unlabelled samples.
        positive, negative: numbers of held-out labelled samples of each class.
        rows: number of unlabelled samples.
    """

    sizes: Array
    positive: Array
    negative: Array
    rows: int

    @property
    def counts(self) -> NDArray[np.intp]:
        """Unlabelled samples in each cell, at least one."""
        return np.asarray(np.maximum(np.rint(self.sizes * self.rows), 1), dtype=np.intp)

    @property
    def share(self) -> Array:
        """Proportion of the positive class among the labelled samples, never 0 or 1."""
        positive, negative = (
            counts.sum(-1, keepdims=True) for counts in (self.positive, self.negative)
        )
        return np.asarray((positive + 1) / (positive + negative + 2))


class Posterior(NamedTuple):
    """Draws of the class proportion, of both balanced errors, and of baseline minus candidate."""

    share: Array
    baseline: Array
    candidate: Array
    gain: Array


def positive_shares(
    cells: Cells, random: np.random.Generator, size: tuple[int, ...], counted: float = COUNTED
) -> Array:
    """Draw the proportion of positive samples in every cell (last axis); `counted` is the weight
    of a held-out sample.
    """
    seen = counted * cells.positive, counted * cells.negative
    priors = [_prior(cells, error) for error in AGREED_ERRORS]
    evidence = np.stack(
        [
            (betaln(a + seen[0], b + seen[1]) - betaln(a, b))[..., [0, 3]].sum(axis=-1)
            for a, b in priors
        ],
        axis=-1,
    )
    chosen = np.argmax(evidence + random.gumbel(size=(*size, len(priors))), axis=-1)
    positive, negative = (
        np.take_along_axis(
            np.broadcast_to(np.stack(laws, axis=-1), (*size, 4, len(priors))),
            chosen[..., None, None],
            axis=-1,
        )[..., 0]
        for laws in zip(*priors, strict=True)
    )
    counts = cells.counts
    return random.binomial(counts, random.beta(positive + seen[0], negative + seen[1])) / counts


def _prior(cells: Cells, error: float) -> tuple[Array, Array]:
    """Return the Beta laws of the cells if models that agree are wrong with this probability."""
    even, strength = np.array([error, FAVOUR, 1 - FAVOUR, 1 - error]), np.array(STRENGTH)
    rarer = np.minimum(cells.share, 1 - cells.share)
    return strength * even * cells.share / rarer, strength * (1 - even) * (1 - cells.share) / rarer


def posterior(sizes: Array, shares: Array) -> Posterior:
    """Return the errors from cell sizes and proportions of positive samples (last axis: cells)."""
    positive, negative = sizes * shares, sizes * (1 - shares)
    share = positive.sum(axis=-1)
    in_positive = positive / np.maximum(share, 1e-300)[..., None]
    in_negative = negative / np.maximum(1 - share, 1e-300)[..., None]
    return _errors(share, in_positive, in_negative)


def _errors(share: Array, in_positive: Array, in_negative: Array) -> Posterior:
    """Return the errors from the proportions of each class that fall into the cells."""
    baseline, candidate = (
        0.5 * (in_positive[..., missed].sum(axis=-1) + in_negative[..., wrong].sum(axis=-1))
        for missed, wrong in (([0, 1], [2, 3]), ([0, 2], [1, 3]))
    )
    return Posterior(share, baseline, candidate, baseline - candidate)


def by_cells(cells: Cells, random: np.random.Generator, counted: float = COUNTED) -> Posterior:
    """Draw errors from held-out labels and the sizes of the cells."""
    return posterior(cells.sizes, positive_shares(cells, random, (DRAWS,), counted))


def by_labels(cells: Cells, random: np.random.Generator, counted: float = COUNTED) -> Posterior:
    """Draw errors from held-out labels alone; the prior of each class counts as one sample."""
    disputed = float(cells.sizes[1] + cells.sizes[2])
    error = float(np.median(AGREED_ERRORS))
    right, wrong = (1 - disputed) * (1 - error), (1 - disputed) * error
    own = np.array([wrong, FAVOUR * disputed, (1 - FAVOUR) * disputed, right]) + 1e-3
    in_positive = random.dirichlet(counted * cells.positive + own, DRAWS)
    in_negative = random.dirichlet(counted * cells.negative + own[::-1], DRAWS)
    return _errors(np.full(DRAWS, cells.share[0]), in_positive, in_negative)


def widened(main: Posterior, other: Posterior, random: np.random.Generator) -> Posterior:
    """Return the draws of `main`, spread by what both sources differ by beyond chance."""

    def spread(own: Array, others: Array) -> Array:
        apart = float(np.mean(own) - np.mean(others)) ** 2
        excess = apart - CHANCE**2 * float(np.var(own) + np.var(others))
        noise = np.sqrt(max(excess, 0.0)) * random.standard_normal(own.shape)
        return np.asarray(own + noise)

    baseline, candidate = (
        np.clip(spread(getattr(main, name), getattr(other, name)), 0.0, 1.0)
        for name in ("baseline", "candidate")
    )
    return Posterior(main.share, baseline, candidate, spread(main.gain, other.gain))


class Odds(NamedTuple):
    """Probabilities of degradation, of a worthwhile gain and of guessing, and the expected gain."""

    degradation: Array
    worthwhile: Array
    guessing: Array
    expected: Array


def odds_of(found: Posterior) -> Odds:
    """Return the numbers that decide, along the last axis of the draws."""
    gain = found.gain
    return Odds(
        np.mean(gain < -DEGRADED, axis=-1),
        np.mean(gain > WORTH, axis=-1),
        np.mean(found.candidate >= 0.5, axis=-1),
        np.mean(gain, axis=-1),
    )


def answer(odds: Odds) -> Answer:
    """Return the answer that these odds allow."""
    if _too_little(odds):
        return "do not"
    return "do" if _safe(odds) else "cannot tell"


def decided(odds: Odds) -> Flags:
    """Return where the answer is "do" or "do not"."""
    return _too_little(odds) | _safe(odds)


def _too_little(odds: Odds) -> Flags:
    return np.asarray(odds.worthwhile <= MISSED)


def _safe(odds: Odds) -> Flags:
    clear = (odds.degradation <= RISK) & (odds.guessing <= GUESSING)
    return np.asarray(clear & (odds.expected >= EXPECTED))


def labels_needed(cells: Cells, random: np.random.Generator) -> int | None:
    """Return about how many more labels would decide; None if no number would.

    Proportions of the cells are drawn from the posterior, new labels from these proportions, and
    the answer is recomputed. That the fits themselves improve with labels is neglected, and so is
    the chance that few unlabelled samples in a cell leave: labels show their classes.
    """
    cells = cells._replace(rows=NUMBERS[-1])
    known = positive_shares(cells, random, (SIMULATED,))
    for more in NUMBERS:
        rows = random.multinomial(more, cells.sizes, SIMULATED)
        positive = random.binomial(rows, known)
        wider = cells._replace(
            positive=(cells.positive + positive)[:, None],
            negative=(cells.negative + rows - positive)[:, None],
        )
        shares = positive_shares(wider, random, (SIMULATED, INNER))
        if np.mean(decided(odds_of(posterior(cells.sizes, shares)))) >= LIKELY:
            return more
    return None
