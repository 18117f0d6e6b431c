r"""A tuned run next to its continuous-time limit (`fig: vs continuous squared loss`), for any loss.

$(\lambda_L, \lambda_U)$ minimise the error of the last step; the path of the limit $\lambda_U \to
0$ starts from the same model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import SelfTrainError
from ...problem import Problem
from ...recipe import Recipe
from ...sweeps import Computation, Output
from ...theory.continuum.best_direction import best_direction
from ...theory.continuum.continuous_time import continuum
from ...theory.continuum.expansion import first_order, start_of
from ...tuning.optimum import Optimum
from .chains import RIDGES, plain_starts
from .tuned import tuned

SHOWN = 401
TIME_SCALES = 8.0
"""The path is followed over this many time scales of the direction, as they are at its start, at
least.
"""


def path(
    alpha_l: float, alpha_u: float, rho: float, delta: float, steps: int, loss: str
) -> dict[str, Any]:
    """Compute the squared cosine of the tuned run and of its limit, each over its own times."""
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=steps, loss=loss)
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
    """Return the tuned run, started from those of 1, 2, 4, ... steps."""
    best: Optimum | None = None
    for length in [2**k for k in range(problem.steps.bit_length()) if 2**k < problem.steps]:
        best = tuned(problem.replace(steps=length), RIDGES, plain_starts(length, best))
    return tuned(problem, RIDGES, plain_starts(problem.steps, best))


def _time_scale(problem: Problem, recipe: Recipe) -> float:
    r"""$\tau_M$: the time in which the odds M/(1 - M) grow by a factor e, on average until M =
    0.99.
    """
    scale = best_direction(problem, recipe).time_scale
    if scale is None:
        raise SelfTrainError("the path does not come to M = 0.99, or begins beyond: no time scale")
    return scale


PATH = Computation(
    path,
    {
        "tau": Output(r"\tau", ("point",)),
        "squared_cosine": Output(r"M_\tau", ("point",)),
        "tau_run": Output(r"\lambda_U^* t", ("run_point",)),
        "squared_cosine_run": Output("M^{(t)}", ("run_point",)),
        "apart": Output(r"\max_t |M^{(t)} - M_{\lambda_U t}|"),
        "lambda_l": Output(r"\lambda_L^*"),
        "lambda_u": Output(r"\lambda_U^*"),
        "time_scale": Output(r"\tau_M"),
        "error": Output(r"\epsilon_g^{(T)}"),
        "bayes": Output(r"\epsilon_{Bayes}"),
    },
    seconds=lambda steps, **_: 3.0 + steps * 0.006,
)
