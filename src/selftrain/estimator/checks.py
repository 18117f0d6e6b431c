"""Checks of the input of `fit`: samples, targets, weights."""

from __future__ import annotations

import re
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.utils.validation import _check_sample_weight

from ..arrays import Array
from ..errors import InvalidInput
from .blocks import is_dask, is_sparse
from .preprocessing import NARROWEST
from .same_samples import per_samples
from .targets import Classes, no_such_class

FEW_LEVELS = 64
"""An integer column has lost its digits if its values, which a large offset makes coarse as
float64, span at most this many rounding units."""

FEWEST_NUMBERED = 20
"""Fewer rows are in the order of a measured column by chance."""

SHOWN = 5
"""Largest number of columns in a message."""


class GivenRows(NamedTuple):
    """Samples with positive weights, and their classes."""

    matrix: Any
    target: Classes
    weights: Array

    @property
    def positives(self) -> list[int]:
        """Indices of the classes that are fitted against the rest; of two, only the second."""
        count = len(self.target.names)
        return [1] if count == 2 else list(range(count))


def given(matrix: Any, target: Classes, sample_weight: Any) -> GivenRows:
    """Drop samples of weight zero, and classes without labelled samples of positive weight."""
    rows = matrix.shape[0]
    if len(target.codes) != rows:
        raise InvalidInput(
            "y", f"{len(target.codes)} entries", f"must have one per sample of X: {rows}"
        )
    weights = row_weights(sample_weight, matrix)
    target = present(target, weights)
    used = weights > 0
    if used.all():
        return GivenRows(matrix, target, weights)
    which = np.flatnonzero(used)
    return GivenRows(matrix[which], target._replace(codes=target.codes[which]), weights[which])


def text_columns(table: Any) -> list[str]:
    """Return the columns of a DataFrame that are neither numeric nor boolean."""
    if not hasattr(table, "select_dtypes"):
        return []
    return [str(name) for name in table.select_dtypes(exclude=["number", "bool"]).columns]


def identifiers(table: Any) -> list[str]:
    """Return the columns of a DataFrame that number its rows, as an identifier does.

    Integers, or text with one prefix and an integer ("P007"), that are all different and either
    grow or fall from row to row or are consecutive in another order. A measured column is hardly
    ever such, except a time.

    >>> import pandas as pd
    >>> count = range(30)
    >>> identifiers(pd.DataFrame({"id": count, "x": [k % 7 for k in count], "f": [0.5] * 30}))
    ['id']
    """
    if not hasattr(table, "select_dtypes") or len(table) < FEWEST_NUMBERED:
        return []
    columns = table.select_dtypes(["integer", "object", "string"])
    return [str(name) for name, column in columns.items() if _numbers_rows(column)]


def _numbers_rows(column: Any) -> bool:
    if column.hasnans:
        return False
    if column.dtype.kind not in "iu":
        parts = column.astype(str).str.extract(r"^(.*?)(\d{1,18})$")
        if parts[1].hasnans or parts[0].nunique() > 1:
            return False
        if re.fullmatch(r"[+-]?\d*\.", parts[0].iloc[0]):  # measured numbers: 0.12, 0.47
            return False
        column = parts[1].astype("int64")
    steps = np.diff(np.sort(column.to_numpy()))
    if (steps == 0).any():
        return False
    ordered = column.is_monotonic_increasing or column.is_monotonic_decreasing
    return bool(ordered or (steps == 1).all())


def warn_about_identifiers(X: Any) -> None:
    """Warn the caller of `fit` of columns that number the samples."""
    found = identifiers(X)
    if found:
        warnings.warn(f"X, {numbered(found)}", UserWarning, stacklevel=4)


def numbered(names: list[str]) -> str:
    """Return a sentence on columns that number the samples.

    >>> numbered(["id"])
    "column 'id' numbers the samples, as an identifier does, and is used; drop it if it is one"
    """
    shown = listed([repr(name) for name in names])
    if len(names) == 1:
        what = "numbers the samples, as an identifier does, and is used; drop it if it is one"
        return f"column {shown} {what}"
    what = "number the samples, as identifiers do, and are used; drop them if they are"
    return f"columns {shown} {what}"


def check_finite(X: Any, matrix: Any, allow_nan: bool = False) -> None:
    """Reject infinite entries and NaN; the error names their columns.

    Arguments:
        X: the table as the user gave it; only its column names are used, if it has any.
        matrix: the same table as numbers, dense or sparse.
        allow_nan: reject only infinite entries.
    """
    entries = matrix.data if is_sparse(matrix) else matrix
    invalid = np.isinf(entries) if allow_nan else ~np.isfinite(entries)
    if not invalid.any():
        return
    columns = matrix.tocoo().col[invalid] if is_sparse(matrix) else np.nonzero(invalid)[1]
    kind = "NaN" if np.isnan(entries[invalid]).any() else "infinity"
    names = list(getattr(X, "columns", range(matrix.shape[1])))
    bad = [repr(names[i]) for i in np.unique(columns).tolist()]
    many = "column" if len(bad) == 1 else "columns"
    accepted = f"must be finite; it contains {kind}: fill or drop {many} {listed(bad)}"
    raise InvalidInput("X", kind, accepted)


