r"""`solve_causal`: all fits on several replicates that are scrambled independently, enlarged until
they agree.

The result is the mean over the replicates, its accuracy what Student's law gives for that mean
(`agreement`), step by step, in the norm of the weights. A linear problem has exact averages and one
"replicate" of no points. Where few Gaussian numbers make a sample and nothing jumps, grids take the
place of replicates, each confirmed by a finer one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError, InvalidInput, StageError
from ...labelers import SoftLabels
from ...losses import Squared
from ...problem import Problem
from ...protocol import Protocol, protocol_of
from ...recipe import Recipe
from ...runtime.parallel import one_thread
from ...runtime.progress import Progress, ProgressOption
from ..trajectory import Trajectory
from .agreement import REPLICATES, TWICE, accuracy_of_mean, size_needed
from .cells import seen_by
from .classes import ClassTrajectory, class_trajectory
from .known import known_fits
from .mean import mean_trajectory
from .observed import observe
from .replicate import CausalRun, Counts, Outcome, PointSource, Replicate, Setting
from .result import found

Result = TypeVar("Result")
Finish = Callable[[Setting, list[Replicate], Outcome], Result]
"""Makes the result of replicates."""

SMOOTH_TOLERANCE, JUMP_TOLERANCE, MANY_CLASSES_TOLERANCE = 1e-5, 1e-4, 1e-3
"""Accuracy that is asked for by default: of smooth labels of two classes; of labels that jump (hard
ones, a threshold), general covariances or few classes; of more than `FEW_CLASSES`.
"""

FEW_CLASSES = 4

ACCEPTED = 10.0
"""A run without a tolerance of its own is accepted up to so many times the default one, with the
accuracy it has.
"""

EXACT_TOLERANCE = 1e-10
"""The default where averages are exact."""

SMALLEST_TOLERANCE = 1e-7
FEWEST_POINTS, FEWEST_OF_MANY, USUAL_POINTS, MOST_POINTS = 2**10, 2**9, 2**16, 2**18
GROWTH = 2
"""Points of the smallest replicate, that of more than `FEW_CLASSES`, of the largest one by default
and on demand, for each class and group, and how replicates grow.
"""

GRID_NUMBERS, GRID_LEVELS, SCORES_LEVELS = 4, (12, 18, 24, 30), (8, 12, 16)
"""Samples of so few Gaussian numbers, without jumps, are averaged on grids of these levels, each
confirmed by the next; the last are those of more than two classes.
"""


COUNTED_POINTS = 2**13
"""Points on which labels are counted where averages are on a grid."""


class Asked(NamedTuple):
    """The accuracy that is wanted, the one that is accepted from the largest replicate, and the
    sizes of replicates.
    """

    tolerance: float
    accepted: float
    sizes: tuple[int, ...]


def default_tolerance(protocol: Protocol) -> float:
    """Return 1e-10 if averages are exact, else what replicates reach in seconds."""
    if linear(protocol):
        return EXACT_TOLERANCE
    if protocol.classes > FEW_CLASSES:
        return MANY_CLASSES_TOLERANCE
    sphere = all(group.law.features == 1 for group in protocol.groups)
    return SMOOTH_TOLERANCE if sphere and not protocol.jumps else JUMP_TOLERANCE


def linear(protocol: Protocol) -> bool:
    """Return whether labels and slopes are linear in the fields, so that averages are exact."""
    labels = [use.labels for fit in protocol.fits for use in fit.uses if use.labels is not None]
    soft = all(type(made.labeler) is SoftLabels and not made.jumps for made in labels)
    return soft and all(type(fit.loss) is Squared for fit in protocol.fits)


def solve_causal(
    problem: Problem,
    recipe: Recipe,
    wanted: float | None,
    on_failure: str,
    exact: Trajectory,
    progress: ProgressOption = None,
) -> Trajectory:
    """Solve a problem of two classes in which samples are reused.

    Arguments:
        wanted: the tolerance; None: the default one, and up to ten times more where replicates of
            usual size do not reach it.
        exact: the run of the steps before samples are reused.
    """
    finish = partial(_trajectory, problem, recipe, exact)
    return _solved(setting_of(problem, recipe, exact), finish, wanted, on_failure, progress)


def solve_protocol(
    protocol: Protocol,
    wanted: float | None,
    on_failure: str,
    progress: ProgressOption = None,
    origin: tuple[Problem | None, Recipe | None] = (None, None),
) -> ClassTrajectory:
    """Solve any protocol; `origin` is the problem and the recipe that it was written for."""
    finish = partial(class_trajectory, origin)
    return _solved(Setting.of(protocol), finish, wanted, on_failure, progress)


def _solved(
    setting: Setting, finish: Finish[Result], wanted: float | None, on_failure: str,
    progress: ProgressOption,
) -> Result:  # fmt: skip
    with (
        Progress(0, "steps of replicates", progress, expected=0.0, often=True) as bar,
        one_thread(),
    ):
        return ReplicateSearch(setting._replace(bar=bar), finish).solve(wanted, on_failure)


def _trajectory(
    problem: Problem, recipe: Recipe, exact: Trajectory, setting: Setting, runs: list[Replicate],
    outcome: Outcome,
) -> Trajectory:  # fmt: skip
    """The mean over the replicates, with the exact values of the steps before reuse."""
    return mean_trajectory(problem, recipe, exact, [found(run, setting) for run in runs], outcome)


class OneReplicate(NamedTuple):
    """A run on one replicate, of no stated accuracy, and the moves of its steps for a run nearby to
    start from.
    """

    trajectory: Trajectory | ClassTrajectory
    moves: dict[int, Array]


def run_one_replicate(
    problem: Problem,
    recipe: Recipe,
    exact: Trajectory | None,
    points: int,
    near: dict[int, Array] | None = None,
) -> OneReplicate:
    """Solve on one replicate that is the same for all recipes: a smooth function of them, which a
    search can follow. `exact` is the run before samples are reused, None for K classes.
    """
    if exact is None:
        return _one_replicate(
            Setting.of(protocol_of(problem, recipe)), partial(class_trajectory, (problem, recipe)),
            points, near,
        )  # fmt: skip
    finish = partial(_trajectory, problem, recipe, exact)
    return _one_replicate(setting_of(problem, recipe, exact), finish, points, near)


def protocol_on_replicate(protocol: Protocol, points: int) -> ClassTrajectory:
    """Solve a protocol on one replicate, of no stated accuracy."""
    found = _one_replicate(Setting.of(protocol), partial(class_trajectory, (None, None)), points)
    assert isinstance(found.trajectory, ClassTrajectory)
    return found.trajectory


def _one_replicate(
    setting: Setting, finish: Finish[Any], points: int, near: dict[int, Array] | None = None
) -> OneReplicate:
    size = 0 if linear(setting.protocol) else points
    with one_thread():
        run = CausalRun(setting, PointSource(size, np.random.SeedSequence(points)), near).solve()
    search: ReplicateSearch[Any] = ReplicateSearch(setting, finish)
    unknown = np.full(setting.protocol.steps + 1, np.nan)
    return OneReplicate(search.result(math.nan, [run], unknown, run.evaluations), run.moves)


def setting_of(problem: Problem, recipe: Recipe, exact: Trajectory) -> Setting:
    """Write out what the replicates of a problem of two classes solve."""
    protocol = protocol_of(problem, recipe)
    return Setting.of(protocol, known_fits(protocol, exact))


def most_numbers(protocol: Protocol) -> int:
    """Return the most Gaussian numbers that the logits of a sample depend on."""
    return protocol.components * max(len(seen_by(uses)) for uses in protocol.uses if uses)


class ReplicateSearch(Generic[Result]):
    """The search for replicates that are large enough.

    Arguments:
        setting: what is solved.
        finish: makes the result of replicates.
    """

    def __init__(self, setting: Setting, finish: Finish[Result]) -> None:
        self.setting, self.finish, self.fits = setting, finish, setting.protocol.steps + 1

    def solve(self, wanted: float | None, on_failure: str) -> Result:
        """Solve to the tolerance, or say why not."""
        protocol = self.setting.protocol
        tolerance = default_tolerance(protocol) if wanted is None else wanted
        if linear(protocol):
            return self._attempt(Asked(tolerance, tolerance, (0,)), on_failure)
        if tolerance < SMALLEST_TOLERANCE:
            accepted = (
                f"must be from {SMALLEST_TOLERANCE:g} to 1e-3 with data reuse or more than two"
                " classes (averages are over quasi-Monte Carlo samples)"
            )
            raise InvalidInput("tolerance", tolerance, accepted)
        if most_numbers(protocol) <= GRID_NUMBERS and not protocol.jumps:
            confirmed = self._on_grids(tolerance)
            if confirmed is not None:
                return confirmed
        most = USUAL_POINTS if wanted is None else MOST_POINTS
        fewest = FEWEST_POINTS if protocol.classes <= FEW_CLASSES else FEWEST_OF_MANY
        count = round(math.log(most / fewest, GROWTH)) + 1
        sizes = tuple(fewest * GROWTH**level for level in range(count))
        enough = ACCEPTED * tolerance if wanted is None else tolerance
        return self._attempt(Asked(tolerance, enough, sizes), on_failure)

    def _on_grids(self, tolerance: float) -> Result | None:
        """The run on a grid that a finer one confirms; None if the levels at hand do not confirm
        each other.
        """
        before: Replicate | None = None
        evaluations = np.zeros(self.fits, dtype=np.int64)
        levels = GRID_LEVELS if self.setting.protocol.classes == 2 else SCORES_LEVELS
        for level in levels:
            source = PointSource(level=level)
            self.setting.expect(source)
            try:
                run = CausalRun(self.setting, source, before.moves if before else None).solve()
            except StageError:
                return None
            evaluations += run.evaluations
            if before is not None and run.collapsed_at == before.collapsed_at:
                accuracy = self._gap(before, run)
                if float(np.nanmax(accuracy)) <= tolerance:
                    return self.result(tolerance, [self._counted(run)], accuracy, evaluations)
            before = run
        return None

    def _counted(self, run: Replicate) -> Replicate:
        """Count selected samples and right labels on points: a grid does not resolve a jump."""
        source = PointSource(COUNTED_POINTS, np.random.SeedSequence(COUNTED_POINTS))
        self.setting.expect(source)
        points = CausalRun(self.setting, source, run.moves).solve()
        measured = np.concatenate([points.measured[:3], run.measured[3:]])
        return run._replace(measured=measured, shares=points.shares)

    def _attempt(self, asked: Asked, on_failure: str) -> Result:
        try:
            return self._enlarge(asked)
        except StageError as error:
            if on_failure == "raise":
                raise
            self.setting = self.setting._replace(last=error.step - 1)
            if isinstance(error, ConvergenceError):
                asked = asked._replace(accepted=math.inf)
            return self._enlarge(asked, error)

    def _enlarge(self, asked: Asked, failure: StageError | None = None) -> Result:
        """Replicates of growing size until their mean is known to the tolerance. A step that few
        points do not determine is tried again on more.
        """
        near: dict[int, Array] | None = None
        evaluations = np.zeros(self.fits, dtype=np.int64)
        worst, at, needed = math.inf, self.setting.begin, 0.0
        for points in asked.sizes:
            last = points == asked.sizes[-1]
            if points < needed and not last:
                continue
            try:
                runs = self._replicates(points, near)
                worst, at, accuracy = self._judge(runs)
                if asked.tolerance < worst <= asked.tolerance / TWICE:
                    runs += self._replicates(points, runs[-1].moves, REPLICATES)
                    worst, at, accuracy = self._judge(runs)
            except StageError:
                if last:
                    raise
                continue
            near = runs[-1].moves
            evaluations += np.sum([run.evaluations for run in runs], axis=0)
            if math.isinf(worst):
                if not (last and _unseen(runs, at)):
                    continue
                runs = [run._replace(collapsed_at=at) for run in runs]
                worst, at, accuracy = self._judge(runs)
            if worst <= (asked.accepted if last else asked.tolerance):
                return self.result(asked.tolerance, runs, accuracy, evaluations, failure)
            needed = size_needed(points, worst, asked.tolerance, self.setting.protocol.jumps)
        samples = f"{REPLICATES} replicates of {2 * asked.sizes[-1]} points per group"
        if math.isinf(worst):
            reason = f"{samples} disagree on whether the labels have collapsed into one class"
        else:
            reason = (
                f"{samples} know this step to {worst:.1e}, not to the tolerance "
                f"{asked.accepted:g}: a larger tolerance is accepted"
            )
        raise ConvergenceError(at, reason, {}, worst)

    def _replicates(
        self, points: int, near: dict[int, Array] | None, begin: int = 0
    ) -> list[Replicate]:
        """Solve on as many replicates as there are for one size, or on as many more."""
        count = REPLICATES if points else 1
        self.setting.expect(PointSource(points), count)
        runs: list[Replicate] = []
        for seed in np.random.SeedSequence(points).spawn(begin + count)[begin:]:
            systems = runs[0].systems if runs else None
            runs.append(CausalRun(self.setting, PointSource(points, seed), near, systems).solve())
            near = runs[-1].moves
        return runs

    def _judge(self, runs: list[Replicate]) -> tuple[float, int, Array]:
        """How well the worst step is known, which one it is, and how well all are; infinity if the
        replicates disagree on a collapse.
        """
        ends = {run.collapsed_at for run in runs}
        if len(ends) > 1:
            at = min(end for end in ends if end is not None)
            return math.inf, at, np.zeros(0)
        accuracy = self._accuracy(runs)
        worst = float(np.nanmax(accuracy, initial=0.0))
        return worst, int(np.nanargmax(np.nan_to_num(accuracy))), accuracy

    def _states(self, run: Replicate) -> tuple[Array, Array]:
        r"""Means, biases, products of the weights, covariances of test logits, overlaps with the
        fit before and $\ln\chi$ of a replicate, each over t up to a collapse, and what they are
        compared with.
        """
        end = self.fits if run.collapsed_at is None else run.collapsed_at
        seen = observe(run, self.setting)
        q = np.trace(seen.square, axis1=1, axis2=2)
        norm = np.sqrt(q) * self.setting.protocol.length
        noise = np.trace(seen.covariance, axis1=2, axis2=3).mean(axis=1)
        before = np.append(np.nan, np.diag(seen.pairs, -1))
        both = np.sqrt(q * np.append(np.nan, q[:-1]))  # of an overlap of two fits, both norms
        parts = [
            (seen.m, norm), (seen.bias, norm + np.abs(seen.bias).max(axis=1)), (seen.square, q),
            (before, both), (seen.covariance, noise), (np.log(seen.chi), np.ones(q.size)),
        ]  # fmt: skip
        flat = [(values.reshape(q.size, -1).T, scale) for values, scale in parts]
        states = np.concatenate([values for values, _ in flat])
        scales = np.concatenate([np.tile(scale, (len(values), 1)) for values, scale in flat])
        return states[:, :end], scales[:, :end]

    def _gap(self, coarse: Replicate, fine: Replicate) -> Array:
        """How far two runs are apart, relative, for each step."""
        (one, _), (other, scale) = self._states(coarse), self._states(fine)
        accuracy = np.zeros(self.fits)
        accuracy[: one.shape[1]] = np.fmax.reduce(np.abs(one - other) / scale, axis=0)
        return accuracy

    def _accuracy(self, runs: list[Replicate]) -> Array:
        """How well the mean over replicates is known, relative, for each step."""
        states, scales = zip(*(self._states(run) for run in runs), strict=True)
        accuracy = np.zeros(self.fits)
        if len(runs) > 1:
            error = accuracy_of_mean(np.array(states), np.mean(scales, axis=0))
            accuracy[: error.shape[1]] = np.fmax.reduce(error, axis=0)
        return accuracy

    def result(
        self, tolerance: float, runs: list[Replicate], accuracy: Array, evaluations: Counts,
        failure: StageError | None = None,
    ) -> Result:  # fmt: skip
        """Return the mean over the replicates."""
        collapsed_at = runs[0].collapsed_at
        end = self.setting.last + 1 if collapsed_at is None else collapsed_at
        outcome = Outcome(
            end, tolerance, accuracy, evaluations, runs[0].points, collapsed_at, failure
        )  # fmt: skip
        return self.finish(self.setting, runs, outcome)


def _unseen(runs: list[Replicate], t: int) -> bool:
    """Whether a class of labels is too rare at step t for the points to see, on average."""
    gone = sum(run.collapsed_at is not None and run.collapsed_at <= t for run in runs)
    return gone >= len(runs) / 2
