"""What a fit of a seed is fitted to, as the protocol says: samples, labels, weights.

Labels are given, or made by an earlier fit from the logits of the samples under its weights and its
bias. Samples with made labels come first: what is reported of a batch is of these, and of the
labelled samples where there are no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..protocol import Use
from .designs.design import as_design
from .engines.step_fit import FitRows
from .plan import RunPlan
from .pseudo_labels import label_quality, targets_of
from .seed_record import Mask


class GroupSamples(NamedTuple):
    """The samples of a group: their design, and which are of the positive class."""

    design: Any
    positive: Mask


class Model(NamedTuple):
    """Weights and bias of a fit."""

    weights: Array
    bias: float


class FittedTo(NamedTuple):
    """The samples of a fit.

    Attributes:
        rows: all of them, for the fit.
        targets, selected, positive: of the batch, the first ones.
        mixed: whether some labels are given and others made.
        quality: what the made labels are worth.
    """

    rows: FitRows
    targets: Array
    selected: Mask
    positive: Mask
    mixed: bool
    quality: dict[str, float]


def fitted_to(
    plan: RunPlan,
    t: int,
    samples: Callable[[int], GroupSamples],
    models: list[Model],
    length: float,
    stack: Callable[[list[Any]], Any],
) -> FittedTo:
    """Write out what fit t is fitted to.

    Arguments:
        samples: the samples of a group, by its index.
        models: the fits before.
        length: half the distance of the class means, the unit of thresholds.
        stack: puts several designs above one another.
    """
    fit, step = plan.protocol.fits[t], plan.steps[t]
    made = [use for use in fit.uses if use.labels is not None]
    given = [use for use in fit.uses if use.labels is None]
    parts = [samples(use.group) for use in (*made, *given)]
    labels: list[tuple[Array, Mask, Array]] = []

    def label(use: Use, part: GroupSamples) -> tuple[Array, Mask, Array]:
        """Targets, selected samples, and the logits that made the labels."""
        if use.labels is None:
            negative, positive = fit.loss.classes
            everything = np.ones(part.positive.size, dtype=bool)
            return np.where(part.positive, positive, negative), everything, np.zeros(0)
        teacher = models[use.labels.teacher]
        logits = as_design(part.design).times(teacher.weights) + teacher.bias
        sharp = step._replace(sharpness=use.labels.sharpness)
        edge = use.labels.threshold * float(np.linalg.norm(teacher.weights)) * length
        targets = targets_of(use.labels.labeler, logits, sharp, fit.loss)
        return targets, np.abs(logits) > edge, logits

    for use, part in zip((*made, *given), parts, strict=True):
        labels.append(label(use, part))
    targets, selected, logits = (np.concatenate(column) for column in zip(*labels, strict=True))
    weights = np.concatenate(
        [use.weight * chosen for use, (_, chosen, _) in zip((*made, *given), labels, strict=True)]
    )
    count = sum(part.positive.size for part in parts[: len(made)]) or targets.size
    positive = np.concatenate([part.positive for part in parts])[:count]
    quality = label_quality(logits, selected[:count], positive) if made else {}
    rows = FitRows(stack([part.design for part in parts]), targets, weights)
    return FittedTo(
        rows, targets[:count], selected[:count], positive, bool(made and given), quality
    )
