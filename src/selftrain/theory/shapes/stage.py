r"""The equations of one step for clusters with a shape: where they can be evaluated, Newton's
method on them, and where it can start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...arrays import Array
from ..tolerances import (
    BACK_TO_ROUGH,
    DAMPED,
    NO_UPDATE,
    ROUGH,
)
from .averages import PointSet
from .compiled import (
    LARGEST_LOG,
    Patience,
    StepSetting,
    Work,
    anchor_of,
    enough_of_rough,
    newton_of_modes,
    newton_to_root,
)
from .equations import Labelling, assemble, newton_step
from .modes import BIAS, FIRST, HAT_M
from .spectral import SpectralStep


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

    def advance(self, x: Array, ridge: float, gamma: float) -> tuple[Any, Array]:
        r"""The new law of the weights, and ($|\beta|^2$, its part off the mean, $\beta\cdot\beta'$,
        tr G / N).
        """
        ...


class Averages(Protocol):
    """The averages of every group of points at given fields."""

    def at(
        self, x: Array, fields: Array, anchor: float, exponent: float, with_loss: bool = False
    ) -> tuple[Any, Array, int] | None:
        """Averages and weights of the groups, nodes used; None if they would be too many or are no
        numbers.
        """
        ...

    def explicit(self) -> tuple[Array, Array, float]:
        """E_k[(s f, g1 f, f^2, k)] of a model without weights, the weights of the groups, and its
        best bias.
        """
        ...

    def label_mass(self) -> float:
        """The share of the rarer class among the selected labels; NaN if nothing is selected."""
        ...


class ShapedEvaluation(NamedTuple):
    """Fields and equations at a point, and the nodes used."""

    fields: Array
    system: Array
    anchor: float
    points: int


class ShapedStage:
    """The equations of one step.

    Arguments:
        t: index of the step.
        algebra, averages: its two halves.
        labels: the labelling model (of zeros at step 0).
        points: the set of points.
        ridge: of the step.
        fix_bias: whether the bias stays what it was.
    """

    def __init__(
        self,
        t: int,
        algebra: Algebra,
        averages: Averages,
        labels: Labelling,
        points: PointSet,
        ridge: float,
        fix_bias: bool,
    ):
        self.t, self.algebra, self.averages = t, algebra, averages
        self.labels, self.points, self.ridge = labels, points, ridge
        self.fixed_bias = (1.0 - labels.gamma) * labels.bias if fix_bias and t > 0 else math.nan
        self.groups, self.evaluations, self.used = algebra.groups, 0, 0

    def evaluate(self, x: Array, ridge: float, exponent: float) -> ShapedEvaluation | None:
        """Fields, residuals and Jacobian at x; None if they are not numbers, or the rule is too
        long.
        """
        self.evaluations += 1
        gamma = self.labels.gamma
        anchor = anchor_of(x, ridge, gamma, self.algebra.softness)
        fields = self.algebra.fields(x, ridge, gamma, anchor)
        if not np.isfinite(fields).all():
            return None
        found = self.averages.at(x, fields, anchor, exponent)
        if found is None:
            return None
        moments, shares, self.used = found
        system = np.empty((x.size, x.size + 1))
        fixed = (anchor, self.fixed_bias, float(self.t == 0))
        assemble(x, fields, moments, shares, self.labels, fixed, system)
        if not np.isfinite(system).all():
            return None
        return ShapedEvaluation(fields, system, anchor, self.used)

    @property
    def log_q(self) -> slice:
        """Where the logarithms of the conjugates Q are among the unknowns."""
        return slice(FIRST + self.groups, FIRST + 2 * self.groups)

    @property
    def log_chi(self) -> slice:
        """The same for the conjugates chi."""
        return slice(FIRST + 2 * self.groups, FIRST + 3 * self.groups)

    @property
    def hat_t(self) -> slice:
        """The same for the conjugates T."""
        return slice(FIRST, FIRST + self.groups)

    def step_from(self, x: Array, ridge: float, exponent: float) -> tuple[float, float, Array]:
        """Relative size of the Newton step from x (infinite if there is none), the factor that
        bounds it, and the step.
        """
        step = np.empty(x.size)
        at = self.evaluate(x, ridge, exponent)
        if at is None:
            return math.inf, 0.0, step
        return *newton_step(x, at.fields, self.labels, at.anchor, at.system, step), step

    def newton(
        self,
        start: Array,
        ridge: float,
        exponent: float,
        enough: float,
        limit: int = 40,
        near: bool = False,
    ) -> Array | None:
        """Newton's method with a bounded step, on a rough rule while the root is far; None if it
        does not settle.
        """
        x, last = start.copy(), math.inf
        rough = not near and exponent > ROUGH
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
                rough = exponent > ROUGH and size > BACK_TO_ROUGH
            last = size
        return None

    def explicit(self, ridge: float) -> Array:
        r"""The state for $\lambda \to \infty$: the averages of a model without weights."""
        averages, shares, bias = self.averages.explicit()
        sf, gf, ff, k = averages.T
        gamma = self.labels.gamma
        x = np.zeros(FIRST + 3 * self.groups)
        x[HAT_M] = -float(shares @ sf)
        x[BIAS] = bias - gamma * self.labels.bias
        if self.t > 0:
            x[self.hat_t] = gamma * shares * k + shares * gf / self.labels.roots
        x[self.log_q] = np.log(shares * k)
        x[self.log_chi] = np.log(shares * ff + 1e-290)
        return x

    def no_update(self) -> Array | None:
        r"""The state for $\lambda \to 0$, where nothing moves; None if the ridge is not small."""
        gamma, ridge = self.labels.gamma, self.ridge
        if self.t == 0 or gamma == 0:
            return None
        averages, shares, _ = self.averages.explicit()
        x = np.zeros(FIRST + 3 * self.groups)
        x[self.log_q] = np.log(shares * averages[:, 3])
        x[BIAS] = self.fixed_bias if not math.isnan(self.fixed_bias) else 0.0
        rows = slice(1 + 2 * self.groups, 1 + 3 * self.groups)
        noise = slice(1 + self.groups, 1 + 2 * self.groups)
        for _ in range(30):
            fields = self.algebra.fields(x, ridge, gamma, gamma)
            still = np.zeros_like(fields)
            still[rows], still[noise, 0] = fields[rows], 1e-9 * self.labels.roots
            found = self.averages.at(x, still, gamma, ROUGH)
            if found is None:
                return None
            target = np.log(found[1] * found[0].k)
            done = float(np.abs(target - x[self.log_q]).max()) < 1e-3
            x[self.log_q] = target
            stiffness = float(np.exp(target) @ self.algebra.softness)
            small = ridge / (ridge + stiffness)
            if small > NO_UPDATE:
                return None
            if done:
                break
        else:
            return None
        fields = self.algebra.fields(x, ridge, gamma, gamma)
        width = -np.diagonal(fields[rows, 1 + FIRST + self.groups : 1 + FIRST + 2 * self.groups])
        x[HAT_M] = 0.3 * ridge * gamma * self.labels.m / self.algebra.length**2
        spread = (0.5 * small * gamma * self.labels.roots) ** 2
        x[self.log_chi] = np.log(spread * np.exp(x[self.log_q]) / width + 1e-290)
        return x

    def starts(self, guess: Array | None) -> Iterator[tuple[str, Array]]:
        """Named starting points, the best first."""
        if guess is not None:
            yield "predicted", guess
        still = self.no_update()
        if still is not None:
            yield "no update", still
        yield "explicit", self.explicit(self.ridge)


class CompiledStage(ShapedStage):
    """The same with a compiled Newton step, for logistic loss and diagonal covariances.

    Arguments:
        work: arrays to write to, shared by the steps of a run.
        given: as of a `ShapedStage`.
    """

    algebra: SpectralStep

    def __init__(self, work: Work, *given: Any):
        super().__init__(*given)
        self.work = work
        algebra, first = self.algebra, float(self.t == 0)
        self.setting = StepSetting(
            algebra.noise,
            algebra.old,
            self.labels,
            self.points,
            algebra.softness,
            self.fixed_bias,
            first,
        )

    def step_from(self, x: Array, ridge: float, exponent: float) -> tuple[float, float, Array]:
        """As of a `ShapedStage`."""
        self.evaluations += 1
        used, size, factor = newton_of_modes(x, ridge, exponent, self.setting, self.work)
        self.used = used or self.used
        return size, factor, self.work.step

    def newton(
        self,
        start: Array,
        ridge: float,
        exponent: float,
        enough: float,
        limit: int = 40,
        near: bool = False,
    ) -> Array | None:
        """As of a `ShapedStage`."""
        x, patience = start.copy(), Patience(exponent, enough, limit, float(near))
        settled, evaluations, used = newton_to_root(x, ridge, patience, self.setting, self.work)
        self.evaluations += evaluations
        self.used = used or self.used
        return x if settled else None
