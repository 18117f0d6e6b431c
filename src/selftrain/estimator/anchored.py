"""Anchored soft self-training of one two-class problem.

Every step asks the present students for scores, turns their mean into soft labels by a mixture that
the labelled rows anchor (`mixture.py`), and fits one student per metric to all rows, the labelled
ones with their true class and a larger weight (`logistic.py`). Labelled rows enter the mixture with
scores of models that have not seen them: scores of rows a model was fitted to look better separated
than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ..arrays import Array
from .caution import share_of_start
from .folds import Labeled, supervised_start
from .logistic import Coordinates, RowTargets, Student, fit_student
from .mixture import Anchors, ScoreMixture, fit_mixture
from .neighbours import GraphScores, graph_scores, shares_of_teachers
from .rows import Rows
from .setting import Setting


@dataclass(frozen=True)
class Unlabeled:
    """Unlabelled rows: coordinates and weights."""

    coordinates: Rows
    weights: Array


@dataclass(frozen=True)
class Share:
    """What is known of the share of the positive class.

    Attributes:
        known: the share itself, None if it is estimated.
        from_labeled: whether labelled rows were drawn at random, so that they count.
    """

    known: float | None = None
    from_labeled: bool = True


@dataclass(frozen=True)
class Outcome:
    """The end of a run.

    Attributes:
        coefficients, bias: of the score, whose zero is at even odds of the classes.
        held_out: scores of the labelled rows from models without them.
        unlabeled: scores of the unlabelled rows.
        mixture: of the last scores.
        history: one entry per step.
        spread: standard deviation of the unlabelled scores, infinite if there are none.
    """

    coefficients: Array
    bias: float
    held_out: Array
    unlabeled: Array
    mixture: ScoreMixture
    history: list[dict[str, Any]]
    spread: float = float("inf")


def self_train(
    labeled: Labeled,
    unlabeled: Unlabeled,
    metrics: Sequence[Array],
    setting: Setting,
    share: Share,
    tolerance: float,
    neighbours: bool = False,
) -> Outcome:
    """Run anchored self-training.

    Arguments:
        metrics: squared lengths of the axes of every metric.
        tolerance: mean change of a soft label below which steps end.
        neighbours: let a graph of nearest neighbours teach too (`neighbours.py`).
    """
    starts = [_start(labeled, unlabeled, metric) for metric in metrics]
    rows = float(unlabeled.weights.sum())
    if rows == 0 or setting.steps == 0:
        result = combined(starts, [1.0 / len(starts)] * len(starts))
        mixture = _mixture(result.unlabeled, result.held_out, labeled, unlabeled, setting, share)
        return _outcome(result, unlabeled, mixture, [])
    first = combined(starts, [1.0 / (len(starts) * _spread(start, unlabeled)) for start in starts])
    table = Coordinates(labeled.coordinates, unlabeled.coordinates)
    graph = graph_scores(labeled, unlabeled.coordinates, metrics[0]) if neighbours else None
    students, teacher = starts, first
    scores, mixture = _teach(teacher, graph, labeled, unlabeled, setting, share)
    history: list[dict[str, Any]] = []
    labels = np.full(len(unlabeled.weights), np.nan)
    for step in range(setting.steps):
        sharpness = setting.sharpness * (1 + setting.annealing * step)
        previous, labels = labels, expit(sharpness * mixture.log_odds(scores))
        moved = float(unlabeled.weights @ np.abs(labels - previous)) / rows if step else np.inf
        if moved < tolerance:
            break
        targets = soft_targets(labels, labeled, unlabeled.weights, setting.anchor)
        students = [
            fit_student(
                table, targets, setting.ridge * rows / metric, (student.coefficients, student.bias)
            )
            for metric, student in zip(metrics, students, strict=True)
        ]
        teacher = combined(students, [1.0 / len(students)] * len(students))
        scores, mixture = _teach(teacher, graph, labeled, unlabeled, setting, share)
        history.append(
            {
                "step": step + 1,
                "share": mixture.share,
                "separation": mixture.separation,
                "moved": moved if step else float("nan"),
            }
        )
    if graph is None:
        teacher = _with_caution(teacher, first, labeled, unlabeled, setting.caution)
    return _outcome(teacher, unlabeled, mixture, history)


def _with_caution(
    teacher: Student,
    first: Student,
    labeled: Labeled,
    unlabeled: Unlabeled,
    caution: float | None,
) -> Student:
    """The teacher with a part of the supervised start, brought to its scale."""
    size = _spread(teacher, unlabeled) / _spread(first, unlabeled)
    if caution is None:
        caution = share_of_start(teacher.held_out, size * first.held_out, labeled)
    return combined([teacher, first], [1 - caution, caution * size])


def combined(students: Sequence[Student], weights: Sequence[float]) -> Student:
    """The weighted sum of students; being linear, it is a student too."""

    def total(values: list[Any]) -> Any:
        return sum(weight * value for weight, value in zip(weights, values, strict=True))

    return Student(
        total([student.coefficients for student in students]),
        float(total([student.bias for student in students])),
        total([student.labeled for student in students]),
        total([student.unlabeled for student in students]),
        total([student.held_out for student in students]),
    )


def soft_targets(labels: Array, labeled: Labeled, weights: Array, anchor: float) -> RowTargets:
    """Mass and pull of all rows, with both classes of the same total mass."""
    anchored = anchor * labeled.weights
    total = float(anchored.sum() + weights.sum())
    share = float(anchored @ labeled.classes + weights @ labels) / total
    positive, negative = 0.5 / share, 0.5 / (1 - share)
    return RowTargets(
        anchored * np.where(labeled.classes == 1, positive, negative),
        anchored * labeled.classes * positive,
        weights * (positive * labels + negative * (1 - labels)),
        weights * positive * labels,
    )


def _start(labeled: Labeled, unlabeled: Unlabeled, metric: Array) -> Student:
    """A student of the labelled rows alone, with the scores of the others."""
    start = supervised_start(labeled, metric)
    student = start.student
    scores = unlabeled.coordinates.column(lambda block: block @ student.coefficients + student.bias)
    return Student(student.coefficients, student.bias, student.labeled, scores, start.out_of_fold)


def _spread(student: Student, unlabeled: Unlabeled) -> float:
    """Standard deviation of the unlabelled scores: starts in two metrics differ in their scale."""
    weights, scores = unlabeled.weights, student.unlabeled
    center = np.average(scores, weights=weights)
    return max(float(np.sqrt(np.average((scores - center) ** 2, weights=weights))), 1e-12)


def _teach(
    student: Student,
    graph: GraphScores | None,
    labeled: Labeled,
    unlabeled: Unlabeled,
    setting: Setting,
    share: Share,
) -> tuple[Array, ScoreMixture]:
    """Scores of the unlabelled rows from the student and the graph, and the mixture they make."""
    scores, own = student.unlabeled, student.held_out
    if graph is not None:
        a, b = shares_of_teachers(own, graph.labeled, labeled)
        scores, own = a * scores + b * graph.unlabeled, a * own + b * graph.labeled
    return scores, _mixture(scores, own, labeled, unlabeled, setting, share)


def _mixture(
    scores: Array,
    held_out: Array,
    labeled: Labeled,
    unlabeled: Unlabeled,
    setting: Setting,
    share: Share,
) -> ScoreMixture:
    anchors = Anchors(held_out, labeled.classes, setting.anchor * labeled.weights)
    return fit_mixture(
        scores,
        unlabeled.weights,
        anchors,
        setting.shrinkage,
        share.known,
        1.0 if share.from_labeled else 0.0,
        limit=setting.mixture_steps,
    )


def _outcome(
    student: Student, unlabeled: Unlabeled, mixture: ScoreMixture, history: list[dict[str, Any]]
) -> Outcome:
    spread = _spread(student, unlabeled) if len(unlabeled.weights) else float("inf")
    return Outcome(
        student.coefficients,
        student.bias,
        student.held_out,
        student.unlabeled,
        mixture,
        history,
        spread,
    )
