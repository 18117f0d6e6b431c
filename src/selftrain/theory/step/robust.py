r"""The equations of one step as an object, and their robust solution: Newton's method from several
starting points, then continuation in the ridge.

This is for steps that `march` does not solve: losses without compiled averages, covariances without
common axes, and steps that need a slower and more reliable method. The root is unique
(`equations`), so a Newton step below the tolerance on a refined rule proves it, however it was
found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ..averages.batch import TINY, At
from ..averages.generic.averages import Averages
from ..ending import Ending
from ..geometry.modes import BIAS, FIRST, HAT_M
from ..geometry.space import Algebra
from ..tolerances import (
    ACCEPTED,
    ALTERNATE,
    BACK_TO_ROUGH,
    CONTINUATION_STEP,
    DAMPED,
    LARGEST_LOG,
    LEVELS,
    NO_UPDATE,
    REFINED,
    ROUGH,
    START_RULE,
    STILL,
    last_step_of,
)
from .equations import anchor_of, assemble, enough_of_rough, newton_step, raise_stiffness

CHANGES = 30
"""Largest number of fixed-point iterations for the stiffness of the start without update."""

SETTLED = 1e-3
"""Accuracy of the logarithm of the stiffness in a starting point."""


class StepEquations:
    r"""The equations of one step.

    Arguments:
        t: index of the step.
        algebra: the map from conjugates to weights and fields (`geometry`).
        averages: averages over the batch, the map from fields to conjugates.
        ridge: ridge of the step.
        fix_bias: whether the bias stays that of step 0.
        softness: $q'_k/|\beta'|^2$, the variance of each group along the old weights (at step 0 the
            mean variance).
    """

    def __init__(
        self, t: int, algebra: Algebra, averages: Averages, ridge: float, fix_bias: bool,
        softness: Array,
    ):  # fmt: skip
        self.t, self.algebra, self.averages, self.ridge = t, algebra, averages, ridge
        self.softness = softness
        labels = self.labels = averages.labels
        self.fixed_bias = (1.0 - labels.gamma) * labels.bias if fix_bias and t > 0 else math.nan
        self.groups, self.evaluations, self.used = algebra.groups, 0, 0

    def evaluate(
        self, x: Array, ridge: float, exponent: float
    ) -> tuple[Array, Array, float] | None:
        """Return fields, residuals with Jacobian, and the anchor of the fields at x; None if they
        are not finite, or the rule would have too many nodes.
        """
        self.evaluations += 1
        gamma = self.labels.gamma
        anchor = anchor_of(x, ridge, gamma, self.softness)
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
        return (fields, system, anchor) if np.isfinite(system).all() else None

    def step_from(self, x: Array, ridge: float, exponent: float) -> tuple[float, float, Array]:
        """Return the relative size of the Newton step from x (infinite if there is none), the
        factor that limits it, and the step.
        """
        at = self.evaluate(x, ridge, exponent)
        if at is None:
            return math.inf, 0.0, np.zeros(x.size)
        fields, system, anchor = at
        size, factor = newton_step(x, fields, self.labels, anchor, ridge, self.softness, system)
        return size, factor, system[:, 0]

    def newton(
        self,
        start: Array,
        ridge: float,
        exponent: float,
        enough: float,
        limit: int = 40,
        may_be_rough: bool = True,
    ) -> Array | None:
        """Return the root by Newton's method with limited steps, or None if it does not converge.

        Far from the root a rough rule is used, if `may_be_rough`. With a negligible ridge the
        equations may be nearly singular, and the errors of a rough rule would lead away from the
        root; so it is not used from starts that are near.
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
        """Return the mean loss of the selected training samples at the solution x."""
        fields = self.algebra.fields(x, self.ridge, self.labels.gamma, 0.0)
        found = self.averages.at(At(float(x[BIAS]), fields, 0.0), exponent, with_loss=True)
        if found is None:
            return math.nan
        moments = found[0]
        return float(moments.share @ moments.loss / moments.share.sum())

    @property
    def log_q(self) -> slice:
        """Positions of the logarithms of the conjugates Q among the unknowns."""
        return slice(FIRST + self.groups, FIRST + 2 * self.groups)

    def label_mass(self) -> float:
        """Return the proportion of the rarer class among the selected labels (soft ones count in
        parts); NaN if none is selected.
        """
        return self.averages.start(self.fixed_bias, self._blank())

    def explicit(self) -> Array:
        r"""Return the unknowns for $\lambda \to \infty$, from the averages of a model without
        weights.
        """
        x = self._blank()
        self.averages.start(self.fixed_bias, x)
        raise_stiffness(x, self.ridge, self.softness)
        return x

    def no_update(self) -> Array | None:
        r"""Return the unknowns for $\lambda \to 0$, where the step does not change the weights;
        None if the ridge is not small.
        """
        gamma, ridge, labels = self.labels.gamma, self.ridge, self.labels
        if self.t == 0 or gamma == 0:
            return None
        x = self._blank()
        x[self.log_q] = self.explicit()[self.log_q]
        x[BIAS] = 0.0 if math.isnan(self.fixed_bias) else self.fixed_bias
        _, noise, strength = np.arange(1, 1 + 3 * self.groups).reshape(3, -1)
        for _ in range(CHANGES):
            fields = self.algebra.fields(x, ridge, gamma, gamma)
            still = np.zeros_like(fields)
            still[strength], still[noise, 0] = fields[strength], STILL * labels.roots
            found = self.averages.at(At(float(x[BIAS]), still, gamma), START_RULE)
            if found is None:
                return None
            target = np.log(found[0].share * found[0].k)
            done = float(np.abs(target - x[self.log_q]).max()) < SETTLED
            x[self.log_q] = target
            small = ridge / (ridge + float(np.exp(target) @ self.softness))
            if small > NO_UPDATE:
                return None
            if done:  # guess signal and noise for a relative change `small` of the weights
                fields = self.algebra.fields(x, ridge, gamma, gamma)
                x[HAT_M] = 0.3 * ridge * gamma * labels.m / self.algebra.length**2
                width = -fields[strength, 1 + np.arange(x.size)[self.log_q]]
                change = (0.5 * small * gamma * labels.roots) ** 2
                x[FIRST + 2 * self.groups :] = np.log(change * np.exp(target) / width + TINY)
                return x
        return None

    def starts(self, guess: Array | None) -> Iterator[tuple[str, Array]]:
        """Yield names and values of starting points, the best first."""
        if guess is not None:
            yield "predicted", guess
        still = self.no_update()
        if still is not None:
            yield "no update", still
        yield "explicit", self.explicit()

    def _blank(self) -> Array:
        return np.zeros(FIRST + 3 * self.groups)


