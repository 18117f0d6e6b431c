r"""Self-training with both heuristics from very few labels: theory, and finite systems.

The bias of step 0 is fixed. `best_bias` is the error of the last direction with its best bias.
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
from ...simulation.simulate import simulate
from ...sweeps import Computation, Output
from ...tuning.optimum import Optimum
from .chains import RIDGES, helped_starts, plain_starts
from .tuned import tuned

HARDLY = Recipe(lambda_l=1e-9, lambda_u=1e-10)
"""Steps that change almost nothing, for cases in which stronger ones collapse."""

MEASURED = ("error", "one_minus_cosine", "bias_to_norm")


@lru_cache(maxsize=64)
def best(alpha_l: float, alpha_u: float, rho: float, delta: float, steps: int) -> Optimum:
    """The tuned recipe with both heuristics, and its theory."""
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=steps)
    return tuned(problem, (*RIDGES, "annealing"), helped_starts(steps))


def theory(**setting: Any) -> dict[str, Any]:
    """The large-system limit of the tuned run at its last step, and what it is compared with."""
    found = best(**setting)
    run = found.trajectory
    problem = found.problem
    return {
        **{name: float(getattr(run, name)[-1]) for name in MEASURED},
        "best_bias": _with_best_bias(float(run.cosine[-1]), problem),
        "first": float(run.error[0]),
        "naive": _naive(problem),
        "labeled_only": found.labeled_only.error,
        "supervised": found.supervised.error,
        "bayes": found.bayes.semi_supervised,
        "lambda_l": float(found.recipe.lambda_l),
        "lambda_u": float(np.ravel(found.recipe.lambda_u)[0]),
        "annealing": float(np.ravel(found.recipe.annealing)[0]),
    }


def _naive(problem: Problem) -> float:
    """The error of tuned naive self-training. Where every run ends in one class no recipe has a
    slope: then it is that of the class.
    """
    starts = (*plain_starts(problem.steps), HARDLY)
    try:
        return tuned(problem, RIDGES, starts).error
    except NoGradient:
        test = problem.test_mixture
        return min(test.rho, 1.0 - test.rho)


def finite(features: int, seed: int, **setting: Any) -> dict[str, Any]:
    """One system of N features at the same recipe, at its last step."""
    found = best(**setting)
    ensemble = simulate(found.problem, found.recipe, features, [seed], probes=0, progress=False)
    values = {name: float(ensemble.values(name)[0, -1]) for name in MEASURED}
    cosine = 1.0 - values["one_minus_cosine"]
    return {**values, "best_bias": _with_best_bias(cosine, found.problem)}


def _with_best_bias(cosine: float, problem: Problem) -> float:
    """The error of a direction with the bias over norm that minimises it."""
    test = problem.test_mixture

    def error(bias: float) -> float:
        row: Array = generalization_error(
            np.array([cosine]), np.ones(1), np.array([bias]), test.rho, test.delta
        )
        return float(row[0])

    found = minimize_scalar(error, bounds=(-20.0, 20.0), method="bounded", options={"xatol": 1e-9})
    return min(float(found.fun), error(0.0), test.rho, 1.0 - test.rho)


_SHOWN = {
    "error": Output(r"\epsilon_g^{(T)}"),
    "one_minus_cosine": Output(r"1 - m/\sqrt q"),
    "bias_to_norm": Output(r"B/\sqrt q"),
    "best_bias": Output(r"\epsilon_g^{(T)}, best bias"),
}

FEW_LABELS = Computation(
    theory,
    {
        **_SHOWN,
        "first": Output(r"\epsilon_g^{(0)}"),
        "naive": Output(r"\epsilon_g^{(T)}, naive"),
        "labeled_only": Output(r"\epsilon_g"),
        "supervised": Output(r"\epsilon_g^{(SL)}"),
        "bayes": Output(r"\epsilon_{Bayes}"),
        "lambda_l": Output(r"\lambda_L^*"),
        "lambda_u": Output(r"\lambda_U^*"),
        "annealing": Output("a^*"),
    },
    seconds=lambda steps, **_: 0.2 * steps,
)

FEW_LABELS_RUN = Computation(
    finite,
    dict(_SHOWN),
    seconds=lambda features, steps, **_: 0.01 + steps * features * 7e-6,
)
