r"""`ContinuumPath`, a run in continuous time: its state at any time, its best time, comparison with
a discrete run, plots.

Results are computed from $\ln\sqrt q$, the cosine, $1 - M$ and B, not from m and v, which underflow
on long paths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.integrate import OdeSolution
from scipy.optimize import minimize_scalar

from ...arrays import Array
from ...errors import InvalidInput, SelfTrainError
from ...fields import number, whole
from ...observables import generalization_error
from ...problem import Problem
from ...recipe import Recipe
from ..trajectory import Trajectory
from .expansion import FirstOrder, Stretch, check_continuous, coefficients, stretches
from .linear_response import State, respond

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["Best", "ContinuumComparison", "ContinuumPath", "Points"]

SHOWN = 201
"""Default number of times in a table."""


@dataclass(frozen=True, eq=False)
class Points:
    r"""A path at some times: floats at one time, arrays at several.

    Attributes:
        tau: $\tau = \lambda_U t$.
        m, v, bias: overlap, $q - m^2$, B.
        q: squared norm of the weights.
        cosine: $m/\sqrt q$.
        squared_cosine: $M = m^2/q$.
        one_minus_squared_cosine: $1 - M$, to full relative accuracy.
        bias_to_norm: $B/\sqrt q$, which grows if classes are imbalanced.
        error: generalisation error on the test mixture.
    """

    tau: Any
    m: Any
    v: Any
    bias: Any
    q: Any
    cosine: Any
    squared_cosine: Any
    one_minus_squared_cosine: Any
    bias_to_norm: Any
    error: Any

    @property
    def state(self) -> State:
        """The model as a `State`; for points at a single time."""
        return State(float(self.m), float(self.v), float(self.bias))


NAMES = tuple(Points.__dataclass_fields__)[1:]
"""Names of the quantities of `Points` besides the time."""


def points_at(
    problem: Problem, tau: Array, log_norm: Array, cosine: Array, misalignment: Array, bias: Array
) -> Points:
    r"""Return points from $\ln\sqrt q$, $m/\sqrt q$, $1 - M$ and B at the times `tau`; floats if
    `tau` is a single time.
    """
    norm = np.exp(log_norm)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.where(bias == 0, 0.0, bias * np.exp(-log_norm))
    test = problem.test_mixture
    error = generalization_error(cosine, np.ones(()), ratio, test.rho, test.delta)
    m, v, q = norm * cosine, (norm * np.sqrt(misalignment)) ** 2, np.exp(2 * log_norm)
    values = (tau, m, v, bias, q, cosine, cosine**2, misalignment, ratio, error)
    return Points(*(float(value) if np.ndim(tau) == 0 else value for value in values))


def times_of(tau: Any, until: float) -> Array:
    """Return one time or several as an array; raise unless all lie between 0 and `until`."""
    accepted = f"must be one time or more, from 0 to {until:g}"
    try:
        times = np.asarray(tau, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput("tau", tau, accepted) from None
    if times.size == 0 or not np.all((times >= 0) & (times <= until)):
        raise InvalidInput("tau", tau, accepted)
    return times


class Best(NamedTuple):
    """The smallest error of a path: its time, the error, and its position, "start", "interior" or
    "end".
    """

    tau: float
    error: float
    where: str


@dataclass(frozen=True, eq=False)
class ContinuumComparison:
    r"""The difference of a discrete run and a path, at the times of its steps.

    Attributes:
        tau: $\tau_t = \sum_{i \le t}\lambda_U^{(i)}$ of the steps the path reaches.
        difference: arrays over those steps, by name (as in `Points`).
    """

    tau: Array
    difference: dict[str, Array]

    @property
    def largest(self) -> dict[str, float]:
        """The largest absolute difference of each quantity."""
        return {name: float(np.abs(values).max()) for name, values in self.difference.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return the differences, one row per step, indexed by tau."""
        import pandas as pd

        return pd.DataFrame(self.difference, index=pd.Index(self.tau, name="tau"))

    def __str__(self) -> str:
        largest, count = self.largest, self.tau.size - 1
        names = ("m", "q", "bias", "cosine", "error")
        shown = ", ".join(f"{name} {largest[name]:.2g}" for name in names)
        return f"largest difference over {count} step{'' if count == 1 else 's'}: {shown}"


