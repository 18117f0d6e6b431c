r"""The search where samples are reused, and for K classes: the error on one replicate, its slopes
by differences.

The theory is then an average over replicates (`theory.causal`). One replicate that stays
the same for all recipes makes the error a smooth function of them, a little off the true one; the
optimum on it is off by the square of that, and the run that is returned is solved on as many
replicates as its tolerance needs. Hard labels and thresholds make the error on points jump: then
the search is a simplex, and its end is not confirmed by slopes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array
from ..protocol import protocol_of
from ..recipe import Recipe
from ..theory.causal.known import before_reuse
from ..theory.causal.solve import run_one_replicate
from ..theory.solve import solve
from .search import WORST, Index, Search
from .starts import Descent, Start

ROUGH_POINTS, POINTS = 2**10, 2**11
"""Points for each class and group, while starts are followed and at the end: off by about
1e-3 and 5e-4.
"""

SHORT, LONG = 3e-3, 3e-2
"""Distances of differences, of errors and of slopes, in the coordinates of the search."""

ROUGHLY, STATIONARY = 3e-5, 5e-7
"""Slopes this small end a rough search, and are zero as far as differences can say."""


@dataclass
class ReuseSearch(Search):
    """A `Search` on one replicate."""

    near: dict[int, Array] | None = field(default=None)
    points: int = ROUGH_POINTS

    def run(self, recipe: Recipe, tolerance: float) -> Any:
        """The run on the replicate, started from the one before."""
        exact = None
        if self.problem.classes == 2:
            exact = solve(*before_reuse(self.problem, recipe))
            if exact.collapsed_at is not None:
                return exact
        found = run_one_replicate(self.problem, recipe, exact, self.points, self.near)
        self.near = found.moves
        return found.trajectory

    def slope(self, x: Array, tolerance: float) -> tuple[float, Array]:
        """The error and its slopes by differences inside the bounds."""
        value, run = self.error(x, tolerance)
        slope = np.zeros(x.size)
        if run is None:
            return WORST, slope
        low, high = self.variables.box()
        for i in range(x.size):
            ahead, behind = x.copy(), x.copy()
            ahead[i], behind[i] = min(x[i] + SHORT, high[i]), max(x[i] - SHORT, low[i])
            above, below = self.error(ahead, tolerance)[0], self.error(behind, tolerance)[0]
            slope[i] = (above - below) / (ahead[i] - behind[i])
        return value, slope

    def hessian(self, x: Array, slope: Array, free: Index, tolerance: float) -> Array:
        """Second derivatives along free coordinates, by differences of slopes."""
        low, high = self.variables.box()
        rows = []
        for i in free:
            there = x.copy()
            there[i] = x[i] + LONG if x[i] + LONG <= high[i] else max(x[i] - LONG, low[i])
            rows.append((self.slope(there, tolerance)[1] - slope)[free] / (there[i] - x[i]))
        hessian = np.array(rows)
        return np.asarray(0.5 * (hessian + hessian.T))

    def follow(self, begins: list[Start], tolerance: float, most: int) -> Descent:
        """Near the best optimum that these starts lead to; the best of them are followed."""
        ranked = sorted(begins, key=lambda start: self.error(start.x, tolerance)[0])
        ways = [Descent(*self._down(start.x, tolerance), start.name) for start in ranked[:most]]
        return min(ways, key=lambda found: found.value)

    def finish(self, x: Array, tolerance: float) -> tuple[Array, float, float]:
        """To the optimum on more points, and what slopes say of it; nothing where the error
        jumps.
        """
        self.points, self.best = POINTS, np.inf
        if self._jumps(x):
            return x, np.nan, np.nan
        _, x = self.descend(x, tolerance, STATIONARY)
        return x, *self.conditions(x, tolerance)

    def _down(self, x: Array, tolerance: float) -> tuple[float, Array]:
        if self._jumps(x):
            return self.simplex(x, tolerance)
        return self.descend(x, tolerance, ROUGHLY, 40)

    def _jumps(self, x: Array) -> bool:
        """Whether labels jump, here or where the search may go."""
        recipe = self.variables.recipe(x)
        return "threshold" in self.variables.names or protocol_of(self.problem, recipe).jumps
