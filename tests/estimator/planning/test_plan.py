"""`plan` from rows to advice: what it reports, what it refuses, and that its intervals hold on rows
it can be checked on.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import balanced_accuracy_score

from selftrain import SelfTrainingLinearClassifier, plan
from selftrain.errors import InvalidInput
from selftrain.estimator.planning import inputs
from selftrain.estimator.planning.inputs import read_input
from selftrain.results import Plan


@pytest.fixture(scope="module")
def tumours() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Breast cancer: rows, all classes, and the classes with 40 labels left."""
    X, classes = load_breast_cancer(return_X_y=True)
    y = np.full(len(classes), -1)
    labeled = np.random.default_rng(1).choice(len(classes), 40, replace=False)
    y[labeled] = classes[labeled]
    return X, classes, y


@pytest.fixture(scope="module")
def advice(tumours: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Plan:
    X, _, y = tumours
    return plan(X, y)


def test_the_intervals_cover_what_comes_out(
    tumours: tuple[np.ndarray, np.ndarray, np.ndarray], advice: Plan
) -> None:
    X, classes, y = tumours
    hidden = y < 0
    model = SelfTrainingLinearClassifier(class_weight="balanced", random_state=0).fit(X, y)
    error = 1 - balanced_accuracy_score(classes[hidden], model.predict(X[hidden]))
    told = advice.error.self_training
    assert told.low <= error <= told.high
    assert told.high < 0.25
    assert advice.share.low <= classes.mean() <= advice.share.high


def test_the_sources_stand_apart_and_agree_where_rows_are_easy(advice: Plan) -> None:
    assert set(advice.sources) == {"cross-validation", "synthetic data", "theory"}
    for errors in advice.sources.values():
        for told in errors:
            assert told is None or 0 <= told.low <= told.estimate <= told.high <= 1
    assert advice.sources["cross-validation"].fully_supervised is None
    measured = advice.error.self_training
    for source in ("synthetic data", "theory"):
        told = advice.sources[source].self_training
        assert told.low <= measured.high
        assert measured.low <= told.high


def test_a_plan_is_read_in_words_values_and_pictures(advice: Plan) -> None:
    text = str(advice)
    for words in (
        "Advice:",
        "supervised",
        "self-training",
        "fully supervised",
        "90 %",
        "Separation",
    ):
        assert words in text
    assert advice.advice.upper() in text
    assert max(map(len, text.splitlines())) < 320
    assert "<table>" in advice._repr_html_()
    plain = json.loads(json.dumps(advice.to_dict()))
    assert plain["error"]["self_training"]["low"] == advice.error.self_training.low
    assert set(advice.to_frame()["source"]) == {"plan", *advice.sources}
    figure = advice.plot()
    assert len(figure.axes) == 2
    assert advice.worth_labels.low >= 0


def test_breast_cancer_breaks_gaussian_tails_and_nothing_is_hidden(advice: Plan) -> None:
    found = {each.name: each for each in advice.check_assumptions()}
    tails = found["classes are Gaussian"]
    assert not tails.holds
    assert "Cross-validation does not assume this" in tails.effect
    assert "VIOLATED" in str(advice.check_assumptions())
    assert tails in advice.check_assumptions().violated


def test_the_same_state_gives_the_same_plan_whatever_the_container(
    tumours: tuple[np.ndarray, np.ndarray, np.ndarray], advice: Plan
) -> None:
    X, _, y = tumours
    frame = pd.DataFrame(X)
    names = np.where(y < 0, "?", np.where(y == 1, "benign", "cancer"))
    again = plan(frame, names, unlabeled="?", positive="benign")
    for told, known in zip(again.error, advice.error, strict=True):
        assert told == pytest.approx(known, rel=1e-9)  # rounding: a DataFrame is stored by columns
    assert again.rows.names == ("cancer", "benign")


def test_labels_of_one_side_are_a_broken_assumption() -> None:
    """Labelled rows from one corner of the table: the advice may not carry over, and it says so."""
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 600)
    X = random.normal(size=(600, 5)) + 1.5 * classes[:, None]
    y = np.full(600, -1)
    corner = np.argsort(-X[:, 4])[:60]
    chosen = np.concatenate([corner[classes[corner] == c][:12] for c in (0, 1)])
    y[chosen] = classes[chosen]
    broken = [each.name for each in plan(X, y).check_assumptions().violated]
    assert "labelled samples are drawn like the others" in broken


ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = np.array([0, 1] * 5 + [-1] * 50)


