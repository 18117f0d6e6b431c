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
    r"""The old state ($\omega, \mu, \nu^2, B'$), the batch ($\alpha, \rho, \Delta$), the recipe of one step."""

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
    """What steps 1..T are given apart from the state: arrays over the steps."""

    alpha: Any
    rho: Any
    delta: Any
    ridge: Any
    threshold: Any
    sharpness: Any
    fixed_bias: bool


def schedule(problem: Problem, recipe: Recipe) -> Schedule:
    """Batches and recipe of steps 1..T; hard labels have infinite sharpness."""
    batches, values = problem.unlabeled, recipe.at_steps(problem.steps)
    hard = isinstance(recipe.label_function, HardLabels)
    sharpness = np.full(problem.steps, np.inf) if hard else np.array(values.sharpness)
    return Schedule(
        np.array(batches.alpha), np.array(batches.rho), np.array(batches.delta),
        np.array(values.lambda_u), np.array(values.threshold), sharpness, recipe.fix_bias,
    )  # fmt: skip


@kernel(error_model="numpy")
def given(plan: Schedule, t: int, old: Any) -> Given:
    r"""What step t >= 1 is given; `old` is the state ($\omega, \mu, \nu^2$, B) of step t-1."""
    i = t - 1
    return Given(
        old[0], old[1], old[2], old[3], plan.alpha[i], plan.rho[i], plan.delta[i],
        plan.ridge[i], plan.threshold[i], plan.sharpness[i], plan.fixed_bias,
    )  # fmt: skip


def given_first(group: Array, ridge: float) -> Given:
    r"""What step 0 is given; `group` is ($\alpha, \rho, \Delta$)."""
    alpha, rho, delta = (float(value) for value in group)
    return Given(0.0, 0.0, 1.0, 0.0, alpha, rho, delta, ridge, 0.0, math.inf, False)
