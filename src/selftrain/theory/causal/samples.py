r"""The samples of a replicate over the fits: drawn at their first use, labelled, measured, and
dropped after their last use.

The slopes of all samples with one covariance are expanded in orthonormal functions $\varphi_k$ of
the samples, $f^{(t)} = \sum_k \Phi_{tk}\varphi_k$. Each fit adds the part of its slopes that is
orthogonal to the earlier ones. Of samples that are dropped, only the sums over products of these
functions are stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...protocol import Fit, SampleGroup, Use
from .cells import Cell
from .conditional import ConditionalLogit
from .draws import Kind, PointSource
from .setting import Setting
from .unknowns import Law, inverse
from .weights import Fields, WeightHistory

NO_SUMS = np.zeros((0, 0))


class FittedSamples(NamedTuple):
    """Samples of one kind after a fit.

    Attributes:
        use: how the fit used them.
        true, given: class and given label.
        shares: samples per feature that each point represents.
        previous: logits under the fit that made the pseudo-labels (NaN for given labels).
        logits: trained logits.
        selected: whether the pseudo-label was selected; True for given labels.
        conditional: for two classes, the law of the logit given all Gaussian numbers but the last.
    """

    use: Use
    true: int
    given: int
    shares: Array
    previous: Array
    logits: Array
    selected: NDArray[np.bool_]
    conditional: ConditionalLogit | None


class Samples:
    """The samples of a replicate.

    Arguments:
        setting: the protocol and its coordinates.
        source: source of the points.
        keep_laws: whether to store the conditional laws of all logits, not only of those that later
            fits make labels from.
    """

    def __init__(self, setting: Setting, source: PointSource, keep_laws: bool) -> None:
        self._setting, self._source, self._keep_laws = setting, source, keep_laws
        self._at_hand: dict[int, list[Cell]] = {}
        self._dropped: dict[int, Array] = {}
        self.points = 0

    def used_by(self, fit: Fit) -> list[Cell]:
        """Return the samples of a fit."""
        return [cell for use in fit.uses for cell in self._at_hand[use.group]]

    def _all(self, source: int | None = None) -> Iterator[Cell]:
        for cells in self._at_hand.values():
            yield from (cell for cell in cells if source is None or cell.source == source)

    def bring(self, t: int, history: WeightHistory, bias: Array) -> None:
        """Draw the samples of fit t that are used for the first time, and label all of fit t."""
        for cell in self._all():
            cell.in_use = False
        for use in self._setting.protocol.fits[t].uses:
            if use.group not in self._at_hand:
                self._at_hand[use.group] = self._draw(use.group, t, history, bias)
            edge, loss = 0.0, self._setting.losses[t]
            if use.labels is not None:
                unit = loss.unit(history.square(use.labels.teacher))
                edge = use.labels.threshold * unit * self._setting.protocol.length
            for cell in self._at_hand[use.group]:
                cell.label(use, loss, edge)
                cell.place(t)

    def _draw(self, g: int, t: int, history: WeightHistory, bias: Array) -> list[Cell]:
        """Return the cells of group g, with their logits under those fits before t that they
        need.
        """
        setting, source = self._setting, self._source
        group, loss = setting.protocol.groups[g], setting.losses[t]
        uses = self._uses(g)
        seen, cells = seen_by(uses), []
        for kind in kinds_of(group, uses):
            drawn = source.draw(g, kind, loss.classes, loss.components * len(seen))
            a = setting.space.sets[group.law].sources[kind.true]
            cell = Cell(group, kind, a, seen, loss, drawn, source.exact)
            for s in seen:
                if s < t:
                    mean = history.means(group.law, history.fits[s])[:, kind.true] + bias[s]
                    cell.meet(s, mean, history.coordinates(a, s))
            cells.append(cell)
            if not source.exact:
                self.points = max(self.points, cell.points)
        return cells

    @property
    def laws(self) -> set[Law]:
        """The clusters of all samples that are in memory."""
        return {cell.law for cell in self._all()}

    def clear(self) -> None:
        """Drop all samples."""
        self._at_hand.clear()

    def follow(self, t: int, fields: dict[int, Fields], means: dict[Law, Array]) -> None:
        """Compute the logits of all samples under fit t, whether it uses them or not.

        Arguments:
            fields: fields of the fit, by covariances.
            means: mean logits of the classes, by clusters.
        """
        for g, cells in self._at_hand.items():
            remember = self._keep_laws or t in self._teachers(g, t)
            for cell in cells:
                if t in cell.seen:
                    mean = means[cell.law][:, cell.kind]
                    cell.follow(t, fields[cell.source], mean, remember)

    def split_slopes(self, a: int, count: int) -> tuple[Array, Array]:
        r"""Split the slopes of a fit into their components along the functions so far and an
        orthogonal rest. This is done twice, because the rest is a small difference.

        Arguments:
            a: index of the covariance.
            count: number of functions so far.

        Returns:
            $\Phi_{tk}$, and the square of the rest.
        """
        slopes = np.zeros((self._setting.protocol.components, count))
        dropped, cells = self._dropped.get(a, NO_SUMS), list(self._all(a))
        for cell in cells:
            cell.rest = cell.f.copy() if cell.in_use else np.zeros_like(cell.f)
        for _ in range(2):
            overlap = -slopes @ dropped
            for cell in cells:
                overlap += cell.with_functions(cell.rest, count)
            slopes += overlap
            for cell in cells:
                cell.rest -= cell.combined(overlap)
        square = slopes @ dropped @ slopes.T
        for cell in cells:
            square += cell.share * (cell.weights[:, None] * cell.rest).T @ cell.rest
        return slopes, square

    def finish(
        self, t: int, history: WeightHistory, slopes: dict[int, Array], factors: dict[int, Array]
    ) -> None:
        r"""Add the new functions of slopes of fit t, $\Phi_{tt}^{-1}(f - \Phi\varphi)$, and its
        Gaussian numbers; drop everything that no later fit needs.
        """
        new = {a: inverse(factor) for a, factor in factors.items() if factor.size}
        for a, left in new.items():
            dropped = self._dropped.get(a, NO_SUMS)
            if not self._at_hand:  # a known fit, whose samples are not in memory
                self._dropped[a] = np.eye(len(dropped) + len(left))
                continue
            share = left @ slopes[a]
            row = -dropped @ share.T
            self._dropped[a] = np.block([[dropped, row], [row.T, -row.T @ share.T]])
        for g, cells in list(self._at_hand.items()):
            needed = any(s > t for s in self._uses(g))
            for cell in cells:
                functions = np.zeros((cell.points, 0))
                if cell.source in new:
                    functions = cell.rest @ new[cell.source].T
                cell.finish(t, history.coordinates(cell.source, t), functions)
                cell.forget(self._teachers(g, t))
                if not needed:
                    self._dropped[cell.source] += cell.gram(history.functions(cell.source))
            if not needed:
                del self._at_hand[g]

    def idle(self, a: int, count: int) -> Array:
        """Return the sums over products of functions of slopes, over samples that the current fit
        does not use.
        """
        sums = self._dropped.get(a, NO_SUMS).copy()
        for cell in self._all(a):
            if not cell.in_use:
                sums += cell.gram(count)
        return sums

    def _teachers(self, g: int, t: int) -> set[int]:
        """Return the fits whose logits label the samples of group g in fits after t."""
        uses = self._uses(g).items()
        return {use.labels.teacher for s, use in uses if s > t and use.labels is not None}

    def _uses(self, g: int) -> dict[int, Use]:
        """Return the uses of a group by the fits to solve."""
        uses, lost = self._setting.protocol.uses[g].items(), self._setting.lost
        return {s: use for s, use in uses if s <= self._setting.last and s not in lost}

    def fitted(self, t: int) -> list[FittedSamples]:
        """Return the samples of fit t with their trained logits."""
        found = []
        for use in self._setting.protocol.fits[t].uses:
            for cell in self._at_hand[use.group]:
                previous, selected = np.full(cell.u.shape, np.nan), cell.weight > 0
                if use.labels is not None:
                    previous, selected = cell.logits[use.labels.teacher], cell.selected
                found.append(FittedSamples(
                    use, cell.kind, cell.given, cell.share * cell.weights, previous, cell.u.copy(),
                    selected, cell.conditional.get(t),
                ))  # fmt: skip
        return found

    def label_quality(self, fit: Fit) -> tuple[float, float, float]:
        """Return the selected proportion of the pseudo-labelled samples, the accuracy of all
        pseudo-labels, and that of the selected ones; NaN without pseudo-labels.
        """
        parts = [
            cell.quality(use.labels)
            for use in fit.uses if use.labels is not None
            for cell in self._at_hand[use.group]
        ]  # fmt: skip
        if not parts:
            return math.nan, math.nan, math.nan
        total, selected, right, both = (sum(column) for column in zip(*parts, strict=True))
        return selected / total, right / total, both / selected if selected else math.nan

    def label_shares(self, fit: Fit) -> Array:
        """Return the proportion of each class among the pseudo-labels of a fit, or among its given
        labels if it has no pseudo-labels; zeros for a fit without any sample.
        """
        made: Sequence[Use] = [use for use in fit.uses if use.labels is not None]
        uses = made or fit.uses
        mass = np.sum([c.label_mass() for use in uses for c in self._at_hand[use.group]], axis=0)
        total = float(mass.sum())
        return np.asarray(mass / total if total > 0 else mass)

    def losses(self, fit: Fit) -> tuple[float, float]:
        """Return the mean loss of the selected pseudo-labelled samples (without any, of those with
        given labels), and the mean loss of given labels in a fit that also has pseudo-labels.
        """
        means = []
        for given in (False, True):
            parts = [
                cell.loss_sums(given)
                for use in fit.uses
                if (use.labels is None or use.given > 0 if given else use.labels)
                for cell in self._at_hand[use.group]
            ]
            count, loss = sum(part[0] for part in parts), sum(part[1] for part in parts)
            means.append(loss / count if count else math.nan)
        plain, kept = means
        return (plain, kept) if any(use.labels for use in fit.uses) else (kept, math.nan)


def kinds_of(group: SampleGroup, uses: dict[int, Use]) -> list[Kind]:
    """Return the kinds of samples of a group: its classes, each divided by given labels if these
    matter.
    """
    kinds = []
    for k, proportion in enumerate(group.proportions):
        row = {k: 1.0}
        if group.label_noise is not None and any(use.needs_given for use in uses.values()):
            row = {given: p for given, p in enumerate(group.label_noise[k]) if p > 0}
        each, most = group.alpha * proportion, max(row.values())
        kinds += [Kind(k, given, each * p, p / most) for given, p in row.items()]
    return kinds


def seen_by(group_uses: dict[int, Use]) -> tuple[int, ...]:
    """Return the fits under which the logits of a group are needed: those that use it, and those
    that make its pseudo-labels.
    """
    teachers = {use.labels.teacher for use in group_uses.values() if use.labels is not None}
    return tuple(sorted({*group_uses, *teachers}))
