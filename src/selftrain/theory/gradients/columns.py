r"""From the derivatives of L in the results of a step to those in its law of the weights, its
unknowns and its fields.

The results of a step are the columns of a trajectory: m, v and the variances of the logits on the
test samples, the bias, the susceptibility $\mathrm{tr}\,G/N$, the overlap $\beta\cdot\beta'$ and
sums of the conjugates. All are explicit in what the reverse pass carries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ...runtime.kernels import kernel
from ..geometry.matrices import FullWeights
from ..geometry.modes import BIAS, FIRST, HAT_M, Noise, Weights
from ..stats import STATE

COLUMNS = (*STATE, "off_best", "logit_variances")
"""The columns of a run; the last has one entry for each class (negative, positive)."""

WIDTH = len(COLUMNS) + 1

M, V, B, CHI, OVERLAP, Q_HAT, CHI_HAT, M_HAT, R_HAT, OFF_BEST = range(10)
VARIANCES = 10


class Seen(NamedTuple):
    """The test samples of a spectrum: their modes, average variances, best direction and
    separation.
    """

    noise: Noise
    average: Any
    best: Any
    separation: float


@kernel(error_model="numpy")
def add_law_of_modes(column: Any, test: Seen, weights: Weights, mean: Any, variance: Any) -> None:
    """Add the derivatives in the law of the weights."""
    noise = test.noise
    groups, size = noise.variances.shape
    m = length = 0.0
    for i in range(size):
        m += noise.mean[i] * weights.mean[i]
        length += noise.mean[i] ** 2
    plain, metric = m / length, m / test.separation**2
    for i in range(size):
        b, copies = weights.mean[i], noise.copies[i]
        by_square = 0.0
        for k in range(2):
            by_square += column[VARIANCES + k] * noise.variances[min(k, groups - 1), i]
        by_best = column[OFF_BEST] * test.average[i]
        mean[i] += column[M] * noise.mean[i] + 2.0 * by_square * b
        mean[i] += 2.0 * column[V] * (b - plain * noise.mean[i])
        mean[i] += 2.0 * by_best * (b - metric * test.best[i])
        variance[i] += copies * (column[V] + by_square + by_best)


def add_law_of_matrices(
    column: Array, space: Any, shape: Any, weights: FullWeights, mean: Array, variance: Array
) -> None:
    """The same for weights with a covariance."""
    matrices = space.step(weights, shape).matrices
    b, m = weights.mean, float(shape.mean @ weights.mean)
    squares = column[VARIANCES] * matrices[0] + column[VARIANCES + 1] * matrices[-1]
    mean += column[M] * shape.mean + 2.0 * squares @ b
    mean += 2.0 * column[V] * (b - m / shape.length**2 * shape.mean)
    variance += squares + column[V] * np.eye(b.size)
    if column[OFF_BEST] != 0.0:
        average = sum(matrices) / len(matrices)
        best = np.linalg.lstsq(average, shape.mean, rcond=None)[0]
        mean += 2.0 * column[OFF_BEST] * average @ (b - m / shape.separation**2 * best)
        variance += column[OFF_BEST] * average


@kernel(error_model="numpy")
def add_unknowns(column: Any, x: Any, gamma: float, scales: Any, by_unknowns: Any) -> float:
    """Add the derivatives in the unknowns; that in the scale of the noise, which sums of conjugates
    have by themselves.
    """
    groups = scales.shape[0]
    t0, q0, x0 = FIRST, FIRST + groups, FIRST + 2 * groups
    by_unknowns[HAT_M] += column[M_HAT]
    by_unknowns[BIAS] += column[B]
    by_scale = 0.0
    for k in range(groups):
        stiff, chi = scales[k] * math.exp(x[q0 + k]), scales[k] * math.exp(x[x0 + k])
        by_stiff = (column[Q_HAT] + gamma * column[R_HAT]) * stiff
        by_unknowns[q0 + k] += by_stiff
        by_unknowns[x0 + k] += column[CHI_HAT] * chi
        by_unknowns[t0 + k] -= column[R_HAT] * scales[k]
        by_scale += by_stiff + column[CHI_HAT] * chi - column[R_HAT] * scales[k] * x[t0 + k]
    return by_scale
