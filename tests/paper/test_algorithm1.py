"""The paper's Algorithm 1 against trajectories of an independent program and another state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from selftrain.errors import ConvergenceError, InvalidInput
from selftrain.paper.algorithm1 import GaussRule, gauss_hermite, picard
from selftrain.problem import Problem
from selftrain.recipe import Recipe

CASES = json.loads((Path(__file__).parents[1] / "reference" / "trajectories.json").read_text())[
    "cases"
]
NAMES = ("q", "m", "bias", "chi", "overlap", "error")


def words(name: str, **changes: Any) -> tuple[Problem, Recipe]:
    params = {**CASES[name]["params"], **changes}
    nature = ("alpha_l", "alpha_u", "rho", "delta", "steps")
    return (
        Problem(**{key: params.pop(key) for key in nature}),
        Recipe(**params),
    )


def relative_errors(run: Any, name: str) -> list[float]:
    rows = [row for row in CASES[name]["steps"] if row["t"] < run.q.size]
    pairs = [
        (getattr(run, key)[row["t"]], row[key])
        for row in rows
        for key in NAMES
        if row[key] is not None
    ]
    return [abs(found - expected) / max(abs(expected), 1e-3) for found, expected in pairs]


@pytest.mark.parametrize("start", ["previous", "no-update"])
@pytest.mark.parametrize("name", ["soft-imbalanced", "annealed-bias-fixed", "balanced-weak-ridge"])
def test_without_threshold_the_reference_is_reproduced(name: str, start: Any) -> None:
    problem, recipe = words(name)
    rule = gauss_hermite(outer=120, inner=16)
    run = picard(problem, recipe, rule=rule, start=start, tolerance=1e-11)
    assert run.converged
    assert max(relative_errors(run, name)) < 1e-9


def test_with_a_threshold_the_reference_is_reproduced_within_monte_carlo_error() -> None:
    """Means over seeds lie within 4 standard errors, and the standard errors are small."""
    problem, recipe = words("selection-imbalanced", steps=8)
    runs = [picard(problem, recipe, samples=4000, seed=seed, tolerance=1e-8) for seed in range(12)]
    for row in CASES["selection-imbalanced"]["steps"][1:3]:
        for key in NAMES:
            values = np.array([getattr(run, key)[row["t"]] for run in runs])
            standard_error = values.std(ddof=1) / np.sqrt(len(runs))
            assert standard_error < 0.02 * abs(row[key])
            assert abs(values.mean() - row[key]) < 4 * standard_error


def test_supervised_state_of_a_balanced_mixture() -> None:
    """The state that `tests/evidence/test_outside.py` derives from the definition; by symmetry the
    bias vanishes.
    """
    run = picard(
        Problem(0.9542105263157896, 1.0, 0.5, 0.5, steps=0), Recipe(lambda_l=0.01), tolerance=1e-12
    )
    found = (0.5 * run.chi[0], run.m[0], 0.5 * run.q[0], run.error[0])
    expected = (28.753321848046305, 2.3991658701865606, 5.570263207370565, 0.15468730017801752)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert abs(run.bias[0]) < 1e-10


def test_any_gaussian_rule_can_be_used() -> None:
    """A trapezoidal rule gives the same state as Gauss-Hermite."""
    nodes = np.linspace(-9, 9, 73)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    problem, recipe = words("soft-imbalanced", steps=1)
    run = picard(problem, recipe, rule=GaussRule(nodes, weights, nodes, weights))
    assert max(relative_errors(run, "soft-imbalanced")) < 1e-9


def test_what_did_not_converge_is_an_error_or_a_marked_part() -> None:
    problem, recipe = words("soft-imbalanced", steps=2)
    with pytest.raises(ConvergenceError, match=r"step 1: .* 50 iterations") as caught:
        picard(problem, recipe, max_iterations=50)
    assert caught.value.residual > 1e-10
    assert caught.value.state["chi"] > 0
    part = picard(problem, recipe, max_iterations=50, on_failure="partial")
    assert not part.converged
    assert part.failure is not None
    assert part.failure.step == 1
    assert np.isfinite(part.m).tolist() == [True, False, False]


def test_what_algorithm_1_does_not_cover_is_refused() -> None:
    problem = Problem(0.5, 2.0, 0.4, 0.5, steps=1)
    with pytest.raises(InvalidInput, match="logistic"):
        picard(problem.replace(loss="squared"), Recipe())
    with pytest.raises(InvalidInput, match="soft labels"):
        picard(problem, Recipe(sharpness=np.inf))
    with pytest.raises(InvalidInput, match="damping"):
        picard(problem, Recipe(), damping=0.0)
