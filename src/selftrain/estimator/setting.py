"""The constants of self-training: a set for real data, and one for Gaussian clusters.

Real data depart from Gaussian clusters: labelled samples must anchor every step and few steps are
best (`TABLE`). If samples are Gaussian, the unlabelled ones determine the classes, and many steps
with a light anchor converge to the limit (`GAUSSIAN`).
"""

from __future__ import annotations

from typing import NamedTuple


class Setting(NamedTuple):
    """The constants of a run.

    Attributes:
        anchor: weight of a labelled sample among unlabelled ones of weight 1.
        ridge: of the student, per unlabelled sample.
        steps: largest number of steps.
        mixture_steps: steps of expectation-maximisation in every step, from the anchors.
        caution: weight of the supervised start in the result, without a graph; None lets held-out
            scores decide (`caution.py`).
        sharpness, annealing: labels are sigmoid(sharpness (1 + annealing t) log-odds) at step t =
            0, 1, ...
        shrinkage: of the mixture's variances to the pooled one (1: equal variances).
        metrics: exponents s of the metrics; there is a student in each, and their mean teaches.
        gaussian: labels give class means in the cross-validated metric (`gaussian.py`), rather
            than a student in every metric (`anchored.py`).
        directions: largest number of principal directions.
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
