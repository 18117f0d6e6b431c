"""The parts of a plan against counts, draws and fits made without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from selftrain import Clusters
from selftrain.estimator.anchored import Unlabeled
from selftrain.estimator.blocks import StoredRows
from selftrain.estimator.planning.advice import answer, labels_needed, odds_of
from selftrain.estimator.planning.assumptions import radial_kurtosis
from selftrain.estimator.planning.evidence import Evidence, Rule, Scores, folds
from selftrain.estimator.planning.posterior import Cells, interval, positive_shares, posterior
from selftrain.estimator.planning.prediction import best_recipe, supervised_error
from selftrain.estimator.planning.shape import Shape, shape_of
from selftrain.estimator.planning.synthetic import balanced_error
from selftrain.estimator.prepared import Prepared
from selftrain.estimator.preprocessing import Basis, Scaling

POSITIVE = np.array([30, 50, 12, 208])
NEGATIVE = np.array([520, 25, 35, 120])


def test_errors_of_cells_are_those_of_the_rows_in_them() -> None:
    cells = np.repeat(np.arange(4), POSITIVE + NEGATIVE)
    truth = np.concatenate([[1] * a + [0] * b for a, b in zip(POSITIVE, NEGATIVE, strict=True)])
    supervised, trained = cells // 2, cells % 2
    rows = POSITIVE + NEGATIVE
    found = posterior(rows / rows.sum(), POSITIVE / rows)
    assert found.share == pytest.approx(truth.mean())
    assert found.supervised == pytest.approx(1 - balanced_accuracy_score(truth, supervised))
    assert found.trained == pytest.approx(1 - balanced_accuracy_score(truth, trained))


def test_many_labels_bring_the_posterior_to_the_truth_and_few_leave_it_wide() -> None:
    rows = POSITIVE + NEGATIVE
    sizes, random = rows / rows.sum(), np.random.default_rng(0)
    truth = posterior(sizes, POSITIVE / rows)
    spreads = []
    for factor in (0.02, 1, 100):
        cells = Cells(sizes, factor * POSITIVE, factor * NEGATIVE, 0.3, 1_000_000)
        found = posterior(sizes, positive_shares(cells, random, (4000,)))
        spreads.append(found.trained.std())
    assert found.trained.mean() == pytest.approx(truth.trained, abs=1e-3)
    assert found.gain.mean() == pytest.approx(truth.gain, abs=1e-3)
    assert spreads[0] > 3 * spreads[1] > 9 * spreads[2]


def test_shares_of_few_rows_follow_the_beta_binomial_law() -> None:
    """With the belief in even classes and nothing seen: Beta(1.3, 0.7) in the cell that only
    self-training calls positive, here five rows of 500.
    """
    nothing = np.zeros(4)
    cells = Cells(np.array([0.49, 0.01, 0.01, 0.49]), nothing, nothing, 0.5, 500)
    shares = positive_shares(cells, np.random.default_rng(0), (40_000,))[:, 1]
    found = [np.mean(np.isclose(shares, positive / 5)) for positive in range(6)]
    assert found == pytest.approx(betabinom(5, 1.3, 0.7).pmf(range(6)), abs=0.01)


def test_an_interval_reaches_the_gain_when_every_disputed_row_is_right() -> None:
    """Six disputed rows of 600, half of them of each class: the gain is then exactly 0.01."""
    sizes, rows = np.array([0.495, 0.005, 0.005, 0.495]), np.array([0.0, 0.0, 0.0, 20.0])
    cells = Cells(sizes, rows, rows[::-1], 0.5, 600)
    found = posterior(sizes, positive_shares(cells, np.random.default_rng(0), (4000,)))
    assert interval(found.gain).high >= 0.01


def test_a_gain_is_never_larger_than_the_dispute() -> None:
    random = np.random.default_rng(0)
    for sizes in random.dirichlet([5, 1, 1, 5], 50):
        found = posterior(sizes, random.random((200, 4)))
        disputed = sizes[1] + sizes[2]
        bound = 0.5 * disputed * np.maximum(1 / found.share, 1 / (1 - found.share))
        assert np.all(np.abs(found.gain) <= bound + 1e-12)


def test_the_answer_follows_the_evidence() -> None:
    random = np.random.default_rng(0)

    def told(sizes: list[float], positive: list[float], negative: list[float]) -> str:
        cells = Cells(np.array(sizes), np.array(positive), np.array(negative), 0.5, 1000)
        shares = positive_shares(cells, random, (4000,))
        return answer(odds_of(posterior(cells.sizes, shares)))

    agree = [0.45, 0.05, 0.05, 0.45]
    assert told(agree, [10, 30, 2, 190], [190, 2, 30, 10]) == "do"
    assert told(agree, [10, 2, 30, 190], [190, 30, 2, 10]) == "do not"
    assert told([0.4, 0.1, 0.1, 0.4], [1, 0, 0, 9], [9, 0, 0, 1]) == "cannot tell"
    assert told([0.499, 0.001, 0.001, 0.499], [1, 0, 0, 9], [9, 0, 0, 1]) == "do not"
    assert told(agree, [60, 30, 2, 60], [60, 2, 30, 60]) == "cannot tell"  # no better than guessing


def test_more_labels_are_asked_for_when_the_dispute_is_small_in_rows() -> None:
    nothing = np.zeros(4)
    wide = Cells(np.array([0.35, 0.15, 0.15, 0.35]), nothing, nothing, 0.5, 100_000)
    few = labels_needed(wide, 100_000, np.random.default_rng(0))
    assert few is not None
    assert 10 <= few <= 2000
    assert labels_needed(wide, 10, np.random.default_rng(0)) in (None, 10)


def test_every_left_out_row_is_left_out_once_and_both_classes_stay() -> None:
    codes = np.array([0] * 17 + [1] * 2)
    parts = list(folds(codes, np.random.RandomState(0)))
    assert sorted(np.concatenate(parts)) == list(range(19))
    for outside in parts:
        kept = np.delete(codes, outside)
        assert set(kept) == {0, 1}


@pytest.fixture(scope="module")
def shape() -> Shape:
    """Balanced Gaussian clusters in 40 directions of falling variance, separation 1.6."""
    random = np.random.default_rng(3)
    variances = 1 / np.arange(1, 41)
    mean = random.normal(size=40) * np.sqrt(variances)
    mean *= 1.6 / np.sqrt((mean**2 / variances).sum())
    return Shape(Clusters(mean, np.diag(variances)), 0.5, 0.0)


def _draw(shape: Shape, classes: np.ndarray, random: np.random.Generator) -> np.ndarray:
    variances = np.diag(shape.clusters.covariance)
    noise = random.normal(size=(len(classes), len(variances))) * np.sqrt(variances)
    return noise + (2 * classes - 1)[:, None] * shape.clusters.mean


def test_balanced_error_is_that_of_drawn_rows(shape: Shape) -> None:
    random = np.random.default_rng(0)
    rule = Rule(shape.clusters.mean + 0.1 * random.normal(size=40), 0.3)
    classes = np.repeat([0, 1], 50_000)
    called = rule.scores(_draw(shape, classes, random)) > 0
    error = 1 - balanced_accuracy_score(classes, called)
    assert balanced_error(shape, rule) == pytest.approx(error, abs=0.005)


def test_the_theory_predicts_the_error_of_scikit_learns_fits(shape: Shape) -> None:
    """The ridge of the package's supervised fit is 1/C of scikit-learn, over the mean variance."""
    random = np.random.default_rng(0)
    covariance = np.asarray(shape.clusters.covariance)
    variance = np.mean(np.diag(covariance) + shape.clusters.mean**2)
    classes = np.repeat([0, 1], 40)
    for ridge in (1.0, 30.0):
        errors = []
        for _ in range(40):
            model = LogisticRegression(C=1 / (ridge * variance), tol=1e-8, max_iter=1000)
            model.fit(_draw(shape, classes, random), classes)
            errors.append(balanced_error(shape, Rule(model.coef_[0], float(model.intercept_[0]))))
        spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
        told = supervised_error(shape, 80, ridge)
        assert told == pytest.approx(np.mean(errors), abs=3 * spread + 0.01), ridge


