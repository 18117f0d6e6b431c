"""The three sources of a plan, each with its own interval.

Cross-validation uses the real samples, but few of them. The theory and the synthetic data know only
class means and covariance: their intervals cover those that the labelled samples leave possible,
and the distance of real samples from Gaussian ones on the development tasks.
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
from ..settings import Constants
from .evidence import Evidence
from .posterior import Interval, Posterior, interval
from .prediction import balanced_rows, best_recipe, supervised_error, trained_error
from .shape import Shape, shape_of
from .synthetic import synthetic_errors

SHAPES, SYNTHETIC = 8, 4
"""Draws of means and covariance for the theory, and those that synthetic data are drawn from."""

MODEL_SPREAD = 0.4
"""Distance of real samples from theory and synthetic data: standard deviation of the normal
quantile of an error."""

NORMAL_90 = 1.6448536269514722
"""Half width of 90 % of a normal law."""

LEAST = 1e-4
"""Smaller errors count as this: no plan can tell them apart."""


class Errors(NamedTuple):
    """Balanced errors of three fits: supervised, self-trained, and with all labels known."""

    supervised: Interval
    self_training: Interval
    fully_supervised: Interval | None = None


@dataclass(frozen=True)
class Predictions:
    """Errors of theory and synthetic data.

    Attributes:
        theory, synthetic: errors with their intervals.
        recipe: the best one of the theory at the ridge that cross-validation chose.
        distances: from self-training to full supervision, in normal quantiles, per synthetic draw.
        shape: estimated class means and covariance.
    """

    theory: Errors
    synthetic: Errors
    recipe: Recipe
    distances: Array
    shape: Shape


def quantile(error: Array | float) -> Array:
    """Return the normal quantile of a correct prediction: large for small errors."""
    return np.asarray(-ndtri(np.clip(error, LEAST, 1 - LEAST)))


def predict(
    prepared: Prepared,
    evidence: Evidence,
    constants: Constants,
    sizes: tuple[int, int],
    random: np.random.RandomState,
    report: Callable[[], None] = lambda: None,
) -> Predictions:
    """Predict errors by theory and synthetic data; `sizes` are the numbers of labelled and
    unlabelled samples.
    """
    draw = np.random.default_rng(random.randint(2**31))
    shapes = [shape_of(prepared, evidence, draw if b else None) for b in range(SHAPES)]
    counted = balanced_rows(sizes[0], float(np.mean(evidence.classes)))
    recipe, _ = best_recipe(shapes[0], *sizes, evidence.ridge)
    predicted = [
        (
            supervised_error(shape, counted, evidence.ridge),
            trained_error(shape, *sizes, recipe),
            supervised_error(shape, balanced_rows(sum(sizes), shape.share), FALLBACK_RIDGE),
        )
        for shape in shapes
    ]
    report()
    drawn = []
    for shape in shapes[:SYNTHETIC]:
        drawn.append(synthetic_errors(prepared, shape, constants, random))
        report()
    measured = np.array(drawn)
    distances = quantile(measured[:, 2]) - quantile(measured[:, 1])
    theory, synthetic = (
        Errors(*(_widened(column) for column in np.array(draws).T)) for draws in (predicted, drawn)
    )
    return Predictions(theory, synthetic, recipe, distances, shapes[0])


def _widened(errors: Array) -> Interval:
    """Return the interval of draws of an error, the spread of the model included."""
    quantiles = quantile(errors)
    spread = float(np.hypot(np.std(quantiles, ddof=1), MODEL_SPREAD))
    ends = np.mean(quantiles) + NORMAL_90 * spread * np.array([0.0, 1.0, -1.0])
    return Interval(*(float(ndtr(-end)) for end in ends))


def headline(
    found: Posterior, distances: Sequence[float] | Array, random: np.random.Generator
) -> Errors:
    """Return the errors a plan states: from cross-validation, and for full supervision minus the
    gap found on synthetic data.
    """
    middle = float(np.mean(distances))
    spread = float(np.hypot(np.std(distances, ddof=1), 0.5 * MODEL_SPREAD))
    away = np.maximum(middle + spread * random.standard_normal(found.trained.size), 0.0)
    every = ndtr(-(quantile(found.trained) + away))
    return Errors(interval(found.supervised), interval(found.trained), interval(every))


def worth_labels(
    found: Posterior, shape: Shape, sizes: tuple[int, int], positive: float
) -> Interval:
    """Return how many more labels a supervised fit would need to be as good as self-training.

    The theory says how the normal quantile of the supervised error grows with the number of labels;
    cross-validation says where it starts.
    """
    labeled, unlabeled = sizes
    numbers = np.unique(np.geomspace(labeled, labeled + unlabeled, 12))
    errors = [supervised_error(shape, balanced_rows(n, positive), None) for n in numbers]
    curve = np.array([float(quantile(error)) for error in errors])
    curve = np.maximum.accumulate(curve) + 1e-9 * np.arange(len(curve))
    gains = quantile(found.trained) - quantile(found.supervised)
    reached = np.exp(np.interp(curve[0] + np.maximum(gains, 0.0), curve, np.log(numbers)))
    extra = np.maximum(reached - labeled, 0.0)
    low, high = np.quantile(extra, [0.05, 0.95])
    return Interval(float(np.median(extra)), float(low), float(high))