@dataclass(frozen=True, eq=False)
class ContinuumPath:
    r"""The continuous-time limit of a run, from the supervised model on; call it with a time.

    Attributes:
        until: time at which the path ends.
        stretches: stretches of time with the same batches.
        half_aligned, aligned: first times at which M reaches 1/2 and 0.99 with m > 0; None if it
            does not.
        accuracy: accuracy of $\ln\sqrt q$, $\mathrm{artanh}\cos$ and B (relative if |B| > 1): the
            largest difference between the two finest integrations, which take different steps, or
            the tolerance of the finest if that is larger. For a path that ended early, it refers to
            the first 99.9 % of its time, because rates may diverge at the end.
        evaluations: evaluations of the right-hand side by all integrations.
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
        """Return the state at one time or several, between 0 and `until`."""
        times = times_of(tau, self.until)
        log_norm, rapidity, bias = self._dense(times.ravel()).reshape(3, *times.shape)
        misalignment = 1 / np.cosh(rapidity) ** 2
        return points_at(self.problem, times, log_norm, np.tanh(rapidity), misalignment, bias)

    @property
    def tau(self) -> Array:
        """Times of the steps of the integration, from 0 to `until`."""
        return np.array(self._dense.ts)

    @cached_property
    def best(self) -> Best:
        """The smallest error and its time."""
        steps = self.tau
        between = [steps[:-1] + k / 4 * np.diff(steps) for k in (1, 2, 3)]
        grid = np.unique(np.concatenate([steps, *between]))
        errors = self(grid).error
        at = int(np.argmin(errors))
        found = minimize_scalar(
            lambda tau: self(tau).error, method="bounded",
            bounds=(grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)]),
            options={"xatol": 1e-9 * self.until},
        )  # fmt: skip
        if found.fun < errors[at]:
            return Best(float(found.x), float(found.fun), "interior")
        ends = {0: "start", grid.size - 1: "end"}
        return Best(float(grid[at]), float(errors[at]), ends.get(at, "interior"))

    def first_order(self, tau: float) -> FirstOrder:
        """Return the rates of change at a time: the coefficients of a step from the state there."""
        accepted = f"must be one time from 0 to {self.until:g}"
        tau = number("tau", tau, lambda time: 0 <= time <= self.until, accepted)
        stretch = [stretch for stretch in self.stretches if stretch.begin <= tau][-1]
        loss, old, fixed = self.problem.loss_at(1), self(tau).state, self.recipe.fix_bias
        return coefficients(old, respond(loss, old, stretch.batch, fixed, stretch.sharpening(tau)))

    def compare(self, run: Trajectory) -> ContinuumComparison:
        r"""Return the difference of a discrete run and this path, at the times $\tau_t = \sum_{i
        \le t}\lambda_U^{(i)}$ of its steps.

        The run may have another ridge and another number of steps than the path, but must have the
        same labelled set, start, loss and batches.
        """
        self._check_same(run)
        times = np.append(0.0, np.cumsum(run.recipe.at_steps(run.problem.steps).lambda_u))
        times[np.isclose(times, self.until, rtol=1e-12, atol=0)] = self.until
        within = (times <= self.until) & np.isfinite(run.m)
        if within.sum() < 2:
            accepted = f"must have its first step by the end of the path, tau = {self.until:g}"
            raise InvalidInput("lambda_u", run.recipe.lambda_u, accepted)
        here = self(times[within])
        theirs = {"squared_cosine": run.m**2 / run.q, "one_minus_squared_cosine": run.v / run.q}
        theirs |= {name: getattr(run, name) for name in NAMES if name not in theirs}
        apart = {name: theirs[name][within] - getattr(here, name) for name in NAMES}
        return ContinuumComparison(times[within], apart)

    def _check_same(self, run: Any) -> None:
        """Raise if a run does not converge to this path as its ridge tends to zero."""
        if not isinstance(run, Trajectory):
            raise InvalidInput("run", run, "must be a result of selftrain.solve")
        check_continuous(run.problem, run.recipe)
        ours, theirs = (
            (
                one.problem.alpha_l, one.problem.labeled, one.problem.loss_names,
                one.problem.test_mixture, one.recipe.lambda_l, one.recipe.fix_bias,
            )
            for one in (self, run)
        )  # fmt: skip
        end = math.fsum(run.recipe.at_steps(run.problem.steps).lambda_u)
        before = min(end, self.until) * (1 - 1e-12)
        mine = [stretch for stretch in self.stretches if stretch.begin < before]
        other = [one for one in stretches(run.problem, run.recipe) if one.begin < before]
        same = len(mine) == len(other) and all(
            a.batch == b.batch
            and math.isclose(a.begin, b.begin, rel_tol=1e-9)
            and math.isclose(a.sharpens, b.sharpens, rel_tol=1e-9)
            and math.isclose(
                a.sharpened, b.sharpened, rel_tol=1e-9, abs_tol=1e-9 * a.sharpens * end
            )
            for a, b in zip(mine, other, strict=True)
        )
        if ours != theirs or not same:
            accepted = "must have the same labelled set, start, loss and batches as the path"
            raise InvalidInput("run", run, accepted)

    def to_frame(self, points: int = SHOWN) -> pd.DataFrame:
        """Return all quantities at `points` evenly spaced times, indexed by tau."""
        import pandas as pd

        accepted = "must be a whole number of times, 2 or more"
        shown = self(
            np.linspace(0.0, self.until, whole("points", points, lambda n: n > 1, accepted))
        )
        columns = {name: getattr(shown, name) for name in NAMES}
        return pd.DataFrame(columns, index=pd.Index(shown.tau, name="tau"))

    def to_xarray(self, points: int = SHOWN) -> xr.Dataset:
        """Return the columns of `to_frame` as a dataset over tau, with problem and recipe."""
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
        """Plot error, cosine, norm and bias over tau, and discrete runs for comparison; or a single
        `panel` on `ax`.
        """
        from ...plots.continuum import plot_path

        for run in runs:
            self._check_same(run)
        return plot_path(self, runs, panel=panel, ax=ax, figure=figure)

    def _repr_html_(self) -> str:
        from ...plots.notebook import path_card

        return path_card(self)
