r"""The laws of the logits of samples that a fit was fitted to, from a run on one more replicate.

One logit is monotone in the last Gaussian number of its sample, so given everything that the sample
has seen before its law is that of a Gaussian number through the proximal map: `TrainingLogits`. K
scores are weighted points: `TrainedScores`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from ...arrays import Array
from ...errors import InvalidInput
from ...losses import Loss
from ...protocol import Protocol
from ...runtime.parallel import one_thread
from ..averages.quadrature.prox import proximal
from ..laws.logits import LogitSample
from .draws import PointSource
from .replicate import Replicate
from .samples import FittedSamples
from .setting import Setting

LAW_POINTS = 2**12
"""Points of a law, for each class and group."""

_BLOCK = 256


def samples_of_fits(protocol: Protocol, fits: int) -> list[list[FittedSamples]]:
    """Return the samples of the first fits of a protocol, solved on one replicate."""
    setting = Setting.of(protocol)._replace(last=fits - 1)
    with one_thread():
        run = Replicate(setting, PointSource(LAW_POINTS), keep_samples=True)
        return run.solve().samples


def chosen_samples(
    protocol: Protocol, fitted: Sequence[FittedSamples], samples: str | None
) -> list[FittedSamples]:
    """Return the samples of a fit that a law is about: of the group of that name; by default those
    with pseudo-labels, or all if there are none.
    """
    names = [group.name for group in protocol.groups]
    if samples is None:
        return [one for one in fitted if one.use.labels is not None] or list(fitted)
    found = [one for one in fitted if names[one.use.group] == samples]
    if not found:
        used = ", ".join(dict.fromkeys(repr(names[one.use.group]) for one in fitted))
        raise InvalidInput("samples", samples, f"must be None, or samples of this fit: {used}")
    return found


class TrainedScores(NamedTuple):
    """The law of the scores of samples that a fit is fitted to, as weighted points.

    Attributes:
        weights: of the points, of sum one.
        true, given: class and given label.
        previous: scores under the teacher of pseudo-labels (NaN for given labels).
        scores: trained scores.
        selected: whether the fit uses the pseudo-label, or any label.
    """

    weights: Array
    true: NDArray[np.intp]
    given: NDArray[np.intp]
    previous: Array
    scores: Array
    selected: NDArray[np.bool_]

    @classmethod
    def of(cls, fitted: Sequence[FittedSamples], basis: Array) -> TrainedScores:
        """Return the law of samples, whose scores are logits along a basis."""
        parts = [
            (
                one.shares, np.full(one.shares.size, one.true), np.full(one.shares.size, one.given),
                one.previous @ basis.T, one.logits @ basis.T, one.selected,
            )
            for one in fitted
        ]  # fmt: skip
        weights, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cls(weights / weights.sum(), *columns)

    def cdf(self, u: ArrayLike, score: int, y: int | None = None) -> Array:
        """P(a trained score <= u), in class y or in all."""
        chosen = np.full(self.true.size, True) if y is None else self.true == y
        weight, values = self.weights[chosen], self.scores[chosen, score]
        order = np.argsort(values)
        below = np.concatenate([[0.0], np.cumsum(weight[order])])
        return np.asarray(below[np.searchsorted(values[order], u, side="right")] / below[-1])

    def sample(self, size: int, seed: int | None = None) -> TrainedScores:
        """Samples drawn from the points, of equal weight."""
        at = np.random.default_rng(seed).choice(self.true.size, size, p=self.weights)
        drawn = [np.asarray(values)[at] for values in self[1:]]
        return TrainedScores(np.full(size, 1.0 / size), *drawn)  # type: ignore[arg-type]


class TrainingLogits:
    """The law of (class, previous logit, trained logit) of the samples that step t is fitted to.

    `y` = 0 or 1 restricts to a class, `selected` to samples that the threshold accepts or rejects,
    as in `LogitLaw`.

    Arguments:
        t: the step.
        loss: of its fit.
        samples: what was asked for: None: the unlabelled samples of step t (the labelled ones at
            t = 0); "labeled": the labelled samples, if step t uses them.
        parts: the samples themselves.

    >>> from selftrain import Problem, Recipe, solve
    >>> problem = Problem(0.5, 2.0, 0.4, 0.75**2, steps=2, loss="squared", batches="reused")
    >>> run = solve(problem, Recipe())
    >>> seen, fresh = run.training_logits(2), run.test_logits(2)
    >>> bool(seen.cdf(0.0, y=1) != fresh.cdf(0.0, y=1))
    True
    """

    def __init__(
        self, t: int, loss: Loss, samples: str | None, parts: Sequence[FittedSamples]
    ) -> None:
        self.t, self.samples, self._loss, self._parts = t, samples, loss, parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}(t={self.t}, samples={self.samples!r})"

    @property
    def selected_probability(self) -> float:
        """Share of the samples that the threshold accepts."""
        total = sum(float(part.shares.sum()) for part in self._parts)
        accepted = sum(float(part.shares @ part.selected) for part in self._parts)
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
        counts = rng.multinomial(size, self._masses / self._masses.sum())
        drawn = []
        for part, count in zip(self._parts, counts, strict=True):
            law = part.conditional
            assert law is not None
            at = rng.choice(part.shares.size, count, p=part.shares / part.shares.sum())
            field = law.center[at] + law.spread * rng.standard_normal(count)
            u = proximal(self._loss, law.target[at, 0], field, law.pull[at])
            drawn.append((np.full(count, part.true), part.previous[at, 0], u, part.selected[at]))
        order = rng.permutation(size)
        return LogitSample(*(np.concatenate(all)[order] for all in zip(*drawn, strict=True)))

    @property
    def _masses(self) -> Array:
        return np.array([part.shares.sum() for part in self._parts])

    def _law(self, u: Array, y: int | None, selected: bool | None, *, density: bool) -> Array:
        if y not in (None, 0, 1):
            raise InvalidInput("y", y, "must be 0, 1, or None for both classes")
        points = u.ravel()
        result, total = np.zeros(points.shape), 0.0
        for part in self._parts:
            law = part.conditional
            assert law is not None
            share = part.shares.copy()
            if y is not None and part.true != y:
                continue
            if selected is not None:
                share[part.selected != selected] = 0.0
            total += float(share.sum())
            for begin in range(0, points.size, _BLOCK):
                here = points[None, begin : begin + _BLOCK]
                profile = law.density(here) if density else ndtr(law.number_at(here))
                result[begin : begin + _BLOCK] += share @ profile
        if total == 0:
            raise InvalidInput("selected", selected, f"step {self.t} has no such sample")
        return (result / total).reshape(u.shape)
