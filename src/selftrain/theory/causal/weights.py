r"""The weights of all fits, and what samples see of them: from the conjugates of a step to its
fields, with derivatives.

The conjugates of fit t are, for each law of samples, $\hat m_t$ (by classes), and for each
covariance $\Sigma_a$ the rows $\hat Q_{ts}$ and $\hat\chi_{ts}$, $s \le t$. The weights solve

$$w_t = G_t\Big(\hat m_t v + \zeta_t - \sum_a \Sigma_a \sum_{s<t} \hat Q^a_{ts} w_s\Big),\qquad
G_t = \Big(\lambda_t + \sum_a \hat Q^a_{tt}\Sigma_a\Big)^{-1},\qquad
\mathrm{cov}(\zeta_t, \zeta_s) = \sum_a \hat\chi^a_{ts}\Sigma_a .$$

Weights of successive fits are nearly parallel, so rows are written in orthonormal bases. $O^a_r$
spans the weights so far in the metric of $\Sigma_a$: samples have one independent Gaussian number
along each, $\sum_{s<t}\hat Q_{ts}w_s = \sum_r \tilde Q_{tr} O_r$ (`along`). And $\hat\chi = \Phi
\Phi^\top$: $\Phi_{tk}$ (`slopes`) are the parts of $f^{(t)}$ along orthonormal functions
$\varphi_k$ of the samples, $\Phi_{tt}\Phi_{tt}^\top$ (`fresh`) is what is new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...mixture.clusters import Clusters
from .coordinates import Coordinates, inner

FAINT = 1e-18
"""What is new in the slopes of a fit is left out if its square is below this share of the whole:
what it changes is of the order of its square.
"""

ROUNDED = 1e-22
"""A direction of the weights whose square is below this share of the whole is rounding."""

Law = Clusters


def inverse(square: Array) -> Array:
    """Return the inverse of a matrix over the components of a logit.

    NaN where it has none: a step of Newton's method that leads there is shortened.
    """
    if square.size == 1:
        return np.asarray(1.0 / square)
    try:
        return np.asarray(np.linalg.inv(square), dtype=float)
    except np.linalg.LinAlgError:
        return np.full(square.shape, np.nan)


def factor(square: Array) -> Array:
    """Return the lower triangular factor of a covariance; NaN where it is none."""
    if square.size == 1:
        return np.asarray(np.sqrt(np.maximum(square, 1e-290)))
    try:
        return np.asarray(np.linalg.cholesky(square), dtype=float)
    except np.linalg.LinAlgError:
        return np.full(square.shape, np.nan)


class Hats(NamedTuple):
    """The conjugates of one fit: by laws of samples, then by covariances."""

    means: dict[Law, Array]
    stiffness: dict[int, Array]
    along: dict[int, Array]
    slopes: dict[int, Array]
    fresh: dict[int, Array]


class Layout:
    r"""Where the unknowns of a step are in one vector: bias, then `Hats`, with $\hat Q_{tt}^{-1}$
    in place of $\hat Q_{tt}$: the strength of a sample on its own logit is nearly linear in it.

    Arguments:
        components: d.
        laws: the laws of the samples in use, with their number of classes.
        sources: the covariances in use, with the sizes of their two bases.
    """

    def __init__(
        self, components: int, laws: dict[Law, int], sources: dict[int, tuple[int, int]]
    ) -> None:
        d = self.components = components
        self.laws, self.sources = laws, sources
        self.low = np.tril_indices(d)
        self.size = 0
        self.bias = self._next(d)
        self.means = {law: self._next(d * classes) for law, classes in laws.items()}
        self.softness: dict[int, slice] = {}
        self.along: dict[int, slice] = {}
        self.slopes: dict[int, slice] = {}
        self.fresh: dict[int, slice] = {}
        for a, (r, k) in sources.items():
            self.softness[a] = self._next(self.low[0].size)
            self.along[a] = self._next(d * r)
            self.slopes[a] = self._next(d * k)
            self.fresh[a] = self._next(self.low[0].size)

    def _next(self, count: int) -> slice:
        self.size += count
        return slice(self.size - count, self.size)

    def unpack(self, z: Array) -> tuple[Array, Hats]:
        """Return the bias and the conjugates of a vector of unknowns."""
        d = self.components
        return z[self.bias], Hats(
            {law: z[at].reshape(d, -1) for law, at in self.means.items()},
            {a: inverse(self.symmetric(z[at])) for a, at in self.softness.items()},
            {a: z[at].reshape(d, self.sources[a][0]) for a, at in self.along.items()},
            {a: z[at].reshape(d, self.sources[a][1]) for a, at in self.slopes.items()},
            {a: self.symmetric(z[at]) for a, at in self.fresh.items()},
        )

    def pack(self, bias: Array, hats: Hats) -> Array:
        """Return the vector of unknowns."""
        z = np.zeros(self.size)
        z[self.bias] = bias
        for law, at in self.means.items():
            z[at] = hats.means[law].ravel()
        for a in self.sources:
            z[self.softness[a]] = inverse(hats.stiffness[a])[self.low]
            z[self.along[a]] = hats.along[a].ravel()
            z[self.slopes[a]] = hats.slopes[a].ravel()
            z[self.fresh[a]] = hats.fresh[a][self.low]
        return z

    def symmetric(self, entries: Array) -> Array:
        """Return the symmetric matrix of its lower entries."""
        full = np.zeros((self.components, self.components))
        full[self.low] = entries
        full.T[self.low] = entries
        return full

    def ratio(self, one: Array, other: Array) -> Array:
        """Return the lower entries of $L^{-1} B L^{-T}$, for those of $A = LL^T$ and B."""
        left = inverse(factor(self.symmetric(one)))
        return np.asarray((left @ self.symmetric(other) @ left.T)[self.low])

    def stretched(self, one: Array, ratio: Array) -> Array:
        """Return the lower entries of the matrix that has this ratio to another."""
        root = factor(self.symmetric(one))
        return np.asarray((root @ self.symmetric(ratio) @ root.T)[self.low])

    def directions(self) -> Array:
        """Return the symmetric matrices that the lower entries stand for, one each."""
        return np.array([self.symmetric(row) for row in np.eye(self.low[0].size)])

    def stiffening(self, stiffness: Array) -> Array:
        r"""Return the derivatives of $\hat Q_{tt}$ in the entries of its inverse."""
        return np.asarray(-stiffness @ self.directions() @ stiffness)


class Fields(NamedTuple):
    r"""What samples with one covariance see of a fit, or derivatives of it (one more axis before).

    Attributes:
        along: the part of $\xi_t$ along the Gaussian numbers so far, (d, r).
        rest: the covariance of the part that is new, (d, d).
        react: $\sum_{s<t} X_{ts}\Phi_{sk}$, how far each $\varphi_k$ of a sample moves its logit,
            (d, k).
        strength: $X_{tt}$, (d, d).
    """

    along: Array
    rest: Array
    react: Array
    strength: Array


class Trial(NamedTuple):
    """The weights at some conjugates: along known columns, along each new noise, and the gain."""

    w: Array
    fresh: dict[int, Array]
    gain: Array


@dataclass
class Basis:
    """What is known of one covariance: an orthonormal basis of the weights so far in its metric,
    the columns of the noise of its samples, and the coordinates of every fit.
    """

    vectors: Array
    images: Array
    size: int = 0
    columns: list[int] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)


class WeightHistory:
    """The weights of the fits so far.

    Arguments:
        space: coordinates.
        fits: how many fits there will be.
        components: d.
        noises: for each covariance, how many fits use samples with it.
    """

    def __init__(
        self, space: Coordinates, fits: int, components: int, noises: dict[int, int]
    ) -> None:
        self.space, self.components = space, components
        widths = [space.sources[a].noise.shape[1] * count for a, count in noises.items()]
        self._most = 1 + components * sum(widths)
        self.count = 1
        self.fits: list[Array] = []
        most = components * fits
        shape = (most, space.size, self._most)
        self.bases = {a: Basis(np.zeros(shape), np.zeros(shape)) for a in noises}

    def layout(self, laws: dict[Law, int], sources: list[int]) -> Layout:
        """Return the layout of the unknowns of the next fit."""
        sizes = {a: (self.bases[a].size, len(self.bases[a].columns)) for a in sources}
        return Layout(self.components, laws, sizes)

    def images(self, a: int) -> Array:
        """$\\Sigma_a O^a$ in the columns in use."""
        basis = self.bases[a]
        return basis.images[: basis.size, :, : self.count]

    def trial(self, ridge: float, hats: Hats) -> Trial:
        """Return the weights of the next fit at these conjugates."""
        space, d = self.space, self.components
        gain = space.gain(ridge, hats.stiffness, d)
        right = np.zeros((d, space.size, self.count))
        for law, mean in hats.means.items():
            right[:, :, 0] += mean @ space.sets[law].means.T
        for a, along in hats.along.items():
            noise, columns = space.sources[a].noise, self.bases[a].columns
            right -= np.tensordot(along, self.images(a), axes=1)
            width = noise.shape[1]
            if width == 1:
                right[:, :, columns] += hats.slopes[a][:, None, :] * noise
                continue
            for k, at in enumerate(columns):
                right[:, :, at : at + width] += hats.slopes[a][:, k, None, None] * noise
        fresh = {a: self._answer(gain, a) for a in hats.fresh}
        return Trial(space.apply(gain, right), fresh, gain)

    def _answer(self, gain: Array, a: int) -> Array:
        """The weights that noise of size one in each component makes: (d', d, n, j)."""
        noise = self.space.sources[a].noise
        unit = np.eye(self.components)[:, :, None, None] * noise
        return self.space.apply(gain, unit)

    def means(self, law: Law, w: Array) -> Array:
        """Return the mean logits of the classes without bias, (..., d, K)."""
        return np.asarray(w[..., 0] @ self.space.sets[law].means)

    def see(self, a: int, trial: Trial, hats: Hats | None = None) -> tuple[Fields, Array]:
        """Return what samples with covariance a see, and the weights off the basis.

        Arguments:
            hats: the conjugates of the trial; None: weights that are no fit's own.
        """
        space, basis = self.space, self.bases[a]
        w, images = trial.w, self.images(a)
        along = inner(w, images)
        off = w - np.tensordot(along, basis.vectors[: basis.size, :, : self.count], axes=1)
        again = inner(off, images)  # what rounding left along the basis
        off -= np.tensordot(again, basis.vectors[: basis.size, :, : self.count], axes=1)
        rest = inner(off, space.sigma(a, off))
        react, strength = self.react(a, w), self.strength(a, trial.gain)
        if hats is None:
            return Fields(along + again, rest, react, strength), off
        for b, square in hats.fresh.items():
            answer = trial.fresh[b]
            image = space.sigma(a, answer)
            rest = rest + np.einsum("pxnj,pq,qynj->xy", answer, square, image)
        if a in hats.slopes:  # the reaction to the slopes of the fit itself is in its strength
            react = react - strength @ hats.slopes[a]
        return Fields(along + again, rest, react, strength), off

    def react(self, a: int, w: Array, columns: list[int] | None = None) -> Array:
        """Return how far each function of the slopes of a sample moves its logit, (..., d, k)."""
        noise = self.space.sources[a].noise
        columns = self.bases[a].columns if columns is None else columns
        width = noise.shape[1]
        if width == 1:
            return np.asarray(np.einsum("...nk,n->...k", w[..., columns], noise[:, 0]))
        parts = [np.einsum("...nj,nj->...", w[..., at : at + width], noise) for at in columns]
        return np.stack(parts, axis=-1) if parts else np.zeros((*w.shape[:-2], 0))

    def strength(self, a: int, gain: Array) -> Array:
        """Return $X_{tt}$: how strongly a sample moves its own logit."""
        noise = self.space.sources[a].noise
        return np.asarray(np.einsum("pxnj,nj->xp", self._answer(gain, a), noise))

    def slopes(
        self, trial: Trial, hats: Hats, layout: Layout, off: dict[int, Array]
    ) -> tuple[dict[Law, Array], dict[int, Fields]]:
        """Return the derivatives of the means and of the fields in all unknowns.

        Arguments:
            off: the weights off the basis of each covariance, as `see` returns them.
        """
        space, d = self.space, self.components
        right = np.zeros((layout.size, d, space.size, self.count))
        for law, at in layout.means.items():
            means = space.sets[law].means
            block = right[at].reshape(d, means.shape[1], d, space.size, self.count)
            for j in range(d):
                block[j, :, j, :, 0] = means.T
        for a in layout.sources:
            images, noise = self.images(a), space.sources[a].noise
            r, k = layout.sources[a]
            along = right[layout.along[a]].reshape(d, r, d, space.size, self.count)
            slopes = right[layout.slopes[a]].reshape(d, k, d, space.size, self.count)
            turns = layout.stiffening(hats.stiffness[a])
            right[layout.softness[a]] = -np.einsum("pij,jnc->pinc", turns, space.sigma(a, trial.w))
            for j in range(d):
                along[j, :, j] = -images
                for place, column in enumerate(self.bases[a].columns):
                    slopes[j, place, j, :, column : column + noise.shape[1]] = noise
        change = space.apply(trial.gain, right)
        fields = {
            a: self._slopes_of(a, trial, hats, layout, change, off[a]) for a in layout.sources
        }
        return {law: self.means(law, change) for law in layout.laws}, fields

    def _slopes_of(
        self, a: int, trial: Trial, hats: Hats, layout: Layout, change: Array, off: Array
    ) -> Fields:
        space, d = self.space, self.components
        along = inner(change, self.images(a))
        half = inner(change, space.sigma(a, off))
        rest = half + half.swapaxes(-1, -2)
        strength = np.zeros((layout.size, d, d))
        for b, square in hats.fresh.items():
            answer = trial.fresh[b]
            image = space.sigma(a, answer)
            gram = np.einsum("pxnj,qynj->pqxy", answer, image)
            rest[layout.fresh[b]] += np.einsum("zpq,pqxy->zxy", layout.directions(), gram)
            for c in layout.sources:
                turns = layout.stiffening(hats.stiffness[c])
                pulled = np.einsum("zij,pjnc->zpinc", turns, space.sigma(c, answer))
                moved = -space.apply(trial.gain, pulled)
                half = np.einsum("zpxnj,pq,qynj->zxy", moved, square, image)
                rest[layout.softness[c]] += half + half.swapaxes(-1, -2)
                if b == a:
                    noise = space.sources[a].noise
                    strength[layout.softness[c]] = np.einsum("zpxnj,nj->zxp", moved, noise)
        react = self.react(a, change) - strength @ hats.slopes[a]
        count = react.shape[-1]
        own = react[layout.slopes[a]].reshape(d, count, d, count)
        now = self.strength(a, trial.gain)
        for k in range(count):
            own[:, k, :, k] -= now.T
        return Fields(along, rest, react, strength)

    def enter(
        self, trial: Trial, fresh: dict[int, Array], slopes: dict[int, Array]
    ) -> dict[int, Array]:
        r"""Take a fit: its weights, new columns for its noise, new directions of all bases.

        Returns:
            For each covariance in use, the factor $\Phi_{tt}$; empty where it is too faint.
        """
        factors: dict[int, Array] = {}
        before = self.count
        whole = np.zeros((self.components, self.space.size, self._most))
        whole[:, :, :before] = trial.w
        for a, square in fresh.items():
            size = float(np.trace(square) + (slopes[a] ** 2).sum())
            lives = float(np.diag(square).min()) > FAINT * size
            factors[a] = factor(square) if lives else np.zeros((0, 0))
            if not lives:
                continue
            width = self.space.sources[a].noise.shape[1]
            made = np.einsum("pxnj,pq->xnqj", trial.fresh[a], factors[a])
            for q in range(self.components):
                self.bases[a].columns.append(self.count)
                whole[:, :, self.count : self.count + width] = made[:, :, q]
                self.count += width
        for a in self.bases:
            self._extend(a, whole)
        self.fits.append(whole)
        return factors

    def _extend(self, a: int, whole: Array) -> None:
        """Add the new weights to the basis of a covariance, twice made orthogonal to it."""
        basis = self.bases[a]
        for vector in whole:
            known, images = basis.vectors[: basis.size], basis.images[: basis.size]
            row, rest = np.zeros(len(basis.vectors)), vector.copy()
            for _ in range(2):
                part = inner(rest[None], images)[0]
                rest -= np.tensordot(part, known, axes=1)
                row[: basis.size] += part
            image = self.space.sigma(a, rest)
            square = float((rest * image).sum())
            if square > ROUNDED * float(row @ row + square):
                root = np.sqrt(square)
                basis.vectors[basis.size], basis.images[basis.size] = rest / root, image / root
                row[basis.size] = root
                basis.size += 1
            basis.rows.append(row)

    def square(self, t: int) -> float:
        """Return the squared norm of the weights of fit t."""
        return float((self.fits[t] ** 2).sum())

    def coordinates(self, a: int, t: int) -> Array:
        """Return the weights of fit t in the basis of a covariance, (d, all it can hold)."""
        d = self.components
        return np.array(self.bases[a].rows[d * t : d * (t + 1)])
