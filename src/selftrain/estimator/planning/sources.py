"""The three sources of a plan, each in its own words and with its own interval.

Left-out rows see the real rows but few of them. The theory and the surrogate see a shape: their
intervals have the shapes that the labelled rows leave possible, and on top the spread by which
real rows departed from Gaussian ones on the development tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ...arrays import Array
from ...recipe import Recipe
from ..folds import FALLBACK_RIDGE
from ..prepared import Prepared
from ..setting import Setting
from .evidence import Evidence
from .posterior import Interval, Posterior, interval
from .prediction import balanced_rows, best_recipe, supervised_error, trained_error
from .shape import Shape, shape_of
from .surrogate import surrogate_errors

SHAPES, SURROGATES = 8, 4
"""Shapes the theory is asked about, and those that rows are drawn from."""

MODEL_SPREAD = 0.4
"""By how much real rows departed from theory and surrogate: standard deviation of the normal
quantile of an error.
"""

NORMAL_90 = 1.6448536269514722
"""Half width of 90 % of a normal law."""

LEAST = 1e-4
"""Errors below this count as this: no plan can tell them apart."""


class Errors(NamedTuple):
    """Balanced errors of three fits: to labels only, self-trained, to every row if it were
    labelled.
    """

    labels_only: Interval
    self_training: Interval
    every_label: Interval | None = None


@dataclass(frozen=True)
class Predictions:
    """What shapes say.

    Attributes:
        theory, surrogate: errors with their intervals.
        recipe: the best one of the theory at the ridge that left-out rows chose.
        distances: from self-training to every label, in normal quantiles: one per surrogate.
        shape: the one in the middle.
    """

    theory: Errors
    surrogate: Errors
    recipe: Recipe
    distances: Array
    shape: Shape


def quantile(error: Array | float) -> Array:
    """The normal quantile of a right answer: large for small errors."""
    return np.asarray(-ndtri(np.clip(error, LEAST, 1 - LEAST)))


def predict(
    prepared: Prepared,
    evidence: Evidence,
    setting: Setting,
    sizes: tuple[int, int],
    random: np.random.RandomState,
    report: Callable[[], None] = lambda: None,
) -> Predictions:
    """Ask the theory and the surrogate; `sizes` are the labelled and unlabelled rows that were
    given.
    """
    draw = np.random.default_rng(random.randint(2**31))
    shapes = [shape_of(prepared, evidence, draw if b else None) for b in range(SHAPES)]
    labeled, unlabeled = sizes
    positive = float(np.mean(evidence.classes))
    counted = balanced_rows(labeled, positive)
    recipe, _ = best_recipe(shapes[0], labeled, unlabeled, evidence.ridge)
    predicted = np.array(
        [
            (
                supervised_error(shape, counted, evidence.ridge),
                trained_error(shape, labeled, unlabeled, recipe),
                supervised_error(shape, balanced_rows(sum(sizes), shape.share), FALLBACK_RIDGE),
            )
            for shape in shapes
        ]
    )
    report()
    drawn = []
    for shape in shapes[:SURROGATES]:
        drawn.append(surrogate_errors(prepared, shape, setting, random))
        report()
    measured = np.array(drawn)
    distances = quantile(measured[:, 2]) - quantile(measured[:, 1])
    return Predictions(_errors(predicted), _errors(measured), recipe, distances, shapes[0])


def _errors(draws: Array) -> Errors:
    """Intervals of columns of draws, the spread of the model included."""
    return Errors(*(_widened(column) for column in draws.T))


def _widened(errors: Array) -> Interval:
    quantiles = quantile(errors)
    spread = float(np.hypot(np.std(quantiles, ddof=1), MODEL_SPREAD))
    ends = np.mean(quantiles) + NORMAL_90 * spread * np.array([0.0, 1.0, -1.0])
    return Interval(*(float(ndtr(-end)) for end in ends))


def headline(
    found: Posterior, distances: Sequence[float] | Array, random: np.random.Generator
) -> Errors:
    """The errors a plan states: left-out rows for two of them; every label as far from
    self-training as the surrogate has it.
    """
    middle, spread = (
        float(np.mean(distances)),
        float(np.hypot(np.std(distances, ddof=1), 0.5 * MODEL_SPREAD)),
    )
    away = np.maximum(middle + spread * random.standard_normal(found.trained.size), 0.0)
    every = ndtr(-(quantile(found.trained) + away))
    return Errors(interval(found.supervised), interval(found.trained), interval(every))


def worth_labels(
    found: Posterior, shape: Shape, sizes: tuple[int, int], positive: float
) -> Interval:
    """Labels beyond the present ones that a supervised fit would need to be as good as
    self-training.

    From the theory's curve of the supervised error over labels: by how much the normal quantile of
    the error grows with labels is taken from it, where it starts is taken from left-out rows.
    """
    labeled, unlabeled = sizes
    numbers = np.unique(np.geomspace(labeled, labeled + unlabeled, 12))
    curve = np.array(
        [
            float(quantile(supervised_error(shape, balanced_rows(n, positive), None)))
            for n in numbers
        ]
    )
    curve = np.maximum.accumulate(curve) + 1e-9 * np.arange(len(curve))
    gains = quantile(found.trained) - quantile(found.supervised)
    reached = np.exp(np.interp(curve[0] + np.maximum(gains, 0.0), curve, np.log(numbers)))
    extra = np.maximum(reached - labeled, 0.0)
    low, high = np.quantile(extra, [0.05, 0.95])
    return Interval(float(np.median(extra)), float(low), float(high))
