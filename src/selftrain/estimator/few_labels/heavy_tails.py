"""Columns with heavy tails become ranks: a few huge values would decide a linear model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kurtosis
from sklearn.preprocessing import QuantileTransformer

from ...arrays import Array

FEWEST_VALUES = 10
HEAVY = 6.0
"""Excess kurtosis above which a column of more than `FEWEST_VALUES` values becomes ranks."""

QUANTILES = 200


class Ranks(NamedTuple):
    """Columns that become ranks, and their quantiles in all training samples."""

    columns: Array
    quantiles: Any

    def transform(self, rows: Array) -> Array:
        """Return samples with these columns as ranks from 0 to 1."""
        if not self.columns.size:
            return rows
        found = np.array(rows, dtype=float)
        found[:, self.columns] = self.quantiles.transform(rows[:, self.columns])
        return found


def ranks_of_heavy_tails(rows: Array) -> Ranks:
    """Find the columns with heavy tails."""
    with np.errstate(all="ignore"):
        heavy = kurtosis(rows, axis=0) > HEAVY
    columns = np.array(
        [k for k in np.flatnonzero(heavy) if len(np.unique(rows[:, k])) > FEWEST_VALUES], dtype=int
    )
    quantiles = QuantileTransformer(n_quantiles=min(QUANTILES, len(rows)), random_state=0)
    return Ranks(columns, quantiles.fit(rows[:, columns]) if columns.size else None)
