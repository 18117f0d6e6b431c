"""The classifier: what its attributes and parameters mean, in the units and classes of the user."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain import Recipe, SelfTrainingLinearClassifier
from selftrain.errors import InvalidInput
from selftrain.estimator import Settings
from selftrain.estimator.blocks import as_rows
from selftrain.estimator.evaluation import LabeledFolds, labeled_scorer
from selftrain.estimator.preprocessing import extremes, find_basis
from selftrain.estimator.targets import read_targets


def hidden(classes, labels, seed=0, marker=-1):
    """Targets with a random part of the labels left, at least two of each class."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(classes))
    first = [row for name in np.unique(classes) for row in order[classes[order] == name][:2]]
    kept = [*first, *[row for row in order if row not in set(first)]][:labels]
    target = np.full(len(classes), marker, dtype=np.asarray(classes).dtype)
    target[kept] = classes[kept]
    return target


@pytest.fixture(scope="module")
def cancer():
    rows, classes = load_breast_cancer(return_X_y=True)
    return rows, classes, hidden(classes, 30)


@pytest.fixture(scope="module")
def model(cancer):
    rows, _, target = cancer
    return SelfTrainingLinearClassifier(random_state=0).fit(rows, target)


def test_coefficients_are_in_the_users_units(cancer, model):
    rows = cancer[0]
    by_hand = rows @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(rows), by_hand, rtol=1e-9, atol=1e-9)
    factors = 10.0 ** np.linspace(-3, 3, rows.shape[1])
    scaled = clone(model).fit(rows * factors + 7.0, cancer[2])
    np.testing.assert_allclose(scaled.coef_[0] * factors, model.coef_[0], rtol=1e-5, atol=1e-9)


def test_labelled_rows_keep_their_class_and_others_get_the_predicted_one(cancer, model):
    rows, _, target = cancer
    known = target >= 0
    assert (model.transduction_[known] == target[known]).all()
    assert (model.transduction_[~known] == model.predict(rows)[~known]).all()


def test_history_has_every_step(model):
    assert [entry["step"] for entry in model.history_] == list(range(1, model.n_iter_ + 1))


def test_it_is_better_than_the_labels_alone(cancer, model):
    rows, classes, target = cancer
    known = target >= 0
    alone = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows[known], target[known])
    assert model.score(rows, classes) > alone.score(rows, classes) - 0.01
    assert model.score(rows, classes) > 0.93


def test_weights_of_the_decision_move_the_decision_and_not_the_probabilities(cancer, model):
    rows, _, target = cancer
    even = clone(model).set_params(class_weight="balanced").fit(rows, target)
    np.testing.assert_allclose(even.predict_proba(rows), model.predict_proba(rows), rtol=1e-9)
    share = model.shares_[1]
    gap = even.decision_function(rows) - model.decision_function(rows)
    np.testing.assert_allclose(gap, np.log((1 - share) / share), rtol=1e-9)
    weighed = clone(model).set_params(class_weight={0: 3.0, 1: 1.0}).fit(rows, target)
    gap = weighed.decision_function(rows) - model.decision_function(rows)
    np.testing.assert_allclose(gap, -np.log(3.0), rtol=1e-9)


def test_names_of_classes_and_columns_are_the_users(cancer, model):
    rows, _, target = cancer
    names = np.array(["bad", "good"], dtype=object)
    words = np.where(target < 0, "unknown", names[np.maximum(target, 0)])
    frame = pd.DataFrame(rows, columns=load_breast_cancer().feature_names)
    named = SelfTrainingLinearClassifier(unlabeled="unknown", random_state=0).fit(frame, words)
    assert named.classes_.tolist() == ["bad", "good"]
    assert named.feature_names_in_.tolist() == frame.columns.tolist()
    assert named.n_features_in_ == 30
    np.testing.assert_array_equal(named.predict(frame), names[model.predict(rows)])
    missing = np.where(target < 0, None, names[np.maximum(target, 0)])
    other = SelfTrainingLinearClassifier(unlabeled=None, random_state=0).fit(frame, missing)
    np.testing.assert_allclose(other.coef_, named.coef_)


