"""Where a column has its zero and what its unit is must not matter to the classifier and to
`plan`.
"""

import dask
import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

from selftrain import Recipe, SelfTrainingLinearClassifier, plan
from selftrain.errors import ConvergenceError, InvalidInput
from selftrain.estimator import Settings
from selftrain.estimator.checks import GivenRows
from selftrain.estimator.prepared import prepare
from selftrain.estimator.settings import TABLE
from selftrain.estimator.targets import Classes

OFFSETS = {
    "1e8": 1e8,
    "-1e10": -1e10,
    "mixed": np.r_[0.0, 10.0 ** np.arange(11)],
}


@pytest.fixture(scope="module")
def rows():
    """Two clusters of unit variance in 12 columns, one row in ten labelled."""
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 800)
    X = random.normal(size=(800, 12)) + 0.4 * np.outer(2 * classes - 1, random.normal(size=12))
    return X / X.std(axis=0), np.where(random.random(800) < 0.1, classes, -1)


def decisions(X, y, method="anchored", neighbours="auto", **settings):
    model = SelfTrainingLinearClassifier(
        method, neighbours=neighbours, settings=Settings(**settings), random_state=0
    )
    return model.fit(X, y).decision_function(X)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"method": "gaussian", "steps": 5},
        {"method": "paper"},
        {"neighbours": True},
        {"preprocessing": "shared"},
    ],
    ids=lambda given: "-".join(map(str, given.values())) or "default",
)
def test_an_offset_changes_nothing(rows, offset, parameters):
    X, y = rows
    moved = decisions(X + OFFSETS[offset], y, **parameters)
    # The entries themselves are rounded to 1e-6 around 1e10, and decisions are of order 1.
    np.testing.assert_allclose(moved, decisions(X, y, **parameters), rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", ["anchored", "paper"])
def test_an_offset_changes_nothing_in_chunks(rows, method):
    X, y = rows
    chunks = dask.array.from_array(X + 1e10, chunks=(300, 12))
    with dask.config.set(scheduler="synchronous"):
        moved = SelfTrainingLinearClassifier(method, random_state=0).fit(chunks, y)
        found = moved.decision_function(chunks)
    np.testing.assert_allclose(found, decisions(X, y, method=method), rtol=0, atol=1e-4)


def test_an_offset_changes_nothing_in_sparse_rows(rows):
    """Weights that are no whole numbers: their sum over a full column is rounded."""
    X, y = rows
    weights = np.random.default_rng(1).random(len(y)) + 0.1
    models = [
        SelfTrainingLinearClassifier(random_state=0).fit(scipy.sparse.csr_array(Z), y, weights)
        for Z in (X, X + 1e10)
    ]
    here, there = (
        model.decision_function(Z) for model, Z in zip(models, (X, X + 1e10), strict=True)
    )
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-4)


@pytest.mark.parametrize("factor", [1e-200, 1e-150, 1e150, 1e200])
@pytest.mark.parametrize("preprocessing", ["table", "shared"])
def test_units_change_nothing(rows, factor, preprocessing):
    X, y = rows
    found = decisions(X * factor, y, preprocessing=preprocessing)
    np.testing.assert_allclose(found, decisions(X, y, preprocessing=preprocessing), atol=1e-9)


def test_every_column_may_have_its_own_unit(rows):
    X, y = rows
    units = 10.0 ** np.linspace(-200, 200, 12)
    np.testing.assert_allclose(decisions(X * units, y), decisions(X, y), atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e10 / 3, -1e300])
def test_a_constant_column_says_nothing(rows, value):
    X, y = rows
    column = np.full((len(y), 1), value)
    column[::2] *= 1 + np.finfo(float).eps  # as far as it is known
    model = SelfTrainingLinearClassifier(random_state=0).fit(np.hstack([X, column]), y)
    assert model.coef_[0, -1] == 0
    np.testing.assert_allclose(
        model.coef_[0, :-1],
        SelfTrainingLinearClassifier(random_state=0).fit(X, y).coef_[0],
        atol=1e-9,
    )


