r"""A run in continuous time as an object: call it with a time, ask for its best time, compare it,
draw it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.integrate import OdeSolution
from scipy.optimize import minimize_scalar

from ...arrays import Array
from ...errors import InvalidInput, SelfTrainError
from ...fields import number
from ...problem import Problem
from ...recipe import Recipe
from ..trajectory import Trajectory
from .comparison import ContinuumComparison, check_same, difference
from .expansion import FirstOrder, coefficients
from .points import NAMES, Points, points_at, times_of
from .timeline import Stretch

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["Best", "ContinuumPath"]

SHOWN = 201


class Best(NamedTuple):
    """Where the error is smallest: the time, the error, and "start", "interior" or "end" of the
    path.
    """

    tau: float
    error: float
    where: str


@dataclass(frozen=True, eq=False)
class ContinuumPath:
    r"""The continuous-time limit of a run, from the supervised model on; call it with a time.

    Attributes:
        until: where the path ends.
        stretches: stretches of time with the same batches.
        half_aligned, aligned: first times at which M reaches 1/2 and 0.99 with m > 0; None if it
            does not.
        accuracy: of $\ln\sqrt q$, $\mathrm{artanh}\cos$ and B: the largest difference between the
            two finest integrations, which take different steps (relative where |B| > 1), or the
            tolerance of the finest if that is larger. Of a path that ended early, up to 0.999
            of its time: rates may diverge
            where the expansion ends.
        evaluations: of the right-hand side, all integrations together.
        failure: why the path ended early (only with `on_failure="partial"`), or None.
    """

    problem: Problem
    recipe: Recipe
    until: float
    stretches: tuple[Stretch, ...] = field(repr=False)
    half_aligned: float | None
    aligned: float | None
    accuracy: float
    evaluations: int
    failure: SelfTrainError | None
    _dense: OdeSolution = field(repr=False)

    def __repr__(self) -> str:
        first, last = self(0.0), self(self.until)
        ended = "" if self.failure is None else ", ended early"
        return (
            f"ContinuumPath(until={self.until:g}, error {first.error:.6g} -> {last.error:.6g}, "
            f"cosine {first.cosine:.6g} -> {last.cosine:.6g}{ended})"
        )

    def __call__(self, tau: Any) -> Points:
        """The state at a time, or at several, between 0 and `until`."""
        accepted = f"one time or more, from 0 to {self.until:g}, are accepted"
        times = times_of(tau, accepted, self.until)
        log_norm, rapidity, bias = self._dense(times.ravel()).reshape(3, *times.shape)
        return points_at(
            self.problem, times, log_norm, np.tanh(rapidity), 1 / np.cosh(rapidity) ** 2, bias
        )

    @property
    def tau(self) -> Array:
        """Times at which the integration stopped to look, from 0 to `until`."""
        return np.array(self._dense.ts)

    @cached_property
    def best(self) -> Best:
        """The time of the smallest error."""
        steps = self.tau
        grid = np.unique(
            np.concatenate([steps, *(steps[:-1] + k / 4 * np.diff(steps) for k in (1, 2, 3))])
        )
        errors = self(grid).error
        at = int(np.argmin(errors))
        ends = {0: "start", grid.size - 1: "end"}
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)]
        found = minimize_scalar(
            lambda tau: self(tau).error, bounds=(low, high), method="bounded",
            options={"xatol": 1e-9 * self.until},
        )  # fmt: skip
        if found.fun < errors[at]:
            return Best(float(found.x), float(found.fun), "interior")
        return Best(float(grid[at]), float(errors[at]), ends.get(at, "interior"))

    def first_order(self, tau: float) -> FirstOrder:
        """The rates of change at a time: the coefficients of a step from there."""
        accepted = f"one time from 0 to {self.until:g} is accepted"
        tau = number("tau", tau, lambda time: 0 <= time <= self.until, accepted)
        stretch = self._stretch(tau)
        return coefficients(
            self.problem.loss_at(1), self(tau).state, stretch.batch, self.recipe.fix_bias,
            stretch.sharpening(tau),
        )  # fmt: skip

    def compare(self, run: Trajectory) -> ContinuumComparison:
        r"""The discrete run at the same times $\tau_t = \sum_{i \le t}\lambda_U^{(i)}$.

        The run may have another ridge and another number of steps than the path, but the same
        labelled set, start, loss and batches.
        """
        return difference(self, run)

    def to_frame(self, points: int = SHOWN) -> pd.DataFrame:
        """All quantities at evenly spaced times, indexed by tau."""
        import pandas as pd

        whole = isinstance(points, (int, np.integer)) and not isinstance(points, bool)
        if not whole or points < 2:
            raise InvalidInput("points", points, "a whole number of times, 2 or more, is accepted")
        shown = self(np.linspace(0.0, self.until, points))
        columns = {name: getattr(shown, name) for name in NAMES}
        return pd.DataFrame(columns, index=pd.Index(shown.tau, name="tau"))

    def to_xarray(self, points: int = SHOWN) -> xr.Dataset:
        """The same over the dimension tau, with problem and recipe as attributes."""
        import xarray as xr

        inputs = {"problem": self.problem.to_json(), "recipe": self.recipe.to_json()}
        return xr.Dataset.from_dataframe(self.to_frame(points)).assign_attrs(inputs)

    def plot(
        self,
        *runs: Trajectory,
        panel: str | None = None,
        ax: Axes | None = None,
        figure: Figure | SubFigure | None = None,
    ) -> Figure:
        """Error, direction, size and bias against tau, with discrete runs on top; one `panel` of
        them on `ax`.
        """
        from ...plots.continuum import plot_path

        for run in runs:
            check_same(self, run)
        return plot_path(self, runs, panel=panel, ax=ax, figure=figure)

    def _repr_html_(self) -> str:
        from ...plots.notebook import path_card

        return path_card(self)

    def _stretch(self, tau: float) -> Stretch:
        return [stretch for stretch in self.stretches if stretch.begin <= tau][-1]
