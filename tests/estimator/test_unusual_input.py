"""Containers, units and numbers of samples that users bring, for both classifiers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss

from selftrain import FewLabelClassifier, SelfTrainingLinearClassifier, plan
from selftrain.errors import InvalidInput

MODELS = (SelfTrainingLinearClassifier, FewLabelClassifier)
ROWS, CLASSES = (each[:200] for each in load_breast_cancer(return_X_y=True))
ROWS = ROWS[:, :8]
TARGET = np.where(np.arange(200) < 40, CLASSES, -1)


@pytest.fixture(scope="module")
def forest_model():
    return FewLabelClassifier(random_state=0).fit(ROWS, TARGET)


@pytest.mark.parametrize("kind", MODELS)
def test_lists_are_scored_as_arrays(kind):
    model = kind(random_state=0).fit(ROWS.tolist(), TARGET.tolist())
    assert model.score(ROWS.tolist(), TARGET.tolist()) == model.score(ROWS, TARGET)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("others", [1, 2, 5])
def test_few_unlabelled_samples_are_not_the_scale_of_the_scores(kind, others):
    """One sample has no spread; two can be so near each other that scores seem to be huge."""
    model = kind(random_state=0).fit(ROWS[: 40 + others], TARGET[: 40 + others])
    assert model.score(ROWS, CLASSES) > 0.85
    assert log_loss(CLASSES, model.predict_proba(ROWS)) < 0.75


@pytest.mark.parametrize("kind", MODELS)
def test_unlabelled_samples_that_are_all_equal_leave_a_supervised_fit(kind):
    rows = np.where((TARGET < 0)[:, None], ROWS[0], ROWS)
    model = kind(random_state=0).fit(rows, TARGET)
    assert model.score(ROWS, CLASSES) > 0.85
    assert log_loss(CLASSES, model.predict_proba(ROWS)) < 0.5


def test_constant_columns_are_ignored_without_a_warning(forest_model):
    wide = np.hstack([ROWS, np.ones((200, 2)), np.full((200, 1), 1e10 / 3)])
    wide[::2, -1] *= 1 + np.finfo(float).eps
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FewLabelClassifier(random_state=0).fit(wide, TARGET)
    # The forest draws among more columns, so that it is another forest.
    assert np.mean(model.predict(wide) == forest_model.predict(ROWS)) > 0.95


@pytest.mark.parametrize("offset", [1e9, -1e10])
@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_trees_do_not_depend_on_offset_and_unit(forest_model, offset, factor):
    """Trees compute in single precision, which ends at 3e38 and has 7 digits."""
    moved = (ROWS / ROWS.std(axis=0) + offset) * factor
    model = FewLabelClassifier(random_state=0).fit(moved, TARGET)
    assert np.mean(model.predict(moved) == forest_model.predict(ROWS)) > 0.98
    far = moved.copy()
    far[0, 0] = 1e300
    assert len(model.predict(far)) == 200


def test_infinite_entries_name_their_column():
    rows = pd.DataFrame(ROWS, columns=list("abcdefgh"))
    rows.loc[3, "c"] = np.inf
    rows.loc[5, "d"] = np.nan
    with pytest.raises(InvalidInput, match="infinity: fill or drop column 'c'"):
        FewLabelClassifier().fit(rows, TARGET)


@pytest.mark.parametrize("kind", MODELS)
def test_the_order_of_samples_and_columns_hardly_matters(kind):
    """Trees are drawn by position; all else depends on what samples contain."""
    order = np.random.default_rng(0).permutation(200)
    here, there = (
        kind(random_state=0).fit(ROWS[which][:, ::step], TARGET[which])
        for which, step in ((np.arange(200), 1), (order, -1))
    )
    same = np.mean(here.predict(ROWS) == there.predict(ROWS[:, ::-1]))
    assert same == 1 if kind is SelfTrainingLinearClassifier else same > 0.97


def test_an_encoded_default_baseline_keeps_its_name():
    frame = pd.DataFrame(ROWS[:, :2], columns=["a", "b"]).assign(town=["x", "y"] * 100)
    linear = SelfTrainingLinearClassifier(class_weight="balanced", random_state=0)
    found = plan(frame, TARGET, candidate=linear, encode=True)
    assert found.names == ("supervised baseline", "SelfTrainingLinearClassifier")
