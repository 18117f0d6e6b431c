r"""Recipes that work well, as starts of a search: the two heuristics of the paper, small ridges.

The constants are from tuned runs of T = 4 to 256 steps at $\rho$ = 0.2 and 0.4, $\Delta$ = 0.5625
and 1. There the ridge of the steps scales as 1/T. Every step sharpens labels that earlier steps
have sharpened, so annealing scales as 1/T^2 and the logarithm of a constant sharpness as 1/T.
"""

from __future__ import annotations

import math
from collections.abc import Container

from ..recipe import Recipe

__all__ = ["heuristic_recipes", "small_ridge_recipes"]

ELAPSED = (0.06, 0.4)
"""Best values of T lambda_u with the heuristics, for strongly and slightly imbalanced classes."""

SHARPENING = 6.0
"""Best a (T + 1)^2 with the heuristics, a the annealing rate."""

SMALL = ((0.05, 0.05), (1e-3, 1e-2))
"""Values of (T lambda_l, T lambda_u) without sharpening."""

RIDGE = 0.1
"""Ridge of the supervised step with the heuristics: the upper bound of the paper."""


def heuristic_recipes(
    base: Recipe, steps: int, free: Container[str] = ("annealing",)
) -> list[Recipe]:
    """Return recipes that sharpen labels slightly: by annealing if that is in `free`, else by a
    constant sharpness. Bias and labeler are as in `base`.
    """
    if "annealing" in free:
        shaped = base.replace(sharpness=1.0, annealing=SHARPENING / (steps + 1) ** 2)
    else:
        shaped = base.replace(sharpness=math.exp(0.5 * SHARPENING / (steps + 1)), annealing=0.0)
    return [
        shaped.replace(threshold=0.0, lambda_l=RIDGE, lambda_u=elapsed / max(steps, 1))
        for elapsed in ELAPSED
    ]


def small_ridge_recipes(base: Recipe, steps: int) -> list[Recipe]:
    """Return recipes without sharpening whose ridges scale as 1/T."""
    plain = base.replace(threshold=0.0, sharpness=1.0, annealing=0.0)
    return [
        plain.replace(lambda_l=labeled / max(steps, 1), lambda_u=unlabeled / max(steps, 1))
        for labeled, unlabeled in SMALL
    ]
