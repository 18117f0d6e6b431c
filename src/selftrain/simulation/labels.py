"""Labels of one fit: the targets, which samples are selected, what the labels are worth, and
whether they can be fitted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..errors import NOTHING_SELECTED, EmptySelection, InvalidInput
from ..losses import Logistic, Loss
from ..protocol import PseudoLabels
from .seed_record import Mask


class Labelled(NamedTuple):
    """The batch of a fit.

    Attributes:
        targets: of the selected samples.
        selected: which samples of the batch the fit uses.
        truth: whether a sample of the batch is of the positive class.
        mixed: whether the fit has given labels besides the pseudo-labels.
        quality: what the pseudo-labels are worth.
    """

    targets: Array
    selected: Mask
    truth: Mask
    mixed: bool
    quality: dict[str, float]


def pseudo_targets(labels: PseudoLabels, logits: Array, loss: Loss, t: int) -> Array:
    """Return what the labeler makes of these logits, validated: one finite number each, in [0, 1]
    for the logistic loss.
    """
    given: Any = labels.labeler.target(logits, labels.sharpness, loss)
    name = f"labeler {getattr(labels.labeler, 'name', labels.labeler)!r}, step {t}"
    try:
        targets = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(name, given, "targets must be numbers") from None
    if targets.shape != logits.shape:
        accepted = f"targets must have the shape of the logits, {logits.shape}"
        raise InvalidInput(name, targets.shape, accepted)
    low, high = (0.0, 1.0) if type(loss) is Logistic else (-np.inf, np.inf)
    wrong = ~(np.isfinite(targets) & (targets >= low) & (targets <= high))
    if wrong.any():
        accepted = "targets of the logistic loss must be in [0, 1]"
        if type(loss) is not Logistic:
            accepted = "targets must be finite"
        raise InvalidInput(name, float(targets[wrong][0]), accepted)
    return targets


def check_selection(
    t: int, labels: PseudoLabels, selected: Mask, teacher: tuple[float, float]
) -> None:
    """Reject, as the theory does, a step for which the threshold leaves no sample; the teacher is
    given by the norm of its weights and its bias.
    """
    if not selected.any():
        reason = NOTHING_SELECTED.format(threshold=f"{labels.threshold:g}")
        state = {"q": teacher[0] ** 2, "bias": teacher[1]}
        raise EmptySelection(t, reason, state, float("nan"))


def label_quality(logits: Array, selected: Mask, truth: Mask) -> dict[str, float]:
    """Return how many samples are selected, and how often the teacher has their class right."""
    correct = (logits > 0) == truth
    return {
        "fraction_selected": float(selected.mean()),
        "pseudo_label_accuracy": float(correct.mean()),
        "selected_label_accuracy": float(correct[selected].mean()) if selected.any() else np.nan,
    }


def one_class(targets: Array, loss: Loss) -> bool:
    """Return whether the targets carry less than 1e-12 of one class, so that a trained bias would
    diverge.

    Under the squared loss it would not: the fit is w = 0 with the bias at the class. All samples
    are then predicted alike, so that is the same outcome, here as in the theory.

    >>> from selftrain.losses import Logistic
    >>> one_class(np.array([1.0, 1.0]), Logistic()), one_class(np.array([1.0, 0.9]), Logistic())
    (True, False)
    """
    negative, positive = loss.classes
    mass = min(float(np.abs(targets - end).mean()) for end in (negative, positive))
    return mass < 1e-12 * (positive - negative)


def majority_positive(targets: Array, loss: Loss, bias: float) -> bool:
    """Return the class that a collapsed seed predicts: that of its targets, of its bias if it has
    none.
    """
    if targets.size == 0:
        return bias > 0
    return float(targets.mean()) > 0.5 * sum(loss.classes)


def vanished(norm: float, bias: float, train_bias: bool) -> bool:
    """Return whether nothing but the bias is left of the labelling model, as in the theory.

    >>> vanished(1e-12, -3.0, True), vanished(1e-12, -3.0, False), vanished(0.1, -3.0, True)
    (True, False, False)
    """
    return norm < 1e-9 * abs(bias) and (train_bias or norm <= 1e-125)
