"""Images, embeddings and text: the mean of several self-trained linear models.

Members differ in their folds and, for embeddings, in the number of directions, so that no single
choice of these decides. Classes that no member separates give self-training nothing to follow; the
supervised start is then used instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array
from ..classifier import SelfTrainingLinearClassifier
from ..prepared import most_directions
from ..settings import Settings

MEMBERS = 3
DIRECTIONS = (15, 30, 60)
"""Directions of the members for embeddings, which spread what separates the classes over many
directions of little variance."""

PREPROCESSING = {"table": "table", "image": "shared", "embedding": "table", "text": "shared"}
"""Scaling of the columns by kind of data."""

SEPARATED = 0.5
"""Distance of the class means of the scores, in standard deviations, below which the classes count
as not separated."""


def self_training(
    seed: int, settings: Settings | None = None, neighbours: bool | str = "auto"
) -> SelfTrainingLinearClassifier:
    """Return an unfitted self-training model that decides at even odds."""
    return SelfTrainingLinearClassifier(
        neighbours=neighbours, class_weight="balanced", settings=settings, random_state=seed
    )


def as_columns(scores: Array) -> Array:
    """Return scores as a matrix: a column per class against the rest, or one for two classes."""
    return np.array(scores[:, None] if scores.ndim == 1 else scores)


class Averaged(NamedTuple):
    """The mean of the log-odds of linear models.

    Attributes:
        method: how the members were fitted: "self-training", "gaussian" or "supervised".
    """

    members: tuple[SelfTrainingLinearClassifier, ...]
    method: str
    disagreement: float = float("nan")

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the scores: there is one."""
        return {"linear" if self.method == "supervised" else "self-training": 1.0}

    @property
    def even(self) -> Array:
        """Population log-odds at which the decision is at even odds, one per column."""
        return np.asarray(np.mean([-one._shift for one in self.members], axis=0))

    @property
    def shares(self) -> Array:
        """Estimated class proportions, one per column."""
        found = np.mean([one.shares_ for one in self.members], axis=0)
        return np.asarray(found[1:] if len(found) == 2 else found)

    def log_odds(self, rows: Any) -> Array:
        """Return population log-odds, a column per class against the rest."""
        scores = np.mean([as_columns(one.decision_function(rows)) for one in self.members], axis=0)
        return np.asarray(scores + self.even)


def fit_averaged(rows: Any, codes: Array, kind: str, seed: int) -> Averaged:
    """Self-train the members of a kind of data on samples with these classes (-1: unlabelled)."""
    if kind == "embedding":
        first = self_training(seed).fit(rows, codes)
        if first.method_ == "gaussian":
            return Averaged((first,), "gaussian")
    neighbours = True if kind == "embedding" else "auto"
    fitted = _fit_members(rows, codes, seed, _settings(kind, rows.shape[0]), neighbours)
    if np.mean([_separation(one) for one in fitted]) >= SEPARATED:
        return Averaged(fitted, "self-training")
    start = Settings(steps=0, preprocessing=PREPROCESSING[kind])
    return Averaged(_fit_members(rows, codes, seed, [start] * MEMBERS), "supervised")


def _fit_members(
    rows: Any, codes: Array, seed: int, settings: list[Settings], neighbours: bool | str = "auto"
) -> tuple[SelfTrainingLinearClassifier, ...]:
    models = [self_training(seed + k, each, neighbours) for k, each in enumerate(settings)]
    return tuple(model.fit(rows, codes) for model in models)


def _settings(kind: str, samples: int) -> list[Settings]:
    """Return the settings of the members."""
    scaling = PREPROCESSING[kind]
    if kind != "embedding":
        return [Settings(preprocessing=scaling)] * MEMBERS
    most = most_directions(np.ones(samples))
    return [Settings(preprocessing=scaling, directions=min(count, most)) for count in DIRECTIONS]


def _separation(model: SelfTrainingLinearClassifier) -> float:
    """Return the last separation of the scores, averaged over the classes; infinite without steps,
    which a fit without unlabelled samples has.
    """
    last = {entry["class"]: entry["separation"] for entry in model.history_}
    return float(np.mean(list(last.values()))) if last else float("inf")
