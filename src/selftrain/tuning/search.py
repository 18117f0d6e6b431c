r"""Minimisation of the error in the coordinates of `variables`, by L-BFGS-B, Newton's method or
Nelder-Mead.

L-BFGS-B descends first at a rough tolerance. Its result is refined by Newton's method if there are
few coordinates, else by L-BFGS-B at the final tolerance. Recipes whose labels collapse, or whose
equations have no solution, count as an error of one, so that no line search ends there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from ..arrays import Array
from ..errors import NoGradient, StageError
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.progress import Progress
from ..theory.gradients.gradient import gradient
from ..theory.solve import solve
from .variables import Variables

Index = NDArray[np.intp]

ROUGH = 1e-5
"""Tolerance of the solver while starts are compared; the best is refined at the final tolerance."""

ROUGHLY_STATIONARY = 1e-5
"""Projected gradient at which a rough search ends."""

STATIONARY = 1e-9
"""Projected gradient at which the final search ends."""

AT_BOUND = 1e-9
"""Distance from a bound below which a coordinate counts as at it."""

NOISE = 1e-9
"""Increase of the error that is ignored: solved runs have errors of this size."""

LAST_STEPS = 8
"""Maximum number of Newton steps; each must at least halve the gradient."""

DIFFERENCE = 3e-4
"""Step of finite differences of the gradient, which has a much smaller error."""

WORST = 1.0
"""Value of a recipe without a final error."""

FULL_HESSIAN = 24
"""Maximum number of free coordinates for a full Hessian; with more, only the smoothest directions
of a schedule are used.
"""


@dataclass(frozen=True)
class Improvement:
    """A recipe that was better than all before it, and the number of solves until then."""

    solves: int
    error: float
    recipe: Recipe


@dataclass
class Search:
    """The objective of a search and its descent methods.

    Attributes:
        limit: maximum number of iterations.
        bar: progress of the runs.
        solves: number of runs solved.
        best: smallest error so far.
        last: the last run with a gradient, from which the next is started.
        trouble: why the last failed run failed.
        path: the successive best recipes.
        difference: step of finite differences of the gradient.
    """

    difference: ClassVar[float] = DIFFERENCE
    problem: Problem
    variables: Variables
    limit: int = 500
    bar: Progress | None = None
    solves: int = 0
    best: float = math.inf
    last: Any = None
    trouble: str = ""
    path: list[Improvement] = field(default_factory=list)

    def error(self, x: Array, tolerance: float) -> tuple[float, Any]:
        """Return the final error at x and its run; `WORST` and None if it fails or collapses."""
        self.solves += 1
        recipe = self.variables.recipe(x)
        try:
            run = self.run(recipe, tolerance)
        except StageError as error:
            self.trouble = str(error)
            self.report()
            return WORST, None
        if run.collapsed_at is not None:
            self.trouble = f"the labels collapse at step {run.collapsed_at}"
            self.report()
            return WORST, None
        value = float(run.error[-1])
        if tolerance <= ROUGH and value < self.best:
            self.best = value
            self.path.append(Improvement(self.solves, value, recipe))
        self.report()
        return value, run

    def report(self) -> None:
        """Report one more run to the progress bar."""
        if self.bar is not None:
            self.bar.advance(best=self.best if self.best < math.inf else None)

    def run(self, recipe: Recipe, tolerance: float) -> Any:
        """Return the run with a recipe, started from the last one."""
        return solve(self.problem, recipe, tolerance, warm_start=self.last)

    def slope(self, x: Array, tolerance: float) -> tuple[float, Array]:
        """Return the final error and its gradient in search coordinates."""
        value, run = self.error(x, tolerance)
        if run is None:
            return WORST, np.zeros(x.size)
        self.last = run
        try:
            return value, self.variables.slope(x, gradient(run))
        except (NoGradient, StageError) as error:
            self.trouble = str(error)
            return WORST, np.zeros(x.size)

    def descend(
        self, x: Array, tolerance: float, enough: float = STATIONARY, limit: int | None = None
    ) -> tuple[float, Array]:
        """Minimise by L-BFGS-B from x until the projected gradient is below `enough`, with restarts
        if its line search fails.
        """
        low, high = self.variables.box()
        limit = min(self.limit, limit or self.limit)
        value = math.inf
        for _ in range(4):
            with threadpool_limits(1):  # for so small arrays, threads cost more than they save
                found = minimize(
                    self.slope, x, args=(tolerance,), jac=True, method="L-BFGS-B",
                    bounds=list(zip(low, high, strict=True)),
                    options={
                        "maxiter": limit, "maxfun": 2 * limit,
                        "ftol": 1e-15, "gtol": enough, "maxcor": 20,
                    },
                )  # fmt: skip
            gain, value, x = value - float(found.fun), float(found.fun), np.asarray(found.x)
            if found.status != 2 or not gain > enough**2:  # 2: the line search failed
                break
        return value, x

    def finish(self, x: Array, tolerance: float) -> tuple[Array, float, float]:
        """Refine a point near an optimum; return the optimum and its `conditions`."""
        value, slope = self.slope(x, tolerance)
        if not value < WORST:  # without a gradient it cannot be refined
            return x, math.inf, math.nan
        free = self.free(x, slope)
        if 0 < free.size <= FULL_HESSIAN:
            hessian = self.hessian(x, slope, free, tolerance)
            x, slope = self._newton(x, value, slope, free, hessian, tolerance)
            left = float(np.abs(slope[self.free(x, slope)]).max(initial=0.0))
            if left <= STATIONARY and np.array_equal(self.free(x, slope), free):
                return x, left, float(np.linalg.eigvalsh(hessian).min())
        _, x = self.descend(x, tolerance)
        return x, *self.conditions(x, tolerance)

    def conditions(self, x: Array, tolerance: float) -> tuple[float, float]:
        """Return the largest entry of the projected gradient, and the smallest curvature along free
        coordinates.
        """
        value, slope = self.slope(x, tolerance)
        if not value < WORST:
            return math.inf, math.nan
        free = self.free(x, slope)
        first = float(np.abs(slope[free]).max(initial=0.0))
        if free.size == 0:
            return first, math.nan
        return first, float(np.linalg.eigvalsh(self.hessian(x, slope, free, tolerance)).min())

    def _newton(
        self, x: Array, value: float, slope: Array, free: Index, hessian: Array, tolerance: float
    ) -> tuple[Array, Array]:
        """Make Newton steps on the free coordinates as long as they halve the gradient; return the
        last x and the gradient there.
        """
        low, high = self.variables.box()
        for _ in range(LAST_STEPS):
            size = np.abs(slope[free]).max(initial=0.0)
            if size <= STATIONARY or np.linalg.eigvalsh(hessian).min() <= 0:
                break
            there = x.copy()
            there[free] -= np.linalg.solve(hessian, slope[free])
            if np.any(there < low) or np.any(there > high):
                break
            new_value, new_slope = self.slope(there, tolerance)
            if not (new_value <= value + NOISE and np.abs(new_slope[free]).max() < 0.5 * size):
                break
            x, value, slope = there, new_value, new_slope
        return x, slope

    def free(self, x: Array, slope: Array) -> Index:
        """Return the coordinates that are not at a bound, or that would move away from it."""
        low, high = self.variables.box()
        pressed = ((x <= low + AT_BOUND) & (slope >= 0)) | ((x >= high - AT_BOUND) & (slope <= 0))
        return np.flatnonzero(~pressed)

    def hessian(self, x: Array, slope: Array, free: Index, tolerance: float) -> Array:
        """Return the second derivatives along free coordinates by differences of gradients; if
        there are more than `FULL_HESSIAN`, along the smoothest directions only.

        Few digits are needed, so runs are solved to a hundred times the tolerance.
        """
        low, high = self.variables.box()
        rough = min(100 * tolerance, 1e-3)
        basis = np.eye(free.size)
        if free.size > FULL_HESSIAN:
            waves = np.outer(np.arange(FULL_HESSIAN), np.arange(free.size) + 0.5)
            basis = np.linalg.qr(np.cos(np.pi * waves / free.size).T)[0].T
        columns = []
        for direction in basis:
            move = np.zeros(x.size)
            move[free] = self.difference * direction / np.abs(direction).max()
            ahead, behind = np.clip(x + move, low, high), np.clip(x - move, low, high)
            there = max(ahead, behind, key=lambda at: float(np.abs(at - x).sum()))
            length = float((there - x)[free] @ direction)
            columns.append(basis @ (self.slope(there, rough)[1] - slope)[free] / length)
        hessian = np.array(columns).reshape(len(basis), len(basis))
        return np.asarray(0.5 * (hessian + hessian.T))

    def simplex(self, x: Array, tolerance: float) -> tuple[float, Array]:
        """Minimise by Nelder-Mead from x, as the paper does."""
        low, high = self.variables.box()
        size = np.minimum(0.3, 0.25 * (high - low))
        corners = x + np.diag(np.where(x + size <= high, size, -size))
        found = minimize(
            lambda at: self.error(at, tolerance)[0],
            x,
            method="Nelder-Mead",
            bounds=list(zip(low, high, strict=True)),
            options={
                "xatol": 1e-6, "fatol": 1e-11, "maxfev": 400 * x.size,
                "initial_simplex": np.vstack([x, corners]),
            },  # type: ignore[call-overload]
        )  # fmt: skip
        return float(found.fun), np.asarray(found.x)
