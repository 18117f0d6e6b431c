r"""`solve_memory`: all steps on several banks that are scrambled independently, enlarged until they
agree.

The result is the mean over the banks, its accuracy what Student's law gives for that mean
(`scrambles`), step by step, in the norm of the weights. A linear problem has exact averages and one
"bank" of no rows. Where few Gaussian numbers make a row and nothing jumps, grids take the place of
banks, each confirmed by a finer one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...errors import ConvergenceError, InvalidInput, StageError
from ...labelers import SoftLabels
from ...losses import Squared
from ...problem import Problem
from ...recipe import Recipe
from ...runtime.parallel import one_thread
from ...runtime.progress import Progress, ProgressOption
from ..stats import STATE, SolverStats
from ..trajectory import Trajectory
from .process import Path
from .replicate import MEASURED, BankSource, Counts, Replicate, ReturningRows, run_bank
from .result import Memory
from .scrambles import BANKS, accuracy_of_mean, size_needed

SMOOTH_TOLERANCE, JUMP_TOLERANCE = 1e-5, 1e-4
"""Accuracy that is asked for by default: of smooth labels, and of labels that jump (hard ones, a
threshold).
"""

ACCEPTED = 10.0
"""A run without a tolerance of its own is accepted up to so many times the default one, with the
accuracy it has.
"""

SMALLEST_TOLERANCE = 1e-7
FEWEST_POINTS, USUAL_POINTS, MOST_POINTS = 2**10, 2**16, 2**18
GROWTH = 2
"""Rows of the smallest bank, of the largest one by default and on demand, for each class and group,
and how banks grow.
"""

GRID_FIELDS, GRID_LEVELS = 4, (12, 18, 24, 30)
"""Rows of so few numbers, without jumps, are averaged on grids of these levels, each confirmed by
the next.
"""


class Asked(NamedTuple):
    """The accuracy that is wanted, the one that is accepted from the largest bank, the sizes of
    banks, and whether labels jump.
    """

    tolerance: float
    accepted: float
    sizes: tuple[int, ...]
    jumps: bool = False


def default_tolerance(problem: Problem, recipe: Recipe) -> float:
    """1e-10 if the problem is linear, else what banks reach in seconds."""
    if linear(problem, recipe):
        return 1e-10
    return JUMP_TOLERANCE if jumps(problem, recipe) else SMOOTH_TOLERANCE


def linear(problem: Problem, recipe: Recipe) -> bool:
    """Whether labels and slopes are linear in the fields, so that averages are exact."""
    values = recipe.at_steps(problem.steps)
    soft = type(recipe.label_function) is SoftLabels and bool(np.all(np.isfinite(values.sharpness)))
    plain = type(problem.loss_function) is Squared and not np.any(values.threshold > 0)
    return soft and plain


def solve_memory(
    problem: Problem,
    recipe: Recipe,
    wanted: float | None,
    on_failure: str,
    exact: Trajectory,
    progress: ProgressOption = None,
) -> Trajectory:
    """The run of a problem in which rows are used again.

    Arguments:
        wanted: the tolerance; None: the default one, and up to ten times more where banks of usual
            size do not reach it.
        exact: the run of the steps before rows are used again.
    """
    with Progress(0, "steps of banks", progress, expected=0.0, often=True) as bar, one_thread():
        return _solve(_setting(problem, recipe, exact)._replace(bar=bar), wanted, on_failure)


def _solve(setting: ReturningRows, wanted: float | None, on_failure: str) -> Trajectory:
    problem, recipe = setting.problem, setting.recipe
    tolerance = default_tolerance(problem, recipe) if wanted is None else wanted
    if linear(problem, recipe):
        return _attempt(setting, Asked(tolerance, tolerance, (0,)), on_failure)
    if tolerance < SMALLEST_TOLERANCE:
        accepted = (
            f"with rows used again a number from {SMALLEST_TOLERANCE:g} to 1e-3 is accepted "
            "(averages are over banks of rows)"
        )
        raise InvalidInput("tolerance", tolerance, accepted)
    most = USUAL_POINTS if wanted is None else MOST_POINTS
    count = round(math.log(most / FEWEST_POINTS, GROWTH)) + 1
    sizes = tuple(FEWEST_POINTS * GROWTH**level for level in range(count))
    enough = ACCEPTED * tolerance if wanted is None else tolerance
    jump = jumps(problem, recipe)
    if most_fields(problem) <= GRID_FIELDS and not jump:
        found = _on_grids(setting, tolerance)
        if found is not None:
            return found
    return _attempt(setting, Asked(tolerance, enough, sizes, jump), on_failure)


class OneBank(NamedTuple):
    """A run on one bank, of no stated accuracy, and the moves of its steps for a run nearby to
    start from.
    """

    trajectory: Trajectory
    moves: dict[int, Array]


def run_one_bank(
    problem: Problem,
    recipe: Recipe,
    exact: Trajectory,
    points: int,
    near: dict[int, Array] | None = None,
) -> OneBank:
    """The run on one bank that is the same for all recipes: a smooth function of them, which a
    search can follow.
    """
    setting = _setting(problem, recipe, exact)
    size = 0 if linear(problem, recipe) else points
    with one_thread():
        run = run_bank(setting, BankSource(size, np.random.SeedSequence(points)), near)
    unknown = np.full(problem.steps + 1, np.nan)
    trajectory = _trajectory(setting, math.nan, [run], unknown, run.evaluations, None)
    return OneBank(trajectory, run.moves)


def most_fields(problem: Problem) -> int:
    """The most Gaussian numbers that the logits of a row depend on."""
    returning = [group for group in problem.row_groups if len(group.steps) > 1]
    return max(2 + group.steps[-1] for group in returning)


def _on_grids(setting: ReturningRows, tolerance: float) -> Trajectory | None:
    """The run on a grid that a finer one confirms; None if the levels at hand do not confirm each
    other.
    """
    before: Replicate | None = None
    evaluations = np.zeros(setting.problem.steps + 1, dtype=np.int64)
    for level in GRID_LEVELS:
        source = BankSource(level=level)
        setting.expect(source)
        try:
            run = run_bank(setting, source, before.moves if before else None)
        except StageError:
            return None
        evaluations += run.evaluations
        if before is not None and run.collapsed_at == before.collapsed_at:
            accuracy = _gap(before, run)
            if float(np.nanmax(accuracy)) <= tolerance:
                return _trajectory(setting, tolerance, [run], accuracy, evaluations, None)
        before = run
    return None


def _gap(coarse: Replicate, fine: Replicate) -> Array:
    """How far two runs are apart, relative, for each step."""
    steps = fine.path.m.size - 1
    one, other = _states(coarse, steps), _states(fine, steps)
    accuracy = np.zeros(steps + 1)
    accuracy[: one.shape[1]] = np.fmax.reduce(np.abs(one - other) / _scale(other), axis=0)
    return accuracy


def _scale(states: Array) -> Array:
    """What the states of `_states` are compared with."""
    norm = np.sqrt(states[1])
    return np.array([norm, states[1], norm + np.abs(states[2]), np.ones(norm.size), states[1]])


def _setting(problem: Problem, recipe: Recipe, exact: Trajectory) -> ReturningRows:
    begin = min(group.steps[0] for group in problem.row_groups if len(group.steps) > 1)
    return ReturningRows(problem, recipe, exact, begin, problem.steps)


def before_return(problem: Problem, recipe: Recipe) -> tuple[Problem, Recipe]:
    """The problem and recipe of the steps before any row is used again; they need no memory."""
    first = min(group.steps[1] for group in problem.row_groups if len(group.steps) > 1)
    alpha, rho, delta = (tuple(column[: first - 1].tolist()) for column in problem.unlabeled)
    values = recipe.at_steps(problem.steps)
    ridge, threshold, sharpness = (tuple(column[: first - 1].tolist()) for column in values)
    alone = problem.labeled_alone()
    words = {"lambda_u": ridge, "threshold": threshold, "sharpness": sharpness, "annealing": 0.0}
    if first == 1:
        return alone, Recipe(lambda_l=recipe.lambda_l, labeler=recipe.labeler)
    return (
        problem.replace(
            steps=first - 1,
            alpha_u=alpha,
            rho_u=rho,
            delta_u=delta,
            test=tuple(problem.test_mixture),
            batches="fresh",
            keep_labeled=0.0,
        ),
        recipe.replace(**words),
    )


def ended_early(problem: Problem, recipe: Recipe, first: Trajectory) -> Trajectory:
    """A run that collapsed or failed before any row was used again."""
    missing = problem.steps - first.problem.steps
    columns = {name: np.append(getattr(first, name), np.full(missing, np.nan)) for name in STATE}
    stats = first.stats
    longer = SolverStats(
        stats.tolerance,
        np.append(stats.evaluations, np.zeros(missing, dtype=np.int64)),
        np.append(stats.nodes, np.zeros(missing, dtype=np.int64)),
        np.append(stats.accuracy, np.full(missing, np.nan)),
        (*stats.start, *[""] * missing),
    )
    ends = {"collapsed_at": first.collapsed_at, "failure": first.failure}
    return Trajectory(problem, recipe, **columns, stats=longer, **ends)  # type: ignore[arg-type]


def _attempt(setting: ReturningRows, asked: Asked, on_failure: str) -> Trajectory:
    try:
        return _enlarge(setting, asked)
    except StageError as error:
        if on_failure == "raise":
            raise
        shorter = setting._replace(last=error.step - 1)
        if isinstance(error, ConvergenceError):
            asked = asked._replace(accepted=math.inf)
        return _enlarge(shorter, asked, error)


def _enlarge(setting: ReturningRows, asked: Asked, failure: StageError | None = None) -> Trajectory:
    """Banks of growing size until their mean is known to the tolerance."""
    sizes = asked.sizes
    near: dict[int, Array] | None = None
    evaluations = np.zeros(setting.problem.steps + 1, dtype=np.int64)
    worst, at, needed = math.inf, setting.begin, 0.0
    for points in sizes:
        if points < needed and points != sizes[-1]:
            continue
        runs = []
        setting.expect(BankSource(points), BANKS if points else 1)
        for seed in np.random.SeedSequence(points).spawn(BANKS if points else 1):
            runs.append(run_bank(setting, BankSource(points, seed), near))
            near = runs[-1].moves
            evaluations += runs[-1].evaluations
        ends = {run.collapsed_at for run in runs}
        if len(ends) > 1:
            at, worst = min(end for end in ends if end is not None), math.inf
            if points == sizes[-1] and _unseen(runs, at):
                runs = [run._replace(collapsed_at=at) for run in runs]
            else:
                continue
        accuracy = _accuracy(runs)
        worst = float(np.nanmax(accuracy, initial=0.0))
        at = int(np.nanargmax(np.nan_to_num(accuracy)))
        enough = asked.accepted if points == sizes[-1] else asked.tolerance
        if worst <= enough:
            return _trajectory(setting, asked.tolerance, runs, accuracy, evaluations, failure)
        needed = size_needed(points, worst, asked.tolerance, asked.jumps)
    rows = f"{BANKS} banks of {2 * sizes[-1]} rows a group"
    if math.isinf(worst):
        reason = f"{rows} disagree on whether the labels have collapsed into one class"
    else:
        reason = (
            f"{rows} know this step to {worst:.1e}, not to the tolerance {asked.accepted:g}: "
            "a larger tolerance is accepted"
        )
    raise ConvergenceError(at, reason, {}, worst)


def _unseen(runs: list[Replicate], t: int) -> bool:
    """Whether a class of labels is too rare at step t for banks to see, on average over them."""
    gone = sum(run.collapsed_at is not None and run.collapsed_at <= t for run in runs)
    return gone >= len(runs) / 2


def _states(run: Replicate, steps: int) -> Array:
    r"""m, q, B, $\ln\chi$ and R of a bank, each over t, relative to what they are compared with."""
    path = run.path
    end = steps + 1 if run.collapsed_at is None else run.collapsed_at
    q = path.m**2 + (path.loadings**2).sum(axis=1)
    q[np.isnan(path.m)] = np.nan
    overlap = np.full(steps + 1, np.nan)
    for t in range(1, end):
        overlap[t] = path.m[t] * path.m[t - 1] + path.loadings[t] @ path.loadings[t - 1]
    return np.array([path.m, q, path.bias, np.log(path.kappa), overlap])[:, :end]


def _accuracy(runs: list[Replicate]) -> Array:
    """How well the mean over banks is known, relative, for each step."""
    steps = runs[0].path.m.size - 1
    states = np.array([_states(run, steps) for run in runs])
    accuracy = np.zeros(steps + 1)
    if len(runs) > 1:
        error = accuracy_of_mean(states, _scale(states.mean(axis=0)))
        accuracy[: error.shape[1]] = np.fmax.reduce(error, axis=0)
    return accuracy


def _trajectory(
    setting: ReturningRows,
    tolerance: float,
    runs: list[Replicate],
    accuracy: Array,
    evaluations: Counts,
    failure: StageError | None,
) -> Trajectory:
    """The mean over the banks, and the exact values of the steps before the first return."""
    problem, recipe, exact = setting.problem, setting.recipe, setting.exact
    path, known = _mean(runs), min(exact.good_steps, setting.last + 1)
    measured = np.mean([run.measured for run in runs], axis=0)
    m_hat = np.mean([run.m_hat for run in runs], axis=0)
    collapsed_at, points = runs[0].collapsed_at, runs[0].points
    end = setting.last + 1 if collapsed_at is None else collapsed_at
    across = exact.weights.covariance[:known, :known]
    path.m[:known], path.bias[:known] = exact.m[:known], exact.bias[:known]
    path.kappa[:known] = exact.chi[:known]
    path.loadings[:known, :known] = np.linalg.cholesky(across)
    path.slopes[:known, :known] = np.diag(np.sqrt(exact.chi_hat[:known]))
    m_hat[:known] = exact.m_hat[:known]
    for row, name in enumerate(MEASURED[:4]):
        measured[row, :known] = getattr(exact, name)[:known]
    accuracy = np.where(np.arange(accuracy.size) < known, np.nan, accuracy)
    accuracy[:known] = exact.stats.accuracy[:known]
    memory = Memory(path.loadings, path.slopes, measured, points, len(runs))
    response = memory.response
    ridge = np.append(recipe.lambda_l, recipe.at_steps(problem.steps).lambda_u)
    overlap = np.full(problem.steps + 1, np.nan)
    r_hat = np.full(problem.steps + 1, np.nan)
    for t in range(1, end):
        overlap[t] = path.m[t] * path.m[t - 1] + path.loadings[t] @ path.loadings[t - 1]
        # of the inverse of a lower triangular matrix: Q_{t,t-1} = -chi_{t,t-1} / (chi_tt
        # chi_{t-1,t-1})
        r_hat[t] = response[t, t - 1] / (response[t, t] * response[t - 1, t - 1])
    for values in (path.m, path.bias, path.kappa, m_hat):
        values[end:] = np.nan
    path.loadings[end:], path.slopes[end:], measured[:, end:] = np.nan, np.nan, np.nan
    start = "closed form" if points == 0 else "no update"
    starts = [
        *exact.stats.start[:known],
        *[start] * (end - known),
        *[""] * (problem.steps + 1 - end),
    ]
    spent = evaluations.astype(float)
    spent[:known] += exact.stats.evaluations[:known]
    nodes = np.where(np.arange(problem.steps + 1) < end, 2.0 * points, 0.0)
    nodes[:known] = exact.stats.nodes[:known]
    accuracy[end:] = np.nan
    return Trajectory(
        problem,
        recipe,
        m=path.m,
        v=(path.loadings**2).sum(axis=1),
        bias=path.bias,
        chi=path.kappa,
        overlap=overlap,
        q_hat=1.0 / path.kappa - ridge,
        chi_hat=(path.slopes**2).sum(axis=1),
        m_hat=m_hat,
        r_hat=r_hat,
        stats=SolverStats(tolerance, spent, nodes, accuracy, tuple(starts)),
        collapsed_at=collapsed_at,
        failure=failure,
        reuse=memory,
    )


def _mean(runs: list[Replicate]) -> Path:
    """The mean of the parameters over the banks."""
    paths = [run.path for run in runs]
    names = ("bias", "m", "kappa", "loadings", "slopes", "first")
    means = {name: np.mean([getattr(path, name) for path in paths], axis=0) for name in names}
    return Path(**means)


def jumps(problem: Problem, recipe: Recipe) -> bool:
    """Whether hard labels or a threshold make the target of a row jump."""
    values = recipe.at_steps(problem.steps)
    labeler = recipe.label_function
    hard = any(labeler.jumps(float(sharpness)) for sharpness in np.unique(values.sharpness))
    return bool(hard or np.any(values.threshold > 0))
