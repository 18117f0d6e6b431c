"""Parts of `FewLabelClassifier`: kinds of data, ranks, distinct samples, weights, threshold."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_digits

from selftrain.estimator.few_labels.averaged import self_training
from selftrain.estimator.few_labels.ensemble import POINTS
from selftrain.estimator.few_labels.heavy_tails import ranks_of_heavy_tails
from selftrain.estimator.few_labels.kinds import recognise
from selftrain.estimator.few_labels.samples import distinct_samples
from selftrain.estimator.few_labels.scores import ANCHORED, forest, linear, self_trained
from selftrain.estimator.mixture import ScoreMixture
from selftrain.estimator.weights import posterior_mean


def test_kinds_of_data():
    random = np.random.default_rng(0)
    vectors = random.standard_normal((400, 96)) @ random.standard_normal((96, 96))
    assert recognise(vectors / np.linalg.norm(vectors, axis=1)[:, None]) == "embedding"
    assert recognise(load_digits().data) == "image"
    assert recognise(load_breast_cancer().data) == "table"
    assert recognise((random.random((300, 500)) < 0.01) * 1.0) == "text"
    mixed = np.column_stack([vectors, np.exp(random.standard_normal((400, 60)) * 2)])
    assert recognise(mixed) == "table"


def test_only_columns_with_heavy_tails_become_ranks():
    random = np.random.default_rng(0)
    plain, heavy = random.standard_normal(500), np.exp(3 * random.standard_normal(500))
    indicator = (np.arange(500) < 3) * 1.0
    rows = np.column_stack([plain, heavy, indicator])
    ranks = ranks_of_heavy_tails(rows)
    assert ranks.columns.tolist() == [1]
    found = ranks.transform(rows)
    assert (found[:, [0, 2]] == rows[:, [0, 2]]).all()
    assert (np.argsort(found[:, 1]) == np.argsort(heavy)).all()
    np.testing.assert_allclose(np.sort(found[:, 1]), np.linspace(0, 1, 500), atol=0.01)


def test_equal_labelled_samples_are_one_of_their_weight():
    random = np.random.default_rng(0)
    rows = random.standard_normal((30, 4))
    codes = np.array([0, 1] * 5 + [-1] * 20)
    doubled, repeated = np.vstack([rows, rows[:10]]), np.append(codes, codes[:10])
    once = distinct_samples(rows, codes, 2, np.random.RandomState(0))
    twice = distinct_samples(doubled, repeated, 2, np.random.RandomState(0))
    assert (twice.rows == once.rows).all()
    assert twice.weights[twice.known].tolist() == [2.0] * 10
    assert twice.weights[twice.unknown].tolist() == [1.0] * 20


@pytest.fixture(scope="module")
def noise():
    """Samples that carry nothing about their classes."""
    random = np.random.default_rng(5)
    rows = random.standard_normal((400, 30))
    codes = np.where(np.arange(400) < 60, random.integers(0, 2, 400), -1)
    return distinct_samples(rows, codes, 2, np.random.RandomState(0))


def self_training_of(samples):
    model = self_training(0, ANCHORED)
    return self_trained(samples, model.fit(samples.rows, samples.codes, samples.weights))


@pytest.mark.parametrize(
    "fit", [self_training_of, lambda s: forest(s, 0), linear], ids=["a", "b", "c"]
)
def test_held_out_scores_have_not_seen_their_labels(noise, fit):
    """In-sample scores of noise order the classes; held-out ones do not, or the other way."""
    found = fit(noise)
    classes = noise.targets[:, 0]

    def gap(scores):
        positive, negative = scores[classes == 1], scores[classes == 0]
        return (positive.mean() - negative.mean()) / scores.std()

    assert gap(found.score(noise.rows[noise.known])[:, 0]) > 0.8
    assert gap(found.held_out[:, 0]) < 0.3


def test_weights_without_evidence_are_equal_and_evidence_moves_them():
    random = np.random.default_rng(0)
    classes = (np.arange(60) % 2) * 1.0
    useless = random.standard_normal(60)
    alike = posterior_mean(POINTS, np.array([useless] * 3), classes, np.ones(60))
    np.testing.assert_allclose(alike, 1 / 3)
    asked = -0.5 * ((POINTS - [0.6, 0.2, 0.2]) ** 2).sum(axis=1) / 0.01**2
    alike = posterior_mean(POINTS, np.array([useless] * 3), classes, np.ones(60), asked)
    np.testing.assert_allclose(alike, [0.6, 0.2, 0.2], atol=1e-6)
    good = 2 * (2 * classes - 1) + random.standard_normal(60)
    scores = np.array([useless, useless[::-1], good])
    assert posterior_mean(POINTS, scores, classes, np.ones(60))[2] > 0.6


@given(
    st.floats(-2, 2), st.floats(0.1, 4), st.floats(0.2, 5), st.floats(0.2, 5), st.floats(0.05, 0.95)
)
@settings(max_examples=50, deadline=None)
def test_the_even_point_is_where_the_densities_cross(low, gap, v0, v1, share):
    mixture = ScoreMixture((low, low + gap), (v0, v1), share)
    assume(not np.isnan(mixture.even_point))
    point = mixture.even_point
    left, right = norm.pdf(point, low, np.sqrt(v0)), norm.pdf(point, low + gap, np.sqrt(v1))
    assert left == pytest.approx(right, rel=1e-6)
    before = norm.pdf(point - 1e-4, low + gap, np.sqrt(v1)) / norm.pdf(
        point - 1e-4, low, np.sqrt(v0)
    )
    assert before <= 1 + 1e-9


def test_the_even_point_of_equal_variances_is_the_midpoint():
    assert ScoreMixture((-1.0, 3.0), (2.0, 2.0), 0.1).even_point == pytest.approx(1.0)
    assert np.isnan(ScoreMixture((1.0, -1.0), (1.0, 1.0), 0.5).even_point)
