"""A run of several classes plots itself: errors, recall, labels, confusion."""

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, bayes_error, gradient, solve
from selftrain.errors import InvalidInput

PROBLEM = Problem(
    1.0, 2.0, (0.6, 0.3, 0.1), steps=2, clusters=Clusters.simplex(3, distance=1.7, delta=0.5)
)


@pytest.fixture(scope="module")
def run():
    return solve(PROBLEM, Recipe(lambda_l=0.1, lambda_u=0.05), tolerance=1e-3)


def test_panels_show_what_the_run_has(run):
    error, recall, labels, confusion = run.plot().axes
    np.testing.assert_array_equal(error.lines[0].get_ydata(), run.error)
    np.testing.assert_array_equal(error.lines[1].get_ydata(), run.balanced_error)
    for k in range(3):
        np.testing.assert_array_equal(recall.lines[k].get_ydata(), 1 - run.class_errors[:, k])
        np.testing.assert_array_equal(labels.lines[k].get_ydata(), run.label_shares[:, k])
    written = [float(text.get_text()) for text in confusion.texts]
    assert written == pytest.approx(run.confusion[-1].ravel(), abs=0.005)


def test_predicted_shares_are_those_of_the_confusion(run):
    shares = np.array([0.6, 0.3, 0.1]) @ run.confusion[-1]
    np.testing.assert_allclose(run.predicted_shares[-1], shares, rtol=1e-12)
    assert run.predicted_shares[-1].sum() == pytest.approx(1.0, abs=1e-6)


def test_one_panel(run):
    assert len(run.plot(panel="confusion").axes) == 1
    with pytest.raises(InvalidInput, match="recall"):
        run.plot(panel="recal")


def test_ordinary_problem_with_a_trial_step_to_a_singular_matrix(run):
    assert np.all(np.isfinite(run.error))


def test_the_bayes_limit_is_for_two_classes_and_says_so():
    with pytest.raises(InvalidInput, match="two classes only: use solve or simulate"):
        bayes_error(PROBLEM)


def test_gradient_says_what_it_takes(run):
    with pytest.raises(InvalidInput, match="two classes and fresh batches"):
        gradient(run)


@pytest.mark.parametrize("problem", ["x", None, Recipe()])
def test_the_bayes_limit_names_what_it_takes(problem):
    with pytest.raises(InvalidInput, match=r"problem must be a selftrain\.Problem"):
        bayes_error(problem)
