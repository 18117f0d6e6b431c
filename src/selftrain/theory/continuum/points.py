r"""A run in continuous time at some times: the quantities that are shown of it.

They are made from $\ln\sqrt q$, the cosine, $1 - M$ and B, not from m and v: those leave the range
of numbers on long paths, the direction and its distance from the best one do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import InvalidInput
from ...observables import generalization_error
from ...problem import Problem
from ..state import State


@dataclass(frozen=True, eq=False)
class Points:
    r"""A path at some times: floats at one time, arrays at several.

    Attributes:
        tau: $\tau = \lambda_U t$.
        m, v, bias: overlap, $q - m^2$, B.
        q: squared norm of the weights.
        cosine: $m/\sqrt q$.
        squared_cosine: $M = m^2/q$.
        one_minus_squared_cosine: $1 - M$, to full relative accuracy.
        bias_to_norm: $B/\sqrt q$, what imbalance inflates.
        error: generalisation error on the test mixture.
    """

    tau: Any
    m: Any
    v: Any
    bias: Any
    q: Any
    cosine: Any
    squared_cosine: Any
    one_minus_squared_cosine: Any
    bias_to_norm: Any
    error: Any

    @property
    def state(self) -> State:
        """The model at this (one) time."""
        return State(float(self.m), float(self.v), float(self.bias))


NAMES = tuple(Points.__dataclass_fields__)[1:]
"""What `Points` has besides the time."""


def points_at(
    problem: Problem, tau: Array, log_norm: Array, cosine: Array, misalignment: Array, bias: Array
) -> Points:
    r"""Points from $\ln\sqrt q$, $m/\sqrt q$, $1 - M$ and B at these times; floats if it is one
    time.
    """
    norm, one = np.exp(log_norm), np.ones(())
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.where(bias == 0, 0.0, bias * np.exp(-log_norm))
    test = problem.test_mixture
    error = generalization_error(cosine, one, ratio, test.rho, test.delta)
    m, v, q = norm * cosine, (norm * np.sqrt(misalignment)) ** 2, np.exp(2 * log_norm)
    values = (tau, m, v, bias, q, cosine, cosine**2, misalignment, ratio, error)
    return Points(*(float(value) if np.ndim(tau) == 0 else value for value in values))


def times_of(tau: Any, accepted: str, until: float = np.inf) -> Array:
    """One time or several, as an array; refused unless all lie between 0 and `until`."""
    try:
        times = np.asarray(tau, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput("tau", tau, accepted) from None
    if times.size == 0 or not np.all((times >= 0) & (times <= until)):
        raise InvalidInput("tau", tau, accepted)
    return times
