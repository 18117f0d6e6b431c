"""Fits to the same samples share what does not depend on labels, and nothing else."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain import FewLabelClassifier, plan
from selftrain.datasets import load_digits
from selftrain.estimator import prepared
from selftrain.estimator.planning import models
from selftrain.estimator.same_samples import MOST, Results, first_made, per_samples, same_samples


@pytest.fixture
def counted():
    """A function of a table, a vector and a number, and the list of its calls."""
    calls = []

    @per_samples
    def total(table, vector, number):
        calls.append(number)
        return float((table @ vector).sum() + number)

    return total, calls


def test_the_same_table_and_equal_vectors_are_computed_once(counted):
    total, calls = counted
    table = np.ones((3, 2))
    with same_samples():
        assert total(table, np.ones(2), 1.0) == total(table, np.ones(2), 1.0) == 7.0
        with same_samples():
            total(table, np.ones(2), 1.0)
        assert len(calls) == 1
        assert total(table, np.zeros(2), 1.0) == 1.0
        assert total(table, np.ones(2), 2.0) == 8.0
        assert total(table.copy(), np.ones(2), 1.0) == 7.0
    assert len(calls) == 4


def test_nothing_is_kept_outside_the_context(counted):
    total, calls = counted
    table = np.ones((3, 2))
    for _ in range(2):
        total(table, np.ones(2), 1.0)
        with same_samples():
            total(table, np.ones(2), 1.0)
    assert len(calls) == 4


def test_only_the_latest_results_are_kept(counted):
    total, calls = counted
    table, results = np.ones((3, 2)), Results()
    with same_samples(results):
        for number in range(2 * MOST):
            total(table, np.ones(2), 0.0)
            total(table, np.ones(2), float(number + 1))
    assert len(results) == MOST
    assert calls.count(0.0) == 1  # used again and again, hence the latest


def test_numbers_made_of_a_frame_are_the_same_object_in_later_fits():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    first, second = np.ones((2, 1)), np.ones((2, 1))
    assert first_made(frame, second, int) is second
    with same_samples():
        assert first_made(frame, first, int) is first
        assert first_made(frame, second, int) is first
        assert first_made(frame, second, float) is second


def table_of_heavy_tails():
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 300)
    X = random.standard_t(2, size=(300, 12))
    X[:, :3] += 2.0 * classes[:, None]
    X[random.random(X.shape) < 0.02] = np.nan
    return pd.DataFrame(X, columns=list("abcdefghijkl")), classes


def repeated_samples():
    X, classes = table_of_heavy_tails()
    X = X.fillna(0.0).to_numpy(copy=True)
    X[1], X[40], classes[1] = X[0], X[2], classes[0]
    return X, classes


def images():
    X, digit = (np.asarray(part) for part in load_digits(return_X_y=True))
    return X[digit < 2][:200], digit[digit < 2][:200]


def text():
    random = np.random.default_rng(1)
    classes = random.integers(0, 2, 200)
    counts = random.poisson(0.03, (200, 300)) * 1.0
    counts[:, :30] += random.poisson(0.2 * classes[:, None], (200, 30))
    return scipy.sparse.csr_array(counts), classes


def embeddings():
    random = np.random.default_rng(2)
    classes = random.integers(0, 2, 1100)
    X = random.standard_normal((1100, 50))
    X[:, :5] += classes[:, None] * 1.0
    return X, classes


@pytest.mark.parametrize(
    "samples", [table_of_heavy_tails, repeated_samples, images, text, embeddings]
)
def test_a_plan_predicts_what_separate_fits_predict(samples, monkeypatch):
    X, classes = samples()
    y = np.where(np.arange(len(classes)) < 24, classes, -1)
    safe = FewLabelClassifier(safe=True, random_state=1)
    missing = samples is table_of_heavy_tails  # which the default baseline does not take
    options = {"baseline": safe if missing else None, "progress": False}
    together = plan(X, y, **options)
    fit = models.fit
    monkeypatch.setattr(models, "fit", lambda model, rows, known, _: fit(model, rows, known))
    apart = plan(X, y, **options)
    for name in ("held_out", "unlabeled"):
        for one, other in zip(
            getattr(together.evidence, name), getattr(apart.evidence, name), strict=True
        ):
            assert (one == other).all()
    assert together.to_dict() == apart.to_dict()
    part = X[:50] if not hasattr(X, "iloc") else X.iloc[:50]
    for one, other in zip(together.evidence.fitted, apart.evidence.fitted, strict=True):
        np.testing.assert_array_equal(one.decision_function(part), other.decision_function(part))


@pytest.mark.parametrize("samples", [table_of_heavy_tails, embeddings])
def test_a_plan_finds_the_directions_once_per_model(samples, monkeypatch):
    X, classes = samples()
    X = np.nan_to_num(np.asarray(X))
    y = np.where(np.arange(len(classes)) < 24, classes, -1)
    found = []
    find = prepared.find_basis

    def counting(*arguments):
        found.append(arguments[-2])
        return find(*arguments)

    monkeypatch.setattr(prepared, "find_basis", counting)
    given = X.copy()
    plan(X, y, progress=False)
    # Of the baseline, of self-training, and of its Gaussian method if the samples look so.
    assert len(found) == (3 if samples is embeddings else 2)
    assert (given == X).all()


def test_a_model_that_makes_a_new_table_in_every_fit_works():
    X, classes = repeated_samples()
    y = np.where(np.arange(len(classes)) < 24, classes, -1)
    candidate = make_pipeline(StandardScaler(), FewLabelClassifier(random_state=0))
    other = FewLabelClassifier(safe=True, random_state=0)
    advice = plan(X, y, baseline=other, candidate=candidate, progress=False)
    separate = candidate.fit(X, y).predict(X)
    assert (advice.evidence.fitted.candidate.predict(X) == separate).all()
