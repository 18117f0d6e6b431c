"""`FewLabelClassifier` on tables, images and text: results, attributes, invalid input."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selftrain import FewLabelClassifier, SelfTrainingLinearClassifier
from selftrain.errors import InvalidInput


def hidden(classes, labels, seed=0):
    """Targets with the labels of a random part, at least two of each class."""
    order = np.random.default_rng(seed).permutation(len(classes))
    first = [row for name in np.unique(classes) for row in order[classes[order] == name][:2]]
    kept = [*first, *[row for row in order if row not in set(first)]][:labels]
    target = np.full(len(classes), -1)
    target[kept] = classes[kept]
    return target


def balanced_error(model, rows, classes):
    return 1 - balanced_accuracy_score(classes, model.predict(rows))


@pytest.fixture(scope="module")
def cancer():
    rows, classes = load_breast_cancer(return_X_y=True)
    return rows, classes, hidden(classes, 30)


@pytest.fixture(scope="module")
def model(cancer):
    return FewLabelClassifier(random_state=0).fit(cancer[0], cancer[2])


def test_a_table_gets_an_ensemble_better_than_the_supervised_baseline(cancer, model):
    rows, classes, target = cancer
    known = target >= 0
    assert (model.kind_, model.method_) == ("table", "ensemble")
    assert list(model.weights_) == ["self-training", "forest", "linear"]
    assert sum(model.weights_.values()) == pytest.approx(1)
    assert 0 < model.disagreement_ < 0.22
    baseline = make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(
            scoring="neg_log_loss", l1_ratios=(0.0,), use_legacy_attributes=False, max_iter=1000
        ),
    ).fit(rows[known], target[known])
    assert balanced_error(model, rows, classes) < 0.06
    assert balanced_error(model, rows, classes) <= balanced_error(baseline, rows, classes)
    ours = log_loss(classes[~known], model.predict_proba(rows[~known]))
    assert ours < log_loss(classes[~known], baseline.predict_proba(rows[~known]))


def test_the_decision_is_at_zero_and_weights_leave_probabilities_alone(cancer, model):
    rows, _, target = cancer
    scores = model.decision_function(rows)
    assert (model.predict(rows) == (scores > 0)).all()
    plain = clone(model).set_params(class_weight=None).fit(rows, target)
    np.testing.assert_allclose(plain.predict_proba(rows), model.predict_proba(rows))
    odds = plain.decision_function(rows)
    np.testing.assert_allclose(plain.predict_proba(rows)[:, 1], expit(odds))
    costly = clone(model).set_params(class_weight={0: 1, 1: 20}).fit(rows, target)
    np.testing.assert_allclose(costly.decision_function(rows) - odds, np.log(20))


def test_labelled_samples_keep_their_class_and_a_saved_model_decides_alike(cancer, model):
    rows, _, target = cancer
    known = target >= 0
    assert (model.transduction_[known] == target[known]).all()
    assert (model.transduction_[~known] == model.predict(rows)[~known]).all()
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(rows) == model.decision_function(rows)).all()


def test_score_ignores_unlabelled_samples(cancer, model):
    rows, classes, target = cancer
    known = target >= 0
    assert model.score(rows, target) == model.score(rows[known], classes[known])


def test_safe_mode_leans_on_the_linear_model(cancer, model):
    rows, _, target = cancer
    safe = clone(model).set_params(safe=True).fit(rows, target)
    assert safe.weights_["linear"] == pytest.approx((model.weights_["linear"] + 0.5) / 1.5)


def test_the_class_proportion_is_the_mean_probability_of_the_unlabelled_samples(cancer, model):
    rows, classes, target = cancer
    mean = model.predict_proba(rows[target < 0]).mean(axis=0)
    np.testing.assert_allclose(model.shares_, mean)
    assert model.shares_[1] == pytest.approx(classes.mean(), abs=0.1)


@pytest.mark.filterwarnings("ignore:linear model and forest disagree")
@pytest.mark.parametrize("seed", range(3))
def test_as_many_labels_of_a_rare_class_do_not_mislead_the_threshold(cancer, seed):
    """A threshold at the estimated proportion would assume labels drawn at random."""
    rows, classes, _ = cancer
    random = np.random.default_rng(seed)
    rare, common = (random.permutation(np.flatnonzero(classes == name)) for name in (0, 1))
    kept = np.concatenate([rare[:40], common])  # 10 % of the samples
    target = np.full(len(kept), -1)
    target[:15], target[40:55] = 0, 1
    found = FewLabelClassifier(random_state=0).fit(rows[kept], target)
    unseen = rare[40:], common
    errors = [np.mean(found.predict(rows[part]) != name) for name, part in enumerate(unseen)]
    assert np.mean(errors) < 0.09


@pytest.mark.filterwarnings("ignore:linear model and forest disagree")
def test_heavy_tails_do_not_decide(cancer):
    """Exponentials of columns carry the same ranks, so the same information."""
    rows, classes, target = cancer
    standard = StandardScaler().fit_transform(rows)
    heavy = FewLabelClassifier(random_state=0).fit(np.exp(3 * standard), target)
    assert balanced_error(heavy, np.exp(3 * standard), classes) < 0.08


def test_missing_entries_take_the_median_and_are_reported(cancer):
    rows, _, target = cancer
    names = load_breast_cancer().feature_names
    gaps = rows.copy()
    gaps[::7, 2] = np.nan
    filled = gaps.copy()
    filled[::7, 2] = np.nanmedian(gaps[:, 2])
    by_hand = FewLabelClassifier(random_state=0).fit(filled, target)
    with pytest.warns(UserWarning, match=r"median of their column: mean perimeter \(82\)"):
        found = FewLabelClassifier(random_state=0).fit(pd.DataFrame(gaps, columns=names), target)
    np.testing.assert_allclose(
        found.decision_function(pd.DataFrame(gaps, columns=names)),
        by_hand.decision_function(filled),
    )


@pytest.fixture(scope="module")
def digits():
    rows, classes = load_digits(return_X_y=True)
    return rows, classes


def test_images_of_two_digits(digits):
    chosen = np.isin(digits[1], (3, 8))
    rows, classes = digits[0][chosen], digits[1][chosen]
    errors = []
    for state in range(4):
        found = FewLabelClassifier(random_state=state).fit(rows, hidden(classes, 20))
        errors.append(balanced_error(found, rows, classes))
    assert (found.kind_, found.method_) == ("image", "self-training")
    assert np.isnan(found.disagreement_)
    assert max(errors) < 0.05
    assert np.ptp(errors) < 0.02


def test_ten_digits_gain_from_the_graph(digits):
    rows, classes = digits
    target = hidden(classes, 100)
    found = FewLabelClassifier(random_state=0).fit(rows[::2], target[::2])
    plain = SelfTrainingLinearClassifier(class_weight="balanced", random_state=0)
    plain.fit(rows[::2], target[::2])
    tested, truth = rows[1::2], classes[1::2]
    assert balanced_error(found, tested, truth) < balanced_error(plain, tested, truth) - 0.01
    probabilities = found.predict_proba(tested)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert log_loss(truth, probabilities) < log_loss(truth, plain.predict_proba(tested))


def test_gaussian_clusters_are_left_to_self_training():
    """Two clusters at distance 2 x 1.6: the Bayes error is norm.cdf(-1.6)."""
    random = np.random.default_rng(1)
    classes = random.integers(0, 2, 2000)
    mean = random.standard_normal(60)
    mean *= 1.6 / np.linalg.norm(mean)
    rows = random.standard_normal((2000, 60)) + np.outer(2 * classes - 1, mean)
    found = FewLabelClassifier(random_state=0).fit(rows, hidden(classes, 40))
    assert found.method_ == "gaussian"
    assert balanced_error(found, rows, classes) < norm.cdf(-1.6) + 0.02


def test_classes_that_nothing_separates_are_reported():
    random = np.random.default_rng(3)
    rows = random.standard_normal((600, 80)) ** 3 * 0.2 + random.standard_normal((600, 80))
    classes = random.integers(0, 2, 600)
    with pytest.warns(UserWarning, match="do not separate the classes"):
        found = FewLabelClassifier("embedding", random_state=0).fit(rows, hidden(classes, 60))
    assert found.method_ == "supervised"
    assert found.weights_ == {"linear": 1.0}


def test_sparse_text_is_fitted_as_text(digits):
    rows, classes = digits
    words = scipy.sparse.csr_array(np.where(rows > 9, rows, 0.0))
    pair = np.flatnonzero(np.isin(classes, (0, 1)))
    target = hidden(classes[pair], 20)
    found = FewLabelClassifier(random_state=0).fit(words[pair], target)
    assert found.kind_ == "text"
    assert balanced_error(found, words[pair], classes[pair]) < 0.05


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "tabel"}, "table"),
        ({"safe": 1}, "safe must be True or False"),
        ({"class_weight": "even"}, "class_weight must"),
        ({"class_weight": {"2": 1}}, "no such class"),
    ],
)
def test_invalid_parameters(cancer, changes, message):
    with pytest.raises(InvalidInput, match=message):
        FewLabelClassifier(**changes).fit(cancer[0], cancer[2])


def test_input_that_is_rejected_with_a_reason(cancer):
    rows, _, target = cancer
    sparse = scipy.sparse.csr_array(rows)
    with pytest.raises(InvalidInput, match="toarray"):
        FewLabelClassifier("table").fit(sparse, target)
    sparse.data[0] = np.nan
    with pytest.raises(InvalidInput, match="contains NaN: fill or drop column 0"):
        FewLabelClassifier().fit(sparse, target)
    dask = pytest.importorskip("dask.array")
    with pytest.raises(InvalidInput, match="in memory"):
        FewLabelClassifier().fit(dask.from_array(rows), target)


@pytest.mark.parametrize("labels", [31, 33])
def test_the_names_of_the_classes_do_not_matter(labels: int) -> None:
    """Folds must not depend on the order of names; five folds divide neither number of labels."""
    X, classes = load_breast_cancer(return_X_y=True)
    known = np.random.default_rng(labels).permutation(len(classes))[:labels]
    found = []
    for names in (classes, 1 - classes):
        y = np.full(len(classes), -1)
        y[known] = names[known]
        found.append(FewLabelClassifier(random_state=0).fit(X, y).decision_function(X))
    np.testing.assert_allclose(found[0], -found[1], atol=1e-9)
