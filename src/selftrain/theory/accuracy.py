r"""How accurate the state after t steps is: the errors of all steps, carried forward.

Each step is confirmed to a relative accuracy of its own (`SolverStats.accuracy`). The steps after it
shrink or magnify that error, by the derivative of the new state (m, v, B) in the old one. Here the set
of possible errors is an ellipsoid. A step maps it linearly, and adds an ellipsoid of its own errors; of
all ellipsoids around the sum, the one of least trace is kept. So errors that always point the same way
are counted in full.
"""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array
from ..errors import NoGradient, StageError
from .gradients.gradient import derivatives
from .gradients.step_derivatives import MU, NU2, OLD_BIAS, OMEGA
from .state import solution
from .step.equations import BIAS, ETA, LOG_R, A
from .step.given import NO_MODEL, schedule
from .trajectory import Trajectory

ROUNDING = float(np.finfo(float).eps)
"""No step is more accurate than the numbers it is written in."""


def carried(trajectory: Trajectory) -> Array:
    r"""Relative accuracy of the state after each step: of m and $\sqrt v$ against $\sqrt q$, of B against itself and the logits.

    Infinite from the step on whose derivatives do not exist; NaN after the last solved step, and for
    clusters with a shape, whose steps have no derivatives here. With rows used again each bank goes through all steps, so
    what the banks differ by is what was carried.
    """
    accuracy = np.full(trajectory.problem.steps + 1, np.nan)
    last = trajectory.good_steps - 1
    if trajectory.memory is not None:
        return np.fmax.accumulate(trajectory.stats.accuracy) + 0.0 * trajectory.m
    if last < 0 or trajectory.problem.shaped or not trajectory.problem.memoryless:
        return accuracy
    states, unknowns = solution(trajectory, last)
    try:
        jacobians, moves = derivatives(trajectory, states, unknowns, last)
    except (NoGradient, StageError):
        accuracy[: last + 1] = math.inf
        return accuracy
    scale = np.sqrt(schedule(trajectory.problem, trajectory.recipe).delta)
    spread = np.zeros((3, 3))
    for t in range(last + 1):
        old = states[t - 1] if t > 0 else NO_MODEL
        try:
            inverse = np.linalg.inv(jacobians[t])
        except np.linalg.LinAlgError:
            accuracy[t : last + 1] = math.inf
            break
        by_unknowns, by_old = _new_state(unknowns[t], old)
        step = by_old - by_unknowns @ inverse @ moves[t][:, [OMEGA, MU, NU2, OLD_BIAS]]
        new = states[t]
        unit = np.array([new[0], 2 * new[0] ** 2 * math.sqrt(new[2]), abs(new[3])])
        unit[2] += scale[t] * new[0]
        local = max(float(trajectory.stats.accuracy[t]), ROUNDING)
        own = by_unknowns * _own_errors(unknowns[t], old, scale[t], local)
        if t > 0 and trajectory.recipe.fix_bias:
            own[2] = 0.0
        through = step @ _old_state(old) @ spread if t > 0 else np.zeros((3, 3))
        if new[3] == 0.0:  # classes that nothing distinguishes: B is exactly zero
            own[2], through[2] = 0.0, 0.0
        spread = _sum(through / unit[:, None], own / unit[:, None])
        if not np.isfinite(spread).all():
            accuracy[t : last + 1] = math.inf
            break
        accuracy[t] = float(np.sqrt((spread**2).sum(axis=1)).max())
        spread = unit[:, None] * spread
    return accuracy


def _new_state(z: Array, old: Array) -> tuple[Array, Array]:
    r"""Derivatives of (m, v, B) in the unknowns, and directly in ($\omega, \mu, \nu^2$, B')."""
    _, mu, nu2, _ = old
    off, square = z[A] - mu * z[ETA], math.exp(2 * z[LOG_R])
    by_unknowns, by_old = np.zeros((3, 5)), np.zeros((3, 4))
    by_unknowns[0, [A, ETA]] = mu, nu2
    by_unknowns[1, [A, ETA, LOG_R]] = 2 * nu2 * off, -2 * nu2 * off * mu, 2 * square
    by_unknowns[2, BIAS] = 1.0
    by_old[0, 1:3] = z[A], z[ETA]
    by_old[1, 1:3] = -2 * nu2 * off * z[ETA], off * off
    return by_unknowns, by_old


def _old_state(old: Array) -> Array:
    r"""Derivatives of ($\omega, \mu, \nu^2$, B') in (m', v', B')."""
    omega, mu, nu2, _ = old
    return np.array(
        [
            [mu, 0.5 / omega, 0.0],
            [nu2 / omega, -0.5 * mu / omega**2, 0.0],
            [-2.0 * mu * nu2 / omega, (mu / omega) ** 2, 0.0],
            [0.0, 0.0, 1.0],
        ]
    )


def _own_errors(z: Array, old: Array, scale: float, accuracy: float) -> Array:
    """The errors of the unknowns that a relative accuracy stands for (`equations.step_size`)."""
    nu = math.sqrt(old[2])
    norm = math.hypot(z[A], nu * z[ETA], math.exp(z[LOG_R]))
    along = min(norm / nu if nu > 0 else math.inf, abs(z[ETA]) + norm)
    return accuracy * np.array([norm, along, abs(z[BIAS]) + scale * norm, 1.0, 1.0])


def _sum(one: Array, other: Array) -> Array:
    """A square root of the ellipsoid of least trace around the sum of two ellipsoids, given by theirs."""
    sizes = np.linalg.norm(one), np.linalg.norm(other)
    if sizes[0] == 0.0 or sizes[1] == 0.0:
        both = np.hstack([one, other])
    else:
        ratio = sizes[1] / sizes[0]
        both = np.hstack([math.sqrt(1 + ratio) * one, math.sqrt(1 + 1 / ratio) * other])
    if not np.isfinite(both).all():
        return np.full((3, 3), math.inf)
    upper: Array = np.linalg.qr(both.T).R  # both = L Q, and L is a square root with three columns
    return upper.T
