"""What one seed leaves behind: a value of every measured quantity at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..errors import StageError

Mask = NDArray[np.bool_]

MEASURED = (
    "m",
    "v",
    "bias",
    "chi",
    "overlap",
    "auc",
    "test_error",
    "fraction_selected",
    "pseudo_label_accuracy",
    "selected_label_accuracy",
    "train_loss",
    "directions",
    "fit_error",
)
"""Measured quantities, one number per step."""

BY_CLASS = ("logit_variances", "class_errors")
"""Measured quantities, one number per step and class."""


class SeedOptions(NamedTuple):
    """How a seed is run.

    Attributes:
        probes: random probes of the susceptibility per step.
        keep_weights, keep_logits: store the vectors themselves.
        tolerance: relative accuracy of a fit.
        stopped: asked after every step; True ends the seed there.
    """

    probes: int = 0
    keep_weights: bool = False
    keep_logits: bool = False
    tolerance: float = 1e-6
    stopped: Callable[[], bool] = lambda: False


@dataclass
class SeedRecord:
    """Measured quantities of one seed over t = 0..T, NaN where there is none.

    Attributes:
        values: arrays over the steps by name (`MEASURED`, `BY_CLASS`).
        collapsed_at: first step that was not fitted because its labels are of one class, or -1.
        collapsed_positive: the class predicted from there on.
        failure: why the seed ended early, if neither the last step nor a collapse ended it.
        weights, logits, selected, classes: per step, if they were asked for.
    """

    seed: int
    steps: int
    values: dict[str, Array] = field(default_factory=dict)
    collapsed_at: int = -1
    collapsed_positive: bool = False
    failure: StageError | None = None
    weights: list[Array] = field(default_factory=list)
    logits: list[Array] = field(default_factory=list)
    selected: list[Mask] = field(default_factory=list)
    classes: list[Mask] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = self.steps + 1
        self.values = {name: np.full(count, np.nan) for name in MEASURED}
        self.values |= {name: np.full((count, 2), np.nan) for name in BY_CLASS}

    def put(self, step: int, **measured: Any) -> None:
        """Enter measured values of a step."""
        for name, value in measured.items():
            self.values[name][step] = value

    def collapse(self, step: int, positive: bool) -> None:
        """Enter that the run collapsed: from this step on one class is predicted."""
        self.collapsed_at, self.collapsed_positive = step, bool(positive)
        self.values["class_errors"][step:] = [1.0, 0.0] if positive else [0.0, 1.0]
