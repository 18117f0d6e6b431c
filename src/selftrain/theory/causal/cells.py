r"""The process of one sample: its fields, trained logits and slopes over the fits.

A *cell* contains the samples of one class of a group (if given labels may be wrong: of one class
and one given label). Given the fields of a fit, a sample has

$$H = \bar h + \sum_r L_{tr} z_r + L_{tt} z_t - \sum_k Y_{tk}\varphi_k,\qquad u^{(t)} = H - X_{tt}
f^{(t)},\qquad f^{(t)} = k\,\partial_2 l(y^{(t)}, u^{(t)}),$$

with independent Gaussian numbers z (d for every fit in which its logit is needed) and orthonormal
functions $\varphi_k$ of its own earlier slopes (derivatives of the loss), $f^{(t)} =
\sum_k\Phi_{tk}\varphi_k$. H is linear in the columns $y = (1, z, \varphi)$ of a sample.
`CellAverages` has $E[f y]$ and the other averages that the equations and their derivatives need.
They are over the points of `draws`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ...confusion import class_probabilities
from ...protocol import PseudoLabels, SampleGroup, Use
from .conditional import ConditionalLogit
from .draws import Kind, Points
from .response import Binary, Scores
from .unknowns import factor, inverse
from .weights import ROUNDED, Fields

BLOCK = 4096
"""Number of points averaged at a time, so that they stay in the cache."""

START_POINTS = 256
"""Number of points on which the stiffness of many components is estimated for a start: the first
ones of a low-discrepancy sequence, or some of a grid.
"""

NOTHING = np.zeros(0)
"""Placeholder for averages that were not requested."""


class CellAverages(NamedTuple):
    r"""Averages over a cell, with y its columns, $D = \partial f/\partial H$ and $D' = \partial
    D/\partial H$. Axes of the components of f, D and D' come first, those of y last.

    Attributes:
        f: $E[f y]$.
        square: $E[f f]$.
        stiffness: $E[D]$.
        curved, pulled, bent: $E[D y y]$, $E[D f y]$, $E[D' y]$; these and the next are for
            derivatives only.
        pulled_f, bent_f, double: $E[D f f]$, $E[D' f]$, $E[D D]$.
    """

    f: Array
    square: Array
    stiffness: Array
    curved: Array = NOTHING
    pulled: Array = NOTHING
    bent: Array = NOTHING
    pulled_f: Array = NOTHING
    bent_f: Array = NOTHING
    double: Array = NOTHING


class View:
    """An orthonormal basis of the weights on which the logits of a cell's samples depend so far,
    one vector per row, in the coordinates of `weights.Basis`. A sample has one Gaussian number for
    each vector.
    """

    def __init__(self) -> None:
        self.rows: Array = np.zeros((0, 0))

    def along(self, part: Array) -> tuple[Array, Array]:
        """Return the components of vectors (..., r) in this basis, and their orthogonal rest."""
        size = part.shape[-1]
        known = self.rows[:, :size] if len(self.rows) else np.zeros((0, size))
        mine = part @ known.T
        return mine, part - mine @ known

    def extend(self, rows: Array) -> list[int]:
        """Add the weights of a fit; return the components of the logit that are linearly
        independent of the basis so far.
        """
        new = []
        if not len(self.rows):
            self.rows = np.zeros((0, rows.shape[1]))
        for j, row in enumerate(rows):
            rest = row
            for _ in range(2):
                rest = rest - (self.rows @ rest) @ self.rows
            square = float(rest @ rest)
            if square > ROUNDED * float(row @ row):
                self.rows = np.vstack([self.rows, rest / math.sqrt(square)])
                new.append(j)
        return new


class Cell:
    """The samples of one kind (class and given label) of a group, with their logits so far.

    Arguments:
        group: the group of the samples.
        kind: their class and given label.
        source: the index of their covariance.
        seen: the fits in which their logits are needed, in order.
        loss: loss of the first of these fits; `label` sets that of every fit.
        drawn: the points.
        exact: whether functions are given by coefficients on (1, z) instead of values on points.
    """

    def __init__(
        self, group: SampleGroup, kind: Kind, source: int, seen: tuple[int, ...], loss: Scores,
        drawn: Points, exact: bool,
    ) -> None:  # fmt: skip
        self.law, self.source, self.seen, self.loss = group.law, source, seen, loss
        self.kind, self.given, self.share = kind[:3]
        self.exact = exact
        self._noise, self.weights, one = drawn
        self._alone = self.weights * one  # weights of the mean of a single function
        d, points, fits = loss.components, len(one), seen[-1] - seen[0] + 1
        self.components, self.points = d, points
        self.columns = np.zeros((points, 1 + d * (len(seen) + fits + 1)), order="F")
        self.columns[:, 0] = one
        self.used = 1
        self.view = View()
        self.along: list[int] = []
        self.reactions: list[int] = []
        self.u, self.f = np.zeros((points, d)), np.zeros((points, d))
        self.logits: dict[int, Array] = {}
        self.conditional: dict[int, ConditionalLogit] = {}
        self.rest = self.f
        self.in_use, self.edge = False, 0.0
        self.made: Array = np.zeros((points, d))
        self.target: Array = self.made
        self.selected = np.ones(points, dtype=bool)
        self.weight: Array = np.zeros(points)
        self._curvature: Array = NOTHING

    def place(self, t: int) -> None:
        """Put the new Gaussian numbers of fit t into the next columns."""
        d, at = self.components, self.seen.index(t)
        self.columns[:, self.used : self.used + d] = self._noise[:, d * at : d * (at + 1)]

    def combine(self, mean: Array, along: Array, new: Array, react: Array) -> Array:
        """Return the coefficients of the columns in H, or derivatives of them, (..., d, columns).

        Arguments:
            mean: the mean logit, (..., d).
            along: the coefficients of the Gaussian numbers so far.
            new: the factor of the new Gaussian numbers, (..., d, d).
            react: the change of the logit per unit of each function of slopes.
        """
        theta = np.zeros((*mean.shape, self.used + new.shape[-1]))
        theta[..., 0] = mean
        theta[..., self.along] = along
        theta[..., self.used :] = new
        known = len(self.reactions)
        if known:  # only functions since the first use of these samples; earlier ones are zero
            theta[..., self.reactions] = -react[..., -known:]
        return theta

    def look(self, fields: Fields, mean: Array) -> tuple[Array, Array, Array]:
        """Return the coefficients of the columns in H, the factor of the new Gaussian number, and
        the components of that number along known directions that are not in the view of this cell.
        """
        along, off = self.view.along(fields.along)
        new = factor(fields.rest + off @ off.T)
        return self.combine(mean, along, new, fields.react), new, inverse(new) @ off

    def label(self, use: Use, loss: Scores, edge: float) -> None:
        """Set the targets and weights of these samples in a fit that uses them; samples with a
        margin up to `edge` are rejected.
        """
        self.in_use, self.loss, self.edge = True, loss, edge
        if use.labels is None:
            self.target, self.weight = self._given_target(), np.full(self.points, use.weight)
            return
        logits = self.logits[use.labels.teacher]
        self.target = self.made = loss.labels(use.labels, logits)
        self.selected = np.ones(self.points, dtype=bool)
        if edge > 0:
            self.selected = loss.margin(logits) > edge
        if use.labels.agree:
            self.selected &= loss.predicted(logits) == self.given
        self.weight = np.where(self.selected, use.weight, 0.0)
        if use.given > 0:  # losses are affine in targets: a sum of losses is one of a mixed target
            share = (self.weight / (use.given + self.weight))[:, None]
            self.target = share * self.made + (1.0 - share) * self._given_target()
            self.weight = use.given + self.weight
        self.u[:] = logits

    def _given_target(self) -> Array:
        return np.asarray(self.columns[:, :1] * self.loss.codes[self.given])

    def averages(self, theta: Array, strength: Array, slopes: bool) -> CellAverages:
        """Return the averages at the coefficients `theta` of the columns; with `slopes` also those
        for derivatives.
        """
        size, d = theta.shape[1], len(theta)
        f, square, stiffness = np.zeros((d, size)), np.zeros((d, d)), np.zeros((d, d))
        curved, cubes = np.zeros((d, d, size, size)), np.zeros((2, d**3, size))
        fours, double = np.zeros((2, d**3, d)), np.zeros((d * d, d * d))
        block = max(256, BLOCK // d**2)
        for begin in range(0, self.points, block):
            here = slice(begin, begin + block)
            y, w, own = self.columns[here, :size], self.weights[here], self.f[here]
            answer, bend = self.loss.respond(
                y @ theta.T, self.target[here], self.weight[here], strength, self.u[here], own,
                slopes,
            )  # fmt: skip
            wf = w[:, None] * own
            square += wf.T @ own
            stiffness += np.tensordot(self._alone[here], answer, axes=1)
            if not slopes:
                f += wf.T @ y
                continue
            answer = answer.reshape(-1, d * d)
            wd = w[:, None] * answer
            pulled = (wd[:, :, None] * own[:, None, :]).reshape(-1, d**3)
            bent = w[:, None] * bend.reshape(-1, d**3)
            both = np.concatenate([wf, pulled, bent], axis=1).T @ y
            f += both[:d]
            cubes[0] += both[d : d + d**3]
            cubes[1] += both[d + d**3 :]
            fours[0] += pulled.T @ own
            fours[1] += bent.T @ own
            double += (self._alone[here, None] * answer).T @ answer
            for j in range(d):
                # The maximum removes negative rounding errors.
                root = y * np.sqrt(np.maximum(wd[:, j * d + j], 0.0))[:, None]
                curved[j, j] += root.T @ root
                for k in range(j):
                    curved[j, k] += (y * wd[:, j * d + k, None]).T @ y
                    curved[k, j] = curved[j, k]
        if not slopes:
            return CellAverages(f, square, stiffness)
        return CellAverages(
            f, square, stiffness, curved,
            cubes[0].reshape(d, d, d, size), cubes[1].reshape(d, d, d, size),
            fours[0].reshape(d, d, d, d), fours[1].reshape(d, d, d, d),
            double.reshape(d, d, d, d),
        )  # fmt: skip

    def start_averages(self, theta: Array) -> tuple[Array, Array]:
        """Return $E[f y]$ and $E[f f]$ of the slopes at the logits given by `theta`, without the
        proximal map.
        """
        y = self.columns[:, : theta.shape[1]]
        logits = y @ theta.T
        f = self.weight[:, None] * self.loss.slope(self.target, logits)
        curvature = self.loss.curvature(self.target, logits)
        self._curvature = self.weight[:, None, None] * curvature
        wf = self.weights[:, None] * f
        return wf.T @ y, wf.T @ f

    def start_stiffness(self, strength: Array) -> Array:
        """Return $E[D]$ at the logits of `start_averages`, for a strength of the proximal map; for
        several components only on `START_POINTS` points.
        """
        if self.components == 1:
            bent = self._curvature / (1.0 + float(strength[0, 0]) * self._curvature)
            return np.asarray(np.tensordot(self._alone, bent, axes=1))
        alike, one = self.weights[0] == self.weights.max(), np.eye(self.components)
        some = slice(START_POINTS) if alike else slice(None, None, 1 + self.points // START_POINTS)
        curved, weights = self._curvature[some], self.weights[some]
        answer = np.linalg.solve(one + curved @ strength, curved)
        return np.asarray(np.tensordot(weights / weights.sum(), answer, axes=1))

    def meet(self, t: int, mean: Array, rows: Array) -> None:
        """Compute the logits of fit t, which precedes the first use of these samples; they are
        Gaussian.
        """
        self.place(t)
        along, off = self.view.along(rows)
        theta = self.combine(mean, along, factor(off @ off.T), NOTHING)
        self.logits[t] = self.columns[:, : theta.shape[1]] @ theta.T
        self.remember(t, theta, 0.0)
        self.finish(t, rows, np.zeros((self.points, 0)))

    def remember(self, t: int, theta: Array, strength: float) -> None:
        """Store the conditional law of the logit of fit t (two classes); strength 0 means that the
        fit does not use these samples.
        """
        if isinstance(self.loss, Binary):
            center = self.columns[:, : self.used] @ theta[0, : self.used]
            weight = self.weight if strength > 0 else np.zeros(self.points)
            spread = max(float(theta[0, self.used]), 1e-290)
            self.conditional[t] = ConditionalLogit(
                center, spread, self.loss, self.target, weight, strength
            )  # fmt: skip

    def follow(self, t: int, fields: Fields, mean: Array, remember: bool) -> None:
        """Compute the logits of fit t; they are trained ones if it uses these samples.

        Arguments:
            fields: fields of the fit, for the covariance of these samples.
            mean: the mean logit.
            remember: whether to store the conditional law of the logits.
        """
        self.place(t)
        theta = self.look(fields, mean)[0]
        self.logits[t] = self.columns[:, : theta.shape[1]] @ theta.T
        if self.in_use:
            self.averages(theta, fields.strength, False)
            self.logits[t] = self.u.copy()
        if remember:
            self.remember(t, theta, float(fields.strength[0, 0]) if self.in_use else 0.0)

    def finish(self, t: int, rows: Array, new: Array) -> None:
        """Add the columns of fit t: its Gaussian numbers and new functions of slopes.

        Arguments:
            rows: the weights of fit t in the basis of the covariance.
            new: the new functions, (points, 0 or d).
        """
        if t in self.seen:
            for place, component in enumerate(self.view.extend(rows)):
                if place < component:  # an earlier component was linearly dependent: close the gap
                    self.columns[:, self.used] = self.columns[:, self.used + component - place]
                self.along.append(self.used)
                self.used += 1
        for column in new.T:
            self.columns[:, self.used] = column
            self.reactions.append(self.used)
            self.used += 1

    def forget(self, needed: set[int]) -> None:
        """Drop the logits of all fits that are not in `needed`."""
        self.logits = {t: logit for t, logit in self.logits.items() if t in needed}
        self.conditional = {t: law for t, law in self.conditional.items() if t in needed}

    def with_functions(self, values: Array, count: int) -> Array:
        """Return the sums over samples of the products of values (points, d) with the functions of
        slopes, (d, count); zero for functions from before the first use.
        """
        sums, known = np.zeros((values.shape[1], count)), len(self.reactions)
        if known:  # multiply by all columns: selecting some would copy them
            weighted = self.share * self.weights[:, None] * values
            products = weighted.T @ self.columns[:, : self.used]
            sums[:, count - known :] = products[:, self.reactions]
        return sums

    def combined(self, slopes: Array) -> Array:
        """Return linear combinations, (points, d), of the functions of slopes, with coefficients
        (d, count).
        """
        known, theta = len(self.reactions), np.zeros((len(slopes), self.used))
        if known:
            theta[:, self.reactions] = slopes[:, -known:]
        return np.asarray(self.columns[:, : self.used] @ theta.T)

    def gram(self, count: int) -> Array:
        """Return the sums over samples of the products of functions of slopes, (count, count)."""
        gram, known = np.zeros((count, count)), len(self.reactions)
        if known:
            gram[-known:] = self.with_functions(self.columns[:, self.reactions], count)
        return gram

    def quality(self, made: PseudoLabels) -> tuple[float, float, float, float]:
        """Return the numbers per feature of samples, selected samples, correct pseudo-labels, and
        correct selected pseudo-labels.

        With exact moments they follow from the probability of each class. With one logit the
        average over its last Gaussian number is exact, so that the numbers are smooth functions of
        the parameters.
        """
        if self.exact:
            mean, *spread = self.logits[made.teacher]
            noise = np.array(spread)
            chances = class_probabilities(self.loss.basis, mean, noise.T @ noise)
            right = self.share * float(chances[self.kind])
            return self.share, self.share, right, right
        if made.teacher in self.conditional and not made.agree:
            z = self.conditional[made.teacher].number_at(np.array([[self.edge, -self.edge, 0.0]]))
            high, _, positive = ndtr(-z).T
            low, negative = ndtr(z[:, 1]), ndtr(z[:, 2])
            correct = positive if self.kind else negative
            parts = (high + low, correct, high if self.kind else low)
        else:
            counted = self.loss.predicted(self.logits[made.teacher]) == self.kind
            parts = (self.selected, counted, counted & self.selected)
        selected, correct, chosen = (self.share * float(self.weights @ part) for part in parts)
        return self.share, selected, correct, chosen

    def label_mass(self) -> Array:
        """Return the total weight of each class in the labels of the selected samples."""
        share = self.share * self.weights * self.weight
        return np.asarray(share @ self.loss.masses(self.target))

    def loss_sums(self, given: bool) -> tuple[float, float]:
        """Return the number per feature of samples with given labels, or (not `given`) of selected
        ones with pseudo-labels, and the sum of their losses with these labels.
        """
        target = self._given_target() if given else self.made
        used = np.ones(self.points) if given else self.selected
        losses = self.share * self.weights * self.loss.value(target, self.u)
        return self.share * float(self._alone @ used), float(losses @ used)
