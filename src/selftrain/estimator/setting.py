"""The constants of anchored self-training, and which of two sets suits the rows.

Real rows depart from Gaussian clusters: labelled rows must anchor every step and few steps are
best (`TABLE`). On rows that are Gaussian the unlabelled ones say all there is to know, and many
steps with a light anchor reach the limit (`GAUSSIAN`).
"""

from __future__ import annotations

from typing import NamedTuple


class Setting(NamedTuple):
    """The constants of a run.

    Attributes:
        anchor: weight of a labelled row among unlabelled ones of weight 1.
        ridge: of the student, per unlabelled row.
        steps: at most so many.
        mixture_steps: of expectation-maximisation in every step, from what labelled rows say.
        caution: part of the supervised start in the result, where the student teaches alone; None
            lets held-out labelled rows decide (`caution.py`).
        sharpness, annealing: labels are sigmoid(sharpness (1 + annealing t) log-odds) at step t =
            0, 1, ...
        shrinkage: of the mixture's variances to the pooled one (1: equal variances).
        metrics: exponents s of the metrics; there is a student in each, and their mean teaches.
        gaussian: labels give class means and the metric that left-out rows speak for is kept
            (`gaussian.py`), rather than a student in every metric (`anchored.py`).
        directions: most principal directions kept.
    """

    anchor: float = 10.0
    ridge: float = 0.06
    steps: int = 3
    mixture_steps: int = 3
    caution: float | None = None
    sharpness: float = 1.0
    annealing: float = 0.0
    shrinkage: float = 0.5
    metrics: tuple[float, ...] = (0.0, 0.5)
    gaussian: bool = False
    directions: int = 60


TABLE = Setting()
GAUSSIAN = Setting(
    anchor=1.0,
    steps=200,
    mixture_steps=5,
    shrinkage=1.0,
    metrics=(0.0, 0.5, 1.0),
    gaussian=True,
    directions=300,
)
