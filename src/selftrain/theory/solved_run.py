"""`SolvedRun`: the base class of all results of `solve`, for two classes and for K.

A subclass stores the state and provides `class_errors` and `confusion`; the base class provides
errors, tables, thinning (`ThinnedRun`) and files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import InvalidInput, StageError
from ..fields import number, whole
from ..observables import SYMBOLS, entries
from .stats import SolverStats

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from ..problem import Problem
    from ..recipe import Recipe

__all__ = ["SolvedRun", "ThinnedRun"]

DIMENSIONS = {
    "confusion": ("true", "predicted"),
    "m": ("score", "true"),
    "bias": ("score",),
    "class_errors": ("true",),
    "label_shares": ("class",),
}
"""Names of the axes after t, of quantities that have such axes."""


class SolvedRun:
    """A solved run; every quantity is an array over the steps t = 0..T.

    Attributes:
        classes: the number K of classes.
        proportions: class proportions of the test mixture.
        q: squared norm of the weights.
        class_errors: the error within each class of the test mixture, (T+1, K).
        confusion: P(predicted class | true class) on the test mixture, (T+1, K, K), rows by true
            class.
        label_shares: class proportions among the pseudo-labels of each step, (T+1, K).
        stats: statistics of the solver.
        collapsed_at: first step whose labels lack a class (`collapsed_class`), or None.
        failure: why the run ended early (`on_failure="partial"`), or None.
    """

    TABLE: ClassVar[tuple[str, ...]]
    RECORDED: ClassVar[tuple[str, ...]]
    """Names of the quantities: `TABLE` of those in tables and files, `RECORDED` of all."""

    stats: SolverStats
    collapsed_at: int | None
    failure: StageError | None
    problem: Any
    recipe: Any

    if TYPE_CHECKING:  # a subclass provides these, as fields or properties

        @property
        def classes(self) -> int: ...

        @property
        def proportions(self) -> tuple[float, ...]: ...

        @property
        def steps(self) -> int: ...

        @property
        def q(self) -> Array: ...

        @property
        def class_errors(self) -> Array: ...

        @property
        def confusion(self) -> Array: ...

        @property
        def label_shares(self) -> Array: ...

    @property
    def t(self) -> NDArray[np.int64]:
        """Step indices 0..T."""
        return np.arange(self.steps + 1, dtype=np.int64)

    @property
    def good_steps(self) -> int:
        """The number of steps up to the last one that has a solved state, step 0 included."""
        solved = np.flatnonzero(np.isfinite(self.q))
        return int(solved[-1]) + 1 if solved.size else 0

    @property
    def error(self) -> Array:
        """The probability that the predicted class is wrong, on the test mixture."""
        errors = self.class_errors
        return np.asarray(sum(p * errors[:, k] for k, p in enumerate(self.proportions)))

    @property
    def balanced_error(self) -> Array:
        """The mean of the errors within the classes."""
        return np.asarray(self.class_errors.mean(axis=1))

    @property
    def predicted_shares(self) -> Array:
        """Proportion of each class among the predictions on the test mixture, (T+1, K)."""
        return np.asarray(np.einsum("k,tkc->tc", self.proportions, self.confusion))

    @property
    def collapsed_class(self) -> int | None:
        """The class that is missing among the labels of a collapsed run; None without collapse."""
        if self.collapsed_at is None:
            return None
        return int(np.argmin(self.label_shares[self.collapsed_at]))

    def solved_step(self, t: Any) -> int:
        """Return the index of step t (negative: from the end); raise if it has no solved state."""
        steps, good = self.steps, self.good_steps
        accepted = f"must be a step from 0 to {steps}, or a negative one from the end"
        index = whole("t", t, lambda n: -steps - 1 <= n <= steps, accepted) % (steps + 1)
        if not np.isfinite(self.q[index]):
            lost = "into one class" if self.classes == 2 else "and lack a class"
            failed = self.failure is not None and index >= good
            why = "it failed" if failed else f"the labels collapsed {lost}"
            where = (
                f"after step {good - 1}" if index >= good else "there, or in a fit it depends on"
            )
            accepted = f"must be a step with a state; {why} {where}"
            raise InvalidInput("t", t, accepted)
        return index

    def summary(self) -> dict[str, Any]:
        """Return statistics of the solver, as plain values."""
        return self.stats.summary()

    def every(self, k: int) -> ThinnedRun:
        """Return a thinned run with steps 0, k, 2k, ... and the last one only."""
        accepted = "must be a whole number of steps, 1 or more"
        k = int(number("every", k, lambda n: 1 <= n < math.inf and n % 1 == 0, accepted))
        steps = np.unique(np.append(np.arange(0, self.steps + 1, k), self.steps))
        return ThinnedRun(
            self.problem, self.recipe, steps, self.at(steps, self.RECORDED), self.collapsed_at,
            self.collapsed_class, self.failure, self.summary(),
        )  # fmt: skip

    def at(self, steps: NDArray[np.int64], names: Sequence[str]) -> dict[str, Array]:
        """Return the quantities `names` at the given steps, by name."""
        return {name: np.array(getattr(self, name)[steps]) for name in names}

    def to_frame(self) -> pd.DataFrame:
        """Return all quantities as a DataFrame, one row per step, indexed by t; `bias[0]` is the
        entry of class 0.
        """
        return as_frame(self.t, self.at(self.t, self.TABLE))

    def to_xarray(self) -> xr.Dataset:
        """Return all quantities over named dimensions, with symbols, problem and recipe as
        attributes.
        """
        return as_dataset(self.t, self.at(self.t, self.TABLE), self._attributes())

    def _repr_html_(self) -> str:
        from ..plots.notebook import trajectory_card

        return trajectory_card(self)

    def save(self, path: str | Path) -> Path:
        """Write the run to a netCDF file, which `Trajectory.load` reads; return its path."""
        from .run_file import save

        return save(self, path)

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes of the dataset of the run."""
        failure = None if self.failure is None else self.failure.to_dict()
        found = {
            "kind": "selftrain.Trajectory",
            "version": version("selftrain"),
            "collapsed_at": -1 if self.collapsed_at is None else self.collapsed_at,
            "failure": json.dumps(failure),
        }
        parts: dict[str, Problem | Recipe | None]
        parts = {"problem": self.problem, "recipe": self.recipe}
        return found | {name: one.to_json() for name, one in parts.items() if one is not None}


