r"""From a user's columns to a few directions, and back.

Columns are centred and scaled (`table`: each to unit variance, those of two values to a distance of
2, and clipped while fitting; `shared`: all by one number, for images and text), then projected on
the leading principal directions. A model is a vector u of coefficients of those coordinates; the
metric $\Sigma^{-s}$ enters as its penalty $\sum_j u_j^2 / \omega_j(s)$, with
$\omega_j \propto \sigma_j^{-2s}$, so that all metrics share one table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import InvalidInput
from .blocks import Block, Rows, StoredRows, is_sparse

EXACT_COLUMNS = 400
EXACT_PER_DIRECTION = 4
"""Up to so many columns, in all or per direction, the covariance is formed and its eigenvectors are
exact; beyond, products with few random directions cost less."""

OVERSAMPLING = 15
POWER_STEPS = 2
"""Of the randomised singular value decomposition (Halko, Martinsson and Tropp, 2011)."""

ROWS_PER_DIRECTION = 80
"""Rows per direction in the randomised decomposition: more hardly change the leading directions."""

NEGLIGIBLE = 1e-10
"""Directions with a variance below this fraction of the largest are rounding errors: dropped."""

ROUNDING = 1e-9
"""Relative rounding error of the variance of a column with two values."""

ROUNDED = 8
"""A column whose values differ by so many units in the last place is constant up to rounding."""

NARROWEST = 1e-300
"""A range below this underflows when it is divided by: such a column counts as constant."""


class Extremes(NamedTuple):
    """Smallest and largest value of every column, and the relative rounding of the entries."""

    low: Array
    high: Array
    rounding: float

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Columns that are constant."""
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        within = self.high - self.low <= ROUNDED * self.rounding * largest
        return np.asarray(within | (self.high - self.low < NARROWEST))

    @property
    def span(self) -> Array:
        """The range of every column, 1 if there is none."""
        return np.where(self.high > self.low, self.high - self.low, 1.0)


class Scaling(NamedTuple):
    """How columns are centred and scaled.

    Attributes:
        center: mean of each column.
        scale: what a column is divided by; 0 drops it (a constant column).
        clip: limit of scaled entries of dense rows while fitting, None for none.
    """

    center: Array
    scale: Array
    clip: float | None

    @property
    def inverse(self) -> Array:
        """What a centred column is multiplied by; 0 for a column that is dropped."""
        return np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)

    def standard(self, block: Array) -> Array:
        """Return the scaled entries of a dense block."""
        entries = (block - self.center) * self.inverse
        return entries if self.clip is None else np.clip(entries, -self.clip, self.clip, entries)

    def times(self, block: Block, directions: Array) -> Array:
        """Return scaled rows times a matrix; a sparse block is never made dense."""
        if not is_sparse(block):
            return np.asarray(self.standard(np.asarray(block)) @ directions)
        scaled = directions * self.inverse[:, None]
        return np.asarray(block @ scaled - self.center @ scaled)

    def transposed_times(self, block: Block, vectors: Array) -> Array:
        """Return the transpose of scaled sparse rows times a matrix."""
        offset = np.outer(self.center, vectors.sum(axis=0))
        return np.asarray((block.T @ vectors - offset) * self.inverse[:, None])


@dataclass(frozen=True)
class Basis:
    """Principal directions of scaled columns.

    Attributes:
        scaling: how columns are scaled.
        directions: orthonormal columns.
        variances: of the samples along them.
    """

    scaling: Scaling
    directions: Array
    variances: Array

    def coordinates(self, block: Block) -> Array:
        """Return rows in the directions."""
        return self.scaling.times(block, self.directions)

    def weights(self, metric: float) -> Array:
        r"""Return squared lengths $\omega_j$ of the metric's axes, with mean squared length 1 of a
        sample per direction.
        """
        lengths = self.variances ** (-metric)
        return np.asarray(lengths / np.mean(lengths * self.variances))

    def in_user_units(self, coefficients: Array, intercept: float) -> tuple[Array, float]:
        """Return coefficients of the user's columns and the intercept that belongs to them."""
        own = (self.directions @ coefficients) * self.scaling.inverse
        return own, float(intercept - own @ self.scaling.center)


