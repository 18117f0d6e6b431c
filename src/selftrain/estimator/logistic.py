r"""Ridge logistic regression with soft targets and sample weights, by Newton's method.

Minimises $\sum_i [A_i \log(1 + e^{f_i}) - B_i f_i] + \tfrac12 \sum_j \lambda_j u_j^2$ with $f = Zu
+ b$ and a free bias. A sample of weight a whose label is 1 with probability p, in classes of weight
$c_1, c_0$, has $A = a(c_1 p + c_0(1-p))$ and $B = a c_1 p$. The coordinates are few, so the Hessian
is formed; leaving a sample out is one Newton step from the minimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import expit

from ..arrays import Array
from ..errors import SelfTrainError
from .blocks import Block, Stacked

NEWTON_LIMIT = 100
TOLERANCE = 1e-3
"""Error of a score by the Newton decrement, too small to change a label. The last step squares it,
or leaves a tenth if the Hessian is subsampled."""

HESSIAN_ROWS = 8192
"""Smallest number of unlabelled samples in the Hessian: of more, every second, third, ... is used,
with so many times its weight. The gradient, and so the minimum, is that of all samples."""


class Targets(NamedTuple):
    """Mass A and pull B of every sample, labelled ones first."""

    mass: Array
    pull: Array


class Student(NamedTuple):
    """A fitted model.

    Attributes:
        coefficients, bias: the minimiser.
        unlabeled: scores of the unlabelled samples.
        held_out: scores of the labelled samples, each from a fit without it (one Newton step).
    """

    coefficients: Array
    bias: float
    unlabeled: Array
    held_out: Array


class Minimum(NamedTuple):
    """A minimiser (the bias last), the scores, and the factor of the last Hessian."""

    point: Array
    scores: Array
    factor: Array


def fit_student(
    table: Stacked, targets: Targets, penalty: Array, start: Array | None = None
) -> Student:
    """Fit soft targets on a table, with leave-one-out scores of the labelled samples."""
    point, scores, factor = minimise(table, targets, penalty, start)
    count = len(table.labeled)
    residual, curvature = (each[:count] for each in _local(scores, targets))
    extended = np.column_stack([table.labeled, np.ones(count)])
    leverage = np.einsum("ij,ji->i", extended, _solve(factor, extended.T))
    left = np.maximum(1.0 - leverage * curvature, 1e-3)
    held_out = scores[:count] + leverage * residual / left
    return Student(point[:-1], float(point[-1]), scores[count:], held_out)


def minimise(
    table: Stacked,
    targets: Targets,
    penalty: Array,
    start: Array | None = None,
    tolerance: float = TOLERANCE,
) -> Minimum:
    """Minimise the loss of soft targets on a table, with a penalty per coordinate."""
    full = np.append(penalty, 0.0)
    point = np.zeros(full.size) if start is None else start
    scores = _scores(table, point)
    value = _value(scores, targets) + 0.5 * float(full @ point**2)
    scale = max(1.0, float(targets.mass.sum()))
    thinned = _thinned(len(table.labeled), len(scores))
    for _ in range(NEWTON_LIMIT):
        residual, curvature = _local(scores, targets)
        slope, hessian = table.total(_moments, residual, thinned * curvature)
        slope = slope + full * point
        factor = _factor(hessian + np.diag(full))
        step = _solve(factor, -slope)
        decrement = -float(slope @ step)
        along = _scores(table, step)
        if decrement <= tolerance**2 * scale:
            return Minimum(point + step, scores + along, factor)
        length, rounding = 1.0, 1e-13 * max(abs(value), scale)
        while True:
            trial, tried = scores + length * along, point + length * step
            reached = _value(trial, targets) + 0.5 * float(full @ tried**2)
            if reached <= value - 0.1 * length * decrement + rounding or length < 1e-10:
                break
            length *= 0.5
        stalled = length < 1e-10 or (
            value - reached <= rounding and decrement <= 1e-10 * scale and length == 1.0
        )
        point, scores, value = tried, trial, reached
        if stalled:
            return Minimum(point, scores, factor)
    raise SelfTrainError(
        f"the logistic fit did not converge in {NEWTON_LIMIT} Newton steps "
        f"(decrement {decrement:.1e}, smallest ridge {penalty.min():g})"
    )


def _scores(table: Stacked, point: Array) -> Array:
    return table.column(lambda block: block @ point[:-1] + point[-1])


def _value(scores: Array, targets: Targets) -> float:
    return float(targets.mass @ np.logaddexp(0.0, scores) - targets.pull @ scores)


def _local(scores: Array, targets: Targets) -> tuple[Array, Array]:
    """Return the first two derivatives of the loss of every sample by its score."""
    probability = expit(scores)
    mass, pull = targets
    return mass * probability - pull, mass * probability * expit(-scores)


def _thinned(labeled: int, count: int) -> Array:
    """Return weights of the samples in the Hessian: 0 for those that are left out."""
    every = max(1, (count - labeled) // HESSIAN_ROWS)
    weights = np.ones(count)
    weights[labeled:] = every * (np.arange(count - labeled) % every == 0)
    return weights


def _moments(block: Block, residual: Array, curvature: Array) -> tuple[Array, Array]:
    """Return the part of a block in the gradient and in the Hessian; the bias is last."""
    size = block.shape[1]
    slope = np.empty(size + 1)
    slope[:-1], slope[-1] = block.T @ residual, residual.sum()
    used = curvature > 0
    if not used.all():
        block, curvature = block[used], curvature[used]
    hessian = np.empty((size + 1, size + 1))
    root = block * np.sqrt(curvature)[:, None]
    hessian[:-1, :-1] = root.T @ root  # one array and its transpose: half the products of two
    hessian[-1, :-1] = hessian[:-1, -1] = block.T @ curvature
    hessian[-1, -1] = curvature.sum()
    return slope, hessian


def _factor(hessian: Array) -> Array:
    """Return the lower Cholesky factor, with a small multiple of the trace added if saturated
    samples leave no curvature.

    LAPACK is called directly: for small matrices the checks of scipy.linalg take longer.
    """
    trace = float(np.trace(hessian))
    if not np.isfinite(trace):
        raise SelfTrainError("the logistic fit overflowed")
    lifted, lift = hessian, 0.0
    while True:
        factor, failed = dpotrf(lifted, lower=1, clean=0)
        if not failed:
            return np.asarray(factor)
        lift = max(10 * lift, 1e-12 * trace, 1e-12)
        lifted = hessian + lift * np.eye(hessian.shape[0])


def _solve(factor: Array, right: Array) -> Array:
    """Solve with a lower Cholesky factor."""
    return np.asarray(dpotrs(factor, right, lower=1)[0])