def test_a_plan_does_not_depend_on_the_offset(rows):
    X, y = (each[:300] for each in rows)
    linear = SelfTrainingLinearClassifier(class_weight="balanced", random_state=0)
    here, there = (plan(X[:, :5] + offset, y, candidate=linear) for offset in (0.0, 1e10))
    assert here.rows.remarks == there.rows.remarks
    np.testing.assert_allclose(there.error, here.error, atol=1e-4)
    np.testing.assert_allclose(there.gain, here.gain, atol=1e-4)


def test_a_fixed_bias_belongs_to_the_origin_of_the_user(rows):
    """With an offset it is another problem; where its digits are gone, the fit says so."""
    X, y = rows
    with pytest.raises(ConvergenceError, match="did not settle"):
        decisions(X + 1e10, y, method="paper", recipe=Recipe(fix_bias=True))


def test_words_stay_words_when_the_columns_are_moved():
    """Whether a graph of neighbours helps depends on how many entries are not at their floor."""
    random = np.random.default_rng(0)
    counts = (random.random((200, 60)) < 0.02) * 4.0
    digits = load_digits().data[:200]
    codes = np.where(np.arange(200) < 40, np.arange(200) % 2, -1)
    settings = Settings(preprocessing="shared")
    for X, neighbours in ((counts, False), (digits, True)):
        for offset in (0.0, 1e6):
            rows = GivenRows(X + offset, Classes(np.array([0, 1]), codes), np.ones(200))
            prepared = prepare(rows, settings, TABLE, np.random.RandomState(0))
            assert prepared.has_neighbours("auto") == neighbours


def test_entries_of_a_sparse_matrix_in_parts_are_their_sum(rows):
    X, y = rows
    halves = scipy.sparse.coo_array(np.hstack([X, X[:, :1]]))
    places = np.where(halves.col == 12, 0, halves.col)  # the first column a second time
    order = np.lexsort((places, halves.row))
    starts = 13 * np.arange(len(y) + 1)
    split = scipy.sparse.csr_array((halves.data[order], places[order], starts), shape=X.shape)
    doubled = scipy.sparse.csr_array(X * np.r_[2.0, np.ones(11)])
    found, expected = (decisions(Z, y, preprocessing="table", clip=None) for Z in (split, doubled))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert split.nnz == 13 * len(y)  # the user's matrix is left alone


WHOLE = {
    "integers": lambda X: (100 * X).astype(np.int64) + 2**62,
    "denormal": lambda X: X * 1e-312,
    "objects": lambda X: (100 * X).astype(np.int64).astype(object) + 10**30,
    "long double": lambda X: X.astype(np.longdouble) * np.longdouble("1e-400"),
    "frame": lambda X: pd.DataFrame((100 * X).astype(np.int64) + 2**62),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_values_that_float64_cannot_tell_apart_are_rejected(rows, kind):
    if kind == "long double" and np.finfo(np.longdouble).tiny >= np.finfo(float).tiny:
        pytest.skip("long double is double here")
    X, y = rows
    message = r"X = 'columns 0, 1, 2, 3, 4, \.\.\.': .* the precision of float64: subtract"
    with pytest.raises(InvalidInput, match=message):
        SelfTrainingLinearClassifier().fit(WHOLE[kind](X), y)


def test_some_columns_that_float64_cannot_tell_apart_are_named(rows):
    X, y = rows
    whole = (100 * X).astype(np.int64)
    moved = whole.copy()
    moved[:, [2, 7]] += 2**62
    with pytest.warns(UserWarning, match="X, columns 2, 7: .* precision of float64"):
        found = decisions(moved, y)
    whole[:, [2, 7]] = 0
    np.testing.assert_allclose(found, decisions(whole, y), atol=1e-6)


def test_large_integers_with_digits_to_spare_are_taken_as_they_are(rows):
    X, y = rows
    whole = (1e12 * X).astype(np.int64)
    np.testing.assert_allclose(decisions(whole + 2**60, y), decisions(whole, y), atol=1e-4)
