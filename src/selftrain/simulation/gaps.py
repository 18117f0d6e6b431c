r"""Comparison of the distributions of weights and logits with their laws.

Distributions are pooled over seeds, and their errors follow from the differences between seeds. (A
Kolmogorov-Smirnov test would be wrong, because the fluctuations of m and B between seeds are of the
same order as the sampling noise.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..arrays import Array
from .deviation import Deviation, deviation

if TYPE_CHECKING:
    from ..theory.trajectory import Trajectory
    from .ensemble import Ensemble

LEVELS = np.linspace(0.02, 0.98, 25)
"""Values of the theoretical distribution function at which distributions are compared."""


class _Pooled(NamedTuple):
    """The samples of all seeds of one distribution, and its distribution function."""

    what: str
    t: int
    selected: bool | None
    samples: list[Array]
    law: Callable[[Array], Array]


@dataclass(frozen=True)
class Gap:
    """The distance of a pooled distribution from its law.

    Attributes:
        what: "weights" or "logits".
        t: the step.
        selected: whether it is of the samples that the threshold selects (True), rejects (False),
            or of all (None).
        distance: largest difference of the distribution functions.
        z: largest difference divided by its standard error over seeds.
        points: number of values that were pooled.
        deviation: statistics of the differences at all 25 points together.
    """

    what: str
    t: int
    selected: bool | None
    distance: float
    z: float
    points: int
    deviation: Deviation

    def __str__(self) -> str:
        rows = {
            None: "", True: " of selected samples", False: " of rejected samples",
        }[self.selected]  # fmt: skip
        return f"{self.what}{rows} at t = {self.t}"


def gaps(ensemble: Ensemble, theory: Trajectory, means: int) -> tuple[Gap, ...]:
    """Return the distance from its law of every distribution that at least two seeds have; `means`
    is the number of other quantities that are tested together with them.
    """
    known = list(_distributions(ensemble, theory))
    return tuple(_gap(one, ensemble.features, means + len(known)) for one in known)


def _distributions(ensemble: Ensemble, theory: Trajectory) -> Iterator[_Pooled]:
    """Yield the distributions that at least two seeds have.

    With a general covariance weights are omitted, because those of different features have
    different laws.
    """
    one_law = theory.problem.clusters is None
    for t in range(theory.good_steps):
        weights = [seed.weights[t] for seed in ensemble.vectors if len(seed.weights) > t]
        if len(weights) > 1 and one_law:
            yield _Pooled("weights", t, None, weights, partial(theory.weights.cdf, t=t))
        rows = [seed for seed in ensemble.vectors if len(seed.logits) > t]
        if not rows:
            continue
        law = theory.training_logits(t)
        for kept in (True, False):
            logits = [seed.logits[t][seed.selected[t] == kept] for seed in rows]
            if len(logits) > 1 and min(part.size for part in logits) > 0:
                yield _Pooled("logits", t, kept, logits, partial(law.cdf, selected=kept))


def _gap(one: _Pooled, features: int, tests: int) -> Gap:
    """Return the distance of one distribution from its law."""
    at = np.quantile(np.concatenate(one.samples), LEVELS)
    below = [np.searchsorted(np.sort(part), at, side="right") / part.size for part in one.samples]
    off = np.array(below) - one.law(at)
    points = sum(part.size for part in one.samples)
    mean = off.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = mean / (off.std(axis=0, ddof=1) / np.sqrt(len(off)))
    far = int(np.nanargmax(np.abs(z))) if np.isfinite(z).any() else 0
    found = deviation(off, features, tests, resolution=1 / points)
    assert found is not None
    distance = float(np.abs(mean).max())
    return Gap(one.what, one.t, one.selected, distance, float(z[far]), points, found)
