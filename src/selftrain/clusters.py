r"""The shape of the data: two clusters with their own covariances, in the units of the rows.

$x = $ midpoint $+ s\mu + z$ with $s = \pm 1$ and $z \sim N(0, \Sigma_s)$. `mean` is $\mu$, half the difference of the two
class means; `covariance` is $\Sigma$, or a pair. The paper's clusters are the sphere $\Sigma = \Delta I$, $|\mu| = 1$.
`Problem(clusters=...)` takes such a shape in place of `delta`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import Array
from .errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Clusters", "Modes", "labelled_rows"]

ASYMMETRY = 1e-8
"""A covariance may differ from its transpose by this much, relative to its largest entry."""

NEGATIVE = 1e-9
"""Eigenvalues down to minus this share of the largest one are rounding, and count as zero."""


class Modes(NamedTuple):
    r"""A shape in coordinates in which every covariance is diagonal.

    Attributes:
        variances: $s_{ki}$, one row per covariance (one, or negative and positive), one column per mode.
        mean: $\mu_i$.
        copies: features that share the mode: equal variances are one mode, along the mean inside it.
        basis: columns are the directions of the modes; None if modes are features or groups of them.
        group: the mode of each feature when `basis` is None.
    """

    variances: Array
    mean: Array
    copies: Array
    basis: Array | None
    group: NDArray[np.intp] | None


class LinearRule(NamedTuple):
    """A linear rule: positive where weights times (row - midpoint) + bias > 0, and its error."""

    weights: Array
    bias: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    r"""Two Gaussian clusters of any shape.

    Arguments:
        mean: $\mu$, half the difference of the class means (positive minus negative), one entry per feature.
        covariance: of a row around the mean of its class: a number (a sphere), a vector (one variance per
            feature), a matrix, or a tuple (negative, positive) of two of these.
        midpoint: the middle of the two class means in the units of the rows; zero by default.
        names: of the features, if they have names.
        directions: the columns that rows were projected on (`reduce`), or None.
        kept: share of the squared separation that a reduction kept.

    >>> clusters = Clusters(mean=[1.0, 0.5, 0.0], covariance=[1.0, 0.25, 4.0])
    >>> clusters
    Clusters(3 features, one covariance, separation 1.41421)
    >>> round(clusters.effective_dimension, 4)
    1.6154
    """

    mean: Array
    covariance: Any
    midpoint: Array | None = None
    names: tuple[str, ...] | None = None
    directions: Array | None = None
    kept: float = 1.0

    def __post_init__(self) -> None:
        mean = _array("mean", self.mean)
        if mean.ndim != 1 or mean.size == 0:
            raise InvalidInput("mean", self.mean, "a vector with one entry per feature is accepted")
        if not np.any(mean):
            accepted = "a mean of zero leaves nothing that tells the classes apart; any other vector is accepted"
            raise InvalidInput("mean", self.mean, accepted)
        _freeze(self, "mean", mean)
        pair = _pair(self.covariance)
        names = (
            ("covariance",) if len(pair) == 1 else ("negative covariance", "positive covariance")
        )
        checked = tuple(
            _covariance(name, value, mean.size) for name, value in zip(names, pair, strict=True)
        )
        object.__setattr__(self, "covariance", checked if len(checked) > 1 else checked[0])
        midpoint = np.zeros(mean.size) if self.midpoint is None else self.midpoint
        midpoint = _array("midpoint", midpoint)
        if self.directions is not None:
            directions = _array("directions", self.directions)
            if directions.ndim != 2 or directions.shape[1] != mean.size:
                accepted = f"a matrix with {mean.size} columns is accepted"
                raise InvalidInput("directions", self.directions, accepted)
            _freeze(self, "directions", directions)
        rows = mean.size if self.directions is None else len(self.directions)
        if self.midpoint is None:
            midpoint = np.zeros(rows)
        if midpoint.shape != (rows,):
            raise InvalidInput("midpoint", self.midpoint, f"a vector of {rows} entries is accepted")
        _freeze(self, "midpoint", midpoint)
        if self.names is not None:
            object.__setattr__(self, "names", tuple(str(name) for name in self.names))

    @classmethod
    def from_data(
        cls, X: Any, y: Any, shrinkage: str | float = "auto", common: bool = True
    ) -> Clusters:
        """The shape of labelled rows.

        Arguments:
            X: rows by features: an array, a DataFrame or a sparse matrix. Standardise it first if its columns have
                different units: the ridge treats all directions alike.
            y: the class of each row, two different values; the larger one is the positive class.
            shrinkage: "auto" or "ledoit-wolf" and "oas" (the estimators of scikit-learn), or a number in [0, 1]:
                the weight of the sphere of the same trace (0: the plain covariance).
            common: one covariance for both classes, or (False) one for each.

        >>> import numpy as np
        >>> rows = np.array([[3.0, 1.0], [1.0, 2.0], [-1.0, 1.0], [-3.0, 2.0]])
        >>> Clusters.from_data(rows, ["yes", "yes", "no", "no"], shrinkage=0).mean
        array([2., 0.])
        """
        rows, labels, names = labelled_rows(X, y)
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
        return cls(mean, covariance, midpoint, names)

    def __repr__(self) -> str:
        kind = "two covariances" if self.pair else "one covariance"
        return f"Clusters({self.features} features, {kind}, separation {self.separation:.6g})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Clusters) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        arrays = [self.mean, *self.covariances, self.midpoint, self.directions]
        return tuple((a.shape, a.tobytes()) for a in arrays if a is not None)

    @property
    def features(self) -> int:
        """N, the number of features."""
        return int(self.mean.size)

    @property
    def pair(self) -> bool:
        """Whether the two classes have their own covariances."""
        return isinstance(self.covariance, tuple)

    @property
    def covariances(self) -> tuple[Array, ...]:
        """The one covariance, or those of the negative and the positive class, as given."""
        return self.covariance if self.pair else (self.covariance,)

    @property
    def diagonal(self) -> bool:
        """Whether every covariance is a number or a vector."""
        return all(matrix.ndim < 2 for matrix in self.covariances)

    @property
    def length(self) -> float:
        r"""$|\mu|$, half the distance of the class means."""
        return float(np.linalg.norm(self.mean))

    @property
    def average(self) -> Array:
        """The average covariance of the two classes, a vector or a matrix."""
        full = [_widened(matrix, self.features) for matrix in self.covariances]
        if any(matrix.ndim == 2 for matrix in full):
            full = [np.diag(matrix) if matrix.ndim == 1 else matrix for matrix in full]
        average: Array = sum(full[1:], full[0]) / len(full)
        return average

    @cached_property
    def separation(self) -> float:
        r"""$\sqrt{\mu^T \Sigma^{-1} \mu}$: half the distance of the means in units of the (average) noise.

        With one covariance no rule errs less than H(separation) on balanced classes. Infinite if the means differ
        where the noise has no variance.
        """
        spectrum, mean = self.spectrum
        alive = spectrum > NEGATIVE * 1e-3 * spectrum.max()
        if np.linalg.norm(mean[~alive]) > 1e-12 * self.length:
            return math.inf
        return float(np.sqrt((mean[alive] ** 2 / spectrum[alive]).sum()))

    @property
    def effective_dimension(self) -> float:
        r"""$(\mathrm{tr}\,\Sigma)^2/\mathrm{tr}\,\Sigma^2$ of the average covariance: how many directions carry the noise."""
        spectrum, _ = self.spectrum
        return float(spectrum.sum() ** 2 / (spectrum**2).sum())

    @property
    def sphere(self) -> float:
        r"""$\Delta$ of the sphere with the same trace and $|\mu| = 1$: what the paper's model makes of this shape."""
        spectrum, _ = self.spectrum
        return float(spectrum.mean() / self.length**2)

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Variances of the average covariance, largest first, and the mean along their directions."""
        average = self.average
        if average.ndim == 1:
            order = np.argsort(-average, kind="stable")
            return average[order], self.mean[order]
        values, vectors = _eigen(average)
        return values[::-1], (self.mean @ vectors)[::-1]

    @cached_property
    def modes(self) -> Modes | None:
        """The coordinates in which every covariance is diagonal; None if two matrices have none in common."""
        if self.diagonal:
            full = np.array([_widened(matrix, self.features) for matrix in self.covariances])
            kinds, group = np.unique(full, axis=1, return_inverse=True)
            group = group.ravel()
            square = np.bincount(group, self.mean**2)
            return Modes(kinds, np.sqrt(square), np.bincount(group).astype(float), None, group)
        if self.pair:
            return None
        values, vectors = _eigen(self.covariance)
        return Modes(values[None], self.mean @ vectors, np.ones(self.features), vectors, None)

    def best_rule(self, rho: float = 0.5) -> LinearRule:
        r"""The linear rule with the smallest error when everything is known; no linear method can beat it.

        With one covariance it is Fisher's direction $\Sigma^{-1}\mu$ in closed form. With two it is one of the family
        $(t\Sigma_+ + (1-t)\Sigma_-)^{-1}\mu$ of Anderson and Bahadur (1962), searched over t and the bias.

        >>> round(Clusters(mean=[1.0, 0.0], covariance=[1.0, 4.0]).best_rule().error, 6)
        0.158655
        """
        if not 0 < rho < 1:
            raise InvalidInput("rho", rho, "a number strictly between 0 and 1 is accepted")
        if math.isinf(self.separation):
            accepted = (
                "the means differ where the noise has no variance: the best rule makes no error"
            )
            raise InvalidInput("clusters", self, accepted)
        return best_rule(self, rho)

    def reduce(self, k: int) -> Clusters:
        r"""The shape along the k leading principal directions of the rows, $\bar\Sigma + \mu\mu^T$.

        `kept` of the result is the share of the squared separation that is left; `project` brings rows there.

        >>> small = Clusters(mean=[1.0, 0.1, 0.0], covariance=[4.0, 1.0, 0.1]).reduce(2)
        >>> small.features, round(small.kept, 6)
        (2, 1.0)
        """
        if (
            isinstance(k, bool)
            or not isinstance(k, (int, np.integer))
            or not 0 < k <= self.features
        ):
            raise InvalidInput("k", k, f"a whole number from 1 to {self.features} is accepted")
        average = self.average
        total = np.diag(average) if average.ndim == 1 else average
        _, vectors = np.linalg.eigh(total + np.outer(self.mean, self.mean))
        basis = vectors[:, ::-1][:, :k]
        basis = basis * np.where(basis[np.abs(basis).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
        shapes = []
        for matrix in self.covariances:
            wide = _widened(matrix, self.features)
            inside = basis.T @ (wide[:, None] * basis if wide.ndim == 1 else wide @ basis)
            shapes.append(0.5 * (inside + inside.T))
        directions = basis if self.directions is None else self.directions @ basis
        small = Clusters(
            self.mean @ basis,
            tuple(shapes) if self.pair else shapes[0],
            self.midpoint,
            self.names,
            directions,
        )
        whole, left = self.separation**2, small.separation**2
        share = 1.0 if math.isinf(left) else (0.0 if math.isinf(whole) else left / whole)
        object.__setattr__(small, "kept", self.kept * share)
        return small

    def project(self, X: Any) -> Array:
        """Rows relative to the midpoint, along the directions of `reduce` if there are any."""
        rows, _ = _rows(X)
        assert self.midpoint is not None
        if rows.shape[1] != self.midpoint.size:
            accepted = f"rows of {self.midpoint.size} features are accepted"
            raise InvalidInput("X", f"{rows.shape[1]} columns", accepted)
        rows = rows - self.midpoint
        return rows if self.directions is None else rows @ self.directions

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; `from_dict` gives the shape back."""
        plain: dict[str, Any] = {"mean": self.mean.tolist()}
        if self.pair:
            negative, positive = (matrix.tolist() for matrix in self.covariances)
            plain["covariance"] = {"negative": negative, "positive": positive}
        else:
            plain["covariance"] = self.covariance.tolist()
        assert self.midpoint is not None
        if np.any(self.midpoint):
            plain["midpoint"] = self.midpoint.tolist()
        if self.names is not None:
            plain["names"] = list(self.names)
        if self.directions is not None:
            plain |= {"directions": self.directions.tolist(), "kept": self.kept}
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Clusters:
        """The inverse of `to_dict`."""
        known = {"mean", "covariance", "midpoint", "names", "directions", "kept"}
        if not {"mean", "covariance"} <= set(values) <= known:
            accepted = "a mapping with mean and covariance is accepted"
            raise InvalidInput("clusters", dict(values), accepted)
        fields = dict(values)
        covariance = fields.pop("covariance")
        if isinstance(covariance, Mapping):
            covariance = (covariance["negative"], covariance["positive"])
        elif isinstance(covariance, list):
            covariance = np.asarray(covariance, dtype=float)
        return cls(covariance=covariance, **fields)

    def plot(self, **options: Any) -> Figure:
        """The spectrum, and the weight of the mean along it; see `selftrain.plots.clusters`."""
        from .plots.clusters import plot_clusters

        return plot_clusters(self, **options)