def test_a_row_of_weight_two_is_two_rows_and_of_weight_zero_none(cancer):
    rows, _, target = cancer
    weights = np.random.default_rng(0).integers(0, 3, len(target)).astype(float)
    weights[np.flatnonzero(target >= 0)] = 1.0
    whole = weights.astype(int)
    weighed = SelfTrainingLinearClassifier(random_state=0).fit(rows, target, sample_weight=weights)
    repeated = SelfTrainingLinearClassifier(random_state=0).fit(
        np.repeat(rows, whole, axis=0), np.repeat(target, whole)
    )
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-6, atol=1e-10)


def test_more_classes_are_one_against_the_rest_with_probabilities_that_add_up():
    rows, classes = load_wine(return_X_y=True)
    found = SelfTrainingLinearClassifier(random_state=0).fit(rows, hidden(classes, 30))
    assert found.coef_.shape == (3, 13)
    np.testing.assert_allclose(found.predict_proba(rows).sum(axis=1), 1.0)
    np.testing.assert_allclose(found.shares_.sum(), 1.0)
    assert found.score(rows, classes) > 0.93


def test_sparse_rows_give_what_dense_ones_give():
    rows, classes = load_digits(n_class=2, return_X_y=True)
    target = hidden(classes, 20)
    options = {"random_state": 0, "settings": Settings(preprocessing="shared")}
    dense = SelfTrainingLinearClassifier(**options).fit(rows, target)
    sparse = SelfTrainingLinearClassifier(**options).fit(scipy.sparse.csr_array(rows), target)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        sparse.predict_proba(scipy.sparse.csr_array(rows)), dense.predict_proba(rows), atol=1e-9
    )


def test_text_of_a_hundred_thousand_columns_stays_sparse(monkeypatch):
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 600)
    words = random.integers(0, 100_000, (600, 40))
    words[:, :8] = random.integers(0, 60, (600, 8)) + 60 * classes[:, None]
    lines = np.repeat(np.arange(600), 40)
    shape = (600, 100_000)
    rows = scipy.sparse.csr_array((np.ones(24_000), (lines, words.ravel())), shape=shape)

    def refuse(*_, **__):
        raise AssertionError("made dense")

    for name in ("toarray", "todense"):
        monkeypatch.setattr(scipy.sparse.csr_array, name, refuse)
    found = SelfTrainingLinearClassifier(random_state=0).fit(rows, hidden(classes, 30))
    assert (found.predict(rows) == classes).mean() > 0.95


def test_neighbours_help_where_clusters_are_many():
    rows, digit = load_digits(return_X_y=True)
    classes = (digit == 8).astype(int)
    scores = []
    for neighbours in (False, True):
        options = {"neighbours": neighbours, "class_weight": "balanced", "random_state": 0}
        errors = []
        for seed in range(3):
            target = hidden(classes, 40, seed)
            fitted = SelfTrainingLinearClassifier(**options).fit(rows, target)
            wrong = fitted.predict(rows) != classes
            errors.append(0.5 * (wrong[classes == 0].mean() + wrong[classes == 1].mean()))
        scores.append(np.mean(errors))
    assert scores[1] < scores[0]


def test_it_works_with_the_tools_of_scikit_learn(cancer, model):
    rows, classes, target = cancer
    pipe = make_pipeline(StandardScaler(), SelfTrainingLinearClassifier(random_state=0))
    search = GridSearchCV(
        pipe,
        {"selftraininglinearclassifier__settings": [Settings(anchor=a) for a in (3.0, 10.0)]},
        cv=LabeledFolds(3, random_state=0),
        scoring=labeled_scorer("balanced_accuracy"),
    ).fit(rows, target)
    assert search.best_score_ > 0.85
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert clone(model).get_params() == model.get_params()
    known = target >= 0
    with pytest.warns(UserWarning, match="no unlabelled sample"):
        calibrated = CalibratedClassifierCV(SelfTrainingLinearClassifier(random_state=0), cv=2).fit(
            rows[known], target[known]
        )
    assert calibrated.score(rows, classes) > 0.85


