"""Anchored soft self-training of one two-class problem.

Every step turns the mean score of the current students (fitted models) into soft labels, by a
mixture that the labelled samples anchor (`mixture.py`), and fits one student per metric to all
samples, the labelled ones with their true class and a larger weight (`logistic.py`). Labelled
samples enter the mixture with held-out scores: the scores of samples that a model was fitted to
look too well separated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from ..arrays import Array
from .blocks import Rows, Stacked
from .folds import Labeled, supervised_start
from .logistic import Student, Targets, fit_student
from .mixture import Anchors, ScoreMixture, fit_mixture
from .neighbours import GraphScores, graph_scores, shares_of_teachers
from .settings import Constants
from .weights import weight_of_start


class Unlabeled(NamedTuple):
    """Unlabelled samples: coordinates and weights."""

    coordinates: Rows
    weights: Array


class Share(NamedTuple):
    """What is known about the proportion of the positive class.

    Attributes:
        known: the proportion itself, None if it is estimated.
        from_labeled: whether the labelled samples were drawn at random, so that their class
            proportions count in the estimate.
    """

    known: float | None = None
    from_labeled: bool = True


class TwoClasses(NamedTuple):
    """A two-class problem and how it is solved.

    Attributes:
        labeled, unlabeled: the samples.
        constants: constants of the method.
        share: what is known about the class proportions.
    """

    labeled: Labeled
    unlabeled: Unlabeled
    constants: Constants
    share: Share

    @property
    def table(self) -> Stacked:
        """Coordinates of all samples, labelled ones first."""
        return Stacked(self.labeled.coordinates, self.unlabeled.coordinates)

    @property
    def masses(self) -> Array:
        """Weights of all samples, those of the labelled ones times the anchor."""
        anchored = self.constants.anchor * self.labeled.weights
        return np.concatenate([anchored, self.unlabeled.weights])

    def mixture(
        self, held_out: Array, scores: Array, start: ScoreMixture | None = None
    ) -> ScoreMixture:
        """Fit the mixture of scores of unlabelled samples, anchored by held-out scores."""
        weights = self.constants.anchor * self.labeled.weights
        return fit_mixture(
            scores,
            self.unlabeled.weights,
            Anchors(held_out, self.labeled.classes, weights),
            self.constants.shrinkage,
            self.share.known,
            1.0 if self.share.from_labeled else 0.0,
            start,
            self.constants.mixture_steps,
        )

    def start(self, metric: Array) -> Student:
        """Fit a student to the labelled samples alone; it has the scores of all samples."""
        student, out_of_fold, _ = supervised_start(self.labeled, metric)
        scores = self.unlabeled.coordinates.column(
            lambda block: block @ student.coefficients + student.bias
        )
        return student._replace(unlabeled=scores, held_out=out_of_fold)

    def labels(self, mixture: ScoreMixture, scores: Array, step: int) -> Array:
        """Return the soft labels of a step; with annealing they become sharper step by step."""
        sharpness = self.constants.sharpness * (1 + self.constants.annealing * step)
        return np.asarray(expit(sharpness * mixture.log_odds(scores)))


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Attributes:
        coefficients, bias: of the score, which is zero where both classes, if equally frequent,
            are equally likely.
        held_out: scores of the labelled samples, from models fitted without them.
        unlabeled: scores of the unlabelled samples.
        mixture: the mixture fitted to the last scores.
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


def self_train(problem: TwoClasses, metrics: Sequence[Array], neighbours: bool = False) -> Outcome:
    """Run anchored self-training.

    Arguments:
        metrics: squared lengths of the axes of every metric.
        neighbours: use a graph of nearest neighbours as a second teacher (`neighbours.py`).
    """
    labeled, unlabeled, constants = problem.labeled, problem.unlabeled, problem.constants
    starts = [problem.start(metric) for metric in metrics]
    rows = float(unlabeled.weights.sum())
    if rows == 0 or constants.steps == 0:
        result = _mean(starts)
        return _outcome(result, unlabeled, problem.mixture(result.held_out, result.unlabeled), [])
    first = combined(starts, [1.0 / (len(starts) * _spread(start, unlabeled)) for start in starts])
    table = problem.table
    graph = graph_scores(labeled, unlabeled.coordinates, metrics[0]) if neighbours else None
    students, teacher = starts, first
    scores, mixture = _teach(problem, teacher, graph)
    history: list[dict[str, Any]] = []
    labels = np.full(len(unlabeled.weights), np.nan)
    for step in range(constants.steps):
        previous, labels = labels, problem.labels(mixture, scores, step)
        moved = float(unlabeled.weights @ np.abs(labels - previous)) / rows if step else np.inf
        if moved < constants.tolerance:
            break
        targets = soft_targets(np.concatenate([labeled.classes, labels]), problem.masses)
        students = [
            fit_student(
                table,
                targets,
                constants.ridge * rows / metric,
                np.append(student.coefficients, student.bias),
            )
            for metric, student in zip(metrics, students, strict=True)
        ]
        teacher = _mean(students)
        scores, mixture = _teach(problem, teacher, graph)
        history.append(history_entry(step, mixture, moved if step else float("nan")))
    if graph is None:
        teacher = _with_caution(problem, teacher, first)
    return _outcome(teacher, unlabeled, mixture, history)


def history_entry(step: int, mixture: ScoreMixture, moved: float) -> dict[str, Any]:
    """Return the entry of `history_` for a step; `moved` is the mean change of the soft labels."""
    share, separation = mixture.share, mixture.separation
    return {"step": step + 1, "share": share, "separation": separation, "moved": moved}


def _with_caution(problem: TwoClasses, teacher: Student, first: Student) -> Student:
    """Mix the supervised start, rescaled to the spread of the teacher's scores, into the teacher.

    Its weight is the constant `caution`, or chosen by held-out scores if that is None.
    """
    size = _spread(teacher, problem.unlabeled) / _spread(first, problem.unlabeled)
    caution = problem.constants.caution
    if caution is None:
        caution = weight_of_start(teacher.held_out, size * first.held_out, problem.labeled)
    return combined([teacher, first], [1 - caution, caution * size])


def combined(students: Sequence[Student], weights: Sequence[float]) -> Student:
    """Return the weighted sum of students; it is linear, so it is a student too."""

    def total(field: int) -> Any:
        return sum(weight * one[field] for weight, one in zip(weights, students, strict=True))

    return Student(*(total(field) for field in range(len(Student._fields))))


def _mean(students: Sequence[Student]) -> Student:
    return combined(students, [1.0 / len(students)] * len(students))


def soft_targets(labels: Array, masses: Array) -> Targets:
    """Return mass and pull (`logistic.py`) of samples with soft labels, the same total mass for
    both classes.
    """
    share = float(masses @ labels / masses.sum())
    positive, negative = 0.5 / share, 0.5 / (1 - share)
    pull = masses * positive * labels
    return Targets(pull + masses * negative * (1 - labels), pull)


def _spread(student: Student, unlabeled: Unlabeled) -> float:
    """Return the standard deviation of the unlabelled scores, or of the held-out ones if those are
    constant.

    Students are divided by it before they are mixed, because their scale depends on the metric.
    """
    weights, scores = unlabeled.weights, student.unlabeled
    center = np.average(scores, weights=weights)
    found = float(np.sqrt(np.average((scores - center) ** 2, weights=weights)))
    return found if found > 1e-12 else max(float(np.std(student.held_out)), 1e-12)


def _teach(
    problem: TwoClasses, student: Student, graph: GraphScores | None
) -> tuple[Array, ScoreMixture]:
    """Return the scores of the unlabelled samples from student and graph together, and the mixture
    fitted to them.
    """
    scores, own = student.unlabeled, student.held_out
    if graph is not None:
        a, b = shares_of_teachers(own, graph.labeled, problem.labeled)
        scores, own = a * scores + b * graph.unlabeled, a * own + b * graph.labeled
    return scores, problem.mixture(own, scores)


def _outcome(
    student: Student, unlabeled: Unlabeled, mixture: ScoreMixture, history: list[dict[str, Any]]
) -> Outcome:
    coefficients, bias, scores, held_out = student
    spread = _spread(student, unlabeled) if len(unlabeled.weights) else float("inf")
    return Outcome(coefficients, float(bias), held_out, scores, mixture, history, spread)
