"""Wrong labels in the exact engine: against a model fitted to samples, limits and symmetries."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from selftrain import Problem, Recipe, bayes_error, solve, supervised_optimum
from selftrain.errors import InvalidInput
from selftrain.losses import Logistic

SETTING = {"alpha_l": 0.8, "alpha_u": 2.0, "rho": 0.4, "delta": 0.5, "steps": 3}
RECIPE = Recipe(lambda_l=0.1, lambda_u=0.05)
UNEQUAL = ((0.95, 0.05), (0.2, 0.8))


class Named(Logistic):
    """A logistic loss that the compiled averages do not know."""

    name = "named"


def fitted(noise, loss, seed, features=500):
    """q, m, B and the share of training logits below zero of a fit to samples, by Newton's
    method.
    """
    rng, size = np.random.default_rng(seed), round(0.8 * features)
    y = (np.arange(size) < round(0.4 * size)).astype(int)
    x = (2 * y - 1)[:, None] / np.sqrt(features)
    x = x + np.sqrt(0.5) * rng.standard_normal((size, features))
    given = (rng.random(size) < np.array(noise)[y, 1]).astype(int)
    design = np.c_[x / np.sqrt(features), np.ones(size)]
    ridge = np.append(np.full(features, 0.1), 0.0)
    w = np.zeros(features + 1)
    for _ in range(40):
        u = design @ w
        if loss == "logistic":
            slope, curvature = expit(u) - given, expit(u) * expit(-u)
        else:
            slope, curvature = u - (2 * given - 1), np.ones(size)
        step = np.linalg.solve(
            design.T @ (design * curvature[:, None]) + np.diag(ridge), design.T @ slope + ridge * w
        )
        w -= step
        if np.abs(step).max() < 1e-9:
            break
    logits = design @ w
    return w[:-1] @ w[:-1] / features, w[:-1].mean(), w[-1], (logits[y == 1] <= 0).mean()


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("noise", [((0.9, 0.1), (0.1, 0.9)), UNEQUAL])
def test_fit_to_samples_with_wrong_labels(loss, noise):
    run = solve(Problem(**{**SETTING, "steps": 0}, loss=loss, label_noise=noise), RECIPE)
    found = np.array([fitted(noise, loss, seed) for seed in range(16)])
    below = float(run.training_logits(0).cdf(0.0, y=1))
    theory = np.array([run.q[0], run.m[0], run.bias[0], below])
    z = (found.mean(axis=0) - theory) / (found.std(axis=0, ddof=1) / np.sqrt(16))
    assert np.abs(z).max() < 4.0, z


def test_number_is_the_symmetric_matrix():
    one = solve(Problem(**SETTING, label_noise=0.1), RECIPE)
    other = solve(Problem(**SETTING, label_noise=((0.9, 0.1), (0.1, 0.9))), RECIPE)
    np.testing.assert_allclose(one.q, other.q, rtol=1e-12)


@pytest.mark.parametrize("noise", [0.15, UNEQUAL])
def test_any_loss_agrees_with_the_compiled_one(noise):
    compiled = solve(Problem(**SETTING, label_noise=noise), RECIPE)
    generic = solve(Problem(**SETTING, label_noise=noise, loss=Named()), RECIPE)
    np.testing.assert_allclose(generic.q, compiled.q, rtol=1e-9)
    np.testing.assert_allclose(generic.bias, compiled.bias, rtol=1e-9)


def test_no_noise_is_the_problem_without_it():
    plain, noisy = (solve(Problem(**SETTING, label_noise=x), RECIPE) for x in (0.0, 1e-12))
    np.testing.assert_allclose(noisy.q, plain.q, rtol=1e-9)
    assert plain.problem.to_dict() == Problem(**SETTING).to_dict()


def test_exchanging_the_classes():
    run = solve(Problem(**SETTING, label_noise=UNEQUAL), RECIPE)
    other = solve(
        Problem(**{**SETTING, "rho": 0.6}, label_noise=((0.8, 0.2), (0.05, 0.95))), RECIPE
    )
    np.testing.assert_allclose(other.q, run.q, rtol=1e-10)
    np.testing.assert_allclose(other.bias, -run.bias, rtol=1e-9)


def test_balanced_classes_with_unequal_noise_have_a_bias():
    balanced = {**SETTING, "rho": 0.5}
    assert np.all(solve(Problem(**balanced, label_noise=0.2), RECIPE).bias == 0.0)
    assert abs(solve(Problem(**balanced, label_noise=UNEQUAL), RECIPE).bias[0]) > 0.1


def test_training_logits_are_those_of_samples():
    law = solve(Problem(**SETTING, label_noise=UNEQUAL), RECIPE).training_logits(0)
    drawn = law.sample(200_000, seed=1)
    for y in (0, 1):
        share = float(law.cdf(0.2, y=y))
        z = ((drawn.u[drawn.y == y] <= 0.2).mean() - share) / np.sqrt(
            share * (1 - share) / (drawn.y == y).sum()
        )
        assert abs(z) < 4
    at = np.linspace(-2, 2, 9)
    slope = (law.cdf(at + 1e-5) - law.cdf(at - 1e-5)) / 2e-5
    np.testing.assert_allclose(law.density(at), slope, rtol=1e-6)


def test_bayes_error_with_known_noise():
    def limits(noise, **changes):
        return bayes_error(Problem(**{**SETTING, **changes}, label_noise=noise))

    clean, some, more = (limits(noise) for noise in (0.0, 0.1, 0.3))
    for name in ("semi_supervised", "all_labeled", "labeled_only"):
        assert getattr(clean, name) < getattr(some, name) < getattr(more, name)
    # labels that say almost nothing: the labelled samples are unlabelled ones
    lost = limits(0.5 - 1e-9, steps=1).semi_supervised
    unlabeled = limits(0.0, alpha_l=1e-9, alpha_u=2.8, steps=1).semi_supervised
    assert lost == pytest.approx(unlabeled, abs=1e-6)


def test_bayes_error_of_labelled_samples_by_quadrature():
    """M / (1 - M) = (alpha / Delta) E[s tanh(...)], the class known up to its given label."""
    problem = Problem(1.5, 1.0, 0.35, 0.6, steps=0, label_noise=UNEQUAL)
    overlap = bayes_error(problem).overlap_semi_supervised
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    joint = np.array([0.65, 0.35])[:, None] * np.array(UNEQUAL)  # true, given
    snr, total = overlap / 0.6, 0.0
    for given in (0, 1):
        shift = 0.5 * np.log(joint[1, given] / joint[0, given])
        for true, s in ((0, -1.0), (1, 1.0)):
            values = s * np.tanh(s * snr + np.sqrt(snr) * nodes + shift)
            total += joint[true, given] * (values @ weights)
    assert overlap / (1 - overlap) == pytest.approx(1.5 / 0.6 * total, rel=1e-9)


def test_bayes_error_bounds_every_fit():
    problem = Problem(**SETTING, label_noise=0.2)
    assert bayes_error(problem).semi_supervised < solve(problem, RECIPE).error.min()
    assert bayes_error(problem).all_labeled <= supervised_optimum(problem).error + 1e-12


def test_bayes_error_of_balanced_labels_is_reached_by_the_best_ridge():
    """Clean labels, rho = 1/2: the best ridge is optimal; wrong ones cost it a little."""
    problem = Problem(2.0, 1.0, 0.5, 0.5, steps=0, label_noise=0.2)
    best = supervised_optimum(problem).error
    clean = norm.sf(np.sqrt(2.0 / (0.5 * 2.5)))
    assert clean < bayes_error(problem).labeled_only < best


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (0.5, "from 0 to below 0.5"),
        (-0.1, "from 0 to below 0.5"),
        ("some", "from 0 to below 0.5"),
        (((0.9, 0.1),), "2 rows of 2"),
        (((0.9, 0.2), (0.1, 0.9)), "must have rows that sum to one"),
        (((0.4, 0.6), (0.6, 0.4)), "must make label 0 more probable in class 0 than in class 1"),
        (((1.2, -0.2), (0.1, 0.9)), "a probability from 0 to 1"),
    ],
)
def test_noise_that_is_rejected(noise, words):
    with pytest.raises(InvalidInput, match=words):
        Problem(**SETTING, label_noise=noise)


def test_noise_survives_any_file():
    for noise in (0.1, UNEQUAL):
        problem = Problem(**SETTING, label_noise=noise)
        assert Problem.from_json(problem.to_json()) == problem
        assert Problem.from_toml(problem.to_toml()) == problem
        assert "label_noise" in repr(problem)
