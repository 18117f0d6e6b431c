"""Targets as users give them: class names, with a marker for unlabelled samples."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ..errors import InvalidInput

Names = NDArray[Any]

LIKE_MARKERS = ("?", "unknown", "unlabeled", "unlabelled", "NA", "N/A", "nan", "None")
"""Class names that often mean "unlabelled": `warn_like_markers` warns about them."""


class Classes(NamedTuple):
    """Names of the classes, and for every sample the index of its class (-1: unlabelled)."""

    names: Names
    codes: Names


def read_targets(y: Any, unlabeled: Any) -> Classes:
    """Return the classes in `y` and the class index of every sample.

    Arguments:
        y: one class name per sample; the marker, NaN, None, NaT or an empty string if unlabelled.
        unlabeled: the marker; the number -1 also matches the string "-1".

    Numbers marked both by the number `unlabeled` and as missing give a warning: one of the two may
    be a class.

    >>> read_targets(["spam", -1, "ham", None, ""], -1).codes.tolist()
    [1, -1, 0, -1, -1]
    """
    if y is None:
        raise ValueError(
            "a classifier requires y to be passed, but the target y is None; unlabelled samples"
            f" are marked by {unlabeled!r}"
        )
    values = column_or_1d(plain_targets(y), warn=True)
    marked = is_marker(values, unlabeled)
    known = values[~marked]
    if known.size == 0:
        raise InvalidInput(
            "y",
            f"{len(values)} samples",
            f"must have labelled samples (unlabelled: {unlabeled!r}, NaN, None or empty)",
        )
    if known.dtype == object:
        known = _same_kind(known)
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        raise InvalidInput(
            "y",
            "inf",
            f"Input y contains infinity; unlabelled samples have {unlabeled!r}, NaN or None",
        )
    check_classification_targets(known)
    names, found = np.unique(known, return_inverse=True)
    if len(names) < 2:
        raise InvalidInput("y", names.tolist(), _one_class(bool(marked.any()), unlabeled))
    codes = np.full(len(values), -1)
    codes[~marked] = found
    if _are_numbers([*names.tolist(), unlabeled]) and _marked_twice(values[marked]):
        warnings.warn(
            f"y has {unlabeled!r} and missing values (NaN, None or empty): both mean unlabelled; if"
            f" {unlabeled!r} is a class, pass unlabeled=None",
            UserWarning,
            stacklevel=4,
        )
    warn_like_markers(names, level=5)
    return Classes(names, codes)


def warn_like_markers(names: Names, level: int) -> None:
    """Warn if a class looks like a marker; `level` is the `stacklevel` of the warning."""
    for name in set(map(str, names.tolist())) & set(LIKE_MARKERS):
        warnings.warn(
            f"{name!r} is a class of y; if it marks unlabelled samples, pass unlabeled={name!r}",
            UserWarning,
            stacklevel=level,
        )


def _are_numbers(values: list[Any]) -> bool:
    """Return whether all values are numbers, or text of numbers."""
    try:
        np.array(values, dtype=object).astype(float)
    except (TypeError, ValueError):
        return False
    return True


def _marked_twice(values: Names) -> bool:
    """Return whether some unlabelled samples have the marker and others are missing."""
    missing = is_marker(values, None)
    return bool(missing.any() and not missing.all())


def warn_about_labels(target: Classes, unlabeled: Any) -> None:
    """Warn the caller of `fit` if no sample is unlabelled, or a class has one labelled sample."""
    counts = np.bincount(target.codes[target.codes >= 0], minlength=len(target.names))
    if not (target.codes < 0).any():
        warnings.warn(
            "y has no unlabelled sample: this is a supervised fit "
            f"(unlabelled samples are marked by {unlabeled!r})",
            UserWarning,
            stacklevel=4,
        )
    if counts.min() < 2:
        few = repr(target.names.tolist()[counts.argmin()])
        warnings.warn(
            f"class {few} has 1 labelled sample: cross-validation needs 2 or more per class",
            UserWarning,
            stacklevel=4,
        )


def _one_class(marked: bool, unlabeled: Any) -> str:
    accepted = "the labelled samples have 1 class, at least 2 classes are needed"
    if not marked:
        return accepted
    return (
        f"{accepted}; {unlabeled!r} marks unlabelled samples: if it is a class, choose another"
        " marker (unlabeled=...)"
    )


def is_marker(values: Names, unlabeled: Any) -> Names:
    """Return where a sample is unlabelled: the marker, a missing value or an empty string.

    >>> is_marker(np.array(["a", "-1", ""]), -1).tolist()
    [False, True, True]
    >>> is_marker(np.array([0.0, np.nan, -1.0]), -1).tolist()
    [False, True, True]
    """
    import pandas as pd

    missing = np.asarray(pd.isna(values))
    if values.dtype.kind in "US":
        return np.asarray((values == str(unlabeled)) | (np.char.strip(values) == ""))
    if values.dtype == object:
        texts = [isinstance(value, str) and not value.strip() for value in values]
        equal = [not gone and _equal(v, unlabeled) for v, gone in zip(values, missing, strict=True)]
        return np.asarray(missing | np.array(texts, dtype=bool) | np.array(equal, dtype=bool))
    if unlabeled is None or unlabeled != unlabeled or isinstance(unlabeled, str):
        return missing
    return np.asarray(missing | (values == unlabeled))


def _equal(value: Any, marker: Any) -> bool:
    if isinstance(value, str) != isinstance(marker, str):
        return str(value) == str(marker) and isinstance(value, str)
    return bool(value == marker)


def plain_targets(y: Any) -> Any:
    """Return targets as an array, without changing any value.

    Lists of mixed types, and integers beyond 64 bits or with missing values, become arrays of
    objects: numpy would turn them into strings or floats.
    """
    if hasattr(y, "to_numpy"):
        return y.to_numpy(dtype=object) if getattr(y, "hasnans", False) else y.to_numpy()
    if isinstance(y, (list, tuple)) and (len({type(value) for value in y}) > 1 or _long(y)):
        values = np.empty(len(y), dtype=object)
        values[:] = y
        return values
    return np.asarray(y)


def _long(y: Sequence[Any]) -> bool:
    """Return whether an integer exceeds int64: numpy would convert the list to floats, and
    different integers could become equal.
    """
    return any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in y)


def _same_kind(known: Names) -> Names:
    kinds = {str if isinstance(value, str) else float for value in known}
    if kinds == {str}:
        return known.astype(str).astype(object)
    if str in kinds:
        raise InvalidInput(
            "y",
            sorted({str(value) for value in known})[:5],
            "classes must not mix names and numbers",
        )
    listed = known.tolist()
    whole = all(type(each) is int for each in listed)
    found = _whole_numbers(listed) if whole else np.array(listed)
    if found.ndim != 1 or found.dtype == object or len(np.unique(found)) < len(set(listed)):
        raise InvalidInput(
            "y",
            listed[:5],
            "classes must have one type: text, bool, int64, uint64 or float64 (others as text)",
        )
    return found


def _whole_numbers(listed: list[int]) -> Names:
    """Return integers as int64, uint64 or objects; as floats, different ones could be equal."""
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= min(listed) and max(listed) <= np.iinfo(kind).max:
            return np.array(listed, dtype=kind)
    return np.array(listed, dtype=object)


def no_such_class(field: str, name: Any, names: list[Any]) -> InvalidInput:
    """Return the error for an unknown class; `'0'` and `0` are different.

    >>> print(no_such_class("class_weight", "0", [0, 1]))
    class_weight = '0': no such class; did you mean 0? known: 0, 1
    """
    known = ", ".join(map(repr, names))
    close = difflib.get_close_matches(str(name), map(str, names), n=1)
    meant = next((repr(each) for each in names if [str(each)] == close), None)
    hint = f"did you mean {meant}? " if meant else ""
    return InvalidInput(field, name, f"no such class; {hint}known: {known}")
