"""Tools to judge a claim: agreement within statistical errors, fitted powers, numbers as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from .entry import Data
from .ruling import Bar, Criterion, Judged, below, everywhere

if TYPE_CHECKING:
    import xarray as xr

LEVEL = 1e-3
"""Significance level: a difference is real if chance makes one as large with less probability
(Bonferroni-corrected for the number of means in a figure)."""

ROUNDING = Bar(1e-9, "a thousand times the accuracy of the solver")


def above_bayes(error: xr.DataArray, bayes: xr.DataArray) -> Judged:
    """Judge that no tuned recipe is below the Bayes error."""
    gap = float((error / bayes).min())
    return everywhere(
        "above-bayes",
        f"The smallest ratio of an error to its Bayes error is {gap:.5f}.",
        below("largest shortfall", 1 - gap, ROUNDING),
    )


class Agreement(NamedTuple):
    """Distances between a theory and the means of simulated quantities over seeds.

    Attributes:
        largest: the largest distance of a mean from the theory.
        at_most: upper confidence bound of that distance, one-sided 95 % for each mean.
        at_least: lower confidence bound of that distance, at the level `LEVEL`.
        detectable: the distance that would be detected with a power of 90 %, at the noisiest mean.
    """

    largest: float
    at_most: float
    at_least: float
    detectable: float

    def __str__(self) -> str:
        return (
            f"Largest difference {self.largest:.2g}, at most {self.at_most:.2g}; one of"
            f" {self.detectable:.2g} would be seen with a power of 90 %."
        )

    def within(self, what: str, bar: Bar) -> Criterion:
        """Require all means to be within a distance of the theory.

        The criterion is met if `at_most` is below the bar, not met if `at_least` is above it, and
        undecided otherwise.
        """
        return below(what, self.largest, bar, self.at_least, self.at_most)


def agreement(gap: Any, error: Any, seeds: int) -> Agreement:
    """Return the distances of means over seeds from a theory, from their gaps and standard errors.

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


def over_seeds(values: xr.DataArray, theory: Any = 0.0, scale: Any = 1.0) -> Agreement:
    """Return the distances of means over seeds from a theory, in units of a scale."""
    seeds = values.sizes["seed"]
    error = values.std("seed", ddof=1) / np.sqrt(seeds) / scale
    return agreement((values.mean("seed") - theory) / scale, error, seeds)


class PowerLaw(NamedTuple):
    """A fit y = amplitude * x^exponent; `off` is the largest factor between a point and the fit."""

    exponent: float
    amplitude: float
    off: float


def power_law(x: Any, y: Any) -> PowerLaw:
    """Fit a power law by least squares in logarithms.

    >>> law = power_law([1, 2, 4], [3, 1.5, 0.75])
    >>> round(law.exponent, 12), round(law.amplitude, 12), round(law.off, 12)
    (-1.0, 3.0, 1.0)
    """
    log_x, log_y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    exponent, intercept = np.polyfit(log_x, log_y, 1)
    off = np.abs(log_y - intercept - exponent * log_x).max()
    return PowerLaw(float(exponent), float(np.exp(intercept)), float(np.exp(off)))


def last_slope(x: Any, y: Any, points: int = 3) -> float:
    """Return the slope of log y against log x over the last points."""
    return power_law(np.asarray(x)[-points:], np.asarray(y)[-points:]).exponent


def by_size(data: Data) -> list[tuple[int, xr.Dataset]]:
    """Return the datasets of finite systems (named "N1024" etc.), sorted by N."""
    sizes = [(int(part[1:]), one) for part, one in data.items() if part.startswith("N")]
    return sorted(sizes, key=lambda entry: entry[0])


def listed(values: Any, form: str = "{:.3g}", names: Any = None) -> str:
    """List values with their names; a value that rounds to zero has no sign.

    Arguments:
        values: a mapping, a DataArray over one axis, or an array with `names`.
        form: format of a value.

    >>> listed({0.5: 1.0, 0.2: 2.5})
    '0.5: 1, 0.2: 2.5'
    >>> listed([-1e-9], "{:.2%}", names=[0.5])
    '0.5: 0.00%'
    """
    if isinstance(values, Mapping):
        names, values = list(values), list(values.values())
    elif names is None:
        names = values[values.dims[0]]

    def number(value: float) -> str:
        text = form.format(value)
        return text if any(digit in text for digit in "123456789") else form.format(0.0)

    return ", ".join(
        f"{_shown(name)}: {number(float(value))}"
        for name, value in zip(np.asarray(names).tolist(), np.ravel(values), strict=True)
    )


def listed_by(
    axis: str, values: xr.DataArray, form: str = "{:.3g}", label: str = "", names: Any = None
) -> str:
    """List values over one axis for each value of another: "rho = 0.4: 1: 0.2, 2: 0.1; ..."."""
    return "; ".join(
        f"{label or axis} = {_shown(place)}: {listed(values.sel({axis: place}), form, names)}"
        for place in values[axis].values.tolist()
    )


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
