"""The shape of labelled rows: their classes, the means of these, and covariances pulled towards the
sphere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .covariances import finite
from .errors import InvalidInput


class Estimate(NamedTuple):
    """Mean, covariance, midpoint and names of the columns of labelled rows, as `Clusters` takes
    them.
    """

    mean: Array
    covariance: Any
    midpoint: Array
    names: tuple[str, ...] | None


class RowSource(NamedTuple):
    """Labelled rows and how their covariances are estimated: the arguments of `Clusters.from_data`.

    A covariance that is shrunk depends on the directions that rows are brought to, so a shape that
    is reduced is estimated again from its rows.
    """

    X: Any
    y: Any
    shrinkage: str | float
    common: bool


def estimate(source: RowSource) -> Estimate:
    """The shape of labelled rows; see `Clusters.from_data`."""
    shrinkage, common = source.shrinkage, source.common
    rows, labels, names = labelled_rows(source.X, source.y)
    constant = np.flatnonzero(np.ptp(rows, axis=0) == 0)
    if constant.size:
        which = ", ".join(names[i] if names else str(i) for i in constant[:5])
        accepted = f"columns must vary; these are constant, drop them: {which}"
        raise InvalidInput("X", f"{constant.size} constant columns", accepted)
    sides = [rows[~labels], rows[labels]]
    for name, side in zip(("negative", "positive"), sides, strict=True):
        if len(side) < 2:
            accepted = (
                f"at least two rows of each class are needed; the {name} class has {len(side)}"
            )
            raise InvalidInput("y", f"{len(side)} rows", accepted)
    centres = [side.mean(axis=0) for side in sides]
    centred = [side - centre for side, centre in zip(sides, centres, strict=True)]
    if common:
        covariance: Any = _shrunk(np.concatenate(centred), shrinkage)
    else:
        covariance = tuple(_shrunk(side, shrinkage) for side in centred)
    mean, midpoint = 0.5 * (centres[1] - centres[0]), 0.5 * (centres[1] + centres[0])
    return Estimate(mean, covariance, midpoint, names)


def _shrunk(rows: Array, shrinkage: str | float) -> Array:
    """The covariance of centred rows, pulled towards the sphere."""
    from sklearn.covariance import ledoit_wolf, oas

    estimators = {"auto": ledoit_wolf, "ledoit-wolf": ledoit_wolf, "oas": oas}
    if isinstance(shrinkage, str) and shrinkage in estimators:
        matrix, _ = estimators[shrinkage](rows, assume_centered=True)
        return np.asarray(matrix, dtype=float)
    accepted = '"auto", "ledoit-wolf", "oas" or a number from 0 to 1 is accepted'
    if isinstance(shrinkage, (str, bool)) or not np.ndim(shrinkage) == 0:
        raise InvalidInput("shrinkage", shrinkage, accepted)
    if not 0 <= shrinkage <= 1:
        raise InvalidInput("shrinkage", shrinkage, accepted)
    plain = rows.T @ rows / len(rows)
    level = float(np.trace(plain)) / len(plain)
    shrunk: Array = (1 - shrinkage) * plain + shrinkage * level * np.eye(len(plain))
    return shrunk


def as_rows(X: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Rows as a dense array, and the names of their columns if they have any."""
    columns = getattr(X, "columns", None)
    names = None if columns is None else tuple(str(name) for name in columns)
    if hasattr(X, "toarray"):
        X = X.toarray()
    rows = finite("X", X)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInput("X", f"shape {rows.shape}", "a table of rows by features is accepted")
    return rows, names


def labelled_rows(X: Any, y: Any) -> tuple[Array, Any, tuple[str, ...] | None]:
    """Rows, whether each is of the positive class, names of the columns."""
    import pandas as pd

    rows, names = as_rows(X)
    values = np.asarray(y)
    if values.shape != (len(rows),):
        accepted = (
            f"one class per row is accepted: {len(rows)} of them, not the shape {values.shape}"
        )
        raise InvalidInput("y", values, accepted)
    if pd.isna(values).any():
        raise InvalidInput("y", values, "every row needs a class; some have none")
    try:
        kinds = np.unique(values)
    except TypeError:
        accepted = "classes of one type are accepted, all numbers or all words"
        raise InvalidInput("y", values, accepted) from None
    if kinds.size != 2:
        shown: Sequence[Any] = kinds[:5].tolist()
        accepted = f"two classes are needed; here are {kinds.size}"
        raise InvalidInput("y", shown, accepted)
    return rows, values == kinds[1], names
