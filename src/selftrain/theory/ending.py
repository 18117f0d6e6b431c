"""How a step can end: one enumeration for all engines, with the errors and messages of failures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum

from ..errors import (
    NOTHING_SELECTED,
    ConvergenceError,
    EmptySelection,
    StageError,
    StateOverflow,
)


class Ending(IntEnum):
    """The ways a step can end. Compiled code returns them as integers."""

    SOLVED = 0
    COLLAPSED = 1
    EMPTY = 2
    FADED = 3
    OVERFLOW = 4
    UNCONFIRMED = 5

    def error(
        self,
        step: int,
        state: Mapping[str, float] | None = None,
        residual: float = math.nan,
        *,
        threshold: float | None = None,
        hint: str = "",
    ) -> StageError:
        """Return the exception of a step that failed.

        Arguments:
            step: index t.
            state: the last state, by name.
            residual: relative size of the last Newton step.
            threshold: the threshold that selects no sample, for the message of EMPTY.
            hint: what to try, appended to the message.
        """
        kind, sentence = _ERRORS[self]
        named = "" if threshold is None else f"{threshold:g} "
        sentence = sentence.replace("{threshold} ", named)
        return kind(step, sentence + hint, state or {}, residual)


_ERRORS: dict[Ending, tuple[type[StageError], str]] = {
    Ending.EMPTY: (EmptySelection, NOTHING_SELECTED),
    Ending.FADED: (StateOverflow, "the weights have faded: their norm underflows"),
    Ending.OVERFLOW: (StateOverflow, "the norm of the weights overflows"),
    Ending.UNCONFIRMED: (ConvergenceError, "no solution was confirmed on the refined rule"),
}
"""The exception and message of every ending that is neither a solution nor a collapse."""
