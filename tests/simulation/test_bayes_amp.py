"""The Bayes limit is attained: approximate message passing with known shares and variances.

The data are $x_{ij} = s_i v_j/\\sqrt N + \\sqrt{\\Delta_i} z_{ij}$ with a Gaussian prior on v and
signs that are known for labelled rows and have P(s = 1) = rho for the others.
"""

import numpy as np
import pytest

from selftrain import Problem, bayes_error
from selftrain.observables import generalization_error

N, SEEDS, ITERATIONS = 1500, 8, 25

CASES = {
    "balanced": Problem(0.5, 1.0, 0.5, 0.5625, steps=3),
    "imbalanced": Problem(0.5, 1.0, 0.2, 0.5625, steps=3),
    "domain shift": Problem(0.7, 1.0, 0.5, 0.8, steps=2, rho_u=(0.3, 0.2), delta_u=(0.5, 1.1)),
}


def amp_error(problem: Problem, seed: int) -> float:
    """Error of the posterior mean direction with the optimal bias on the test mixture."""
    random = np.random.default_rng(seed)
    batches = problem.unlabeled
    rows = np.rint(np.append(problem.alpha_l, batches.alpha) * N).astype(int)
    rho = np.repeat(np.append(problem.rho, batches.rho), rows)
    delta = np.repeat(np.append(problem.delta, batches.delta), rows)
    known = np.arange(rows.sum()) < rows[0]
    signs = np.where(random.random(rows.sum()) < rho, 1.0, -1.0)
    direction = random.standard_normal(N)
    noise = random.standard_normal((rows.sum(), N), dtype=np.float32)
    noise *= np.sqrt(delta)[:, None].astype(np.float32)
    x = noise + (np.outer(signs, direction) / np.sqrt(N)).astype(np.float32)

    prior = 0.5 * np.log(rho / (1 - rho))
    s = np.where(known, signs, np.tanh(prior))
    v, precision = np.zeros(N), 1.0
    for _ in range(ITERATIONS):
        spread = np.where(known, 0.0, 1 - s**2)
        field = x.T @ (s / delta).astype(np.float32) / np.sqrt(N) - np.sum(spread / delta) / N * v
        precision = 1 + np.sum(s**2 / delta) / N
        v = field / precision
        field = (x @ v.astype(np.float32) / np.sqrt(N) - s / precision) / delta
        s = np.where(known, signs, np.tanh(field + prior))
    test = problem.test_mixture
    m, q = direction @ v / N, v @ v / N
    bias = 0.5 * test.delta * np.log(test.rho / (1 - test.rho))
    return float(generalization_error(m / np.sqrt(direction @ direction / N), q, bias, *test))


@pytest.mark.parametrize("case", CASES)
def test_message_passing_attains_the_limit(case: str) -> None:
    problem = CASES[case]
    limit = bayes_error(problem)
    errors = np.array([amp_error(problem, seed) for seed in range(SEEDS)])
    sem = errors.std(ddof=1) / np.sqrt(SEEDS)
    assert abs(errors.mean() - limit.semi_supervised) < 4 * sem + 1 / N
    assert errors.mean() - 4 * sem > limit.all_labeled
    assert errors.mean() + 4 * sem < limit.labeled_only
