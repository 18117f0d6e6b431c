"""The checked input of a plan: numbers, two classes, enough labels.

Very long tables are subsampled: of the unlabelled samples, so many that a fit no longer changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from ...arrays import Array
from ...errors import InvalidInput, nearest
from ..blocks import as_rows, is_dask, is_sparse
from ..checks import text_columns
from ..prepared import contents
from ..preprocessing import extremes
from ..targets import read_targets

MOST_UNLABELED = 20_000
"""Unlabelled samples that are used; more change the error of a fit by less than 0.001."""

MOST_LABELED = 5_000
"""Labelled samples that are used: with more there is nothing to plan."""


@dataclass(frozen=True)
class Input:
    """Samples of a plan.

    Attributes:
        matrix: the samples that are used, dense or sparse.
        codes: 1 and 0 for the classes, -1 if unlabelled.
        names: of the negative and the positive class.
        labeled, unlabeled: numbers of samples that were given.
        remarks: sentences about unusual samples and columns.
    """

    matrix: Any
    codes: Array
    names: tuple[Any, Any]
    labeled: int
    unlabeled: int
    remarks: tuple[str, ...]


def read_input(
    X: Any, y: Any, unlabeled: Any, positive: Any, encode: bool, random: np.random.RandomState
) -> Input:
    """Check samples and classes, and subsample them if there are very many."""
    codes, names = _two_classes(y, unlabeled, positive)
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(codes) != rows:
        raise InvalidInput("y", f"{len(codes)} entries", f"must have one per sample of X: {rows}")
    _check_counts(codes, names, unlabeled)
    known, others = int((codes >= 0).sum()), int((codes < 0).sum())
    remarks = []
    kept = _sample(codes, random)
    if len(kept) < rows:
        X, codes = _take(X, kept), codes[kept]
        remarks.append(sampled(codes, known, others))
    matrix, encoded = _numbers(X, encode)
    matrix = _finite(matrix, X)
    remarks += encoded
    remarks += _columns(matrix) + _duplicates(matrix, codes)
    return Input(matrix, codes, names, known, others, tuple(remarks))


def sampled(codes: Array, labeled: int, unlabeled: int) -> str:
    """Return the remark on subsampling."""
    used, others = int((codes >= 0).sum()), int((codes < 0).sum())
    return (
        f"{used} of {labeled} labelled and {others} of {unlabeled} unlabelled samples were used, "
        "drawn at random."
    )


def _take(X: Any, kept: Array) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[kept]
    return X[kept] if hasattr(X, "shape") else np.asarray(X)[kept]


def _numbers(X: Any, encode: bool) -> tuple[Any, list[str]]:
    """Return the table as numbers; columns of text are rejected by name, or one-hot encoded."""
    if hasattr(X, "select_dtypes"):
        text = text_columns(X)
        if text and not encode:
            accepted = "columns must be numbers; encode=True (--encode) makes one column per value"
            raise InvalidInput("X", text, accepted)
        if text:
            import pandas as pd

            coded = pd.get_dummies(X, columns=text, dtype=float)
            made = coded.shape[1] - X.shape[1] + len(text)
            remarks = [f"{_columns_of(len(text))} of text became {made} of 0 and 1."]
            remarks += [
                f"Column {name!r} is different on most samples: drop it."
                for name in text
                if X[name].nunique() > 0.5 * len(X)
            ]
            return coded.to_numpy(dtype=float), remarks
        return X.to_numpy(dtype=float), []
    if is_sparse(X):
        return X.tocsr(), []
    if is_dask(X):
        return np.asarray(X.compute(), dtype=float), []
    try:
        return np.asarray(X, dtype=float), []
    except (TypeError, ValueError):
        accepted = "must be numbers; pass a DataFrame and encode=True for columns of text"
        raise InvalidInput("X", "text", accepted) from None


def _columns_of(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _finite(matrix: Any, X: Any) -> Any:
    if not is_sparse(matrix) and matrix.ndim == 2 and not np.isfinite(matrix).all():
        bad = ~np.isfinite(matrix).all(axis=0)
        names = getattr(X, "columns", np.arange(matrix.shape[1]))
        listed = [str(names[i]) for i in np.flatnonzero(bad)[:5]] if len(names) == len(bad) else []
        kind = "NaN" if np.isnan(matrix).any() else "infinite values"
        accepted = (
            f"must be finite; fill or drop {_columns_of(int(bad.sum()))} with {kind}:"
            f" {', '.join(listed)}"
        )
        raise InvalidInput("X", kind, accepted)
    return check_array(matrix, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)


def _two_classes(y: Any, unlabeled: Any, positive: Any) -> tuple[Array, tuple[Any, Any]]:
    """Return codes (1: positive class, 0: all others, -1: unlabelled) and the two names."""
    classes = read_targets(y, unlabeled)
    names = classes.names
    if positive is None:
        if len(names) > 2:
            accepted = (
                "a plan compares two classes; choose one of these to plan it against the rest"
                " (positive=..., --positive)"
            )
            raise InvalidInput("y", names.tolist(), accepted)
        positive = names[1]
    listed = names.tolist()
    match = [i for i, name in enumerate(listed) if name == positive or str(name) == str(positive)]
    if not match:
        raise InvalidInput(
            "positive", positive, f"no such class; {nearest(str(positive), map(str, listed))}"
        )
    codes = np.where(classes.codes < 0, -1, (classes.codes == match[0]) * 1)
    rest = listed[1 - match[0]] if len(listed) == 2 else "the rest"
    return codes, (rest, listed[match[0]])


def _check_counts(codes: Array, names: tuple[Any, Any], unlabeled: Any) -> None:
    for code, name in enumerate(names):
        count = int((codes == code).sum())
        if count < 2:
            accepted = f"must have at least 2 labelled samples of each class; {name!r} has {count}"
            raise InvalidInput("y", f"{count} samples of {name!r}", accepted)
    if not (codes < 0).any():
        accepted = (
            "must have unlabelled samples: without them a supervised fit uses all labels"
            f" (unlabelled samples are marked by {unlabeled!r})"
        )
        raise InvalidInput("y", f"{len(codes)} labelled samples", accepted)


def _sample(codes: Array, random: np.random.RandomState) -> Array:
    """Return the positions of the samples that are used, in their order."""
    kept = []
    for places, most in (
        (np.flatnonzero(codes >= 0), MOST_LABELED),
        (np.flatnonzero(codes < 0), MOST_UNLABELED),
    ):
        many = len(places) > most
        kept.append(random.choice(places, most, replace=False) if many else places)
    return np.sort(np.concatenate(kept))


def _columns(matrix: Any) -> list[str]:
    constant = int(np.count_nonzero(extremes(as_rows(matrix)).constant))
    if constant == matrix.shape[1]:
        raise InvalidInput("X", f"{constant} constant columns", "must have a column that varies")
    return [f"{constant} constant columns are ignored."] if constant else []


def _duplicates(matrix: Any, codes: Array) -> list[str]:
    """Return remarks on repeated samples, and on those of them labelled with both classes."""
    seen: dict[bytes, int] = {}
    repeated = contradictions = 0
    for content, code in zip(contents(matrix), codes, strict=True):
        if content not in seen:
            seen[content] = int(code)
            continue
        repeated += 1
        contradictions += seen[content] >= 0 and code >= 0 and seen[content] != code
        seen[content] = max(seen[content], int(code))
    remarks = []
    if repeated:
        remarks.append(
            f"{repeated} samples repeat another one: they count, but add no information."
        )
    if contradictions:
        remarks.append(f"{contradictions} samples are labelled with both classes.")
    return remarks