def test_weights_are_routed_through_a_search(cancer):
    rows, _, target = cancer
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(target))
    with config_context(enable_metadata_routing=True):
        base = SelfTrainingLinearClassifier(random_state=0).set_fit_request(sample_weight=True)
        folds = LabeledFolds(2, random_state=0)
        grid = {"settings": [Settings(anchor=10.0)]}
        search = GridSearchCV(base, grid, cv=folds, scoring=labeled_scorer())
        search.fit(rows, target, sample_weight=weights)
    direct = SelfTrainingLinearClassifier(settings=Settings(anchor=10.0), random_state=0)
    direct.fit(rows, target, sample_weight=weights)
    np.testing.assert_allclose(search.best_estimator_.coef_, direct.coef_)


BAD = {
    "one class": (lambda X, y: (X, np.where(y >= 0, 1, -1)), "at least 2 classes are needed"),
    "no labels": (lambda X, y: (X, np.full(len(y), -1)), "must have labelled samples"),
    "a gap": (
        lambda X, y: (scipy.sparse.csr_array(np.where(X[0, 0] == X, np.nan, X)), y),
        "contains NaN",
    ),
    "infinite": (lambda X, y: (np.where(X[0, 0] == X, np.inf, X), y), "contains infinity"),
    "-1 as a class": (lambda X, y: (X, 2 * (y > 0) - 1), "if it is a class, choose another"),
    "text": (
        lambda X, y: (pd.DataFrame(X).assign(city="a", day=pd.Timestamp(0)), y),
        r"X = \['city', 'day'\]: columns must be numbers",
    ),
    "too wide": (
        lambda X, y: (np.vstack([[1e308], [-1e308], X[2:, :1]]), y),
        "range that overflows",
    ),
    "lengths": (lambda X, y: (X, y[:-1]), "must have one per sample of X"),
    "mixed names": (
        lambda X, y: (X, [("a", 1.5, -1)[k % 3] for k in range(len(y))]),
        "must not mix names and numbers",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_refused_in_one_sentence(cancer, case):
    change, message = BAD[case]
    rows, target = change(cancer[0], cancer[2])
    with pytest.raises(ValueError, match=message) as caught:
        SelfTrainingLinearClassifier().fit(rows, target)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "anchor"),
        ("neighbours", "yes"),
        ("share", 1.5),
        ("class_weight", "even"),
        ("class_weight", {"one": 2.0}),
        ("settings", {"steps": 1}),
    ],
)
def test_a_bad_parameter_is_named(cancer, name, value):
    with pytest.raises(InvalidInput, match=name):
        SelfTrainingLinearClassifier(**{name: value}).fit(cancer[0], cancer[2])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("preprocessing", "tables"),
        ("anchor", 0),
        ("ridge", -1.0),
        ("steps", 1.5),
        ("shrinkage", 2.0),
        ("metrics", (2.0,)),
        ("metrics", ()),
        ("clip", 0.0),
        ("tolerance", 1.0),
        ("recipe", "naive"),
    ],
)
def test_a_bad_setting_is_named(name, value):
    with pytest.raises(InvalidInput, match=name):
        Settings(**{name: value})


