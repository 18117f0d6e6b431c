"""From a posterior of the gain to one of three answers.

"do": harm and guessing are unlikely, and some gain is expected. "do not": a gain worth the trouble
is unlikely. "cannot tell": neither; then more labels decide, and how many is found by imagining
them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from .posterior import Cells, Posterior, positive_shares, posterior

Flags = NDArray[np.bool_]
Answer = Literal["do", "do not", "cannot tell"]

HARM = 0.02
"""An error that is larger by more than this is harm."""

WORTH = 0.01
"""A gain below this is not worth another model."""

EXPECTED = 0.005
"""Smallest expected gain for the advice "do": half a point."""

RISK = 0.05
"""Accepted probability that "do" does harm, as the posterior has it."""

GUESSING = 0.05
"""Accepted probability that self-training is no better than guessing."""

MISSED = 0.1
"""Accepted probability that "do not" misses a gain worth having."""

SURE = 0.8
"""More labels are enough if this share of imagined ones ends in "do" or "do not"."""

IMAGINED, INNER = 100, 400
"""Imagined sets of labels, and draws to judge each."""


class Odds(NamedTuple):
    """Probabilities of harm, of a worthwhile gain and of no more than guessing, and the expected
    gain.
    """

    harm: Array
    worthwhile: Array
    guessing: Array
    expected: Array


def odds_of(found: Posterior) -> Odds:
    """The numbers an answer is made from, along the last axis of the draws."""
    gain = found.gain
    return Odds(
        np.mean(gain < -HARM, axis=-1),
        np.mean(gain > WORTH, axis=-1),
        np.mean(found.trained >= 0.5, axis=-1),
        np.mean(gain, axis=-1),
    )


def answer(odds: Odds) -> Answer:
    """The answer these odds allow."""
    if _too_little(odds):
        return "do not"
    return "do" if _safe(odds) else "cannot tell"


def decided(odds: Odds) -> Flags:
    """Where the answer is "do" or "do not"."""
    return _too_little(odds) | _safe(odds)


def _too_little(odds: Odds) -> Flags:
    return np.asarray(odds.worthwhile <= MISSED)


def _safe(odds: Odds) -> Flags:
    clear = (odds.harm <= RISK) & (odds.guessing <= GUESSING)
    return np.asarray(clear & (odds.expected >= EXPECTED))


def labels_needed(cells: Cells, most: int, random: np.random.Generator) -> int | None:
    """About how many more labels would decide; None if not even `most` would.

    The shares of the cells are drawn from what is known, new labels from these shares, and the
    answer is made again. That the fits themselves get better with labels is left out.
    """
    known = positive_shares(cells, random, (IMAGINED,))
    for more in _numbers(most):
        rows = random.multinomial(more, cells.sizes, IMAGINED)
        positive = random.binomial(rows, known)
        wider = cells._replace(
            positive=(cells.positive + positive)[:, None],
            negative=(cells.negative + rows - positive)[:, None],
        )
        shares = positive_shares(wider, random, (IMAGINED, INNER))
        if np.mean(decided(odds_of(posterior(cells.sizes, shares)))) >= SURE:
            return more
    return None


def _numbers(most: int) -> list[int]:
    """10, 20, 50, 100, ... up to `most`."""
    steps = [digit * 10**power for power in range(1, 9) for digit in (1, 2, 5)]
    return [step for step in steps if step <= most]
