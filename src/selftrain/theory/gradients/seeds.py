r"""The input of the reverse pass: derivatives of L in the results of a run, converted to those in
laws of the weights and unknowns.

The results of a step are the columns of a trajectory: m, v and the variances of the logits on the
test samples, the bias, the susceptibility $\mathrm{tr}\,G/N$, the overlap $\beta\cdot\beta'$ and
sums of the conjugates. All are explicit functions of the quantities in the reverse pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...arrays import Array
from ...mixture.clusters import Clusters
from ..geometry.matrices import MatrixSpace
from ..geometry.modes import BIAS, FIRST, HAT_M
from ..geometry.space import Spectrum
from ..stats import STATE
from ..step_inputs import StepInputs
from .pulls import pulls_for

if TYPE_CHECKING:
    from ..trajectory import Trajectory

COLUMNS = (*STATE, "off_best", "logit_variances")
"""The columns of a run; the last has one entry for each class (negative, positive)."""

M, V, B, CHI, OVERLAP, Q_HAT, CHI_HAT, M_HAT, R_HAT, OFF_BEST, VARIANCES = range(11)


class Wanted(NamedTuple):
    """Derivatives of L in the results of a run: in its columns, in the laws of the weights, in the
    unknowns, in fields and labels (`pulls`). Arrays over the steps.
    """

    columns: Array
    means: Array
    spreads: Array
    unknowns: Array
    pulls: Array


def nothing_wanted(run: Trajectory) -> Wanted:
    """Return derivatives of zero for all results of a run, to be filled."""
    steps, groups = run.problem.steps + 1, run.space.groups
    law = run.space.no_weights()
    return Wanted(
        np.zeros((steps, VARIANCES + 2)),
        np.zeros((steps, *law.mean.shape)),
        np.zeros((steps, *law.variance.shape)),
        np.zeros((steps, FIRST + 3 * groups)),
        pulls_for(groups, steps),
    )


def in_unknowns(
    run: Trajectory, inputs: StepInputs, wanted: Wanted, last: int
) -> tuple[Array, Array]:
    r"""Return the direct derivatives of L at steps 0..`last` in the unknowns, then in
    $\beta\cdot\beta'$, $\mathrm{tr}\,G/N$ and the bias; and, as a second array, those in the scale
    of the noise, on which the conjugates of a trajectory depend directly.
    """
    part, groups = slice(last + 1), inputs.space.groups
    column, scales = wanted.columns[part], inputs.scales[part]
    hat_t, log_q, log_chi = np.moveaxis(
        run.unknowns[part, FIRST:].reshape(last + 1, 3, groups), 1, 0
    )
    by_r = column[:, R_HAT, None]
    by_q = (column[:, Q_HAT, None] + run.gammas[part, None] * by_r) * scales * np.exp(log_q)
    by_chi = column[:, CHI_HAT, None] * scales * np.exp(log_chi)
    numbers = np.zeros((last + 1, FIRST + 3 * groups + 3))
    numbers[:, HAT_M], numbers[:, BIAS] = column[:, M_HAT], column[:, B]
    numbers[:, FIRST:-3] = np.hstack([-by_r * scales, by_q, by_chi])
    numbers[:, :-3] += wanted.unknowns[part]
    numbers[1:, -3] = column[1:, OVERLAP]
    numbers[:, -2], numbers[:, -1] = column[:, CHI], column[:, B]
    return numbers, (by_q + by_chi - by_r * scales * hat_t).sum(axis=1)


def in_laws(
    column: Array, space: Spectrum | MatrixSpace, clusters: Clusters, means: Array
) -> tuple[Array, Array]:
    """Convert derivatives in the columns of a run to derivatives in the laws of its weights.

    Arguments:
        column: derivatives in the columns, one row per step.
        means: means of the weights at these steps.
    """
    if isinstance(space, Spectrum):
        return _in_modes(column, space, clusters, means)
    return _in_matrices(column, space, clusters, means)


def _in_modes(
    column: Array, space: Spectrum, clusters: Clusters, means: Array
) -> tuple[Array, Array]:
    """Return the derivatives in the mean and the variance of every mode, for each step."""
    mu, variances, copies, *_ = space.noise(clusters)
    average, best = space.best_direction(clusters)
    m, by_off = (means @ mu)[:, None], column[:, V, None]
    by_best = column[:, OFF_BEST, None] * average
    by_square = column[:, [VARIANCES, VARIANCES + 1]] @ variances[[0, -1]]
    by_mean = column[:, M, None] * mu + 2.0 * by_square * means
    by_mean += 2.0 * by_off * (means - m / float(mu @ mu) * mu)
    by_mean += 2.0 * by_best * (means - m / clusters.separation**2 * best)
    return by_mean, copies * (by_off + by_square + by_best)


def _in_matrices(
    column: Array, space: MatrixSpace, clusters: Clusters, means: Array
) -> tuple[Array, Array]:
    """Return the derivatives in the mean and the covariance matrix of the weights of each step."""
    mu, (first, *_, last) = clusters.mean, [*2 * space.step(space.no_weights(), clusters).matrices]
    m, by_off, by_best = means @ mu, column[:, V], column[:, OFF_BEST]
    spread = np.multiply.outer(column[:, VARIANCES], first)
    spread += np.multiply.outer(column[:, VARIANCES + 1], last)
    by_mean = np.outer(column[:, M], mu) + 2.0 * np.einsum("tij,tj->ti", spread, means)
    by_mean += 2.0 * by_off[:, None] * (means - np.outer(m / clusters.length**2, mu))
    spread += np.multiply.outer(by_off, np.eye(mu.size))
    if by_best.any():
        average = 0.5 * (first + last)
        best = np.linalg.lstsq(average, mu, rcond=None)[0]
        rest = means - np.outer(m / clusters.separation**2, best)
        by_mean += 2.0 * by_best[:, None] * (rest @ average)
        spread += np.multiply.outer(by_best, average)
    return by_mean, spread
