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
from ..runtime.kernels import kernel
from .tolerances import LARGEST, ONLY_BIAS, REGROWN, SMALLEST


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


@kernel(allocates=False)
def before_step(spread: float, bias: float, fixed_bias: bool, faded: bool) -> Ending:
    r"""How a step ends before it begins, from the largest standard deviation of its old logits
    within a class, and the old bias; SOLVED: it can begin.

    Where nothing but the bias is left, the labelling model knows one class only. With a fixed bias
    the weights may still recover, unless they underflow. `faded` says that the scale of the
    weights is carried apart (`theory.fading`): then FADED and OVERFLOW ask for another scale.
    """
    only_bias = spread < ONLY_BIAS * abs(bias)
    if only_bias and (spread <= SMALLEST or not fixed_bias):
        return Ending.COLLAPSED
    if not spread > SMALLEST:
        return Ending.FADED
    if not spread < (REGROWN if faded else LARGEST):
        return Ending.OVERFLOW
    return Ending.SOLVED