def test_settings_without_effect_are_rejected(cancer):
    rows, _, target = cancer
    for method in ("gaussian", "paper"):
        with pytest.raises(InvalidInput, match=f"neighbours must not be True with .*{method}"):
            SelfTrainingLinearClassifier(method, neighbours=True).fit(rows, target)
    with pytest.raises(InvalidInput, match="caution must be None if neighbours are used"):
        SelfTrainingLinearClassifier(neighbours=True, settings=Settings(caution=0.3)).fit(
            rows, target
        )
    images, digit = load_digits(n_class=2, return_X_y=True)
    auto = SelfTrainingLinearClassifier(settings=Settings(caution=0.3))
    with pytest.raises(InvalidInput, match="caution must be None if neighbours are used"):
        auto.fit(images, hidden(digit, 20))
    for method, setting in (
        ("anchored", {"recipe": Recipe()}),
        ("gaussian", {"ridge": 1.0}),
        ("paper", {"anchor": 3.0}),
        ("paper", {"clip": None}),
    ):
        (name,) = setting
        with pytest.raises(InvalidInput, match=f"{name} must not be set with method='{method}'"):
            SelfTrainingLinearClassifier(method, settings=Settings(**setting)).fit(rows, target)
    many = SelfTrainingLinearClassifier(settings=Settings(directions=58))
    with pytest.raises(InvalidInput, match="directions must be at most 57"):
        many.fit(rows, target)
    SelfTrainingLinearClassifier(settings=Settings(directions=57)).fit(rows, target)


def test_scores_ignore_unlabelled_samples(cancer, model):
    """So a plain search of scikit-learn is right, whatever its folds contain."""
    rows, classes, target = cancer
    known = target >= 0
    expected = np.mean(model.predict(rows[known]) == classes[known])
    assert model.score(rows, target) == expected
    assert model.score(rows, np.where(known, target, np.nan)) == expected
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    found = cross_val_score(SelfTrainingLinearClassifier(random_state=0), rows, target, cv=folds)
    assert found.min() > 0.8
    names = np.where(known, np.where(classes == 1, "benign", "malignant"), "")
    named = cross_val_score(SelfTrainingLinearClassifier(random_state=0), rows, names, cv=folds)
    np.testing.assert_array_equal(named, found)


def test_a_question_mark_gets_a_hint(cancer):
    rows, classes, target = cancer
    names = np.where(target >= 0, np.where(classes == 1, "benign", "malignant"), "?")
    names[-1] = ""
    with pytest.warns(UserWarning, match="pass unlabeled='\\?'"):
        SelfTrainingLinearClassifier().fit(rows, names)


def test_columns_with_nan_are_named_and_filled(cancer, model):
    rows, _, target = cancer
    broken, filled = rows.copy(), rows.copy()
    broken[3, [4, 7]] = np.nan
    filled[3, [4, 7]] = np.nanmedian(broken[:, [4, 7]], axis=0)
    expected = SelfTrainingLinearClassifier(random_state=0).fit(filled, target)
    frame = pd.DataFrame(broken, columns=[f"c{k}" for k in range(30)])
    for table, names in ((broken, r"4 \(1\), 7 \(1\)"), (frame, r"c4 \(1\), c7 \(1\)")):
        with pytest.warns(UserWarning, match=f"replaced by the median of their column: {names}"):
            found = SelfTrainingLinearClassifier(random_state=0).fit(table, target)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    filled[3, [4, 7]] = np.median(rows[:, [4, 7]], axis=0)  # of the samples it was fitted to
    np.testing.assert_allclose(model.predict_proba(broken), model.predict_proba(filled))
    with pytest.raises(InvalidInput, match="drop columns 4, 7"):
        SelfTrainingLinearClassifier().fit(scipy.sparse.csr_array(broken), target)


def test_few_or_plain_rows_are_said_and_fitted(cancer):
    rows, classes, target = cancer
    with pytest.warns(UserWarning, match="no unlabelled sample"):
        SelfTrainingLinearClassifier().fit(rows[:60], classes[:60])
    single = target.copy()
    ones = np.flatnonzero(single == 1)
    single[ones[1:]] = -1
    with pytest.warns(UserWarning, match="^class 1 has 1 labelled sample"):
        SelfTrainingLinearClassifier().fit(rows, single)
    doubled = np.column_stack([rows, np.full(len(rows), 3.0), np.zeros(len(rows))])
    found = SelfTrainingLinearClassifier(random_state=0).fit(doubled, target)
    assert (found.coef_[0, 30:] == 0).all()


