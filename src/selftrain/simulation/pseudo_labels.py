"""Labels of one step: the targets a labeler gives, what they are worth, and whether they can be
fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import NOTHING_SELECTED, EmptySelection, InvalidInput
from ..labelers import Labeler
from ..losses import Logistic, Loss
from .plan import StepPlan
from .seed_record import Mask


def targets_of(labeler: Labeler, logits: Array, step: StepPlan, loss: Loss) -> Array:
    """What the labeler makes of these logits, checked: one finite number each, in [0, 1] for the
    logistic loss.
    """
    given: Any = labeler.target(logits, step.sharpness, loss)
    name = f"labeler {getattr(labeler, 'name', labeler)!r}, step {step.t}"
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


def check_selection(step: StepPlan, selected: Mask, q: float, bias: float) -> None:
    """Refuse, as the theory does, a step for which the threshold leaves no point."""
    if step.t > 0 and not selected.any():
        reason = NOTHING_SELECTED.format(threshold=f"{step.threshold:g}")
        raise EmptySelection(step.t, reason, {"q": q, "bias": bias}, float("nan"))


def label_quality(logits: Array, selected: Mask, positive: Mask) -> dict[str, float]:
    """How many points are selected, and how often the labelling model has the class right."""
    correct = (logits > 0) == positive
    return {
        "fraction_selected": float(selected.mean()),
        "pseudo_label_accuracy": float(correct.mean()),
        "selected_label_accuracy": float(correct[selected].mean()) if selected.any() else np.nan,
    }


def one_class(targets: Array, loss: Loss) -> bool:
    """Whether the targets carry less than 1e-12 of one class, so that a trained bias would run
    away.

    Under the squared loss it would not: the fit is w = 0 with the bias at the class. All points are
    then answered alike, so that is the same outcome, here as in the theory.

    >>> from selftrain.losses import Logistic
    >>> one_class(np.array([1.0, 1.0]), Logistic()), one_class(np.array([1.0, 0.9]), Logistic())
    (True, False)
    """
    negative, positive = loss.classes
    mass = min(float(np.abs(targets - end).mean()) for end in (negative, positive))
    return mass < 1e-12 * (positive - negative)


def majority_positive(targets: Array, loss: Loss, bias: float) -> bool:
    """The class a collapsed seed answers with: that of its targets, of its bias if it has none."""
    if targets.size == 0:
        return bias > 0
    return float(targets.mean()) > 0.5 * sum(loss.classes)


def vanished(norm: float, bias: float, train_bias: bool) -> bool:
    """Whether nothing but the bias is left of the labelling model, as in the theory.

    >>> vanished(1e-12, -3.0, True), vanished(1e-12, -3.0, False), vanished(0.1, -3.0, True)
    (True, False, False)
    """
    return norm < 1e-9 * abs(bias) and (train_bias or norm <= 1e-125)
