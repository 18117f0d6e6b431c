r"""Squared loss, everything linear: the solver against the matrix equations, solved here by another
route.

With $f = A u$ plus a constant, A lower bidiagonal, rows satisfy $u = (I + \Delta\chi A)^{-1}h$, so
that the response, the means and the covariances are a fixed point, a linear system and a second
linear system of matrices over all steps at once.
"""

import numpy as np
import pytest

from selftrain import Problem, Recipe, solve
from selftrain.protocol import protocol_of

BASE = {"alpha_l": 0.8, "alpha_u": 2.2, "rho": 0.35, "delta": 0.6, "loss": "squared"}


def matrices(problem: Problem, recipe: Recipe) -> tuple[np.ndarray, ...]:
    """m, C, B and the response by matrix algebra over all steps."""
    size = problem.steps + 1
    values = recipe.at_steps(problem.steps)
    ridge = np.diag(np.append(recipe.lambda_l, values.lambda_u))
    shift = np.diag(values.sharpness, -1)
    groups = []
    protocol = protocol_of(problem, recipe)
    for group, uses in zip(protocol.groups, protocol.uses, strict=True):
        weight = np.diag([uses[t].weight if t in uses else 0.0 for t in range(size)])
        slope = weight if group.labeled else weight @ (np.eye(size) - shift)
        groups.append((group, slope))
    response = np.linalg.inv(ridge + np.eye(size))
    for _ in range(20000):
        q_hat = np.zeros((size, size))
        for group, slope in groups:
            seen = np.linalg.inv(np.eye(size) + group.law.sphere * response @ slope)
            q_hat += group.alpha * group.law.sphere * slope @ seen
        new = np.linalg.inv(ridge + q_hat)
        change = np.abs(new - response).max()
        response = 0.5 * (response + new)
        if change < 1e-15 * np.abs(new).max():
            break
    maps = [
        (group, slope @ np.linalg.inv(np.eye(size) + group.law.sphere * response @ slope))
        for group, slope in groups
    ]
    # unknowns (m, B): m = response m_hat, <f> = 0 (or B of step 0)
    system, right = np.zeros((2 * size, 2 * size)), np.zeros(2 * size)
    system[:size, :size] = np.eye(size)
    for group, map_ in maps:
        lean = 2 * group.proportions[1] - 1
        constant = map_ @ np.ones(size) if group.labeled else np.zeros(size)
        system[:size, :size] += group.alpha * response @ map_
        system[:size, size:] += group.alpha * lean * response @ map_
        right[:size] += group.alpha * response @ constant
        system[size:, :size] += group.alpha * lean * map_
        system[size:, size:] += group.alpha * map_
        right[size:] += group.alpha * lean * constant
    if recipe.fix_bias:
        for t in range(1, size):
            system[size + t] = 0.0
            system[size + t, size + t], system[size + t, size], right[size + t] = 1.0, -1.0, 0.0
    solution = np.linalg.solve(system, right)
    m, bias = solution[:size], solution[size:]
    m_hat = np.linalg.solve(response, m)
    base, kron = np.outer(m_hat, m_hat), np.eye(size**2)
    for group, map_ in maps:
        for sign, share in ((1.0, group.proportions[1]), (-1.0, 1 - group.proportions[1])):
            mean = map_ @ (sign * m + bias - (sign if group.labeled else 0.0))
            base += share * group.alpha * group.law.sphere * np.outer(mean, mean)
        both = response @ map_
        kron -= group.alpha * group.law.sphere**2 * np.kron(both, both)
    right_hand = response @ base @ response.T
    overlaps = np.linalg.solve(kron, right_hand.ravel()).reshape(size, size)
    return m, overlaps, bias, response


CASES = {
    "kept": ({"keep_labeled": 1.0}, {}),
    "reused": ({"batches": "reused"}, {}),
    "both": ({"batches": "reused", "keep_labeled": 0.7}, {"sharpness": 1.4}),
    "returning": ({"batches": ("a", "b", "a", "b")}, {"lambda_u": (0.1, 0.02, 0.05, 0.03)}),
    "pool": ({"batches": ("a+b", "b+c", "c+a", "a+b")}, {}),
    "kept from step 3 on": ({"keep_labeled": (0, 0, 1, 2)}, {"annealing": 0.1}),
    "shifted": ({"batches": "reused", "keep_labeled": 1, "rho_u": 0.6, "delta_u": 0.9}, {}),
    "bias fixed": ({"batches": ("a", "a", "b", "a"), "keep_labeled": 0.3}, {"fix_bias": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_against_matrix_equations(case: str) -> None:
    fields, words = CASES[case]
    problem = Problem(**{**BASE, "steps": 4, **fields})
    recipe = Recipe(**{"lambda_l": 0.05, "lambda_u": 0.03, **words})
    m, overlaps, bias, response = matrices(problem, recipe)
    run = solve(problem, recipe)
    assert run.stats.tolerance == 1e-10
    np.testing.assert_allclose(run.m, m, rtol=1e-8)
    np.testing.assert_allclose(run.overlaps, overlaps, rtol=1e-8)
    np.testing.assert_allclose(run.bias, bias, rtol=1e-8)
    np.testing.assert_allclose(run.response, response, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(run.overlap[1:], np.diag(overlaps, -1), rtol=1e-8)


def test_many_steps_on_the_same_samples() -> None:
    """New directions fade by a factor a step until rounding hides them; the state stays exact."""
    problem = Problem(**{**BASE, "steps": 24}, batches="reused", keep_labeled=1.0)
    recipe = Recipe(lambda_l=0.05, lambda_u=0.03, sharpness=1.2)
    m, overlaps, bias, _ = matrices(problem, recipe)
    run = solve(problem, recipe)
    np.testing.assert_allclose(run.m, m, rtol=1e-7)
    np.testing.assert_allclose(run.overlaps, overlaps, rtol=1e-7)
    np.testing.assert_allclose(run.bias, bias, rtol=1e-7)


def test_fresh_batches_are_the_run_without_reuse() -> None:
    """The matrix equations and the engine of fresh batches agree, so both speak of the same
    model.
    """
    problem, recipe = Problem(**{**BASE, "steps": 4}), Recipe(lambda_l=0.05, lambda_u=0.03)
    _, overlaps, _, response = matrices(problem, recipe)
    run = solve(problem, recipe)
    np.testing.assert_allclose(run.overlaps, overlaps, rtol=1e-9)
    np.testing.assert_allclose(run.response, response, rtol=1e-9, atol=1e-12)
    assert run.reuse is None
