"""The supervised baseline against published values, limits and a direct fit to the same data."""

import numpy as np
import pytest

from selftrain import Problem, Recipe, bayes_error, solve, supervised_optimum
from selftrain.errors import InvalidInput
from selftrain.tuning.supervised import supervised_fit

STORY = Problem(alpha_l=0.5, alpha_u=2.0, rho=0.2, delta=0.75**2, steps=16)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_all_points_with_labels_are_one_supervised_step(loss):
    """Without domain shift the baseline is step 0 with alpha_l + sum of alpha_u points."""
    problem = STORY.replace(loss=loss)
    alone = Problem(alpha_l=32.5, alpha_u=1.0, rho=0.2, delta=0.75**2, steps=0, loss=loss)
    expected = solve(alone, Recipe(lambda_l=0.03))
    found = supervised_fit(problem, 0.03)
    assert found.error == pytest.approx(expected.error[0], rel=1e-9)
    assert found.cosine == pytest.approx(expected.cosine[0], rel=1e-9)


def test_infinite_ridge_reaches_the_limit_when_balanced():
    """With rho = 1/2 the best ridge diverges and attains the all-labelled Bayes error."""
    problem = STORY.replace(rho=0.5)
    best = supervised_optimum(problem)
    assert best.active_bound == "upper"
    assert best.ridge == 0.1
    assert best.unbounded.error == pytest.approx(bayes_error(problem).all_labeled, rel=1e-9)


def test_no_ridge_in_the_bounds_is_better():
    best = supervised_optimum(STORY, bounds=(1e-4, 10.0))
    assert best.active_bound is None
    others = [supervised_fit(STORY, ridge).error for ridge in np.geomspace(1e-4, 10, 40)]
    assert best.error <= min(others) + 1e-12
    assert best.error >= bayes_error(STORY).all_labeled


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_domain_shift_against_a_direct_fit(loss):
    """Batches with their own (rho, delta), fitted at N = 200 by a general-purpose optimiser."""
    from scipy.optimize import minimize

    from selftrain.losses import get_loss

    problem = Problem(
        alpha_l=1.0, alpha_u=[1.0, 2.0], rho=0.3, delta=0.5, steps=2,
        rho_u=[0.5, 0.2], delta_u=[1.0, 0.3], loss=loss,
    )  # fmt: skip
    groups = [(1.0, 0.3, 0.5), (1.0, 0.5, 1.0), (2.0, 0.2, 0.3)]
    function, ridge, size = get_loss(loss), 0.2, 200
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows, targets = [], []
        for alpha, rho, delta in groups:
            y = rng.random(int(alpha * size)) < rho
            noise = np.sqrt(delta) * rng.standard_normal((y.size, size))
            rows.append((2.0 * y[:, None] - 1) / np.sqrt(size) + noise)
            targets.append(np.where(y, function.classes[1], function.classes[0]))
        x, target = np.concatenate(rows) / np.sqrt(size), np.concatenate(targets)

        def objective(theta, x=x, target=target):
            logit = x @ theta[:-1] + theta[-1]
            slope = function.slope(target, logit)
            value = function.value(target, logit).sum() + 0.5 * ridge * theta[:-1] @ theta[:-1]
            return value, np.append(x.T @ slope + ridge * theta[:-1], slope.sum())

        theta = minimize(objective, np.zeros(size + 1), jac=True, method="L-BFGS-B").x
        w, bias = theta[:-1], theta[-1]
        m, q = w.mean(), w @ w / size
        from selftrain.observables import generalization_error

        errors.append(generalization_error(m, q, bias, *problem.test_mixture))
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors))
    assert supervised_fit(problem, ridge).error == pytest.approx(np.mean(errors), abs=5 * spread)


def test_what_is_no_problem_is_rejected():
    for function in (supervised_optimum, lambda problem: supervised_fit(problem, 0.1)):
        with pytest.raises(InvalidInput, match=r"problem must be a selftrain\.Problem, got 3"):
            function(3)


@pytest.mark.parametrize("bounds", [(0.1, 0.1), (0.2, 0.1), (-1, 0.1), 3, (0.0, float("nan"))])
def test_bad_bounds(bounds):
    with pytest.raises(InvalidInput, match="bounds"):
        supervised_optimum(STORY, bounds=bounds)
