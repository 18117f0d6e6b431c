r"""A tuned run next to its continuous-time limit (`fig: vs continuous squared loss`), for any loss.

$(\lambda_L, \lambda_U)$ minimise the error of the last step; the path of the limit $\lambda_U \to 0$ starts from the same model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import SelfTrainError
from ...problem import Problem
from ...sweep import Computation, Output
from ...theory.bayes import bayes_error
from ...theory.continuum import continuum
from ...theory.direction import best_direction
from .chains import starts
from .tuned import tuned

SHOWN = 401
TIME_SCALES = 6.0
"""The path is followed over this many time scales of the direction at least."""


def path(
    alpha_l: float, alpha_u: float, rho: float, delta: float, steps: int, loss: str
) -> dict[str, Any]:
    """The squared cosine of the tuned run and of its limit, each over its own times."""
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=steps, loss=loss)
    best = tuned(problem, ("lambda_l", "lambda_u"), list(starts(steps, False, False, None)))
    run, recipe = best.run, best.recipe
    ridge = float(recipe.at_steps(steps).lambda_u[0])
    scale = best_direction(problem, recipe).time_scale
    if scale is None:
        raise SelfTrainError(f"the direction of {recipe!r} does not align in continuous time")
    limit = continuum(problem, recipe, until=max(steps * ridge, TIME_SCALES * scale))
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
        "time_scale": scale,
        "error": best.error,
        "bayes": bayes_error(problem).semi_supervised,
    }


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
    engines=("theory", "tuning", "paper/compute/tuned.py", "paper/compute/chains.py"),
    seconds=lambda steps, **_: 1.0 + steps * 0.003,
)
