r"""Balanced self-training as $T \to \infty$ without selection: the best ridge and its error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from ...parameters import LARGEST_RIDGE, SMALLEST_RIDGE
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation
from ...theory.faded import FadedState, faded_limit
from .outputs import outputs


def endless(alpha_u: float, delta: float) -> dict[str, Any]:
    r"""Compute the limit $T \to \infty$ at the ridge with the smallest error.

    The limit does not depend on step 0; the ridge is within the bounds of all searches.
    """
    problem = Problem(1.0, alpha_u, 0.5, delta, steps=1)

    def limit(log_ridge: float) -> FadedState:
        ridge = min(max(math.exp(log_ridge), SMALLEST_RIDGE), LARGEST_RIDGE)
        return faded_limit(problem, Recipe(lambda_u=ridge))

    grid = np.linspace(math.log(SMALLEST_RIDGE), math.log(LARGEST_RIDGE), 45)
    errors = [limit(float(x)).error for x in grid]
    at = int(np.argmin(errors))
    inside = minimize_scalar(
        lambda x: limit(x).error,
        bounds=(float(grid[max(at - 1, 0)]), float(grid[min(at + 1, grid.size - 1)])),
        method="bounded",
    )
    x = float(inside.x) if inside.fun < errors[at] else float(grid[at])
    best = limit(x)
    return {
        "lambda_u": math.exp(x),
        "error": best.error,
        "cosine": best.cosine,
        "chi": best.chi,
        "ratio": best.error / float(ndtr(-1.0 / math.sqrt(delta))),
    }


ENDLESS = Computation(
    endless,
    outputs(
        "lambda_u",
        error=r"\epsilon_g^{(\infty)}",
        cosine=r"m/\sqrt{q}",
        chi=r"\chi^{(\infty)}",
        ratio=r"\epsilon_g^{(\infty)}/H(1/\sqrt\Delta)",
    ),
    seconds=lambda **_: 0.2,
)
