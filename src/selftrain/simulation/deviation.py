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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from ..arrays import Array

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
