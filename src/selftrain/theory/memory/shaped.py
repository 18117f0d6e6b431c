r"""`solve` for clusters with a shape whose rows are used again: step after step, on banks that are
scrambled independently.

The unknowns of a step are $\hat m_t$, $B_t$ and, for each class, $\hat Q_{ts}$, $\hat\chi_{ts}$ (s
= 0..t): a fixed point of "weights from conjugates" (`algebra`) after "conjugates from rows"
(`shaped_rows`), found by `anderson`. All rows have one shape here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError, InvalidInput, StageError
from ...mixture.clusters import Clusters
from ...problem import Problem
from ...recipe import Recipe
from ...runtime.parallel import one_thread
from ...runtime.progress import Progress, ProgressOption
from ..geometry.matrices import MatrixSpace
from ..geometry.space import mean_variance, space_of
from ..stats import STATE, SolverStats
from ..trajectory import Trajectory
from .algebra import FullMatrices, Hats, Operators, PerMode, RowFields, WeightHistory
from .anderson import WINDOW, fixed_point
from .process import Labels
from .scrambles import BANKS, accuracy_of_mean, size_needed
from .shaped_labels import label_quality, one_class, training_loss
from .shaped_result import ShapedMemory
from .shaped_rows import ClassRows, class_rows
from .solve import jumps

FEWEST_POINTS, MOST_POINTS = 2**10, 2**16
"""Rows of the smallest and the largest bank, for each class and group."""

DEFAULT_TOLERANCE, ACCEPTED = 1e-4, 1e-3
"""Accuracy that is asked for by default, and up to which the largest bank is then accepted."""

MOST_EVALUATIONS = 300
NARROWER = (2, 0)
"""Windows of the acceleration that are tried where the usual one leads astray; 0 is plain damped
substitution.
"""

SETTLED = 1e-8
"""A fixed point that its map moves by less than this is far below the error of any bank."""


class BankRun(NamedTuple):
    """One bank's answer: weights, bias, conjugates and fields of its steps, what was measured,
    where it collapsed.
    """

    history: WeightHistory
    bias: list[float]
    hats: list[Hats]
    fields: list[RowFields]
    measured: Array
    collapsed_at: int | None
    evaluations: Array


def solve_shaped_memory(
    problem: Problem,
    recipe: Recipe,
    wanted: float | None,
    on_failure: str,
    progress: ProgressOption = None,
) -> Trajectory:
    """The run of a problem with clusters in which rows are used again."""
    _one_shape(problem)
    tolerance = DEFAULT_TOLERANCE if wanted is None else wanted
    last, failure = problem.steps, None
    with Progress(0, "steps of banks", progress, expected=0.0, often=True) as bar, one_thread():
        try:
            banks, accuracy, points = _enlarge(
                problem, recipe, tolerance, wanted is None, last, bar
            )
        except StageError as error:
            if on_failure == "raise":
                raise
            last, failure = error.step - 1, error
            banks, accuracy, points = _enlarge(problem, recipe, math.inf, True, last, bar)
    return _trajectory(problem, recipe, tolerance, banks, accuracy, points, failure)


def run_one_shaped_bank(problem: Problem, recipe: Recipe, points: int) -> Trajectory:
    """The run on one bank that is the same for all recipes, of no stated accuracy."""
    _one_shape(problem)
    with one_thread():
        bank = run_bank(problem, recipe, points, np.random.SeedSequence(points), problem.steps)
    unknown = np.full(problem.steps + 1, np.nan)
    return _trajectory(problem, recipe, math.nan, [bank], unknown, points, None)


def _enlarge(
    problem: Problem, recipe: Recipe, tolerance: float, default: bool, last: int, bar: Progress
) -> tuple[list[BankRun], Array, int]:
    """Banks of growing size until their mean is known to the tolerance. A step that the rows of a
    small bank do not determine is tried again on a larger one.
    """
    points, worst, at = FEWEST_POINTS, math.inf, 0
    while True:
        seeds = np.random.SeedSequence(points).spawn(BANKS)
        bar.extend(BANKS * (last + 1), float(BANKS * (last + 1) * points))
        try:
            banks = [run_bank(problem, recipe, points, seed, last, bar=bar) for seed in seeds]
        except StageError:
            if points == MOST_POINTS:
                raise
            banks, worst = [], math.inf
        if len({bank.collapsed_at for bank in banks}) == 1:
            accuracy = _accuracy(problem, banks)
            worst, at = float(np.nanmax(accuracy)), int(np.nanargmax(accuracy))
            enough = ACCEPTED if default and points == MOST_POINTS else tolerance
            if worst <= max(enough, tolerance):
                return banks, accuracy, points
        if points == MOST_POINTS:
            break
        needed = 4.0 * points
        if math.isfinite(worst):
            needed = size_needed(points, worst, tolerance, jumps(problem, recipe))
        points = min(points * 2 ** max(1, math.ceil(math.log2(needed / points))), MOST_POINTS)
    rows = f"{BANKS} banks of {2 * MOST_POINTS} rows a group"
    reason = (
        f"{rows} know this step to {worst:.1e}, not to {tolerance:g}: a larger tolerance is"
        " accepted"
    )
    if math.isinf(worst):
        reason = f"{rows} disagree on whether the labels have collapsed into one class"
    raise ConvergenceError(at, reason, {}, worst)


def run_bank(
    problem: Problem,
    recipe: Recipe,
    points: int,
    seed: np.random.SeedSequence,
    last: int,
    window: int = WINDOW,
    bar: Progress | None = None,
) -> BankRun:
    """All steps on one bank; `window` is that of the acceleration (0: none)."""
    groups, loss, steps = problem.row_groups, problem.loss_function, problem.steps
    assert problem.clusters is not None
    bank = BankRun(
        WeightHistory(operators(problem)),
        [],
        [],
        [],
        np.full((4, steps + 1), np.nan),
        None,
        np.zeros(steps + 1),
    )
    values = recipe.at_steps(steps)
    seeds = dict(zip((group.name for group in groups), seed.spawn(len(groups)), strict=True))
    present: dict[str, tuple[ClassRows, ClassRows]] = {}
    for t in range(last + 1):
        for group in groups:
            if group.steps and group.steps[0] == t:
                present[group.name] = class_rows(group, loss, points, seeds[group.name])
                if t > 0:
                    for rows in present[group.name]:
                        rows.meet(bank.fields[t - 1], bank.bias[t - 1])
        labels, ridge = None, recipe.lambda_l
        if t > 0:
            edge = float(values.threshold[t - 1]) * problem.clusters.length * _norm(bank, t - 1)
            labels = Labels(recipe.label_function, edge, float(values.sharpness[t - 1]))
            ridge = float(values.lambda_u[t - 1])
        everyone = [rows for pair in present.values() for rows in pair]
        for rows in everyone:
            rows.set_targets(t, labels)
        used = [rows for rows in everyone if rows.group.weights[t] > 0]
        train_bias = t == 0 or not recipe.fix_bias
        if t > 0:
            bank.measured[:3, t] = label_quality(used)
            if one_class(t, used, train_bias):
                return bank._replace(collapsed_at=t)
        bank.evaluations[t] = _solve_step(bank, used, ridge, train_bias, window)
        for rows in everyone:
            rows.finish(bank.fields[t], bank.bias[t], t)
        bank.measured[3, t] = training_loss(used, t)
        present = {name: pair for name, pair in present.items() if pair[0].group.steps[-1] > t}
        if bar is not None:
            bar.advance(expected=float(points))
    return bank


def _solve_step(
    bank: BankRun, used: list[ClassRows], ridge: float, train_bias: bool, window: int
) -> int:
    """Find the next step and enter it; returns the evaluations it took."""
    t = len(bank.bias)

    def unpack(y: Array) -> tuple[float, Hats]:
        q, chi = y[2:].reshape(2, 2, t + 1)
        return float(y[1]), Hats(float(y[0]), q, chi)

    def update(y: Array) -> Array:
        bias, hats = unpack(y)
        fields = bank.history.fields(bank.history.next(ridge, hats))
        if not np.all(fields.overlaps[:, -1] > 0):
            return np.full(y.size, np.nan)
        new = np.zeros((2, 2, t + 1))
        signal = slope = stiffness = 0.0
        for rows in used:
            found = rows.moments(fields, bias, t)
            new[0, rows.side] += found.q
            new[1, rows.side] += found.chi
            signal -= rows.sign * found.slope
            slope += found.slope
            stiffness += found.stiffness
        moved = bias - slope / stiffness if train_bias else bias
        return np.concatenate([[signal, moved], new.ravel()])

    def scale(y: Array) -> Array:
        q, chi = np.abs(y[2:].reshape(2, 2, t + 1)).max(axis=(1, 2))
        sizes = np.repeat([q, chi], 2 * (t + 1))
        return np.concatenate([[np.sqrt(chi) + abs(y[0]), 1.0 + abs(y[1])], sizes])

    start, evaluations = _start(bank, used, t), 0
    for width in (window, *(narrow for narrow in NARROWER if narrow < window)):
        found = fixed_point(update, scale, start, SETTLED, MOST_EVALUATIONS, width)
        evaluations += found.evaluations
        if found.residual <= SETTLED:
            break
    else:
        reason = "the equations of the step did not settle on the bank of rows"
        raise ConvergenceError(t, reason, {}, found.residual)
    bias, hats = unpack(found.x)
    row = bank.history.next(ridge, hats)
    bank.fields.append(bank.history.fields(row))
    bank.history.rows.append(row)
    bank.bias.append(bias)
    bank.hats.append(hats)
    return evaluations


def _start(bank: BankRun, used: list[ClassRows], t: int) -> Array:
    """Conjugates to begin with: those of slopes 1/4 at first, then a step that changes little."""
    q, chi = np.zeros((2, t + 1)), np.zeros((2, t + 1))
    for rows in used:
        q[rows.side, t] += 0.1 * rows.share
        chi[rows.side, t] += 0.1 * rows.share
    m, bias = 0.3 * sum(rows.share for rows in used), 0.0
    if t > 0:
        before = bank.hats[-1]
        q[:, t], bias = before.q[:, t - 1], bank.bias[-1]
        fresh = sum(rows.share for rows in used if not rows.group.labeled)
        q[:, t - 1] = -0.9 * q[:, t] * fresh / sum(rows.share for rows in used)
        chi[:, t], m = 0.05 * before.chi[:, t - 1], 0.2 * before.m
    return np.concatenate([[m, bias], q.ravel(), chi.ravel()])


def operators(problem: Problem) -> Operators:
    """The coordinates of the weights: modes if all covariances are diagonal in them, else
    matrices.
    """
    shape = problem.clusters
    assert shape is not None
    space = space_of([shape])
    if isinstance(space, MatrixSpace):
        full = [
            matrix if matrix.ndim == 2 else np.diag(np.broadcast_to(matrix, shape.features))
            for matrix in shape.covariances
        ]
        return FullMatrices(shape.mean, (full[0], full[-1]))
    noise = space.noise(shape)
    return PerMode(
        noise.mean, (noise.variances[0], noise.variances[-1]), noise.copies, noise.features
    )


def _one_shape(problem: Problem) -> None:
    shapes: list[Clusters] = [*problem.batch_clusters, problem.test_clusters]
    if any(shape != problem.clusters for shape in shapes):
        accepted = "where rows are used again one shape for all rows is accepted"
        raise InvalidInput("clusters_u", problem.clusters_u, accepted)


def _norm(bank: BankRun, t: int) -> float:
    """$|\\beta|$ of step t."""
    row, do = bank.history.rows[t], bank.history.operators
    one = np.ones_like(do.mean) if row.covariances[t].ndim == 1 else np.eye(do.mean.size)
    return math.sqrt(do.between(one, row.mean, row.mean) + do.trace(one, row.covariances[t]))


def _states(problem: Problem, bank: BankRun) -> Array:
    """m, q of both classes, B and chi of a bank over its steps."""
    rows = []
    for t, (fields, bias) in enumerate(zip(bank.fields, bank.bias, strict=True)):
        rows.append([fields.m, *fields.overlaps[:, t], bias, math.log(fields.kicks[0, t])])
    return np.array(rows)


def _accuracy(problem: Problem, banks: list[BankRun]) -> Array:
    """How well the mean over banks is known, relative, for each step."""
    states = np.array([_states(problem, bank) for bank in banks])
    mean = states.mean(axis=0)
    norm = np.sqrt(mean[:, 1:3].max(axis=1))
    scale = np.column_stack(
        [norm, mean[:, 1], mean[:, 2], norm + np.abs(mean[:, 3]), np.ones(len(norm))]
    )
    error = accuracy_of_mean(states, scale)
    accuracy = np.full(problem.steps + 1, np.nan)
    accuracy[: len(error)] = error.max(axis=1)
    return accuracy


def _trajectory(
    problem: Problem,
    recipe: Recipe,
    tolerance: float,
    banks: list[BankRun],
    accuracy: Array,
    points: int,
    failure: StageError | None,
) -> Trajectory:
    """The mean over the banks, as a trajectory on clusters."""
    shape, steps = problem.test_clusters, problem.steps
    space = space_of([shape])
    count = len(banks[0].bias)
    columns = {name: np.full(steps + 1, np.nan) for name in STATE}
    variances = np.full((steps + 1, 2), np.nan)
    off_best = np.full(steps + 1, np.nan)
    scale = np.array([mean_variance(s, shape.features) for s in shape.covariances])
    scale = np.array([scale[0], scale[-1]])
    features = banks[0].history.operators.features
    history: list[Any] = []
    overlaps = np.full((steps + 1, steps + 1), np.nan)
    response = np.tril(np.full((steps + 1, steps + 1), np.nan))
    logit_overlaps, kicks = np.full((2, steps + 1, 2, steps + 1), np.nan)
    for t in range(count):
        mean = np.mean([bank.history.rows[t].mean for bank in banks], axis=0)
        across = [
            np.mean([bank.history.covariance(t, s) for bank in banks], axis=0)
            for s in range(t + 1)
        ]  # fmt: skip
        made: Any = space.law(mean, across[t])
        history.append(made)
        do = banks[0].history.operators
        one = np.ones_like(mean) if across[t].ndim == 1 else np.eye(mean.size)
        for s in range(t + 1):
            overlaps[t, s] = overlaps[s, t] = do.between(one, mean, history[s].mean) + do.trace(
                one, across[s]
            )
            gains = [do.trace(one, bank.history.rows[t].responses[s]) for bank in banks]
            response[t, s] = float(np.mean(gains)) / features
        m, *_ = space.projections(made, shape)
        _, v, off_best[t : t + 1], variances[t : t + 1] = space.observed(
            mean[None], across[t][None], shape
        )
        logit_overlaps[t, :, : t + 1] = np.mean([b.fields[t].overlaps for b in banks], axis=0)
        kicks[t, :, : t + 1] = np.mean([bank.fields[t].kicks for bank in banks], axis=0)
        hats = [bank.hats[t] for bank in banks]
        columns["m"][t], columns["v"][t] = m, v[0]
        columns["bias"][t] = np.mean([bank.bias[t] for bank in banks])
        columns["chi"][t] = response[t, t]
        columns["q_hat"][t] = np.mean([scale @ hat.q[:, t] for hat in hats])
        columns["chi_hat"][t] = np.mean([scale @ hat.chi[:, t] for hat in hats])
        columns["m_hat"][t] = np.mean([hat.m for hat in hats])
        if t > 0:
            columns["overlap"][t] = overlaps[t, t - 1]
            columns["r_hat"][t] = -np.mean([scale @ hat.q[:, t - 1] for hat in hats])
    evaluations = np.sum([bank.evaluations for bank in banks], axis=0)
    nodes = np.where(np.arange(steps + 1) < count, 2.0 * points, 0.0)
    starts = (*["no update"] * count, *[""] * (steps + 1 - count))
    means = np.full((steps + 1, *history[0].mean.shape), np.nan)
    spreads = np.full((steps + 1, *history[0].variance.shape), np.nan)
    for t, law in enumerate(history):
        means[t], spreads[t] = law
    measured = np.vstack([np.mean([bank.measured for bank in banks], axis=0), np.zeros(steps + 1)])
    record = ShapedMemory(measured, overlaps, response, logit_overlaps, kicks)
    quantities: dict[str, Any] = columns
    return Trajectory(
        problem, recipe, **quantities,
        stats=SolverStats(tolerance, evaluations, nodes, accuracy, starts),
        collapsed_at=banks[0].collapsed_at, failure=failure, reuse=record,
        logit_variances=variances, off_best=off_best, weight_means=means, weight_spreads=spreads,
        space=space,
    )  # fmt: skip