class Solution(NamedTuple):
    """Unknowns x of a solved step, and how they were found.

    Attributes:
        start: name of the starting point.
        evaluations: how often the equations were evaluated.
        nodes: of the quadrature in the last evaluation.
        accuracy: relative, of the unknowns.
        exponent: of the quadrature rule on which the step was solved. A finer rule confirmed it.
    """

    x: Array
    start: str
    evaluations: int
    nodes: int
    accuracy: float
    exponent: float


def solve_step(
    equations: StepEquations, exponent: float, tolerance: float, guess: Array | None = None
) -> Solution:
    """Return the root of a step, confirmed on a refined rule, or raise `ConvergenceError`."""
    best, best_accuracy, best_start, best_rule = None, math.inf, "", exponent
    enough, accepted = last_step_of(tolerance), max(ACCEPTED, tolerance)
    for name, x in _attempts(equations, exponent, enough, guess):
        if x is None:
            continue
        for level in range(LEVELS + 1):
            rule = exponent + (level + 1) * REFINED
            accuracy, _, step = equations.step_from(x, equations.ridge, rule)
            if accuracy == math.inf and level == 0:
                # Near kinks of a loss, rounding may prevent so fine a rule. One whose error is
                # smaller by exp(-4) has other nodes, and so reveals 98 % of the error of the first.
                rule = exponent + ALTERNATE
                accuracy, _, step = equations.step_from(x, equations.ridge, rule)
            if accuracy < best_accuracy:
                best, best_accuracy, best_start = x, accuracy, name
                best_rule = exponent + level * REFINED
            if best_accuracy <= tolerance:
                break
            better: Array | None = x + step
            if accuracy > enough:
                better = equations.newton(x, equations.ridge, rule, enough, 8, may_be_rough=False)
            if better is None:
                break
            x = better
        if best_accuracy <= accepted:
            break
    if best is not None and best_accuracy <= accepted:
        return Solution(
            best, best_start, equations.evaluations, equations.used, best_accuracy, best_rule
        )
    hint = ""
    if equations.t == 0 and equations.ridge == 0:
        hint = (
            "; without ridge there may be no unique minimiser, as with fewer samples than features,"
            " or no finite one, as with separable data: use lambda_l > 0"
        )
    residual = best_accuracy if best is not None else math.nan
    raise Ending.UNCONFIRMED.error(equations.t, residual=residual, hint=hint)


def _attempts(
    equations: StepEquations, exponent: float, enough: float, guess: Array | None
) -> Iterator[tuple[str, Array | None]]:
    for name, x in equations.starts(guess):
        limit = 12 if name == "predicted" else 40
        yield name, equations.newton(x, equations.ridge, exponent, enough, limit)
    yield "continuation", _continue_in_ridge(equations, exponent, enough)


def _continue_in_ridge(equations: StepEquations, exponent: float, enough: float) -> Array | None:
    r"""Return the root, followed from large $\lambda$, where it is explicit, down to the ridge of
    the step; None if that fails.
    """
    target = math.log(equations.ridge) if equations.ridge > 0 else -30.0
    start = equations.explicit()
    stiffness = float(np.exp(start[equations.log_q]) @ equations.softness)
    here = max(target, math.log(10.0 * stiffness))
    x = None
    while x is None and here < 60.0:
        x = equations.newton(start, math.exp(here), exponent, 1e-4, 12, may_be_rough=False)
        here += 0.0 if x is not None else 2.0
    stride, before, last = 1.0, None, here
    while x is not None and here > target:
        while True:
            there = max(target, here - stride)
            ahead = x if before is None else x + (x - before) * (there - here) / (here - last)
            found = equations.newton(ahead, math.exp(there), exponent, 1e-4, 10, may_be_rough=False)
            if found is None and before is not None:
                found = equations.newton(x, math.exp(there), exponent, 1e-4, 10, may_be_rough=False)
            if found is not None:
                break
            stride *= 0.4
            if stride < CONTINUATION_STEP:
                return None
        before, last = x, here
        x, here, stride = found, there, min(stride * 1.6, 3.0)
    if x is None:
        return None
    return equations.newton(x, equations.ridge, exponent, enough, 12, may_be_rough=False)
