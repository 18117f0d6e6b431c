"""The result of `optimize`: the recipe, how it was found, and whether to use it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import StageError
from ..parameters import SEARCH_BOUNDS
from ..problem import Problem
from ..recipe import Recipe
from ..theory.bayes import BayesLimits
from ..theory.solve import solve
from ..theory.tolerances import TOLERANCE
from .heuristics import heuristic_recipes
from .limits import Limits
from .supervised import SupervisedFit, SupervisedOptimum
from .variables import Variables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Answer", "Improvement", "Optimum", "active_bounds"]

STATIONARY = 1e-6
"""A projected gradient below this, in logarithms of ridges, counts as zero."""

FLAT = 1e-7
"""A curvature smaller than this is zero as far as differences of gradients can tell."""


ROUGH = 1e-5
"""Tolerance of a run that is only mentioned."""

HARDLY = 0.05
"""Self-training that closes less than this part of the gap to the limit is hardly worth it."""


@dataclass(frozen=True)
class Improvement:
    """A recipe that improved on all before it, after so many solves."""

    solves: int
    error: float
    recipe: Recipe


@dataclass(frozen=True)
class Answer:
    """What to do: so many steps of self-training with a recipe, or the supervised baseline.

    Attributes:
        self_training: whether to self-train at all.
        steps: how many steps; 0 for the supervised baseline.
        recipe: its recipe; without self-training only `lambda_l` is used.
        error: the error at the last step.
    """

    self_training: bool
    steps: int
    recipe: Recipe
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Optimum:
    r"""The best self-training that was found, and the answer whether to do it.

    Attributes:
        recipe: the best recipe of all steps. It may be worse than none of them: `answer` is what to
            do.
        trajectory: the run with it.
        path: the recipes that were best until the next one, in order.
        solves: runs of the solver the search took.
        bounds: of each optimised name.
        schedule: names that were free at every step.
        active_bounds: names at a bound: "lower" or "upper"; for a schedule {"lower": steps,
            "upper": steps}.
        first_order: largest entry of the gradient that bounds do not hold, in the coordinates of
            the search (logarithms of ridges and sharpness); zero at an optimum.
        second_order: least curvature of the error along free coordinates; NaN if bounds hold all of
            them.
        labeled_only: the best supervised fit to the labelled points, its ridge in the same bounds.
        start: the name of the start that led here: "given", or "default" if none was, "heuristics"
            (the paper's), "small ridges", "shorter run", "spread" (over the bounds).
    """

    recipe: Recipe
    trajectory: Any  # a Trajectory, of K classes a ClassTrajectory
    path: tuple[Improvement, ...]
    solves: int
    bounds: dict[str, tuple[float, float]]
    schedule: tuple[str, ...]
    active_bounds: dict[str, str | dict[str, tuple[int, ...]]]
    first_order: float
    second_order: float
    labeled_only: SupervisedFit
    start: str
    _supervised: SupervisedOptimum | None = None

    @property
    def problem(self) -> Problem:
        """The problem that was optimised."""
        problem: Problem = self.trajectory.problem
        return problem

    @property
    def error(self) -> float:
        """Generalisation error at the last step."""
        return float(self.trajectory.error[-1])

    @property
    def self_training(self) -> bool:
        """Whether the steps lower the error of the labelled points alone."""
        return self.problem.steps > 0 and self.error < self.labeled_only.error

    @property
    def answer(self) -> Answer:
        """What to do: self-train with this recipe, or fit the labelled points and stop."""
        if self.self_training or self.problem.steps == 0:
            return Answer(self.self_training, self.problem.steps, self.recipe, self.error)
        alone = self.recipe.replace(lambda_l=self.labeled_only.ridge)
        return Answer(False, 0, alone, self.labeled_only.error)

    @property
    def is_minimum(self) -> bool:
        """Whether gradient and curvature are those of a local minimum within the bounds, perhaps a
        flat one.
        """
        return self.first_order < STATIONARY and not self.second_order < -FLAT

    @property
    def is_flat(self) -> bool:
        """Whether the error hardly changes along some direction, so that the values along it mean
        little.
        """
        return bool(self.second_order < FLAT)

    @cached_property
    def limits(self) -> Limits:
        """What the error is compared with, each computed when it is first used."""
        ridge = self.bounds.get("lambda_l", SEARCH_BOUNDS["lambda_l"])
        fine = self.trajectory.stats.tolerance if self.problem.by_quadrature else TOLERANCE
        return Limits(self.problem, ridge, fine)

    @property
    def supervised(self) -> SupervisedOptimum:
        """The best fully supervised fit, its ridge in the same bounds."""
        return self._supervised or self.limits.supervised

    @property
    def bayes(self) -> BayesLimits:
        """The Bayes errors; known for spherical clusters only, others are rejected."""
        return self.limits.bayes

    @property
    def limit(self) -> float:
        """The Bayes error; for general covariances, the error of the best linear rule."""
        return self.limits.lowest

    @property
    def against(self) -> dict[str, float]:
        """Errors to compare with."""
        errors = {
            "t=0": float(self.trajectory.error[0]),
            "labeled only": self.labeled_only.error,
            "supervised, all labels": self.supervised.error,
        }
        if self.problem.shaped:
            return errors | {"best linear rule": self.limit}
        return errors | {
            "Bayes, labeled only": self.bayes.labeled_only,
            "Bayes, all data": self.bayes.semi_supervised,
            "Bayes, all labels": self.bayes.all_labeled,
        }

    @property
    def advice(self) -> str:
        """In words: whether self-training with this recipe is worth it."""
        alone, limit = self.labeled_only.error, self.limit
        trivial = 1.0 - max(self.trajectory.proportions)
        if self.problem.steps == 0:
            return f"A supervised fit: error {self.error:.6g}."
        closed = (alone - self.error) / (alone - limit)
        worth = (
            f"{alone:.6g} (supervised baseline) to {self.error:.6g}, {100 * closed:.1f}% of the"
            f" way to the limit {limit:.6g}"
        )
        if not self.self_training:
            return (
                "Do not self-train: fit the labelled samples alone, with lambda_l ="
                f" {self.labeled_only.ridge:.6g}. Every recipe that was tried raises the error,"
                f" from {alone:.6g} to {self.error:.6g} at best.{self._hint}"
            )
        if self.error >= trivial:
            return (
                f"Do not self-train this way: its error is {self.error:.6g}, and that of always "
                f"predicting the larger class {trivial:.6g}.{self._hint}"
            )
        if closed < HARDLY:
            still = ", and the best lambda_u is at its lower bound, where a step changes least"
            return (
                "Self-training this way is hardly worth it: the error goes from"
                f" {worth}{still if self._still else ''}.{self._hint}"
            )
        return f"Self-training lowers the error from {worth}."

    @cached_property
    def _hint(self) -> str:
        """What the heuristics of the paper do as they are, where the search was not allowed to try
        them and they are worth it.
        """
        allowed = self.recipe.fix_bias and "annealing" in self.bounds
        if allowed or not self.problem.by_quadrature:
            return ""
        errors = []
        for recipe in heuristic_recipes(Recipe(fix_bias=True), self.problem.steps):
            try:
                run = solve(self.problem, recipe, ROUGH)
            except StageError:
                continue
            if run.collapsed_at is None:
                errors.append(float(run.error[-1]))
        alone = self.labeled_only.error
        if alone - min(errors, default=alone) < HARDLY * (alone - self.limit):
            return ""
        return (
            f" A fixed bias with annealed labels gives {min(errors):.4g} before any tuning: add"
            " annealing and fix_bias to what is optimised."
        )

    @property
    def _still(self) -> bool:
        """Whether the ridge of the steps is at its lower bound, all along if it is free."""
        at_bound = self.active_bounds.get("lambda_u")
        if isinstance(at_bound, dict):
            return len(at_bound.get("lower", ())) == self.problem.steps
        return at_bound == "lower"

    def to_frame(self) -> pd.DataFrame:
        """The path, one row a recipe that improved; constants as they are, schedules by their last
        entry.
        """
        import pandas as pd

        rows = [
            {
                "solves": point.solves,
                "error": point.error,
                **{name: _last(getattr(point.recipe, name)) for name in self.bounds},
            }
            for point in self.path
        ]
        return pd.DataFrame(rows)

    def save(self, path: str | Path) -> Path:
        """Write the optimum, its run and its search to a netCDF file; `Optimum.load` gives them
        back.
        """
        from .stored import save

        return save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Optimum:
        """Read what `save` wrote."""
        from .stored import load

        return load(path)

    def plot(self, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
        """The run with its limits, the schedules, and the search; one `panel` of them on `ax`."""
        from ..plots.optimum import plot_optimum

        return plot_optimum(self, panel=panel, ax=ax)

    def _repr_html_(self) -> str:
        from ..plots.notebook import optimum_card

        return optimum_card(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_shown(getattr(self.recipe, name))}" for name in self.bounds)
        at_bound = f", at a bound: {', '.join(self.active_bounds)}" if self.active_bounds else ""
        better = "" if self.self_training or self.problem.steps == 0 else "do not self-train: "
        return f"Optimum({better}error={self.error:.8g}, {values}{at_bound}; {self.solves} solves)"


def active_bounds(variables: Variables, x: Array) -> dict[str, str | dict[str, tuple[int, ...]]]:
    """Which names sit on a bound; for a schedule, at which steps."""
    low, high = variables.box()
    found: dict[str, str | dict[str, tuple[int, ...]]] = {}
    for name, place in variables.slices().items():
        below = np.flatnonzero(x[place] <= low[place] + 1e-7)
        above = np.flatnonzero(x[place] >= high[place] - 1e-7)
        if name in variables.schedule:
            sides = {"lower": below, "upper": above}
            steps = {side: tuple((at + 1).tolist()) for side, at in sides.items() if at.size}
            if steps:
                found[name] = steps
        elif below.size or above.size:
            found[name] = "lower" if below.size else "upper"
    return found


def _last(value: Any) -> float:
    return float(value[-1]) if isinstance(value, tuple) else float(value)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{value[0]:.4g}..{value[-1]:.4g}"
    return f"{value:.6g}"
