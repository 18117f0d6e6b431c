"""What verdicts are made of: agreement with power, fitted powers, numbers in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from ..arrays import Array
from .figure import Data, Finding
from .ruling import Bar, Criterion, below, everywhere

if TYPE_CHECKING:
    import xarray as xr


LEVEL = 1e-3
"""A difference counts as real if chance makes one as large in one of a thousand figures."""


ROUNDING = Bar(1e-9, "a thousand times the accuracy of the solver")


class Agreement(NamedTuple):
    """Means of several systems against a theory.

    Attributes:
        largest: the largest distance of a mean from the theory, in the units of its scale.
        at_most: what it is at most, every mean with a one-sided confidence of 95 %.
        at_least: what it is at least: the largest distance less what chance makes of it in one of
            a thousand figures.
        detectable: a distance that would be seen with a power of 90 %, at the noisiest mean.
    """

    largest: float
    at_most: float
    at_least: float
    detectable: float

    def within(self, what: str, bar: Bar) -> Criterion:
        """All means must be within a distance of the theory: they are if they are so with
        confidence, they are not if one is farther beyond chance.
        """
        return below(what, self.largest, bar, self.at_least, self.at_most)


def agreement(gap: Any, error: Any, seeds: int) -> Agreement:
    """How far means over seeds are from a theory, from their gaps and standard errors.

    >>> bar = Bar(0.05, "an example")
    >>> agreement([0.01, -0.02], [0.001, 0.001], seeds=16).within("gap", bar).met()
    True
    >>> agreement([0.01, -0.02], [0.02, 0.03], seeds=4).within("gap", bar).met() is None
    True
    >>> agreement([0.2, -0.02], [0.01, 0.01], seeds=16).within("gap", bar).met()
    False
    """
    distance, spread = np.abs(np.ravel(gap)), np.ravel(error)
    sure = stats.t.ppf(0.95, seeds - 1)
    beyond = stats.t.isf(LEVEL / distance.size, seeds - 1)
    return Agreement(
        largest=float(distance.max()),
        at_most=float((distance + sure * spread).max()),
        at_least=float((distance - beyond * spread).max()),
        detectable=float((beyond + stats.t.ppf(0.9, seeds - 1)) * spread.max()),
    )


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
        ruling=everywhere(full, below("largest shortfall", 1 - gap, ROUNDING)),
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
