r"""One step of self-training, with ridges far larger than in practice (`app: pathological finite
size effect`).

$(\lambda_L, \lambda_U)$ minimise $\epsilon_g^{(1)}$ in $(0, \lambda_{max}]^2$; without selection.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

from ...errors import StageError
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation
from ...theory.solve import solve
from ...theory.trajectory import Trajectory
from ...tuning.optimum import Optimum
from .outputs import outputs
from .tuned import constants, one_system, references, tuned


@lru_cache(maxsize=256)
def best(largest: float, **setting: Any) -> tuple[Optimum, Trajectory]:
    """Search for the best pair of ridges for T = 1; return the optimum, and the run at that pair.

    At very large ridges the error is too flat for a gradient. So the result of the search is
    compared with the bounds themselves, at the full accuracy of the solver.
    """
    problem = Problem(**setting, steps=1)
    starts = [
        Recipe(lambda_l, lambda_u)
        for lambda_l in (1e-3, 0.3 * largest)
        for lambda_u in (1e-3, 0.3, 0.3 * largest)
    ]
    found = tuned(problem, ("lambda_l", "lambda_u"), starts, largest_ridge=largest)
    ends = itertools.product({found.recipe.lambda_l, largest}, {found.recipe.lambda_u, largest})
    runs = [run for ridges in ends if (run := _confirmed(problem, Recipe(*ridges))) is not None]
    return found, min([found.trajectory, *runs], key=lambda run: float(run.error[-1]))


def _confirmed(problem: Problem, recipe: Recipe) -> Trajectory | None:
    """Return the run at full accuracy; None if the solver cannot confirm it (if one ridge is near
    the smallest and the other at the largest value).
    """
    try:
        return solve(problem, recipe, 1e-12)
    except StageError:
        return None


def single_shot(**setting: Any) -> dict[str, float]:
    """Return the large-system limit at the best ridges."""
    found, run = best(**setting)
    return {
        **constants(run.recipe, "lambda_l", "lambda_u"),
        **references(found),
        "error": float(run.error[-1]),
        "q": float(run.q[-1]),
    }


def single_shot_run(features: int, seed: int, **setting: Any) -> dict[str, float]:
    """Simulate one system of N features at the same ridges."""
    _, run = best(**setting)
    runs = one_system(run.problem, run.recipe, features, seed)
    names = ("error", "one_minus_cosine", "bias_to_norm")
    return {name: float(runs.values(name)[0, -1]) for name in names}


SINGLE_SHOT = Computation(
    single_shot,
    outputs(
        "labeled_only supervised bayes lambda_l lambda_u", error=r"\epsilon_g^{(1)}", q="q^{(1)}"
    ),
    seconds=lambda **_: 0.25,
)
SINGLE_SHOT_RUN = Computation(
    single_shot_run,
    outputs("one_minus_cosine bias_to_norm", error=r"\epsilon_g^{(1)}"),
    seconds=lambda features, alpha_u, **_: 0.005 + features * (1 + alpha_u) * 3e-7,
)
