r"""The differential equation of continuous time, integrated twice.

The unknowns are $(\ln\sqrt q, \mathrm{artanh}(m/\sqrt q), B)$, with the rates of `response` on the
right-hand side. A path is believed when a finer integration, forced to take other steps, agrees
with a coarser one: where both step alike they err alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.integrate import DenseOutput, OdeSolution, solve_ivp

from ...arrays import Array
from ...errors import NoExpansion, SelfTrainError
from ...losses import Loss
from ...runtime.progress import Progress
from ..state import State
from .linear_response import Response, respond
from .timeline import Stretch

LEVELS = (0.5, 0.99)
"""Squared cosines whose times are kept."""

COARSER, FINEST = 10.0, 3e-14
SHORTER = 0.6
"""The longest step of an integration, over that of the coarser one it is compared with."""

MOST_EVALUATIONS = 20_000
"""A stretch that needs more is given up: its right-hand side is rounding, as it is where hardly
any point determines the fit.
"""

BEFORE_THE_END = 0.999
LARGEST_LOG = 340.0


class Flow:
    """The right-hand side on one stretch, in (log norm, rapidity, bias).

    Beyond the end of the expansion, and where numbers overflow, it is NaN, so that the integration
    creeps up to that end.
    """

    def __init__(self, loss: Loss, stretch: Stretch, fixed_bias: bool):
        self.loss, self.stretch, self.fixed_bias = loss, stretch, fixed_bias
        self.refusal: NoExpansion | None = None
        self.bar: Progress | None = None
        self.begin(0.0)

    def begin(self, tau: float) -> None:
        """An integration starts from there."""
        self.evaluations, self.reached = 0, tau

    def __call__(self, tau: float, y: Array) -> Array:
        if np.isnan(y).any():
            return np.full(3, np.nan)
        self.refusal = None
        self.evaluations += 1
        self._report(tau)
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
        except NoExpansion as refusal:
            self.refusal = NoExpansion(refusal.points, state, float(tau), refusal.selected)
            return np.full(3, np.nan)
        return np.array([answer.shrink, answer.turn, answer.drift * state.norm])

    def _report(self, tau: float) -> None:
        if self.bar is not None:
            self.bar.advance(expected=max(0.0, tau - self.reached))
            self.reached = max(self.reached, tau)

    def answer(self, tau: float, y: Array) -> Response:
        """The response of a step from there."""
        sharpening = self.stretch.sharpening(tau)
        return respond(self.loss, _state(y), self.stretch.batch, self.fixed_bias, sharpening)


def unknowns(state: State) -> Array:
    """The variables of the integration at a model."""
    rapidity = math.asinh(state.m / math.sqrt(state.v))
    return np.array([math.log(state.norm), rapidity, state.bias])


def _state(y: Array) -> State:
    norm = math.exp(y[0])
    return State(norm * math.tanh(y[1]), (norm / math.cosh(y[1])) ** 2, float(y[2]))


class FlowSolution(NamedTuple):
    """One integration: the dense output, the crossings of each level, the end, why it came early,
    the longest steps.
    """

    dense: OdeSolution
    crossings: tuple[list[float], ...]
    until: float
    failure: SelfTrainError | None
    evaluations: int
    longest: tuple[float, ...]


class Confirmed(NamedTuple):
    """An integration that another one confirms: how well, and the evaluations of all together."""

    solution: FlowSolution
    accuracy: float
    evaluations: int


def confirmed(
    flows: list[Flow],
    times: list[float],
    y: Array,
    tolerance: float,
    stop_at: float | None,
    partial: bool = True,
) -> Confirmed:
    """The first integration that agrees with a coarser one as well as was asked.

    `stop_at` is a size of the rapidity at which to end. A path that overflows is followed again
    only if its first part is wanted (`partial`): where rates run away, no two integrations agree,
    and many more evaluations would say no more. The accuracy is never better than the
    tolerance of the integration.
    """
    finer, apart = COARSER * tolerance, math.inf
    coarse = _integrate(flows, times, y, finer, stop_at, [math.inf] * len(flows))
    evaluations = coarse.evaluations
    overflows = coarse.failure is not None and not isinstance(coarse.failure, NoExpansion)
    if overflows and not partial:
        assert coarse.failure is not None
        raise coarse.failure
    while finer > FINEST:
        finer = max(finer / COARSER, FINEST)
        limits = [SHORTER * step for step in coarse.longest]
        fine = _integrate(flows, times, y, finer, stop_at, limits)
        evaluations += fine.evaluations
        apart = _apart(coarse, fine)
        if apart <= tolerance:
            return Confirmed(fine, max(apart, finer), evaluations)
        coarse = fine
        if flows[0].bar is not None:
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
    """Stretch after stretch, from y at the first of `times`, with steps no longer than `limits`."""
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
            failure = flow.refusal
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
        if done.status == 1:
            break
        if not done.success:
            failure = _reason(flow, y, float(ends[-1]))
            break
    if not pieces:
        assert failure is not None
        raise failure
    dense = OdeSolution(ends, pieces)
    return FlowSolution(dense, crossings, float(ends[-1]), failure, evaluations, tuple(longest))


def _reason(flow: Flow, y: Array, tau: float) -> SelfTrainError:
    """Why the integration could not go on from y."""
    if flow.refusal is not None:
        last = flow.answer(tau, y)
        return NoExpansion(last.points, _state(y), tau, last.selected)
    return SelfTrainError(
        f"at tau = {tau:.6g}: the path overflows, log norm {y[0]:.4g}, artanh of"
        f" the cosine {y[1]:.4g}, bias {y[2]:.4g}; a shorter path or a smaller annealing may help"
    )


def _crossing(level: float) -> Callable[[float, Array], float]:
    return lambda tau, y: float(y[1]) - math.atanh(math.sqrt(level))


def _arrival(level: float) -> Callable[[float, Array], float]:
    """The event that ends an integration: a rapidity of this size, of either sign."""

    def arrived(tau: float, y: Array) -> float:
        return abs(float(y[1])) - level

    arrived.terminal = True  # type: ignore[attr-defined]
    return arrived


def _apart(one: FlowSolution, other: FlowSolution) -> float:
    """Largest difference of two integrations, up to just before an early end, where rates
    diverge; of a bias above 1, which annealing multiplies, relative to it.
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
