"""How claims are judged: what a part of the cases can decide, agreement with power, fitted
powers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from ..arrays import Array
from .figure import Data, Finding

if TYPE_CHECKING:
    import xarray as xr


def everywhere(holds: bool, full: bool) -> bool | None:
    """The verdict on a statement about every case: some of the cases can refute it, not prove it.

    >>> everywhere(True, full=False), everywhere(False, full=False), everywhere(True, full=True)
    (None, False, True)
    """
    return bool(holds) if full or not holds else None


def somewhere(holds: bool, full: bool) -> bool | None:
    """The verdict on a statement about some case: some of the cases can prove it, not refute it.

    >>> somewhere(True, full=False), somewhere(False, full=False), somewhere(False, full=True)
    (True, None, False)
    """
    return bool(holds) if full or holds else None


def at_full_size(holds: bool | None, full: bool) -> bool | None:
    """The verdict on a statement that only the long runs, or the many seeds, of the full version
    decide.
    """
    return holds if full else None


LEVEL = 1e-3
"""A difference counts as real if chance makes one as large in one of a thousand figures."""


class Agreement(NamedTuple):
    """Means of several systems against a theory.

    Attributes:
        largest: the largest distance of a mean from the theory, in the units of `bar`.
        at_most: what it is at most, every mean with a one-sided confidence of 95 %.
        detectable: a distance that would be seen with a power of 90 %, at the noisiest mean.
        bar: the distance below which they agree.
        holds: True if all are below the bar with confidence, False if one is above it beyond
            chance, None if these systems cannot tell.
    """

    largest: float
    at_most: float
    detectable: float
    bar: float
    holds: bool | None

    def __str__(self) -> str:
        if self.holds is None:
            return f"cannot tell: largest distance {self.largest:.2%}, at most {self.at_most:.2%}"
        words = "agree to" if self.holds else "differ by"
        return f"{words} {self.at_most if self.holds else self.largest:.2g} of the scale"


def agreement(gap: Any, error: Any, seeds: int, bar: float) -> Agreement:
    """Judge gaps of means over seeds, with their standard errors, against a bar.

    >>> agreement([0.01, -0.02], [0.001, 0.001], seeds=16, bar=0.05).holds
    True
    >>> agreement([0.01, -0.02], [0.02, 0.03], seeds=4, bar=0.05).holds is None
    True
    >>> agreement([0.2, -0.02], [0.01, 0.01], seeds=16, bar=0.05).holds
    False
    """
    distance, spread = np.abs(np.ravel(gap)), np.ravel(error)
    sure = stats.t.ppf(0.95, seeds - 1)
    beyond = stats.t.isf(LEVEL / distance.size, seeds - 1)
    at_most = float((distance + sure * spread).max())
    detectable = float((beyond + stats.t.ppf(0.9, seeds - 1)) * spread.max())
    holds: bool | None = None
    if at_most < bar:
        holds = True
    elif (distance - beyond * spread > bar).any():
        holds = False
    return Agreement(float(distance.max()), at_most, detectable, bar, holds)


class PowerLaw(NamedTuple):
    """y = amplitude * x^exponent, and the largest factor by which a point is off."""

    exponent: float
    amplitude: float
    off: float


def power_law(x: Any, y: Any) -> PowerLaw:
    """Least squares in logarithms.

    >>> law = power_law([1, 2, 4], [3, 1.5, 0.75])
    >>> round(law.exponent, 12), round(law.amplitude, 12), round(law.off, 12)
    (-1.0, 3.0, 1.0)
    """
    log_x, log_y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    exponent, intercept = np.polyfit(log_x, log_y, 1)
    off = np.abs(log_y - intercept - exponent * log_x).max()
    return PowerLaw(float(exponent), float(np.exp(intercept)), float(np.exp(off)))


def last_slope(x: Any, y: Any, points: int = 3) -> float:
    """The slope of log y against log x over the last points."""
    return power_law(np.asarray(x)[-points:], np.asarray(y)[-points:]).exponent


def worst(values: xr.DataArray) -> tuple[float, str]:
    """The largest value and where it is, in words."""
    at = values.argmax(...)
    place = values[{str(name): index for name, index in at.items()}]
    where = ", ".join(
        f"{name} = {_shown(place[name].item())}" for name in values.dims if name in place.coords
    )
    return float(place), where


def by_size(data: Data) -> list[tuple[int, xr.Dataset]]:
    """The datasets named N1024 and the like, finite systems, by their N."""
    sizes = [(int(part[1:]), one) for part, one in data.items() if part.startswith("N")]
    return sorted(sizes, key=lambda entry: entry[0])


def above_bayes(error: xr.DataArray, bayes: xr.DataArray, full: bool) -> Finding:
    """No tuned recipe is below the limit no method can beat."""
    gap = float((error / bayes).min())
    return Finding(
        says="No error is below the Bayes limit of the same data.",
        holds=everywhere(gap >= 1 - 1e-9, full),
        found=f"The smallest ratio of an error to its Bayes limit is {gap:.5f}.",
        numbers={"smallest_ratio": gap},
    )


def numbers(**values: Any) -> dict[str, float]:
    """Numbers for a record; what is not finite is left out, because JSON does not know it."""
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}


def listed(names: Any, values: Array, form: str = "{:.3g}") -> str:
    """Pairs in words; a value that rounds to zero has no sign.

    >>> listed([0.5, 0.2], np.array([1.0, 2.5]))
    '0.5: 1, 0.2: 2.5'
    >>> listed([0.5], np.array([-1e-9]), "{:.2%}")
    '0.5: 0.00%'
    """

    def number(value: float) -> str:
        text = form.format(value)
        return text if any(digit in text for digit in "123456789") else form.format(0.0)

    return ", ".join(
        f"{_shown(name)}: {number(float(value))}"
        for name, value in zip(np.asarray(names).tolist(), np.ravel(values), strict=True)
    )


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
