r"""The solution of one step: damped Newton on the few unknowns of `sums`, for a bank of rows.

The start is the previous model ("no update"), or that moved as in a run nearby. A step of Newton's
method is shortened until the next one, with the same Jacobian, is smaller (a test that does not
depend on units). Should that fail, the ridge is lowered to its value from a large one, where the
solution is explicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError
from .linear import Linear
from .process import Once, Path, Returning
from .sums import Layout, Sums, equations

SETTLED = 1e-5
"""A Newton step this small, relative to the weights, leaves an error of second order, below that of
any bank: it is the last.
"""

SETTLED_EXACTLY = 1e-9
"""The same for rows whose averages are exact."""

FAINT = 1e-22
"""A new direction whose square is below this share of q is lost in rounding: it is left out."""

MOST_NEWTON = 40
SMALLEST_FRACTION = 1e-3

MOST_SUGGESTED = 6
"""Newton steps from a start that a run nearby suggests: it is left for the plain start after these,
or at a step that has to be shortened. A good one needs two to five.
"""

LARGEST_RIDGE = 1e3

Group = Returning | Once | Linear


class MemoryStep(NamedTuple):
    """One step to solve: its rows, ridge, layout, whether the bias is trained, moments of the rows
    it does not use.
    """

    t: int
    rows: Sequence[Group]
    ridge: float
    layout: Layout
    train_bias: bool
    idle: Array

    @property
    def settled(self) -> float:
        """How small the last Newton step is."""
        return SETTLED_EXACTLY if isinstance(self.rows[0], Linear) else SETTLED


class Solved(NamedTuple):
    """Unknowns of a step and how many evaluations they took."""

    z: Array
    evaluations: int


class _Stuck(Exception):
    """Newton's method did not settle; carries evaluations and the last relative step."""

    def __init__(self, evaluations: int, size: float):
        super().__init__()
        self.evaluations, self.size = evaluations, size


def solve_stage(stage: MemoryStep, starts: Sequence[Array]) -> Solved:
    """Newton from the starts, with all patience for the last one, else along decreasing ridges."""
    spent = 0
    for start in starts:
        try:
            z, used = _newton(stage, start, suggested=start is not starts[-1])
            return Solved(z, spent + used)
        except _Stuck as stuck:
            spent += stuck.evaluations
    ridges = np.geomspace(max(LARGEST_RIDGE * stage.ridge, LARGEST_RIDGE), stage.ridge, 13)
    start = starts[-1]
    z = large_ridge_start(stage._replace(ridge=ridges[0]), float(start[0]))
    try:
        for ridge in ridges:
            z, used = _newton(stage._replace(ridge=float(ridge)), z)
            spent += used
    except _Stuck as stuck:
        size = stuck.size
    else:
        return Solved(z, spent)
    state = {"m": float(start[1]), "bias": float(start[0])}
    reason = "Newton's method did not settle on the bank of rows, nor along decreasing ridges"
    raise ConvergenceError(stage.t, reason, state, size)


def _newton(stage: MemoryStep, start: Array, *, suggested: bool = False) -> Solved:
    most = MOST_SUGGESTED if suggested else MOST_NEWTON
    shortest = 1.0 if suggested else SMALLEST_FRACTION
    z, evaluations, size = start.copy(), 1, np.inf
    residual, jacobian = _evaluate(stage, z)
    for _ in range(most):
        step = _solve(jacobian, residual)
        scale = _scale(stage, z)
        size = float(np.abs(step / scale).max())
        if not np.isfinite(size):
            break
        fraction = min(1.0, 2.0 / max(abs(float(step[-1])), 1e-300))
        if size <= stage.settled and _known(stage, z, step):
            return Solved(_moved(stage, z, step, 1.0), evaluations)
        while True:
            moved = _moved(stage, z, step, fraction)
            following, slopes = _evaluate(stage, moved)
            evaluations += 1
            simplified = float(np.abs(_solve(jacobian, following) / scale).max())
            if size <= 1e-3 or simplified <= (1.0 - 0.25 * fraction) * size:
                break
            fraction *= 0.5
            if fraction < shortest:
                raise _Stuck(evaluations, size)
        z, residual, jacobian = moved, following, slopes
    raise _Stuck(evaluations, size)


