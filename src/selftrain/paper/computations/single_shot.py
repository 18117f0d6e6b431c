r"""One step of self-training, with ridges far beyond those of practice (`app: pathological finite
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
from ...simulation.simulate import simulate
from ...sweeps import Computation, Output
from ...theory.solve import solve
from ...theory.trajectory import Trajectory
from ...tuning.optimum import Optimum
from .tuned import tuned


@lru_cache(maxsize=256)
def best(
    alpha_l: float, alpha_u: float, rho: float, delta: float, largest: float
) -> tuple[Optimum, Trajectory]:
    """The best pair of ridges for T = 1 and its run.

    At very large ridges the error is flatter than any gradient can tell; so the bounds themselves
    are compared with what the search found, at the full accuracy of the solver.
    """
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=1)
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
    """The run at full accuracy; None where it cannot be confirmed (a best ridge near the smallest
    one, beside a largest one).
    """
    try:
        return solve(problem, recipe, 1e-12)
    except StageError:
        return None


def single_shot(**setting: float) -> dict[str, float]:
    """The large-system limit at the best ridges."""
    found, run = best(**setting)
    return {
        "lambda_l": float(run.recipe.lambda_l),
        "lambda_u": float(run.recipe.lambda_u),  # type: ignore[arg-type]
        "error": float(run.error[-1]),
        "labeled_only": found.labeled_only.error,
        "q": float(run.q[-1]),
        "supervised": found.supervised.error,
        "bayes": found.bayes.semi_supervised,
    }


def single_shot_run(features: int, seed: int, **setting: float) -> dict[str, float]:
    """One system of N features at the same ridges."""
    _, run = best(**setting)
    ensemble = simulate(run.problem, run.recipe, features, [seed], probes=0, progress=False)
    return {
        "error": float(ensemble.error[0, -1]),
        "one_minus_cosine": float(ensemble.one_minus_cosine[0, -1]),
        "bias_to_norm": float(ensemble.bias_to_norm[0, -1]),
    }


def _run_seconds(features: int, alpha_u: float, **_: Any) -> float:
    return 0.005 + features * (1 + alpha_u) * 3e-7


SINGLE_SHOT = Computation(
    single_shot,
    {
        "lambda_l": Output(r"\lambda_L^*"),
        "lambda_u": Output(r"\lambda_U^*"),
        "error": Output(r"\epsilon_g^{(1)}"),
        "labeled_only": Output(r"\epsilon_g"),
        "q": Output("q^{(1)}"),
        "supervised": Output(r"\epsilon_g^{(SL)}"),
        "bayes": Output(r"\epsilon_{Bayes}"),
    },
    seconds=lambda **_: 0.25,
)

SINGLE_SHOT_RUN = Computation(
    single_shot_run,
    {
        "error": Output(r"\epsilon_g^{(1)}"),
        "one_minus_cosine": Output(r"1 - m/\sqrt q"),
        "bias_to_norm": Output(r"B/\sqrt q"),
    },
    seconds=_run_seconds,
)
