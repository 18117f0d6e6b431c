r"""Recipes known to work, as starts of a search: the two heuristics of the paper, and small ridges.

The rates are those of tuned runs of 4 to 256 steps at $\rho$ = 0.2 and 0.4, $\Delta$ = 0.5625
and 1: the ridge of the steps falls as 1/T. Each step sharpens labels that were sharpened before, so
the annealing falls as 1/T^2 and a constant sharpness goes to one as 1/T.
"""

from __future__ import annotations

import math
from collections.abc import Container

from ..recipe import Recipe

__all__ = ["heuristic_recipes", "small_ridge_recipes"]

ELAPSED = (0.06, 0.4)
"""Best T lambda_u with the heuristics: of strongly and of slightly imbalanced classes."""

SHARPENING = 6.0
"""Best a (T + 1)^2 with the heuristics."""

SMALL = ((0.05, 0.05), (1e-3, 1e-2))
"""T lambda_l and T lambda_u of labels that stay as they are."""

RIDGE = 0.1
"""The ridge of the labelled samples with the heuristics, at the bound of the paper."""


def heuristic_recipes(
    base: Recipe, steps: int, free: Container[str] = ("annealing",)
) -> list[Recipe]:
    """Recipes with labels that are sharpened a little: by annealing if it is `free`, else by a
    constant sharpness. The bias is as in `base`.
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
    """Recipes with ridges that fall with the number of steps, and labels as they come."""
    plain = base.replace(threshold=0.0, sharpness=1.0, annealing=0.0)
    return [
        plain.replace(lambda_l=labeled / max(steps, 1), lambda_u=unlabeled / max(steps, 1))
        for labeled, unlabeled in SMALL
    ]
