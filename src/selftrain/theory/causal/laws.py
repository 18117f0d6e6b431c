r"""The law of the logits of samples that a step was fitted to, from what they have seen before.

The logit of a training sample is monotone in the new Gaussian number of its last step, so given
everything it has seen before its law is that of a Gaussian number through the proximal map. The
average over what it has seen is over quasi-Monte Carlo points, which follow the process of `cells`
with the fields that the replicates of the run agreed on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ...arrays import Array
from ...errors import InvalidInput
from ...losses import Loss
from ...protocol import LABELED, Protocol, PseudoLabels, protocol_of
from ..averages.quadrature.prox import proximal
from ..laws.logits import LogitSample
from ..laws.weights import solved_step
from .cells import Cell, Seen, kinds_of, seen_by
from .coordinates import Coordinates
from .draws import scrambled
from .response import engine_loss
from .weights import FAINT

if TYPE_CHECKING:
    from ..trajectory import Trajectory
    from .result import Reuse

POINTS = 2**12
"""Points of a law, for each class."""

_BLOCK = 256
_ROOT_2PI = math.sqrt(2 * math.pi)


class BeforeNoise(NamedTuple):
    """Samples of a class before the new number of the last step: class, share, logit of the
    teacher, target, weight, mean of the field; spread of the field, and how strongly a sample moves
    its own logit.
    """

    positive: Array
    shares: Array
    previous: Array
    target: Array
    weight: Array
    center: Array
    spread: float
    strength: float


class TrainingLogits:
    """The law of (class, previous logit, trained logit) of the samples that step t is fitted to.

    `y` = 0 or 1 restricts to a class, `selected` to samples that the threshold accepts or rejects,
    as in `LogitLaw`.

    Arguments:
        samples: None: the unlabelled samples of step t (the labelled ones at t = 0); "labeled":
            the labelled samples, if step t uses them.

    >>> from selftrain import Problem, Recipe, solve
    >>> problem = Problem(0.5, 2.0, 0.4, 0.75**2, steps=2, loss="squared", batches="reused")
    >>> run = solve(problem, Recipe())
    >>> seen, fresh = run.training_logits(2), run.test_logits(2)
    >>> bool(seen.cdf(0.0, y=1) != fresh.cdf(0.0, y=1))
    True
    """

    def __init__(self, run: Trajectory, reuse: Reuse, t: int, samples: str | None = None) -> None:
        self.t, self.samples = solved_step(run, t), samples
        protocol = protocol_of(run.problem, run.recipe)
        self._loss: Loss = protocol.fits[self.t].loss
        process = Process(run, reuse, protocol)
        self._parts = [
            part
            for g in asked_groups(protocol, self.t, samples)
            for part in process.before_noise(g, self.t)
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(t={self.t}, samples={self.samples!r})"

    @property
    def selected_probability(self) -> float:
        """Share of the samples that the threshold accepts."""
        total = sum(float(part.shares.sum()) for part in self._parts)
        accepted = sum(float(part.shares @ (part.weight > 0)) for part in self._parts)
        return accepted / total

    def cdf(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """P(logit <= u), in the shape of u."""
        far = np.clip(np.asarray(u, dtype=float), -1e9, 1e9)
        return np.clip(self._law(far, y, selected, density=False), 0.0, 1.0)

    def density(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """Density of the logit at u, in the shape of u."""
        return self._law(np.asarray(u, dtype=float), y, selected, density=True)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> LogitSample:
        """Samples drawn from the points, with a new number in the last step."""
        rng = np.random.default_rng(seed)
        positive, shares, previous, target, weight, center = (
            np.concatenate([getattr(part, name) for part in self._parts])
            for name in BeforeNoise._fields[:6]
        )
        spread, strength = (
            np.concatenate([np.full(part.shares.size, getattr(part, name)) for part in self._parts])
            for name in ("spread", "strength")
        )
        at = rng.choice(shares.size, size, p=shares / shares.sum())
        field = center[at] + spread[at] * rng.standard_normal(size)
        u = proximal(self._loss, target[at], field, strength[at] * weight[at])
        return LogitSample(positive[at].astype(int), previous[at], u, weight[at] > 0)

    def _law(self, u: Array, y: int | None, selected: bool | None, *, density: bool) -> Array:
        if y not in (None, 0, 1):
            raise InvalidInput("y", y, "must be 0, 1, or None for both classes")
        points = u.ravel()
        result, total = np.zeros(points.shape), 0.0
        for part in self._parts:
            chosen: NDArray[np.bool_] = np.full(part.shares.size, True)
            if y is not None:
                chosen &= part.positive == y
            if selected is not None:
                chosen &= (part.weight > 0) == selected
            share = part.shares[chosen]
            total += float(share.sum())
            for begin in range(0, points.size, _BLOCK):
                here = slice(begin, begin + _BLOCK)
                result[here] += share @ self._profile(part, chosen, points[None, here], density)
        if total == 0:
            raise InvalidInput("selected", selected, f"step {self.t} has no such sample")
        return (result / total).reshape(u.shape)

    def _profile(
        self, part: BeforeNoise, chosen: NDArray[np.bool_], u: Array, density: bool
    ) -> Array:
        target, center = part.target[chosen, None], part.center[chosen, None]
        strength = part.strength * part.weight[chosen, None]
        pull = np.where(strength > 0, strength * self._loss.slope(target, u), 0.0)
        z = (u + pull - center) / part.spread
        if not density:
            return np.asarray(ndtr(z))
        stretch = 1.0 + strength * self._loss.curvature(target, u)
        return np.asarray(stretch * np.exp(-0.5 * z * z) / (_ROOT_2PI * part.spread))


def asked_groups(protocol: Protocol, t: int, samples: str | None) -> list[int]:
    """Return the groups of samples that a law is about."""
    uses = protocol.fits[t].uses
    given = [use.group for use in uses if use.labels is None or use.given > 0]
    made = [use.group for use in uses if use.labels is not None]
    if samples is None:
        return made or given
    if samples == LABELED and given:
        return given
    accepted = 'must be None, or "labeled" in a step that uses given labels'
    raise InvalidInput("samples", samples, accepted)


class Process:
    """Samples that follow the fields of a run."""

    def __init__(self, run: Trajectory, reuse: Reuse, protocol: Protocol) -> None:
        self._run, self._reuse, self._protocol = run, reuse, protocol
        laws = [group.law for group in protocol.groups]
        self._space = Coordinates([*laws, run.problem.test_clusters])
        self._laws = list(self._space.sets)
        self._losses = [engine_loss(fit.loss, 2) for fit in protocol.fits]

    def before_noise(self, g: int, t: int) -> list[BeforeNoise]:
        """Return both classes of a group, followed up to the new number of step t."""
        return [self._last(cell, a, t, g) for cell, a in self._followed(g, t)]

    def _followed(self, g: int, t: int) -> Iterator[tuple[Cell, int]]:
        """The classes of a group after the steps before t, with their covariances."""
        group, uses = self._protocol.groups[g], self._protocol.uses[g]
        seen = seen_by({s: use for s, use in uses.items() if s <= t})
        for kind in kinds_of(group, uses):
            draw = scrambled(POINTS, [np.random.SeedSequence(g)])
            cell = Cell(group, self._losses[t], kind, seen, draw)
            a = self._space.sets[group.law].sources[kind.true]
            for s in range(seen[0], t):
                self._follow(cell, a, s, min(uses), g)
            yield cell, a

    def _follow(self, cell: Cell, a: int, s: int, first: int, g: int) -> None:
        """Let a cell take step s."""
        rows = self._reuse.loadings[a, s][None, :]
        if s < first:
            if s in cell.seen:
                cell.meet(s, self._mean(cell, s), rows)
            return
        use = self._protocol.uses[g].get(s)
        logits, f = np.zeros((0, 1)), np.zeros((cell.points, 1))
        if s in cell.seen:
            if use is not None:
                cell.label(use, self._losses[s], self._edge(use.labels))
            cell.place(s)
            theta = cell.combine(self._seen(cell, a, s))
            logits = cell.columns[:, : theta.shape[1]] @ theta.T
            if use is not None:
                cell.averages(theta, self._strength(a, s), False)
                logits, f = cell.u.copy(), cell.f
            strength = float(self._strength(a, s)[0, 0])
            cell.remember(s, theta, strength if use is not None else 0.0)
        slopes, new = self._reuse.slopes[a, s], np.zeros((cell.points, 0))
        if slopes[s] ** 2 > FAINT * float(slopes @ slopes):
            new = (f - cell.combined(slopes[None, self._functions(a, s)])) / slopes[s]
        cell.finish(s, rows, new, logits)

    def _last(self, cell: Cell, a: int, t: int, g: int) -> BeforeNoise:
        use = self._protocol.uses[g][t]
        cell.label(use, self._losses[t], self._edge(use.labels))
        given = self._seen(cell, a, t)
        theta = cell.combine(given)
        known = theta[0, : cell.used]
        points = cell.points
        previous = np.full(points, np.nan)
        if use.labels is not None:
            previous = cell.logits[use.labels.teacher][:, 0]
        elif t > 0 and t - 1 in cell.logits:
            previous = cell.logits[t - 1][:, 0]
        return BeforeNoise(
            np.full(points, float(cell.kind)), cell.share * cell.weights, previous,
            cell.target[:, 0].copy(), cell.weight.copy(), cell.columns[:, : cell.used] @ known,
            float(given.new[0, 0]), float(given.strength[0, 0]),
        )  # fmt: skip

    def _mean(self, cell: Cell, t: int) -> Array:
        m = self._reuse.means[self._laws.index(cell.group.law), t]
        return np.array([(m if cell.kind else -m) + self._run.bias[t]])

    def _strength(self, a: int, t: int) -> Array:
        return np.full((1, 1), self._reuse.strengths[a, t])

    def _functions(self, a: int, t: int) -> list[int]:
        """The steps before t that brought a function of the slopes."""
        slopes = self._reuse.slopes[a]
        return [s for s in range(t) if slopes[s, s] ** 2 > FAINT * float(slopes[s] @ slopes[s]) > 0]

    def _seen(self, cell: Cell, a: int, t: int) -> Seen:
        row = self._reuse.loadings[a, t]
        along, off = cell.view.along(row[None, :])
        new = np.full((1, 1), math.sqrt(max(float(off[0] @ off[0]), 1e-290)))
        react = self._reuse.reactions[a, t, self._functions(a, t)][None, :]
        return Seen(self._mean(cell, t), along, new, react, self._strength(a, t))

    def _edge(self, labels: PseudoLabels | None) -> float:
        if labels is None:
            return 0.0
        unit = math.sqrt(float(self._run.q[labels.teacher]))
        return labels.threshold * unit * self._protocol.length
