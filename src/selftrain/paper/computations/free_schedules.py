r"""Self-training compared with the Bayes error, from one tuned constant to all hyperparameters free
at every step.

There are four ways to tune (`WAYS`), all with $\lambda_L$ tuned: a constant $\lambda_U$; also a
threshold or, if the bias is fixed, annealed labels (the paper's heuristics); $\lambda_U$ free at
every step; $\lambda_U$, sharpness and threshold free at every step. A search starts at the optimum
of the ways that it generalises, so that its error is not larger, and at the stretched schedule of a
shorter run. So a point of a sweep is a whole chain of T.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import NoGradient, StageError
from ...parameters import LARGEST_RIDGE, SMALLEST_RIDGE
from ...problem import Problem
from ...recipe import Recipe
from ...simulation.simulate import simulate
from ...sweeps import Computation
from ...tuning.optimize import optimize
from ...tuning.optimum import Optimum
from .chains import RIDGES, helped_starts, plain_starts, selected
from .outputs import outputs
from .tuned import better, references, tuned

WAYS = ("constant", "selection or annealing", "free ridge", "all free")
"""Ways to tune; the second is selection if the bias is trained, annealing if it is fixed."""

STILL = Recipe(lambda_l=1e-3, lambda_u=1e-7)
"""A start with steps that hardly change the model: best if larger steps raise the error."""

FREE = ("lambda_u", "sharpness", "threshold")
TOLERANCE = 1e-8
FLOORS = (SMALLEST_RIDGE, 1e-10, 1e-8)
"""Lower bounds for the ridges of a schedule; the next one is tried if the solver cannot confirm the
run."""

LIMIT = 120
"""Largest number of iterations of a search for a schedule; results include the last gradient."""


def schedules(fix_bias: bool, longest: int, **setting: Any) -> dict[str, Any]:
    """Tune in all `WAYS` for T = 4, 16, 64, ..., `longest`.

    Returns:
        Errors, and schedules over t = 1..`longest`, NaN after the end of shorter runs.
    """
    lengths = [4**k for k in range(1, 10) if 4**k <= longest]
    chains: list[dict[str, Optimum]] = []
    for steps in lengths:
        problem = Problem(**setting, steps=steps)
        chains.append(_ways(problem, fix_bias, chains[-1] if chains else {}))

    def table(measure: Any) -> Array:
        return np.array([[measure(ways[name]) for name in WAYS] for ways in chains])

    def schedule(best: Optimum, name: str) -> Array:
        values = getattr(best.recipe.at_steps(best.problem.steps), name)
        return np.append(values, np.full(longest - len(values), np.nan))

    compared = [references(ways["constant"]) for ways in chains]
    return {
        "T": np.array(lengths),
        "way": np.arange(len(WAYS)),
        "t": np.arange(1, longest + 1),
        "error": table(lambda best: best.error),
        "cosine": table(lambda best: best.trajectory.cosine[-1]),
        "lambda_l": table(lambda best: best.recipe.lambda_l),
        "first_order": table(lambda best: best.first_order),
        **{name: table(lambda best, name=name: schedule(best, name)) for name in FREE},
        **{name: np.array([one[name] for one in compared]) for name in compared[0]},
    }


def _ways(problem: Problem, fix_bias: bool, last: dict[str, Optimum]) -> dict[str, Optimum]:
    """Tune in all `WAYS`; `last` has the optima of the run with a quarter of the steps."""
    steps = problem.steps
    starts = [*plain_starts(steps), *(_quicker(best) for best in list(last.values())[:1]), STILL]
    constant = tuned(problem, RIDGES, [start.replace(fix_bias=fix_bias) for start in starts])
    if fix_bias:
        second = tuned(problem, (*RIDGES, "annealing"), helped_starts(steps))
    else:
        second = selected(problem, constant)
    ridge = _freed(problem, ("lambda_u",), constant.recipe, last.get("free ridge"))
    every = _freed(problem, FREE, better(ridge, second).recipe, last.get("all free"))
    return dict(zip(WAYS, (constant, second, ridge, every), strict=True))


def _quicker(last: Optimum) -> Recipe:
    """Return a recipe for four times the steps: a quarter of the ridges."""
    ridges = {name: max(getattr(last.recipe, name) / 4, SMALLEST_RIDGE) for name in RIDGES}
    return last.recipe.replace(**ridges)


def _freed(problem: Problem, free: tuple[str, ...], start: Recipe, last: Optimum | None) -> Optimum:
    """Return the better of two searches: from a start, and from the stretched schedule of a shorter
    run.
    """
    begins = [_spelled_out(start, problem.steps, free)]
    if last is not None:
        begins.append(_stretched(last, problem.steps, free))
    return better(*(_searched(problem, free, start) for start in begins))


def _searched(problem: Problem, free: tuple[str, ...], start: Recipe) -> Optimum:
    """Search for the best schedule near a start, with ridges down to the smallest ones that the
    solver confirms.
    """
    for floor in FLOORS:
        bounds = {"lambda_u": (floor, LARGEST_RIDGE)}
        ridges = np.clip(np.asarray(start.lambda_u), floor, LARGEST_RIDGE)
        begin = start.replace(lambda_u=tuple(ridges.tolist()))
        try:
            return optimize(
                problem, ("lambda_l",), bounds, free, begin,
                starts=1, tolerance=TOLERANCE, limit=LIMIT,
            )  # fmt: skip
        except StageError:
            continue
    raise NoGradient("no schedule near the start has a run that is confirmed")


def _spelled_out(recipe: Recipe, steps: int, free: tuple[str, ...]) -> Recipe:
    """Return the recipe with schedules for the `free` hyperparameters; annealing becomes a schedule
    of the sharpness.
    """
    values = recipe.at_steps(steps)
    written = {name: tuple(getattr(values, name).tolist()) for name in free}
    return recipe.replace(**written, **({"annealing": 0.0} if "sharpness" in free else {}))


def _stretched(last: Optimum, steps: int, free: tuple[str, ...]) -> Recipe:
    """Return the schedules of a shorter run stretched to more steps: the first step stays, the
    others are slower by the ratio of the lengths.
    """
    short = last.problem.steps
    ratio = steps / short
    values = last.recipe.at_steps(short)
    t = np.arange(1, steps + 1)
    at = np.clip(1 + (t - 1) * (short - 1) / (steps - 1), 1, short)
    bend = np.where(t == 1, 1.0, ratio)
    written = {}
    for name in free:
        curve = np.interp(at, np.arange(1, short + 1), getattr(values, name))
        if name == "lambda_u":
            curve = np.clip(curve / bend, SMALLEST_RIDGE, LARGEST_RIDGE)
        elif name == "sharpness":
            # towards 1; in this form a bend of 1 changes nothing, so that bounds are kept exactly
            curve = curve + (1.0 - curve) * (1.0 - 1.0 / bend)
        written[name] = tuple(curve.tolist())
    return last.recipe.replace(**written)


def confirmed(steps: int, features: int, seeds: int, **setting: Any) -> dict[str, Any]:
    """Simulate the best schedule with a fixed bias; return mean, standard error and theory."""
    found = schedules(fix_bias=True, longest=steps, **setting)
    row = found["error"][-1]
    best = int(np.argmin(row))
    values = {name: tuple(found[name][-1, best].tolist()) for name in FREE}
    recipe = Recipe.from_dict(
        {"lambda_l": float(found["lambda_l"][-1, best]), "fix_bias": True, **values}
    )
    problem = Problem(steps=steps, **setting)
    ensemble = simulate(problem, recipe, features, seeds, probes=0, progress=False, workers=1)
    errors = ensemble.values("error")[:, -1]
    return {
        "theory": float(row[best]),
        "mean": float(errors.mean()),
        "standard_error": float(errors.std(ddof=1) / np.sqrt(errors.size)),
    }


SCHEDULES = Computation(
    schedules,
    {
        **outputs("T labeled_only supervised bayes", "T"),
        **outputs("", "way", way="way"),
        **outputs("t", "t"),
        **outputs("error lambda_l first_order", "T", "way", cosine=r"m^{(T)}/\sqrt{q^{(T)}}"),
        **outputs(
            "",
            *("T", "way", "t"),
            lambda_u=r"\lambda_U^{(t)*}",
            sharpness=r"\gamma^{(t)*}",
            threshold=r"\Gamma^{(t)*}",
        ),
    },
    seconds=lambda longest, **_: 0.5 * longest,
)
CONFIRMED = Computation(
    confirmed,
    outputs("", **dict.fromkeys(("theory", "mean", "standard_error"), r"\epsilon_g^{(T)}")),
    seconds=lambda steps, features, seeds, **_: 3.0 * steps + 1e-6 * steps * features * seeds,
)