def find_basis(
    rows: Rows,
    weights: Array,
    ends: Extremes,
    kind: str,
    clip: float | None,
    directions: int,
    random: np.random.RandomState,
) -> Basis:
    """Find the basis of weighted rows.

    Arguments:
        ends: extremes of the rows.
        kind: "table" or "shared" (one scale for all columns).
        directions: at most so many.
    """
    mean, deviation = moments(rows, weights, ends)
    center = ends.low + ends.span * mean
    if kind == "table":
        scale = ends.span * np.where(_has_two_values(mean, deviation), 0.5, deviation)
    else:
        clip = None
        scale = np.full(len(center), _root_mean_square(ends.span * deviation) or 1.0)
    scaling = Scaling(center, np.where(ends.constant, 0.0, scale), clip)
    most = min(directions, int(np.count_nonzero(scaling.scale)), rows.shape[0])
    if most == 0:
        return Basis(scaling, np.zeros((rows.shape[1], 1)), np.ones(1))
    if rows.shape[1] <= max(EXACT_COLUMNS, EXACT_PER_DIRECTION * most):
        found, spread = _exact(rows, weights, scaling, most)
    else:
        sampled, mass = _sample(rows, weights, ROWS_PER_DIRECTION * most, random)
        found, spread = _randomised(sampled, mass, scaling, most, random)
    kept = spread > NEGLIGIBLE * spread.max()
    return Basis(scaling, _signed(found[:, kept]), spread[kept])


def _has_two_values(mean: Array, deviation: Array) -> Array:
    """Return which columns have two values, by the moments of columns with range 0 to 1.

    Such columns are divided by half of the distance: a rare indicator divided by its standard
    deviation would be very large on the few rows that have it. The variance is at most (mean -
    lowest)(highest - mean), with equality only for two values (Bhatia and Davis, 2000).
    """
    return np.asarray(deviation**2 >= (1 - ROUNDING) * mean * (1 - mean))


def _root_mean_square(values: Array) -> float:
    """Return the root mean square of numbers >= 0 whose squares may overflow."""
    largest = float(values.max())
    return largest and largest * float(np.sqrt(np.mean((values / largest) ** 2)))


def _sample(
    rows: Rows, weights: Array, count: int, random: np.random.RandomState
) -> tuple[Rows, Array]:
    """Draw `count` random rows of a table in memory, with their weights.

    A table with no more rows, or on a cluster, is returned as it is.
    """
    if not isinstance(rows, StoredRows) or rows.shape[0] <= count:
        return rows, weights
    which = np.sort(random.choice(rows.shape[0], count, replace=False))
    return StoredRows(rows.take(which)), weights[which]


def shared_units(rows: Rows, ends: Extremes) -> bool:
    """Return whether all columns are of one kind (pixels, word counts), unlike those of a table.

    Sparse tables count as such; dense ones if more than 30 columns vary, nearly all have the same
    minimum, and the median column reaches half of the largest value.
    """
    if is_sparse(rows.matrix):
        return True
    varying = ~ends.constant
    if np.count_nonzero(varying) <= 30:
        return False
    low, high = ends.low[varying], ends.high[varying]
    span = float(high.max() - low.min())
    same_floor = np.mean(low - low.min() <= 0.05 * span) > 0.9
    return bool(same_floor and np.median(high - low) >= 0.5 * span)


def moments(rows: Rows, weights: Array, ends: Extremes) -> tuple[Array, Array]:
    """Return weighted mean and standard deviation of every column, scaled to the range 0 to 1.

    Measured from the smallest value, an offset costs no digits however large it is; in units of the
    range, no square overflows or underflows. Two passes, for the same reason.
    """
    mass = float(weights.sum())
    columns = partial(_moment, low=ends.low, span=ends.span)
    (first,) = rows.total(partial(columns, center=np.zeros(rows.shape[1]), power=1), weights)
    mean = first / mass
    (second,) = rows.total(partial(columns, center=mean, power=2), weights)
    return mean, np.sqrt(second / mass)


def extremes(rows: Rows) -> Extremes:
    """Return smallest and largest value of every column; they and the range must be finite."""
    found = rows.column(_extremes).reshape(-1, 2, rows.shape[1])
    low, high = found[:, 0].min(axis=0), found[:, 1].max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(high - low)
    if not finite.all():
        column = int(np.flatnonzero(~finite)[0])
        raise InvalidInput("X", f"column {column}", "NaN, infinity, or a range that overflows")
    kind = rows.matrix.dtype
    return Extremes(low, high, float(np.finfo(kind if kind.kind == "f" else float).eps))


