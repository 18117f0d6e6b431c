r"""The mean over replicates as a result: a `Trajectory` for two classes with data reuse (exact
before the first reuse), or a `ClassTrajectory` for K classes or any protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ...arrays import Array
from ...errors import StageError
from ..geometry.space import space_of
from ..stats import STATE, SolverStats
from ..trajectory import Trajectory
from .classes import ClassTrajectory
from .observed import accuracy_of_mean, mean_of, observe, padded
from .replicate import MEASURED, Counts, Replicate
from .reuse_record import Reuse
from .setting import Setting

Result = Trajectory | ClassTrajectory


class Outcome(NamedTuple):
    """Tolerance, accuracy of each fit from the spread of the replicates, evaluations of all
    replicates, and the failure, if any.
    """

    tolerance: float
    accuracy: Array
    evaluations: Counts
    failure: StageError | None = None


def mean_trajectory(setting: Setting, runs: Sequence[Replicate], outcome: Outcome) -> Result:
    """Return the mean over replicates as a result of `solve`."""
    collapsed_at = runs[0].collapsed_at
    end = setting.last + 1 if collapsed_at is None else collapsed_at
    if setting.exact is None:
        return _in_scores(setting, runs, outcome, end)
    return _of_two_classes(setting, setting.exact, runs, outcome, end)


def _in_scores(
    setting: Setting, runs: Sequence[Replicate], outcome: Outcome, end: int
) -> ClassTrajectory:
    protocol, basis = setting.protocol, setting.losses[0].basis
    each = [observe(run, setting) for run in runs]
    seen, stats = mean_of(each), _stats(setting, runs[0].points, outcome, end)
    measured = np.mean([run.measured for run in runs], axis=0)
    error_accuracy = stats.accuracy
    if len(runs) > 1:
        errors = np.array([one.error(protocol.test.proportions, basis) for one in each])
        error_accuracy = accuracy_of_mean(errors, np.ones(setting.fits))
    arrays = {
        "m": basis @ seen.m,
        "bias": seen.bias @ basis.T,
        "q_matrix": basis @ seen.square @ basis.T,
        "covariances": basis @ seen.covariance @ basis.T,
        "overlaps": seen.pairs * float(basis[:, 0] @ basis[:, 0]),
        "chi": seen.chi,
        "error_accuracy": np.array(error_accuracy),
        **dict(zip(MEASURED, measured, strict=True)),
    }
    for values in arrays.values():
        values[end:] = np.nan
    problem, recipe = setting.origin
    return ClassTrajectory(
        protocol, **arrays, label_shares=np.mean([run.shares for run in runs], axis=0),
        stats=stats, collapsed_at=runs[0].collapsed_at, failure=outcome.failure,
        problem=problem, recipe=recipe,
    )  # fmt: skip


def _of_two_classes(
    setting: Setting, exact: Trajectory, runs: Sequence[Replicate], outcome: Outcome, end: int
) -> Trajectory:
    problem, recipe = setting.origin
    assert problem is not None
    assert recipe is not None
    known, test = min(exact.good_steps, end), problem.test_clusters
    each, space = [observe(run, setting) for run in runs], space_of(problem.distinct_clusters)
    seen = mean_of(each)
    laws = [_weight_law(run, setting) for run in runs]
    means, crossed = (np.mean(parts, axis=0) for parts in zip(*laws, strict=True))
    spreads = np.moveaxis(np.diagonal(crossed), -1, 0).copy()
    conjugates = [_conjugates(run, setting) for run in runs]
    state = {name: np.mean([one[name] for one in conjugates], axis=0) for name in conjugates[0]}
    response = state.pop("response")
    _, state["v"], off_best, variances = space.observed(means, spreads, test)
    m = state["m"] = seen.m[:, 0, -1]
    state["bias"], state["chi"] = seen.bias[:, 0], seen.chi
    # Average the covariances of the weights, and add the product of the averaged means.
    ways = np.mean([np.outer(one.m[:, 0, -1], one.m[:, 0, -1]) for one in each], axis=0)
    pairs = seen.pairs + (np.outer(m, m) - ways) / test.length**2
    state["overlap"] = np.append(np.nan, np.diag(pairs, -1))
    measured = np.mean([run.measured for run in runs], axis=0)
    shares = np.mean([run.shares for run in runs], axis=0)
    for values, exactly in [
        *((state[name], getattr(exact, name)) for name in STATE),
        *zip(measured, (getattr(exact, name) for name in MEASURED[:4]), strict=False),
        (shares, exact.label_shares), (off_best, exact.off_best),
        (variances, exact.logit_variances),
    ]:  # fmt: skip
        values[:known], values[end:] = exactly[:known], np.nan
    pairs[:known, :known] = exact.overlaps[:known, :known]
    for values in (measured[4], pairs, pairs.T, means, spreads):
        values[end:] = np.nan
    stats = _stats(setting, runs[0].points, outcome, end)
    for name in ("accuracy", "nodes"):
        getattr(stats, name)[:known] = getattr(exact.stats, name)[:known]
    stats.evaluations[:known] += exact.stats.evaluations[:known]
    start = (*exact.stats.start[:known], *stats.start[known:])
    return Trajectory(
        problem, recipe, **state, stats=replace(stats, start=start),
        collapsed_at=runs[0].collapsed_at, failure=outcome.failure,
        reuse=Reuse(measured, shares, pairs, response, crossed, runs[0].points, len(runs)),
        off_best=off_best, logit_variances=variances, space=space, weight_means=means,
        weight_spreads=spreads,
    )  # fmt: skip


def _stats(setting: Setting, points: int, outcome: Outcome, end: int) -> SolverStats:
    solved = np.arange(setting.fits) < end
    solved[list(setting.lost)] = False
    nodes = np.where(solved, float(setting.protocol.classes * points), 0.0)
    accuracy = np.where(solved, outcome.accuracy, np.nan)
    starts = tuple(np.where(solved, "no update" if points else "closed form", "").tolist())
    spent = outcome.evaluations.astype(float)
    return SolverStats(outcome.tolerance, spent, nodes, accuracy, starts)


def _weight_law(run: Replicate, setting: Setting) -> tuple[Array, Array]:
    """Return the means of the weights, and their covariances for all pairs of fits, by modes or as
    matrices.
    """
    space, fits, weights = setting.space, setting.fits, np.array(run.history.fits)[:, 0]
    noise, solved = weights[:, :, 1:], len(weights)
    crossed = np.full((fits, fits, *([space.size] * (1 if space.by_modes else 2))), np.nan)
    if space.by_modes:
        crossed[:solved, :solved] = np.einsum("tnc,snc->tsn", noise, noise) / space.copies
    else:
        crossed[:solved, :solved] = np.einsum("tnc,smc->tsnm", noise, noise)
    return padded(weights[:, :, 0], fits), crossed


def _conjugates(run: Replicate, setting: Setting) -> dict[str, Array]:
    r"""Return the conjugates of every fit in the convention of `Trajectory` (times the mean
    variance of a feature), and $\mathrm{tr}\,\chi_{ts}/N$, lower triangular.
    """
    fits, solved, sources = setting.fits, len(run.hats), setting.space.sources
    state = {name: np.full(fits, np.nan) for name in ("q_hat", "chi_hat", "m_hat", "r_hat")}
    rows = [_stiffness_rows(run, a, fits) for a in range(len(sources))]
    for t, hats in enumerate(run.hats):
        scales = {a: sources[a].variance for a in hats.fresh}
        squares = {a: float((hats.slopes[a] ** 2).sum() + hats.fresh[a][0, 0]) for a in scales}
        state["m_hat"][t] = sum(float(mean[0, -1] - mean[0, 0]) for mean in hats.means.values())
        state["q_hat"][t] = sum(scale * rows[a][t, t] for a, scale in scales.items())
        state["chi_hat"][t] = sum(scale * squares[a] for a, scale in scales.items())
        if t > 0:
            state["r_hat"][t] = -sum(scale * rows[a][t, t - 1] for a, scale in scales.items())
    response = np.tril(np.full((fits, fits), np.nan))
    response[:solved, :solved] = _response(setting, [row[:solved, :solved] for row in rows])
    return state | {"response": response}


def _stiffness_rows(run: Replicate, a: int, fits: int) -> Array:
    r"""Return $\hat Q_{ts}$ of a covariance, lower triangular. Its rows are stored in the basis of
    the weights, which fits extend.
    """
    found = np.zeros((fits, fits))
    if a not in run.history.bases:
        return found
    born: list[int] = []
    for t, row in enumerate(run.history.bases[a].rows):
        if row[len(born)] != 0:
            born.append(t)
    basis = np.array([run.history.bases[a].rows[s][: len(born)] for s in born])
    for t, hats in enumerate(run.hats):
        if a in hats.stiffness:
            found[t, t] = float(hats.stiffness[a][0, 0])
            size = sum(s < t for s in born)
            if size:
                known, row = basis[:size, :size], hats.along[a][0, :size]
                found[t, born[:size]] = solve_triangular(known, row, lower=True, trans="T")
    return found


def _response(setting: Setting, stiffness: Sequence[Array]) -> Array:
    r"""Return $\mathrm{tr}\,\chi_{ts}/N$ with $\chi = (\lambda + \sum_a\hat Q^a\Sigma_a)^{-1}$."""
    space, solved = setting.space, len(stiffness[0])
    ridges = np.diag([fit.ridge for fit in setting.protocol.fits[:solved]])
    if space.by_modes:
        whole = np.broadcast_to(ridges, (space.size, solved, solved)).copy()
        for source, rows in zip(space.sources, stiffness, strict=True):
            whole += source.sigma[:, None, None] * rows
        return np.tril(np.einsum("n,nts->ts", space.copies, np.linalg.inv(whole)) / space.features)
    size = space.size
    full: Array = np.kron(ridges, np.eye(size)).astype(float)
    for source, rows in zip(space.sources, stiffness, strict=True):
        full += np.kron(rows, source.sigma)
    answer = np.zeros_like(full)
    for t in range(solved):  # full is block lower triangular
        here, before = slice(t * size, (t + 1) * size), slice(t * size)
        right = -full[here, before] @ answer[before]
        right[:, here] += np.eye(size)
        answer[here] = np.linalg.solve(full[here, here], right)
    return np.tril(np.einsum("tnsn->ts", answer.reshape(solved, size, solved, size)) / size)
