"""Measurements that several claims need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrays import Array
from .figure import Claim, Data

if TYPE_CHECKING:
    import xarray as xr


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


def at_the_end(values: xr.DataArray) -> xr.DataArray:
    """The value at the largest T that has one: runs with too small batches fade before the last."""
    last = values.notnull().cumsum("T").argmax("T")
    return values.isel(T=last)


def worst(values: xr.DataArray) -> tuple[float, str]:
    """The largest value and where it is, in words."""
    at = values.argmax(...)
    place = values[{str(name): index for name, index in at.items()}]
    where = ", ".join(
        f"{name} = {_shown(place[name].item())}" for name in values.dims if name in place.coords
    )
    return float(place), where


LONG = 256
"""Runs of fewer steps cannot tell what many steps do."""


def in_long_runs(holds: bool, longest: int) -> bool | None:
    """The verdict on a claim about many steps; None if the longest run is short."""
    return holds if longest >= LONG else None


def by_size(data: Data) -> list[tuple[int, xr.Dataset]]:
    """The datasets named N1024 and the like, finite systems, by their N."""
    sizes = [(int(part[1:]), one) for part, one in data.items() if part.startswith("N")]
    return sorted(sizes, key=lambda entry: entry[0])


def above_bayes(error: xr.DataArray, bayes: xr.DataArray) -> Claim:
    """No tuned recipe is below the limit no method can beat."""
    gap = float((error / bayes).min())
    return Claim(
        "Not of the paper: no error is below the Bayes limit of the same data.",
        gap >= 1 - 1e-9,
        f"The smallest ratio of an error to its Bayes limit is {gap:.5f}.",
        {"smallest_ratio": gap},
    )


def numbers(**values: Any) -> dict[str, float]:
    """Numbers for a record; what is not finite is left out, because JSON does not know it."""
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}


def listed(names: Any, values: Array, form: str = "{:.3g}") -> str:
    """Pairs in words.

    >>> listed([0.5, 0.2], np.array([1.0, 2.5]))
    '0.5: 1, 0.2: 2.5'
    """
    return ", ".join(
        f"{_shown(name)}: {form.format(float(value))}"
        for name, value in zip(np.asarray(names).tolist(), values, strict=True)
    )


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
