"""What is measured of the samples of a fit: labels, their collapse, losses."""

from __future__ import annotations

import math

from ...protocol import Fit, Use
from ..ending import Ending
from ..tolerances import COLLAPSED_MASS
from .step import Member


def _pseudo(fit: Fit) -> list[Use]:
    return [use for use in fit.uses if use.labels is not None]


def label_quality(fit: Fit, present: dict[int, list[Member]]) -> tuple[float, float, float]:
    """Return the share of pseudo-labelled samples that are selected, the accuracy of all labels,
    and of the selected ones.
    """
    parts = [
        member.cell.quality(use.labels.teacher)
        for use in fit.uses if use.labels is not None
        for member in present[use.group]
    ]  # fmt: skip
    total, selected, right, both = (sum(column) for column in zip(*parts, strict=True))
    return selected / total, right / total, both / selected if selected else math.nan


def one_class(
    t: int, fit: Fit, present: dict[int, list[Member]], trained: bool, state: dict[str, float]
) -> bool:
    """Return whether the labels of a fit have collapsed; a fit without any sample raises."""
    if len(_pseudo(fit)) < len(fit.uses):
        return False
    masses = [member.cell.label_mass() for use in fit.uses for member in present[use.group]]
    total, down, up = (sum(column) for column in zip(*masses, strict=True))
    if total == 0:
        raise Ending.EMPTY.error(t, state)
    return trained and min(down, up) < COLLAPSED_MASS * total


def losses(fit: Fit, present: dict[int, list[Member]]) -> tuple[float, float]:
    """Return the mean loss of the selected pseudo-labelled samples (of those with given labels if
    there are no others), and of those with given labels next to them.
    """
    means = []
    for given in (False, True):
        parts = [
            member.cell.loss_sums()
            for use in fit.uses if (use.labels is None) == given
            for member in present[use.group]
        ]  # fmt: skip
        count, loss = sum(part[0] for part in parts), sum(part[1] for part in parts)
        means.append(loss / count if count else math.nan)
    plain, kept = means
    return (plain, kept) if _pseudo(fit) else (kept, math.nan)
