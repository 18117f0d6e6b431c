"""What kind of data samples are: a table, images, embeddings of a neural network, or text.

Images and text have columns of one unit (pixels, word counts). Embeddings have many continuous
columns of nearly the same spread with light tails. What is left is a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import kurtosis

from ...arrays import Array
from ..blocks import as_rows, is_sparse
from ..prepared import FILLED_BY_WORDS, filled
from ..preprocessing import extremes, shared_units
from ..same_samples import per_samples

KINDS = ("auto", "table", "image", "embedding", "text")

FEWEST_COLUMNS = 50
SPREADS = 3.0
"""Largest ratio of the 90 % and the 10 % quantile of the standard deviations of an embedding."""

TAILS = 3.0
"""Largest 90 % quantile of the excess kurtosis of its columns."""

DISCRETE = 0.05
FEW_VALUES = 10
"""Largest fraction of its columns with `FEW_VALUES` different values or fewer."""

LOOKED_AT = 2000
"""Samples that are looked at: moments of a column need no more."""


@per_samples
def recognise(matrix: Any) -> str:
    """Return the kind of samples.

    >>> random = np.random.default_rng(0)
    >>> recognise(random.standard_normal((500, 64)))
    'embedding'
    >>> recognise(random.standard_normal((500, 64)) * np.arange(1, 65))
    'table'
    """
    if is_sparse(matrix):
        return "text"
    rows = as_rows(matrix)
    ends = extremes(rows)
    if shared_units(rows, ends):
        return "image" if filled(matrix, ends.low) > FILLED_BY_WORDS else "text"
    some = matrix[:: max(1, len(matrix) // LOOKED_AT)]
    # From the smallest value and in units of the largest range, no square overflows.
    return "embedding" if _looks_embedded((some - ends.low) / ends.span.max()) else "table"


def _looks_embedded(rows: Array) -> bool:
    spreads = rows.std(axis=0)
    varying = spreads > 0
    if np.count_nonzero(varying) < FEWEST_COLUMNS:
        return False
    low, high = np.quantile(spreads[varying], [0.1, 0.9])
    if high >= SPREADS * low:
        return False
    few = [len(np.unique(column)) <= FEW_VALUES for column in rows[:, varying].T]
    if np.mean(few) > DISCRETE:
        return False
    return bool(np.quantile(kurtosis(rows[:, varying], axis=0), 0.9) < TAILS)
