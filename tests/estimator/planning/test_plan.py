"""A plan on data whose classes are all known, and on data that it must reject."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain import plan
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
    for told, model in zip(advice.error, advice.evidence.fitted, strict=True):
        error = 1 - balanced_accuracy_score(classes[hidden], model.predict(X[hidden]))
        assert told.low <= error <= told.high
        assert told.high < 0.25
    assert advice.share.low <= classes.mean() <= advice.share.high


def test_a_plan_is_read_in_words_values_and_pictures(advice: Plan) -> None:
    lines = str(advice).splitlines()
    assert lines[0].startswith(advice.advice.upper())
    assert len(lines) <= 14
    for text in (str(advice), advice.details()):
        assert max(map(len, text.splitlines())) <= 80
    assert sum("[" in line for line in lines) == 3  # three numbers with intervals
    assert "%" in advice.details()
    assert sum(line.startswith("Why: ") for line in lines) == 1
    assert sum(line.startswith("Next: ") for line in lines) == 1
    assert "<table>" in advice._repr_html_()
    plain = json.loads(json.dumps(advice.to_dict()))
    assert plain["error"]["candidate"]["low"] == advice.error.candidate.low
    assert set(advice.to_frame()["source"]) == {"plan", "cells", "cross-validation"}
    assert len(advice.plot().axes) == 2


def test_the_same_state_gives_the_same_plan_whatever_the_container(
    tumours: tuple[np.ndarray, np.ndarray, np.ndarray], advice: Plan
) -> None:
    X, _, y = tumours
    names = np.where(y < 0, "?", np.where(y == 1, "benign", "cancer"))
    again = plan(pd.DataFrame(X), names, unlabeled="?", positive="benign")
    assert list(again.rows.names) == ["cancer", "benign"]
    assert again.error == advice.error
    assert set(again.model().predict(pd.DataFrame(X))) == {"benign", "cancer"}


def test_labels_of_one_side_are_a_violated_assumption() -> None:
    """Labelled rows from one corner of the table: the advice may not carry over, and it says so."""
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 600)
    X = random.normal(size=(600, 5)) + 1.5 * classes[:, None]
    y = np.full(600, -1)
    corner = np.argsort(-X[:, 4])[:60]
    chosen = np.concatenate([corner[classes[corner] == c][:12] for c in (0, 1)])
    y[chosen] = classes[chosen]
    found = plan(X, y)
    broken = [each.name for each in found.check_assumptions().violated]
    assert "labelled samples are drawn like the others" in broken
    assert "violated assumption: labelled samples are drawn like" in str(found)


class Wrong(LogisticRegression):
    """Calls every sample the other class."""

    def predict(self, X: Any) -> Any:
        return self.classes_[1 - (super().predict(X) == self.classes_[1])]


class Careful(RandomForestClassifier):
    """Has a safe mode."""

    def __init__(self, safe: bool = False, n_estimators: int = 20, random_state: int = 0):
        super().__init__(n_estimators=n_estimators, random_state=random_state)
        self.safe = safe


def test_any_two_models_are_compared_and_the_answer_is_what_is_done(
    tumours: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, classes, y = tumours
    hidden = y < 0
    good = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
    bad = make_pipeline(StandardScaler(), Wrong())
    worse = plan(X, y, baseline=good, candidate=bad)
    better = plan(X, y, baseline=bad, candidate=good)
    assert (worse.advice, better.advice) == ("do not", "do")
    for found in (worse, better):
        assert type(found.model()[-1]) is LogisticRegression
        assert np.mean(found.model().predict(X[hidden]) == classes[hidden]) > 0.9
    assert better.names == ("Wrong", "LogisticRegression")


def test_cannot_tell_names_a_number_and_uses_safe_mode() -> None:
    random = np.random.default_rng(0)
    X, classes = random.normal(size=(400, 10)), random.integers(0, 2, 400)
    X[:, 0] += 1.5 * classes
    y = np.where(np.arange(400) < 16, classes, -1)
    linear = LogisticRegression(C=0.1)
    found = plan(X, y, baseline=linear, candidate=Careful())
    assert found.advice == "cannot tell"
    assert found.more_labels is not None
    assert f"label about {found.more_labels} more" in str(found)
    assert found.model().safe is True
    without = plan(X, y, baseline=linear, candidate=RandomForestClassifier(20, random_state=0))
    assert type(without.model()) is LogisticRegression


def test_pipelines_take_text_and_gaps(
    tumours: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """The user's models get gaps as they are, the default ones take the median of the column."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer

    X, _, y = tumours
    table = X.copy()
    table[::7, 3] = np.nan
    linear = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    trees = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3)
    found = plan(table, y, baseline=linear, candidate=trees)
    assert found.error.baseline.high < 0.25
    by_default = plan(table, y, candidate=trees)
    assert by_default.error.baseline.high < 0.25
    assert "missing entries in 3: the default models take the median" in by_default.details()


