"""What one seed leaves behind: a value of every measured quantity at every step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..losses import Array, Loss
from ..problem import Mixture

Mask = NDArray[np.bool_]

MEASURED = (
    "m",
    "v",
    "bias",
    "chi",
    "overlap",
    "test_error",
    "fraction_selected",
    "pseudo_label_accuracy",
    "selected_label_accuracy",
    "train_loss",
    "directions",
)


@dataclass
class Record:
    """Measured quantities of one seed over t = 0..T, NaN where there is none.

    Attributes:
        values: arrays over the steps by name (`MEASURED`).
        collapsed_at: first step that was not fitted because its labels are of one class, or -1.
        collapsed_positive: the class predicted from there on.
        weights, logits, selected, classes: per step, if they were asked for.
    """

    seed: int
    steps: int
    values: dict[str, Array] = field(default_factory=dict)
    collapsed_at: int = -1
    collapsed_positive: bool = False
    weights: list[Array] = field(default_factory=list)
    logits: list[Array] = field(default_factory=list)
    selected: list[Mask] = field(default_factory=list)
    classes: list[Mask] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in MEASURED:
            self.values[name] = np.full(self.steps + 1, np.nan)

    def put(self, step: int, **measured: float) -> None:
        for name, value in measured.items():
            self.values[name][step] = value

    def collapse(self, step: int, positive: bool) -> None:
        self.collapsed_at, self.collapsed_positive = step, bool(positive)


def one_class(targets: Array, loss: Loss) -> bool:
    """Whether the targets carry less than 1e-12 of one class: a trained bias would run away.

    >>> from selftrain.losses import Logistic
    >>> one_class(np.array([1.0, 1.0]), Logistic()), one_class(np.array([1.0, 0.9]), Logistic())
    (True, False)
    """
    if targets.size == 0:
        return True
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


def sample_error(
    m: float, q: float, bias: float, test: Mixture, rows: int, random: np.random.Generator
) -> float:
    r"""Share of errors on `rows` fresh test points.

    Given the weights, the logit of a fresh point is exactly $s m + B + \sqrt{\Delta q}\,g$, so the
    number of errors in each class is binomial.
    """
    scale = np.sqrt(test.delta * q)
    positive = int(random.binomial(rows, test.rho))
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = np.nan_to_num(ndtr(np.array([-(m + bias), -(m - bias)]) / scale), nan=0.5)
    wrong = random.binomial(positive, missed[0]) + random.binomial(rows - positive, missed[1])
    return float(wrong) / rows