def _extremes(block: Block) -> Array:
    ends = (block.min(axis=0), block.max(axis=0))
    flat = [end.toarray().ravel() if is_sparse(end) else end for end in ends]
    return np.concatenate(flat).astype(float)


def _moment(
    block: Block, weights: Array, low: Array, span: Array, center: Array, power: int
) -> tuple[Array, ...]:
    """Return weighted sums of powers of the columns in their range, around `center`.

    The entries of a sparse block that are not stored are zeros: they count with the weight that is
    left. A column without such entries has none left, which a difference of sums would miss.
    """
    if not is_sparse(block):
        return (weights @ ((block - low) / span - center) ** power,)
    shape, places, starts = block.shape, block.indices, block.indptr
    entries = ((block.data - low[places]) / span[places] - center[places]) ** power
    stored = np.asarray(type(block)((entries, places, starts), shape=shape).T @ weights)
    ones = np.ones(len(places))
    seen = np.asarray(type(block)((ones, places, starts), shape=shape).T @ weights)
    full = np.bincount(places, minlength=shape[1]) == shape[0]
    left = np.where(full, 0.0, weights.sum() - seen)
    return (stored + left * (-low / span - center) ** power,)


def _exact(rows: Rows, weights: Array, scaling: Scaling, most: int) -> tuple[Array, Array]:
    """Return the leading eigenvectors of the covariance of scaled rows, and their eigenvalues."""

    def part(block: Block, weight: Array) -> tuple[Array, ...]:
        if is_sparse(block):
            block = block.toarray()
        entries = scaling.standard(np.asarray(block, dtype=float))
        entries *= np.sqrt(weight)[:, None]
        return (entries.T @ entries,)  # one array and its transpose: half the products of two

    (second,) = rows.total(part, weights)
    values, vectors = scipy.linalg.eigh(
        second / weights.sum(), subset_by_index=[second.shape[0] - most, second.shape[0] - 1]
    )
    return vectors[:, ::-1], np.maximum(values[::-1], 0.0)


def _randomised(
    rows: Rows, weights: Array, scaling: Scaling, most: int, random: np.random.RandomState
) -> tuple[Array, Array]:
    """Return what `_exact` returns, approximated by randomised subspace iteration."""
    columns = rows.shape[1]
    size = min(columns, most + OVERSAMPLING)
    found = random.standard_normal((columns, size)) / np.sqrt(columns)
    for _ in range(POWER_STEPS):
        found = _orthonormal(_covariance_products(rows, weights, scaling, found)[0])
    found = _orthonormal(found)  # again: the first time leaves rounding errors
    inner = _covariance_products(rows, weights, scaling, found)[1]
    values, vectors = np.linalg.eigh(inner)
    leading = np.argsort(values)[::-1][:most]
    return found @ vectors[:, leading], np.maximum(values[leading], 0.0)


def _orthonormal(columns: Array) -> Array:
    """Return orthonormal columns with the same span: by a Cholesky factor, or by Householder
    reflections, which are slower, if the columns are nearly dependent.
    """
    try:
        return np.asarray(columns @ np.linalg.inv(np.linalg.cholesky(columns.T @ columns)).T)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.qr(columns)[0])


def _covariance_products(
    rows: Rows, weights: Array, scaling: Scaling, directions: Array
) -> tuple[Array, Array]:
    """Return covariance times directions, and the covariance along them, in one pass."""

    def part(block: Block, weight: Array) -> tuple[Array, ...]:
        if not is_sparse(block):
            entries = scaling.standard(np.asarray(block))
            image = entries @ directions
            weighted = image * weight[:, None]
            return entries.T @ weighted, image.T @ weighted
        image = scaling.times(block, directions)
        weighted = image * weight[:, None]
        return scaling.transposed_times(block, weighted), image.T @ weighted

    mass = float(weights.sum())
    outer, inner = rows.total(part, weights)
    return outer / mass, inner / mass


def _signed(directions: Array) -> Array:
    """Make the largest entry of every direction positive, so that a refit has the same signs."""
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return np.asarray(directions * np.where(signs == 0, 1.0, signs))
