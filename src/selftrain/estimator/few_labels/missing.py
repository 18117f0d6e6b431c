"""Missing entries of dense samples: the median of their column takes their place."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from ...arrays import Array
from ..checks import listed


def fit_imputer(X: Any, matrix: Array) -> SimpleImputer:
    """Return the medians of all columns, and warn if any entry is missing.

    Arguments:
        X: the samples as given, for the names of the columns.
    """
    missing = np.isnan(matrix).sum(axis=0)
    which = np.flatnonzero(missing)
    if which.size:
        names = list(X.columns) if hasattr(X, "columns") else list(range(matrix.shape[1]))
        counts = listed([f"{names[k]} ({missing[k]})" for k in which])
        warnings.warn(
            f"X has missing entries, replaced by the median of their column: {counts}",
            UserWarning,
            stacklevel=4,
        )
    return SimpleImputer(strategy="median", keep_empty_features=True).fit(matrix)