def _changed(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    copy = values.astype(float)
    copy[place] = value
    return copy


@pytest.mark.parametrize(
    ("X", "y", "options", "words"),
    [
        (ROWS, np.where(LABELS == 0, -1, LABELS), {}, "1 class"),
        (ROWS, np.where(LABELS == 0, -1, LABELS), {}, "choose another marker"),
        (ROWS, np.full(60, -1), {}, "must have labelled samples"),
        (ROWS, np.arange(60) % 2, {}, "must have unlabelled samples"),
        (_changed(ROWS, (3, 1), np.nan), LABELS, {}, "NaN: 1"),
        (_changed(ROWS, (3, 2), np.inf), LABELS, {}, "infinite values: 2"),
        (np.ones((60, 3)), LABELS, {}, "must have a column that varies"),
        (ROWS, _changed(LABELS, [0, 2, 4, 6], -1), {}, "0.0 has 1"),
        (ROWS, LABELS[:50], {}, "must have one per sample of X: 60"),
        (ROWS, np.arange(60) % 4 - 1, {}, "positive="),
        (ROWS, LABELS, {"positive": 7}, "no such class"),
        (pd.DataFrame({"a": ROWS[:, 0], "town": ["x", "y"] * 30}), LABELS, {}, "town"),
        ([["a", "b"]] * 60, LABELS, {}, "must be numbers"),
        (ROWS, LABELS, {"encode": "yes"}, "True or False"),
    ],
)  # fmt: skip
def test_bad_input_is_named(X: Any, y: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        plan(X, y, **options)


def _read(X: Any, y: Any, **options: Any) -> inputs.Input:
    asked = {"unlabeled": -1, "positive": None, "encode": False, **options}
    return read_input(X, y, random=np.random.RandomState(0), **asked)


def test_constant_columns_and_repeated_rows_get_a_remark() -> None:
    X = np.column_stack([ROWS, np.ones(60)])
    X[1], X[20], X[21] = X[0], X[30], X[30]
    remarks = " ".join(_read(X, LABELS).remarks)
    assert "1 constant column" in remarks
    assert "3 samples repeat another" in remarks
    assert "1 samples are labelled with both classes" in remarks


def test_text_is_encoded_on_request() -> None:
    frame = pd.DataFrame({"a": ROWS[:, 0], "town": ["x", "y", "z"] * 20})
    rows = _read(frame, LABELS, encode=True)
    assert rows.matrix.shape == (60, 4)
    assert "1 column of text became 3 of 0 and 1." in rows.remarks
    assert np.all(rows.matrix[:, 1:].sum(axis=1) == 1)


def test_a_million_rows_are_sampled_before_they_are_copied() -> None:
    X = np.lib.stride_tricks.as_strided(np.arange(1_000_003.0), (1_000_000, 3), (8, 8))
    y = np.full(1_000_000, -1)
    y[:7000:2], y[1:7000:2] = 0, 1
    rows = _read(X, y)
    assert rows.matrix.shape == (inputs.MOST_UNLABELED + inputs.MOST_LABELED, 3)
    assert (rows.labeled, rows.unlabeled) == (7000, 993_000)
    assert "20000 of 993000 unlabelled" in rows.remarks[0]


def test_sparse_rows_stay_sparse() -> None:
    rows = _read(scipy.sparse.csr_array(ROWS * (ROWS > 0)), LABELS)
    assert scipy.sparse.issparse(rows.matrix)


def test_a_column_of_names_of_rows_gets_a_remark() -> None:
    frame = pd.DataFrame(ROWS).assign(name=[f"row {k}" for k in range(len(ROWS))])
    frame.columns = frame.columns.astype(str)
    assert any("'name'" in remark for remark in _read(frame, LABELS, encode=True).remarks)


def test_after_do_not_the_parameters_are_those_of_the_labels_alone() -> None:
    """A five is told from a six by a few labels: nothing is left to gain."""
    X, digit = load_digits(return_X_y=True)
    X, classes = X[(digit == 5) | (digit == 6)], (digit[(digit == 5) | (digit == 6)] == 6) * 1
    labelled = np.random.default_rng(0).permutation(len(X))[:40]
    y = np.full(len(X), -1)
    y[labelled] = classes[labelled]
    found = plan(X, y, random_state=0, progress=False)
    assert found.advice == "do not"
    model = SelfTrainingLinearClassifier(**found.parameters, random_state=0).fit(X, y)
    assert model.n_iter_ == 0
    own = found.evidence.unlabeled.supervised > 0  # the supervised fit that was planned
    assert np.mean(model.predict(X[y < 0]) == own) > 0.98