def _soft_world(shape: Shape, labels: int, rows: int) -> tuple[Prepared, Evidence]:
    """Rows of a shape with the best scores there are, the first few labelled."""
    random = np.random.default_rng(1)
    classes = (random.random(rows) < 0.5) * 1
    table = _draw(shape, classes, random)
    best = 2 * np.linalg.solve(shape.clusters.covariance, shape.clusters.mean)
    scores = table @ best
    size = table.shape[1]
    basis = Basis(Scaling(np.zeros(size), np.ones(size), None), np.eye(size), table.var(axis=0))
    own = classes[:labels].astype(float)
    others = Unlabeled(StoredRows(table[labels:]), np.ones(rows - labels))
    ones = np.ones(labels)
    prepared = Prepared(basis, "table", table[:labels], classes[:labels], ones, ones, others)
    rivals = (Scores(scores[part], scores[part]) for part in (slice(labels), slice(labels, None)))
    return prepared, Evidence(own, ones, *rivals, 0.5, 1.0)


def test_the_shape_is_found_from_scores_and_few_labels(shape: Shape) -> None:
    prepared, evidence = _soft_world(shape, 40, 4000)
    found = shape_of(prepared, evidence)
    assert found.share == pytest.approx(0.5, abs=0.05)
    assert found.clusters.separation == pytest.approx(1.6, rel=0.1)
    assert found.corrected < 0.35


