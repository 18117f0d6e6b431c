"""Containers, units and numbers of samples that users bring, for both classifiers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.semi_supervised import LabelSpreading

from selftrain import FewLabelClassifier, SelfTrainingLinearClassifier, plan
from selftrain.errors import InvalidInput
from selftrain.estimator.checks import identifiers

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


OWN_MARKERS = {
    "NaN": (np.where(TARGET < 0, np.nan, 2.0 * TARGET - 1), None),
    "None": (np.where(TARGET < 0, None, 2 * TARGET - 1), None),
    "0": (np.where(TARGET < 0, 0, 2 * TARGET - 1), 0),
    "text": (np.where(TARGET < 0, "", (2 * TARGET - 1).astype(str)), None),
}


@pytest.mark.parametrize("name", OWN_MARKERS)
def test_minus_one_can_be_a_class_with_another_marker(name):
    y, marker = OWN_MARKERS[name]
    for kind in MODELS:
        model = kind(random_state=0, unlabeled=marker).fit(ROWS, y)
        plain = kind(random_state=0).fit(ROWS, TARGET)
        assert [float(each) for each in model.classes_] == [-1, 1]
        np.testing.assert_array_equal(model.predict_proba(ROWS), plain.predict_proba(ROWS))
        assert model.score(ROWS, y) == plain.score(ROWS, TARGET)
    advice, plain = plan(ROWS, y, unlabeled=marker), plan(ROWS, TARGET)
    assert advice.error == plain.error
    fitted = advice.model()
    assert {float(each) for each in fitted.predict(ROWS)} == {-1, 1}
    assert fitted.score(ROWS, y) == plain.model().score(ROWS, TARGET)


def test_minus_one_as_class_and_marker_is_one_sentence():
    y = OWN_MARKERS["NaN"][0]
    for fit in (*(kind().fit for kind in MODELS), plan):
        with pytest.raises(InvalidInput, match="if it is a class, choose another marker"):
            fit(ROWS, y)
    spreading = LabelSpreading()
    with pytest.raises(InvalidInput, match=r"whole numbers >= 0 for .* sklearn.semi_supervised"):
        plan(ROWS, OWN_MARKERS["0"][0], unlabeled=0, candidate=spreading)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    "column",
    [range(200), range(5, 1005, 5), range(200, 0, -1), np.random.default_rng(0).permutation(200)],
)
def test_columns_that_number_the_samples_are_named_and_used(kind, column):
    frame = pd.DataFrame(ROWS[:, :3], columns=list("abc")).assign(index=list(column))
    with pytest.warns(UserWarning, match="column 'index' numbers the samples"):
        model = kind(random_state=0).fit(frame, TARGET)
    assert model.n_features_in_ == 4


def test_measured_columns_are_not_taken_for_identifiers():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "count": random.integers(0, 100_000, 200),
            "age": np.sort(random.integers(20, 60, 200)),
            "time": np.sort(random.random(200)),
            "name": [f"{random.choice(list('abc'))}{k}" for k in range(200)],
            "town": ["a", "b"] * 100,
            "share": np.char.mod("%.4f", np.linspace(0.1, 0.2, 200)),
            "loss": pd.Series(-np.arange(1001, 1201) / 1e4, dtype=object),
        }
    )
    assert identifiers(frame) == []
    named = frame.assign(code=[f"P{k:03}" for k in range(200)], row=[str(k) for k in range(200)])
    assert identifiers(named) == ["code", "row"]
    assert identifiers(pd.DataFrame({"id": range(10)})) == []  # too few to tell


def test_the_warning_of_disagreement_promises_nothing_of_safe_mode():
    drawn = np.random.default_rng(0).integers(0, 2, 200)  # labels that no column explains
    y = np.where(np.arange(200) < 20, drawn, -1)
    with pytest.warns(UserWarning, match=r"disagree on \d+% .* with safe=True too; label more"):
        FewLabelClassifier(random_state=0).fit(ROWS, y)
