r"""Unlabelled samples split into fresh batches or all reused in every step, labelled samples used
in step 0 only or in every step; each case tuned.

There are $\alpha_U$ unlabelled samples per feature in total: T fresh batches of $\alpha_U/T$, or
all of them in each of T steps. Ridges (and, with the heuristics, the annealing at a fixed bias)
minimise the error of the last step in the large-system limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import NoGradient
from ...problem import Problem
from ...recipe import Recipe
from ...simulation.simulate import simulate
from ...sweeps import Computation
from ...tuning.optimize import optimize
from ...tuning.optimum import Optimum
from .outputs import outputs
from .tuned import constants

BOUNDS = {"lambda_l": (1e-4, 0.1), "lambda_u": (1e-4, 0.1), "annealing": (0.0, 3.0)}
TOLERANCE = 1e-3
"""Relative accuracy of runs with data reuse: not visible in a figure."""

STARTS = (Recipe(0.03, 0.03), Recipe(0.01, 3e-3), Recipe(0.01, 3e-4))
"""Starts of a search, tried until one has a gradient: with a strong ridge, the pseudo-labels of a
small class collapse.
"""


def best(
    alpha_u: float, steps: int, reused: bool, kept: bool, heuristics: bool, **setting: Any
) -> Optimum:
    """Tune the recipe of one case.

    Arguments:
        alpha_u: unlabelled samples per feature in total.
        reused: all unlabelled samples in every step, or fresh batches.
        kept: labelled samples in every step, or in step 0 only.
        heuristics: fix the bias and tune the annealing too.
        setting: the other fields of the problem.
    """
    problem = Problem(
        alpha_u=alpha_u if reused else alpha_u / steps,
        steps=steps,
        batches="reused" if reused else "fresh",
        keep_labeled=float(kept),
        **setting,
    )
    names = ("lambda_l", "lambda_u", "annealing")[: 3 if heuristics else 2]
    for start in STARTS:
        try:
            return optimize(
                problem,
                names,
                bounds={name: BOUNDS[name] for name in names},
                start=start.replace(annealing=0.1, fix_bias=True) if heuristics else start,
                starts=1,
                tolerance=1e-9 if problem.every_sample_once else TOLERANCE,
            )
        except NoGradient:
            if start is STARTS[-1]:
                raise
    raise AssertionError("unreachable")


def reuse(features: int, seeds: int, **setting: Any) -> dict[str, Any]:
    """Return the tuned run over t in the large-system limit, the Bayes error of the same samples,
    and finite systems at the same recipe.

    Arguments:
        features: size of the finite systems.
        seeds: number of finite systems; 0 for none.
        setting: arguments of `best`.
    """
    found = best(**setting)
    run = found.trajectory
    mean, spread = np.full((2, run.t.size), np.nan)
    if seeds:
        runs = simulate(found.problem, found.recipe, features, seeds, probes=0, progress=False)
        mean, spread = runs.error.mean(axis=0), runs.error.std(axis=0, ddof=1)
    return {
        "t": run.t,
        "error": run.error,
        "cosine": run.cosine,
        "label_accuracy": run.pseudo_label_accuracy,
        "mean": mean,
        "spread": spread,
        "bayes": found.bayes.semi_supervised,
        "labeled_only": found.labeled_only.error,
        **constants(found.recipe, "lambda_l", "lambda_u", "annealing"),
    }


REUSE = Computation(
    reuse,
    {
        **outputs(
            "t",
            "t",
            error=r"\epsilon_g^{(t)}",
            cosine=r"m/\sqrt q",
            label_accuracy="accuracy of the pseudo-labels",
            mean=r"\epsilon_g^{(t)}, mean of finite systems",
            spread=r"\epsilon_g^{(t)}, standard deviation of finite systems",
        ),
        **outputs("bayes labeled_only lambda_l lambda_u annealing"),
    },
    seconds=lambda reused, kept, steps, **_: steps * (1.5 if reused or kept else 0.1),
)