def _array(field: str, value: Any) -> Array:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(field, value, "numbers are accepted") from None
    if not np.isfinite(array).all():
        raise InvalidInput(field, value, "finite numbers are accepted, without NaN")
    return array


def _freeze(owner: Clusters, name: str, array: Array) -> None:
    array.setflags(write=False)
    object.__setattr__(owner, name, array)


def _pair(covariance: Any) -> tuple[Any, ...]:
    """A tuple is a pair; so is an array of two matrices."""
    if isinstance(covariance, tuple):
        if len(covariance) != 2:
            accepted = "a tuple has two covariances, of the negative and the positive class"
            raise InvalidInput("covariance", covariance, accepted)
        return covariance
    if np.ndim(covariance) == 3 and len(covariance) == 2:
        return (covariance[0], covariance[1])
    return (covariance,)


def _covariance(name: str, value: Any, features: int) -> Array:
    matrix = _array(name, value)
    if matrix.ndim > 2 or any(size != features for size in matrix.shape):
        accepted = (
            f"a number, a vector of {features}, a matrix of {features} by {features}, or a tuple of "
            f"two of these is accepted, not the shape {matrix.shape}"
        )
        raise InvalidInput(name, value, accepted)
    if matrix.ndim == 2:
        largest = float(np.abs(matrix).max())
        if float(np.abs(matrix - matrix.T).max()) > ASYMMETRY * largest:
            raise InvalidInput(name, value, "a symmetric matrix is accepted")
        matrix = 0.5 * (matrix + matrix.T)
        lowest, highest = np.linalg.eigvalsh(matrix)[[0, -1]]
    else:
        lowest, highest = float(matrix.min()), float(matrix.max())
    if (matrix.ndim < 2 and lowest < 0) or lowest < -NEGATIVE * abs(highest):
        accepted = f"variances must not be negative; its smallest one is {lowest:.3g}"
        raise InvalidInput(name, value, accepted)
    if not highest > 0:
        raise InvalidInput(name, value, "some variance has to be greater than zero")
    matrix.setflags(write=False)
    return matrix


