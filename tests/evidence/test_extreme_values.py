"""Values at the ends of what is accepted, and beyond: an answer, or an error with a name, and never
a warning.
"""

from __future__ import annotations

import contextlib
import random

import pytest

from selftrain import Problem, Recipe, SelfTrainError, simulate, solve
from selftrain.errors import InvalidInput

PROBLEM = {"alpha_l": 0.5, "alpha_u": 2.0, "rho": 0.4, "delta": 0.5625, "steps": 1}
ENDS = (1e-100, 1e-50, 1e-20, 1e20, 1e50, 1e100)


@pytest.mark.parametrize("value", [5e-324, 1e-154, 1e300])
def test_values_beyond_are_refused_by_name(value: float) -> None:
    for field in ("alpha_l", "alpha_u", "delta", "delta_u"):
        with pytest.raises(InvalidInput, match=rf"^{field} must be .*from 1e-100 to 1e100"):
            Problem(**{**PROBLEM, field: value})
    for field in ("lambda_l", "lambda_u", "sharpness"):
        with pytest.raises(InvalidInput, match=rf"^{field} must be .*from 1e-100 to 1e100"):
            Recipe(**{field: value})


@pytest.mark.parametrize("field", ["threshold", "annealing"])
def test_degrees_may_be_as_small_as_numbers_are_but_not_as_large(field: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^{field} must be .*up to 1e\+100.*got 1e\+300"):
        Recipe(**{field: 1e300})
    tiny = solve(Problem(**PROBLEM), Recipe(**{field: 5e-324}))
    assert tiny.error == pytest.approx(solve(Problem(**PROBLEM), Recipe()).error, rel=1e-10)


def extremes(seed: int) -> tuple[Problem, Recipe]:
    """A problem and a recipe of which some values, chosen at random, are extreme."""
    rng = random.Random(seed)

    def perhaps(usual: float) -> float:
        return rng.choice(ENDS) if rng.random() < 0.35 else usual

    problem = Problem(
        alpha_l=perhaps(0.5), alpha_u=perhaps(2.0), rho=0.4, delta=perhaps(0.5625), steps=1,
        loss=rng.choice(["logistic", "squared"]),
    )  # fmt: skip
    recipe = Recipe(
        perhaps(0.05), perhaps(0.05), threshold=perhaps(0.0), sharpness=perhaps(1.0),
        annealing=perhaps(0.0), labeler=rng.choice(["soft", "hard"]),
    )  # fmt: skip
    return problem, recipe


@pytest.mark.parametrize("seed", range(12))
def test_extreme_runs_end_with_an_answer_or_a_typed_error(seed: int) -> None:
    """Warnings are errors in tests: an overflow that nobody thought of would fail here."""
    problem, recipe = extremes(seed)
    try:
        run = solve(problem, recipe)
    except SelfTrainError:
        pass
    else:
        assert 0 <= run.error[-1] <= 1
    with contextlib.suppress(SelfTrainError):
        simulate(problem, recipe, 16, seeds=1, progress=False)
