r"""Self-training in continuous time: the limit $\lambda_U \to 0$ at fixed $\tau = \lambda_U t$.

The first order of a step (`expansion`) is a differential equation (Prediction `pred: differential
equation`). In the variables

    d \ln\sqrt q / d\tau = r
    d \mathrm{artanh}(m/\sqrt q) / d\tau = b
    dB / d\tau = \beta\sqrt q

(r, b, $\beta$: `linear_response`) there is no cancellation and no overflow, however well the
direction is aligned and however small the weights become. The second equation is equivalent to
$dM/d\tau = C M(1-M)$ with $M = m^2/q$ and $C = 2b\sqrt q/m$. Its variable, artanh of the cosine, is
called *rapidity*.

A path is confirmed when a finer integration agrees with a coarser one. The finer one is forced to
take different steps, because with the same steps both would have the same errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.integrate import DenseOutput, OdeSolution, solve_ivp

from ...arrays import Array
from ...errors import InvalidInput, NoExpansion, SelfTrainError
from ...fields import number
from ...losses import Loss
from ...problem import Problem
from ...recipe import Recipe
from ...runtime.progress import Progress, ProgressOption, checked_progress
from ..solve import checked_tolerance
from .expansion import LARGEST_LOG, Stretch, check_continuous, start_of, stretches
from .linear_response import Response, State, respond
from .path import ContinuumPath

__all__ = ["continuum", "follow"]

LEVELS = (0.5, 0.99)
"""Squared cosines M for which a path reports the time at which it reaches them."""

COARSER, FINEST = 10.0, 3e-14
SHORTER = 0.6
"""The longest step of an integration, relative to that of the coarser one it is compared with."""

MOST_EVALUATIONS = 20_000
"""Largest number of evaluations on a stretch. If it needs more, rounding errors dominate the
right-hand side, as happens when hardly more samples than features are selected.
"""

BEFORE_THE_END = 0.999


def continuum(
    problem: Problem,
    recipe: Recipe,
    until: float | None = None,
    tolerance: float = 1e-10,
    on_failure: str = "raise",
    progress: ProgressOption = None,
) -> ContinuumPath:
    r"""Integrate the continuous-time limit, starting from the supervised model.

    Arguments:
        problem: data and loss.
        recipe: $\lambda_L$ of the start, threshold, annealing, whether the bias is fixed. Without
            annealing the ridge $\lambda_U$ only sets the unit of time; with annealing the limit is
            taken at fixed $\kappa = a/\lambda_U^2$, and labels at time $\tau$ are sharpened by
            $1 + \lambda_U\kappa\tau$.
        until: time $\tau$ at which to end; default: $\sum_t\lambda_U^{(t)}$, where the discrete run
            ends.
        tolerance: accuracy of $\ln\sqrt q$, $\mathrm{artanh}\cos$ and B (relative where it exceeds
            1) along the path, confirmed by a finer integration.
        on_failure: "raise" a `NoExpansion` if the path reaches $\alpha_U P(\text{selected}) \le 1$
            (a `SelfTrainError` if it overflows), or return the "partial" path up to there, with the
            error in `failure`.
        progress: None, True, False or a function of a `ProgressReport` (`runtime.progress`).

    If batches, thresholds or, with annealing, ridges depend on the step, the values of step t apply
    during the stretch of time of length $\lambda_U^{(t)}$ that it takes. After the last step its
    values continue to apply, and the labels are sharpened further.

    >>> from selftrain import Problem, Recipe
    >>> problem = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.4, delta=0.75**2, steps=100)
    >>> path = continuum(problem, Recipe(lambda_u=0.01))
    >>> path
    ContinuumPath(until=1, error 0.193827 -> 0.4, cosine 0.641744 -> 0.999976)
    >>> path(0.5).cosine > path(0.1).cosine
    True
    >>> continuum(problem, Recipe(lambda_u=0.002, annealing=8e-4, fix_bias=True))
    ContinuumPath(until=0.2, error 0.193827 -> 0.0893753, cosine 0.641744 -> 0.99938)
    """
    if on_failure not in ("raise", "partial"):
        raise InvalidInput("on_failure", on_failure, 'must be "raise" or "partial"')
    shown, partial = checked_progress(progress), on_failure == "partial"
    path = follow(problem, recipe, until, tolerance, progress=shown, partial=partial)
    if path.failure is not None and not partial:
        raise path.failure
    return path


def follow(
    problem: Problem,
    recipe: Recipe,
    until: float | None,
    tolerance: float,
    stop_at: float | None = None,
    progress: ProgressOption = None,
    partial: bool = True,
) -> ContinuumPath:
    """Return the path until a time, or until |artanh cos| reaches `stop_at` if that is earlier. A
    path that fails ends there, with the reason in `failure`; without `partial` an overflow raises.
    """
    check_continuous(problem, recipe)
    tolerance = checked_tolerance(tolerance)
    if until is None:
        until = math.fsum(recipe.at_steps(problem.steps).lambda_u)
    until = number("until", until, lambda x: 0 < x < math.inf, "must be a finite number > 0")
    last = until * (1 - 1e-12)  # ignore a stretch that begins at the end, up to rounding
    pieces = [piece for piece in stretches(problem, recipe) if piece.begin < last]
    times = [*(piece.begin for piece in pieces), until]
    y = unknowns(start_of(problem, recipe))
    with Progress(None, "evaluations", progress, expected=2 * until, often=True) as bar:
        flows = [Flow(problem.loss_at(1), piece, recipe.fix_bias, bar) for piece in pieces]
        solution, accuracy, evaluations = _confirmed(flows, times, y, tolerance, stop_at, partial)
    half, aligned = (
        0.0 if y[1] >= math.atanh(math.sqrt(level)) else next(iter(found), None)
        for level, found in zip(LEVELS, solution.crossings, strict=True)
    )
    begun = tuple(piece for piece in pieces if piece.begin < solution.until)
    return ContinuumPath(
        problem, recipe, solution.until, begun, half, aligned, accuracy, evaluations,
        solution.failure, solution.dense,
    )  # fmt: skip


class Flow:
    """The right-hand side of the differential equation on one stretch of time, in the variables
    (log norm, rapidity, bias).

    It is NaN where the expansion does not exist and where numbers overflow, so that the integrator
    shortens its steps and approaches that point.
    """

    def __init__(self, loss: Loss, stretch: Stretch, fixed_bias: bool, bar: Progress):
        self.loss, self.stretch, self.fixed_bias, self.bar = loss, stretch, fixed_bias, bar
        self.ended: NoExpansion | None = None
        self.begin(0.0)

    def begin(self, tau: float) -> None:
        """Reset the counters for an integration that starts at time tau."""
        self.evaluations, self.reached = 0, tau

    def __call__(self, tau: float, y: Array) -> Array:
        if np.isnan(y).any():
            return np.full(3, np.nan)
        self.ended = None
        self.evaluations += 1
        self.bar.advance(expected=max(0.0, tau - self.reached))
        self.reached = max(self.reached, tau)
        if self.evaluations > MOST_EVALUATIONS:
            raise SelfTrainError(
                f"the path was given up at tau = {tau:g} after {MOST_EVALUATIONS} evaluations: its"
                " rates are rounding (alpha_u times the selected share ="
                f" {self.answer(tau, y).points:.10g} is"
                f" hardly above 1?); a larger tolerance may help"
            )
        if np.abs(y[:2]).max() > LARGEST_LOG:
            return np.full(3, np.nan)
        state = _state(y)
        try:
            answer = self.answer(tau, y)
        except NoExpansion as ended:
            self.ended = NoExpansion(ended.points, state, float(tau), ended.selected)
            return np.full(3, np.nan)
        return np.array([answer.shrink, answer.turn, answer.drift * state.norm])

    def answer(self, tau: float, y: Array) -> Response:
        """Return the response of a step from the state y at time tau."""
        sharpening = self.stretch.sharpening(tau)
        return respond(self.loss, _state(y), self.stretch.batch, self.fixed_bias, sharpening)

    def failure(self, tau: float, y: Array) -> SelfTrainError:
        """Return the error that says why the integration cannot continue from y."""
        if self.ended is not None:
            last = self.answer(tau, y)
            return NoExpansion(last.points, _state(y), tau, last.selected)
        return SelfTrainError(
            f"at tau = {tau:.6g}: the path overflows, log norm {y[0]:.4g}, artanh of the cosine"
            f" {y[1]:.4g}, bias {y[2]:.4g}; a shorter path or a smaller annealing may help"
        )


def unknowns(state: State) -> Array:
    """Return the variables of the integration, (log norm, rapidity, bias), of a model."""
    rapidity = math.asinh(state.m / math.sqrt(state.v))
    return np.array([math.log(state.norm), rapidity, state.bias])


def _state(y: Array) -> State:
    norm = math.exp(y[0])
    return State(norm * math.tanh(y[1]), (norm / math.cosh(y[1])) ** 2, float(y[2]))


class FlowSolution(NamedTuple):
    """The result of one integration.

    Attributes:
        dense: dense output.
        crossings: times at which each of `LEVELS` is crossed.
        until: end time.
        failure: reason of an early end, or None.
        evaluations: number of evaluations of the right-hand side.
        longest: the longest step on each stretch.
    """

    dense: OdeSolution
    crossings: tuple[list[float], ...]
    until: float
    failure: SelfTrainError | None
    evaluations: int
    longest: Sequence[float]


def _confirmed(
    flows: list[Flow],
    times: list[float],
    y: Array,
    tolerance: float,
    stop_at: float | None,
    partial: bool,
) -> tuple[FlowSolution, float, int]:
    """Return the first integration that agrees with a coarser one to the tolerance, its accuracy,
    and the evaluations of all integrations.

    The accuracy is the difference of the two, but no better than the tolerance of the integrator.

    Arguments:
        stop_at: absolute rapidity at which to end.
        partial: whether to confirm also a path that overflows, up to the overflow. (This costs many
            evaluations, because integrations disagree where rates diverge.)
    """
    finer, apart = COARSER * tolerance, math.inf
    coarse = _integrate(flows, times, y, finer, stop_at, [math.inf] * len(flows))
    evaluations, failure = coarse.evaluations, coarse.failure
    if failure is not None and not isinstance(failure, NoExpansion) and not partial:
        raise failure
    while finer > FINEST:
        finer = max(finer / COARSER, FINEST)
        limits = [SHORTER * step for step in coarse.longest]
        fine = _integrate(flows, times, y, finer, stop_at, limits)
        evaluations += fine.evaluations
        apart = _apart(coarse, fine)
        if apart <= tolerance:
            return fine, max(apart, finer), evaluations
        coarse = fine
        flows[0].bar.extend(0, times[-1])
    raise SelfTrainError(
        f"the path until tau = {times[-1]:g} was not confirmed to tolerance = {tolerance:g}: "
        f"two integrations differ by {apart:.2g}; ask for a larger tolerance or a shorter path"
    )


def _integrate(
    flows: list[Flow],
    times: list[float],
    y: Array,
    tolerance: float,
    stop_at: float | None,
    limits: Sequence[float],
) -> FlowSolution:
    """Integrate one stretch after the other, from y at the first of `times`, with steps of at most
    `limits` on each.
    """
    events = [_crossing(level) for level in LEVELS]
    if stop_at is not None:
        events.append(_arrival(stop_at))
    ends, evaluations, longest = [times[0]], 0, [math.inf] * len(flows)
    pieces: list[DenseOutput] = []
    crossings: tuple[list[float], ...] = tuple([] for _ in LEVELS)
    failure: SelfTrainError | None = None
    for at, flow in enumerate(flows):
        begin, end = times[at], times[at + 1]
        flow.begin(begin)
        if np.isnan(flow(begin, y)).any():
            failure = flow.ended
            break
        done = solve_ivp(
            flow, (begin, end), y, method="DOP853", dense_output=True, rtol=tolerance,
            atol=tolerance, max_step=limits[at], events=events,
        )  # fmt: skip
        assert done.sol is not None
        assert done.t_events is not None
        y = done.y[:, -1]
        evaluations += done.nfev
        longest[at] = float(np.diff(done.sol.ts).max(initial=0.0)) or math.inf
        ends.extend(done.sol.ts[1:])
        pieces.extend(done.sol.interpolants)
        for found, crossed in zip(crossings, done.t_events, strict=False):
            found.extend(float(tau) for tau in crossed)
        if not done.success:
            failure = flow.failure(float(ends[-1]), y)
        if done.status != 0:
            break
    if not pieces:
        assert failure is not None
        raise failure
    dense = OdeSolution(ends, pieces)
    return FlowSolution(dense, crossings, float(ends[-1]), failure, evaluations, longest)


def _crossing(level: float) -> Callable[[float, Array], float]:
    return lambda tau, y: float(y[1]) - math.atanh(math.sqrt(level))


def _arrival(level: float) -> Callable[[float, Array], float]:
    """Return the event that ends an integration when the absolute rapidity reaches `level`."""

    def arrived(tau: float, y: Array) -> float:
        return abs(float(y[1])) - level

    arrived.terminal = True  # type: ignore[attr-defined]
    return arrived


def _apart(one: FlowSolution, other: FlowSolution) -> float:
    """Return the largest difference of two integrations, relative to the bias where that exceeds 1.
    After an early end the last part of the time is ignored, because rates diverge there.
    """
    last = min(one.until, other.until)
    if one.failure is not None or other.failure is not None:
        last *= BEFORE_THE_END
    grid = other.dense.ts[other.dense.ts <= last]
    grid = np.concatenate([grid, 0.5 * (grid[1:] + grid[:-1])])
    here = other.dense(grid)
    apart = np.abs(one.dense(grid) - here)
    apart[2] /= np.maximum(1.0, np.abs(here[2]))
    return float(apart.max())
