"""From a posterior of the gain to one of three answers.

"do": degradation and guessing are unlikely, and some gain is expected. "do not": a worthwhile gain
is unlikely. "cannot tell": neither; then more labels decide, and simulated labels say how many.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from .posterior import Cells, Posterior, positive_shares, posterior

Flags = NDArray[np.bool_]
Answer = Literal["do", "do not", "cannot tell"]

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