def test_labelled_rows_correct_scores_that_miss_a_direction(shape: Shape) -> None:
    """Scores of the first five directions only; a thousand labels show the rest."""
    prepared, evidence = _soft_world(shape, 1000, 6000)
    part = np.zeros(40)
    part[:5] = 2 * shape.clusters.mean[:5] / np.diag(shape.clusters.covariance)[:5]
    known = float(np.sqrt((shape.clusters.mean[:5] * part[:5] / 2).sum()))
    scores = [
        rows @ part for rows in (prepared.labeled, prepared.unlabeled.coordinates.take(slice(None)))
    ]
    blind = replace(
        evidence, held_out=Scores(scores[0], scores[0]), unlabeled=Scores(scores[1], scores[1])
    )
    found = shape_of(prepared, blind)
    assert known < 1.2
    assert found.corrected > 0.7
    assert found.clusters.separation == pytest.approx(1.6, rel=0.12)


def test_kurtosis_is_zero_for_gaussian_rows_and_large_for_heavy_tails() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(5000, 8)) @ random.normal(size=(8, 8))
    assert abs(radial_kurtosis(rows)) < 0.05
    # A Student law of 9 degrees of freedom: Mardia's kurtosis is (9 - 2)/(9 - 4) times the Gaussian
    # one.
    heavy = random.normal(size=(100_000, 8)) * np.sqrt(9 / random.chisquare(9, size=(100_000, 1)))
    assert radial_kurtosis(heavy) == pytest.approx(0.4, abs=0.1)


def test_the_recipe_keeps_the_ridge_that_left_out_rows_chose(shape: Shape) -> None:
    """Whichever first ridge the theory would like: a free choice runs to where real rows depart
    from it.
    """
    variance = np.mean(np.diag(np.asarray(shape.clusters.covariance)) + shape.clusters.mean**2)
    errors = {}
    for ridge in (1.0, 30.0):
        recipe, errors[ridge] = best_recipe(shape, 80, 2000, ridge)
        assert recipe.lambda_l == pytest.approx(ridge * variance / 40)
    assert errors[1.0] < supervised_error(shape, 80, 1.0)
    assert errors[1.0] != pytest.approx(errors[30.0], rel=0.1)
