"""Anchored soft self-training of one two-class problem.

Every step asks the present model for scores, turns them into soft labels by a mixture that the
labelled rows anchor (`mixture.py`), and fits all rows, the labelled ones with their true class
and a larger weight (`logistic.py`). Labelled rows enter the mixture with scores of models that
have not seen them: scores of rows a model was fitted to look better separated than they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from ..arrays import Array
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
    """The end of a run in one metric.

    Attributes:
        coefficients, bias: of the score, whose zero is at even odds of the classes.
        held_out: scores of the labelled rows from models without them.
        unlabeled: scores of the unlabelled rows.
        mixture: of the last scores.
        history: one entry per step.
    """

    coefficients: Array
    bias: float
    held_out: Array
    unlabeled: Array
    mixture: ScoreMixture
    history: list[dict[str, Any]]


def self_train(
    labeled: Labeled,
    unlabeled: Unlabeled,
    metric: Array,
    setting: Setting,
    share: Share,
    tolerance: float,
    neighbours: bool = False,
) -> Outcome:
    """Run anchored self-training in one metric.

    Arguments:
        neighbours: let a graph of nearest neighbours teach too (`neighbours.py`).
        metric: squared lengths of its axes.
        tolerance: mean change of a soft label below which steps end.
    """
    start = supervised_start(labeled, metric)
    table = Coordinates(labeled.coordinates, unlabeled.coordinates)
    student = _scored(start.student, unlabeled.coordinates)
    held_out = start.out_of_fold
    rows = float(unlabeled.weights.sum())
    history: list[dict[str, Any]] = []
    labels = np.full(len(unlabeled.weights), np.nan)
    graph = graph_scores(labeled, unlabeled.coordinates, metric) if neighbours and rows else None
    teacher, mixture = _teacher(student, held_out, graph, labeled, unlabeled, setting, share)
    for step in range(setting.steps if rows > 0 else 0):
        sharpness = setting.sharpness * (1 + setting.annealing * step)
        previous, labels = labels, expit(sharpness * mixture.log_odds(teacher))
        moved = float(unlabeled.weights @ np.abs(labels - previous)) / rows if step else np.inf
        if moved < tolerance:
            break
        targets = soft_targets(labels, labeled, unlabeled.weights, setting.anchor)
        begin = (student.coefficients, student.bias)
        student = fit_student(table, targets, setting.ridge * rows / metric, begin)
        held_out = student.held_out
        teacher, mixture = _teacher(student, held_out, graph, labeled, unlabeled, setting, share)
        history.append(
            {
                "step": step + 1,
                "share": mixture.share,
                "separation": mixture.separation,
                "moved": moved if step else float("nan"),
            }
        )
    return Outcome(
        student.coefficients, student.bias, held_out, student.unlabeled, mixture, history
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


def _teacher(
    student: Student,
    held_out: Array,
    graph: GraphScores | None,
    labeled: Labeled,
    unlabeled: Unlabeled,
    setting: Setting,
    share: Share,
) -> tuple[Array, ScoreMixture]:
    """Scores of the unlabelled rows from the student and the graph, and the mixture they make."""
    scores, own = student.unlabeled, held_out
    if graph is not None:
        a, b = shares_of_teachers(held_out, graph.labeled, labeled)
        scores, own = a * scores + b * graph.unlabeled, a * own + b * graph.labeled
    anchors = Anchors(own, labeled.classes, setting.anchor * labeled.weights)
    mixture = fit_mixture(
        scores,
        unlabeled.weights,
        anchors,
        setting.shrinkage,
        share.known,
        1.0 if share.from_labeled else 0.0,
    )
    return scores, mixture


def _scored(student: Student, rows: Rows) -> Student:
    """A student of the labelled rows alone, with the scores of the others."""
    scores = rows.column(lambda block: block @ student.coefficients + student.bias)
    return Student(student.coefficients, student.bias, student.labeled, scores, student.held_out)
