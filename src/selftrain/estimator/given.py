"""What `fit` is given, checked: rows, classes of the labelled ones, weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ..arrays import Array
from ..errors import InvalidInput
from .rows import is_dask
from .targets import Classes, no_such_class


class GivenRows(NamedTuple):
    """Rows with positive weights, and the classes that some of them have."""

    matrix: Any
    target: Classes
    weights: Array

    @property
    def positives(self) -> list[int]:
        """Classes that are fitted against the rest; the second of two."""
        count = len(self.target.names)
        return [1] if count == 2 else list(range(count))


def given(matrix: Any, target: Classes, sample_weight: Any) -> GivenRows:
    """Rows of weight zero are left out, with classes that only they have."""
    rows = matrix.shape[0]
    if len(target.codes) != rows:
        raise InvalidInput(
            "y", f"{len(target.codes)} entries", f"one per row of X is needed: {rows}"
        )
    weights = row_weights(sample_weight, matrix)
    target = present(target, weights)
    used = weights > 0
    if used.all():
        return GivenRows(matrix, target, weights)
    which = np.flatnonzero(used)
    return GivenRows(matrix[which], target._replace(codes=target.codes[which]), weights[which])


def text_columns(table: Any) -> list[str]:
    """Names of the columns of a DataFrame that are neither numbers nor true and false."""
    if not hasattr(table, "select_dtypes"):
        return []
    return [str(name) for name in table.select_dtypes(exclude=["number", "bool"]).columns]


def row_weights(sample_weight: Any, matrix: Any) -> Array:
    """One finite number >= 0 per row."""
    if not is_dask(matrix):
        found = _check_sample_weight(sample_weight, matrix, dtype=np.float64)
    elif sample_weight is None:
        found = np.ones(matrix.shape[0])
    else:
        found = np.asarray(sample_weight, dtype=float)
    if (found < 0).any() or not np.isfinite(found).all() or not found.any():
        raise InvalidInput("sample_weight", float(found.min()), "finite numbers >= 0, not all 0")
    return np.asarray(found, dtype=float)


def present(target: Classes, weights: Array) -> Classes:
    """Only classes that have labelled rows of positive weight."""
    seen = np.unique(target.codes[(target.codes >= 0) & (weights > 0)])
    if len(seen) < 2:
        raise InvalidInput(
            "y",
            target.names[seen].tolist(),
            "the labelled rows of positive weight have fewer than 2 classes, at least 2 classes are"
            " needed",
        )
    if len(seen) == len(target.names):
        return target
    codes = np.full(len(target.names) + 1, -1)
    codes[seen] = np.arange(len(seen))
    return Classes(target.names[seen], codes[target.codes])


def known_shares(share: Any, names: Array) -> dict[int, float]:
    """Known shares by the index of their class."""
    if isinstance(share, str):
        return {}
    if isinstance(share, dict):
        listed = names.tolist()
        for name in share:
            if name not in listed:
                raise no_such_class("share", name, listed)
        return {listed.index(name): float(value) for name, value in share.items()}
    if len(names) != 2:
        raise InvalidInput(
            "share", share, "with more than two classes: a dictionary from class to share"
        )
    return {1: float(share)}
