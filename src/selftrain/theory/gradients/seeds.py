r"""From the derivatives of L in the results of a run to those in laws of the weights and unknowns,
where the reverse pass begins.

The results of a step are the columns of a trajectory: m, v and the variances of the logits on the
test samples, the bias, the susceptibility $\mathrm{tr}\,G/N$, the overlap $\beta\cdot\beta'$ and
sums of the conjugates. All are explicit in what the reverse pass carries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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

OF_LAW = [M, V, OFF_BEST, VARIANCES, VARIANCES + 1]
"""Columns that are made of the law of the weights."""


class Wanted(NamedTuple):
    """Derivatives of L in the results of a run: in its columns, in the laws of the weights (of no
    steps where L does not look at them), in the unknowns, in fields and labels (`pulls`). Arrays
    over the steps.
    """

    columns: Array
    means: Array
    spreads: Array
    unknowns: Array
    pulls: Array


def nothing_wanted(run: Trajectory) -> Wanted:
    """Return zeros, to be filled."""
    assert run.space is not None
    steps, groups = run.problem.steps + 1, run.space.groups
    law = run.space.no_weights()
    return Wanted(
        np.zeros((steps, VARIANCES + 2)),
        np.zeros((0, *law.mean.shape)),
        np.zeros((0, *law.variance.shape)),
        np.zeros((steps, FIRST + 3 * groups)),
        pulls_for(groups, steps),
    )


class Seeds(NamedTuple):
    r"""What L adds to the derivatives that are carried, step by step.

    Attributes:
        numbers: in the unknowns, then in $\beta\cdot\beta'$, $\mathrm{tr}\,G/N$ and the bias.
        places: the row of every step in `means` and `spreads`, -1 where L does not look at its law.
        means, spreads: in the laws of the weights.
    """

    numbers: Any
    places: Any
    means: Any
    spreads: Any


def seeds_of(run: Trajectory, inputs: StepInputs, wanted: Wanted, last: int) -> tuple[Seeds, Array]:
    """Return the seeds of steps 0..`last`, and the derivatives in the scale of the noise that sums
    of conjugates have by themselves.
    """
    numbers, by_scale = _in_unknowns(run, inputs, wanted, last)
    looks = wanted.columns[: last + 1, OF_LAW].any(axis=1)
    for law in (wanted.means, wanted.spreads):
        if len(law):
            looks |= law[: last + 1].reshape(last + 1, -1).any(axis=1)
    places, rows = np.where(looks, np.cumsum(looks) - 1, -1), np.flatnonzero(looks)
    assert run.weight_means is not None
    assert run.weight_spreads is not None
    laws = run.weight_means[rows], run.weight_spreads[rows]
    means, spreads = in_laws(wanted.columns[rows], inputs.space, inputs.test, *laws)
    if len(wanted.means):
        means += wanted.means[rows]
        spreads += wanted.spreads[rows]
    return Seeds(numbers, places, means, spreads), by_scale


def _in_unknowns(
    run: Trajectory, inputs: StepInputs, wanted: Wanted, last: int
) -> tuple[Array, Array]:
    """Return the numbers of the seeds, and the derivatives in the scale of the noise."""
    assert run.unknowns is not None
    assert run.gammas is not None
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
    column: Array, space: Spectrum | MatrixSpace, clusters: Clusters, means: Array, spreads: Array
) -> tuple[Array, Array]:
    """Return the derivatives in the laws of the weights of some steps, rows of `means` and
    `spreads`, from those in the columns of these steps.
    """
    if isinstance(space, Spectrum):
        return _in_modes(column, space, clusters, means, spreads)
    return _in_matrices(column, space, clusters, means, spreads)


def _in_modes(
    column: Array, space: Spectrum, clusters: Clusters, means: Array, spreads: Array
) -> tuple[Array, Array]:
    """Return the derivatives in laws given mode by mode."""
    mu, variances, copies, *_ = space.noise(clusters)
    average, best = space.best_direction(clusters)
    m, by_off = (means @ mu)[:, None], column[:, V, None]
    by_best = column[:, OFF_BEST, None] * average
    by_square = column[:, [VARIANCES, VARIANCES + 1]] @ variances[[0, -1]]
    by_mean = column[:, M, None] * mu + 2.0 * by_square * means
    by_mean += 2.0 * by_off * (means - m / float(mu @ mu) * mu)
    by_mean += 2.0 * by_best * (means - m / clusters.separation**2 * best)
    return by_mean, copies * (by_off + by_square + by_best) + 0.0 * spreads


def _in_matrices(
    column: Array, space: MatrixSpace, clusters: Clusters, means: Array, spreads: Array
) -> tuple[Array, Array]:
    """Return the derivatives in laws given by a mean and a covariance matrix."""
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
