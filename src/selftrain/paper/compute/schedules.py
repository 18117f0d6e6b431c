r"""How close self-training comes to the Bayes limit, from one constant to every hyperparameter free at every step.

Ways, all with $\lambda_L$ tuned: a constant $\lambda_U$; a threshold too; the paper's heuristics (bias fixed, labels
annealed); $\lambda_U$ free at every step; $\lambda_U$, sharpness and threshold free at every step; the last two with the bias trained
and with the bias fixed. Each way starts from the best of those it contains, so none can end above them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...problem import Problem
from ...recipe import Recipe
from ...simulation.run import simulate
from ...sweep import Computation, Output
from ...tuning.optimize import optimize
from ...tuning.optimum import Optimum
from .chains import RIDGES, helped_starts, plain_starts, selected
from .tuned import tuned

WAYS = (
    "constant",
    "selection",
    "heuristics",
    "free ridge",
    "free ridge, bias fixed",
    "all free",
    "all free, bias fixed",
)
FREE = ("lambda_u", "sharpness", "threshold")
TOLERANCE = 1e-9


def tuned_ways(
    alpha_l: float, alpha_u: float, rho: float, delta: float, steps: int
) -> dict[str, Optimum]:
    """The best recipe of each way."""
    problem = Problem(alpha_l, alpha_u, rho, delta, steps=steps)
    found = {"constant": tuned(problem, RIDGES, plain_starts(steps))}
    found["selection"] = selected(problem, found["constant"])
    found["heuristics"] = tuned(problem, (*RIDGES, "annealing"), helped_starts(steps))
    held = found["constant"].recipe.replace(fix_bias=True)
    found["free ridge"] = _freed(problem, ("lambda_u",), [found["constant"].recipe])
    found["free ridge, bias fixed"] = _freed(
        problem, ("lambda_u",), [held, found["heuristics"].recipe.replace(annealing=0.0)]
    )
    found["all free"] = _freed(
        problem, FREE, [found["free ridge"].recipe, found["selection"].recipe]
    )
    found["all free, bias fixed"] = _freed(
        problem, FREE, [found["free ridge, bias fixed"].recipe, found["heuristics"].recipe]
    )
    return found


def _freed(problem: Problem, free: tuple[str, ...], starts: list[Recipe]) -> Optimum:
    """The best schedule that the starts lead to."""
    return min(
        (
            optimize(
                problem,
                ("lambda_l",),
                schedule=free,
                start=_spelled_out(start, problem.steps, free),
                starts=1,
                tolerance=TOLERANCE,
            )
            for start in starts
        ),
        key=lambda one: one.error,
    )


def _spelled_out(recipe: Recipe, steps: int, free: tuple[str, ...]) -> Recipe:
    """The recipe with a value a step for what is free, annealing written as sharpness."""
    values = recipe.at_steps(steps)
    written = {name: tuple(getattr(values, name).tolist()) for name in free}
    return recipe.replace(**written, **({"annealing": 0.0} if "sharpness" in free else {}))


def schedules(steps: int, longest: int, **setting: Any) -> dict[str, Any]:
    """Errors of all ways, and the schedules of the free ones over t = 1..`longest` (NaN after the last step)."""
    found = tuned_ways(steps=steps, **setting)
    first = found["constant"]
    curves = {
        name: np.array([_padded(getattr(best.recipe.at_steps(steps), name), longest) for best in found.values()])
        for name in FREE
    }  # fmt: skip
    return {
        "way": np.arange(len(WAYS)),
        "t": np.arange(1, longest + 1),
        "error": np.array([best.error for best in found.values()]),
        "cosine": np.array([best.trajectory.cosine[-1] for best in found.values()]),
        "lambda_l": np.array([best.recipe.lambda_l for best in found.values()]),
        "first_order": np.array([best.first_order for best in found.values()]),
        **curves,
        "labeled_only": first.labeled_only.error,
        "supervised": first.supervised.error,
        "bayes": first.bayes.semi_supervised,
    }


def _padded(values: Any, size: int) -> Any:
    return np.append(values, np.full(size - len(values), np.nan))


def confirmed(steps: int, features: int, seeds: int, **setting: Any) -> dict[str, Any]:
    """The best of all ways at finite size: errors of the seeds next to the theory."""
    best = min(tuned_ways(steps=steps, **setting).values(), key=lambda one: one.error)
    ensemble = simulate(
        best.problem, best.recipe, features, seeds, probes=0, progress=False, workers=1
    )
    errors = ensemble.values("error")[:, -1]
    return {
        "theory": best.error,
        "mean": float(errors.mean()),
        "standard_error": float(errors.std(ddof=1) / np.sqrt(errors.size)),
    }


SCHEDULES = Computation(
    schedules,
    {
        "way": Output("way", ("way",)),
        "t": Output("t", ("t",)),
        "error": Output(r"\epsilon_g^{(T)}", ("way",)),
        "cosine": Output(r"m^{(T)}/\sqrt{q^{(T)}}", ("way",)),
        "lambda_l": Output(r"\lambda_L^*", ("way",)),
        "first_order": Output(r"\|\nabla\epsilon_g^{(T)}\|_\infty", ("way",)),
        "lambda_u": Output(r"\lambda_U^{(t)*}", ("way", "t")),
        "sharpness": Output(r"\gamma^{(t)*}", ("way", "t")),
        "threshold": Output(r"\Gamma^{(t)*}", ("way", "t")),
        "labeled_only": Output(r"\epsilon_g"),
        "supervised": Output(r"\epsilon_g^{(SL)}"),
        "bayes": Output(r"\epsilon_{Bayes}"),
    },
    engines=("theory", "tuning", "paper/compute/tuned.py", "paper/compute/chains.py"),
    seconds=lambda steps, **_: 2.0 * steps,
)

CONFIRMED = Computation(
    confirmed,
    {
        "theory": Output(r"\epsilon_g^{(T)}"),
        "mean": Output(r"\epsilon_g^{(T)}"),
        "standard_error": Output(r"\epsilon_g^{(T)}"),
    },
    engines=("theory", "tuning", "simulation", "paper/compute/tuned.py", "paper/compute/chains.py"),
    seconds=lambda steps, features, seeds, **_: 2.0 * steps + 1e-6 * steps * features * seeds,
)
