r"""The process of one sample: its fields, trained logits and slopes over the fits.

A cell is one class of a group of samples (with one given label, where some are wrong). Given the
fields of a fit, a sample has

$$H = \bar h + \sum_r L_{tr} z_r + L_{tt} z_t - \sum_k Y_{tk}\varphi_k,\qquad u^{(t)} = H - X_{tt}
f^{(t)},\qquad f^{(t)} = k\,\partial_2 l(y^{(t)}, u^{(t)}),$$

with independent Gaussian numbers z (d for every fit that matters) and what it remembers of its own
slopes, $f^{(t)} = \sum_k\Phi_{tk}\varphi_k$. H is linear in the columns $y = (1, z, \varphi)$ of a
sample: `CellAverages` has $E[f y]$ and all that its derivatives need. `Cell` averages over
quasi-Monte Carlo points or a grid. `LinearCell` (squared loss, soft labels, no selection) has
coefficients on the Gaussian numbers in place of points: its averages are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ...protocol import PseudoLabels, SampleGroup, Use
from .draws import Draw
from .response import Binary, EngineLoss
from .weights import ROUNDED, factor

BLOCK = 4096
"""Points that are averaged at a time, so that they stay in the cache."""


START_POINTS = 256
"""Points on which the stiffness of many components is estimated for a start: the first ones of a
sequence of low discrepancy, or some of a grid.
"""

NOTHING = np.zeros(0)
"""In place of averages that nobody asked for."""


class Seen(NamedTuple):
    """What a cell is given of a fit: mean logit, parts along its Gaussian numbers so far, factor of
    the new one, reactions, strength.
    """

    mean: Array
    along: Array
    new: Array
    react: Array
    strength: Array


class BeforeNumber(NamedTuple):
    """Samples before the last Gaussian number of their one logit: the mean of H and its spread;
    loss, target, weight and strength of the fit (weight 0: the logit is H).
    """

    center: Array
    spread: float
    loss: EngineLoss
    target: Array
    weight: Array
    strength: float

    def above(self, logit: float) -> Array:
        """Return P(u > logit) of each sample: u grows with H."""
        pull = np.zeros(self.center.size)
        used = self.weight > 0
        if used.any():
            slope = self.loss.slope(self.target[used], np.full((int(used.sum()), 1), logit))
            pull[used] = self.strength * self.weight[used] * slope[:, 0]
        return np.asarray(ndtr((self.center - logit - pull) / self.spread))


class CellAverages(NamedTuple):
    r"""Averages over a cell, y its columns, $D = \partial f/\partial H$, $D' = \partial D/\partial
    H$: $E[f y]$, $E[f f]$, $E[D]$, and, for derivatives, $E[D y y]$, $E[D f y]$, $E[D' y]$, $E[D f
    f]$, $E[D' f]$, $E[D D]$. Axes of the components come first, those of the columns last.
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
    """The Gaussian numbers of a group: an orthonormal basis of the weights that it has seen, in
    coordinates of the basis of its covariance.
    """

    def __init__(self) -> None:
        self._rows, self.size = np.zeros((0, 0)), 0

    @property
    def rows(self) -> Array:
        """The basis, one vector in each row."""
        return self._rows[: self.size]

    def along(self, part: Array) -> tuple[Array, Array]:
        """Return coordinates (..., r) of the covariance's basis in this one, and what is off it."""
        known = self.rows[:, : part.shape[-1]] if self.size else np.zeros((0, part.shape[-1]))
        mine = part @ known.T
        return mine, part - mine @ known

    def extend(self, rows: Array) -> list[int]:
        """Take the weights of a fit; returns the components with a Gaussian number of their own."""
        lives = []
        width = rows.shape[1]
        if not self.size:
            self._rows = np.zeros((width, width))
        for j, row in enumerate(rows):
            rest = row
            for _ in range(2):
                rest = rest - (self.rows @ rest) @ self.rows
            square = float(rest @ rest)
            if square > ROUNDED * float(row @ row):
                self._rows[self.size] = rest / math.sqrt(square)
                self.size += 1
                lives.append(j)
        return lives


class Kind(NamedTuple):
    """What samples of a cell have in common: class, given label, and samples per feature."""

    true: int
    given: int
    share: float


def kinds_of(group: SampleGroup, uses: dict[int, Use]) -> list[Kind]:
    """Return the cells of a group: its classes, each with all given labels where these matter."""
    kinds = []
    for k, proportion in enumerate(group.proportions):
        row = {k: 1.0}
        if group.label_noise is not None and any(use.needs_given for use in uses.values()):
            row = {given: p for given, p in enumerate(group.label_noise[k]) if p > 0}
        kinds += [Kind(k, given, group.alpha * proportion * p) for given, p in row.items()]
    return kinds


class Cell:
    """The samples of one kind of a group, with everything they have seen.

    Arguments:
        group: of the samples.
        loss: of the first fit that matters; `label` sets that of every fit.
        kind: their class and given label.
        seen: the fits in which their logits matter, in order.
        draw: the points.
    """

    def __init__(
        self, group: SampleGroup, loss: EngineLoss, kind: Kind, seen: tuple[int, ...], draw: Draw
    ) -> None:
        self._describe(group, loss, kind, seen)
        drawn = draw(self.components * len(seen), self.kind)
        self._noise, self.weights = drawn.noise, drawn.weights
        self._allocate(len(self.weights))

    def _describe(
        self, group: SampleGroup, loss: EngineLoss, kind: Kind, seen: tuple[int, ...]
    ) -> None:
        self.group, self.loss, self.seen = group, loss, seen
        self.kind, self.given, self.share = kind
        self.components = loss.components

    def _allocate(self, points: int) -> None:
        d, fits = self.components, self.seen[-1] - self.seen[0] + 1
        self.columns = np.zeros((points, 1 + d * (len(self.seen) + fits + 1)), order="F")
        self.columns[:, 0] = 1.0
        self.used = 1
        self.view = View()
        self.along: list[int] = []
        self.reactions: list[int] = []
        self.u, self.f = np.zeros((points, d)), np.zeros((points, d))
        self.logits: dict[int, Array] = {}
        self.before: dict[int, BeforeNumber] = {}
        self.edge = 0.0
        self.use = Use(0, 0.0)
        self.made: Array = np.zeros((points, d))
        self.target: Array = self.made
        self.selected = np.ones(points, dtype=bool)
        self.weight: Array = np.zeros(points)
        self._curvature: Array = np.zeros((points, d, d))

    @property
    def points(self) -> int:
        """How many points there are."""
        return len(self.columns)

    def place(self, t: int) -> None:
        """Put the new Gaussian numbers of fit t, if it is seen, into the next columns."""
        d, at = self.components, self.seen.index(t)
        self.columns[:, self.used : self.used + d] = self._noise[:, d * at : d * (at + 1)]

    def combine(self, seen: Seen) -> Array:
        """Return the coefficients of the columns in H, (..., d, columns)."""
        size = self.used + seen.new.shape[-1]
        theta = np.zeros((*seen.mean.shape, size))
        theta[..., 0] = seen.mean
        theta[..., self.along] = seen.along
        theta[..., self.used :] = seen.new
        known = len(self.reactions)
        if known:  # samples have no part in the fits before their first
            theta[..., self.reactions] = -seen.react[..., -known:]
        return theta

    def label(self, use: Use, loss: EngineLoss, edge: float) -> None:
        """Set targets and weights of a fit; `edge` is the threshold on the margin."""
        self.use, self.loss, given = use, loss, loss.codes[self.given]
        if use.labels is None:
            self.target = np.tile(given, (self.points, 1))
            self.weight = np.full(self.points, use.weight)
            return
        self.edge = edge
        logits = self.logits[use.labels.teacher]
        self.target = self.made = loss.labels(use.labels, logits)
        self.selected = loss.margin(logits) > edge
        if use.labels.agree:
            self.selected &= loss.predicted(logits) == self.given
        self.weight = np.where(self.selected, use.weight, 0.0)
        if use.given > 0:  # losses are affine in their targets: their mean is that of a mixture
            share = (self.weight / (use.given + self.weight))[:, None]
            self.target = share * self.made + (1.0 - share) * given
            self.weight = use.given + self.weight
        self.u[:] = logits

    def averages(self, theta: Array, strength: Array, slopes: bool) -> CellAverages:
        """Return the averages at coefficients of the columns; with `slopes`, for derivatives."""
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
            stiffness += np.tensordot(w, answer, axes=1)
            if not slopes:
                f += wf.T @ y
                continue
            wd = (w[:, None, None] * answer).reshape(-1, d * d)
            pulled = (wd[:, :, None] * own[:, None, :]).reshape(-1, d**3)
            bent = w[:, None] * bend.reshape(-1, d**3)
            both = np.concatenate([wf, pulled, bent], axis=1).T @ y
            f += both[:d]
            cubes[0] += both[d : d + d**3]
            cubes[1] += both[d + d**3 :]
            fours[0] += pulled.T @ own
            fours[1] += bent.T @ own
            double += wd.T @ answer.reshape(-1, d * d)
            for j in range(d):
                root = y * np.sqrt(np.maximum(wd[:, j * d + j], 0.0))[:, None]  # or rounding
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
        """Return $E[f y]$ and $E[f f]$ of the slopes at logits that are not fitted yet."""
        y = self.columns[:, : theta.shape[1]]
        logits = y @ theta.T
        f = self.weight[:, None] * self.loss.slope(self.target, logits)
        curvature = self.loss.curvature(self.target, logits)
        self._curvature = self.weight[:, None, None] * curvature
        wf = self.weights[:, None] * f
        return wf.T @ y, wf.T @ f

    def start_stiffness(self, strength: Array) -> Array:
        """Return $E[D]$ at those logits, for a strength; of many components, on some points."""
        if self.components == 1:
            bent = self._curvature / (1.0 + float(strength[0, 0]) * self._curvature)
            return np.asarray(np.tensordot(self.weights, bent, axes=1))
        alike, one = self.weights[0] == self.weights.max(), np.eye(self.components)
        some = slice(START_POINTS) if alike else slice(None, None, 1 + self.points // START_POINTS)
        curved, weights = self._curvature[some], self.weights[some]
        answer = np.linalg.solve(one + curved @ strength, curved)
        return np.asarray(np.tensordot(weights / weights.sum(), answer, axes=1))

    def meet(self, t: int, mean: Array, rows: Array) -> None:
        """See fit t before the first use: the logits are Gaussian."""
        self.place(t)
        along, off = self.view.along(rows)
        theta = self.combine(Seen(mean, along, factor(off @ off.T), np.zeros((1, 0)), NOTHING))
        self.logits[t] = self.columns[:, : theta.shape[1]] @ theta.T
        self.remember(t, theta, 0.0)
        self._keep_numbers(self.view.extend(rows))

    def remember(self, t: int, theta: Array, strength: float) -> None:
        """Store what the law of the one logit of fit t needs; strength 0 if the fit does not use
        these samples.
        """
        if isinstance(self.loss, Binary):
            center = self.columns[:, : self.used] @ theta[0, : self.used]
            weight = self.weight if strength > 0 else np.zeros(self.points)
            spread = max(float(theta[0, self.used]), 1e-290)
            self.before[t] = BeforeNumber(
                center, spread, self.loss, self.target, weight, strength
            )  # fmt: skip

    def _keep_numbers(self, lives: list[int]) -> None:
        for place, component in enumerate(lives):
            if place < component:  # an earlier component brought no direction of its own
                self.columns[:, self.used] = self.columns[:, self.used + component - place]
            self.along.append(self.used)
            self.used += 1

    def with_functions(self, values: Array, count: int) -> Array:
        """Return the sums over products of values (points, d) with the functions of slopes; zero
        for those before the first use, (d, count).
        """
        sums, known = np.zeros((values.shape[1], count)), len(self.reactions)
        weighted = self.share * self.weights[:, None] * values
        if known:  # products with all columns: a choice of columns would be a copy
            products = weighted.T @ self.columns[:, : self.used]
            sums[:, count - known :] = products[:, self.reactions]
        return sums

    def combined(self, slopes: Array) -> Array:
        """Return the functions of slopes combined with coefficients (d, count), (points, d)."""
        known, theta = len(self.reactions), np.zeros((len(slopes), self.used))
        if known:
            theta[:, self.reactions] = slopes[:, -known:]
        return np.asarray(self.columns[:, : self.used] @ theta.T)

    def gram(self, count: int) -> Array:
        """Return the sums over products of functions of slopes, (count, count)."""
        gram, known = np.zeros((count, count)), len(self.reactions)
        if known:
            functions = self.columns[:, self.reactions]
            gram[-known:] = self.with_functions(functions, count)
        return gram

    def finish(self, t: int, rows: Array, new: Array, logits: Array) -> None:
        """Take the solution of fit t: logits, Gaussian number, and new functions of slopes.

        Arguments:
            rows: the weights of fit t in the basis of the covariance.
            new: the new functions, (points, 0 or d).
            logits: at fit t, if it is seen.
        """
        if t in self.seen:
            self.logits[t] = logits
            self._keep_numbers(self.view.extend(rows))
        for column in new.T:
            self.columns[:, self.used] = column
            self.reactions.append(self.used)
            self.used += 1

    def forget(self, needed: set[int]) -> None:
        """Drop the logits that no later fit asks for."""
        self.logits = {t: logit for t, logit in self.logits.items() if t in needed}
        self.before = {t: known for t, known in self.before.items() if t in needed}

    def quality(self, made: PseudoLabels) -> tuple[float, float, float, float]:
        """Return samples, selected ones, right labels, right and selected labels, per feature.

        With one logit the average over its last Gaussian number is exact: no count jumps.
        """
        if made.teacher in self.before and not made.agree:
            before, edge = self.before[made.teacher], self.edge
            high, low, positive = (before.above(at) for at in (edge, -edge, 0.0))
            right = positive if self.kind else 1.0 - positive
            both = high if self.kind else 1.0 - low
            parts = (high + 1.0 - low, right, both)
        else:
            right = self.loss.predicted(self.logits[made.teacher]) == self.kind
            parts = (self.selected, right, right & self.selected)
        selected, correct, chosen = (self.share * float(self.weights @ part) for part in parts)
        return self.share, selected, correct, chosen

    def label_mass(self) -> Array:
        """Return the weight that the labels of the selected samples give to each class."""
        share = self.share * self.weights * self.weight
        return np.asarray(share @ self.loss.masses(self.target))

    def loss_sums(self, given: bool) -> tuple[float, float]:
        """Return the samples with given labels per feature, or with made ones (selected), and the
        sum of their losses with these labels.
        """
        share, target = self.share * self.weights, np.tile(self.loss.codes[self.given], (1, 1))
        if not given:
            share, target = share * self.selected, self.made
        losses = self.loss.value(np.broadcast_to(target, self.u.shape), self.u)
        return float(share.sum()), float(share @ losses)


def seen_by(group_uses: dict[int, Use]) -> tuple[int, ...]:
    """Return the fits in which the logits of a group matter: its own, and those of its teachers."""
    labels: list[PseudoLabels] = [
        use.labels for use in group_uses.values() if use.labels is not None
    ]
    return tuple(sorted({*group_uses, *(made.teacher for made in labels)}))
