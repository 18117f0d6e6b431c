r"""The equations of one step as an object: Newton's method on them, and where it can start.

This is the way of steps that `march` does not solve: losses without compiled averages, covariances
without common axes, and steps that need a slower and surer way (`solver`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...arrays import Array
from ..averages.batch import At, Batch, Labelling
from ..geometry.modes import BIAS, FIRST
from ..tolerances import (
    BACK_TO_ROUGH,
    DAMPED,
    LARGEST_LOG,
    NO_UPDATE,
    ROUGH,
    START_RULE,
    STILL,
)
from .equations import assemble, newton_step
from .newton import anchor_of, enough_of_rough
from .starts import CHANGES, SETTLED, raise_stiffness, shrunk_unknowns


class Algebra(Protocol):
    """The linear half of a step, from the labelling weights of one step to the fields of the
    next.
    """

    groups: int

    def fields(self, x: Array, ridge: float, gamma: float, anchor: float) -> Array:
        """Values (column 0) and derivatives of m - a m', psi - a, noise, c; see `modes`."""
        ...

    @property
    def softness(self) -> Array:
        r"""$q'_k/|\beta'|^2$: the variance of each group that the old weights see (at step 0 the
        mean variance).
        """
        ...

    @property
    def length(self) -> float:
        r"""$|\mu|$."""
        ...

    def chain(self, x: Array, ridge: float, gamma: float) -> tuple[Array, Array]:
        """By what the old weights live on in the new ones, and the response of the new ones."""
        ...

    def advance(self, x: Array, ridge: float, gamma: float) -> tuple[Any, Array]:
        r"""The new law of the weights, and ($|\beta|^2$, its part off the mean, $\beta\cdot\beta'$,
        tr G / N).
        """
        ...


class Averages(Protocol):
    """The averages of every group of samples at given fields."""

    labels: Labelling
    batch: Batch

    def at(self, at: At, exponent: float, with_loss: bool = False) -> tuple[Any, int] | None:
        """A record of averages for every group, nodes used; None if they would be too many or are
        not finite.
        """
        ...

    def start(self, fixed_bias: float, x: Array) -> float:
        r"""Fill x with the state for $\lambda \to \infty$ (`starts`); the mass of the rarer class
        among the selected labels, NaN if nothing is selected.
        """
        ...


class Evaluation(NamedTuple):
    """Fields and equations at a point."""

    fields: Array
    system: Array
    anchor: float


