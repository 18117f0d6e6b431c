r"""What a step is given: the old state, its batch of points, its part of the recipe.

Step 0 has no old state. It is the step with $\omega = 0$, $\mu = 0$, $\nu^2 = 1$ and true labels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...labelers import HardLabels
from ...problem import Problem
from ...recipe import Recipe
from ...runtime.kernels import kernel


class Given(NamedTuple):
    r"""The old state ($\omega, \mu, \nu^2, B'$), the batch ($\alpha, \rho, \Delta$), the recipe of
    one step.
    """

    omega: float
    mu: float
    nu2: float
    bias: float
    alpha: float
    rho: float
    delta: float
    ridge: float
    threshold: float
    sharpness: float
    fixed_bias: bool


class Schedule(NamedTuple):
    """What steps 0..T are given apart from the state: arrays over the steps."""

    alpha: Any
    rho: Any
    delta: Any
    ridge: Any
    threshold: Any
    sharpness: Any
    fixed_bias: bool


def schedule(problem: Problem, recipe: Recipe) -> Schedule:
    """Points and recipe of steps 0..T; hard and true labels have infinite sharpness."""
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    hard = isinstance(recipe.label_function, HardLabels)
    sharpness = np.full(problem.steps, np.inf) if hard else values.sharpness
    return Schedule(
        np.append(problem.alpha_l, batches.alpha),
        np.append(problem.rho, batches.rho),
        np.append(problem.delta, batches.delta),
        np.append(recipe.lambda_l, values.lambda_u),
        np.append(0.0, values.threshold),
        np.append(np.inf, sharpness),
        recipe.fix_bias,
    )


@kernel(error_model="numpy")
def given(plan: Schedule, t: int, old: Any) -> Given:
    r"""What step t is given; `old` is the state ($\omega, \mu, \nu^2$, B) of step t-1, `NO_MODEL`
    in step 0.
    """
    return Given(
        old[0], old[1], old[2], old[3], plan.alpha[t], plan.rho[t], plan.delta[t],
        plan.ridge[t], plan.threshold[t], plan.sharpness[t], plan.fixed_bias and t > 0,
    )  # fmt: skip


def given_at(problem: Problem, recipe: Recipe, t: int, old: Array) -> Given:
    """What one step t >= 1 of a run is given, without writing out the schedule of all its steps."""
    batches, values, i = problem.unlabeled, recipe.at_steps(problem.steps), t - 1
    hard = isinstance(recipe.label_function, HardLabels)
    omega, mu, nu2, bias = (float(entry) for entry in old)
    return Given(
        omega, mu, nu2, bias,
        float(batches.alpha[i]), float(batches.rho[i]), float(batches.delta[i]),
        float(values.lambda_u[i]), float(values.threshold[i]),
        math.inf if hard else float(values.sharpness[i]), recipe.fix_bias,
    )  # fmt: skip


NO_MODEL = np.array([0.0, 0.0, 1.0, 0.0])
"""The state before step 0: no weights, no bias."""


def given_first(group: Array, ridge: float) -> Given:
    r"""What step 0 is given; `group` is ($\alpha, \rho, \Delta$)."""
    alpha, rho, delta = (float(value) for value in group)
    return Given(0.0, 0.0, 1.0, 0.0, alpha, rho, delta, ridge, 0.0, math.inf, False)
