r"""The search with data reuse, and for K classes: the error on one quasi-Monte Carlo replicate,
gradients by finite differences.

The theory then averages over replicates (`theory.causal`). On one replicate, the same for all
recipes, the error is a smooth function of the recipe that deviates slightly from the true one. The
deviation of the optimal recipe affects its error only in second order, and the final run is solved
on as many replicates as its tolerance needs. With hard labels or thresholds the error on a
replicate is discontinuous: then Nelder-Mead is used, and the result is not confirmed by gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array
from ..protocol import protocol_of
from ..recipe import Recipe
from ..theory.causal.setting import before_reuse, setting_of
from ..theory.causal.solve import run_one_replicate
from ..theory.solve import solve
from .search import WORST, Search
from .search_starts import Descent, Start

ROUGH_POINTS, POINTS = 2**10, 2**11
"""Numbers of points per class and group, during the search and at its end; their errors deviate
from the limit by about 1e-3 and 5e-4.
"""

SHORT, LONG = 3e-3, 3e-2
"""Steps of finite differences for first and second derivatives, in search coordinates."""

ROUGHLY_STATIONARY, STATIONARY = 3e-5, 5e-7
"""Gradients at which a rough search and the final search end; finite differences are not more
accurate than the second.
"""


@dataclass
class ReuseSearch(Search):
    """A `Search` for problems with data reuse or K classes.

    All recipes are compared on the same quasi-Monte Carlo sample (one replicate), so that its
    fluctuations do not disturb the search.
    """

    difference: ClassVar[float] = LONG
    near: dict[int, Array] | None = field(default=None)
    points: int = ROUGH_POINTS

    def run(self, recipe: Recipe, tolerance: float) -> Any:
        """Return the run on the replicate, started from the solution of the previous run."""
        exact = None
        if self.problem.classes == 2:
            exact = solve(*before_reuse(self.problem, recipe))
            if exact.collapsed_at is not None:
                return exact
        found = run_one_replicate(setting_of(self.problem, recipe, exact), self.points, self.near)
        self.near = found.moves
        return found.trajectory

    def slope(self, x: Array, tolerance: float) -> tuple[float, Array]:
        """Return the error and its gradient by finite differences within the bounds."""
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

    def follow(self, begins: list[Start], tolerance: float, most: int) -> Descent:
        """Descend from the `most` best starts; return a point near the best optimum found."""
        ranked = sorted(begins, key=lambda start: self.error(start.x, tolerance)[0])
        descents = [Descent(*self._down(start.x, tolerance), start.name) for start in ranked[:most]]
        return min(descents, key=lambda found: found.value)

    def finish(self, x: Array, tolerance: float) -> tuple[Array, float, float]:
        """Descend to the optimum, with more points per average; return it with its `conditions`.

        If the error is discontinuous, x itself is returned, with conditions that are NaN.
        """
        self.points, self.best = POINTS, np.inf
        if self._jumps(x):
            return x, np.nan, np.nan
        _, x = self.descend(x, tolerance, STATIONARY)
        return x, *self.conditions(x, tolerance)

    def _down(self, x: Array, tolerance: float) -> tuple[float, Array]:
        if self._jumps(x):
            return self.simplex(x, tolerance)
        return self.descend(x, tolerance, ROUGHLY_STATIONARY, 40)

    def _jumps(self, x: Array) -> bool:
        """Return whether labels or selection are discontinuous, here or within the bounds."""
        recipe = self.variables.recipe(x)
        return "threshold" in self.variables.names or protocol_of(self.problem, recipe).jumps
