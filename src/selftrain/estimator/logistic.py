r"""Ridge logistic regression with soft targets and sample weights, by Newton's method.

Minimises $\sum_i [A_i \log(1 + e^{f_i}) - B_i f_i] + \tfrac12 \sum_j \lambda_j u_j^2$ with $f = Zu
+ b$ and a free bias. A sample of weight a whose label is 1 with probability p, in classes of weight
$c_1, c_0$, has $A = a(c_1 p + c_0(1-p))$ and $B = a c_1 p$. The coordinates are few, so the Hessian
is formed; leaving a sample out is one Newton step from the minimum.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import expit

from ..arrays import Array
from ..errors import SelfTrainError
from .blocks import Block, Rows

NEWTON_LIMIT = 100
TOLERANCE = 1e-3
"""Error of a score by the Newton decrement, too small to change a label. The last step squares it,
or leaves a tenth if the Hessian is subsampled."""

HESSIAN_ROWS = 8192
"""Smallest number of unlabelled samples in the Hessian: of more, every second, third, ... is used,
with so many times its weight. The gradient, and so the minimum, is that of all samples."""


class Coordinates(NamedTuple):
    """Coordinates of the samples of a fit: labelled ones in memory, the others in their store."""

    labeled: Array
    unlabeled: Rows


class RowTargets(NamedTuple):
    """Mass A and pull B of every labelled and unlabelled sample."""

    mass_labeled: Array
    pull_labeled: Array
    mass_unlabeled: Array
    pull_unlabeled: Array


class Student(NamedTuple):
    """A fitted model.

    Attributes:
        coefficients, bias: the minimiser.
        labeled, unlabeled: scores of the samples.
        held_out: scores of the labelled samples, each from a fit without it (one Newton step).
    """

    coefficients: Array
    bias: float
    labeled: Array
    unlabeled: Array
    held_out: Array


class Minimum(NamedTuple):
    """A minimiser (the bias last), the scores, and the factor of the last Hessian."""

    point: Array
    scores: tuple[Array, Array]
    factor: tuple[Array, bool]


def fit_student(
    table: Coordinates,
    targets: RowTargets,
    penalty: Array,
    start: tuple[Array, float] | None = None,
) -> Student:
    """Fit soft targets on a table, with leave-one-out scores of the labelled samples."""
    point, scores, factor = minimise(table, targets, penalty, start)
    labeled = scores[0]
    residual, curvature = _local(labeled, targets.mass_labeled, targets.pull_labeled)
    extended = np.column_stack([table.labeled, np.ones(len(table.labeled))])
    leverage = np.einsum("ij,ji->i", extended, scipy.linalg.cho_solve(factor, extended.T))
    left = np.maximum(1.0 - leverage * curvature, 1e-3)
    held_out = labeled + leverage * residual / left
    return Student(point[:-1], float(point[-1]), labeled, scores[1], held_out)


def minimise(
    table: Coordinates,
    targets: RowTargets,
    penalty: Array,
    start: tuple[Array, float] | None = None,
    tolerance: float = TOLERANCE,
) -> Minimum:
    """Minimise the loss of soft targets on a table, with a penalty per coordinate."""
    size = penalty.size
    full = np.append(penalty, 0.0)
    point = np.zeros(size + 1) if start is None else np.append(*start)
    scores = _scores(table, point)
    value = _value(scores, targets) + 0.5 * float(full @ point**2)
    scale = max(1.0, float(targets.mass_labeled.sum() + targets.mass_unlabeled.sum()))
    for _ in range(NEWTON_LIMIT):
        slope, hessian = _derivatives(table, targets, scores, full, point)
        factor = _factor(hessian)
        step = scipy.linalg.cho_solve(factor, -slope)
        decrement = -float(slope @ step)
        along = _scores(table, step)
        if decrement <= tolerance**2 * scale:
            scores = (scores[0] + along[0], scores[1] + along[1])
            return Minimum(point + step, scores, factor)
        length, rounding = 1.0, 1e-13 * max(abs(value), scale)
        while True:
            trial = (scores[0] + length * along[0], scores[1] + length * along[1])
            tried = point + length * step
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


def _scores(table: Coordinates, point: Array) -> tuple[Array, Array]:
    def part(block: Block) -> Array:
        return np.asarray(block @ point[:-1] + point[-1])

    return table.labeled @ point[:-1] + point[-1], table.unlabeled.column(part)


def _value(scores: tuple[Array, Array], targets: RowTargets) -> float:
    labeled, unlabeled = scores
    return float(
        targets.mass_labeled @ np.logaddexp(0.0, labeled)
        - targets.pull_labeled @ labeled
        + targets.mass_unlabeled @ np.logaddexp(0.0, unlabeled)
        - targets.pull_unlabeled @ unlabeled
    )


def _derivatives(
    table: Coordinates,
    targets: RowTargets,
    scores: tuple[Array, Array],
    penalty: Array,
    point: Array,
) -> tuple[Array, Array]:
    """Return gradient and Hessian of the objective."""
    own = _moments(table.labeled, *_local(scores[0], targets.mass_labeled, targets.pull_labeled))
    local = _local(scores[1], targets.mass_unlabeled, targets.pull_unlabeled)
    slope, hessian = own
    count = table.unlabeled.shape[0]
    if count:
        every = max(1, count // HESSIAN_ROWS)
        others = table.unlabeled.total(partial(_moments, every=every), *local)
        slope, hessian = slope + others[0], hessian + others[1]
    return slope + penalty * point, hessian + np.diag(penalty)


def _local(scores: Array, mass: Array, pull: Array) -> tuple[Array, Array]:
    probability = expit(scores)
    return mass * probability - pull, mass * probability * expit(-scores)


def _moments(
    block: Block, residual: Array, curvature: Array, every: int = 1
) -> tuple[Array, Array]:
    """Return the part of a block in the gradient and in the Hessian, which uses one row in
    `every`; the bias is last.
    """
    size = block.shape[1]
    slope = np.empty(size + 1)
    slope[:-1], slope[-1] = block.T @ residual, residual.sum()
    block, curvature = block[::every], every * curvature[::every]
    hessian = np.empty((size + 1, size + 1))
    root = block * np.sqrt(curvature)[:, None]
    hessian[:-1, :-1] = root.T @ root  # one array and its transpose: half the products of two
    hessian[-1, :-1] = hessian[:-1, -1] = block.T @ curvature
    hessian[-1, -1] = curvature.sum()
    return slope, hessian


def _factor(hessian: Array) -> tuple[Array, bool]:
    """Return the Cholesky factor, with a small multiple of the trace added if saturated samples
    leave no curvature.
    """
    lift = 0.0
    while True:
        try:
            lifted = hessian + lift * np.eye(hessian.shape[0])
            return scipy.linalg.cho_factor(lifted, lower=True)
        except scipy.linalg.LinAlgError:
            lift = max(10 * lift, 1e-12 * float(np.trace(hessian)), 1e-12)
