"""Splitter, scorer and learning curve: unlabelled rows train and are never counted."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from selftrain import FewLabelClassifier, SelfTrainingLinearClassifier
from selftrain.errors import InvalidInput
from selftrain.estimator.evaluation import LabeledFolds, labeled_learning_curve, labeled_scorer


def test_folds_test_every_labelled_row_once_and_train_on_every_unlabelled_one():
    y = np.array(["a", "b", "?", "a", "b", "?", "a", "b", "a", "b"], dtype=object)
    folds = list(LabeledFolds(4, unlabeled="?", random_state=0).split(np.zeros((10, 1)), y))
    tested = np.concatenate([test for _, test in folds])
    assert sorted(tested.tolist()) == [0, 1, 3, 4, 6, 7, 8, 9]
    for train, test in folds:
        assert {2, 5} <= set(train.tolist())
        assert not set(train.tolist()) & set(test.tolist())
        assert sorted(y[test]) == ["a", "b"]


def test_more_folds_than_labels_of_a_class_are_refused():
    y = np.array([0, 0, 0, 1, 1, -1])
    with pytest.raises(InvalidInput, match="from 2 to 2"):
        next(LabeledFolds(3).split(np.zeros((6, 1)), y))
    with pytest.raises(InvalidInput, match="has 1 labelled sample"):
        next(LabeledFolds(2).split(np.zeros((4, 1)), np.array([0, 0, 1, -1])))
    with pytest.raises(InvalidInput, match="must have labelled samples"):
        next(LabeledFolds(2).split(np.zeros((2, 1)), np.array([-1, -1])))


def test_the_scorer_counts_labelled_rows_only():
    random = np.random.default_rng(0)
    rows, y = random.normal(size=(60, 2)), random.integers(-1, 2, 60)
    model = LogisticRegression().fit(rows[y >= 0], y[y >= 0])
    by_hand = balanced_accuracy_score(y[y >= 0], model.predict(rows[y >= 0]))
    assert labeled_scorer("balanced_accuracy")(model, rows, y) == by_hand
    weights = random.uniform(size=60)
    by_hand = model.score(rows[y >= 0], y[y >= 0], sample_weight=weights[y >= 0])
    found = labeled_scorer("accuracy")(model, rows, y, sample_weight=weights)
    assert found == pytest.approx(by_hand)


def test_another_marker_is_not_counted_silently():
    rows, y = np.zeros((6, 1)), np.array(["a", "b", "a", "b", "unlabelled", "unlabelled"])
    model = DummyClassifier(strategy="constant", constant="a").fit(rows, y)
    with pytest.warns(UserWarning, match="pass unlabeled='unlabelled'"):
        next(LabeledFolds(2).split(rows, y))
    with pytest.warns(UserWarning, match="pass unlabeled='unlabelled'"):
        labeled_scorer()(model, rows, y)
    assert labeled_scorer(unlabeled="unlabelled")(model, rows, y) == 0.5


def test_the_learning_curve_hides_labels_and_scores_on_them():
    rows, y = load_digits(n_class=2, return_X_y=True)
    seen = []

    class Counting(DummyClassifier):
        def fit(self, X, y):
            seen.append(int((y >= 0).sum()))
            return super().fit(X, np.maximum(y, 0))

    curve = labeled_learning_curve(Counting(), rows, y, [6, 12], draws=2, random_state=0)
    assert seen == [6, 12, 6, 12]
    np.testing.assert_allclose(curve.scores, 0.5)
    model = SelfTrainingLinearClassifier(random_state=0)
    curve = labeled_learning_curve(model, rows, y, [6, 30], draws=2, random_state=0)
    assert curve.mean[1] > 0.98
    assert curve.plot().axes[0].get_xlabel() == "labelled samples"
    with pytest.raises(InvalidInput, match="from 4 "):
        labeled_learning_curve(model, rows, y, [3])


BREAST, MALIGNANT = (each[:150] for each in load_breast_cancer(return_X_y=True))
BREAST = BREAST[:, :6]
KNOWN = np.random.default_rng(0).random(150) < 0.4
TARGETS = {
    "numbers": (np.where(KNOWN, MALIGNANT, -1), -1),
    "text": (np.where(KNOWN, np.array(["m", "b"])[MALIGNANT], ""), -1),
    "marker": (np.where(KNOWN, np.array(["m", "b"])[MALIGNANT], "?"), "?"),
    "minus one": (np.where(KNOWN, 2.0 * MALIGNANT - 1, np.nan), None),
}


def linear(**settings):
    return SelfTrainingLinearClassifier(random_state=0, **settings)


@pytest.mark.parametrize("name", TARGETS)
def test_cross_val_score_ignores_unlabelled_samples(name):
    """scikit-learn's folds contain unlabelled samples; the score is of the labelled ones alone."""
    y, marker = TARGETS[name]
    folds = KFold(3, shuffle=True, random_state=0)
    found = cross_val_score(linear(unlabeled=marker), BREAST, y, cv=folds)
    for score, (train, test) in zip(found, folds.split(BREAST), strict=True):
        model = linear(unlabeled=marker).fit(BREAST[train], y[train])
        own = test[KNOWN[test]]
        expected = np.mean(model.predict(BREAST[own]).astype(y.dtype) == y[own])
        assert score == pytest.approx(expected)
    assert found.mean() > 0.85


@pytest.mark.parametrize("name", TARGETS)
def test_a_grid_search_ignores_unlabelled_samples(name):
    y, marker = TARGETS[name]
    search = GridSearchCV(
        FewLabelClassifier(unlabeled=marker, random_state=0),
        {"safe": [False, True]},
        scoring=labeled_scorer("balanced_accuracy", marker),
        cv=LabeledFolds(3, unlabeled=marker, random_state=0),
    )
    search.fit(BREAST, y)
    assert search.best_score_ > 0.8
    assert search.best_estimator_.score(BREAST, y) > 0.85
    folds = KFold(3, shuffle=True, random_state=0)
    plain = GridSearchCV(linear(unlabeled=marker), {"neighbours": [False]}, cv=folds)
    plain.fit(BREAST, y)
    assert plain.best_score_ > 0.85  # a wrong count of unlabelled samples would be below 0.4


@pytest.mark.parametrize("name", TARGETS)
def test_the_learning_curve_hides_labels_behind_any_marker(name):
    y, marker = TARGETS[name]
    model = linear(unlabeled=marker)
    options = {"draws": 2, "unlabeled": marker, "random_state": 0}
    found = labeled_learning_curve(model, BREAST, y, [20], **options)
    numbers = labeled_learning_curve(
        linear(), BREAST, TARGETS["numbers"][0], [20], **{**options, "unlabeled": -1}
    )
    assert found.scores.min() > 0.8
    if name == "minus one":  # the order of the classes is that of the numbers
        np.testing.assert_array_equal(found.scores, numbers.scores)
