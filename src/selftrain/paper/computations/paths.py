r"""A tuned run and its continuous-time limit (`fig: vs continuous squared loss`), for any loss.

$(\lambda_L, \lambda_U)$ minimise the error of the last step; the path of the limit $\lambda_U \to
0$ starts from the same model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import SelfTrainError
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation
from ...theory.continuum.best_direction import best_direction
from ...theory.continuum.continuous_time import continuum
from ...theory.continuum.expansion import first_order, start_of
from ...tuning.optimum import Optimum
from .chains import RIDGES, plain_starts
from .outputs import outputs
from .tuned import tuned

SHOWN = 401
TIME_SCALES = 8.0
"""Smallest length of the path, in units of the time scale of the direction at its start."""


def path(steps: int, **setting: Any) -> dict[str, Any]:
    """Compute the squared cosine of the tuned run and of its limit, each at its own times."""
    problem = Problem(**setting, steps=steps)
    best = _best(problem)
    run, recipe = best.trajectory, best.recipe
    ridge = float(recipe.at_steps(steps).lambda_u[0])
    rate = first_order(problem, recipe, start_of(problem, recipe)).alignment_rate
    until = max(steps * ridge, TIME_SCALES / rate)
    limit = continuum(problem, recipe, until, tolerance=1e-8)
    times = np.linspace(0.0, limit.until, SHOWN)
    apart = np.abs(limit.compare(run).difference["squared_cosine"])
    shown = np.linspace(0, steps, SHOWN)
    return {
        "tau": times,
        "squared_cosine": limit(times).squared_cosine,
        "tau_run": ridge * shown,
        "squared_cosine_run": np.interp(shown, run.t, run.m**2 / run.q),
        "apart": float(apart.max()),
        "lambda_l": float(recipe.lambda_l),
        "lambda_u": ridge,
        "time_scale": _time_scale(problem, recipe),
        "error": best.error,
        "bayes": best.bayes.semi_supervised,
    }


def _best(problem: Problem) -> Optimum:
    """Tune a run, starting from the optima of 1, 2, 4, ... steps."""
    best: Optimum | None = None
    for length in [2**k for k in range(problem.steps.bit_length()) if 2**k < problem.steps]:
        best = tuned(problem.replace(steps=length), RIDGES, plain_starts(length, best))
    return tuned(problem, RIDGES, plain_starts(problem.steps, best))


def _time_scale(problem: Problem, recipe: Recipe) -> float:
    r"""Return $\tau_M$, the mean time in which the odds of M grow by a factor e, until M = 0.99."""
    scale = best_direction(problem, recipe).time_scale
    if scale is None:
        raise SelfTrainError("no time scale: the path does not reach M = 0.99, or begins beyond it")
    return scale


PATH = Computation(
    path,
    {
        **outputs("", "point", tau=r"\tau", squared_cosine=r"M_\tau"),
        **outputs("", "run_point", tau_run=r"\lambda_U^* t", squared_cosine_run="M^{(t)}"),
        **outputs(
            "error bayes lambda_l lambda_u",
            apart=r"\max_t |M^{(t)} - M_{\lambda_U t}|",
            time_scale=r"\tau_M",
        ),
    },
    seconds=lambda steps, **_: 3.0 + steps * 0.006,
)
