r"""Distributions of weights and logits next to their laws.

They are compared pooled over seeds, with errors from the differences between seeds: m and B
fluctuate at the same order as the sampling noise, so a Kolmogorov-Smirnov level would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Array
from .deviation import Deviation, deviation

if TYPE_CHECKING:
    from ..theory.trajectory import Trajectory
    from .ensemble import Ensemble

LEVELS = np.linspace(0.02, 0.98, 25)
"""Where distribution functions are compared."""


@dataclass(frozen=True)
class Shares:
    """Shares of a sample below 25 points minus the law, (seeds, points).

    Attributes:
        what: "weights" or "logits"; `t`: the step.
        selected: the samples that the threshold selects (True), rejects (False), or all (None).
        off: the differences; `size`: how many numbers were pooled.
    """

    what: str
    t: int
    selected: bool | None
    off: Array
    size: int


@dataclass(frozen=True)
class Gap:
    """A pooled distribution against its law.

    Attributes:
        what: "weights" or "logits"; `t`: the step.
        selected: the samples that the threshold selects (True), rejects (False), or all (None).
        distance: largest difference of the distribution functions.
        z: largest difference in units of its error between seeds.
        points: how many numbers were pooled.
        deviation: the differences at 25 points together.
    """

    what: str
    t: int
    selected: bool | None
    distance: float
    z: float
    points: int
    deviation: Deviation

    def __str__(self) -> str:
        rows = {None: "", True: " of selected rows", False: " of rejected rows"}[self.selected]
        return f"{self.what}{rows} at t = {self.t}"


def shares(ensemble: Ensemble, theory: Trajectory) -> Iterable[Shares]:
    """Return every distribution that at least two seeds have.

    With a general covariance the weights of different directions have no common law.
    """
    one_law = theory.problem.clusters is None
    for t in range(theory.good_steps):
        weights = [seed.weights[t] for seed in ensemble.vectors if len(seed.weights) > t]
        if len(weights) > 1 and one_law:
            at = np.quantile(np.concatenate(weights), LEVELS)
            yield _shares("weights", t, None, weights, at, theory.weights.cdf(at, t))
        rows = [seed for seed in ensemble.vectors if len(seed.logits) > t]
        if not rows:
            continue
        law = theory.training_logits(t)
        for kept in (True, False):
            logits = [seed.logits[t][seed.selected[t] == kept] for seed in rows]
            if len(logits) > 1 and min(part.size for part in logits) > 0:
                at = np.quantile(np.concatenate(logits), LEVELS)
                yield _shares("logits", t, kept, logits, at, law.cdf(at, selected=kept))


def _shares(
    what: str, t: int, selected: bool | None, samples: list[Array], at: Array, law: Array
) -> Shares:
    below = [np.searchsorted(np.sort(one), at, side="right") / one.size for one in samples]
    return Shares(what, t, selected, np.array(below) - law, sum(one.size for one in samples))


def judge(one: Shares, features: int, tests: int) -> Gap:
    """The distance of one distribution from its law."""
    mean = one.off.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = mean / (one.off.std(axis=0, ddof=1) / np.sqrt(len(one.off)))
    far = int(np.nanargmax(np.abs(z))) if np.isfinite(z).any() else 0
    found = deviation(one.off, features, tests, resolution=1 / one.size)
    assert found is not None
    distance = float(np.abs(mean).max())
    return Gap(one.what, one.t, one.selected, distance, float(z[far]), one.size, found)