def _widened(matrix: Array, features: int) -> Array:
    """A number as a vector; vectors and matrices as they are."""
    return np.full(features, float(matrix)) if matrix.ndim == 0 else matrix


def _eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, rounding below zero removed, and eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, 0.0), vectors


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


def _rows(X: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Rows as a dense array, and the names of their columns if they have any."""
    columns = getattr(X, "columns", None)
    names = None if columns is None else tuple(str(name) for name in columns)
    if hasattr(X, "toarray"):
        X = X.toarray()
    rows = _array("X", X)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidInput("X", f"shape {rows.shape}", "a table of rows by features is accepted")
    return rows, names


def labelled_rows(X: Any, y: Any) -> tuple[Array, Any, tuple[str, ...] | None]:
    """Rows, whether each is of the positive class, names of the columns."""
    rows, names = _rows(X)
    values = np.asarray(y)
    if values.shape != (len(rows),):
        accepted = (
            f"one class per row is accepted: {len(rows)} of them, not the shape {values.shape}"
        )
        raise InvalidInput("y", values, accepted)
    kinds = np.unique(values)
    if kinds.size != 2:
        shown: Sequence[Any] = kinds[:5].tolist()
        accepted = f"two classes are needed; here are {kinds.size}"
        raise InvalidInput("y", shown, accepted)
    return rows, values == kinds[1], names


def best_rule(clusters: Clusters, rho: float) -> LinearRule:
    """The search of `Clusters.best_rule`."""
    full = [_widened(matrix, clusters.features) for matrix in clusters.covariances]
    if any(matrix.ndim == 2 for matrix in full):
        full = [np.diag(matrix) if matrix.ndim == 1 else matrix for matrix in full]

    def at(t: float) -> LinearRule | None:
        weights = _direction((1 - t) * full[0] + t * full[-1], clusters.mean)
        if weights is None:
            return None
        squares = [weights @ (s @ weights if s.ndim == 2 else s * weights) for s in full]
        m = float(clusters.mean @ weights)
        return _best_bias(weights, m, math.sqrt(squares[0]), math.sqrt(squares[-1]), rho)

    if len(full) == 1:
        only = at(0.0)
        assert only is not None
        return only
    # t leaves [0, 1] where the best bias gives up most of a rare class
    low, high = -2.0, 3.0
    best: LinearRule | None = None
    for _ in range(6):
        grid = np.linspace(low, high, 41)
        rules = [at(float(t)) for t in grid]
        errors = [math.inf if rule is None else rule.error for rule in rules]
        i = int(np.argmin(errors))
        best = rules[i]
        low, high = grid[max(i - 1, 0)], grid[min(i + 1, 40)]
    assert best is not None
    return best


def _direction(mixed: Array, mean: Array) -> Array | None:
    """The direction of a member of the family; None where the mixture is no covariance."""
    if mixed.ndim == 1:
        if mixed.min() < 0 or np.any((mixed == 0) & (mean != 0)):
            return None
        return np.asarray(np.divide(mean, mixed, out=np.zeros_like(mean), where=mixed > 0))
    values, vectors = np.linalg.eigh(mixed)
    if values[0] < -NEGATIVE * values[-1]:
        return None
    alive = values > NEGATIVE * 1e-3 * values[-1]
    inside = vectors[:, alive]
    return np.asarray(inside @ ((mean @ inside) / values[alive]))


def _best_bias(weights: Array, m: float, down: float, up: float, rho: float) -> LinearRule:
    r"""The bias at which the densities of the two projected classes meet: $\rho\varphi(u_+)/\sqrt{q_+} = (1-\rho)\varphi(u_-)/\sqrt{q_-}$."""
    from scipy.special import ndtr

    # log of the ratio of the two sides: a quadratic in the bias
    odds = 2 * math.log(rho * down / ((1 - rho) * up))
    square, linear = 1 / down**2 - 1 / up**2, -2 * m * (1 / down**2 + 1 / up**2)
    constant = m * m * square + odds
    if abs(square) * abs(constant) < 1e-12 * linear**2:
        candidates = [-constant / linear]
    else:
        root = math.sqrt(max(linear**2 - 4 * square * constant, 0.0))
        large = -0.5 * (linear + math.copysign(root, linear))
        candidates = [large / square, constant / large]
    reach = 40 * (m + up + down)
    rules = [
        (float(rho * ndtr(-(m + b) / up) + (1 - rho) * ndtr(-(m - b) / down)), b)
        for b in (*candidates, -reach, reach)
    ]
    error, bias = min(rules)
    return LinearRule(weights, float(bias), error)
