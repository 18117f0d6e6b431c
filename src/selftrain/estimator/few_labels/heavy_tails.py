"""The columns of a table as its models see them: in units of their range, heavy tails as ranks.

In single precision, which trees use, a large offset or an extreme unit would cost digits; a few
huge values would decide a linear model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kurtosis
from sklearn.preprocessing import QuantileTransformer

from ...arrays import Array
from ..blocks import as_rows
from ..preprocessing import extremes
from ..same_samples import per_samples

FEWEST_VALUES = 10
HEAVY = 6.0
"""Excess kurtosis above which a column of more than `FEWEST_VALUES` values becomes ranks."""

QUANTILES = 200

OFFSET = 100.0
"""Offset in ranges of a column above which it is subtracted: single precision has seven digits."""

FARTHEST = 1e30
"""Largest entry of new samples, in ranges of the training samples, for single precision."""


class Units(NamedTuple):
    """Offset and unit of every column for trees, which compute in single precision.

    Units are powers of two, and offsets that are small are not subtracted, so that ordinary columns
    lose no digit. The unit of a constant column is infinite: the column becomes zero.
    """

    offset: Array
    unit: Array

    @per_samples
    def transform(self, rows: Array) -> Array:
        """Return samples in these units."""
        with np.errstate(over="ignore"):
            return np.clip((rows - self.offset) / self.unit, -FARTHEST, FARTHEST)


@per_samples
def units_of(rows: Array) -> Units:
    """Find the units of all columns."""
    ends = extremes(as_rows(rows))
    offset = np.where(np.abs(ends.low) > OFFSET * ends.span, ends.low, 0.0)
    return Units(offset, np.where(ends.constant, np.inf, np.exp2(np.round(np.log2(ends.span)))))


class Ranks(NamedTuple):
    """Columns to replace by ranks, and the quantiles of the training samples that define them."""

    columns: Array
    quantiles: Any

    @per_samples
    def transform(self, rows: Array) -> Array:
        """Return samples with these columns as ranks from 0 to 1."""
        if not self.columns.size:
            return rows
        found = np.array(rows, dtype=float)
        found[:, self.columns] = self.quantiles.transform(rows[:, self.columns])
        return found


@per_samples
def ranks_of_heavy_tails(rows: Array) -> Ranks:
    """Find the columns with heavy tails."""
    varying = np.flatnonzero(np.ptp(rows, axis=0) > 0)
    heavy = varying[kurtosis(rows[:, varying], axis=0) > HEAVY]
    many = [len(np.unique(rows[:, k])) > FEWEST_VALUES for k in heavy]
    columns = heavy[np.array(many, dtype=bool)]
    quantiles = QuantileTransformer(n_quantiles=min(QUANTILES, len(rows)), random_state=0)
    return Ranks(columns, quantiles.fit(rows[:, columns]) if columns.size else None)
