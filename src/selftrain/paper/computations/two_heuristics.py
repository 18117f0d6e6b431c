r"""The two heuristics, annealed labels and a fixed bias: each alone, both, and with few labels.

`ablation` tunes all four combinations. `theory` and `finite` use both heuristics, also with very
few labels; the bias is that of step 0, and `best_bias` is the error of the last direction with the
best bias.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...arrays import Array
from ...errors import NoGradient
from ...observables import generalization_error
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation
from ...tuning.optimum import Optimum
from .chains import RIDGES, helped_starts, plain_starts
from .outputs import outputs
from .tuned import better, constants, one_system, references, tuned

WAYS = ("neither", "annealing", "bias fixed", "both")


def ablation(steps: int, **setting: Any) -> dict[str, Any]:
    """Compute the errors of the four combinations `WAYS` after T steps, and reference errors."""
    problem = Problem(**setting, steps=steps)
    neither = tuned(problem, RIDGES, plain_starts(steps))
    starts = [neither.recipe, *plain_starts(steps)]
    fixed = tuned(problem, RIDGES, [start.replace(fix_bias=True) for start in starts])
    annealed = tuned(problem, (*RIDGES, "annealing"), _annealed(neither.recipe, steps))
    both = tuned(problem, (*RIDGES, "annealing"), [*helped_starts(steps), fixed.recipe])
    best = (neither, better(annealed, neither), fixed, better(both, fixed))
    return {
        "way": np.arange(len(WAYS)),
        "error": np.array([one.error for one in best]),
        "annealing": np.array([constants(one.recipe, "annealing")["annealing"] for one in best]),
        **references(neither),
    }


def _annealed(neither: Recipe, steps: int) -> list[Recipe]:
    """Return starts for annealing with a trained bias, the first with little annealing: sharper
    labels collapse.
    """
    starts = [neither.replace(annealing=a / steps) for a in (0.02, 0.2)]
    return [*starts, *(start.replace(fix_bias=False) for start in helped_starts(steps))]


HARDLY = Recipe(lambda_l=1e-9, lambda_u=1e-10)
"""A start with steps that hardly change the model, for cases in which larger steps collapse."""

MEASURED = ("error", "one_minus_cosine", "bias_to_norm")


@lru_cache(maxsize=64)
def best(**setting: Any) -> Optimum:
    """Tune both heuristics."""
    problem = Problem(**setting)
    return tuned(problem, (*RIDGES, "annealing"), helped_starts(problem.steps))


def theory(**setting: Any) -> dict[str, Any]:
    """Return the last step of the tuned run in the large-system limit, and reference errors."""
    found = best(**setting)
    run = found.trajectory
    problem = found.problem
    return {
        **{name: float(getattr(run, name)[-1]) for name in MEASURED},
        "best_bias": _with_best_bias(float(run.cosine[-1]), problem),
        "first": float(run.error[0]),
        "naive": _naive(problem),
        **references(found),
        **constants(found.recipe, *RIDGES, "annealing"),
    }


def _naive(problem: Problem) -> float:
    """Return the error of tuned naive self-training; if all runs predict one class, so that the
    error has no gradient, return the error of that prediction.
    """
    starts = (*plain_starts(problem.steps), HARDLY)
    try:
        return tuned(problem, RIDGES, starts).error
    except NoGradient:
        test = problem.test_mixture
        return min(test.rho, 1.0 - test.rho)


def finite(features: int, seed: int, **setting: Any) -> dict[str, Any]:
    """Simulate one system of N features at the same recipe, and return its last step."""
    found = best(**setting)
    runs = one_system(found.problem, found.recipe, features, seed)
    values = {name: float(runs.values(name)[0, -1]) for name in MEASURED}
    cosine = 1.0 - values["one_minus_cosine"]
    return {**values, "best_bias": _with_best_bias(cosine, found.problem)}


def _with_best_bias(cosine: float, problem: Problem) -> float:
    """Return the error of a direction, given by its cosine, with the best bias."""
    test = problem.test_mixture

    def error(bias: float) -> float:
        row: Array = generalization_error(
            np.array([cosine]), np.ones(1), np.array([bias]), test.rho, test.delta
        )
        return float(row[0])

    found = minimize_scalar(error, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-9})
    return min(float(found.fun), error(0.0), test.rho, 1.0 - test.rho)


ABLATION = Computation(
    ablation,
    {
        **outputs("error annealing", "way", way="way"),
        **outputs("labeled_only supervised bayes"),
    },
    seconds=lambda steps, **_: 1.0 + 0.3 * steps,
)
_SHOWN = outputs("error one_minus_cosine bias_to_norm", best_bias=r"\epsilon_g^{(T)}, best bias")
FEW_LABELS = Computation(
    theory,
    {
        **_SHOWN,
        **outputs(
            "labeled_only supervised bayes lambda_l lambda_u annealing",
            first=r"\epsilon_g^{(0)}",
            naive=r"\epsilon_g^{(T)}, naive",
        ),
    },
    seconds=lambda steps, **_: 0.2 * steps,
)
FEW_LABELS_RUN = Computation(
    finite,
    _SHOWN,
    seconds=lambda features, steps, **_: 0.01 + steps * features * 7e-6,
)
