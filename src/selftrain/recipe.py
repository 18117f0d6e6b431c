r"""`Recipe`: the hyperparameters of self-training.

The update of step t is `eq: update of ST` with $\lambda^{(0)} = \lambda_L$, $\lambda^{(t)} =
\lambda_U^{(t)}$, the threshold $\Gamma$ on $|\tilde h|/\sqrt{q^{(t-1)}}$ and the labels
$\sigma(\gamma^{(t)} \tilde h)$. Pseudo-label annealing (`heuristics: annealing`, `eq: annealing
parameter`) is $\gamma^{(t)} = \gamma\,(1 + a t)$; bias fixing (`heuristics: bias fixing`) keeps
$B^{(t)} = B^{(0)}$.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .arrays import Array
from .errors import InvalidInput
from .fields import Portable, Schedule, expand
from .labelers import Labeler, get_labeler

__all__ = ["Recipe", "StepValues"]


class StepValues(NamedTuple):
    """The values of a recipe at steps 1..T, as arrays."""

    lambda_u: Array
    threshold: Array
    sharpness: Array


@dataclass(frozen=True, repr=False)
class Recipe(Portable):
    r"""Hyperparameters of self-training.

    `lambda_u`, `threshold`, `sharpness` and `annealing` are numbers, or sequences with one entry
    per step.

    Arguments:
        lambda_l: ridge of the supervised step, $\lambda_L \ge 0$.
        lambda_u: ridge of the self-training steps, $\lambda_U > 0$.
        threshold: $\Gamma \ge 0$; samples with $|\tilde h| \le \Gamma \sqrt{q'}$ are rejected.
        sharpness: $\gamma > 0$ of the pseudo-labels; `inf` gives hard labels.
        annealing: $a \ge 0$; the sharpness of step t is $\gamma (1 + a t)$.
        fix_bias: whether to keep the bias of step 0.
        labeler: name of a labeler, or a labeler object.

    >>> Recipe(lambda_l=0.05, lambda_u=0.05)  # doctest: +NORMALIZE_WHITESPACE
    Recipe(lambda_l=0.05, lambda_u=0.05, threshold=0, sharpness=1, annealing=0, fix_bias=False,
           labeler='soft')
    """

    lambda_l: float = 0.05
    lambda_u: Schedule = 0.05
    threshold: Schedule = 0.0
    sharpness: Schedule = 1.0
    annealing: Schedule = 0.0
    fix_bias: bool = False
    labeler: str | Labeler = "soft"

    def __post_init__(self) -> None:
        self._put_number("lambda_l")
        self._put_schedules("lambda_u", "threshold", "sharpness", "annealing")
        if not isinstance(self.fix_bias, (bool, np.bool_)):
            raise InvalidInput("fix_bias", self.fix_bias, "must be True or False")
        self._put("fix_bias", bool(self.fix_bias))
        _ = self.label_function  # raises if there is no such labeler

    def _repr_html_(self) -> str:
        from .plots.notebook import recipe_card

        return recipe_card(self)

    @property
    def label_function(self) -> Labeler:
        """The labeler as an object."""
        return get_labeler(self.labeler)

    def at_steps(self, steps: int) -> StepValues:
        """Return the values at steps 1..`steps`, with annealing included in the sharpness."""
        known: tuple[int, StepValues] | None = self.__dict__.get("_at_steps")
        if known is not None and known[0] == steps:
            return known[1]
        annealing = expand("annealing", self.annealing, steps)
        factor = 1.0 + annealing * np.arange(1, steps + 1)
        sharpness = expand("sharpness", self.sharpness, steps) * factor
        sharpness.setflags(write=False)
        values = StepValues(
            expand("lambda_u", self.lambda_u, steps),
            expand("threshold", self.threshold, steps),
            sharpness,
        )
        self._put("_at_steps", (steps, values))
        return values
