r"""Gaussian clusters with general covariances, in the units of the samples.

Two classes: $x = $ midpoint $+ s\mu + z$ with $s = \pm 1$ and $z \sim N(0, \Sigma_s)$. `mean` is
$\mu$, half the difference of the two class means; `covariance` is $\Sigma$, or a pair. The paper's
clusters are the sphere $\Sigma = \Delta I$, $|\mu| = 1$. K classes have `means` $\mu_k$ in place of
`mean`, and one covariance. `Problem(clusters=...)` takes clusters in place of `delta`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import InvalidInput
from ..fields import whole
from ..parameters import LARGEST, SMALLEST, SPAN
from .class_means import ClassModes, checked_means, class_modes, means_of_gram, simplex_gram
from .covariances import (
    SAME_MEAN,
    VANISHING,
    Modes,
    checked_covariances,
    eigen,
    finite,
    modes_of,
    widened,
)
from .from_data import RowSource, as_rows, estimate, factored, leading_directions
from .linear_rule import LinearRule, best_rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Clusters", "Modes", "sphere"]


@dataclass(frozen=True, eq=False, repr=False)
class Clusters:
    r"""Two or more Gaussian clusters with general covariances.

    Arguments:
        mean: $\mu$, half the difference of the class means (positive minus negative), one entry per
            feature.
        covariance: covariance within a class: a number (a sphere), a vector (one variance per
            feature), a matrix, or a tuple (negative, positive) of two of these.
        midpoint: midpoint of the two class means; zero by default.
        names: names of the features, or None.
        directions: matrix whose columns the samples were projected on (`reduce`), or None.
        kept: fraction of the squared separation that is left after `reduce`.
        shrunk: whether the covariance is a shrinkage estimate.
        means: instead of `mean`, the means $\mu_k$ of K classes, one row each, relative to the
            midpoint (for two classes the midpoint is moved to their middle). All classes have the
            same covariance.

    >>> clusters = Clusters(mean=[1.0, 0.5, 0.0], covariance=[1.0, 0.25, 4.0])
    >>> clusters
    Clusters(3 features, one covariance, separation 1.41421)
    >>> round(clusters.effective_dimension, 4)
    1.6154
    """

    mean: Any = None  # an array; None for more than two classes
    covariance: Any = None
    midpoint: Array | None = None
    names: tuple[str, ...] | None = None
    directions: Array | None = None
    kept: float = 1.0
    shrunk: bool = False
    means: Any = None  # an array, always set: rows -mean, mean of two classes
    _rows: RowSource | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.covariance is None:
            raise InvalidInput("covariance", None, "must be given (a number for a sphere)")
        if self.means is not None and self.mean is None:
            self._put_means(checked_means("means", self.means))
        else:
            self._put_mean()
        features = self.features
        both = checked_covariances(self.covariance, features, self.classes)
        object.__setattr__(self, "covariance", both if len(both) > 1 else both[0])
        if self.directions is not None:
            directions = finite("directions", self.directions)
            if directions.ndim != 2 or directions.shape[1] != features:
                accepted = f"must be a matrix with {features} columns"
                raise InvalidInput("directions", self.directions, accepted)
            _freeze(self, "directions", directions)
        rows = features if self.directions is None else len(self.directions)
        midpoint = finite("midpoint", np.zeros(rows) if self.midpoint is None else self.midpoint)
        if midpoint.shape != (rows,):
            raise InvalidInput("midpoint", self.midpoint, f"must be a vector of {rows} entries")
        _freeze(self, "midpoint", midpoint)
        if self.names is not None:
            if isinstance(self.names, str) or len(self.names) != rows:
                raise InvalidInput("names", self.names, f"must be {rows} names")
            object.__setattr__(self, "names", tuple(str(name) for name in self.names))

    def _put_mean(self) -> None:
        """Validate and set the mean of two classes."""
        mean = finite("mean", self.mean)
        if mean.ndim != 1 or mean.size == 0:
            raise InvalidInput("mean", self.mean, "must be a vector with one entry per feature")
        if not np.any(mean):
            accepted = "must not be zero: classes with the same mean cannot be told apart"
            raise InvalidInput("mean", self.mean, accepted)
        if not SMALLEST <= float(np.abs(mean).max()) <= LARGEST:
            raise InvalidInput("mean", self.mean, f"the largest entry must be {SPAN}")
        _freeze(self, "mean", mean)
        _freeze(self, "means", np.stack([-mean, mean]))

    def _put_means(self, means: Array) -> None:
        """Set the means of K classes; two classes are described by mean and midpoint."""
        if len(means) > 2:
            _freeze(self, "means", means)
            return
        middle, half = 0.5 * (means[0] + means[1]), 0.5 * (means[1] - means[0])
        if self.directions is not None:
            middle = np.asarray(self.directions) @ middle
        if np.any(middle):
            midpoint = middle if self.midpoint is None else self.midpoint + middle
            object.__setattr__(self, "midpoint", midpoint)
        object.__setattr__(self, "mean", half)
        self._put_mean()

    @classmethod
    def from_gram(cls, gram: Any, delta: float) -> Clusters:
        r"""Return spheres of variance $\Delta$ around means with scalar products $\mu_k\cdot\mu_l$.

        The number of features of spheres does not matter for the theory, so a simulation may use
        any.

        >>> Clusters.from_gram([[2, 0, 0], [0, 1, 0], [0, 0, 1]], 0.5)
        Clusters(3 classes, 3 features, one covariance, separation 1)
        """
        return cls(means=means_of_gram(gram), covariance=delta)

    @classmethod
    def simplex(cls, classes: int, distance: float, delta: float) -> Clusters:
        r"""Return spheres of variance $\Delta$ around means with equal pairwise distances.

        >>> round(Clusters.simplex(3, distance=2.0, delta=1.0).length, 12)
        1.0
        """
        return cls.from_gram(simplex_gram(classes, distance), delta)

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        shrinkage: str | float = "auto",
        common: bool = True,
        directions: int | None = None,
    ) -> Clusters:
        """Estimate clusters from labelled data.

        Arguments:
            X: rows by features: an array, a DataFrame or a sparse matrix. Standardise it first if
                its columns have different units: the ridge treats all directions alike.
            y: the class of each row, two or more different values. Classes are numbered in sorted
                order; the larger of two is the positive class.
            shrinkage: "ledoit-wolf" (also "auto") or "oas", as in scikit-learn; or the weight of
                the sphere, a number from 0 (the sample covariance) to 1.
            common: whether all classes have the same covariance; False only for two classes.
            directions: reduce to this many leading directions, as `reduce` does.

        >>> import numpy as np
        >>> rows = np.array([[3.0, 1.0], [1.0, 2.0], [-1.0, 1.0], [-3.0, 2.0]])
        >>> Clusters.from_data(rows, ["yes", "yes", "no", "no"], shrinkage=0).mean
        array([2., 0.])
        """
        source = RowSource(X, y, shrinkage, common)
        if directions is not None:
            return cls._along_leading(source, directions)
        clusters = cls(**estimate(source), shrunk=shrinkage != 0)
        object.__setattr__(clusters, "_rows", source)
        return clusters

    @classmethod
    def _along_leading(cls, source: RowSource, k: int, outer: Clusters | None = None) -> Clusters:
        """Estimate clusters along the k leading directions of the rows, projected on those of
        `outer` first, without forming the covariance of all features.
        """
        inner = source if outer is None else source._replace(X=outer.project(source.X))
        found = factored(inner)
        k = _directions(k, found.midpoint.size)
        basis, kept = leading_directions(found, k)
        along = (as_rows(inner.X)[0] - found.midpoint) @ basis
        inside = {"midpoint": found.midpoint, "names": found.names}
        if outer is not None:
            assert outer.directions is not None
            inside = {"midpoint": outer.midpoint, "names": outer.names}
            basis, kept = outer.directions @ basis, outer.kept * kept
        values = estimate(source._replace(X=along)) | inside
        reduced = cls(**values, directions=basis, kept=kept, shrunk=source.shrinkage != 0)
        object.__setattr__(reduced, "_rows", source)
        return reduced

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the rows that clusters were estimated from."""
        return {**self.__dict__, "_rows": None}

    def __repr__(self) -> str:
        kind = "two covariances" if self.pair else "one covariance"
        count = f"{self.classes} classes, " if self.classes > 2 else ""
        return (
            f"Clusters({count}{self.features} features, {kind}, separation {self.separation:.6g})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Clusters) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        means = self.means if self.mean is None else self.mean
        arrays = [means, *self.covariances, self.midpoint, self.directions]
        return tuple((a.shape, a.tobytes()) for a in arrays if a is not None)

    @property
    def classes(self) -> int:
        """The number K of classes."""
        return len(self.means)

    @property
    def features(self) -> int:
        """The number N of features."""
        return int(self.means.shape[1])

    def same_directions(self, other: Clusters) -> bool:
        """Return whether both clusters have the same features, or were reduced to the same
        directions.
        """
        if self.directions is None or other.directions is None:
            return self.directions is other.directions
        return np.array_equal(self.directions, other.directions)

    @property
    def pair(self) -> bool:
        """Whether the two classes have different covariances."""
        return isinstance(self.covariance, tuple)

    @property
    def is_sphere(self) -> bool:
        """Whether the noise has one variance in all directions."""
        return not self.pair and self.covariance.ndim == 0

    @property
    def covariances(self) -> tuple[Array, ...]:
        """The common covariance, or those of the negative and the positive class, as given."""
        return self.covariance if self.pair else (self.covariance,)

    @property
    def diagonal(self) -> bool:
        """Whether every covariance is a number or a vector."""
        return all(matrix.ndim < 2 for matrix in self.covariances)

    @property
    def length(self) -> float:
        r"""Half the distance of the class means, $|\mu|$; for more than two classes, half the root
        mean square of the pairwise distances.
        """
        if self.mean is not None:
            return float(np.linalg.norm(self.mean))
        off = self.means - self.means.mean(axis=0)
        return math.sqrt(float((off**2).sum()) / (2 * (self.classes - 1)))

    @property
    def average(self) -> Array:
        """The average covariance of the classes, as a vector or a matrix."""
        full = [widened(matrix, self.features) for matrix in self.covariances]
        if any(matrix.ndim == 2 for matrix in full):
            full = [np.diag(matrix) if matrix.ndim == 1 else matrix for matrix in full]
        average: Array = sum(full[1:], full[0]) / len(full)
        return average

    @cached_property
    def separation(self) -> float:
        r"""Half the Mahalanobis distance of the means, $\sqrt{\mu^T \Sigma^{-1} \mu}$ with the
        average covariance; for more than two classes, that of the two nearest.

        With a common covariance the Bayes error of two balanced classes is H(separation). Infinite
        if the means differ along a direction without noise.
        """
        spectrum, means = self.spectrum
        alive = spectrum > VANISHING * spectrum.max()
        pairs = [means] if self.mean is not None else _halves(means)
        found = []
        for half in pairs:
            beyond = np.linalg.norm(half[~alive]) > SAME_MEAN * self.length
            square = float((half[alive] ** 2 / spectrum[alive]).sum())
            found.append(math.inf if beyond else math.sqrt(square))
        return min(found)

    @property
    def effective_dimension(self) -> float:
        r"""The effective number of noisy directions of the average covariance,
        $(\mathrm{tr}\,\Sigma)^2/\mathrm{tr}\,\Sigma^2$.
        """
        spectrum, _ = self.spectrum
        return float(spectrum.sum() ** 2 / (spectrum**2).sum())

    @property
    def sphere(self) -> float:
        r"""The $\Delta$ of spheres with the same trace, scaled to $|\mu| = 1$ as in the paper."""
        spectrum, _ = self.spectrum
        return float(spectrum.mean() / self.length**2)

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of the average covariance, largest first, and the mean in their directions
        (for more than two classes the means, as rows).
        """
        average, means = self.average, self.means if self.mean is None else self.mean
        if average.ndim == 1:
            order = np.argsort(-average, kind="stable")
            return average[order], means[..., order]
        values, vectors = eigen(average)
        return values[::-1], (means @ vectors)[..., ::-1]

    @cached_property
    def class_modes(self) -> ClassModes:
        """The means of more than two classes in the modes of their covariance."""
        return class_modes(self.means, self.covariance)

    @cached_property
    def modes(self) -> Modes | None:
        """The coordinates in which every covariance is diagonal; None for two covariances that are
        not both diagonal.
        """
        return modes_of(self.mean, self.covariances)

    def best_rule(self, rho: float = 0.5) -> LinearRule:
        r"""Return the linear rule with the smallest error on these clusters.

        With a common covariance its direction is Fisher's, $\Sigma^{-1}\mu$. With two it is one of
        the family $(t\Sigma_+ + (1-t)\Sigma_-)^{-1}\mu$ of Anderson and Bahadur (1962), found by a
        search over t and the bias.

        Arguments:
            rho: proportion of the positive class.

        >>> round(Clusters(mean=[1.0, 0.0], covariance=[1.0, 4.0]).best_rule().error, 6)
        0.158655
        """
        if self.classes > 2:
            raise InvalidInput("clusters", self, "must have two classes for the best linear rule")
        if not 0 < rho < 1:
            raise InvalidInput("rho", rho, "must be strictly between 0 and 1")
        if math.isinf(self.separation):
            reason = "the means differ where the noise has no variance: the best rule has error 0"
            raise InvalidInput("clusters", self, reason)
        return best_rule(self.mean, self.covariances, rho)

    def reduce(self, k: int) -> Clusters:
        r"""Return the clusters along the k leading eigenvectors of the covariance of all samples,
        $\bar\Sigma + \mu\mu^T$.

        The result's `kept` is the fraction of the squared separation that is left; its `project`
        maps rows to these directions. Clusters that were estimated from data are estimated again
        along these directions, since shrinkage over all features would move variance to the others.

        >>> small = Clusters(mean=[1.0, 0.1, 0.0], covariance=[4.0, 1.0, 0.1]).reduce(2)
        >>> small.features, round(small.kept, 6)
        (2, 1.0)
        """
        k = _directions(k, self.features)
        if self._rows is not None:
            return self._along_leading(self._rows, k, self if self.directions is not None else None)
        if self.shrunk:
            reason = (
                "the covariance was shrunk over all features and its rows are not available: use"
                " Clusters.from_data(X, y, directions=k)"
            )
            raise InvalidInput("k", k, reason)
        return self._along(self._leading(k))

    def _leading(self, k: int) -> Array:
        """Return the k leading eigenvectors of the covariance of all samples, as columns."""
        average = self.average
        total = np.diag(average) if average.ndim == 1 else average
        between = self.means.T @ self.means / self.classes
        if self.mean is not None:
            between = np.outer(self.mean, self.mean)
        _, vectors = np.linalg.eigh(total + between)
        basis = vectors[:, ::-1][:, :k]
        return basis * np.where(basis[np.abs(basis).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)

    def _along(self, basis: Array) -> Clusters:
        """Return the clusters along the columns of `basis`."""
        shapes = []
        for matrix in self.covariances:
            wide = widened(matrix, self.features)
            inside = basis.T @ (wide[:, None] * basis if wide.ndim == 1 else wide @ basis)
            shapes.append(0.5 * (inside + inside.T))
        directions = basis if self.directions is None else self.directions @ basis
        covariance = tuple(shapes) if self.pair else shapes[0]
        means = {"means": self.means @ basis} if self.mean is None else {"mean": self.mean @ basis}
        small = Clusters(
            **means, covariance=covariance, midpoint=self.midpoint, names=self.names,
            directions=directions,
        )  # fmt: skip
        whole, left = self.separation**2, small.separation**2
        share = 1.0 if math.isinf(left) else (0.0 if math.isinf(whole) else left / whole)
        object.__setattr__(small, "kept", self.kept * share)
        return small

    def project(self, X: Any) -> Array:
        """Return rows relative to the midpoint, projected on the directions of `reduce` if any."""
        rows, _ = as_rows(X)
        assert self.midpoint is not None
        if rows.shape[1] != self.midpoint.size:
            accepted = f"must have {self.midpoint.size} columns"
            raise InvalidInput("X", f"{rows.shape[1]} columns", accepted)
        rows = rows - self.midpoint
        return rows if self.directions is None else rows @ self.directions

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the inverse of `from_dict`."""
        plain: dict[str, Any] = {"means": self.means.tolist()}
        if self.mean is not None:
            plain = {"mean": self.mean.tolist()}
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
        if self.shrunk:
            plain["shrunk"] = True
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Clusters:
        """Return the clusters that `to_dict` wrote."""
        known = {"covariance", "midpoint", "names", "directions", "kept", "shrunk"}
        means = {"mean", "means"} & set(values)
        if len(means) != 1 or not {"covariance"} <= set(values) <= known | means:
            accepted = "must be a mapping with mean (or means) and covariance"
            raise InvalidInput("clusters", dict(values), accepted)
        fields = dict(values)
        covariance = fields.pop("covariance")
        if isinstance(covariance, Mapping):
            covariance = (covariance["negative"], covariance["positive"])
        elif isinstance(covariance, list):
            covariance = np.asarray(covariance, dtype=float)
        return cls(covariance=covariance, **fields)

    def plot(self, *, panel: str | None = None, ax: Axes | None = None) -> Figure:
        """Plot the spectrum of the covariance and the component of the mean along each eigenvector;
        or a single `panel` on `ax`.
        """
        from ..plots.clusters import plot_clusters

        return plot_clusters(self, panel=panel, ax=ax)


def _halves(means: Array) -> list[Array]:
    """Return half the differences of all pairs of means."""
    pairs = combinations(range(len(means)), 2)
    return [0.5 * (means[one] - means[other]) for one, other in pairs]


def _directions(k: Any, features: int) -> int:
    """Return a validated number of directions."""
    accepted = f"must be a whole number from 1 to {features}"
    return whole("k", k, lambda n: 0 < n <= features, accepted)


def _freeze(owner: Clusters, name: str, array: Array) -> None:
    array.setflags(write=False)
    object.__setattr__(owner, name, array)


@lru_cache(maxsize=4096)
def sphere(delta: float) -> Clusters:
    r"""Return the paper's clusters, with noise of variance $\Delta$ in every direction."""
    return Clusters(np.ones(1), delta)
