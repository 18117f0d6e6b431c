"""The solution of one fit: damped Newton's method on its conjugates, or continuation in the ridge;
and the starting points, the conjugates that belong to given weights.

A step is shortened until the next one, with the same Jacobian, would change the weights by less (a
test that does not depend on the units of the unknowns). A Jacobian is reused while steps shrink
fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from ...arrays import Array
from ...errors import ConvergenceError
from .step import CausalStep, Evaluation, Totals
from .unknowns import Hats
from .weights import FAINT, Trial

REMAINS, REMAINS_EXACTLY, REMAINS_OF_SCORES = 1e-10, 1e-14, 1e-8
"""Largest remaining error of Newton's method, relative to the weights: on points (below the error
of any replicate, and small enough for differences between recipes), with exact averages, and on
points for more than two classes.
"""

CONTRACTS = 0.05
"""A Jacobian is reused while each step is at most this times the one before."""

SURE = 1e-3
"""Steps smaller than this are not tested for descent."""

MOST_NEWTON = 40

SMALLEST_FRACTION = 1e-3

MOST_SUGGESTED = 8
"""Largest number of Newton steps from the start that a similar run suggests. After these, or at a
step that has to be shortened, the plain start is used instead.
"""

LARGEST_RIDGE = 1e3

FIRST_PACE, LEAST_PACE, EASY = 1.0, 0.02, 4
"""Continuation: the first step in the logarithm of the ridge, the smallest step, and the number of
evaluations up to which a step counts as easy, so that the next is longer.
"""

MOST_SUBSTITUTIONS = 30

SMALL_REST = (1e-6, 1e-4)
"""If a start has no new direction, one is added with this fraction of the squared weights: the
minimum, and the value per unit of the ridge.
"""


class Solved(NamedTuple):
    """The unknowns of a solved fit, the number of evaluations, and the last factorised Jacobian."""

    z: Array
    evaluations: int
    system: System | None = None


class _Stuck(Exception):
    """Newton's method did not converge; has the evaluations and the last relative step."""

    def __init__(self, evaluations: int, size: float):
        super().__init__()
        self.evaluations, self.size = evaluations, size


def solve_step(stage: CausalStep, starts: Sequence[Array], near: System | None = None) -> Solved:
    """Solve a fit by Newton's method from each of the starts in turn, else by continuation in the
    ridge.

    Arguments:
        stage: the fit.
        starts: starting points; only the last one gets the full number of Newton steps.
        near: the Jacobian of a similar run, used for all starts but the last one.
    """
    spent = 0
    for start in starts:
        try:
            suggested = start is not starts[-1]
            found = _newton(stage, start, suggested=suggested, near=near if suggested else None)
            return found._replace(evaluations=spent + found.evaluations)
        except _Stuck as stuck:
            spent += stuck.evaluations
    return _along_ridges(stage, starts[-1][stage.layout.bias], spent)


def _along_ridges(stage: CausalStep, bias: Array, spent: int) -> Solved:
    """Follow the solution from a large ridge down to that of the fit. Each start is extrapolated
    from the last two solutions, linearly in the logarithm of the ridge.
    """
    ridge, pace = max(LARGEST_RIDGE * stage.ridge, LARGEST_RIDGE), FIRST_PACE
    z, move = start_at(stage._replace(ridge=ridge), bias), 0.0
    known, size = False, np.inf
    while pace > LEAST_PACE:
        before = ridge
        if known:
            ridge = max(stage.ridge, before * np.exp(-pace))
        trial = stage._replace(ridge=float(ridge))
        stride = np.log(before / ridge)
        try:
            found = _newton(trial, trial.moved(z, np.asarray(stride * move), 1.0), few=known)
        except _Stuck as stuck:
            spent, size = spent + stuck.evaluations, stuck.size
            ridge, pace = before, pace / 2.0 if known else 0.0
            continue
        spent += found.evaluations
        if ridge == stage.ridge:
            return found._replace(evaluations=spent, system=None)
        move = (found.z - z) / stride if known else 0.0
        pace *= 1.5 if found.evaluations <= EASY else 1.0
        z, known = found.z, True
    reason = "Newton's method did not settle on the replicate, nor along decreasing ridges"
    raise ConvergenceError(stage.t, reason, {"bias": float(bias[0])}, size)


