"""The record of one seed, the value of every measured quantity at every step; and statistics over
seeds.
"""

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
    "m", "v", "bias", "chi", "overlap", "auc", "test_error", "fraction_selected",
    "pseudo_label_accuracy", "selected_label_accuracy", "train_loss", "directions", "fit_error",
)  # fmt: skip
"""Measured quantities, one number per step; with K classes m has K by K of them and bias K."""

BY_CLASS = ("logit_variances", "label_shares", "confusion")
"""Measured quantities with one number per step and class, or pair of classes."""


def shape_of(name: str, classes: int) -> tuple[int, ...]:
    """Return the shape of a quantity at one step."""
    if name == "confusion" or (name == "m" and classes > 2):
        return (classes, classes)
    return (classes,) if name in BY_CLASS or (name == "bias" and classes > 2) else ()


class SeedOptions(NamedTuple):
    """Options of a seed.

    Attributes:
        probes: number of random probes of the susceptibility per step.
        keep_weights, keep_logits: whether to store the vectors.
        tolerance: relative accuracy of a fit.
        stopped: called after every step; the seed ends if it returns True.
    """

    probes: int = 0
    keep_weights: bool = False
    keep_logits: bool = False
    tolerance: float = 1e-6
    stopped: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Vectors:
    """The vectors of one seed, one per step up to the last one fitted, of size 0 for steps before
    it that were not fitted; empty if they were not requested.

    Attributes:
        weights: w, N entries.
        logits: logits of the batch after the fit.
        selected: mask of the samples that the fit used.
        classes: the true classes: with two classes a mask of the positive one.
    """

    weights: list[Array] = field(default_factory=list)
    logits: list[Array] = field(default_factory=list)
    selected: list[Mask] = field(default_factory=list)
    classes: list[Any] = field(default_factory=list)

    def fill(self, t: int, options: SeedOptions) -> None:
        """Add vectors of size 0 for the steps before t that were not fitted."""
        lists: list[list[Any]] = [self.weights] if options.keep_weights else []
        lists += [self.logits, self.selected, self.classes] if options.keep_logits else []
        for one in lists:
            one.extend(np.empty(0) for _ in range(t - len(one)))


@dataclass
class SeedRecord:
    """Measured quantities of one seed over t = 0..T, NaN if there is no value.

    Attributes:
        collapsed_at: first step that was not fitted because its labels are of one class, or -1.
        predicts: the class that it predicts, and the steps that collapse with it; or -1.
        failure: the error that ended the seed early, or None.
    """

    seed: int
    steps: int
    classes: int = 2
    values: dict[str, Array] = field(default_factory=dict)
    collapsed_at: int = -1
    predicts: int = -1
    failure: StageError | None = None
    vectors: Vectors = field(default_factory=Vectors)

    def __post_init__(self) -> None:
        for name in (*MEASURED, *BY_CLASS):
            shape = shape_of(name, self.classes)
            self.values[name] = np.full((self.steps + 1, *shape), np.nan)

    def put(self, step: int, **measured: Any) -> None:
        """Store measured values of a step, by name."""
        for name, value in measured.items():
            self.values[name][step] = value

    def collapse(self, steps: list[int], predicted: int) -> None:
        """Record that `steps[0]` was not fitted because all its labels are of one class,
        `predicted`, as they are in the other `steps` (`Protocol.collapses_with`).
        """
        if self.collapsed_at < 0:
            self.collapsed_at, self.predicts = steps[0], predicted
        self.values["confusion"][steps] = np.eye(self.classes)[predicted]


def seed_mean(values: Array) -> Array:
    """Return the mean over the seeds (the first axis) that have a value."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(values, axis=0) / _known(values))


def seed_std(values: Array) -> Array:
    """Return the standard deviation over seeds, with n - 1 in the denominator."""
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.nansum((values - seed_mean(values)) ** 2, axis=0)
        return np.asarray(np.sqrt(spread / (_known(values) - 1)))


def seed_sem(values: Array) -> Array:
    """Return the standard error of the mean over seeds."""
    return np.asarray(seed_std(values) / np.sqrt(_known(values)))


def _known(values: Array) -> Array:
    """Return the number of seeds that have a value, as floats; NaN if none has."""
    count = np.isfinite(values).sum(axis=0).astype(float)
    return np.where(count == 0, np.nan, count)
