r"""The law of the weights of all fits, and the map from the conjugates of a fit to the fields of
its samples, with derivatives.

Given the conjugates (`unknowns`) of fit t and all before, its weights solve

$$w_t = G_t\Big(\hat m_t v + \zeta_t - \sum_a \Sigma_a \sum_{s<t} \hat Q^a_{ts} w_s\Big),\qquad
G_t = \Big(\lambda_t + \sum_a \hat Q^a_{tt}\Sigma_a\Big)^{-1},\qquad
\mathrm{cov}(\zeta_t, \zeta_s) = \sum_a \hat\chi^a_{ts}\Sigma_a .$$

Weights of successive fits are nearly parallel, so rows are written in orthonormal bases. $O^a_r$
spans the weights so far in the metric of $\Sigma_a$. Samples have one independent Gaussian number
along each, and $\sum_{s<t}\hat Q_{ts}w_s = \sum_r \tilde Q_{tr} O_r$ (`along`). Likewise $\hat\chi
= \Phi \Phi^\top$: $\Phi_{tk}$ (`slopes`) are the components of $f^{(t)}$ along orthonormal
functions $\varphi_k$ of the samples, and $\Phi_{tt}\Phi_{tt}^\top$ (`fresh`) is the square of the
part that is orthogonal to all earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from .coordinates import Coordinates, inner
from .unknowns import Hats, Law, Layout, factor

FAINT = 1e-18
"""The new part of the slopes of a fit is neglected if its square is below this fraction of the
whole; its effect is of the order of its square.
"""

ROUNDED = 1e-22
"""A direction of the weights whose square is below this fraction of the whole is rounding error."""


class Fields(NamedTuple):
    r"""The fields of a fit for samples with one covariance; or derivatives of them (with a leading
    axis).

    Attributes:
        along: the coefficients of the Gaussian numbers so far in $\xi_t$, (d, r).
        rest: the covariance of the new part of $\xi_t$, (d, d).
        react: $\sum_{s<t} X_{ts}\Phi_{sk}$, the change of a sample's logit per unit of its
            $\varphi_k$, (d, k).
        strength: $X_{tt}$, the change of its logit per unit of its slope, (d, d).
    """

    along: Array
    rest: Array
    react: Array
    strength: Array


class Trial(NamedTuple):
    """The weights at given conjugates.

    Attributes:
        w: coefficients of the columns so far.
        fresh: coefficients of the new noise of each covariance.
        gain: G.
    """

    w: Array
    fresh: dict[int, Array]
    gain: Array


@dataclass
class Basis:
    r"""An orthonormal basis of the weights so far, in the metric of one covariance.

    Attributes:
        vectors, images: the basis O, and $\Sigma O$, allocated for all fits.
        columns: columns of the weights that belong to the noise of each function of slopes, (k, j).
        size: number of vectors so far.
        rows: the coordinates of every fit in the basis, one row for each component.
    """

    vectors: Array
    images: Array
    columns: NDArray[np.intp]
    size: int = 0
    rows: list[Array] = field(default_factory=list)


class WeightHistory:
    """The weights of the fits so far.

    Arguments:
        space: coordinates.
        fits: total number of fits.
        components: d.
        noises: for each covariance, the number of fits that use samples with it.
    """

    def __init__(
        self, space: Coordinates, fits: int, components: int, noises: dict[int, int]
    ) -> None:
        self.space, self.components = space, components
        widths = {a: space.sources[a].noise.shape[1] for a in noises}
        self._most = 1 + components * sum(widths[a] * count for a, count in noises.items())
        self.count = 1
        self.fits: list[Array] = []
        shape = (components * fits, space.size, self._most)
        self.bases = {
            a: Basis(np.zeros(shape), np.zeros(shape), np.zeros((0, width), dtype=np.intp))
            for a, width in widths.items()
        }

    def layout(self, laws: dict[Law, int], sources: list[int]) -> Layout:
        """Return the layout of the unknowns of the next fit."""
        sizes = {a: (self.bases[a].size, self.functions(a)) for a in sources}
        return Layout(self.components, laws, sizes)

    def functions(self, a: int) -> int:
        """Return the number of functions of slopes of the samples with covariance a."""
        return len(self.bases[a].columns)

    def images(self, a: int) -> Array:
        """Return $\\Sigma_a O^a$ in the columns in use."""
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
            right -= np.tensordot(along, self.images(a), axes=1)
            noise = space.sources[a].noise[:, None, :]
            right[:, :, self.bases[a].columns] += hats.slopes[a][:, None, :, None] * noise
        fresh = {a: self._answer(gain, a) for a in hats.fresh}
        return Trial(space.apply(gain, right), fresh, gain)

    def _answer(self, gain: Array, a: int) -> Array:
        """Return the weights that unit noise in each component causes, (d', d, n, j)."""
        noise = self.space.sources[a].noise
        unit = np.eye(self.components)[:, :, None, None] * noise
        return self.space.apply(gain, unit)

    def means(self, law: Law, w: Array) -> Array:
        """Return the mean logits of the classes without bias, (..., d, K)."""
        return np.asarray(w[..., 0] @ self.space.sets[law].means)

    def see(self, a: int, trial: Trial, hats: Hats | None = None) -> tuple[Fields, Array]:
        """Return the fields of samples with covariance a, and the weights orthogonal to the basis.

        Arguments:
            trial: the weights.
            hats: the conjugates of the trial; None for weights that do not come from a fit.
        """
        space, basis = self.space, self.bases[a]
        w, images = trial.w, self.images(a)
        along = inner(w, images)
        off = w - np.tensordot(along, basis.vectors[: basis.size, :, : self.count], axes=1)
        again = inner(off, images)  # orthogonalise again, against rounding errors
        off -= np.tensordot(again, basis.vectors[: basis.size, :, : self.count], axes=1)
        rest = inner(off, space.sigma(a, off))
        react, strength = self.react(a, w), self.strength(a, trial.gain)
        if hats is None:
            return Fields(along + again, rest, react, strength), off
        for b, square in hats.fresh.items():
            answer = trial.fresh[b]
            image = space.sigma(a, answer)
            rest = rest + np.einsum("pxnj,pq,qynj->xy", answer, square, image)
        if a in hats.slopes:  # the reaction to the slopes of this fit is part of the strength
            react = react - strength @ hats.slopes[a]
        return Fields(along + again, rest, react, strength), off

    def react(self, a: int, w: Array) -> Array:
        """Return the change of a sample's logit per unit of each of its functions of slopes,
        (..., d, k).
        """
        noise, columns = self.space.sources[a].noise, self.bases[a].columns
        return np.asarray(np.einsum("...nkj,nj->...k", w[..., columns], noise))

    def strength(self, a: int, gain: Array) -> Array:
        """Return $X_{tt}$, the change of a sample's logit per unit of its own slope."""
        noise = self.space.sources[a].noise
        return np.asarray(np.einsum("pxnj,nj->xp", self._answer(gain, a), noise))

    def slopes(
        self, trial: Trial, hats: Hats, layout: Layout, off: dict[int, Array]
    ) -> tuple[dict[Law, Array], dict[int, Fields]]:
        """Return the derivatives of means and fields with respect to every unknown.

        Arguments:
            off: the weights orthogonal to the basis of each covariance, as `see` returns them.
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
                for place, columns in enumerate(self.bases[a].columns):
                    slopes[j, place, j][:, columns] = noise
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
        r"""Append a solved fit: its weights, columns for its noise, new directions of each basis.

        Returns:
            For each covariance in use, the factor $\Phi_{tt}$; empty if that noise is negligible.
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
            made = np.einsum("pxnj,pq->xnqj", trial.fresh[a], factors[a])
            size = made[0, 0].size
            new = self.count + np.arange(size).reshape(self.components, -1)
            whole[:, :, new] = made
            self.bases[a].columns = np.concatenate([self.bases[a].columns, new])
            self.count += size
        for a in self.bases:
            self._extend(a, whole)
        self.fits.append(whole)
        return factors

    def skip(self) -> None:
        """Append a fit that is omitted: it has no weights, and adds no direction."""
        self.fits.append(np.full((self.components, self.space.size, self._most), np.nan))
        for basis in self.bases.values():
            basis.rows += [np.zeros(len(basis.vectors))] * self.components

    def _extend(self, a: int, whole: Array) -> None:
        """Add the new weights to the basis of a covariance, orthogonalised twice."""
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
        """Return the weights of fit t in basis `a`, shape (d, capacity of the basis)."""
        d = self.components
        return np.array(self.bases[a].rows[d * t : d * (t + 1)])
