"""Labels of one fit: the targets, the selection, the accuracy of the labels, and whether they have
collapsed.

With two classes a sample has one logit, and its target is a number; with K classes it has K scores
of sum zero, and its target has one entry per class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ..arrays import Array
from ..errors import NOTHING_SELECTED, EmptySelection, InvalidInput
from ..labelers import HardLabels
from ..losses import Logistic, Loss, Squared
from ..protocol import PseudoLabels
from .seed_record import Mask

Classes = NDArray[np.integer[Any]]


class Model(NamedTuple):
    """The norm of the weights of a fit, and its bias (one number, or one per class)."""

    norm: float
    bias: Any


class Labelled(NamedTuple):
    """The batch of a fit.

    Attributes:
        targets: targets of the selected samples.
        selected: mask of the samples that the fit uses.
        truth: the true classes.
        mixed: whether the fit has given labels besides the pseudo-labels.
        quality: selected proportion, accuracies and class proportions of the labels, by name.
    """

    targets: Array
    selected: Mask
    truth: Classes
    mixed: bool
    quality: dict[str, Any]


def given_labels(truth: Classes, noise: Any, random: np.random.Generator) -> Classes:
    """Return given labels: the true classes, or other ones with the probabilities P(given | true)
    of `noise`.
    """
    if noise is None:
        return truth
    below = np.cumsum(np.array(noise), axis=1)[truth]
    below[:, -1] = 1.0  # exactly, despite rounding
    return np.asarray((random.random(truth.size)[:, None] >= below).sum(axis=1))


def class_targets(loss: Loss, classes: int) -> Array:
    """Return the target of each class, one row per class if targets are vectors."""
    return np.array(loss.classes) if classes == 2 else np.eye(classes)


def predicted(logits: Array) -> Classes:
    """Return the predicted classes."""
    return np.asarray(logits.argmax(axis=1) if logits.ndim > 1 else (logits > 0).astype(np.int8))


def confidence(logits: Array) -> Array:
    """Return the confidence that selection compares with the threshold: the absolute logit, or the
    difference of the two largest scores.
    """
    if logits.ndim == 1:
        return np.abs(logits)
    second, first = np.partition(logits, -2, axis=1)[:, -2:].T
    return np.asarray(first - second)


def confidence_unit(weights: Array) -> float:
    r"""Return the unit of the confidence: the norm of the weights; with K classes the root mean
    square of $|w_k - w_l|$ over pairs of classes.
    """
    norm = float(np.linalg.norm(weights))
    return norm if weights.ndim == 1 else norm * float(np.sqrt(2 / (weights.shape[1] - 1)))


def pseudo_targets(labels: PseudoLabels, logits: Array, loss: Loss, t: int) -> Array:
    """Return the targets that the labeler makes from logits; raise unless they are finite numbers,
    one for each logit, and in [0, 1] for the logistic loss.
    """
    if logits.ndim > 1:
        if type(labels.labeler) is HardLabels or np.isinf(labels.sharpness):
            return np.asarray(np.eye(logits.shape[1])[logits.argmax(axis=1)])
        scores = labels.sharpness * logits
        return scores if type(loss) is Squared else np.asarray(softmax(scores, axis=1))
    given: Any = labels.labeler.target(logits, labels.sharpness, loss)
    name = f"labeler {getattr(labels.labeler, 'name', labels.labeler)!r}, step {t}"
    try:
        targets = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(name, given, "targets must be numbers") from None
    if targets.shape != logits.shape:
        accepted = f"targets must have the shape of the logits, {logits.shape}"
        raise InvalidInput(name, targets.shape, accepted)
    valid, accepted = np.isfinite(targets), "targets must be finite"
    if type(loss) is Logistic:
        valid &= (targets >= 0.0) & (targets <= 1.0)
        accepted = "targets of the logistic loss must be in [0, 1]"
    if not valid.all():
        raise InvalidInput(name, float(targets[~valid][0]), accepted)
    return targets


def check_selection(t: int, labels: PseudoLabels, selected: Mask, teacher: Model) -> None:
    """Raise `EmptySelection`, as the theory does, if the threshold rejects every sample."""
    if not selected.any():
        reason = NOTHING_SELECTED.format(threshold=f"{labels.threshold:g}")
        state = {"q": teacher.norm**2}
        if np.ndim(teacher.bias) == 0:
            state["bias"] = teacher.bias
        raise EmptySelection(t, reason, state, float("nan"))


def label_quality(logits: Array, selected: Mask, truth: Classes) -> dict[str, Any]:
    """Return the selected proportion of the samples, and the accuracy of the predicted classes, of
    all samples and of selected ones.
    """
    correct = predicted(logits) == truth
    return {
        "fraction_selected": float(selected.mean()),
        "pseudo_label_accuracy": float(correct.mean()),
        "selected_label_accuracy": float(correct[selected].mean()) if selected.any() else np.nan,
    }


def label_shares(targets: Array, weights: Array | None, codes: Array) -> Array:
    """Return the class proportions of the labels; a soft label counts in parts for several classes.
    `codes` are the targets of the classes.

    >>> label_shares(np.array([1.0, 0.8, 0.0]), None, np.array([0.0, 1.0])).round(3)
    array([0.4, 0.6])
    """
    if targets.ndim == 1:
        masses = (np.abs(targets - other) for other in codes[::-1])
    else:
        masses = iter(np.abs(targets - targets.mean(axis=1, keepdims=True) + 1 / len(codes)).T)
    mass = np.array([one.sum() if weights is None else weights @ one for one in masses])
    return np.asarray(mass / mass.sum() if mass.sum() > 0 else np.full(len(codes), np.nan))


def one_class(targets: Array, codes: Array) -> bool:
    """Return whether all targets are of one class, up to a proportion of 1e-12, so that a trained
    bias would diverge; `codes` are the targets of the classes.

    With the squared loss the fit would predict that class for all samples, which counts as a
    collapse too, here as in the theory.

    >>> codes = np.array([0.0, 1.0])
    >>> one_class(np.array([1.0, 1.0]), codes), one_class(np.array([1.0, 0.9]), codes)
    (True, False)
    """
    mass = min(float(np.abs(targets - code).mean()) for code in codes)
    return mass < 1e-12 * float(np.ptp(codes))


def majority(targets: Array, codes: Array, bias: Any) -> int:
    """Return the class that a collapsed seed predicts: that of its targets or, without targets,
    that of its bias.
    """
    if targets.ndim > 1:
        return int(np.argmax(targets.mean(axis=0) if len(targets) else bias))
    return int(float(targets.mean()) > 0.5 * codes.sum() if targets.size else bias > 0)


def vanished(model: Model, train_bias: bool) -> bool:
    """Return whether the weights of the labelling model are negligible beside its bias, as in the
    theory.

    >>> vanished(Model(1e-12, -3.0), True), vanished(Model(1e-12, -3.0), False)
    (True, False)
    """
    bias = np.ravel(model.bias)
    size = float(np.abs(bias[np.isfinite(bias)]).max())
    return model.norm < 1e-9 * size and (train_bias or model.norm <= 1e-125)