def test_units_do_not_matter_however_small(cancer, model):
    rows, _, target = cancer
    small = clone(model).fit(rows * 1e-30, target)
    np.testing.assert_allclose(small.coef_ * 1e-30, model.coef_, rtol=1e-6, atol=1e-12)


def test_a_rare_mark_is_not_blown_up_to_unit_variance():
    random = np.random.default_rng(0)
    classes = random.integers(0, 2, 800)
    table = random.normal(size=(800, 4)) + 1.2 * classes[:, None]
    mark = (np.arange(800) % 200 == 0) * 3.0  # four rows
    rows = as_rows(np.column_stack([table, mark]))
    ends = extremes(rows)
    basis = find_basis(rows, np.ones(800), ends, "table", 8.0, 5, np.random)
    np.testing.assert_allclose(basis.scaling.scale[:4], table.std(axis=0))
    assert basis.scaling.scale[4] == 1.5
    sparse = scipy.sparse.csr_array(np.column_stack([table, mark]))
    again = find_basis(as_rows(sparse), np.ones(800), ends, "table", None, 5, np.random)
    np.testing.assert_allclose(again.scaling.scale, basis.scaling.scale)


def test_whole_numbers_with_gaps_stay_whole(cancer):
    rows, _, target = cancer
    column = pd.Series(target, dtype="Int64").mask(target < 0)
    found = SelfTrainingLinearClassifier(unlabeled=None, random_state=0).fit(rows, column)
    assert found.classes_.dtype.kind == "i"


@pytest.mark.parametrize("names", [(2**63, 2**63 + 1), (3, 2**63 + 1), (-4, 2**62)])
def test_whole_numbers_of_64_bits_are_classes(cancer, model, names):
    """numpy makes floats of a list with -1 and a number beyond 2**63: neighbours become equal."""
    rows, _, target = cancer
    listed = [names[code] if code >= 0 else -1 for code in target.tolist()]
    for y in (listed, np.array(listed, dtype=object), pd.Series(listed, dtype=object)):
        found = clone(model).fit(rows, y)
        assert found.classes_.tolist() == list(names)
        np.testing.assert_array_equal(found.coef_, model.coef_)


@pytest.mark.parametrize("names", [(-4, 2**63), (2**64, 2**64 + 1), (2**53 + 1, 2.0**53)])
def test_numbers_without_a_common_type_are_rejected(cancer, names):
    rows, _, target = cancer
    y = [names[code] if code >= 0 else None for code in target.tolist()]
    with pytest.raises(InvalidInput, match=r"classes must have one type.*others as text"):
        SelfTrainingLinearClassifier(unlabeled=None).fit(rows, y)


def test_nan_is_looked_for_as_it_is_written(cancer, model):
    """numpy writes NaN as text into an array of text."""
    rows, _, target = cancer
    y = np.array([("a", "b", np.nan)[code] for code in target.tolist()])
    assert y.dtype.kind == "U"
    found = SelfTrainingLinearClassifier(unlabeled=np.nan, random_state=0).fit(rows, y)
    assert found.classes_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(found.coef_, model.coef_)


