r"""The laws of the logits of the samples of a fit, from a run on one more replicate.

For two classes the logit is an increasing function of the last Gaussian number of its sample; so,
given the other numbers, its law is that of a Gaussian number under the proximal map
(`TrainingLogits`). For K scores the law is a set of weighted points (`TrainedScores`).
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
"""Number of points of a law, for each class and group."""

_BLOCK = 256


def samples_of_fits(
    protocol: Protocol, fits: int, lost: frozenset[int] = frozenset()
) -> list[list[FittedSamples]]:
    """Return the samples of each of the first `fits` fits of a protocol but the `lost` ones, from
    one replicate.
    """
    setting = Setting.of(protocol)._replace(last=fits - 1, lost=lost)
    with one_thread():
        run = Replicate(setting, PointSource(LAW_POINTS), keep_samples=True)
        return run.solve().samples


def chosen_samples(
    protocol: Protocol, fitted: Sequence[FittedSamples], samples: str | None
) -> list[FittedSamples]:
    """Return the samples of a fit in the group `samples`; if that is None, all with pseudo-labels,
    or all samples if there are no pseudo-labels.
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
        weights: weights of the points; their sum is one.
        true, given: class and given label.
        previous: scores under the fit that made the pseudo-labels (NaN for given labels).
        scores: trained scores.
        selected: whether the pseudo-label was selected; True for given labels.
    """

    weights: Array
    true: NDArray[np.intp]
    given: NDArray[np.intp]
    previous: Array
    scores: Array
    selected: NDArray[np.bool_]

    @classmethod
    def of(cls, fitted: Sequence[FittedSamples], basis: Array) -> TrainedScores:
        """Return the law of samples, whose scores are the products of `basis` and their logits."""
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
        """Return P(trained score number `score` <= u) in class y, or over all classes if None."""
        chosen = np.full(self.true.size, True) if y is None else self.true == y
        weight, values = self.weights[chosen], self.scores[chosen, score]
        order = np.argsort(values)
        below = np.concatenate([[0.0], np.cumsum(weight[order])])
        return np.asarray(below[np.searchsorted(values[order], u, side="right")] / below[-1])

    def sample(self, size: int, seed: int | None = None) -> TrainedScores:
        """Draw samples from the points; they have equal weights."""
        at = np.random.default_rng(seed).choice(self.true.size, size, p=self.weights)
        drawn = [np.asarray(values)[at] for values in self[1:]]
        return TrainedScores(np.full(size, 1.0 / size), *drawn)  # type: ignore[arg-type]


class TrainingLogits:
    """The law of (class, previous logit, trained logit) of the samples that step t is fitted to.

    In the methods `y` = 0 or 1 restricts to one class, `selected` = True or False to the samples
    that the threshold selects or rejects, as in `LogitLaw`.

    Arguments:
        t: the step.
        loss: loss of its fit.
        samples: None for the pseudo-labelled samples of step t (the labelled ones at t = 0), or
            "labeled" for the labelled samples, if step t uses them; only for the repr.
        parts: the samples.

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
        """Proportion of the samples that the threshold selects."""
        total = sum(float(part.shares.sum()) for part in self._parts)
        accepted = sum(float(part.shares @ part.selected) for part in self._parts)
        return accepted / total

    def cdf(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """Return P(logit <= u), in the shape of u."""
        far = np.clip(np.asarray(u, dtype=float), -1e9, 1e9)
        return np.clip(self._law(far, y, selected, density=False), 0.0, 1.0)

    def density(self, u: ArrayLike, y: int | None = None, selected: bool | None = None) -> Array:
        """Return the density of the logit at u, in the shape of u."""
        return self._law(np.asarray(u, dtype=float), y, selected, density=True)

    def sample(self, size: int, seed: int | np.random.Generator | None = None) -> LogitSample:
        """Draw samples from the points, with the last Gaussian number drawn afresh."""
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
