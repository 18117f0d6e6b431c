"""Every k-th step of a long run: what there is to see of it, without the memory of all of it.

Laws, gradients and comparisons need the step before each step, so they take a whole `Trajectory`
and refuse this one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import StageError
from ..observables import SYMBOLS
from ..problem import Problem
from ..recipe import Recipe
from .diagnostics import train_loss
from .trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True, eq=False)
class KeptSteps:
    """Steps 0, k, 2k, ... and the last one of a run; every quantity of a `Trajectory` is an array
    over them.

    Attributes:
        t: the steps that were kept.
        values: the quantities by name; each is an attribute too (`kept.error`).
        collapsed_at: as in `Trajectory`, whether that step was kept or not; `failure` likewise.
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
            raise AttributeError(f"KeptSteps has no {name}; it has t, {', '.join(values)}")
        return np.asarray(values[name])

    def summary(self) -> dict[str, Any]:
        """How the run was solved, over all steps."""
        return dict(self.solver)

    def to_frame(self) -> pd.DataFrame:
        """All quantities, one row per kept step, indexed by t."""
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


def names_of(problem: Problem) -> tuple[str, ...]:
    """The quantities of a run: clusters with a shape have two more."""
    return (*SYMBOLS, "balanced_error", "auc") if problem.shaped else tuple(SYMBOLS)


def keep(run: Trajectory, every: int) -> KeptSteps:
    """Steps 0, k, 2k, ... and the last one."""
    steps = np.unique(np.append(np.arange(0, run.problem.steps + 1, every), run.problem.steps))
    loss = _train_loss(run, steps)
    averaged = {"train_loss": loss, "objective": run.objective_with(loss)}
    values = {
        name: np.array((averaged[name] if name in averaged else getattr(run, name))[steps])
        for name in names_of(run.problem)
    }
    return KeptSteps(
        run.problem, run.recipe, steps, values, run.collapsed_at, run.failure, run.summary()
    )


def _train_loss(run: Trajectory, steps: NDArray[np.int64]) -> Array:
    """The training loss, over all steps but known at the given ones only: it takes a pass over the
    equations of each.
    """
    if run.memory is not None or run.problem.shaped:
        return run.train_loss
    losses = np.full(run.problem.steps + 1, np.nan)
    losses[steps] = train_loss(run, steps)
    return losses
