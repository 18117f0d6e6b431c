"""The result of `optimize`: the recipe, how it was found, and whether to self-train at all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import StageError
from ..fields import as_tuples
from ..parameters import SEARCH_BOUNDS
from ..problem import Problem
from ..recipe import Recipe
from ..runtime.files import stored, write_netcdf
from ..theory.bayes import BayesLimits
from ..theory.run_file import as_dataset, from_dataset
from ..theory.solve import solve
from ..theory.tolerances import TOLERANCE
from ..theory.trajectory import Trajectory
from .limits import Limits
from .search import ROUGH, Improvement
from .search_starts import heuristic_recipes
from .supervised import SupervisedFit, SupervisedOptimum

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Answer", "Optimum"]

STATIONARY = 1e-6
"""A projected gradient below this, in the coordinates of the search, counts as zero."""

FLAT = 1e-7
"""Curvatures below this count as zero; differences of gradients are not more accurate."""

PLAIN = ("solves", "bounds", "schedule", "active_bounds", "first_order", "second_order", "start")
"""Fields that a file stores unchanged."""

HARDLY = 0.05
"""Self-training that closes less than this fraction of the gap between the supervised baseline and
the limit is hardly worth it.
"""


@dataclass(frozen=True)
class Answer:
    """A recommendation: self-training with a recipe, or the supervised baseline.

    Attributes:
        self_training: whether to self-train at all.
        steps: number of steps; 0 for the supervised baseline.
        recipe: the recipe; without self-training only its `lambda_l` matters.
        error: the error at the last step.
    """

    self_training: bool
    steps: int
    recipe: Recipe
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Optimum:
    r"""The best recipe that was found, and a recommendation whether to self-train with it.

    Attributes:
        recipe: the best recipe with all steps. It may be worse than the supervised baseline:
            `answer` says what to do.
        trajectory: the run with this recipe.
        path: the successive best recipes of the search.
        solves: number of runs that the search solved.
        bounds: bounds of each optimised quantity.
        schedule: quantities that were optimised at every step separately.
        active_bounds: quantities at a bound, with "lower" or "upper"; for a schedule with
            {"lower": steps, "upper": steps}.
        first_order: largest entry of the projected gradient, in the coordinates of the search
            (logarithms of ridges and sharpness); zero at an optimum.
        second_order: smallest curvature of the error along coordinates not at a bound; NaN if all
            are at a bound.
        labeled_only: the supervised baseline: the best fit to the labelled samples, its ridge in
            the same bounds.
        start: name of the start that led here: "given", "default" (none was given), "heuristics"
            (of the paper), "small ridges", "shorter run", or "spread" (over the bounds).
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
        """Whether self-training has a smaller error than the supervised baseline."""
        return self.problem.steps > 0 and self.error < self.labeled_only.error

    @property
    def answer(self) -> Answer:
        """The recommendation: self-train with this recipe, or use the supervised baseline."""
        if self.self_training or self.problem.steps == 0:
            return Answer(self.self_training, self.problem.steps, self.recipe, self.error)
        alone = self.recipe.replace(lambda_l=self.labeled_only.ridge)
        return Answer(False, 0, alone, self.labeled_only.error)

    @property
    def is_minimum(self) -> bool:
        """Whether gradient and curvature are those of a (possibly flat) local minimum within the
        bounds.
        """
        return self.first_order < STATIONARY and not self.second_order < -FLAT

    @property
    def is_flat(self) -> bool:
        """Whether the error hardly depends on some combination of the optimised quantities."""
        return bool(self.second_order < FLAT)

    @cached_property
    def limits(self) -> Limits:
        """Reference errors, each computed on first use."""
        ridge = self.bounds.get("lambda_l", SEARCH_BOUNDS["lambda_l"])
        fine = self.trajectory.stats.tolerance if self.problem.by_quadrature else TOLERANCE
        return Limits(self.problem, ridge, fine)

    @property
    def supervised(self) -> SupervisedOptimum:
        """The best fully supervised fit, its ridge in the same bounds."""
        return self.limits.supervised

    @property
    def bayes(self) -> BayesLimits:
        """The Bayes errors. They are known for spherical clusters only; others raise."""
        return self.limits.bayes

    @property
    def limit(self) -> float:
        """The Bayes error; for general covariances, the error of the best linear rule."""
        return self.limits.lowest

    @property
    def against(self) -> dict[str, float]:
        """Errors to compare the optimum with, by name."""
        errors = {
            "t=0": float(self.trajectory.error[0]),
            "supervised baseline": self.labeled_only.error,
            "fully supervised": self.supervised.error,
        }
        if self.problem.shaped:
            return errors | {"best linear rule": self.limit}
        return errors | {
            "Bayes, labelled only": self.bayes.labeled_only,
            "Bayes, all data": self.bayes.semi_supervised,
            "Bayes, all labelled": self.bayes.all_labeled,
        }

    @property
    def advice(self) -> str:
        """A sentence that says whether self-training with this recipe is worth it."""
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
                f" {worth}{still if self._ridge_at_lower_bound else ''}.{self._hint}"
            )
        return f"Self-training lowers the error from {worth}."

    @cached_property
    def _hint(self) -> str:
        """A sentence that recommends the paper's heuristics, if they are clearly better and the
        search was not allowed to use them.
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
    def _ridge_at_lower_bound(self) -> bool:
        """Whether lambda_u is at its lower bound, at every step if it is a schedule."""
        at_bound = self.active_bounds.get("lambda_u")
        if isinstance(at_bound, dict):
            return len(at_bound.get("lower", ())) == self.problem.steps
        return at_bound == "lower"

    def to_frame(self) -> pd.DataFrame:
        """Return the path of the search, one row per improvement; a schedule is represented by its
        last entry.
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
        """Write the optimum to a netCDF file for `Optimum.load`: the run, and the search as JSON in
        an attribute.
        """
        search = {
            **{name: getattr(self, name) for name in PLAIN},
            "recipe": self.recipe.to_json(),
            "path": [(one.solves, one.error, one.recipe.to_json()) for one in self.path],
            "labeled_only": asdict(self.labeled_only),
        }
        data = as_dataset(self.trajectory)
        data.attrs |= {"kind": "selftrain.Optimum", "search": json.dumps(search)}
        return write_netcdf(data, path)

    @classmethod
    def load(cls, path: str | Path) -> Optimum:
        """Read a file that `save` wrote."""
        with stored(path, "Optimum") as data:
            search = json.loads(data.attrs["search"])
            return cls(
                **{name: as_tuples(search[name]) for name in PLAIN},
                recipe=Recipe.from_json(search["recipe"]),
                trajectory=from_dataset(Trajectory.kinds(), data),
                path=tuple(
                    Improvement(solves, error, Recipe.from_json(recipe))
                    for solves, error, recipe in search["path"]
                ),
                labeled_only=SupervisedFit(**search["labeled_only"]),
            )

    def plot(self, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
        """Plot the run with its limits, the schedules, and the search; or a single `panel` on
        `ax`.
        """
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


def _last(value: Any) -> float:
    return float(value[-1]) if isinstance(value, tuple) else float(value)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{value[0]:.4g}..{value[-1]:.4g}"
    return f"{value:.6g}"
