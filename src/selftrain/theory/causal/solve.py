r"""`solve_causal`: all fits on independently scrambled replicates, with more and more points until
the replicates agree.

The result is the mean over the replicates. Its accuracy, for every step, is the confidence interval
of that mean (`observed`) relative to the norm of the weights. A linear problem has exact averages
and one "replicate" without points. If samples depend on few Gaussian numbers and nothing jumps,
averages are on grids instead, each confirmed by a finer one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError, InvalidInput, StageError
from ...runtime.parallel import one_thread
from ...runtime.progress import Progress, ProgressOption
from ..tolerances import TOLERANCES
from .classes import ClassTrajectory
from .draws import PointSource
from .observed import REPLICATES, TWICE, accuracy_of_mean, observe, size_needed
from .replicate import Counts, Replicate
from .samples import seen_by
from .setting import Setting
from .trajectories import Outcome, Result, mean_trajectory

SMOOTH_TOLERANCE, JUMP_TOLERANCE, MANY_CLASSES_TOLERANCE = 1e-5, 1e-4, 1e-3
"""Default tolerances: for smooth labels of two classes on a sphere; for labels that jump (hard
labels, a threshold), general covariances or few classes; for more than `FEW_CLASSES` classes.
"""

FEW_CLASSES = 4

ACCEPTED = 10.0
"""If the user gives no tolerance, a run is accepted up to this many times the default one; it
reports its accuracy.
"""

EXACT_TOLERANCE = 1e-10
"""Default tolerance with exact averages."""

SMALLEST_TOLERANCE = 1e-7

FEWEST_POINTS, FEWEST_OF_MANY, USUAL_POINTS, MOST_POINTS = 2**10, 2**9, 2**16, 2**18
"""Numbers of points of a class of a group: in the smallest replicate, in the smallest for more than
`FEW_CLASSES` classes, in the largest by default, and in the largest if the user gives a tolerance.
All are powers of two.
"""

GRID_NUMBERS, GRID_LEVELS, SCORES_LEVELS = 4, (12, 18, 24, 30), (8, 12, 16)
"""Samples that depend on at most `GRID_NUMBERS` Gaussian numbers, without jumps, are averaged on
grids of the levels `GRID_LEVELS`, each confirmed by the next; `SCORES_LEVELS` are those for more
than two classes.
"""

COUNTED_POINTS = 2**13
"""Number of points on which labels are counted if averages are on a grid."""

Moves = dict[int, Array]
"""Differences of the solutions of a run from its plain starts, by fits; starts for another run."""


class OneReplicate(NamedTuple):
    """A run on a single replicate, hence without an error estimate; its `moves`, the differences of
    its solutions from the default starts, are starts for a similar run.
    """

    trajectory: Result
    moves: Moves


def run_one_replicate(setting: Setting, points: int, near: Moves | None = None) -> OneReplicate:
    """Solve on one replicate. It is the same for all recipes, so that the result is a smooth
    function of the recipe, as optimisers need.
    """
    with one_thread():
        source = PointSource(0 if setting.linear else points)
        run = Replicate(setting, source, near).solve()
    outcome = Outcome(math.nan, np.full(setting.fits, np.nan), run.evaluations)
    return OneReplicate(mean_trajectory(setting, [run], outcome), run.moves)


def solve_causal(
    setting: Setting, wanted: float | None, on_failure: str, progress: ProgressOption = None
) -> Result:
    """Solve all fits to a tolerance.

    Arguments:
        setting: the protocol and its coordinates.
        wanted: the tolerance; None for the default one, or up to ten times more if replicates of
            the usual size do not reach it.
        on_failure: "raise", or "partial" to return the fits before the one that failed.
    """
    if not setting.known and setting.protocol.fits[0].ridge == 0:
        accepted = (
            "must be > 0 in the first fit of a protocol or of more than two classes; 1e-6 is close"
        )
        raise InvalidInput("ridge" if setting.origin[1] is None else "lambda_l", 0.0, accepted)
    text = "steps of replicates"
    with Progress(0, text, progress, expected=0.0, often=True) as bar, one_thread():
        return _with_fits_after_a_collapse(setting._replace(bar=bar), wanted, on_failure)


def _with_fits_after_a_collapse(setting: Setting, wanted: float | None, on_failure: str) -> Result:
    """Solve all fits but those that depend on one that collapses.

    A run ends at a collapse. If later fits take nothing from it, it is solved again without the
    fits that do: this does not change the law of the others.
    """
    result = _solve(setting, wanted, on_failure)
    if not isinstance(result, ClassTrajectory) or result.collapsed_at is None:
        return result
    at = result.collapsed_at
    lost = setting.lost.union(setting.protocol.taught_by(at))
    if lost.issuperset(range(at, setting.fits)):
        return result
    others = _with_fits_after_a_collapse(setting._replace(lost=lost), wanted, on_failure)
    assert isinstance(others, ClassTrajectory)
    shares = np.where(np.isnan(others.label_shares), result.label_shares, others.label_shares)
    return replace(others, label_shares=shares, collapsed_at=at)


def _solve(setting: Setting, wanted: float | None, on_failure: str) -> Result:
    """Solve all fits up to a collapse, except those that are omitted."""
    tolerance = default_tolerance(setting) if wanted is None else wanted
    if setting.linear:
        return _attempt(setting, Asked(tolerance, tolerance, (0,)), on_failure)
    if tolerance < SMALLEST_TOLERANCE:
        accepted = (
            f"must be from {SMALLEST_TOLERANCE:g} to 1e-3 with data reuse or more than two"
            " classes (averages are over quasi-Monte Carlo samples)"
        )
        raise InvalidInput("tolerance", tolerance, accepted)
    if most_numbers(setting) <= GRID_NUMBERS and not setting.protocol.jumps:
        confirmed = _on_grids(setting, tolerance)
        if confirmed is not None:
            return confirmed
    fewest = FEWEST_POINTS if setting.protocol.classes <= FEW_CLASSES else FEWEST_OF_MANY
    most = USUAL_POINTS if wanted is None else MOST_POINTS
    sizes = tuple(fewest * 2**level for level in range((most // fewest).bit_length()))
    enough = ACCEPTED * tolerance if wanted is None else tolerance
    return _attempt(setting, Asked(tolerance, enough, sizes), on_failure)


def default_tolerance(setting: Setting) -> float:
    """Return 1e-10 if averages are exact, else an accuracy that replicates reach in seconds."""
    protocol = setting.protocol
    if setting.linear:
        return EXACT_TOLERANCE
    if protocol.classes > FEW_CLASSES:
        return MANY_CLASSES_TOLERANCE
    sphere = all(group.law.features == 1 for group in protocol.groups)
    return SMOOTH_TOLERANCE if sphere and not protocol.jumps else JUMP_TOLERANCE


def most_numbers(setting: Setting) -> int:
    """Return the largest number of Gaussian numbers that the logits of a sample depend on."""
    protocol = setting.protocol
    return protocol.components * max(len(seen_by(uses)) for uses in protocol.uses if uses)


class Asked(NamedTuple):
    """The tolerance, the accuracy that is accepted with the largest replicates, and the sizes of
    replicates to try.
    """

    tolerance: float
    accepted: float
    sizes: tuple[int, ...]


def _on_grids(setting: Setting, tolerance: float) -> Result | None:
    """Return the run on the first grid that confirms a coarser one; None if no level does."""
    before: Replicate | None = None
    evaluations = np.zeros(setting.fits, dtype=np.int64)
    for level in GRID_LEVELS if setting.protocol.classes == 2 else SCORES_LEVELS:
        source = PointSource(level=level)
        setting.expect(source)
        try:
            run = Replicate(setting, source, before.moves if before else None).solve()
        except StageError:
            return None
        evaluations += run.evaluations
        if before is not None and run.collapsed_at == before.collapsed_at:
            (one, _), (other, scale) = _states(setting, before), _states(setting, run)
            accuracy = np.nan_to_num(np.fmax.reduce(np.abs(one - other) / scale, axis=0))
            if float(accuracy.max()) <= tolerance:
                _count_labels(setting, run)
                return mean_trajectory(setting, [run], Outcome(tolerance, accuracy, evaluations))
        before = run
    return None


def _count_labels(setting: Setting, run: Replicate) -> None:
    """Replace the proportions of selected samples and correct labels by those of a quasi-Monte
    Carlo run.

    Both are averages of step functions, which a Gauss-Hermite grid does not resolve.
    """
    source = PointSource(COUNTED_POINTS)
    setting.expect(source)
    points = Replicate(setting, source, run.moves).solve()
    run.measured[:3], run.shares = points.measured[:3], points.shares


def _attempt(setting: Setting, asked: Asked, on_failure: str) -> Result:
    try:
        return _enlarge(setting, asked)
    except StageError as error:
        if on_failure == "raise":
            raise
        if isinstance(error, ConvergenceError):
            asked = asked._replace(accepted=math.inf)
        return _enlarge(setting._replace(last=error.step - 1), asked, error)


def _enlarge(setting: Setting, asked: Asked, failure: StageError | None = None) -> Result:
    """Solve on replicates of growing size until the accuracy of their mean is within the tolerance.
    If a fit fails on few points, it is tried again on more.
    """
    near: Moves | None = None
    evaluations: Counts = np.zeros(setting.fits, dtype=np.int64)
    worst, at, needed = math.inf, setting.begin, 0.0
    for points in asked.sizes:
        last = points == asked.sizes[-1]
        if points < needed and not last:
            continue
        try:
            runs = _replicates(setting, points, near)
            worst, at, accuracy = _judge(setting, runs)
            if asked.tolerance < worst <= asked.tolerance / TWICE:
                runs += _replicates(setting, points, runs[-1].moves, REPLICATES)
                worst, at, accuracy = _judge(setting, runs)
        except StageError:
            if last:
                raise
            continue
        near = runs[-1].moves
        evaluations += np.sum([run.evaluations for run in runs], axis=0)
        if math.isinf(worst):
            if not (last and _unseen(runs, at)):
                continue
            for run in runs:
                run.collapsed_at = at
            worst, at, accuracy = _judge(setting, runs)
        if worst <= (asked.accepted if last else asked.tolerance):
            outcome = Outcome(asked.tolerance, accuracy, evaluations, failure)
            return mean_trajectory(setting, runs, outcome)
        needed = size_needed(points, worst, asked.tolerance, setting.protocol.jumps)
    samples = f"{REPLICATES} replicates of {setting.protocol.classes * points} points per group"
    reason = f"{samples} disagree on whether the labels have lost a class"
    if math.isfinite(worst):
        remedy = "ask for a larger tolerance"
        if worst > TOLERANCES[1]:
            remedy = 'on_failure="partial" returns the steps before it'
        reason = f"{samples} know this step to {worst:.1e}, not to {asked.accepted:g}; {remedy}"
    raise ConvergenceError(at, reason, {}, worst)


def _replicates(
    setting: Setting, points: int, near: Moves | None, begin: int = 0
) -> list[Replicate]:
    """Solve on `REPLICATES` replicates (one if averages are exact), numbered from `begin`."""
    count = REPLICATES if points else 1
    setting.expect(PointSource(points), count)
    runs: list[Replicate] = []
    for number in range(begin, begin + count):
        systems = runs[0].systems if runs else None
        runs.append(Replicate(setting, PointSource(points, (number,)), near, systems).solve())
        near = runs[-1].moves
    return runs


def _judge(setting: Setting, runs: list[Replicate]) -> tuple[float, int, Array]:
    """Return the accuracy of the least accurate step (infinite if the replicates disagree on a
    collapse), its index, and the accuracy of all steps.
    """
    ends = {run.collapsed_at for run in runs}
    accuracy = np.zeros(setting.fits)
    if len(ends) > 1:
        return math.inf, min(end for end in ends if end is not None), accuracy
    if len(runs) > 1:
        states, scales = zip(*(_states(setting, run) for run in runs), strict=True)
        error = accuracy_of_mean(np.array(states), np.mean(scales, axis=0))
        accuracy = np.nan_to_num(np.fmax.reduce(error, axis=0))
    return float(accuracy.max()), int(accuracy.argmax()), accuracy


def _states(setting: Setting, run: Replicate) -> tuple[Array, Array]:
    """Return the quantities on which replicates must agree, up to a collapse, and their scales."""
    states, scales = observe(run, setting).states(setting.protocol.length)
    if run.collapsed_at is not None:
        states[:, run.collapsed_at :] = np.nan
    return states, scales


def _unseen(runs: list[Replicate], t: int) -> bool:
    """Return whether half of the replicates or more have collapsed by step t: the points are too
    few for so rare a class.
    """
    gone = sum(run.collapsed_at is not None and run.collapsed_at <= t for run in runs)
    return gone >= len(runs) / 2
