"""How a step can end: one enumeration, with a sentence each, for every engine and the command
line.
"""

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
    """The ways a step can end. Compiled code returns them too."""

    SOLVED = 0
    COLLAPSED = 1
    EMPTY = 2
    FADED = 3
    OVERFLOW = 4
    UNCONFIRMED = 5

    @property
    def sentence(self) -> str:
        """What happened, for a message."""
        return _SENTENCES[self].replace("{threshold} ", "")

    def error(
        self,
        step: int,
        state: Mapping[str, float] | None = None,
        residual: float = math.nan,
        *,
        threshold: float | None = None,
        hint: str = "",
    ) -> StageError:
        """The typed error of an ending that is neither a solution nor a collapse.

        Arguments:
            step: index t.
            state: the last state, by name.
            residual: relative size of the last Newton step.
            threshold: the threshold that selects nothing, named in the sentence.
            hint: what to try, added to the sentence.
        """
        sentence = self.sentence
        if threshold is not None:
            sentence = _SENTENCES[self].format(threshold=f"{threshold:g}")
        return _ERRORS[self](step, sentence + hint, state or {}, residual)


_SENTENCES = {
    Ending.SOLVED: "the step is solved",
    Ending.COLLAPSED: "the pseudo-labels are all of one class",
    Ending.EMPTY: NOTHING_SELECTED,
    Ending.FADED: "the weights have faded: their norm underflows",
    Ending.OVERFLOW: "the norm of the weights overflows",
    Ending.UNCONFIRMED: "no solution was confirmed on the refined rule",
}

_ERRORS: dict[Ending, type[StageError]] = {
    Ending.EMPTY: EmptySelection,
    Ending.FADED: StateOverflow,
    Ending.OVERFLOW: StateOverflow,
    Ending.UNCONFIRMED: ConvergenceError,
}
