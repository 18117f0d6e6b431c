r"""The limit $T \to \infty$ of a run whose weights tend to zero. (`fading` is how `solve` continues
when they underflow.)

The ridge multiplies the weights by a factor < 1 in every step. With less than one sample per
feature ($\alpha_U P_{sel} < 1$) this factor does not tend to 1 for small ridges, because a batch
contains no information on the directions it does not span. With balanced classes the bias is zero,
and the direction of the weights has a limit:

As $q \to 0$ every logit is small, $\sigma(x) = 1/2 + x/4 + O(x^3)$, so the logistic loss to a soft
label $\sigma(\gamma\tilde h)$ is $(x - \gamma\tilde h)^2/8$ plus a constant, up to a relative
$O(q)$. The step is then the step of the squared loss at ridge $4\lambda_U$ with $\chi =
4\chi_{squared}$. That step is homogeneous: weights twice as large lead to weights twice as large
(the selection compares $|\tilde h|$ with $\Gamma\sqrt{q'}$). So it maps the direction $\mu =
m/\sqrt q$, independently of the norm, and multiplies the norm by a factor. Without selection the
map is that of `squared_closed_form`: $v/m^2$ tends to the ratio $a/(g^2 - b)$, or grows without
bound if $b \ge g^2$. The limit does not depend on the initial weights, and so not on the labelled
samples.

For imbalanced classes there is no such limit: the bias is not regularised, does not shrink with the
weights, and finally all samples are assigned to one class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from ..errors import InvalidInput
from ..labelers import SoftLabels
from ..losses import Logistic, Squared
from ..observables import generalization_error
from ..problem import Problem
from ..recipe import Recipe
from .step.robust import solve_step
from .step_inputs import StepInputs
from .tolerances import confirmable, exponent_of

__all__ = ["FadedState", "faded_limit"]

TIGHT = 1e-12
"""Tolerance of one step, small because the fixed point is computed to rounding accuracy."""


@dataclass(frozen=True)
class FadedState:
    r"""The limit of a model whose weights tend to zero: quantities that do not depend on the norm.

    Attributes:
        error: generalisation error on the test mixture of the problem.
        one_minus_cosine: $1 - m/\sqrt q$.
        chi: $\chi$ of a step.
        kept: the factor of the norm in a step, $\sqrt{q/q'}$.
    """

    error: float
    one_minus_cosine: float
    chi: float
    kept: float

    @property
    def cosine(self) -> float:
        r"""The cosine $m/\sqrt q$."""
        return 1.0 - self.one_minus_cosine


def faded_limit(problem: Problem, recipe: Recipe) -> FadedState:
    r"""Return the limit $T \to \infty$ of a run with balanced classes, all further steps having the
    batch size, mixture and hyperparameters of the last one.

    Arguments:
        problem: balanced classes in the batches, logistic or squared loss.
        recipe: soft labels without annealing.

    >>> problem = Problem(alpha_l=0.5, alpha_u=0.25, rho=0.5, delta=0.75**2, steps=1)
    >>> limit = faded_limit(problem, Recipe(lambda_u=0.1))
    >>> round(limit.error, 6), round(limit.chi, 5)
    (0.324012, 8.62943)
    """
    if problem.steps == 0:
        raise InvalidInput("steps", 0, "must be 1 or more")
    step = _Step(problem, recipe, problem.steps)

    def change(cosine: float) -> float:
        return step(cosine).cosine - cosine

    low, high = 1e-9, 1.0 - 1e-15
    if change(low) <= 0.0:  # v shrinks more slowly than m^2: the cosine tends to zero
        fixed = 0.0
    elif change(high) >= 0.0:
        fixed = high
    else:
        fixed = brentq(change, low, high, xtol=1e-16, rtol=1e-15)
    there, test = step(fixed), problem.test_mixture
    m, q, bias = np.array([there.cosine]), np.ones(1), np.zeros(1)
    error = float(generalization_error(m, q, bias, test.rho, test.delta)[0])
    return FadedState(error, 1.0 - fixed, there.chi, there.kept)


class _Direction(NamedTuple):
    """The direction of the weights after a step: their cosine, and chi and norm factor of it."""

    cosine: float
    chi: float
    kept: float


class _Step:
    """One step in the limit of small weights, as a map of their cosine."""

    def __init__(self, problem: Problem, recipe: Recipe, t: int):
        problem.needs_fresh_batches("the limit of faded weights")
        ridge, threshold, sharpness = (float(x[t - 1]) for x in recipe.at_steps(problem.steps))
        alpha, rho, delta = (float(column[t - 1]) for column in problem.unlabeled)
        loss = problem.loss_at(t)
        if rho != 0.5:
            accepted = "must be 0.5: in other batches the bias outlives the weights"
            raise InvalidInput("rho_u", rho, accepted)
        if type(loss) not in (Logistic, Squared):
            raise InvalidInput("loss", loss.name, "must be the logistic or the squared loss")
        if type(recipe.label_function) is not SoftLabels or math.isinf(sharpness):
            raise InvalidInput("labels", "hard", "must be soft: runs with hard ones do not fade")
        self.slope = 0.25 if type(loss) is Logistic else 1.0
        squared = problem.replace(
            loss="squared", pseudo_loss=None, steps=1, alpha_u=alpha, rho_u=rho, delta_u=delta,
            test=None, batches="fresh",
        )  # fmt: skip
        small = Recipe(lambda_u=ridge / self.slope, threshold=threshold, sharpness=sharpness)
        self.inputs = StepInputs(squared, small)

    def __call__(self, cosine: float, misalignment: float | None = None) -> _Direction:
        """Return the direction after a step from `cosine`; `misalignment` is 1 - cosine^2, to be
        given if it is known more accurately than by the difference.
        """
        off = (1.0 - cosine) * (1.0 + cosine) if misalignment is None else misalignment
        old = self.inputs.space.law(np.array([cosine]), np.array([off]))
        equations = self.inputs.equations(1, old, 0.0)
        solution = solve_step(equations, exponent_of(TIGHT), confirmable(TIGHT))
        gamma = equations.labels.gamma
        new, (_, chi) = equations.algebra.advance(solution.x, equations.ridge, gamma)
        norm = math.sqrt(new.mean[0] ** 2 + self.inputs.space.trace(new.variance))
        return _Direction(float(new.mean[0]) / norm, float(chi) / self.slope, norm)
