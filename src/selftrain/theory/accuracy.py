r"""How accurate the state after t steps is: the errors of all steps, carried forward.

Each step is confirmed to a relative accuracy of its own (`SolverStats.accuracy`). The steps after
it shrink or magnify that error, by the derivative of the new state (m, v, B) in the old one. Here
the set of possible errors is an ellipsoid. A step maps it linearly, and adds an ellipsoid of its
own errors; of all ellipsoids around the sum, the one of least trace is kept. So errors that always
point the same way are counted in full.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import NoGradient, StageError
from ..runtime.kernels import kernel
from .engines.engine import select
from .gradients.step_derivatives import FIELDS, MU, NU2, OLD_BIAS, OMEGA, drop_odd
from .solve import stages
from .state import solution, states_of
from .step.equations import BIAS, ETA, LOG_R, A, solve_linear
from .step.given import NO_MODEL, schedule
from .step.symmetry import treats_classes_alike
from .tolerances import REFINED, exponent_of
from .trajectory import Trajectory

ROUNDING = float(np.finfo(float).eps)
"""No step is more accurate than the numbers it is written in."""

BLOCK = 16384
"""Steps whose derivatives are in memory at once: 10 MB."""


class Block(NamedTuple):
    """Steps that follow one another: their states, derivatives and own accuracies, arrays over the
    steps.
    """

    old: Any
    new: Any
    unknowns: Any
    jacobians: Any
    moves: Any
    scale: Any
    own: Any
    fixed_bias: bool


def carried(trajectory: Trajectory) -> Array:
    r"""Relative accuracy of the state after each step: of m and $\sqrt v$ against $\sqrt q$, of B
    against itself and the logits.

    Infinite from the step on whose derivatives do not exist (or from the start of its block); NaN
    after the last solved step, and for clusters with a shape, whose steps have no derivatives here.
    With rows used again each bank goes through all steps, so what the banks differ by is what was
    carried.
    """
    accuracy = np.full(trajectory.problem.steps + 1, np.nan)
    last = trajectory.good_steps - 1
    if trajectory.memory is not None:
        return np.fmax.accumulate(trajectory.stats.accuracy) + 0.0 * trajectory.m
    if last < 0 or trajectory.problem.shaped or not trajectory.problem.memoryless:
        return accuracy
    # a state that a step starts from is in the units of that step, not in those of the step it ends
    starts, unknowns = solution(trajectory, last)
    old, new = np.vstack([NO_MODEL, starts[:-1]]), states_of(trajectory)
    scale = np.sqrt(schedule(trajectory.problem, trajectory.recipe).delta)
    own = np.maximum(trajectory.stats.accuracy, ROUNDING)
    spread = np.zeros((3, 3))
    for start in range(0, last + 1, BLOCK):
        steps = range(start, min(start + BLOCK, last + 1))
        part = slice(steps.start, steps.stop)
        done = 0
        try:
            found = derivatives(trajectory, starts, unknowns, steps)
        except (NoGradient, StageError):
            pass
        else:
            block = Block(
                old[part], new[part], unknowns[part], *found, scale[part], own[part],
                trajectory.recipe.fix_bias,
            )  # fmt: skip
            done = carry(block, spread, accuracy[part])
        if done < len(steps):
            accuracy[start + done : last + 1] = math.inf
            break
    return accuracy


def derivatives(
    trajectory: Trajectory, states: Array, unknowns: Array, steps: range
) -> tuple[Array, Array]:
    """The derivatives of the equations of some steps in their unknowns and in what they are
    given.
    """
    problem, recipe = trajectory.problem, trajectory.recipe
    exponent = exponent_of(trajectory.stats.tolerance)
    jacobians, moves = np.empty((len(steps), 5, 5)), np.empty((len(steps), 5, FIELDS))
    later = steps
    if steps.start == 0:
        first = next(stages(trajectory, [0]))
        jacobians[0], moves[0] = first.derivatives(unknowns[0], exponent + REFINED)
        later = steps[1:]
    if later:
        engine = select(problem, recipe)
        found = engine.derivatives(problem, recipe, states, unknowns, later, exponent)
        jacobians[-len(later) :], moves[-len(later) :] = found
    drop_odd(jacobians, moves, _balanced(trajectory, states, steps))
    return jacobians, moves


def _balanced(trajectory: Trajectory, states: Array, steps: range) -> NDArray[np.bool_]:
    """Which of the steps are their own mirror images; `solve` sets their bias to zero."""
    problem, recipe = trajectory.problem, trajectory.recipe
    rho, bias = np.append(problem.rho, problem.unlabeled.rho), np.append(0.0, states[:, 3])
    part = slice(steps.start, steps.stop)
    balanced: NDArray[np.bool_] = (rho[part] == 0.5) & (bias[part] == 0.0)
    return balanced & (balanced.any() and treats_classes_alike(problem, recipe))


@kernel(error_model="numpy")
def carry(block: Block, spread: Any, accuracy: Any) -> int:
    r"""The accuracy after each step of a block; how many steps have one.

    `spread` is a square root of the ellipsoid of errors of (m, v, B), and stays so from block to
    block: m and B in units of $\omega$, v of $2\omega^2\nu$.
    """
    by_unknowns, by_old, by_state = np.empty((3, 5)), np.empty((3, 4)), np.empty((4, 3))
    answer, through, errors = np.empty((5, 3)), np.empty((3, 3)), np.empty(5)
    for t in range(block.new.shape[0]):
        old, new, z = block.old[t], block.new[t], block.unknowns[t]
        first = old[0] == 0.0
        _new_state(z, old, by_unknowns, by_old)
        _own_errors(z, old, block.scale[t], block.own[t], errors)
        own = by_unknowns * errors
        if first:
            through[:, :] = 0.0
        else:
            _old_state(old, by_state)
            if not _response(block.jacobians[t], block.moves[t], by_state, answer):
                return t
            through[:, :] = _times(_times(by_old, by_state) - _times(by_unknowns, answer), spread)
            if block.fixed_bias:
                own[2] = 0.0
        if new[3] == 0.0:  # classes that nothing distinguishes: B is exactly zero
            own[2] = 0.0
            through[2] = 0.0
        bias = abs(new[3]) + block.scale[t] * new[0]
        for i, unit in enumerate((new[0], 2.0 * new[0] ** 2 * math.sqrt(new[2]), bias)):
            own[i] /= unit
            through[i] /= unit
        _sum(through, own, spread)
        worst = 0.0
        for i in range(3):
            worst = max(worst, math.sqrt((spread[i] ** 2).sum()))
        if not np.isfinite(spread).all():
            return t
        accuracy[t] = worst
        spread[2] *= bias / new[0]
    return int(block.new.shape[0])


@kernel(error_model="numpy")
def _new_state(z: Any, old: Any, by_unknowns: Any, by_old: Any) -> None:
    r"""Derivatives of (m, v, B) in the unknowns, and directly in ($\omega, \mu, \nu^2$, B')."""
    mu, nu2 = old[1], old[2]
    off = z[A] - mu * z[ETA]
    by_unknowns[:, :] = 0.0
    by_old[:, :] = 0.0
    by_unknowns[0, A] = mu
    by_unknowns[0, ETA] = nu2
    by_unknowns[1, A] = 2.0 * nu2 * off
    by_unknowns[1, ETA] = -2.0 * nu2 * off * mu
    by_unknowns[1, LOG_R] = 2.0 * math.exp(2.0 * z[LOG_R])
    by_unknowns[2, BIAS] = 1.0
    by_old[0, 1] = z[A]
    by_old[0, 2] = z[ETA]
    by_old[1, 1] = -2.0 * nu2 * off * z[ETA]
    by_old[1, 2] = off * off


@kernel(error_model="numpy")
def _old_state(old: Any, by_state: Any) -> None:
    r"""Derivatives of ($\omega, \mu, \nu^2$, B') in m' and B' in units of $\omega$, v' of
    $2\omega^2\nu$.
    """
    omega, mu, nu2 = old[0], old[1], old[2]
    nu = math.sqrt(nu2)
    by_state[:, :] = 0.0
    by_state[0, 0] = mu * omega
    by_state[0, 1] = nu * omega
    by_state[1, 0] = nu2
    by_state[1, 1] = -mu * nu
    by_state[2, 0] = -2.0 * mu * nu2
    by_state[2, 1] = 2.0 * mu * mu * nu
    by_state[3, 2] = omega


@kernel(error_model="numpy")
def _response(jacobian: Any, moves: Any, by_state: Any, answer: Any) -> bool:
    """Minus the derivatives of the unknowns in the old state; False where the equations are
    singular.
    """
    shift, column = np.empty(5), np.empty(5)
    for j in range(3):
        for i in range(5):
            shift[i] = (
                moves[i, OMEGA] * by_state[0, j]
                + moves[i, MU] * by_state[1, j]
                + moves[i, NU2] * by_state[2, j]
                + moves[i, OLD_BIAS] * by_state[3, j]
            )
        if not solve_linear(jacobian, shift, column):
            return False
        answer[:, j] = column
    return True


@kernel(error_model="numpy")
def _own_errors(z: Any, old: Any, scale: float, accuracy: float, errors: Any) -> None:
    """The errors of the unknowns that a relative accuracy stands for (`equations.step_size`)."""
    nu = math.sqrt(old[2])
    norm = math.hypot(math.hypot(z[A], nu * z[ETA]), math.exp(z[LOG_R]))
    along = min(norm / nu if nu > 0.0 else math.inf, abs(z[ETA]) + norm)
    errors[0] = accuracy * norm
    errors[1] = accuracy * along
    errors[2] = accuracy * (abs(z[BIAS]) + scale * norm)
    errors[3] = accuracy
    errors[4] = accuracy


@kernel(error_model="numpy")
def _times(left: Any, right: Any) -> Any:
    """The product of two small matrices."""
    out = np.zeros((left.shape[0], right.shape[1]))
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            for j in range(right.shape[1]):
                out[i, j] += left[i, k] * right[k, j]
    return out


@kernel(error_model="numpy")
def _sum(one: Any, other: Any, out: Any) -> None:
    """A square root of the ellipsoid of least trace around the sum of two ellipsoids, given by
    theirs.

    Their square roots side by side are one with many columns; orthogonalising its rows leaves
    three. The product of the matrix with its transpose would do so too, but loses half of the
    digits where the ellipsoid is thin.
    """
    size, added = math.sqrt((one**2).sum()), math.sqrt((other**2).sum())
    if size > 0.0 and added > 0.0:
        stretch, widen = math.sqrt(1.0 + added / size), math.sqrt(1.0 + size / added)
    else:
        stretch, widen = 1.0, 1.0
    columns = one.shape[1]
    both = np.empty((3, columns + other.shape[1]))
    both[:, :columns] = stretch * one
    both[:, columns:] = widen * other
    out[:, :] = 0.0
    for i in range(3):
        length = math.sqrt((both[i] ** 2).sum())
        out[i, i] = length
        if length == 0.0:
            continue
        both[i] /= length
        for j in range(i + 1, 3):
            out[j, i] = (both[i] * both[j]).sum()
            both[j] -= out[j, i] * both[i]