def listed(names: list[str]) -> str:
    """Return the first `SHOWN` names, separated by commas.

    >>> listed(["a", "b"])
    'a, b'
    """
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")


def medians(X: Any, matrix: Array) -> Array:
    """Return the median of every column, 0 for an empty one; warn if any entry is missing.

    `X` is the table as the user gave it; only its column names are used.
    """
    missing = np.isnan(matrix).sum(axis=0)
    which = np.flatnonzero(missing)
    found = _medians(matrix).copy()
    if not which.size:
        return found
    names = list(getattr(X, "columns", range(matrix.shape[1])))
    counts = listed([f"{names[k]} ({missing[k]})" for k in which])
    warnings.warn(
        f"X has missing entries, replaced by the median of their column: {counts}",
        UserWarning,
        stacklevel=6,
    )
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    found[which] = imputer.fit(matrix[:, which]).statistics_
    return np.asarray(found)


@per_samples
def _medians(matrix: Array) -> Array:
    return np.asarray(np.median(matrix, axis=0))


def check_digits(X: Any, matrix: Any) -> None:
    """Reject a table if all its varying columns lose their digits as float64; warn if some do."""
    if is_sparse(matrix):
        return
    lost, varies = lost_columns(X, matrix)
    if not lost.any():
        return
    columns = listed([str(column) for column in np.flatnonzero(lost)])
    what = (
        "the values of these columns differ by less than the precision of float64: subtract an"
        " offset before they are converted (integers around 2**62), or rescale them (1e-310)"
    )
    if lost.sum() == varies.sum():
        raise InvalidInput("X", f"columns {columns}", what)
    warnings.warn(f"X, columns {columns}: {what}; they are ignored", UserWarning, stacklevel=6)


def lost_columns(X: Any, matrix: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the columns that vary but lose their digits as float64, and of all that vary.

    A column loses its digits if its range is narrower than `NARROWEST`, or if its values were exact
    (integers, long doubles) and only the rounding to float64 made them coarse.
    """
    low, high = matrix.min(axis=0).astype(float), matrix.max(axis=0).astype(float)
    with np.errstate(over="ignore"):  # `extremes` rejects an overflow with a better message
        span = high - low
    narrow = span < NARROWEST
    raw = [column.to_numpy() for _, column in X.items()] if hasattr(X, "iloc") else [np.asarray(X)]
    if all(part.dtype in (np.float64, np.float32, np.float16, np.bool_) for part in raw):
        varies = high > low
        return varies & narrow, varies
    try:
        ends = [(part.min(axis=0), part.max(axis=0)) for part in raw]
    except TypeError:  # a column mixes numbers and text
        return np.zeros(low.size, dtype=bool), high > low
    varies = np.concatenate([np.atleast_1d(top != bottom).astype(bool) for bottom, top in ends])
    coarse = span <= FEW_LEVELS * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
    exact = np.concatenate(
        [
            np.full(np.size(ends[k][0]), part.dtype.kind != "f" or part.dtype.itemsize > 8)
            for k, part in enumerate(raw)
        ]
    )
    return varies & (narrow | (coarse & exact)), varies


def row_weights(sample_weight: Any, matrix: Any) -> Array:
    """Validate `sample_weight`: one finite number >= 0 per sample, not all 0; None: all 1."""
    if not is_dask(matrix):
        found = _check_sample_weight(sample_weight, matrix, dtype=np.float64)
    elif sample_weight is None:
        found = np.ones(matrix.shape[0])
    else:
        found = np.asarray(sample_weight, dtype=float)
    if (found < 0).any() or not np.isfinite(found).all() or not found.any():
        raise InvalidInput("sample_weight", float(found.min()), "must be finite, >= 0, not all 0")
    return np.asarray(found, dtype=float)


def present(target: Classes, weights: Array) -> Classes:
    """Return the classes that have labelled samples of positive weight; raise if fewer than two."""
    seen = np.unique(target.codes[(target.codes >= 0) & (weights > 0)])
    if len(seen) < 2:
        raise InvalidInput(
            "y",
            target.names[seen].tolist(),
            "the labelled samples of positive weight have fewer than 2 classes, at least 2 classes"
            " are needed",
        )
    if len(seen) == len(target.names):
        return target
    codes = np.full(len(target.names) + 1, -1)
    codes[seen] = np.arange(len(seen))
    return Classes(target.names[seen], codes[target.codes])


def known_shares(share: Any, names: Array) -> dict[int, float]:
    """Return known class proportions by the index of the class."""
    if isinstance(share, str):
        return {}
    if isinstance(share, dict):
        listed = names.tolist()
        for name in share:
            if name not in listed:
                raise no_such_class("share", name, listed)
        return {listed.index(name): float(value) for name, value in share.items()}
    if len(names) != 2:
        accepted = "must be a dictionary from class to proportion with more than two classes"
        raise InvalidInput("share", share, accepted)
    return {1: float(share)}
