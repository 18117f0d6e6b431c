"""What one seed leaves behind: a value of every measured quantity at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ..arrays import Array
from ..errors import StageError
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
    "fit_error",
)


class SeedOptions(NamedTuple):
    """How a seed is run.

    Attributes:
        probes: random probes of the susceptibility per step.
        keep_weights, keep_logits: keep the vectors themselves.
        tolerance: relative accuracy of a fit.
        stopped: asked before every step; True ends the seed there.
    """

    probes: int = 0
    keep_weights: bool = False
    keep_logits: bool = False
    tolerance: float = 1e-6
    stopped: Callable[[], bool] = lambda: False


ASKED_NOTHING = SeedOptions()


@dataclass
class SeedRecord:
    """Measured quantities of one seed over t = 0..T, NaN where there is none.

    Attributes:
        values: arrays over the steps by name (`MEASURED`).
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
        for name in MEASURED:
            self.values[name] = np.full(self.steps + 1, np.nan)

    def put(self, step: int, **measured: float) -> None:
        for name, value in measured.items():
            self.values[name][step] = value

    def collapse(self, step: int, positive: bool) -> None:
        self.collapsed_at, self.collapsed_positive = step, bool(positive)

    def keep(
        self, options: SeedOptions, weights: Array, logits: Array, selected: Mask, classes: Mask
    ) -> None:
        """Keep the vectors of a step, if they were asked for."""
        if options.keep_weights:
            self.weights.append(weights)
        if options.keep_logits:
            self.logits.append(logits)
            self.selected.append(selected)
            self.classes.append(classes)


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
