r"""Self-training in continuous time: the limit $\lambda_U \to 0$ at fixed $\tau = \lambda_U t$.

The first order of a step (`expansion`) is a differential equation (Prediction `pred: differential equation`). In the variables

    d \ln\sqrt q / d\tau = r        d\,\mathrm{artanh}(m/\sqrt q) / d\tau = b        dB / d\tau = \beta\sqrt q

(r, b, $\beta$: `response`) nothing cancels and nothing leaves the range of numbers, however well the direction is aligned and however small
the weights become; $dM/d\tau = C M(1-M)$ with $M = m^2/q$ and $C = 2b\sqrt q/m$ is the second of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.integrate import DenseOutput, OdeSolution, solve_ivp
from scipy.optimize import minimize_scalar

from ..errors import InvalidInput, SelfTrainError
from ..fields import number
from ..losses import Array, Loss
from ..problem import Problem
from ..recipe import Recipe
from .expansion import FirstOrder, batch_of, check_expandable, first_order
from .observables import generalization_error
from .response import Batch, NoExpansion, respond
from .solve import checked_tolerance, solve
from .state import State
from .trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

LEVELS = (0.5, 0.99)
"""Squared cosines whose times are kept."""

COARSER, FINEST = 10.0, 3e-14
MOST_EVALUATIONS = 20_000
"""A stretch that needs more is given up: its right-hand side is rounding, as it is where nearly nothing holds the fit."""

BEFORE_THE_END = 0.999
LARGEST_LOG = 340.0
SHOWN = 201


class Stretch(NamedTuple):
    """A stretch of time over which the batches do not change, and the step whose batch it is."""

    begin: float
    batch: Batch
    t: int


class Best(NamedTuple):
    """Where the error is smallest: the time, the error, and "start", "interior" or "end" of the path."""

    tau: float
    error: float
    where: str


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
        bias_to_norm: $B/\sqrt q$, what imbalance inflates.
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
        """The model at this (one) time."""
        return State(float(self.m), float(self.v), float(self.bias))


def points_at(problem: Problem, tau: Array, m: Array, v: Array, bias: Array) -> Points:
    """What follows from (m, v, B) at these times; floats if it is one time."""
    q, norm = m**2 + v, np.hypot(m, np.sqrt(v))
    cosine, misalignment = m / norm, (np.sqrt(v) / norm) ** 2
    test = problem.test_mixture
    error = generalization_error(m, q, bias, test.rho, test.delta)
    values = (tau, m, v, bias, q, cosine, cosine**2, misalignment, bias / norm, error)
    return Points(*(float(value) if np.ndim(tau) == 0 else value for value in values))


NAMES = tuple(Points.__dataclass_fields__)[1:]


@dataclass(frozen=True, eq=False)
class ContinuumPath:
    r"""The continuous-time limit of a run, from the supervised model on; call it with a time.

    Attributes:
        until: where the path ends.
        stretches: stretches of time with the same batches.
        half_aligned, aligned: first times at which M reaches 1/2 and 0.99 with m > 0; None if it does not.
        accuracy: largest difference between the two finest integrations, of $\ln\sqrt q$, $\mathrm{artanh}\cos$
            and B.
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
        try:
            times = np.asarray(tau, dtype=float)
        except (TypeError, ValueError):
            raise InvalidInput("tau", tau, f"times from 0 to {self.until:g} are accepted") from None
        if not (np.all(times >= 0) and np.all(times <= self.until)):
            raise InvalidInput("tau", tau, f"times from 0 to {self.until:g} are accepted")
        log_norm, rapidity, bias = self._dense(times.ravel()).reshape(3, *times.shape)
        norm = np.exp(log_norm)
        return points_at(
            self.problem, times, norm * np.tanh(rapidity), (norm / np.cosh(rapidity)) ** 2, bias
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
        return first_order(self.problem, self.recipe, self(tau).state, self._stretch(tau).t)

    def compare(self, run: Trajectory) -> ContinuumComparison:
        r"""The discrete run at the same times $\tau_t = \sum_{i \le t}\lambda_U^{(i)}$.

        The run may have another ridge and another number of steps than the path, but the same labelled
        set, start, loss and batches.
        """
        self._check_same(run)
        times = np.append(0.0, np.cumsum(run.recipe.at_steps(run.problem.steps).lambda_u))
        times[np.isclose(times, self.until, rtol=1e-12, atol=0)] = self.until
        within = (times <= self.until) & np.isfinite(run.m)
        here = self(times[within])
        theirs = {
            "m": run.m, "v": run.v, "bias": run.bias, "q": run.q, "cosine": run.cosine,
            "squared_cosine": run.m**2 / run.q, "one_minus_squared_cosine": run.v / run.q,
            "bias_to_norm": run.bias_to_norm, "error": run.error,
        }  # fmt: skip
        apart = {name: theirs[name][within] - getattr(here, name) for name in NAMES}
        return ContinuumComparison(times[within], apart)

    def to_frame(self, points: int = SHOWN) -> pd.DataFrame:
        """All quantities at evenly spaced times, indexed by tau."""
        import pandas as pd

        shown = self(np.linspace(0.0, self.until, points))
        columns = {name: getattr(shown, name) for name in NAMES}
        return pd.DataFrame(columns, index=pd.Index(shown.tau, name="tau"))

    def to_xarray(self, points: int = SHOWN) -> xr.Dataset:
        """The same over the dimension tau, with problem and recipe as attributes."""
        import xarray as xr

        words = {"problem": self.problem.to_json(), "recipe": self.recipe.to_json()}
        return xr.Dataset.from_dataframe(self.to_frame(points)).assign_attrs(words)

    def plot(self, *runs: Trajectory, **options: Any) -> Figure:
        """Error, direction, size and bias against tau, with discrete runs on top; see `selftrain.plots.continuum`."""
        from ..plots.continuum import plot_path

        for run in runs:
            self._check_same(run)
        return plot_path(self, runs, **options)

    def _stretch(self, tau: float) -> Stretch:
        return [stretch for stretch in self.stretches if stretch.begin <= tau][-1]

    def _check_same(self, run: Trajectory) -> None:
        if not isinstance(run, Trajectory):
            raise InvalidInput("run", run, "a result of selftrain.solve is accepted")
        check_expandable(run.problem, run.recipe)
        ours, theirs = (
            (
                one.problem.alpha_l, one.problem.labeled, one.problem.loss_function.name,
                one.problem.test_mixture, one.recipe.lambda_l, one.recipe.fix_bias,
            )
            for one in (self, run)
        )  # fmt: skip
        end = math.fsum(run.recipe.at_steps(run.problem.steps).lambda_u)
        before = min(end, self.until) * (1 - 1e-12)
        mine = [stretch for stretch in self.stretches if stretch.begin < before]
        other = [
            stretch for stretch in stretches(run.problem, run.recipe) if stretch.begin < before
        ]
        same = len(mine) == len(other) and all(
            a.batch == b.batch and math.isclose(a.begin, b.begin, rel_tol=1e-9)
            for a, b in zip(mine, other, strict=True)
        )
        if ours != theirs or not same:
            accepted = "a run from the same labelled set and start, with the same loss and batches"
            raise InvalidInput("run", run, accepted)


@dataclass(frozen=True, eq=False)
class ContinuumComparison:
    r"""A discrete run minus the path, at the times of its steps.

    Attributes:
        tau: $\tau_t$ of the steps the path reaches.
        difference: arrays over those steps, by name (as in `Points`).
    """

    tau: Array
    difference: dict[str, Array]

    @property
    def largest(self) -> dict[str, float]:
        """The largest absolute difference of each quantity."""
        return {name: float(np.abs(values).max()) for name, values in self.difference.items()}

    def to_frame(self) -> pd.DataFrame:
        """The differences, one row a step, indexed by tau."""
        import pandas as pd

        return pd.DataFrame(self.difference, index=pd.Index(self.tau, name="tau"))

    def __str__(self) -> str:
        told = self.largest
        shown = ", ".join(
            f"{name} {told[name]:.2g}" for name in ("m", "q", "bias", "cosine", "error")
        )
        return f"largest difference over {self.tau.size - 1} steps: {shown}"


def continuum(
    problem: Problem,
    recipe: Recipe,
    until: float | None = None,
    tolerance: float = 1e-10,
    on_failure: str = "raise",
) -> ContinuumPath:
    r"""Integrate the continuous-time limit from the supervised model on.

    Arguments:
        problem: data and loss.
        recipe: $\lambda_L$ of the start, threshold, whether the bias is held. The ridge $\lambda_U$ only sets the clock.
        until: time $\tau$ at which to end; default: $\sum_t\lambda_U^{(t)}$, where the discrete run ends.
        tolerance: accuracy of $\ln\sqrt q$, $\mathrm{artanh}\cos$ and B along the path, confirmed by a finer integration.
        on_failure: "raise" a `NoExpansion` if the path runs into $\alpha_U P(\text{selected}) \le 1$ (a `SelfTrainError` if it
            leaves the range of numbers), or return the "partial" path up to there, with the error in `failure`.

    If batches or thresholds depend on the step, step t rules the stretch of time of length $\lambda_U^{(t)}$ that it takes; after the
    last step its batches stay.

    >>> from selftrain import Problem, Recipe
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=100)
    >>> path = continuum(problem, Recipe(lambda_u=0.01))
    >>> path
    ContinuumPath(until=1, error 0.193827 -> 0.4, cosine 0.641744 -> 0.999976)
    >>> path(0.5).cosine > path(0.1).cosine
    True
    """
    if on_failure not in ("raise", "partial"):
        raise InvalidInput("on_failure", on_failure, '"raise" or "partial" is accepted')
    path = follow(problem, recipe, until, tolerance)
    if path.failure is not None and on_failure == "raise":
        raise path.failure
    return path


def follow(
    problem: Problem,
    recipe: Recipe,
    until: float | None,
    tolerance: float,
    stop_at: float | None = None,
) -> ContinuumPath:
    """The path until a time, or until the squared cosine `stop_at` if that comes first; marked if it fails."""
    check_expandable(problem, recipe)
    tolerance = checked_tolerance(tolerance)
    if problem.steps == 0:
        raise InvalidInput("steps", 0, "one step or more is needed to say what a batch is")
    if until is None:
        until = math.fsum(recipe.at_steps(problem.steps).lambda_u)
    positive = "a finite number > 0 is accepted"
    until = number("until", until, lambda value: 0 < value < math.inf, positive)
    last = until * (
        1 - 1e-12
    )  # a batch that begins at the end, up to rounding, has no part in the path
    pieces = tuple(piece for piece in stretches(problem, recipe) if piece.begin < last)
    return _confirmed(problem, recipe, pieces, until, tolerance, stop_at)


def start_of(problem: Problem, recipe: Recipe) -> State:
    """The supervised model."""
    first = problem.replace(steps=0, alpha_u=1.0, rho_u=None, delta_u=None, test=None)
    return State.at(solve(first, Recipe(lambda_l=recipe.lambda_l), tolerance=1e-13), 0)


def stretches(problem: Problem, recipe: Recipe) -> Iterator[Stretch]:
    """Stretches of time in which nothing about the batches changes."""
    begin, before = 0.0, None
    ridges = recipe.at_steps(problem.steps).lambda_u
    for t in range(1, problem.steps + 1):
        batch = batch_of(problem, recipe, t)
        if batch != before:
            yield Stretch(begin, batch, t)
        begin, before = begin + float(ridges[t - 1]), batch


class _Flow:
    """The right-hand side on one stretch, in (log norm, rapidity, bias).

    Beyond the end of the expansion, and of the range of numbers, it is NaN, so that the integration
    creeps up to that end.
    """

    def __init__(self, loss: Loss, batch: Batch, fixed_bias: bool):
        self.loss, self.batch, self.fixed_bias = loss, batch, fixed_bias
        self.refusal: NoExpansion | None = None
        self.evaluations = 0

    def __call__(self, tau: float, y: Array) -> Array:
        if np.isnan(y).any():
            return np.full(3, np.nan)
        self.refusal = None
        self.evaluations += 1
        if self.evaluations > MOST_EVALUATIONS:
            raise SelfTrainError(
                f"the path was given up at tau = {tau:g} after {MOST_EVALUATIONS} evaluations: its rates are "
                f"rounding (alpha_u times the selected share = {self.points(y):.10g} is hardly above 1?); "
                "a larger tolerance may help"
            )
        if np.abs(y[:2]).max() > LARGEST_LOG:
            return np.full(3, np.nan)
        state = _state(y)
        try:
            answer = respond(self.loss, state, self.batch, self.fixed_bias)
        except NoExpansion as refusal:
            self.refusal = NoExpansion(refusal.points, state, float(tau))
            return np.full(3, np.nan)
        return np.array([answer.shrink, answer.turn, answer.drift * state.norm])

    def points(self, y: Array) -> float:
        """Selected points per feature."""
        return respond(self.loss, _state(y), self.batch, self.fixed_bias).points


def _state(y: Array) -> State:
    norm = math.exp(y[0])
    return State(norm * math.tanh(y[1]), (norm / math.cosh(y[1])) ** 2, float(y[2]))


class _Solution(NamedTuple):
    """One integration: the dense output, the crossings of each level, the end, and why it came early."""

    dense: OdeSolution
    crossings: tuple[list[float], ...]
    until: float
    failure: SelfTrainError | None
    evaluations: int


def _confirmed(
    problem: Problem,
    recipe: Recipe,
    pieces: tuple[Stretch, ...],
    until: float,
    tolerance: float,
    stop_at: float | None,
) -> ContinuumPath:
    """The path at the first tolerance that agrees with a coarser integration as well as was asked."""
    start = start_of(problem, recipe)
    rapidity = math.asinh(start.m / math.sqrt(start.v))
    y = np.array([math.log(start.norm), rapidity, start.bias])
    flows = [_Flow(problem.loss_function, piece.batch, recipe.fix_bias) for piece in pieces]
    times = [*(piece.begin for piece in pieces), until]
    finer, apart = COARSER * tolerance, math.inf
    coarse = _integrate(flows, times, y, finer, stop_at)
    evaluations = coarse.evaluations
    while finer > FINEST:
        finer = max(finer / COARSER, FINEST)
        fine = _integrate(flows, times, y, finer, stop_at)
        evaluations += fine.evaluations
        apart = _apart(coarse, fine)
        if apart <= tolerance:
            half, aligned = (
                0.0 if math.tanh(rapidity) >= math.sqrt(level) else next(iter(found), None)
                for level, found in zip(LEVELS, fine.crossings, strict=True)
            )
            begun = tuple(piece for piece in pieces if piece.begin < fine.until)
            return ContinuumPath(
                problem, recipe, fine.until, begun, half, aligned, apart, evaluations,
                fine.failure, fine.dense,
            )  # fmt: skip
        coarse = fine
    raise SelfTrainError(
        f"the path until tau = {until:g} was not confirmed to tolerance = {tolerance:g}: "
        f"two integrations differ by {apart:.2g}; ask for a larger tolerance or a shorter path"
    )


def _integrate(
    flows: list[_Flow], times: list[float], y: Array, tolerance: float, stop_at: float | None
) -> _Solution:
    """Stretch after stretch, from y at the first of `times`."""
    events = [_crossing(level) for level in LEVELS]
    if stop_at is not None:
        events.append(_arrival(stop_at))
    ends, evaluations = [times[0]], 0
    pieces: list[DenseOutput] = []
    crossings: tuple[list[float], ...] = tuple([] for _ in LEVELS)
    failure: SelfTrainError | None = None
    for flow, begin, end in zip(flows, times, times[1:], strict=False):
        flow.evaluations = 0
        if np.isnan(flow(begin, y)).any():
            failure = flow.refusal
            break
        done = solve_ivp(
            flow, (begin, end), y, method="DOP853", dense_output=True, rtol=tolerance,
            atol=tolerance, events=events,
        )  # fmt: skip
        assert done.sol is not None
        assert done.t_events is not None
        y = done.y[:, -1]
        evaluations += done.nfev
        ends.extend(done.sol.ts[1:])
        pieces.extend(done.sol.interpolants)
        for found, crossed in zip(crossings, done.t_events, strict=False):
            found.extend(float(tau) for tau in crossed)
        if done.status == 1:
            break
        if not done.success:
            failure = _reason(flow, y, float(ends[-1]))
            break
    if not pieces:
        assert failure is not None
        raise failure
    dense = OdeSolution(ends, pieces)
    return _Solution(dense, crossings, float(ends[-1]), failure, evaluations)


def _reason(flow: _Flow, y: Array, tau: float) -> SelfTrainError:
    """Why the integration could not go on from y."""
    if flow.refusal is not None:
        return NoExpansion(flow.points(y), _state(y), tau)
    return SelfTrainError(
        f"at tau = {tau:.6g}: the path leaves the range of numbers, log norm {y[0]:.4g}, artanh of the "
        f"cosine {y[1]:.4g}, bias {y[2]:.4g}"
    )


def _crossing(level: float) -> Callable[[float, Array], float]:
    return lambda tau, y: float(y[1]) - math.atanh(math.sqrt(level))


def _arrival(level: float) -> Callable[[float, Array], float]:
    """The event that ends an integration: this squared cosine, in either direction."""

    def arrived(tau: float, y: Array) -> float:
        return abs(float(y[1])) - math.atanh(math.sqrt(level))

    arrived.terminal = True  # type: ignore[attr-defined]
    return arrived


def _apart(one: _Solution, other: _Solution) -> float:
    """Largest difference of two integrations, up to just before an early end, where rates diverge."""
    last = min(one.until, other.until)
    if one.failure is not None or other.failure is not None:
        last *= BEFORE_THE_END
    grid = other.dense.ts[other.dense.ts <= last]
    grid = np.concatenate([grid, 0.5 * (grid[1:] + grid[:-1])])
    return float(np.abs(one.dense(grid) - other.dense(grid)).max())
