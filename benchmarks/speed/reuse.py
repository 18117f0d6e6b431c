"""Data reuse: the time of a run, its growth with the steps and with the modes of a covariance, and
Newton's method compared with substitution.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from selftrain.mixture.clusters import Clusters
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.causal import replicate
from selftrain.theory.causal.newton import Solved
from selftrain.theory.causal.setting import before_reuse, setting_of
from selftrain.theory.causal.solve import run_one_replicate
from selftrain.theory.causal.step import CausalStep
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
MODES = 60
MOST_SUBSTITUTIONS = 2000


def measurements() -> Iterator[Line]:
    """Measure all lines, one after the other."""
    solve(_problem(1), RECIPE, 1e-3)
    for steps, limit in ((8, 3.0), (32, 60.0)):
        problem = _problem(steps)
        taken = seconds(partial(solve, problem, RECIPE, 1e-4))
        what = f"batch reused, labels kept, T = {steps}, to 1e-4"
        note = "processor time of one solve, with all replicates until the tolerance is met"
        yield Line(what, taken, "s", limit, False, note)
    yield from _classes()
    yield from _growth()
    yield from _covariance()
    yield from _against_substitution()


def _classes() -> Iterator[Line]:
    """Measure three and ten classes."""
    three = Clusters.from_gram([[1.5, 0.2, -0.3], [0.2, 1.2, 0.1], [-0.3, 0.1, 1.0]], DELTA)
    random = np.random.default_rng(0)
    means = random.normal(size=(10, MODES))
    means *= 2.0 / np.linalg.norm(means, axis=1)[:, None]
    ten = Clusters(means=means, covariance=0.5 * np.exp(0.5 * random.normal(size=MODES)))
    cases = (
        ("three classes, sphere, T = 4, to 1e-4", 1e-4, 2.0, Recipe(lambda_l=0.3, lambda_u=0.2),
         Problem(1.5, 2.0, (0.5, 0.3, 0.2), steps=4, clusters=three)),
        ("ten classes, 60 modes, T = 4, to 1e-3", 1e-3, 60.0, Recipe(lambda_l=0.3, lambda_u=0.2),
         Problem(3.0, 6.0, (0.1,) * 10, steps=4, clusters=ten)),
    )  # fmt: skip
    for what, tolerance, limit, recipe, problem in cases:
        solve(problem.replace(steps=1), recipe, 1e-3)  # compiles
        taken = seconds(partial(solve, problem, recipe, tolerance))
        yield Line(what, taken, "s", limit, False, "processor time, with all replicates")


def _problem(steps: int) -> Problem:
    return Problem(**PROBLEM, delta=DELTA, steps=steps)


def _one(problem: Problem) -> partial[Any]:
    exact = solve(*before_reuse(problem, RECIPE))
    return partial(run_one_replicate, setting_of(problem, RECIPE, exact), POINTS)


def _growth() -> Iterator[Line]:
    """Measure the time of one replicate against T: every step adds a column to each point, and sums
    over all columns.
    """
    lengths = (8, 16, 32)
    times = []
    for steps in lengths:
        times.append(seconds(_one(_problem(steps))))
        yield Line(f"one replicate of {2 * POINTS} points per group, T = {steps}", times[-1], "s")
    power = float(np.polyfit(np.log(lengths), np.log(times), 1)[0])
    yield Line(
        "time of one replicate grows as T to the power",
        power,
        "",
        3.0,
        False,
        f"slope over T = 8, 16, 32 at {2 * POINTS} points per group, plain starts; in number, sums"
        " over pairs of columns are T^3, proximal maps T",
    )


def _covariance() -> Iterator[Line]:
    """Measure the same run on a sphere and on a covariance of many modes."""
    random = np.random.default_rng(0)
    mean = random.normal(size=MODES)
    spectrum = DELTA * np.exp(0.5 * random.normal(size=MODES))
    clusters = Clusters(mean / np.linalg.norm(mean), spectrum)
    times = [
        seconds(_one(problem))
        for problem in (_problem(8), Problem(**PROBLEM, clusters=clusters, steps=8))
    ]
    what = f"one replicate of {2 * POINTS} points per group, T = 8, {MODES} modes"
    yield Line(what, times[1], "s", 2.0 * times[0], False, "Newton's method, as on the sphere")
    yield Line("the same against the sphere", times[1] / times[0], "x", 2.0, False)


def _against_substitution() -> Iterator[Line]:
    """Measure the evaluations of the equations per step on a replicate, each step started from the
    previous one.
    """
    problem = _problem(8)
    newton = float(np.mean(_one(problem)().trajectory.stats.evaluations[1:]))
    with patch.object(replicate, "solve_step", _substituted):
        damped = float(np.mean(_one(problem)().trajectory.stats.evaluations[1:]))
    yield Line("evaluations per step, Newton's method", newton, "")
    yield Line("evaluations per step, damped substitution", damped, "")
    yield Line(
        "substitution against Newton's method",
        damped / newton,
        "x",
        5.0,
        note="the same steps; substitution until changes are below 1e-8, Newton's to 1e-10",
    )


def _substituted(stage: CausalStep, starts: list[Any], near: Any = None) -> Solved:
    """Solve a step by damped substitution of its conjugates."""
    z, evaluations, change = starts[-1].copy(), 0, np.inf
    while change > 1e-8 and evaluations < MOST_SUBSTITUTIONS:
        residual = stage.evaluate(z, False).residual
        z, evaluations = stage.moved(z, -residual, 0.5), evaluations + 1
        change = float(np.abs(residual).max() / np.abs(z).max())
    return Solved(z, evaluations)
