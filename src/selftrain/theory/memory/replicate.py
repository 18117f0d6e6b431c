r"""All steps on one bank: the causal loop over steps, and what is measured of the rows on the
way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...problem import Problem
from ...recipe import Recipe
from ...rows import RowGroup
from ...runtime.progress import Progress
from ..ending import Ending
from ..tolerances import COLLAPSED_MASS, ONLY_BIAS
from ..trajectory import Trajectory
from .bank import Draw, grid, scrambled
from .linear import Linear
from .process import Labels, Once, Path, Returning
from .step import FAINT, Group, MemoryStep, Solved, no_update_start, solve_stage
from .sums import Layout

Counts = NDArray[np.int64]

MEASURED = (
    "fraction_selected",
    "pseudo_label_accuracy",
    "selected_label_accuracy",
    "train_loss",
    "kept_loss",
)


class Replicate(NamedTuple):
    """One bank's answer.

    Attributes:
        path: the parameters of all solved steps.
        moves: how far the solution of each step is from its plain start, for another bank to start
            from.
        measured: rows of `MEASURED` over t = 0..T.
        m_hat: $\\hat m_t$.
        collapsed_at: the first step without two classes of labels, or None.
        evaluations: evaluations of the equations of each step.
        points: rows of the largest bank, for each class.
    """

    path: Path
    moves: dict[int, Array]
    measured: Array
    m_hat: Array
    collapsed_at: int | None
    evaluations: Counts
    points: int


class ReturningRows(NamedTuple):
    """A problem with rows that return, and the part of it that is known exactly.

    Attributes:
        exact: the run of the steps before any row is used again, by quadrature.
        begin: the first step that uses rows which return; banks start there.
        last: the last step to solve.
        bar: shows every step of every bank; a step counts as long as the bank has rows.
    """

    problem: Problem
    recipe: Recipe
    exact: Trajectory
    begin: int
    last: int
    bar: Progress | None = None

    def expect(self, source: BankSource, banks: int = 1) -> None:
        """Announce the steps of some banks."""
        if self.bar is not None:
            steps = banks * (self.last + 1 - self.begin)
            self.bar.extend(steps, steps * source.size)

    def rows(self, group: RowGroup, path: Path, draw: Draw | None) -> Group:
        """A group of rows at its first use."""
        loss = self.problem.loss_function
        if draw is None:
            return Linear(group, loss, path)
        kind = Returning if len(group.steps) > 1 else Once
        return kind(group, loss, path, draw)


class BankSource(NamedTuple):
    """Where the banks of a run come from: scrambled points with a seed, a grid of a level, or
    (neither) exact moments.
    """

    points: int = 0
    seed: np.random.SeedSequence | None = None
    level: int = 0

    @property
    def size(self) -> float:
        """About how many rows, as a measure of the work."""
        return float(max(self.points, self.level**3, 1))

    def draws(self, groups: tuple[RowGroup, ...]) -> dict[str, Draw | None]:
        """The bank of each group."""
        names = [group.name for group in groups]
        if self.level:
            return dict.fromkeys(names, grid(self.level))
        if self.points == 0 or self.seed is None:
            return dict.fromkeys(names)
        seeds = self.seed.spawn(len(names))
        return {name: scrambled(self.points, own) for name, own in zip(names, seeds, strict=True)}


def run_bank(
    setting: ReturningRows,
    source: BankSource,
    near: dict[int, Array] | None = None,
) -> Replicate:
    """Solve all steps on one bank.

    Arguments:
        source: of the rows; exact moments for a linear problem.
        near: the moves of a run nearby (another bank or recipe), to start from.
    """
    problem, recipe = setting.problem, setting.recipe
    steps, groups = problem.steps, problem.row_groups
    path = _known_part(setting)
    draws, points = source.draws(groups), 0
    present: dict[str, Group] = {}
    lost = np.eye(len(path.live))
    moves: dict[int, Array] = {}
    measured, m_hat = np.full((len(MEASURED), steps + 1), np.nan), np.full(steps + 1, np.nan)
    evaluations = np.zeros(steps + 1, dtype=np.int64)
    collapsed_at: int | None = None
    for t in range(setting.begin, setting.last + 1):
        if t > 0 and _faded(path, t, recipe.fix_bias):
            collapsed_at = t
            break
        labels = _labels(recipe, steps, t, path)
        for group in groups:
            if group.steps and group.steps[0] == t:
                rows = present[group.name] = setting.rows(group, path, draws[group.name])
                points = max(points, 0 if isinstance(rows, Linear) else rows.signs.size // 2)
        for rows in present.values():
            rows.set_targets(t, labels)
        used = [rows for rows in present.values() if rows.group.weights[t] > 0]
        if t > 0:
            measured[:3, t] = _quality(used)
        train_bias = t == 0 or not recipe.fix_bias
        if t > 0 and _one_class(t, used, train_bias, path):
            collapsed_at = t
            break
        layout = Layout.of(len(path.live))
        for rows in present.values():
            rows.begin(t, layout)
        resting = [rows for rows in present.values() if rows.group.weights[t] == 0]
        idle = sum((rows.gram(len(path.live)) for rows in resting), lost)
        stage = MemoryStep(t, used, _ridge(recipe, steps, t), layout, train_bias, idle)
        plain = _plain_start(stage, setting, path)
        found = solve_stage(stage, [*_shifted(stage, plain, near), plain])
        moves[t], evaluations[t] = _move(plain, found.z, layout), found.evaluations
        lost = _finish(stage, found, path, list(present.values()), lost)
        for rows in present.values():
            if rows.group.steps[-1] == t:
                lost = lost + rows.gram(len(path.live))
        m_hat[t] = sum(rows.signal for rows in used)
        measured[3:, t] = _losses(used)
        present = {name: rows for name, rows in present.items() if rows.group.steps[-1] > t}
        if setting.bar is not None:
            setting.bar.advance(expected=source.size)
    return Replicate(path, moves, measured, m_hat, collapsed_at, evaluations, points)


def _ridge(recipe: Recipe, steps: int, t: int) -> float:
    return recipe.lambda_l if t == 0 else float(recipe.at_steps(steps).lambda_u[t - 1])


def _labels(recipe: Recipe, steps: int, t: int, path: Path) -> Labels | None:
    if t == 0:
        return None
    values = recipe.at_steps(steps)
    edge = float(values.threshold[t - 1]) * math.sqrt(path.q(t - 1))
    return Labels(recipe.label_function, edge, float(values.sharpness[t - 1]))


def _known_part(setting: ReturningRows) -> Path:
    """The path with the steps before `begin`, from the exact run."""
    exact, begin = setting.exact, setting.begin
    first = np.array([exact.m[0], math.sqrt(exact.v[0])])
    path = Path.empty(setting.problem.steps, first)
    if begin:
        path.bias[:begin], path.m[:begin] = exact.bias[:begin], exact.m[:begin]
        path.kappa[:begin] = exact.chi[:begin]
        across = exact.weights.covariance[:begin, :begin]
        path.loadings[:begin, :begin] = np.linalg.cholesky(across)
        path.slopes[:begin, :begin] = np.diag(np.sqrt(exact.chi_hat[:begin]))
        path.live.extend(range(begin))
    return path


def _plain_start(stage: MemoryStep, setting: ReturningRows, path: Path) -> Array:
    """Where Newton's method begins without a run nearby: the exact step 0, else the model of the
    step before.
    """
    exact = setting.exact
    if stage.t == 0:
        start = np.array([exact.bias[0], exact.m[0], exact.v[0], math.log(exact.chi[0])])
    else:
        start = no_update_start(stage, path)
    if not stage.train_bias:
        start[0] = exact.bias[0]
    return start


def _move(plain: Array, z: Array, layout: Layout) -> Array:
    """From the plain start to the solution; for the square of the new direction, the logarithm of
    the ratio.
    """
    move = z - plain
    move[layout.new] = math.log(z[layout.new] / plain[layout.new])
    return np.asarray(move)


def _shifted(stage: MemoryStep, plain: Array, near: dict[int, Array] | None) -> list[Array]:
    """The plain start, moved as in a run nearby if that has the same unknowns.

    The moves of late steps are small, and banks agree on them far better than on the coordinates
    themselves, whose directions are mostly noise of the bank by then.
    """
    if near is None or stage.t not in near or near[stage.t].size != plain.size:
        return []
    move, new = near[stage.t], stage.layout.new
    start = plain + move
    start[new] = plain[new] * math.exp(move[new])
    if not stage.train_bias:
        start[0] = plain[0]
    return [np.asarray(start)]


def _finish(
    stage: MemoryStep, found: Solved, path: Path, present: list[Group], lost: Array
) -> Array:
    r"""Enter the solution into the path and let all rows take it, used or not.

    Returns:
        $\langle\Delta\varphi_j\varphi_k\rangle$ over rows that no step uses any more (`lost`), with
        the new direction.
    """
    t, z, layout = stage.t, found.z, stage.layout
    path.bias[t], path.m[t], path.kappa[t] = z[0], z[1], math.exp(z[-1])
    path.loadings[t, path.live] = z[layout.along]
    path.slopes[t, path.live] = z[layout.past] / path.kappa[t]
    square = float(z[layout.new])
    path.loadings[t, t] = math.sqrt(square)
    path.slopes[t, t] = path.loadings[t, t] / path.kappa[t]
    if not (math.isfinite(path.q(t)) and path.q(t) > 0):
        ending = Ending.FADED if path.q(t) == 0 else Ending.OVERFLOW
        raise ending.error(t, {"m": float(z[1]), "bias": float(z[0])})
    lives = square > FAINT * path.q(t)
    for rows in present:
        rows.finish(z, layout, lives)
    if not lives:
        return lost
    # The new direction is small against what it is made of: once more orthogonal to the earlier
    # ones.
    share = path.slopes[t, path.live] / path.slopes[t, t]
    overlap = sum(
        (rows.cross(layout) for rows in present), np.append(-lost @ share, share @ lost @ share)
    )
    norm = math.sqrt(float(overlap[-1] - overlap[:-1] @ overlap[:-1]))
    for rows in present:
        rows.settle(layout, overlap[:-1], norm)
    path.live.append(t)
    share = (share + overlap[:-1]) / norm
    row = -lost @ share
    return np.block([[lost, row[:, None]], [row[None, :], np.array([[-row @ share]])]])


def _faded(path: Path, t: int, fix_bias: bool) -> bool:
    """Whether nothing but the bias is left of the labelling model."""
    return not fix_bias and math.sqrt(path.q(t - 1)) < ONLY_BIAS * abs(path.bias[t - 1])


def _quality(used: list[Group]) -> tuple[float, float, float]:
    """Share of the unlabelled rows that are selected, accuracy of all labels, and of the selected
    ones.
    """
    rows = [group.quality() for group in used if not group.group.labeled]
    total, selected, right, both = (sum(column) for column in zip(*rows, strict=True))
    return selected / total, right / total, both / selected if selected else math.nan


def _one_class(t: int, used: list[Group], train_bias: bool, path: Path) -> bool:
    """Whether the labels of a step have collapsed; a step without any row is an error."""
    if any(rows.group.labeled for rows in used):
        return False
    masses = [rows.label_mass() for rows in used]
    total, down, up = (sum(column) for column in zip(*masses, strict=True))
    if total == 0:
        state = {"q": path.q(t - 1), "bias": float(path.bias[t - 1])}
        raise Ending.EMPTY.error(t, state)
    return train_bias and min(down, up) < COLLAPSED_MASS * total


def _losses(used: list[Group]) -> tuple[float, float]:
    """Mean loss of the selected unlabelled rows (of the labelled ones in step 0), and of kept
    labelled rows.
    """
    means = []
    for labeled in (False, True):
        parts = [group.loss_sums() for group in used if group.group.labeled == labeled]
        count, loss = sum(part[0] for part in parts), sum(part[1] for part in parts)
        means.append(loss / count if count else math.nan)
    plain, kept = means
    return (kept, math.nan) if all(rows.group.labeled for rows in used) else (plain, kept)
