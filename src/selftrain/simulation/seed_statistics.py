"""Statistics over seeds, the first axis of an array; seeds without a value (NaN) are ignored."""

from __future__ import annotations

import numpy as np

from ..arrays import Array


def _some(values: Array) -> Array:
    """Return the number of seeds that have a value, as floats; NaN if none has."""
    count = np.isfinite(values).sum(axis=0).astype(float)
    return np.where(count == 0, np.nan, count)


def seed_mean(values: Array) -> Array:
    """Return the mean over the seeds that have a value."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(values, axis=0) / _some(values))


def seed_std(values: Array) -> Array:
    """Return the standard deviation over seeds, with n - 1 in the denominator."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.nansum((values - seed_mean(values)) ** 2, axis=0)
        return np.asarray(np.sqrt(spread / (_some(values) - 1)))


def seed_sem(values: Array) -> Array:
    """Return the standard error of the mean over seeds."""
    return np.asarray(seed_std(values) / np.sqrt(_some(values)))
