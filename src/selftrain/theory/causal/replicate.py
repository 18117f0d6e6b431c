r"""All fits on one replicate: the causal loop over the fits, and what is measured of the samples on
the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...errors import StageError
from ...protocol import Fit, Protocol, Use
from ...runtime.progress import Progress
from ..ending import Ending
from ..tolerances import ONLY_BIAS
from .cells import BeforeNumber, Cell, kinds_of, seen_by
from .coordinates import Coordinates
from .draws import Draw, grid, scrambled
from .linear import LinearCell
from .measured import class_lost, label_quality, label_shares, losses
from .newton import System, solve_step
from .response import EngineLoss, engine_loss
from .starts import large_ridge_start, no_update_start
from .step import CausalStep, Member, exact_averages, looked_at
from .weights import Hats, Law, Layout, WeightHistory, inverse

Counts = NDArray[np.int64]

MEASURED = (
    "fraction_selected",
    "pseudo_label_accuracy",
    "selected_label_accuracy",
    "train_loss",
    "kept_loss",
)


class PointSource(NamedTuple):
    """Where the points of a replicate come from: Sobol points with a seed, a grid of a level, or
    (neither) exact moments.
    """

    points: int = 0
    seed: np.random.SeedSequence | None = None
    level: int = 0

    @property
    def size(self) -> float:
        """About how many points, as a measure of the work."""
        return float(max(self.points, self.level**3, 1))

    def draws(self, groups: int, classes: int) -> list[Draw | None]:
        """Return the points of each group."""
        if self.level:
            return [grid(self.level)] * groups
        if self.points == 0 or self.seed is None:
            return [None] * groups
        seeds = self.seed.spawn(groups)
        each = [[own] if classes == 2 else own.spawn(classes) for own in seeds]
        return [scrambled(self.points, own) for own in each]


class Known(NamedTuple):
    """A fit that is known exactly: bias and conjugates, $\\hat Q_{t,t-1}$ the only one of a row."""

    bias: float
    mean: float
    stiffness: Array
    propagation: Array
    fresh: Array


class Setting(NamedTuple):
    """A protocol, and the part of it that is known exactly.

    Attributes:
        test: the law of test samples.
        known: the fits before any sample is reused.
        begin: the first fit on points; the first that uses samples which are reused.
        last: the last fit to solve.
        losses: of every fit.
        bar: shows every fit of every replicate; a fit counts as long as there are points.
    """

    protocol: Protocol
    space: Coordinates
    test: Law
    known: tuple[Known, ...]
    begin: int
    last: int
    losses: tuple[EngineLoss, ...]
    bar: Progress | None = None

    @classmethod
    def of(cls, protocol: Protocol, known: tuple[Known, ...] = ()) -> Setting:
        """Write out what the replicates of a protocol solve."""
        reused = (min(uses) for uses in protocol.uses if len(uses) > 1)
        begin = min(reused, default=0) if known else 0
        test = protocol.test.law
        space = Coordinates([*(group.law for group in protocol.groups), test])
        losses = tuple(engine_loss(fit.loss, protocol.classes) for fit in protocol.fits)
        return cls(protocol, space, test, known, begin, protocol.steps, losses)

    def expect(self, source: PointSource, replicates: int = 1) -> None:
        """Announce the fits of some replicates."""
        if self.bar is not None:
            steps = replicates * (self.last + 1 - self.begin)
            self.bar.extend(steps, steps * source.size)


class Outcome(NamedTuple):
    """How replicates ended and what they took: fits solved, tolerance, accuracy of each fit,
    evaluations, points, collapse, failure.
    """

    end: int
    tolerance: float
    accuracy: Array
    evaluations: Counts
    points: int
    collapsed_at: int | None
    failure: StageError | None


class FittedSamples(NamedTuple):
    """Samples of one kind after a fit: how it used them, class and given label, samples per feature
    of each point, logits under the teacher of pseudo-labels (NaN for given labels), trained logits,
    whether the pseudo-label (or any label) is used; of one logit also what it was before its last
    Gaussian number.
    """

    use: Use
    true: int
    given: int
    shares: Array
    previous: Array
    logits: Array
    selected: NDArray[np.bool_]
    before: BeforeNumber | None


class Replicate(NamedTuple):
    r"""The answer of one replicate; arrays over t = 0..T.

    Attributes:
        history: the weights.
        bias: of every fit, (T+1, d).
        hats: the conjugates of every fit.
        gains: $\mathrm{tr}\,G_t/N$.
        moves: how far the solution of each fit is from its plain start, for another replicate to
            start from.
        systems: the last Jacobian of each fit of more than two classes, for the same.
        measured: rows of `MEASURED`.
        shares: of each class among the labels of a fit, (T+1, K).
        collapsed_at: the first fit that has no label of some class, or None.
        evaluations: evaluations of the equations of each fit.
        points: of the largest group, for each class.
    """

    history: WeightHistory
    bias: Array
    hats: list[Hats]
    gains: Array
    moves: dict[int, Array]
    systems: dict[int, System]
    measured: Array
    shares: Array
    collapsed_at: int | None
    evaluations: Counts
    points: int


class CausalRun:
    """The loop over the fits of one replicate.

    Arguments:
        setting: what is solved.
        source: of the points; exact moments for a linear problem.
        near: the moves of a run nearby (another replicate or recipe), to start from.
        systems: the Jacobians of another replicate, to begin with.
        keep_samples: store the samples of every fit in `samples`.
    """

    def __init__(
        self, setting: Setting, source: PointSource, near: dict[int, Array] | None = None,
        systems: dict[int, System] | None = None, keep_samples: bool = False,
    ) -> None:  # fmt: skip
        protocol, space = setting.protocol, setting.space
        self.setting, self.source, self.near = setting, source, near
        self.keep_samples = keep_samples
        self.groups, steps = protocol.groups, protocol.steps
        d = setting.losses[0].components
        self.draws = source.draws(len(self.groups), d + 1)
        noises: dict[int, int] = {}
        for fit in protocol.fits:
            laws = {self.groups[use.group].law for use in fit.uses}
            for a in {a for law in laws for a in space.sets[law].sources}:
                noises[a] = noises.get(a, 0) + 1
        self.history = WeightHistory(space, steps + 1, d, noises)
        self.bias = np.full((steps + 1, d), np.nan)
        self.hats: list[Hats] = []
        self.gains = np.full(steps + 1, np.nan)
        self.moves: dict[int, Array] = {}
        self.near_systems, self.systems = systems or {}, dict[int, System]()
        self.measured = np.full((len(MEASURED), steps + 1), np.nan)
        self.shares = np.full((steps + 1, d + 1), np.nan)
        self.evaluations = np.zeros(steps + 1, dtype=np.int64)
        self.present: dict[int, list[Member]] = {}
        self.samples: list[list[FittedSamples]] = []
        self.lost: dict[int, Array] = {}
        self.points = 0

    def solve(self) -> Replicate:
        """Solve all fits."""
        setting, collapsed_at = self.setting, None
        for t in range(setting.begin):
            self._enter_known(t)
        for t in range(setting.begin, setting.last + 1):
            if not self._fit(t, setting.protocol.fits[t]):
                collapsed_at = t
                break
            if setting.bar is not None:
                setting.bar.advance(expected=self.source.size)
        return Replicate(
            self.history, self.bias, self.hats, self.gains, self.moves, self.systems, self.measured,
            self.shares, collapsed_at, self.evaluations, self.points,
        )  # fmt: skip

    def _enter_known(self, t: int) -> None:
        """Take a fit that is known exactly, before any on points."""
        layout = self._layout(self.setting.protocol.fits[t])
        hats = self._hats_of(t, layout)
        self._take(t, layout, layout.pack(np.array([self.setting.known[t].bias]), hats))

    def _layout(self, fit: Fit) -> Layout:
        groups = [self.groups[use.group] for use in fit.uses]
        laws = {group.law: len(group.proportions) for group in groups}
        sources = {a for law in laws for a in self.setting.space.sets[law].sources}
        return self.history.layout(laws, sorted(sources))

    def _hats_of(self, t: int, layout: Layout) -> Hats:
        """The conjugates of a known fit in the bases of this replicate."""
        known = self.setting.known[t]
        law, sources = next(iter(layout.laws)), list(layout.sources)
        along, slopes = {}, {}
        for place, (a, (r, k)) in enumerate(layout.sources.items()):
            row = self.history.coordinates(a, t - 1)[:, :r] if t else np.zeros((1, r))
            along[a], slopes[a] = known.propagation[place] * row, np.zeros((1, k))
        squares = [
            {a: np.full((1, 1), values[place]) for place, a in enumerate(sources)}
            for values in (known.stiffness, known.fresh)
        ]
        means = {law: 0.5 * known.mean * np.array([[-1.0, 1.0]])}
        return Hats(means, squares[0], along, slopes, squares[1])

    def _fit(self, t: int, fit: Fit) -> bool:
        """Solve fit t and let all samples take it; False if its labels have collapsed."""
        if t > 0 and fit.bias_of is None and self._faded(fit, t):
            return False
        self._bring(t, fit)
        members = [member for use in fit.uses for member in self.present[use.group]]
        self.measured[:3, t] = label_quality(fit, self.present)
        self.shares[t] = label_shares(fit, self.present)
        if t > 0 and class_lost(t, fit, self.shares[t], self._state(t - 1)):
            return False
        if exact_averages(members):  # linear labels have no class
            self.shares[t] = np.nan
        for member in members:
            member.cell.place(t)
        layout = self._layout(fit)
        fixed = None if fit.bias_of is None else self.bias[fit.bias_of]
        used = [use.group for use in fit.uses]
        idle = self._idle(layout, used) if exact_averages(members) else {}
        stage = CausalStep(t, members, self.history, layout, fit.ridge, fixed, idle)
        plain = self._plain_start(stage)
        near = self.near_systems.get(t)
        if near is not None and near.size != layout.size:
            near = None
        found = solve_step(stage, [*self._shifted(stage, plain), plain], near)
        if layout.components > 1 and found.system is not None:  # where Jacobians take the time
            self.systems[t] = found.system
        self.moves[t], self.evaluations[t] = _move(plain, found.z, layout), found.evaluations
        self._take(t, layout, found.z, used)
        self.measured[3:, t] = losses(fit, self.present)
        later = self.setting.protocol.fits[t + 1 :]
        needed = {use.group for after in later for use in after.uses}
        for g in [g for g in self.present if g not in needed]:
            for cell, _, a in self.present.pop(g):
                self.lost[a] = self.lost[a] + cell.gram(len(self.history.bases[a].columns))
        return True

    def _bring(self, t: int, fit: Fit) -> None:
        """Draw the samples of a fit at their first use, and label all."""
        for use in fit.uses:
            if use.group not in self.present:
                self.present[use.group] = self._draw(use.group, t)
            edge, loss = 0.0, self.setting.losses[t]
            if use.labels is not None:
                unit = loss.unit(self.history.square(use.labels.teacher))
                edge = use.labels.threshold * unit * self.setting.protocol.length
            for member in self.present[use.group]:
                member.cell.label(use, loss, edge)

    def _draw(self, g: int, t: int) -> list[Member]:
        """The cells of a group, which have seen the fits before t that matter for them."""
        protocol, draw, group = self.setting.protocol, self.draws[g], self.groups[g]
        uses = {s: use for s, use in protocol.uses[g].items() if s <= self.setting.last}
        seen, loss = seen_by(uses), self.setting.losses[t]
        members = []
        for kind in kinds_of(group, uses):
            if draw is None:
                cell: Cell = LinearCell(group, loss, kind, seen)
            else:
                cell = Cell(group, loss, kind, seen, draw)
            a = self.setting.space.sets[group.law].sources[kind.true]
            members.append(Member(cell, group.law, a))
            for s in seen:
                if s < t:
                    rows = self.history.coordinates(a, s)
                    cell.meet(s, self._mean(group.law, kind.true, s), rows)
            if draw is not None:
                self.points = max(self.points, cell.points)
        return members

    def _mean(self, law: Law, kind: int, t: int) -> Array:
        """The mean logit of a class under fit t."""
        return np.asarray(self.history.means(law, self.history.fits[t])[:, kind] + self.bias[t])

    def _plain_start(self, stage: CausalStep) -> Array:
        """Where Newton's method begins without a run nearby: the exact fit, else the one before."""
        t, known = stage.t, self.setting.known
        if t < len(known):
            return stage.layout.pack(np.array([known[t].bias]), self._hats_of(t, stage.layout))
        if t == 0:
            return large_ridge_start(stage, np.zeros(stage.layout.components))
        return no_update_start(stage, self.bias[t - 1])

    def _shifted(self, stage: CausalStep, plain: Array) -> list[Array]:
        """The plain start, moved as in a run nearby if that has the same unknowns.

        The moves of late fits are small, and replicates agree on them far better than on the
        coordinates themselves, whose directions are mostly noise of the replicate by then.
        """
        if self.near is None or stage.t not in self.near or self.near[stage.t].size != plain.size:
            return []
        move, start = self.near[stage.t], plain + self.near[stage.t]
        for at in stage.layout.fresh.values():
            start[at] = stage.layout.stretched(plain[at], move[at])
        if stage.bias is not None:
            start[stage.layout.bias] = stage.bias
        return [np.asarray(start)]

    def _take(self, t: int, layout: Layout, z: Array, used: Sequence[int] = ()) -> None:
        """Enter the solution of fit t, and let all samples take it, used or not."""
        history, setting = self.history, self.setting
        bias, hats = layout.unpack(z)
        trial = history.trial(setting.protocol.fits[t].ridge, hats)
        watched = {m.source for pair in self.present.values() for m in pair} | {*layout.sources}
        fields = {a: history.see(a, trial, hats)[0] for a in watched}
        means = history.means(setting.test, trial.w)
        self.bias[t] = bias
        states = []
        for g, pair in self.present.items():
            for member in pair:
                cell, logits = member.cell, np.zeros((0, 0))
                if t in cell.seen:
                    own = fields[member.source]
                    mean = history.means(member.law, trial.w)[:, cell.kind] + bias
                    cell.place(t)
                    theta = cell.combine(looked_at(cell, own, mean)[0])
                    logits = cell.columns[:, : theta.shape[1]] @ theta.T
                    if g in used:
                        cell.averages(theta, own.strength, False)
                        logits = cell.u.copy()
                    if self.keep_samples or t in self._teachers(g, t):
                        cell.remember(t, theta, float(own.strength[0, 0]) if g in used else 0.0)
                states.append((g, member, logits))
        rests: dict[Member, Array] = {}
        if used:
            made = {a: self._what_is_new(a, used, rests) for a in layout.sources}
            hats = hats._replace(
                slopes={a: slopes for a, (slopes, _) in made.items()},
                fresh={a: square for a, (_, square) in made.items()},
            )
        if self.keep_samples:
            self.samples.append(self._fitted(t))
        factors = history.enter(trial, hats.fresh, hats.slopes)
        q = history.square(t)
        if not (math.isfinite(q) and q > 0):
            ending = Ending.FADED if q == 0 else Ending.OVERFLOW
            raise ending.error(t, {"m": float(means[0, -1]), "bias": float(bias[0])})
        for a in layout.sources:
            self._lose(a, hats.slopes[a], factors[a])
        for g, member, logits in states:
            new: Array = np.zeros((member.cell.points, 0))
            if member in rests and factors[member.source].size:
                new = rests[member] @ inverse(factors[member.source]).T
            member.cell.finish(t, history.coordinates(member.source, t), new, logits)
            member.cell.forget(self._teachers(g, t))
        self.hats.append(hats)
        d, space = history.components, setting.space
        if space.by_modes:
            one = np.trace(trial.gain, axis1=1, axis2=2)
        else:
            one = np.diag(trial.gain).reshape(d, -1).sum(axis=0)
        self.gains[t] = float(space.copies @ one) / (d * space.features)

    def _fitted(self, t: int) -> list[FittedSamples]:
        """The samples of fit t, after it."""
        found = []
        for use in self.setting.protocol.fits[t].uses:
            for cell, _, _ in self.present[use.group]:
                previous, selected = np.full(cell.u.shape, np.nan), cell.weight > 0
                if use.labels is not None:
                    previous, selected = cell.logits[use.labels.teacher], cell.selected
                found.append(FittedSamples(
                    use, cell.kind, cell.given, cell.share * cell.weights, previous, cell.u.copy(),
                    selected, cell.before.get(t),
                ))  # fmt: skip
        return found

    def _what_is_new(
        self, a: int, used: Sequence[int], rests: dict[Member, Array]
    ) -> tuple[Array, Array]:
        r"""Split the slopes of a fit into their parts along the functions so far and a rest, twice:
        the rest is small against what it is made of.

        Arguments:
            rests: takes the rest of every sample of covariance a, in use or not.

        Returns:
            $\Phi_{tk}$, and the square of the rest.
        """
        count = len(self.history.bases[a].columns)
        slopes: Array = np.zeros((self.history.components, count))
        lost = self.lost.get(a, np.zeros((0, 0)))
        mine = [(g, m) for g, pair in self.present.items() for m in pair if m.source == a]
        for g, member in mine:
            f = member.cell.f
            rests[member] = f.copy() if g in used else np.zeros_like(f)
        for _ in range(2):
            overlap: Array = -slopes @ lost
            for _, member in mine:
                overlap += member.cell.with_functions(rests[member], count)
            slopes += overlap
            for _, member in mine:
                rests[member] -= member.cell.combined(overlap)
        square: Array = slopes @ lost @ slopes.T
        for _, member in mine:
            weighted = member.cell.weights[:, None] * rests[member]
            square = square + member.cell.share * weighted.T @ rests[member]
        return slopes, square

    def _lose(self, a: int, slopes: Array, factor: Array) -> None:
        """Extend the sums over samples that are gone by the new functions of slopes."""
        lost = self.lost.get(a, np.zeros((0, 0)))
        if not factor.size:
            return
        if not self.present:  # a known fit: its own samples are gone
            self.lost[a] = np.eye(len(lost) + len(factor))
            return
        share = inverse(factor) @ slopes
        row = -lost @ share.T
        self.lost[a] = np.block([[lost, row], [row.T, -row.T @ share.T]])

    def _idle(self, layout: Layout, used: Sequence[int]) -> dict[int, Array]:
        """The sums over products of functions of slopes, of samples that a fit does not use."""
        idle = {}
        for a, (_, count) in layout.sources.items():
            idle[a] = self.lost.get(a, np.zeros((0, 0))).copy()
            for g, pair in self.present.items():
                for member in pair:
                    if g not in used and member.source == a:
                        idle[a] += member.cell.gram(count)
        return idle

    def _teachers(self, g: int, t: int) -> set[int]:
        """The fits whose logits label the samples of a group after fit t."""
        uses = self.setting.protocol.uses[g].items()
        return {use.labels.teacher for s, use in uses if s > t and use.labels is not None}

    def _faded(self, fit: Fit, t: int) -> bool:
        """Whether nothing but the bias is left of the fits that label all samples of this one."""
        if any(use.labels is None or use.given > 0 for use in fit.uses):
            return False
        norm = math.sqrt(self.history.square(t - 1)) * self.setting.protocol.length
        return bool(norm < ONLY_BIAS * np.abs(self.bias[t - 1]).max())

    def _state(self, t: int) -> dict[str, float]:
        return {"q": self.history.square(t), "bias": float(np.abs(self.bias[t]).max())}


def _move(plain: Array, z: Array, layout: Layout) -> Array:
    """From the plain start to the solution; for new squares, their ratio."""
    move = z - plain
    for at in layout.fresh.values():
        move[at] = layout.ratio(plain[at], z[at])
    return np.asarray(move)
