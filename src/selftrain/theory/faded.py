r"""What becomes of a run whose weights fade: its last step for any number of steps, and the limit
$T \to \infty$. How `solve` goes on where weights underflow is in `fading`.

A ridge shrinks the weights by a factor per step; below one point per feature ($\alpha_U P_{sel} <
1$) by a factor that stays away from one however small the ridge, because a batch says nothing about
the directions it does not span. With balanced classes the bias is zero, and the direction has a
limit of its own:

As $q \to 0$ every logit is small, $\sigma(x) = 1/2 + x/4 + O(x^3)$, so the logistic loss to a soft
label $\sigma(\gamma\tilde h)$ is $(x - \gamma\tilde h)^2/8$ and a constant, up to a relative
$O(q)$. The step is then the step of the squared loss at ridge $4\lambda_U$ with $\chi =
4\chi_{squared}$. That step is homogeneous: weights twice as large lead to weights twice as large
(the selection compares $|\tilde h|$ with $\Gamma\sqrt{q'}$), so it is a map of the direction $\mu =
m/\sqrt q$ alone and a factor for the norm. Without selection the map is that of
`squared_closed_form`: $v/m^2$ goes to the fixed ratio $a/(g^2 - b)$, or grows without bound if $b
\ge g^2$. It does not depend on the start: the limit forgets the labelled points.

For imbalanced classes there is no such limit: the bias is not regularised and outlives the weights,
and every point falls into one class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from ..errors import InvalidInput, StageError
from ..labelers import SoftLabels
from ..losses import Logistic, Squared
from ..observables import generalization_error
from ..problem import Problem
from ..recipe import Recipe
from .solve import solve
from .stages import Stages
from .step.solver import solve_stage
from .tolerances import confirmable, exponent_of

__all__ = ["FadedState", "faded_limit", "last_step"]

TIGHT = 1e-12
"""Tolerance of a step of the map of directions, whose fixed point is sought to rounding."""


@dataclass(frozen=True)
class FadedState:
    r"""The last step of a run, whatever the size of its weights.

    Attributes:
        error: generalisation error on the test mixture of the problem.
        one_minus_cosine: $1 - m/\sqrt q$.
        chi: $\chi$ of the step.
        log_q: natural logarithm of q; minus infinity in the limit $T \to \infty$.
        kept: the factor by which the norm changed in the step, $\sqrt{q/q'}$.
        faded_at: the last step before the weights underflow; None if they do not.
    """

    error: float
    one_minus_cosine: float
    chi: float
    log_q: float
    kept: float
    faded_at: int | None = None

    @property
    def cosine(self) -> float:
        r"""$m/\sqrt q$."""
        return 1.0 - self.one_minus_cosine


def faded_limit(problem: Problem, recipe: Recipe) -> FadedState:
    r"""The limit $T \to \infty$ of a run of balanced classes at constant hyperparameters: those of
    its last step.

    Arguments:
        problem: balanced classes in the batches, logistic or squared loss; its last batch is
            repeated for ever.
        recipe: soft labels without annealing.

    >>> problem = Problem(alpha_l=0.5, alpha_u=0.25, rho=0.5, delta=0.75**2, steps=1)
    >>> limit = faded_limit(problem, Recipe(lambda_u=0.1))
    >>> round(limit.error, 6), round(limit.chi, 5)
    (0.324012, 8.62943)
    """
    if problem.steps == 0:
        raise InvalidInput("steps", 0, "a run of one step or more has a limit")
    step = _Step(problem, recipe, problem.steps)

    def change(cosine: float) -> float:
        return step(cosine).cosine - cosine

    low, high = 1e-9, 1.0 - 1e-15
    if change(low) <= 0.0:  # v shrinks more slowly than m^2: the direction is lost
        fixed = 0.0
    elif change(high) >= 0.0:
        fixed = high
    else:
        fixed = brentq(change, low, high, xtol=1e-16, rtol=1e-15)
    there = step(fixed)
    return FadedState(
        there.error(problem), 1.0 - fixed, there.chi, -math.inf, math.exp(0.5 * there.log_growth)
    )


def last_step(problem: Problem, recipe: Recipe, tolerance: float = 1e-10) -> FadedState:
    """The last step of a run, with the logarithm of its norm.

    Arguments:
        problem, recipe, tolerance: as for `solve`.

    >>> problem = Problem(alpha_l=0.5, alpha_u=0.25, rho=0.5, delta=0.75**2, steps=1024)
    >>> end = last_step(problem, Recipe(lambda_l=0.05, lambda_u=0.1))
    >>> round(end.error, 6), round(end.log_q), end.faded_at < 300
    (0.324012, -2423, True)
    """
    run = solve(problem, recipe, tolerance)
    if run.collapsed_at is not None:
        raise StageError(run.collapsed_at, "the labels collapse into one class", {}, math.nan)
    error, off, chi = (float(x[-1]) for x in (run.error, run.one_minus_cosine, run.chi))
    kept = math.exp(0.5 * (run.log_q[-1] - run.log_q[-2])) if problem.steps else math.nan
    faded = None if run.fading is None else int(np.argmax(run.fading.exponents > 0)) - 1
    return FadedState(error, off, chi, float(run.log_q[-1]), kept, faded)


@dataclass(frozen=True)
class _Direction:
    """Weights without their norm: the cosine, 1 - cosine^2, and what the step to them was."""

    cosine: float
    misalignment: float
    chi: float
    log_growth: float

    def error(self, problem: Problem) -> float:
        """The error on the test mixture; the bias is zero."""
        test = problem.test_mixture
        m, q, bias = np.array([self.cosine]), np.ones(1), np.zeros(1)
        return float(generalization_error(m, q, bias, test.rho, test.delta)[0])


class _Step:
    """One step of weights that are all but zero, as a map of their direction."""

    def __init__(self, problem: Problem, recipe: Recipe, t: int):
        problem.needs_fresh_rows("the limit of faded weights")
        values = recipe.at_steps(problem.steps)
        alpha, rho, delta = (float(column[t - 1]) for column in problem.unlabeled)
        loss = problem.loss_at(t)
        if rho != 0.5:
            accepted = "balanced batches have a limit; in others the bias outlives the weights"
            raise InvalidInput("rho_u", rho, accepted)
        if type(loss) not in (Logistic, Squared):
            raise InvalidInput("loss", loss.name, "the logistic and the squared loss are accepted")
        if type(recipe.label_function) is not SoftLabels or not values.sharpness[t - 1] < math.inf:
            raise InvalidInput("labels", "hard", "soft labels fade; hard ones do not")
        self.slope = 0.25 if type(loss) is Logistic else 1.0
        squared = problem.replace(
            loss="squared",
            pseudo_loss=None,
            steps=1,
            alpha_u=alpha,
            rho_u=rho,
            delta_u=delta,
            test=None,
            batches="fresh",
        )
        small = Recipe(
            lambda_u=float(values.lambda_u[t - 1]) / self.slope,
            threshold=float(values.threshold[t - 1]),
            sharpness=float(values.sharpness[t - 1]),
        )
        self.stages = Stages(squared, small)

    def __call__(self, cosine: float, misalignment: float | None = None) -> _Direction:
        """The direction after the step."""
        off = (1.0 - cosine) * (1.0 + cosine) if misalignment is None else misalignment
        old = self.stages.space.law(np.array([cosine]), np.array([off]))
        stage = self.stages.stage(1, old, 0.0)
        solution = solve_stage(stage, exponent_of(TIGHT), confirmable(TIGHT))
        new, numbers = stage.algebra.advance(solution.x, stage.ridge, stage.labels.gamma)
        q, v, _, chi = numbers.tolist()
        m = float(new.mean[0])
        return _Direction(m / math.sqrt(q), v / q, chi / self.slope, math.log(q))
