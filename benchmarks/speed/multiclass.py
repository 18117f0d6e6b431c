"""K classes: the time of a run of three classes, and of ten with a covariance of sixty modes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from selftrain.mixture.clusters import Clusters
from selftrain.problem import Problem
from selftrain.recipe import Recipe
from selftrain.theory.solve import solve

from .measure import Line, seconds, timed

STEPS = 4
MODES = 60


def measurements() -> Iterator[Line]:
    """Measure all lines, one after the other."""
    three = Problem(
        1.2, 2.5, (0.45, 0.35, 0.2), steps=STEPS, clusters=Clusters.simplex(3, 1.7, delta=0.5)
    )
    recipe = Recipe(lambda_l=0.1, lambda_u=0.05)
    solve(three, recipe, 1e-3)  # compiles
    time = seconds(partial(solve, three, recipe, 1e-4), repeat=3)
    note = f"processor time, {STEPS} steps of fresh batches on a sphere"
    yield Line("three classes, to 1e-4", time, "s", 2.0, False, note)
    time, run = timed(partial(solve, ten_classes(), recipe, 1e-3))
    note = f"{STEPS} steps; accuracy reached {run.stats.accuracy.max():.1e}"
    yield Line(f"ten classes with {MODES} modes, to 1e-3", time, "s", 60.0, False, note)


def ten_classes() -> Problem:
    """Return ten imbalanced classes with random means and a log-normal spectrum."""
    random = np.random.default_rng(0)
    means = random.standard_normal((10, MODES)) * 1.5 / np.sqrt(MODES)
    clusters = Clusters(means=means, covariance=0.5 * np.exp(random.normal(0.0, 0.5, MODES)))
    shares = np.linspace(2.0, 1.0, 10)
    return Problem(2.0, 4.0, tuple(shares / shares.sum()), steps=STEPS, clusters=clusters)