class Stage:
    """The equations of one step.

    Arguments:
        t: index of the step.
        algebra, averages: its two halves.
        ridge: of the step.
        fix_bias: whether the bias stays what it was.
    """

    def __init__(self, t: int, algebra: Algebra, averages: Averages, ridge: float, fix_bias: bool):
        self.t, self.algebra, self.averages, self.ridge = t, algebra, averages, ridge
        labels = self.labels = averages.labels
        self.fixed_bias = (1.0 - labels.gamma) * labels.bias if fix_bias and t > 0 else math.nan
        self.groups, self.evaluations, self.used = algebra.groups, 0, 0

    def evaluate(self, x: Array, ridge: float, exponent: float) -> Evaluation | None:
        """Fields, residuals and Jacobian at x; None if they are not finite, or the rule is too
        long.
        """
        self.evaluations += 1
        gamma = self.labels.gamma
        anchor = anchor_of(x, ridge, gamma, self.algebra.softness)
        fields = self.algebra.fields(x, ridge, gamma, anchor)
        if not np.isfinite(fields).all():
            return None
        found = self.averages.at(At(float(x[BIAS]), fields, anchor), exponent)
        if found is None:
            return None
        moments, self.used = found
        system = np.empty((x.size, x.size + 1))
        fixed = (anchor, self.fixed_bias, float(self.t == 0))
        assemble(x, fields, moments, self.labels, fixed, system)
        return Evaluation(fields, system, anchor) if np.isfinite(system).all() else None

    def step_from(self, x: Array, ridge: float, exponent: float) -> tuple[float, float, Array]:
        """Relative size of the Newton step from x (infinite if there is none), the factor that
        bounds it, and the step.
        """
        at = self.evaluate(x, ridge, exponent)
        if at is None:
            return math.inf, 0.0, np.zeros(x.size)
        softness = self.algebra.softness
        size, factor = newton_step(x, at.fields, self.labels, at.anchor, ridge, softness, at.system)
        return size, factor, at.system[:, 0]

    def newton(
        self,
        start: Array,
        ridge: float,
        exponent: float,
        enough: float,
        limit: int = 40,
        may_be_rough: bool = True,
    ) -> Array | None:
        """Newton's method with a bounded step, on a rough rule while the root is far; None if it
        does not settle.

        Without ridge to speak of the equations may be nearly singular, and the error of a rough
        rule leads astray: where the start is near, or certainty matters, it is not used.
        """
        x, last = start.copy(), math.inf
        may_be_rough = may_be_rough and exponent > ROUGH
        rough = may_be_rough
        for _ in range(limit):
            size, factor, step = self.step_from(x, ridge, ROUGH if rough else exponent)
            if not size < math.inf:
                return None
            x += (factor if size > DAMPED else 1.0) * step
            if not np.abs(x[FIRST + self.groups :]).max() < LARGEST_LOG:
                return None
            if size <= enough and not rough:
                return x
            if rough:
                rough = not enough_of_rough(size, last)
            else:
                rough = may_be_rough and size > BACK_TO_ROUGH
            last = size
        return None

    def mean_loss(self, x: Array, exponent: float) -> float:
        """Mean loss of a selected training sample at the solution x."""
        fields = self.algebra.fields(x, self.ridge, self.labels.gamma, 0.0)
        found = self.averages.at(At(float(x[BIAS]), fields, 0.0), exponent, with_loss=True)
        if found is None:
            return math.nan
        moments = found[0]
        return float(moments.share @ moments.loss / moments.share.sum())

    @property
    def log_q(self) -> slice:
        """Where the logarithms of the conjugates Q are among the unknowns."""
        return slice(FIRST + self.groups, FIRST + 2 * self.groups)

    def label_mass(self) -> float:
        """The mass of the rarer class among the selected labels; NaN if nothing is selected."""
        return self.averages.start(self.fixed_bias, self._blank())

    def explicit(self) -> Array:
        r"""The state for $\lambda \to \infty$: the averages of a model without weights."""
        x = self._blank()
        self.averages.start(self.fixed_bias, x)
        raise_stiffness(x, self.ridge, self.algebra.softness)
        return x

    def no_update(self) -> Array | None:
        r"""The state for $\lambda \to 0$, where nothing moves; None if the ridge is not small."""
        gamma, ridge, groups = self.labels.gamma, self.ridge, self.groups
        if self.t == 0 or gamma == 0:
            return None
        x = self._blank()
        x[self.log_q] = self.explicit()[self.log_q]
        x[BIAS] = 0.0 if math.isnan(self.fixed_bias) else self.fixed_bias
        strengths, noise = slice(1 + 2 * groups, None), slice(1 + groups, 1 + 2 * groups)
        for _ in range(CHANGES):
            fields = self.algebra.fields(x, ridge, gamma, gamma)
            still = np.zeros_like(fields)
            still[strengths], still[noise, 0] = fields[strengths], STILL * self.labels.roots
            found = self.averages.at(At(float(x[BIAS]), still, gamma), START_RULE)
            if found is None:
                return None
            target = np.log(found[0].share * found[0].k)
            done = float(np.abs(target - x[self.log_q]).max()) < SETTLED
            x[self.log_q] = target
            small = ridge / (ridge + float(np.exp(target) @ self.algebra.softness))
            if small > NO_UPDATE:
                return None
            if done:
                fields = self.algebra.fields(x, ridge, gamma, gamma)
                shrunk_unknowns(x, ridge, small, self.labels, self.algebra.length**2, fields)
                return x
        return None

    def starts(self, guess: Array | None) -> Iterator[tuple[str, Array]]:
        """Named starting points, the best first."""
        if guess is not None:
            yield "predicted", guess
        still = self.no_update()
        if still is not None:
            yield "no update", still
        yield "explicit", self.explicit()

    def _blank(self) -> Array:
        return np.zeros(FIRST + 3 * self.groups)
