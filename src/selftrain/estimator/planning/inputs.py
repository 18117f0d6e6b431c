"""The checked input of a plan: two classes, enough labels, samples as any classifier takes them.

Very long tables are subsampled: of the unlabelled samples, so many that a fit no longer changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ...arrays import Array
from ...errors import InvalidInput, nearest
from ..blocks import is_dask, is_sparse
from ..checks import identifiers, listed
from ..prepared import contents
from ..targets import read_targets

Flags = NDArray[np.bool_]

MOST_UNLABELED = 20_000
"""Unlabelled samples that are used; more change the error of a fit by less than 0.001."""

MOST_LABELED = 5_000
"""Labelled samples that are used: with more there is nothing to plan."""


@dataclass(frozen=True)
class Input:
    """Samples of a plan.

    Attributes:
        X: the samples that are used: an array, a DataFrame or a sparse matrix.
        codes: 1 and 0 for the classes, -1 if unlabelled.
        names: of the negative and the positive class.
        labeled, unlabeled: numbers of samples that were given.
        marker: of unlabelled samples, as it was given.
        remarks: sentences about unusual samples.
        identifiers: columns that number the samples.
    """

    X: Any
    codes: Array
    names: Array
    labeled: int
    unlabeled: int
    marker: Any = -1
    remarks: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()

    @cached_property
    def contents(self) -> Array:
        """One number per sample, equal for equal samples, in the order of their first ones: the
        same for the same samples in any container.
        """
        if is_sparse(self.X) or (isinstance(self.X, np.ndarray) and self.X.dtype.kind in "iufb"):
            ids: dict[bytes, int] = {}
            return np.array([ids.setdefault(each, len(ids)) for each in contents(self.X)])
        import pandas as pd

        hashes = pd.util.hash_pandas_object(pd.DataFrame(self.X), index=False)
        return np.asarray(pd.factorize(hashes)[0])

    def part(self, which: Any) -> Any:
        """Return some samples, by their flags."""
        return _safe_indexing(self.X, np.flatnonzero(which))

    def targets(self, known: Flags, marker: Any) -> Array:
        """Return the classes of `known` samples, and the marker for all others."""
        values = [self.names[self.codes[i]] if known[i] else marker for i in range(len(known))]
        whole = self.names.dtype.kind in "iu" and isinstance(marker, int)
        return np.array(values, dtype=self.names.dtype if whole else object)


def read_input(
    X: Any, y: Any, unlabeled: Any, positive: Any, random: np.random.RandomState
) -> Input:
    """Check samples and classes, and subsample them if there are very many."""
    codes, names = _two_classes(y, unlabeled, positive)
    if not (hasattr(X, "iloc") or hasattr(X, "shape")):
        X = np.asarray(X)
    if len(codes) != X.shape[0]:
        accepted = f"must have one per sample of X: {X.shape[0]}"
        raise InvalidInput("y", f"{len(codes)} entries", accepted)
    _check_counts(codes, names, unlabeled)
    known, others = int((codes >= 0).sum()), int((codes < 0).sum())
    counting = tuple(identifiers(X))
    kept = _sample(codes, random)
    remarks: tuple[str, ...] = ()
    if len(kept) < len(codes):
        X, codes = _safe_indexing(X, kept), codes[kept]
        remarks = (sampled(codes, known, others),)
    if is_dask(X):
        X = np.asarray(X.compute())
    rows = Input(X.tocsr() if is_sparse(X) else X, codes, names, known, others, unlabeled)
    return replace(
        rows, remarks=(*remarks, *_missing(rows.X), *_duplicates(rows)), identifiers=counting
    )


def _missing(X: Any) -> list[str]:
    """Return a remark on missing numbers."""
    if is_sparse(X):
        return []
    import pandas as pd

    table = X if hasattr(X, "select_dtypes") else pd.DataFrame(np.asarray(X))
    counts = table.select_dtypes("number").isna().sum()
    some = [str(name) for name in counts.index[counts > 0]]
    if not some:
        return []
    entries = int(counts.sum())
    words = f"{entries} missing entr{'y' if entries == 1 else 'ies'} in {listed(some)}"
    return [f"{words}: the default models take the median of the column."]


def sampled(codes: Array, labeled: int, unlabeled: int) -> str:
    """Return the remark on subsampling."""
    used, others = int((codes >= 0).sum()), int((codes < 0).sum())
    return (
        f"{used} of {labeled} labelled and {others} of {unlabeled} unlabelled samples were used, "
        "drawn at random."
    )


def _two_classes(y: Any, unlabeled: Any, positive: Any) -> tuple[Array, Array]:
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
    if len(listed) > 2:
        return codes, np.array(["the rest", str(listed[match[0]])], dtype=object)
    return codes, names[[1 - match[0], match[0]]]


def _check_counts(codes: Array, names: Array, unlabeled: Any) -> None:
    for code, name in enumerate(names.tolist()):
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


def _duplicates(rows: Input) -> list[str]:
    """Return remarks on repeated samples, and on those of them labelled with both classes."""
    _, group = np.unique(rows.contents, return_inverse=True)
    different = 1 + int(group.max())
    if different == 1:
        raise InvalidInput("X", "equal samples", "must have a column that varies")
    zeros, ones = (np.bincount(group[rows.codes == code], minlength=different) for code in (0, 1))
    repeated, both = len(group) - different, int(np.minimum(zeros, ones).sum())
    remarks = []
    if repeated:
        remarks.append(f"{repeated} samples repeat another one.")
    if both:
        remarks.append(f"{both} samples are labelled with both classes.")
    return remarks
