"""Every k-th step of a long run: `Trajectory.every`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import StageError
from ..fields import number
from ..observables import SYMBOLS
from ..problem import Problem
from ..recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from .trajectory import Trajectory

QUANTITIES = (*SYMBOLS, "balanced_error", "auc")
"""What a thinned run has of every step."""


@dataclass(frozen=True, eq=False)
class ThinnedRun:
    """Steps 0, k, 2k, ... and the last one of a run; every quantity of a `Trajectory` is an array
    over them.

    Laws, gradients and comparisons need the step before each step: they take a whole `Trajectory`.

    Attributes:
        t: the steps.
        values: the quantities by name; each is an attribute too (`thinned.error`).
        collapsed_at: as in `Trajectory`, whether that step is among them or not; `failure` too.
        solver: the summary of all steps.
    """

    problem: Problem
    recipe: Recipe
    t: NDArray[np.int64]
    values: dict[str, Array] = field(repr=False)
    collapsed_at: int | None
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

    def to_frame(self) -> pd.DataFrame:
        """All quantities, one row per step, indexed by t."""
        import pandas as pd

        return pd.DataFrame(self.values, index=pd.Index(self.t, name="t"))

    def to_xarray(self) -> xr.Dataset:
        """All quantities over the dimension t, with symbols."""
        import xarray as xr

        data = {
            name: ("t", values, {"symbol": SYMBOLS.get(name, name)})
            for name, values in self.values.items()
        }
        attributes = {"problem": self.problem.to_json(), "recipe": self.recipe.to_json()}
        return xr.Dataset(data, coords={"t": self.t}, attrs=attributes)


def thin(run: Trajectory, every: Any) -> ThinnedRun:
    """Return steps 0, k, 2k, ... and the last one of a run."""
    k, last = checked_every(every), run.problem.steps
    steps = np.unique(np.append(np.arange(0, last + 1, k), last))
    loss = np.full(last + 1, np.nan)
    loss[steps] = run.train_loss_at(steps)
    averaged = {"train_loss": loss, "objective": run.objective_with(loss)}
    values = {
        name: np.array((averaged[name] if name in averaged else getattr(run, name))[steps])
        for name in QUANTITIES
    }
    return ThinnedRun(
        run.problem, run.recipe, steps, values, run.collapsed_at, run.failure, run.summary()
    )


def checked_every(every: Any) -> int:
    """Validate `every`."""
    accepted = "must be a whole number of steps, 1 or more"
    return int(number("every", every, lambda k: 1 <= k < math.inf and k % 1 == 0, accepted))
