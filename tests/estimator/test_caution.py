"""The part of the supervised start, the place of even odds, and rows on which neighbours teach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import logit

from selftrain import SelfTrainingLinearClassifier
from selftrain.arrays import Array
from selftrain.estimator.anchored import Outcome, Share, TwoClasses, Unlabeled
from selftrain.estimator.blocks import StoredRows
from selftrain.estimator.folds import Labeled
from selftrain.estimator.mixture import ScoreMixture
from selftrain.estimator.settings import TABLE
from selftrain.estimator.training import FARTHEST, calibrated
from selftrain.estimator.weights import START_MEAN, weight_of_start


def labelled(classes: Array, weights: Array | None = None) -> Labeled:
    ones = np.ones(len(classes))
    return Labeled(np.zeros((len(classes), 1)), classes, ones if weights is None else weights, ones)


@pytest.fixture
def rows() -> tuple[Array, Array, Array]:
    """Classes, scores that know them, scores that do not."""
    random = np.random.default_rng(4)
    classes = (np.arange(60) % 3 == 0) * 1.0
    return (
        classes,
        2 * (2 * classes - 1) + random.standard_normal(60),
        random.standard_normal(60),
    )


def test_held_out_rows_decide_between_start_and_self_training(
    rows: tuple[Array, Array, Array],
) -> None:
    classes, good, noise = rows
    given = labelled(classes)
    assert weight_of_start(good, noise, given) < 0.2
    assert weight_of_start(noise, good, given) > 0.8
    assert weight_of_start(good, good, given) == pytest.approx(START_MEAN, abs=1e-12)


def test_the_part_is_the_mean_of_the_posterior_in_the_docs(
    rows: tuple[Array, Array, Array],
) -> None:
    """Prior 0.5 with spread 0.3, a row counts half, scale free within 0.5 of its logarithm: by
    adaptive integration and search instead of grids.
    """
    classes, good, noise = rows
    weak, weaker = 0.4 * good + noise, 0.5 * (2 * classes - 1) + noise[::-1]
    each = np.where(classes == 1, 0.5 * 60 / classes.sum(), 0.5 * 60 / (60 - classes.sum()))

    def density(part: float) -> float:
        margin = (2 * classes - 1) * ((1 - part) * weak + part * weaker)

        def cost(log_scale: float) -> float:
            loss = each @ np.logaddexp(0, -np.exp(log_scale) * margin)
            return float(loss + 0.5 * (log_scale / 0.5) ** 2)

        best = minimize_scalar(cost, bounds=(-1.5, 1.5), method="bounded").fun
        return float(np.exp(-0.5 * (best - 40) - 0.5 * ((part - 0.5) / 0.3) ** 2))

    mean = quad(lambda c: c * density(c), 0, 1)[0] / quad(density, 0, 1)[0]
    assert weight_of_start(weak, weaker, labelled(classes)) == pytest.approx(mean, abs=0.01)


def test_few_rows_say_little(rows: tuple[Array, Array, Array]) -> None:
    classes, good, noise = rows
    few = labelled(classes[:6])
    found = weight_of_start(noise[:6], good[:6], few)
    assert START_MEAN < found < weight_of_start(noise, good, labelled(classes))


def test_a_weight_is_a_repetition(rows: tuple[Array, Array, Array]) -> None:
    classes, good, noise = rows
    twice = weight_of_start(
        np.repeat(good, 2), np.repeat(noise, 2), labelled(np.repeat(classes, 2))
    )
    heavy = weight_of_start(good, noise, labelled(classes, np.full(60, 2.0)))
    assert twice == pytest.approx(heavy, rel=1e-12)


def test_labelled_rows_move_even_odds_a_little_only() -> None:
    """Scores of a small scale, and labelled rows that call for a far place of even odds."""
    random = np.random.default_rng(0)
    scores = 0.1 * random.standard_normal(500)
    classes = np.array([1.0] * 10 + [0.0] * 30)
    mixture = ScoreMixture((-0.1, 0.1), (0.01, 0.01), 0.05)
    spread = float(scores.std())
    outcome = Outcome(np.ones(1), 0.0, np.zeros(40), scores, mixture, [], spread)
    unlabeled = Unlabeled(StoredRows(np.zeros((500, 1))), np.ones(500))
    problem = TwoClasses(labelled(classes), unlabeled, TABLE, Share())
    found = calibrated(problem, outcome)
    slope, shift = found.coefficients[0], found.intercept
    assert (shift - found.even) / slope == pytest.approx(FARTHEST * spread)
    assert 0.5 < np.mean(slope * scores + shift > found.even) < 0.7
    # Probabilities are not held back: labelled rows say that the class is five times as common.
    assert shift > logit(0.05) + 1.0
    free = calibrated(problem, replace(outcome, spread=np.inf))
    assert free.even == pytest.approx(logit(0.05))


def test_neighbours_teach_on_images_and_not_on_words() -> None:
    random = np.random.default_rng(3)
    truth = (random.random(400) < 0.4) * 1
    rates = np.where(truth[:, None] == 1, 0.02, 0.01) * random.uniform(0.2, 2, 300)
    words = random.poisson(rates).astype(float)
    y = np.where(np.arange(400) < 40, truth, -1)

    def scores(rows: object, neighbours: bool | str) -> Array:
        model = SelfTrainingLinearClassifier(neighbours=neighbours, random_state=0)
        return model.fit(rows, y).decision_function(rows)

    for rows in (words, scipy.sparse.csr_array(words)):
        assert np.array_equal(scores(rows, "auto"), scores(rows, False))
    images = 8 + random.integers(0, 8, (400, 40)) * 1.0
    images[:, :10] += 2 * truth[:, None]
    images[0], images[1] = 8.0, 17.0  # all columns begin and end alike, as pixels do
    assert np.array_equal(scores(images, "auto"), scores(images, True))
