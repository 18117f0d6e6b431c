"""The parts of a plan against counts, laws and simulations made without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from selftrain import SelfTrainingLinearClassifier
from selftrain.errors import InvalidInput
from selftrain.estimator.planning import models
from selftrain.estimator.planning.assumptions import _same_cells
from selftrain.estimator.planning.inputs import Input
from selftrain.estimator.planning.models import folds
from selftrain.estimator.planning.posterior import (
    AGREED_ERRORS,
    FAVOUR,
    Cells,
    answer,
    by_cells,
    by_labels,
    interval,
    labels_needed,
    odds_of,
    positive_shares,
    posterior,
    widened,
)

POSITIVE = np.array([30, 50, 12, 208])
NEGATIVE = np.array([520, 25, 35, 120])


def test_errors_of_cells_are_those_of_the_samples_in_them() -> None:
    cells = np.repeat(np.arange(4), POSITIVE + NEGATIVE)
    truth = np.concatenate([[1] * a + [0] * b for a, b in zip(POSITIVE, NEGATIVE, strict=True)])
    rows = POSITIVE + NEGATIVE
    found = posterior(rows / rows.sum(), POSITIVE / rows)
    assert found.share == pytest.approx(truth.mean())
    assert found.baseline == pytest.approx(1 - balanced_accuracy_score(truth, cells // 2))
    assert found.candidate == pytest.approx(1 - balanced_accuracy_score(truth, cells % 2))
    assert found.gain == pytest.approx(found.baseline - found.candidate)


def test_many_labels_bring_both_sources_to_the_truth_and_few_leave_them_wide() -> None:
    rows = POSITIVE + NEGATIVE
    sizes, random = rows / rows.sum(), np.random.default_rng(0)
    truth = posterior(sizes, POSITIVE / rows)
    for source in (by_cells, by_labels):
        spreads = []
        for factor in (0.02, 1, 100):
            cells = Cells(sizes, factor * POSITIVE, factor * NEGATIVE, 1_000_000)
            found = source(cells, random)
            spreads.append(found.candidate.std())
        assert found.candidate.mean() == pytest.approx(truth.candidate, abs=1e-3)
        assert found.gain.mean() == pytest.approx(truth.gain, abs=1e-3)
        assert spreads[0] > 2 * spreads[1] > 12 * spreads[2]


def test_shares_of_few_samples_follow_the_beta_binomial_law() -> None:
    """With the prior of even classes and nothing seen: Beta(1.3, 0.7) in the cell that only the
    candidate calls positive, here five samples of 500; the mean of the priors where both agree.
    """
    nothing = np.zeros(4)
    cells = Cells(np.array([0.01, 0.01, 0.01, 0.97]), nothing, nothing, 500)
    shares = positive_shares(cells, np.random.default_rng(0), (40_000,))
    found = [np.mean(np.isclose(shares[:, 1], positive / 5)) for positive in range(6)]
    law = betabinom(5, 2 * FAVOUR, 2 * (1 - FAVOUR)).pmf(range(6))
    assert found == pytest.approx(law, abs=0.01)
    found = [np.mean(np.isclose(shares[:, 0], positive / 5)) for positive in range(6)]
    law = np.mean([betabinom(5, e, 1 - e).pmf(range(6)) for e in AGREED_ERRORS], axis=0)
    assert found == pytest.approx(law, abs=0.01)


def test_held_out_labels_choose_the_prior_of_what_models_agree_on() -> None:
    """Two hundred labels without a mistake: the error is far below a prior of one in ten."""
    sizes = np.array([0.5, 0.0, 0.0, 0.5])
    clean = Cells(sizes, np.array([0, 0, 0, 100]), np.array([100, 0, 0, 0]), 1_000_000)
    assert by_cells(clean, np.random.default_rng(0)).candidate.mean() < 0.004


def test_an_interval_reaches_the_gain_when_every_disputed_sample_is_right() -> None:
    """Six disputed samples of 600, half of them of each class: the gain is then exactly 0.01."""
    sizes, rows = np.array([0.495, 0.005, 0.005, 0.495]), np.array([0.0, 0.0, 0.0, 20.0])
    found = by_cells(Cells(sizes, rows, rows[::-1], 600), np.random.default_rng(0))
    assert interval(found.gain).high >= 0.01


def test_a_gain_is_never_larger_than_the_disagreement() -> None:
    random = np.random.default_rng(0)
    for sizes in random.dirichlet([5, 1, 1, 5], 50):
        found = posterior(sizes, random.random((200, 4)))
        disputed = sizes[1] + sizes[2]
        bound = 0.5 * disputed * np.maximum(1 / found.share, 1 / (1 - found.share))
        assert np.all(np.abs(found.gain) <= bound + 1e-12)


def test_sources_that_disagree_widen_the_interval_to_both() -> None:
    """Classes chosen when labelling: half of the labels are of a class of one in twenty."""
    random = np.random.default_rng(0)
    sizes = np.array([0.80, 0.0, 0.0, 0.20])
    chosen = Cells(sizes, np.array([50, 0, 0, 250]), np.array([290, 0, 0, 10]), 100_000)
    main, other = by_cells(chosen, random), by_labels(chosen, random)
    told, apart = interval(widened(main, other, random).candidate), interval(other.candidate)
    assert interval(main.candidate).low > apart.high
    assert told.low <= apart.estimate <= told.high
    assert told.low <= interval(main.candidate).estimate <= told.high
    alike = Cells(sizes, np.array([5, 0, 0, 35]), np.array([155, 0, 0, 5]), 100_000)
    main, other = by_cells(alike, random), by_labels(alike, random)
    assert np.array_equal(widened(main, other, random).candidate, main.candidate)


def test_the_cell_with_too_many_labels_is_named() -> None:
    """Only the candidate predicts the positive class for 4 of 60, but for 1 % of the unlabelled.

    Such a count is 0.6 on average, and 4 or more have the probability 0.0034 (Poisson's law), while
    the numbers of positive predictions hardly differ.
    """
    sizes = np.array([0.77, 0.01, 0.024, 0.196])
    odd = _same_cells(Cells(sizes, np.array([1, 2, 0, 8]), np.array([41, 2, 2, 4]), 1940))
    assert not odd.holds
    said = "only the candidate predicts the positive class for 6.7% of the held-out and 1.0% of the"
    assert said in odd.found
    usual = _same_cells(Cells(sizes, np.array([1, 0, 0, 8]), np.array([45, 1, 1, 4]), 1940))
    assert usual.holds


def test_intervals_cover_models_of_known_errors() -> None:
    """Draw the truth of the cells, and labels from it: 90 % of the intervals must contain it.

    The weight of a held-out sample is 1 here, for these labels are independent.
    """
    random = np.random.default_rng(0)
    covered, strength = [], np.array([2, 4, 4, 2])
    for _ in range(1500):
        sizes = random.dirichlet([8, 1.5, 1.5, 8])
        error = random.choice(AGREED_ERRORS)
        even = np.array([error, FAVOUR, 1 - FAVOUR, 1 - error])
        shares = random.beta(strength * even, strength * (1 - even))
        labels = random.multinomial(60, sizes)
        positive = random.binomial(labels, shares)
        cells = Cells(sizes, positive, labels - positive, 100_000)
        truth = posterior(sizes, shares)
        drawn = posterior(sizes, positive_shares(cells, random, (1000,), counted=1.0))
        told = [interval(getattr(drawn, name)) for name in ("baseline", "candidate", "gain")]
        real = (truth.baseline, truth.candidate, truth.gain)
        covered.append([t.low <= r <= t.high for t, r in zip(told, real, strict=True)])
    # Four standard errors of 1500 draws are 3 %.
    assert np.mean(covered, axis=0) == pytest.approx([0.9, 0.9, 0.9], abs=0.03)


def test_the_answer_follows_the_evidence() -> None:
    random = np.random.default_rng(0)

    def told(sizes: list[float], positive: list[float], negative: list[float]) -> str:
        cells = Cells(np.array(sizes), np.array(positive), np.array(negative), 1000)
        return answer(odds_of(by_cells(cells, random)))

    agree = [0.45, 0.05, 0.05, 0.45]
    assert told(agree, [10, 30, 2, 190], [190, 2, 30, 10]) == "do"
    assert told(agree, [10, 2, 30, 190], [190, 30, 2, 10]) == "do not"
    assert told([0.4, 0.1, 0.1, 0.4], [1, 0, 0, 9], [9, 0, 0, 1]) == "cannot tell"
    assert told([0.499, 0.001, 0.001, 0.499], [1, 0, 0, 9], [9, 0, 0, 1]) == "do not"
    assert told(agree, [60, 30, 2, 60], [60, 2, 30, 60]) == "cannot tell"  # no better than guessing


def test_more_labels_are_asked_for_if_those_seen_contradict_each_other() -> None:
    sizes, random = np.array([0.38, 0.12, 0.12, 0.38]), np.random.default_rng(0)
    clear, mixed = np.array([1, 5, 1, 20]), np.array([1, 3, 3, 20])
    few, many = (
        labels_needed(Cells(sizes, seen, seen[::-1], 1000), random) for seen in (clear, mixed)
    )
    assert few is not None
    assert many is not None
    assert few <= 40 < many <= 10_000


ROWS = Input(
    np.arange(38.0).reshape(19, 2),
    np.array([0] * 15 + [1, 1, -1, -1]),
    np.array(["ham", "spam"]),
    17,
    2,
)


def test_every_held_out_sample_is_held_out_once_and_both_classes_stay() -> None:
    parts = list(folds(ROWS, np.random.RandomState(0)))
    assert np.array_equal(sum(parts), ROWS.codes >= 0)
    for outside in parts:
        assert set(ROWS.codes[~outside & (ROWS.codes >= 0)]) == {0, 1}


def test_equal_samples_share_a_fold() -> None:
    rows = replace(ROWS, X=np.floor(ROWS.X / 8))  # two by two equal
    for outside in folds(rows, np.random.RandomState(0)):
        inside = (rows.codes >= 0) & ~outside
        assert not set(map(tuple, rows.X[outside])) & set(map(tuple, rows.X[inside]))


@pytest.mark.parametrize(
    ("model", "semi_supervised"),
    [
        (LogisticRegression(), False),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
        (LabelSpreading(), True),
        (SelfTrainingClassifier(LogisticRegression()), True),
        (make_pipeline(StandardScaler(), SelfTrainingLinearClassifier()), True),
        (GridSearchCV(SelfTrainingLinearClassifier(), {"share": ["unlabeled"]}, cv=2), True),
    ],
)
def test_semi_supervised_models_get_all_samples_and_others_the_labelled_ones(
    model: object, semi_supervised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    kind = type(model)
    monkeypatch.setattr(kind, "fit", lambda self, X, y: seen.append((len(X), len(set(y)))))
    rows = replace(ROWS, names=np.array([3, 7]))
    models.fit(model, rows, rows.codes >= 0)
    assert seen == [(19, 3) if semi_supervised else (17, 2)]


def test_semi_supervised_models_of_scikit_learn_need_whole_numbers() -> None:
    with pytest.raises(InvalidInput, match="must be whole numbers"):
        models.fit(LabelSpreading(), ROWS, ROWS.codes >= 0)


def test_safe_mode_is_a_parameter_of_any_step() -> None:
    class Careful(LogisticRegression):
        def __init__(self, safe: bool = False):
            super().__init__()
            self.safe = safe

    safe = models.safe_mode(make_pipeline(StandardScaler(), Careful()))
    assert safe is not None
    assert safe.get_params()["careful__safe"] is True
    assert models.safe_mode(LogisticRegression()) is None


def test_models_have_the_names_that_a_user_gave() -> None:
    forest = RandomForestClassifier()
    assert models.name_of(forest) == "RandomForestClassifier"
    assert models.name_of(make_pipeline(StandardScaler(), forest)) == "RandomForestClassifier"
    assert models.name_of(GridSearchCV(forest, {"max_depth": [1, 2]})) == "RandomForestClassifier"