@pytest.mark.parametrize("container", [list, pd.Series, lambda x: np.array(x, dtype=object)])
def test_raw_texts_are_planned_without_a_check_of_their_means(container: Any) -> None:
    texts = [f"{('ham', 'spam')[k % 2]} {k}" for k in range(60)]
    words = make_pipeline(CountVectorizer(), LogisticRegression())
    letters = make_pipeline(CountVectorizer(analyzer="char"), LogisticRegression())
    found = plan(container(texts), LABELS, baseline=letters, candidate=words)
    assert len(found.check_assumptions()) == 1
    assert set(found.model().predict(texts)) == {0, 1}


@pytest.mark.parametrize("model", ["forest", LogisticRegression])
def test_what_is_no_classifier_is_rejected(
    tumours: tuple[np.ndarray, np.ndarray, np.ndarray], model: Any
) -> None:
    X, _, y = tumours
    with pytest.raises(InvalidInput, match="candidate must be a classifier"):
        plan(X, y, candidate=model)


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
        (_changed(ROWS, (3, 2), np.inf), LABELS, {}, "infinity: fill or drop column 2"),
        (np.ones((60, 3)), LABELS, {}, "must have a column that varies"),
        (ROWS, _changed(LABELS, [0, 2, 4, 6], -1), {}, "0.0 has 1"),
        (ROWS, LABELS[:50], {}, "must have one per sample of X: 60"),
        (ROWS, np.arange(60) % 4 - 1, {}, "positive="),
        (ROWS, LABELS, {"positive": 7}, "no such class"),
        (pd.DataFrame({"a": ROWS[:, 0], "town": ["x", "y"] * 30}), LABELS, {}, "town"),
        (pd.DataFrame({"id": [f"P{k}" for k in range(60)]}), LABELS, {}, "drop 'id' first"),
        ([["a", str(k)] for k in range(60)], LABELS, {}, "must be numbers"),
        (ROWS, LABELS, {"encode": "yes"}, "True or False"),
    ],
)  # fmt: skip
def test_bad_input_is_named(X: Any, y: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        plan(X, y, **options)


def _read(X: Any, y: Any, **options: Any) -> inputs.Input:
    asked = {"unlabeled": -1, "positive": None, **options}
    return read_input(X, y, random=np.random.RandomState(0), **asked)


def test_one_class_against_the_rest_is_named_by_strings() -> None:
    found = _read(ROWS, np.arange(60) % 4 - 1, positive=2)
    assert found.names.tolist() == ["the rest", "2"]


def test_an_array_and_a_table_have_the_same_contents() -> None:
    X = np.round(ROWS)  # some samples are equal, some entries are -0.0
    tables = pd.DataFrame(X), X.astype(object)
    for table in tables:
        np.testing.assert_array_equal(_read(table, LABELS).contents, _read(X, LABELS).contents)


def test_repeated_samples_get_a_remark() -> None:
    X = ROWS.copy()
    X[1], X[20], X[21] = X[0], X[30], X[30]
    remarks = " ".join(_read(X, LABELS).remarks)
    assert "3 samples repeat another" in remarks
    assert "1 samples are labelled with both classes" in remarks


def test_text_is_encoded_on_request() -> None:
    frame = pd.DataFrame({"a": ROWS[:, 0], "town": ["x", "y", "z"] * 20})
    model = plan(frame, LABELS, encode=True).model()
    assert model[:-1].transform(frame).shape == (60, 4)
    assert set(model.predict(frame)) <= {0, 1}
    frame.loc[3, "a"] = np.nan
    assert "1 missing entry in a:" in plan(frame, LABELS, encode=True).details()
    frame.loc[3, "a"] = np.inf
    with pytest.raises(InvalidInput, match="fill or drop column 'a'"):  # not its place once encoded
        plan(frame, LABELS, encode=True)


def test_a_million_samples_are_drawn_from_before_they_are_copied() -> None:
    X = np.lib.stride_tricks.as_strided(np.arange(1_000_003.0), (1_000_000, 3), (8, 8))
    y = np.full(1_000_000, -1)
    y[:7000:2], y[1:7000:2] = 0, 1
    rows = _read(X, y)
    assert rows.X.shape == (inputs.MOST_UNLABELED + inputs.MOST_LABELED, 3)
    assert (rows.labeled, rows.unlabeled) == (7000, 993_000)
    assert "20000 of 993000 unlabelled" in rows.remarks[0]


def test_sparse_samples_stay_sparse() -> None:
    rows = _read(scipy.sparse.csr_array(ROWS * (ROWS > 0)), LABELS)
    assert scipy.sparse.issparse(rows.X)


def test_after_do_not_the_model_is_the_supervised_one() -> None:
    """A five is told from a six by a few labels: nothing is left to gain."""
    X, digit = load_digits(return_X_y=True)
    X, classes = X[(digit == 5) | (digit == 6)], (digit[(digit == 5) | (digit == 6)] == 6) * 1
    labelled = np.random.default_rng(0).permutation(len(X))[:40]
    y = np.full(len(X), -1)
    y[labelled] = classes[labelled]
    found = plan(X, y, random_state=0, progress=False)
    assert found.advice == "do not"
    assert found.model().n_iter_ == 0
    assert np.array_equal(found.model().predict(X[y < 0]) == 1, found.evidence.unlabeled.baseline)
