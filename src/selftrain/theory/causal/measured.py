"""What is measured of the samples of a fit: labels, their collapse, losses."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import Array
from ...protocol import Fit
from ..ending import Ending
from ..tolerances import COLLAPSED_MASS
from .step import Member


def label_quality(fit: Fit, present: dict[int, list[Member]]) -> tuple[float, float, float]:
    """Return the share of pseudo-labelled samples that are selected, the accuracy of all labels,
    and of the selected ones; NaN without any.
    """
    parts = [
        member.cell.quality(use.labels)
        for use in fit.uses if use.labels is not None
        for member in present[use.group]
    ]  # fmt: skip
    if not parts:
        return math.nan, math.nan, math.nan
    total, selected, right, both = (sum(column) for column in zip(*parts, strict=True))
    return selected / total, right / total, both / selected if selected else math.nan


def label_shares(fit: Fit, present: dict[int, list[Member]]) -> Array:
    """Return the share of each class among the labels of a fit; a fit of no sample has zeros."""
    made = [use for use in fit.uses if use.labels is not None]
    masses = [m.cell.label_mass() for use in made or fit.uses for m in present[use.group]]
    mass = np.sum(masses, axis=0)
    total = float(mass.sum())
    return np.asarray(mass / total if total > 0 else mass)


def class_lost(t: int, fit: Fit, shares: Array, state: dict[str, float]) -> bool:
    """Return whether a class is missing among the labels of a fit whose bias is trained; a fit
    without any sample raises.
    """
    if any(use.labels is None or use.given > 0 for use in fit.uses):
        return False
    if shares.sum() == 0:
        raise Ending.EMPTY.error(t, state)
    return fit.bias_of is None and float(shares.min()) < COLLAPSED_MASS


def losses(fit: Fit, present: dict[int, list[Member]]) -> tuple[float, float]:
    """Return the mean loss of the selected pseudo-labelled samples (of those with given labels if
    there are no others), and of those with given labels next to them.
    """
    means = []
    for given in (False, True):
        parts = [
            member.cell.loss_sums(given)
            for use in fit.uses if (use.labels is None or use.given > 0 if given else use.labels)
            for member in present[use.group]
        ]  # fmt: skip
        count, loss = sum(part[0] for part in parts), sum(part[1] for part in parts)
        means.append(loss / count if count else math.nan)
    plain, kept = means
    return (plain, kept) if any(use.labels for use in fit.uses) else (kept, math.nan)