@dataclass(frozen=True, eq=False)
class ThinnedRun:
    """A run thinned to steps 0, k, 2k, ... and the last one; quantities are arrays over these.

    Laws, gradients and comparisons are not available: they need the step before each step, so a
    whole `Trajectory`.

    Attributes:
        t: the steps.
        values: the quantities by name; each is an attribute too (`thinned.error`).
        collapsed_at, collapsed_class, failure: as in `Trajectory`; the step may be one that was
            left out.
        solver: the solver's summary over all steps.
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
        """Return statistics of the solver over all steps, as plain values."""
        return dict(self.solver)

    @property
    def RECORDED(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(self.values)

    def to_frame(self) -> pd.DataFrame:
        """Return all quantities as a DataFrame, one row per step, indexed by t."""
        return as_frame(self.t, self.values)

    def to_xarray(self) -> xr.Dataset:
        """Return all quantities over the dimension t, with symbols."""
        parts = {"problem": self.problem, "recipe": self.recipe}
        about = {name: one.to_json() for name, one in parts.items() if one is not None}
        return as_dataset(self.t, self.values, about)


def as_frame(t: NDArray[np.int64], quantities: Mapping[str, Array]) -> pd.DataFrame:
    """Return quantities as a DataFrame, one row per step; arrays become one column per entry."""
    import pandas as pd

    parts = [entries(name, values, 1) for name, values in quantities.items()]
    columns = {key: values for part in parts for key, values in part.items()}
    return pd.DataFrame(columns, index=pd.Index(t, name="t"))


def as_dataset(
    t: NDArray[np.int64], quantities: Mapping[str, Array], about: dict[str, Any]
) -> xr.Dataset:
    """Return quantities as a dataset over t and the dimensions of `DIMENSIONS`, with the attributes
    `about`.
    """
    import xarray as xr

    data = {
        name: (
            ("t", *DIMENSIONS.get(name, ())[: values.ndim - 1]),
            values,
            {"symbol": SYMBOLS.get(name, name)},
        )
        for name, values in quantities.items()
    }
    return xr.Dataset(data, coords={"t": t}, attrs=about)
