"""Data reuse: time of a run, its growth with the steps, Newton's method against substitution."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from selftrain.mixture.clusters import Clusters
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.memory import shaped
from selftrain.theory.memory.anderson import WINDOW
from selftrain.theory.memory.solve import before_return, run_one_bank
from selftrain.theory.solve import solve

from .measure import Line, seconds

PROBLEM: dict[str, Any] = {
    "alpha_l": 0.8,
    "alpha_u": 2.2,
    "rho": 0.35,
    "batches": "reused",
    "keep_labeled": 1.0,
}
RECIPE = Recipe(lambda_l=0.05, lambda_u=0.03)
DELTA = 0.6
POINTS = 2**12


def measurements() -> Iterator[Line]:
    """Measure all lines, one after the other."""
    solve(_problem(1), RECIPE, 1e-3)
    for steps, limit in ((8, 3.0), (32, 60.0)):
        problem = _problem(steps)
        taken = seconds(partial(solve, problem, RECIPE, 1e-4))
        what = f"batch reused, labels kept, T = {steps}, to 1e-4"
        note = "processor time of one solve, with replicates until the tolerance is met"
        yield Line(what, taken, "s", limit, False, note)
    yield from _growth()
    yield from _against_substitution()


def _problem(steps: int) -> Problem:
    return Problem(**PROBLEM, delta=DELTA, steps=steps)


def _growth() -> Iterator[Line]:
    """Measure one quasi-Monte Carlo replicate against T: the columns of a sample grow with the
    steps, and each step sums all of them.
    """
    lengths = (8, 16, 32)
    times = []
    for steps in lengths:
        problem = _problem(steps)
        exact = solve(*before_return(problem, RECIPE))
        times.append(seconds(partial(run_one_bank, problem, RECIPE, exact, POINTS)))
        yield Line(f"one replicate of {2 * POINTS} samples a group, T = {steps}", times[-1], "s")
    power = float(np.polyfit(np.log(lengths), np.log(times), 1)[0])
    yield Line(
        "time of one replicate grows as T to the power",
        power,
        "",
        3.0,
        False,
        f"slope over T = 8, 16, 32 at {2 * POINTS} samples a group, plain starts; in number, sums"
        " over pairs of columns are T^3, proximal maps T",
    )


def _against_substitution() -> Iterator[Line]:
    """Count evaluations of the equations per step on a replicate, from the step before."""
    problem = _problem(8)
    exact = solve(*before_return(problem, RECIPE))
    run = run_one_bank(problem, RECIPE, exact, POINTS).trajectory
    newton = float(np.mean(run.stats.evaluations[1:]))
    mean = np.zeros(20)
    mean[0] = 1.0
    sphere = Problem(**PROBLEM, clusters=Clusters(mean, DELTA), steps=8)
    counts = {}
    for name, window in (("Anderson", WINDOW), ("substitution", 0)):
        replicate = shaped.run_bank(sphere, RECIPE, 2**10, np.random.SeedSequence(0), 8, window)
        counts[name] = float(np.mean(replicate.evaluations[1:]))
    yield Line("evaluations per step, Newton's method", newton, "")
    yield Line("evaluations per step, Anderson's acceleration", counts["Anderson"], "")
    yield Line("evaluations per step, damped substitution", counts["substitution"], "")
    yield Line(
        "substitution against Newton's method",
        counts["substitution"] / newton,
        "x",
        5.0,
        note=(
            "the same steps; substitution until changes are below 1e-8, Newton's last step below"
            " 1e-5, its error below 1e-10"
        ),
    )
