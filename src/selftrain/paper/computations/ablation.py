"""The two heuristics separately: neither, annealed labels only, a fixed bias only, both; tuned."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation, Output
from ...tuning.optimum import Optimum
from .chains import RIDGES, helped_starts, plain_starts
from .tuned import tuned

WAYS = ("neither", "annealing", "bias fixed", "both")


def ablation(
    alpha_l: float, alpha_u: float, rho: float, delta: float, steps: int
) -> dict[str, Any]:
    """Compute errors of the four variants after T steps, and what they are compared with."""
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=steps)
    neither = tuned(problem, RIDGES, plain_starts(steps))
    fixed = tuned(problem, RIDGES, _fixed(neither.recipe, steps))
    annealed = tuned(problem, (*RIDGES, "annealing"), _annealed(neither.recipe, steps))
    both = tuned(problem, (*RIDGES, "annealing"), [*helped_starts(steps), fixed.recipe])
    best = (neither, min(annealed, neither, key=_error), fixed, min(both, fixed, key=_error))
    return {
        "way": np.arange(len(WAYS)),
        "error": np.array([one.error for one in best]),
        "annealing": np.array([float(np.ravel(one.recipe.annealing)[0]) for one in best]),
        "labeled_only": neither.labeled_only.error,
        "supervised": neither.supervised.error,
        "bayes": neither.bayes.semi_supervised,
    }


def _error(one: Optimum) -> float:
    return one.error


def _fixed(neither: Recipe, steps: int) -> list[Recipe]:
    return [start.replace(fix_bias=True) for start in (neither, *plain_starts(steps))]


def _annealed(neither: Recipe, steps: int) -> list[Recipe]:
    """Return starts with little annealing: with a trained bias, sharper labels collapse."""
    starts = [neither.replace(annealing=a / steps) for a in (0.02, 0.2)]
    return [*starts, *(start.replace(fix_bias=False) for start in helped_starts(steps))]


ABLATION = Computation(
    ablation,
    {
        "way": Output("way", ("way",)),
        "error": Output(r"\epsilon_g^{(T)}", ("way",)),
        "annealing": Output("a^*", ("way",)),
        "labeled_only": Output(r"\epsilon_g"),
        "supervised": Output(r"\epsilon_g^{(SL)}"),
        "bayes": Output(r"\epsilon_{Bayes}"),
    },
    seconds=lambda steps, **_: 1.0 + 0.3 * steps,
)
