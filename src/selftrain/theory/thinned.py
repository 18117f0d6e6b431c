"""Every k-th step of a long run: `SolvedRun.every`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import StageError
from ..fields import number
from ..problem import Problem
from ..recipe import Recipe
from .over_steps import as_dataset, as_frame

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from .solved_run import SolvedRun


@dataclass(frozen=True, eq=False)
class ThinnedRun:
    """Steps 0, k, 2k, ... and the last one of a run; every quantity of a `Trajectory` is an array
    over them.

    Laws, gradients and comparisons need the step before each step: they take a whole `Trajectory`.

    Attributes:
        t: the steps.
        values: the quantities by name; each is an attribute too (`thinned.error`).
        collapsed_at, collapsed_class, failure: as in `Trajectory`, whether that step is among them
            or not.
        solver: the summary of all steps.
    """

    problem: Problem
    recipe: Recipe
    t: NDArray[np.int64]
    values: dict[str, Array] = field(repr=False)
    collapsed_at: int | None
    collapsed_class: int | None
    failure: StageError | None
    solver: dict[str, Any] = field(repr=False)

    def __getattr__(self, name: str) -> Array:
        values = self.__dict__.get("values", {})
        if name not in values:
            raise AttributeError(f"ThinnedRun has no {name}; it has t, {', '.join(values)}")
        return np.asarray(values[name])

    def summary(self) -> dict[str, Any]:
        """How the run was solved, over all steps."""
        return dict(self.solver)

    @property
    def RECORDED(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(self.values)

    def to_frame(self) -> pd.DataFrame:
        """All quantities, one row per step, indexed by t."""
        return as_frame(self.t, self.values)

    def to_xarray(self) -> xr.Dataset:
        """All quantities over the dimension t, with symbols."""
        parts = {"problem": self.problem, "recipe": self.recipe}
        about = {name: one.to_json() for name, one in parts.items() if one is not None}
        return as_dataset(self.t, self.values, about)


def thin(run: SolvedRun, every: Any) -> ThinnedRun:
    """Return steps 0, k, 2k, ... and the last one of a run."""
    k, last = checked_every(every), run.steps
    steps = np.unique(np.append(np.arange(0, last + 1, k), last))
    values = run.at(steps, run.RECORDED)
    return ThinnedRun(
        run.problem, run.recipe, steps, values, run.collapsed_at, run.collapsed_class, run.failure,
        run.summary(),
    )  # fmt: skip


def checked_every(every: Any) -> int:
    """Validate `every`."""
    accepted = "must be a whole number of steps, 1 or more"
    return int(number("every", every, lambda k: 1 <= k < math.inf and k % 1 == 0, accepted))
