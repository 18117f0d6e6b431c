r"""What nature gives: the mixture, the amounts of data, the number of steps, the loss.

$x = (2y-1) v/\sqrt N + z$ with $\|v\|^2 = N$, $z \sim N(0, \Delta I)$ and $P(y=1) = \rho$
(`eq:data genereation labeled`, `eq:data genereation unlabeled`): $\alpha_L N$ labelled points,
then at every step a fresh batch of $\alpha_U^{(t)} N$ unlabelled ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .errors import InvalidInput
from .fields import Portable, Schedule, expand, number, schedule
from .losses import Loss, get_loss


class Mixture(NamedTuple):
    r"""Two Gaussian clusters: the share $\rho$ of the positive class, the noise variance $\Delta$."""

    rho: float
    delta: float


class Batches(NamedTuple):
    """The unlabelled batches of steps 1, 2, ..., each an array over steps."""

    alpha: Array
    rho: Array
    delta: Array


@dataclass(frozen=True, repr=False)
class Problem(Portable):
    r"""Data and loss of a self-training problem.

    Arguments:
        alpha_l: labelled points per feature, $\alpha_L > 0$.
        alpha_u: unlabelled points per feature in each step, $\alpha_U > 0$; a number or one a step.
        rho: share of the positive class among the labelled points, in (0, 1).
        delta: variance of the noise of the labelled points, $\Delta > 0$.
        steps: number of self-training steps T after the supervised step 0.
        loss: name of a loss, or a loss object ("squared" codes the classes as -1 and +1, so that the
            decision "logit > 0" holds for it too).
        rho_u, delta_u: the same for the unlabelled batches, if they differ (domain shift);
            a number or one a step.
        test: mixture on which the error is measured: `(rho, delta)`, "labeled" or "unlabeled"
            (the batch of the last step). Default: "unlabeled", or "labeled" if `steps` is 0. The paper
            defines it by the labelled law (`eq:data generation generr y`) and computes it with the
            unlabelled one (`eq: macro generalization error`); they differ under domain shift only.

    >>> Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=16)
    Problem(alpha_l=0.5, alpha_u=2, rho=0.4, delta=0.5625, steps=16, loss='logistic')
    """

    alpha_l: float
    alpha_u: Schedule
    rho: float
    delta: float
    steps: int
    loss: str | Loss = "logistic"
    rho_u: Schedule | None = None
    delta_u: Schedule | None = None
    test: str | tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._put("alpha_l", number("alpha_l", self.alpha_l, *_POSITIVE))
        self._put("rho", number("rho", self.rho, *_SHARE))
        self._put("delta", number("delta", self.delta, *_POSITIVE))
        self._put("steps", _whole("steps", self.steps))
        self._put("alpha_u", schedule("alpha_u", self.alpha_u, *_POSITIVE))
        if self.rho_u is not None:
            self._put("rho_u", schedule("rho_u", self.rho_u, *_SHARE))
        if self.delta_u is not None:
            self._put("delta_u", schedule("delta_u", self.delta_u, *_POSITIVE))
        get_loss(self.loss)
        self._put("test", _test(self.test))
        if self.test == "unlabeled" and self.steps == 0:
            raise InvalidInput("test", "unlabeled", "with steps = 0 there is no unlabelled batch")
        _ = self.unlabeled

    @property
    def loss_function(self) -> Loss:
        """The loss as an object."""
        return get_loss(self.loss)

    @cached_property
    def unlabeled(self) -> Batches:
        """alpha, rho and delta of the unlabelled batches, arrays of length `steps`."""
        rho = self.rho if self.rho_u is None else self.rho_u
        delta = self.delta if self.delta_u is None else self.delta_u
        return Batches(
            expand("alpha_u", self.alpha_u, self.steps),
            expand("rho_u", rho, self.steps),
            expand("delta_u", delta, self.steps),
        )

    @property
    def labeled(self) -> Mixture:
        """The mixture of the labelled points."""
        return Mixture(self.rho, self.delta)

    @property
    def test_mixture(self) -> Mixture:
        """The mixture on which the error is measured."""
        if isinstance(self.test, tuple):
            return Mixture(*self.test)
        if self.test == "labeled" or self.steps == 0:
            return self.labeled
        batches = self.unlabeled
        return Mixture(float(batches.rho[-1]), float(batches.delta[-1]))


MOST_STEPS = 10_000_000
_POSITIVE = (lambda value: 0 < value < np.inf, "a finite number > 0 is accepted")
_SHARE = (lambda value: 0 < value < 1, "a number strictly between 0 and 1 is accepted")


def _whole(field: str, value: Any) -> int:
    accepted = f"a whole number from 0 to {MOST_STEPS} is accepted"
    return int(
        number(field, value, lambda entry: 0 <= entry <= MOST_STEPS and entry % 1 == 0, accepted)
    )


def _test(value: Any) -> str | tuple[float, float] | None:
    if value is None or (isinstance(value, str) and value in ("labeled", "unlabeled")):
        return value
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str) and len(value) == 2:
        return (number("test rho", value[0], *_SHARE), number("test delta", value[1], *_POSITIVE))
    raise InvalidInput("test", value, '"labeled", "unlabeled" or a pair (rho, delta) is accepted')
