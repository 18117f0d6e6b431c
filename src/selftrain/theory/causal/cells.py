r"""The process of one sample: its fields, trained logits and slopes over the fits.

A cell is one class of a group of samples. Given the fields of a fit, a sample has

$$H = \bar h + \sum_r L_{tr} z_r + L_{tt} z_t - \sum_k Y_{tk}\varphi_k,\qquad u^{(t)} = H - X_{tt}
f^{(t)},\qquad f^{(t)} = k\,\partial_2 l(y^{(t)}, u^{(t)}),$$

with independent Gaussian numbers z and what it remembers of its own slopes, $f^{(t)} =
\sum_k\Phi_{tk}\varphi_k$. H is linear in the columns $y = (1, z, \varphi)$ of a sample:
`CellAverages` has $E[f y]$ and all that its derivatives need. `Cell` averages over
quasi-Monte Carlo points or a grid. `LinearCell` (squared loss, soft labels, no selection) has
coefficients on the Gaussian numbers in place of points: its averages are exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from ...arrays import Array
from ...losses import Loss
from ...protocol import PseudoLabels, SampleGroup, Use
from .draws import Draw
from .response import Answer, respond
from .weights import ROUNDED

BLOCK = 4096
"""Points that are averaged at a time, so that they stay in the cache."""


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
    """Samples before the last Gaussian number of a logit: the mean of H and its spread; target,
    weight and strength of the fit (weight 0: the logit is H).
    """

    center: Array
    spread: float
    target: Array
    weight: Array
    strength: float

    def above(self, logit: float, loss: Loss) -> Array:
        """Return P(u > logit) of each sample: u grows with H."""
        pull = np.zeros(self.center.size)
        used = self.weight > 0
        if used.any():
            slope = loss.slope(self.target[used], np.full(int(used.sum()), logit))
            pull[used] = self.strength * self.weight[used] * slope
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


class Cell:
    """The samples of one class of a group, with everything they have seen.

    Arguments:
        group, loss: of the samples.
        kind: the index of the class.
        seen: the fits in which their logits matter, in order.
        steps: the number of fits.
        draw: the points.
    """

    def __init__(
        self, group: SampleGroup, loss: Loss, kind: int, seen: tuple[int, ...], draw: Draw
    ) -> None:
        self.group, self.loss, self.kind, self.seen = group, loss, kind, seen
        self.share = group.alpha * group.proportions[kind]
        drawn = draw(len(seen))
        # the classes have the same points, mirrored: a problem that treats them alike stays so
        self._noise = drawn.noise if kind else -drawn.noise
        self.weights = drawn.weights
        self._allocate(len(self.weights))

    def _allocate(self, points: int) -> None:
        most = 2 * len(self.seen) + 2 + (self.seen[-1] - self.seen[0])
        self.columns = np.zeros((points, most), order="F")
        self.columns[:, 0] = 1.0
        self.used = 1
        self.view = View()
        self.along: list[int] = []
        self.reactions: list[int] = []
        self.answer = Answer.empty(points)
        self.logits: dict[int, Array] = {}
        self.before: dict[int, BeforeNumber] = {}
        self.edge = 0.0
        self.target: Array = np.zeros(points)
        self.weight: Array = np.zeros(points)
        self._curvature: Array = self.weight

    @property
    def points(self) -> int:
        """How many points there are."""
        return len(self.columns)

    def place(self, t: int) -> None:
        """Put the new Gaussian number of fit t, if it is seen, into the next column."""
        self.columns[:, self.used] = self._noise[:, self.seen.index(t)]

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

    def label(self, t: int, use: Use, edge: float) -> None:
        """Set targets and weights of fit t; `edge` is the threshold on the logit."""
        if use.labels is None:
            self.target = np.full(self.points, self.loss.classes[self.kind])
            self.weight = np.full(self.points, use.weight)
            return
        self.edge = edge
        logits = self.logits[use.labels.teacher]
        labels = use.labels.labeler.target(logits, use.labels.sharpness, self.loss)
        self.target = np.array(labels, dtype=np.float64)
        self.weight = np.where(np.abs(logits) > edge, use.weight, 0.0)
        self.answer.u[:, 0] = logits

    def averages(self, theta: Array, strength: Array, slopes: bool) -> CellAverages:
        """Return the averages at coefficients of the columns; with `slopes`, for derivatives."""
        size, d = theta.shape[1], len(theta)
        f, square, stiffness = np.zeros((d, size)), np.zeros((d, d)), np.zeros((d, d))
        curved, cubes = np.zeros((d, d, size, size)), np.zeros((2, d**3, size))
        fours, double = np.zeros((2, d**3, d)), np.zeros((d * d, d * d))
        for begin in range(0, self.points, BLOCK):
            here = slice(begin, begin + BLOCK)
            y, w, answer = self.columns[here, :size], self.weights[here], self.answer.part(here)
            respond(self.loss, y @ theta.T, self.target[here], self.weight[here], strength, answer)
            wf = w[:, None] * answer.f
            square += wf.T @ answer.f
            stiffness += np.tensordot(w, answer.d, axes=1)
            if not slopes:
                f += wf.T @ y
                continue
            wd = (w[:, None, None] * answer.d).reshape(-1, d * d)
            pulled = (wd[:, :, None] * answer.f[:, None, :]).reshape(-1, d**3)
            bent = w[:, None] * answer.bend.reshape(-1, d**3)
            both = np.concatenate([wf, pulled, bent], axis=1).T @ y
            f += both[:d]
            cubes[0] += both[d : d + d**3]
            cubes[1] += both[d + d**3 :]
            fours[0] += pulled.T @ answer.f
            fours[1] += bent.T @ answer.f
            double += wd.T @ answer.d.reshape(-1, d * d)
            for j in range(d):
                root = y * np.sqrt(wd[:, j * d + j])[:, None]
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
        logits = y @ theta[0]
        f = self.weight * self.loss.slope(self.target, logits)
        self._curvature = self.weight * self.loss.curvature(self.target, logits)
        wf = self.weights * f
        return (wf @ y)[None], np.full((1, 1), wf @ f)

    def start_stiffness(self, strength: Array) -> Array:
        """Return $E[D]$ at those logits, for a strength."""
        bent = self._curvature / (1.0 + float(strength[0, 0]) * self._curvature)
        return np.full((1, 1), self.weights @ bent)

    def meet(self, t: int, mean: Array, rows: Array) -> None:
        """See fit t before the first use: the logits are Gaussian."""
        self.place(t)
        along, off = self.view.along(rows)
        theta = np.zeros((1, self.used + 1))
        theta[:, 0], theta[:, self.along] = mean, along
        theta[:, self.used] = math.sqrt(float(off[0] @ off[0]))
        self.logits[t] = self.columns[:, : self.used + 1] @ theta[0]
        self.remember(t, theta, 0.0)
        self._keep_numbers(self.view.extend(rows))

    def remember(self, t: int, theta: Array, strength: float) -> None:
        """Store what the law of the logits of fit t needs; strength 0 if it does not use them."""
        center = self.columns[:, : self.used] @ theta[0, : self.used]
        weight = self.weight if strength > 0 else np.zeros(self.points)
        spread = max(float(theta[0, self.used]), 1e-290)
        self.before[t] = BeforeNumber(center, spread, self.target, weight, strength)

    def _keep_numbers(self, lives: list[int]) -> None:
        for _ in lives:
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

    def quality(self, teacher: int) -> tuple[float, float, float, float]:
        """Return samples, selected ones, right labels, right and selected labels, per feature.

        The average over the last Gaussian number of the logit is exact: no count jumps.
        """
        before, edge = self.before[teacher], self.edge
        high, low, positive = (before.above(at, self.loss) for at in (edge, -edge, 0.0))
        right = positive if self.kind else 1.0 - positive
        both = high if self.kind else 1.0 - low
        parts = (high + 1.0 - low, right, both)
        selected, correct, chosen = (self.share * float(self.weights @ part) for part in parts)
        return self.share, selected, correct, chosen

    def label_mass(self) -> tuple[float, float, float]:
        """Return the weight of the selected samples, and what the labels give to either class."""
        share = self.share * self.weights * self.weight
        negative, positive = self.loss.classes
        up = float(share @ np.abs(self.target - negative)) / (positive - negative)
        down = float(share @ np.abs(self.target - positive)) / (positive - negative)
        return float(share.sum()), down, up

    def loss_sums(self) -> tuple[float, float]:
        """Return the selected samples per feature, and the sum of their losses."""
        share = self.share * self.weights * (self.weight > 0)
        return float(share.sum()), float(share @ self.loss.value(self.target, self.answer.u[:, 0]))


def seen_by(group_uses: dict[int, Use]) -> tuple[int, ...]:
    """Return the fits in which the logits of a group matter: its own, and those of its teachers."""
    labels: list[PseudoLabels] = [
        use.labels for use in group_uses.values() if use.labels is not None
    ]
    return tuple(sorted({*group_uses, *(made.teacher for made in labels)}))
