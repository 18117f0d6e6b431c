r"""Statistics of the deviation of the mean over a few seeds from a theory, at many steps together:
confidence limit, significance, power.

Given are n seeds with T relative deviations each, with any correlation between steps:

- *Confidence limit.* At each step the mean and its standard error give Student's upper limit. The
  largest of these limits is an upper limit of the largest true deviation, because it is at least
  the limit at the step of that deviation. So no correction for multiple steps is needed (an
  intersection-union test, Berger 1982).
- *Significance.* One statistic for all steps is $F = n |\bar x|^2 / \mathrm{tr}\, S$, with the
  covariance S over seeds. Its law is approximately Fisher's F with f and (n-1) f degrees of freedom
  (Box 1954), where $f = (\mathrm{tr}\, S)^2/\mathrm{tr}\, S^2$ is the effective number of
  independent steps. S is not inverted, so there may be fewer seeds than steps; if all steps are
  perfectly correlated it is Student's t test.
- *Power.* The detectable deviation is the one at which the same F, noncentral, is significant with
  a probability of 90 %.

`gaps` applies this to the distributions of weights and logits, pooled over seeds, at 25 points: the
errors follow from the differences between seeds. (A Kolmogorov-Smirnov test would be wrong, because
the fluctuations of m and B between seeds are of the same order as the sampling noise.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from ..arrays import Array

if TYPE_CHECKING:
    from ..theory.trajectory import Trajectory
    from .ensemble import Ensemble

LEVELS = np.linspace(0.02, 0.98, 25)
"""Values of the theoretical distribution function at which distributions are compared."""

CONFIDENCE = 0.95
"""Confidence of the upper limit in "agree to x %"."""

FALSE_ALARM = 0.01
"""Significance level: without any true deviation, one comparison in a hundred finds a significant
deviation in any of its quantities.
"""

POWER = 0.9
"""Probability with which a detectable deviation is found significant."""


@dataclass(frozen=True)
class Deviation:
    """The mean over seeds of one quantity minus the theory, in units of its scale.

    Attributes:
        mean: mean deviation over t; NaN at steps at which some seed has no value.
        largest: the entry of `mean` that is largest in size.
        at: the step of `largest`.
        pooled: the root mean square of `mean`.
        by_chance: critical value of `pooled`; a larger one is significant.
        detectable: size of a true deviation, the same at every step, that is found significant with
            a probability of 90 %.
        at_least, at_most: confidence limits of the largest true deviation.
        chance: p-value: probability of so large a `pooled` without any true deviation.
        times_features: `largest` times N, which does not depend on N for a finite-size effect.
    """

    mean: Array
    largest: float
    at: int
    pooled: float
    by_chance: float
    detectable: float
    at_least: float
    at_most: float
    chance: float
    times_features: float

    @property
    def real(self) -> bool:
        """Whether the deviation is statistically significant."""
        return self.pooled > self.by_chance


def deviation(
    relative: Array, features: int, tests: int = 1, resolution: Array | float = 0.0
) -> Deviation | None:
    """Return the statistics of the relative deviations of one quantity; None if no step has values
    of all seeds.

    Arguments:
        relative: (value - theory) / scale, (seeds, steps); steps with a NaN are ignored.
        features: N.
        tests: number of quantities that are tested together.
        resolution: smallest standard error of a mean, from the resolution of the values.

    >>> noise = np.random.default_rng(0).normal(size=(16, 5))
    >>> found = deviation(0.5 + 0.01 * noise, features=100)
    >>> round(found.pooled, 2), found.real, found.at_most < 0.52
    (0.5, True, True)
    """
    seeds = len(relative)
    used = np.isfinite(relative).all(axis=0)
    if seeds < 2 or not used.any():
        return None
    mean = np.where(used, relative.mean(axis=0), np.nan)
    kept = relative[:, used]
    off = kept - kept.mean(axis=0)
    floor = np.broadcast_to(np.asarray(resolution, dtype=float), used.shape)[used]
    spread = np.maximum(np.sqrt((off**2).sum(axis=0) / (seeds * (seeds - 1))), floor)
    pooled = float(np.sqrt(np.mean(kept.mean(axis=0) ** 2)))
    noise = float(np.sqrt(np.mean(spread**2)))
    freedom = _freedom(off)
    freedoms = (freedom, (seeds - 1) * freedom)
    beyond = float(special.fdtri(*freedoms, 1 - FALSE_ALARM / tests))
    by_chance = noise * float(np.sqrt(beyond))
    seen = special.ncfdtrinc(*freedoms, 1 - POWER, beyond) / freedom
    sure = float(special.stdtrit(seeds - 1, CONFIDENCE))
    at = int(np.nanargmax(np.abs(mean)))
    ratio = (pooled / noise) ** 2 if noise > 0 else (np.inf if pooled > 0 else 0.0)
    return Deviation(
        mean=mean,
        largest=float(mean[at]),
        at=at,
        pooled=pooled,
        by_chance=by_chance,
        detectable=noise * float(np.sqrt(seen)),
        at_least=max(pooled - by_chance, 0.0),
        at_most=float((np.abs(mean[used]) + sure * spread).max()),
        chance=float(special.fdtrc(*freedoms, ratio)),
        times_features=float(mean[at]) * features,
    )


def _freedom(off: Array) -> float:
    r"""Return $(\mathrm{tr}\, S)^2/\mathrm{tr}\, S^2$, computed from the Gram matrix of the seeds,
    which has the same traces as S; 1 if the seeds do not differ.
    """
    products = off @ off.T
    largest = float(np.abs(products).max())
    if not largest > 0:
        return 1.0
    scaled = products / largest
    return float(np.trace(scaled) ** 2 / (scaled**2).sum())


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
