r"""Estimates from labelled data: class means and shrunk covariances.

The shrunk covariance of n rows around their class means is $F^\top F + \ell I$, where F has n rows.
A reduction needs only the singular values of F, so no matrix of features by features is formed if
there are few rows and many features.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from .covariances import SAME_MEAN, VANISHING, finite


class RowSource(NamedTuple):
    """Labelled rows and estimation options: the arguments of `Clusters.from_data`.

    Shrinkage depends on the features, so reduced clusters are estimated again from their rows.
    """

    X: Any
    y: Any
    shrinkage: str | float
    common: bool


class Factor(NamedTuple):
    """A covariance in factored form: rows.T @ rows + level * identity."""

    rows: Array
    level: float

    def matrix(self) -> Array:
        """Return the covariance as a matrix."""
        return np.asarray(self.rows.T @ self.rows + self.level * np.eye(self.rows.shape[1]))

    def along(self, basis: Array) -> Factor:
        """Return the covariance in the coordinates of an orthonormal basis (columns)."""
        return Factor(self.rows @ basis, self.level)


class Factored(NamedTuple):
    """An estimate with factored covariances (one, or negative and positive); `means` are relative
    to the midpoint.
    """

    means: Array
    covariances: tuple[Factor, ...]
    midpoint: Array
    names: tuple[str, ...] | None

    @property
    def average(self) -> Factor:
        """The average covariance of the classes."""
        count = len(self.covariances)
        rows = np.concatenate([each.rows for each in self.covariances]) / math.sqrt(count)
        return Factor(rows, sum(each.level for each in self.covariances) / count)


def estimate(source: RowSource) -> dict[str, Any]:
    """Return estimated arguments of `Clusters`; see `Clusters.from_data`."""
    found = factored(source)
    both = tuple(each.matrix() for each in found.covariances)
    means = {"mean": found.means[1]} if len(found.means) == 2 else {"means": found.means}
    covariance = both[0] if len(both) == 1 else both
    return {**means, "covariance": covariance, "midpoint": found.midpoint, "names": found.names}


def factored(source: RowSource) -> Factored:
    """Estimate clusters from labelled rows, with factored covariances."""
    rows, labels, names = classified_rows(source.X, source.y)
    kinds = int(labels.max()) + 1
    constant = np.flatnonzero(np.ptp(rows, axis=0) == 0)
    if constant.size:
        which = ", ".join(names[i] if names else str(i) for i in constant[:5])
        accepted = f"every column must vary; these are constant, drop them: {which}"
        raise InvalidInput("X", f"{constant.size} constant columns", accepted)
    origin = rows[0].copy()
    rows -= origin  # with a large offset the variance would lose digits by cancellation
    sides = [rows[labels == kind] for kind in range(kinds)]
    for kind, side in enumerate(sides):
        if len(side) < 2:
            name = ("negative class", "positive class")[kind] if kinds == 2 else f"class {kind}"
            accepted = f"must have at least two rows of each class; the {name} has {len(side)}"
            raise InvalidInput("y", f"{len(side)} rows", accepted)
    if kinds > 2 and not source.common:
        accepted = f"must be True for {kinds} classes: they have one covariance"
        raise InvalidInput("common", source.common, accepted)
    centres = [side.mean(axis=0) for side in sides]
    centred = [side - centre for side, centre in zip(sides, centres, strict=True)]
    groups = [np.concatenate(centred)] if source.common else centred
    if kinds == 2:
        half, middle = 0.5 * (centres[1] - centres[0]), 0.5 * (centres[1] + centres[0])
        means = np.stack([-half, half])
    else:
        middle = np.mean(centres, axis=0)
        means = np.array(centres) - middle
    shrunk = tuple(_shrunk(group, source.shrinkage) for group in groups)
    return Factored(means, shrunk, origin + middle, names)


def leading_directions(found: Factored, k: int) -> tuple[Array, float]:
    r"""Return the k leading eigenvectors of the covariance of all rows, $\bar\Sigma +
    \mu\mu^\top$, as columns, and the fraction of the squared separation along them.

    Signs are chosen so that the largest entry of each is positive. Beyond the rank of the rows all
    directions have the same variance, and any of them may be returned.
    """
    average, classes = found.average, len(found.means)
    # The scatter of the means; of two means, which are opposite, one is enough.
    between = found.means[1:] if classes == 2 else found.means / math.sqrt(classes)
    stacked = np.vstack([average.rows, between])
    short = max(0, k - len(stacked))  # zero rows give directions beyond the rank
    padded = np.pad(stacked, ((0, short), (0, 0)))
    basis = np.linalg.svd(padded, full_matrices=False)[2][:k].T
    basis = basis * np.where(basis[np.abs(basis).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
    along = average.along(basis)
    whole = sum(squared_separation(mean, average) for mean in between)
    left = sum(squared_separation(mean @ basis, along) for mean in between)
    kept = 1.0 if math.isinf(left) else (0.0 if math.isinf(whole) else left / whole)
    return basis, kept


def squared_separation(mean: Array, noise: Factor) -> float:
    r"""Return $\mu^\top \Sigma^{-1} \mu$; infinite if the means differ along a direction without
    noise.
    """
    _, singular, axes = np.linalg.svd(noise.rows, full_matrices=False)
    inside = axes @ mean
    outside = float(np.linalg.norm(mean - inside @ axes))
    variances = singular**2 + noise.level
    least = VANISHING * float(variances.max())
    alive = variances > least
    total = float((inside[alive] ** 2 / variances[alive]).sum())
    beyond = math.hypot(outside, float(np.linalg.norm(inside[~alive])))
    if beyond <= SAME_MEAN * float(np.linalg.norm(mean)):
        return total
    return total + beyond**2 / noise.level if noise.level > least else math.inf


def _shrunk(rows: Array, shrinkage: str | float) -> Factor:
    """Return the shrunk covariance of centred rows."""
    weight = _shrinkage_weight(rows, shrinkage)
    level = float((rows**2).sum()) / rows.size
    return Factor(math.sqrt((1 - weight) / len(rows)) * rows, weight * level)


def _shrinkage_weight(rows: Array, shrinkage: str | float) -> float:
    """Return the weight of the multiple of the identity with the same trace, from 0 to 1."""
    if isinstance(shrinkage, str) and shrinkage in ("auto", "ledoit-wolf", "oas"):
        return _oas(rows) if shrinkage == "oas" else _ledoit_wolf(rows)
    accepted = 'must be "auto", "ledoit-wolf", "oas" or a number from 0 to 1'
    single = np.ndim(shrinkage) == 0 and not isinstance(shrinkage, (str, bool))
    if not single or not 0 <= shrinkage <= 1:  # type: ignore[operator]
        raise InvalidInput("shrinkage", shrinkage, accepted)
    return float(shrinkage)


def _ledoit_wolf(rows: Array) -> float:
    r"""Return the weight of Ledoit and Wolf (2004), as in scikit-learn.

    Since $\|X^\top X\|^2 = \|X X^\top\|^2$ and $\sum_{ij} (X^{2\top} X^2)_{ij} = \sum_k |x_k|^4$,
    only the smaller of the two products is formed.
    """
    count, features = rows.shape
    lengths = (rows**2).sum(axis=1)
    level = float(lengths.sum()) / (count * features)
    square = _squared_norm(rows) / count**2
    distance = square / features - level**2
    noise = (float(lengths @ lengths) / count - square) / (count * features)
    noise = min(noise, distance)
    return 0.0 if noise <= 0 or features == 1 else noise / distance


def _oas(rows: Array) -> float:
    """Return the weight of oracle approximating shrinkage (Chen et al., 2010), as in
    scikit-learn.
    """
    count, features = rows.shape
    level = float((rows**2).sum()) / rows.size
    mean_square = _squared_norm(rows) / (count * features) ** 2
    distance = (count + 1) * (mean_square - level**2 / features)
    if features == 1:
        return 0.0
    return 1.0 if distance == 0 else min((mean_square + level**2) / distance, 1.0)


def _squared_norm(rows: Array) -> float:
    """Return the squared Frobenius norm of rows.T @ rows, which is that of rows @ rows.T."""
    count, features = rows.shape
    product = rows @ rows.T if count < features else rows.T @ rows
    return float((product**2).sum())


def as_rows(X: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Return rows as a dense array, and the names of their columns if there are any."""
    columns = getattr(X, "columns", None)
    names = None if columns is None else tuple(str(name) for name in columns)
    if hasattr(X, "toarray"):
        X = X.toarray()
    rows = finite("X", X)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInput("X", f"shape {rows.shape}", "must be a table of rows by features")
    return rows, names


def classified_rows(X: Any, y: Any) -> tuple[Array, Any, tuple[str, ...] | None]:
    """Return the rows, the index of the class of each, and the names of the columns."""
    import pandas as pd

    rows, names = as_rows(X)
    values = np.asarray(y)
    if values.shape != (len(rows),):
        accepted = f"must have one class per row, shape ({len(rows)},), not {values.shape}"
        raise InvalidInput("y", values, accepted)
    if pd.isna(values).any():
        raise InvalidInput("y", values, "must have a class for every row; some are missing")
    try:
        kinds, index = np.unique(values, return_inverse=True)
    except TypeError:
        accepted = "must have classes of one type, all numbers or all strings"
        raise InvalidInput("y", values, accepted) from None
    if kinds.size < 2:
        raise InvalidInput("y", kinds.tolist(), "must have two classes or more")
    return rows, index.ravel(), names