def _newton(
    stage: CausalStep, start: Array, *, suggested: bool = False, near: System | None = None,
    few: bool = False,
) -> Solved:  # fmt: skip
    most = MOST_SUGGESTED if suggested or few else MOST_NEWTON
    shortest = 1.0 if suggested else SMALLEST_FRACTION
    remains = REMAINS if stage.layout.components == 1 else REMAINS_OF_SCORES
    if stage.exact:
        remains = REMAINS_EXACTLY
    z, evaluations, size = start.copy(), 1, np.inf
    here = stage.evaluate(z, near is None)
    system, used, ratio = near or System(here), near is not None, 1.0
    for _ in range(most):
        step, size = system.step(here.residual)
        if not np.isfinite(size):
            break
        # With a new Jacobian the remaining error is the square of the step, with an old one the
        # same fraction as before.
        left = ratio if used else size
        if size * left <= remains and stage.knows(z, step):
            return Solved(stage.moved(z, step, 1.0), evaluations, system)
        fraction = 1.0
        while True:
            moved = stage.moved(z, step, fraction)
            again = near is None and size * CONTRACTS > SURE
            following = stage.evaluate(moved, again)
            evaluations += 1
            simplified = system.step(following.residual)[1]
            if size <= SURE or simplified <= (1.0 - 0.25 * fraction) * size:
                break
            fraction *= 0.5
            if fraction < shortest:
                raise _Stuck(evaluations, size)
        z, here, ratio, used = moved, following, simplified / size, True
        if following.jacobian is None and not ratio <= CONTRACTS:
            here = stage.evaluate(z, True)
            evaluations += 1
        if here.jacobian is not None:
            system, used = System(here), False
    raise _Stuck(evaluations, size)


class System:
    """A factorised Jacobian with normalised rows, and the map from its steps to relative changes of
    the weights.
    """

    def __init__(self, at: Evaluation) -> None:
        assert at.jacobian is not None
        assert at.primal is not None
        scale = np.abs(at.jacobian).max(axis=1)
        self._scale, self._primal, self._factors = scale, at.primal, None
        if np.all(np.isfinite(scale) & (scale > 0)) and np.all(np.isfinite(at.primal)):
            factors = lu_factor(at.jacobian / scale[:, None], check_finite=False)
            self._factors = factors if np.all(np.diag(factors[0])) else None

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return int(self._scale.size)

    def step(self, residual: Array) -> tuple[Array, float]:
        """Return the Newton step and its relative size."""
        if self._factors is None or not np.all(np.isfinite(residual)):
            return np.full(residual.size, np.nan), np.inf
        step = -lu_solve(self._factors, residual / self._scale, check_finite=False)
        return step, float(np.abs(self._primal @ step).max())


def start_at(stage: CausalStep, bias: Array, before: int | None = None) -> Array:
    """Return the unknowns from the slopes of the loss, with this fit's labels, at the weights of
    the fit `before`; by default at weights of zero, the limit of large ridges.
    """
    history, layout = stage.history, stage.layout
    w = np.zeros((layout.components, history.space.size, history.count))
    if before is not None:
        w = history.fits[before][:, :, : history.count]
    d = layout.components
    bias = bias if stage.bias is None else stage.bias
    trial = Trial(w, {}, history.space.gain(stage.ridge, {}, d))
    found = Totals(layout, ())
    seen = {a: history.see(a, trial)[0] for a in layout.sources}
    parts = []
    for cell in stage.cells:
        own = seen[cell.source]
        mean = history.means(cell.law, w)[:, cell.kind] + bias
        part, off = cell.view.along(own.along)
        theta = cell.combine(mean, part, np.zeros((d, d)), own.react)
        parts.append((cell, *cell.start_averages(theta), off))
    stiffness, strengths = _start_stiffness(stage)
    for cell, f, square, off in parts:
        own_stiffness = cell.start_stiffness(strengths[cell.source])
        f[:, cell.used :] = own_stiffness  # by Stein's identity
        found.add(cell, f, square, own_stiffness, off)
    along = {a: found.along[a] - stiffness[a] @ seen[a].along for a in layout.sources}
    fresh = {}
    share = max(SMALL_REST[0], SMALL_REST[1] * min(1.0, stage.ridge))
    for a, own in seen.items():
        slopes = found.slopes[a]
        square = found.square[a] - slopes @ slopes.T
        scale = float(np.trace(found.square[a]))
        least = share * float((own.along**2).sum()) / np.trace(strengths[a]) ** 2
        low = max(least, 1e2 * FAINT * scale, 1e-290)
        fresh[a] = square if np.linalg.eigvalsh(square).min() > low else low * np.eye(d)
    return layout.pack(bias, Hats(found.means, stiffness, along, found.slopes, fresh))


def _start_stiffness(stage: CausalStep) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return stiffness and strength of a start, which depend on each other, by fixed-point
    iteration.
    """
    history, layout = stage.history, stage.layout
    d = layout.components
    stiffness = {a: np.zeros((d, d)) for a in layout.sources}
    strengths: dict[int, Array] = {}
    for _ in range(MOST_SUBSTITUTIONS):
        gain, before = history.space.gain(stage.ridge, stiffness, d), strengths
        strengths = {a: history.strength(a, gain) for a in layout.sources}
        stiffness = {a: np.zeros((d, d)) for a in layout.sources}
        for cell in stage.cells:
            a = cell.source
            stiffness[a] += cell.share * cell.start_stiffness(strengths[a])
        if before and all(
            np.abs(strengths[a] - before[a]).max() <= 0.01 * np.trace(before[a]) for a in before
        ):
            break
    return stiffness, strengths