def _known(stage: MemoryStep, z: Array, step: Array) -> bool:
    """Whether the square of the new direction is known too, or is too small to matter."""
    square, change = z[stage.layout.new], abs(step[stage.layout.new])
    return bool(change <= 1e-4 * square or square + change <= FAINT * _squared_norm(stage, z))


def _evaluate(stage: MemoryStep, z: Array) -> tuple[Array, Array]:
    sums = Sums(stage.layout.new + 1)
    for rows in stage.rows:
        rows.sum(sums, z, stage.layout)
    past = stage.layout.past
    sums.add_idle(stage.idle, past, z[past], float(np.exp(z[-1])))
    return equations(sums, z, stage.layout, stage.ridge, stage.train_bias)


def _solve(jacobian: Array, residual: Array) -> Array:
    """The Newton step, with rows brought to size one."""
    size = np.abs(jacobian).max(axis=1)
    if not np.all(np.isfinite(size)) or not np.all(size > 0):
        return np.full(residual.size, np.nan)
    try:
        return np.asarray(-np.linalg.solve(jacobian / size[:, None], residual / size))
    except np.linalg.LinAlgError:
        return np.full(residual.size, np.nan)


def _squared_norm(stage: MemoryStep, z: Array) -> float:
    along = z[stage.layout.along]
    return float(z[1] ** 2 + along @ along + z[stage.layout.new])


def _scale(stage: MemoryStep, z: Array) -> Array:
    """What counts as size one: the norm of the weights, its square, 1 for the logarithm."""
    square = max(_squared_norm(stage, z), 1e-200)
    scale = np.full(z.size, np.sqrt(square))
    scale[0] += abs(z[0])
    past = z[stage.layout.past]
    scale[stage.layout.past] = np.sqrt(past @ past + square)
    scale[stage.layout.new] = square
    scale[-1] = 1.0
    return scale


def _moved(stage: MemoryStep, z: Array, step: Array, fraction: float) -> Array:
    """A fraction of the step; the square of the new direction stays positive."""
    moved = z + fraction * step
    new = stage.layout.new
    moved[new] = max(moved[new], 0.05 * z[new], 1e-30 * _squared_norm(stage, z))
    return np.asarray(moved)


def large_ridge_start(stage: MemoryStep, bias: float) -> Array:
    r"""The solution for a large ridge: slopes at the bias alone, $\kappa = 1/\lambda$, weights one
    explicit step from 0.
    """
    z = np.zeros(stage.layout.size)
    z[0], z[-1] = bias, -np.log(stage.ridge)
    z[stage.layout.new] = 1e-30
    sums = Sums(stage.layout.new + 1)
    for rows in stage.rows:
        rows.sum(sums, z, stage.layout)
    kappa = 1.0 / stage.ridge
    weighted = np.concatenate([[1], stage.layout.along])
    z[weighted] = -sums.f[weighted] * kappa
    z[stage.layout.past] = sums.f[stage.layout.past] * kappa
    left = sums.noise - float(sums.f[stage.layout.past] @ sums.f[stage.layout.past])
    z[stage.layout.new] = kappa**2 * max(left, 1e-3 * sums.noise)
    return z


def no_update_start(stage: MemoryStep, path: Path) -> Array:
    """The model of the step before, with the slopes of this step's labels at its logits."""
    t, layout = stage.t, stage.layout
    kappa = float(path.kappa[t - 1])
    z = np.zeros(layout.size)
    z[0], z[1] = path.bias[t - 1], path.m[t - 1]
    z[layout.along] = path.loadings[t - 1, path.live]
    z[-1] = np.log(kappa)
    past, noise = np.zeros(layout.past.size), 0.0
    for rows in stage.rows:
        with_past, square = rows.start_sums(layout)
        past += with_past
        noise += square
    z[layout.past] = kappa * past
    rest = kappa**2 * (noise - float(past @ past))
    z[layout.new] = max(rest, 1e-4 * path.q(t - 1) * min(1.0, stage.ridge), 1e-6 * path.q(t - 1))
    return z
