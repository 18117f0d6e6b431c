r"""How far the mean of a few seeds is from a theory, at many steps at once: size, chance, power.

Given are n seeds with T relative deviations each, correlated in any way. Three questions, three
answers:

- *How far can it be?* At one step mean and standard error give Student's upper limit. The largest
  of these limits is an upper limit of the largest true deviation: it is no less than the limit at
  the very step where that one is. So no correction for many steps is needed (an intersection-union
  test, Berger 1982).
- *Is it more than chance?* One statistic for all steps, $F = n |\bar x|^2 / \mathrm{tr}\, S$ with
  the covariance S between seeds. Box (1954): it follows Fisher's F with f and (n-1) f degrees of
  freedom, $f = (\mathrm{tr}\, S)^2/\mathrm{tr}\, S^2$, the number of steps that are independent. It
  needs no inverse of S, so fewer seeds than steps will do; with steps that move as one it is
  Student's t.
- *What would have been seen?* The deviation at which the same F, noncentral, exceeds its limit with
  a probability of 90 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from ..arrays import Array

CONFIDENCE = 0.95
"""Of the upper limit in "agree to x %"."""

FALSE_ALARM = 0.01
"""A deviation counts as real if chance makes one as large, in any of the quantities, once in a
hundred comparisons.
"""

POWER = 0.9
"""With which a detectable deviation would be seen."""


@dataclass(frozen=True)
class Deviation:
    """The mean over seeds of one quantity minus the theory, in units of its scale.

    Attributes:
        mean: over t, NaN where the seeds that have a value are not all.
        largest: the entry of `mean` that is farthest from zero; `at`: its step.
        pooled: the root mean square of `mean`.
        by_chance: `pooled` beyond this is real.
        detectable: a true deviation as large as this, at every step, would be seen with a power of
            90 %.
        at_least, at_most: limits of the largest true deviation.
        chance: probability of a `pooled` as large as this without any deviation.
        times_features: `largest` times N, which does not change with N if finite size is the cause.
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
        """Whether it is more than chance explains."""
        return self.pooled > self.by_chance


def deviation(
    relative: Array, features: int, tests: int = 1, resolution: Array | float = 0.0
) -> Deviation | None:
    """Judge the relative deviations (seeds, steps) of one quantity; None if no step can be judged.

    Arguments:
        relative: (value - theory) / scale; steps with a NaN are left out.
        features: N.
        tests: how many quantities are judged together.
        resolution: the standard error of a mean is known no better than this.

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
    r"""$(\mathrm{tr}\, S)^2/\mathrm{tr}\, S^2$ from the products of seeds, which have the same
    traces as S; 1 if nothing varies.
    """
    products = off @ off.T
    largest = float(np.abs(products).max())
    if not largest > 0:
        return 1.0
    scaled = products / largest
    return float(np.trace(scaled) ** 2 / (scaled**2).sum())