@pytest.mark.parametrize(
    ("parameter", "known", "sentence"),
    [
        ({"class_weight": {"0": 1}}, (0, 1), "'0': no such class; did you mean 0[?] known: 0, 1"),
        ({"share": {"1": 0.3}}, (0, 1), "'1': no such class; did you mean 1[?] known: 0, 1"),
        ({"class_weight": {0: 1}}, ("0", "1"), "0: no such class; did you mean '0'[?]"),
        ({"class_weight": {"spm": 1}}, ("ham", "spam"), "did you mean 'spam'[?]"),
    ],
)
def test_a_class_of_another_type_is_told_apart(cancer, parameter, known, sentence):
    rows, _, target = cancer
    y = [known[code] if code >= 0 else -1 for code in target.tolist()]
    with pytest.raises(InvalidInput, match=sentence):
        SelfTrainingLinearClassifier(**parameter).fit(rows, y)


def test_minus_one_can_be_a_class(cancer):
    rows, classes, _ = cancer
    signs = np.where(hidden(classes, 30) < 0, 0, 2 * classes - 1)
    found = SelfTrainingLinearClassifier(unlabeled=0, random_state=0).fit(rows, signs)
    assert found.classes_.tolist() == [-1, 1]


def test_a_share_that_is_known_is_kept(cancer):
    rows, _, target = cancer
    assert SelfTrainingLinearClassifier(share=0.4).fit(rows, target).shares_[1] == 0.4
    named = SelfTrainingLinearClassifier(share={1: 0.4}).fit(rows, target)
    assert named.shares_.tolist() == [0.6, 0.4]
    with pytest.raises(InvalidInput, match=r"share.*'3'|share.*3.*no such class"):
        SelfTrainingLinearClassifier(share={3: 0.4}).fit(rows, target)
    rows, classes = load_wine(return_X_y=True)
    with pytest.raises(InvalidInput, match="a dictionary from class to proportion"):
        SelfTrainingLinearClassifier(share=0.4).fit(rows, hidden(classes, 30))


def test_a_class_whose_rows_weigh_nothing_is_not_there():
    rows, classes = load_wine(return_X_y=True)
    target = hidden(classes, 40)
    weights = np.where(target == 2, 0.0, 1.0)
    model = SelfTrainingLinearClassifier().fit(rows, target, sample_weight=weights)
    assert model.classes_.tolist() == [0, 1]
    weights = np.where(target >= 1, 0.0, 1.0)
    with pytest.raises(InvalidInput, match="fewer than 2 classes"):
        SelfTrainingLinearClassifier().fit(rows, target, sample_weight=weights)
    with pytest.raises(InvalidInput, match="sample_weight"):
        SelfTrainingLinearClassifier().fit(rows, target, sample_weight=-np.ones(len(rows)))


@pytest.mark.parametrize("nothing", [np.nan, None, ""])
def test_a_class_that_is_also_the_marker_gets_a_hint(nothing):
    y = np.array([nothing, -1, 0, 1, 1, 0], dtype=object)
    with pytest.warns(UserWarning, match="if -1 is a class, pass unlabeled=None"):
        assert read_targets(y, -1).names.tolist() == [0, 1]
    assert read_targets(y, None).names.tolist() == [-1, 0, 1]
    y[2:] = ["a", "b", "b", "a"]  # then -1 is no class
    assert read_targets(y, -1).names.tolist() == ["a", "b"]


@pytest.mark.parametrize("nothing", [np.nan, None, pd.NA, -1, "-1"])
def test_nothing_is_no_label_whatever_the_marker(cancer, nothing):
    rows, _, target = cancer
    expected = SelfTrainingLinearClassifier(random_state=0).fit(rows, target)
    names = np.where(target == 1, "benign", "malignant").astype(object)
    names[target == -1] = nothing
    for y in (names, pd.Series(names), names.tolist()):
        model = SelfTrainingLinearClassifier(random_state=0).fit(rows, y)
        assert model.classes_.tolist() == ["benign", "malignant"]
        np.testing.assert_allclose(model.coef_, -expected.coef_)
    numbers = np.where(target == -1, np.nan, target)
    again = SelfTrainingLinearClassifier(random_state=0).fit(rows, numbers)
    np.testing.assert_array_equal(again.coef_, expected.coef_)
