r"""A numerical check of Proposition `prop: best direction`: self-training finds the best direction.

In continuous time $d\ln\frac{M}{1-M}/d\tau = C$, so the weights turn to the best direction, $M \to
1$, if and only if the integral of C diverges. The proposition assumes C > 0 (Assumption
`assumption: mhat is positive`). With a trained bias this can be proved: C has the sign of a
covariance of the class s and the logit $\tilde h$ under the weights $k_0(\tilde h)$, which depend
on $\tilde h$ alone, and $E[s \mid \tilde h]$ grows with $\tilde h$ when m > 0. With a fixed bias
the covariance is not centred and C can be negative. A better direction does not imply a smaller
error: while M grows the weights shrink, and with imbalanced classes $|B|/\sqrt q$ grows without
bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import Array
from ...errors import SelfTrainError
from ...problem import Problem
from ...recipe import Recipe
from .continuous_time import LEVELS, follow, unknowns
from .expansion import check_continuous, first_order, start_of
from .path import ContinuumPath, Points

__all__ = ["BestDirection", "best_direction"]

BEYOND, LONGEST = 0.999, 1e7
"""The squared cosine M at which the path ends, and the longest time, in units of the initial time
scale, after which it ends without having reached it.
"""

FARTHER = 0.5 * math.log(10.0)
"""Smallest change of the rapidity, artanh of the cosine, along a path: for an aligned model 1 - M
falls to a tenth.
"""


@dataclass(frozen=True, eq=False)
class BestDirection:
    r"""Whether the weights turn to the best direction, and the growth of the bias meanwhile.

    Attributes:
        path: the path in continuous time.
        proved: whether C > 0 is proved for it: the bias is trained and m > 0 at the start.
    """

    path: ContinuumPath
    proved: bool

    @cached_property
    def points(self) -> Points:
        """The path at the times of the integrator and halfway between them."""
        steps = self.path.tau
        return self.path(np.union1d(steps, 0.5 * (steps[1:] + steps[:-1])))

    @cached_property
    def rates(self) -> Array:
        """C at the times of `points`."""
        return np.array([self.path.first_order(tau).alignment_rate for tau in self.points.tau])

    @property
    def always_positive(self) -> bool:
        """Whether C > 0 at all times of `points` (Assumption `assumption: mhat is positive`)."""
        return bool((self.rates > 0).all())

    @property
    def reached(self) -> bool:
        """Whether M reached 0.99 with m > 0."""
        return self.path.aligned is not None

    @property
    def reversed(self) -> bool:
        """Whether the weights point in the opposite direction at the end, m < 0."""
        return bool(self.points.m[-1] < 0)

    @property
    def time_scale(self) -> float | None:
        r"""The time $\tau_M$ in which the odds M/(1 - M) grow by a factor e, averaged until M =
        0.99.

        For the squared loss C is constant and this is $1/C$, the $\tau_M$ of Prediction `pred:
        squared loss`. None if M = 0.99 is not reached, or exceeded at the start.
        """
        if not self.path.aligned:
            return None
        start = self.path(0.0)
        odds = math.log(LEVELS[1] / (1 - LEVELS[1])) + math.log(start.v / start.m**2)
        return self.path.aligned / odds

    @property
    def bias_to_norm(self) -> tuple[float, float]:
        r"""The ratio $B/\sqrt q$ at the start and at the end."""
        ratio = self.points.bias_to_norm
        return float(ratio[0]), float(ratio[-1])

    def __str__(self) -> str:
        rates, points = self.rates, self.points
        first, last = self.bias_to_norm
        lowest = int(np.argmin(rates))
        bias = "the bias is fixed" if self.path.recipe.fix_bias else "the bias is trained"
        lines = [
            f"M from {points.squared_cosine[0]:.4g} to {points.squared_cosine[-1]:.4g} at tau = "
            f"{self.path.until:.4g}"
            + (f", {LEVELS[1]:g} at tau = {self.path.aligned:.4g}" if self.reached else "")
            + (", facing the wrong way" if self.reversed else ""),
            (
                f"C from {rates[0]:.4g} to {rates[-1]:.4g}, smallest {rates[lowest]:.4g} at tau ="
                f" {points.tau[lowest]:.4g}; {bias}, so C > 0 is"
                f" {'a theorem' if self.proved else 'not guaranteed'}"
            ),
            (
                f"B/|w| from {first:.4g} to {last:.4g}; error from {points.error[0]:.4g} to"
                f" {points.error[-1]:.4g}, smallest {self.path.best.error:.4g} at tau ="
                f" {self.path.best.tau:.4g}"
            ),
        ]
        if self.path.failure is not None:
            lines.append(f"the path ended early: {self.path.failure}")
        return "\n".join(lines)


def best_direction(
    problem: Problem, recipe: Recipe, until: float | None = None, tolerance: float = 1e-8
) -> BestDirection:
    r"""Follow the path in continuous time towards $M = 1$; report C, M and $B/\sqrt q$ along it.

    Arguments:
        problem, recipe: as for `continuum`.
        until: time at which to end; default: when M = 0.999, or, if the start is close to that or
            beyond, when 1 - M is a tenth of its initial value.
        tolerance: accuracy of the path.

    >>> from selftrain import Problem, Recipe
    >>> problem = Problem(alpha_l=0.5, alpha_u=4.0, rho=0.15, delta=1.2, steps=1)
    >>> found = best_direction(problem, Recipe(lambda_l=0.005))
    >>> found.reached, found.always_positive, found.proved
    (True, True, True)
    >>> fixed = best_direction(problem, Recipe(lambda_l=0.005, fix_bias=True))
    >>> fixed.reached, fixed.always_positive, round(float(fixed.rates[0]), 2)
    (True, False, -7.27)
    """
    check_continuous(problem, recipe)
    if until is None:
        start = start_of(problem, recipe)
        rate = first_order(problem, recipe, start).alignment_rate
        if not abs(rate) > 0:
            raise SelfTrainError(f"the direction of the start does not move: C = {rate:g}")
        rapidity = abs(float(unknowns(start)[1]))
        enough = max(math.atanh(math.sqrt(BEYOND)), rapidity + FARTHER)
        path = follow(problem, recipe, LONGEST / abs(rate), tolerance, stop_at=enough)
    else:
        path = follow(problem, recipe, until, tolerance)
    return BestDirection(path, proved=not recipe.fix_bias and path(0.0).m > 0)
