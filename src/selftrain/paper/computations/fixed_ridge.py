"""Balanced runs at fixed ridges against their length."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation, Output
from ...theory.solve import solve

OVER_T = ("T",)


def fixed_ridge(
    alpha_l: float, alpha_u: float, delta: float, lambda_l: float, lambda_u: float, longest: int
) -> dict[str, Any]:
    """Compute the last step of runs of T = 1, 2, 4, ..., `longest` steps."""
    lengths = 2 ** np.arange(int(longest).bit_length())
    recipe = Recipe(lambda_l, lambda_u)
    runs = [
        solve(Problem(alpha_l, alpha_u, 0.5, delta, steps=length), recipe)
        for length in lengths.tolist()
    ]
    return {
        "T": lengths,
        "chi": np.array([run.chi[-1] for run in runs]),
        "error": np.array([run.error[-1] for run in runs]),
    }


FIXED_RIDGE = Computation(
    fixed_ridge,
    {
        "T": Output("T", OVER_T),
        "chi": Output(r"\chi^{(T)}", OVER_T),
        "error": Output(r"\epsilon_g^{(T)}", OVER_T),
    },
    seconds=lambda longest, **_: 0.1 + 0.0005 * longest,
)
