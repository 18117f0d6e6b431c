"""One loss for the labelled step and another for the pseudo-labels: solved, simulated,
differentiated, stored.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from selftrain import Problem, Recipe, Trajectory, continuum, gradient, simulate, solve
from selftrain.cli.main import app
from selftrain.errors import InvalidInput

PROBLEM = Problem(0.8, 2.0, 0.35, 0.6, steps=3, loss="squared", pseudo_loss="logistic")
SWAPPED = PROBLEM.replace(loss="logistic", pseudo_loss="squared")
RECIPE = Recipe(0.05, 0.03, threshold=0.3)


@pytest.mark.parametrize("problem", [PROBLEM, SWAPPED], ids=["squared first", "logistic first"])
def test_theory_is_the_limit_of_the_algorithm(problem: Problem) -> None:
    run = solve(problem, RECIPE)
    free, dense = (
        simulate(problem, RECIPE, features, 24, method=method, probes=0, progress=False)
        for features, method in ((2000, "matrix-free"), (150, "dense"))
    )
    for ensemble in (free, dense):
        for name in ("q", "m", "bias", "overlap", "train_loss"):
            values, expected = getattr(ensemble, name)[:, 1:], getattr(run, name)[1:]
            error = values.std(axis=0, ddof=1) / np.sqrt(24)
            finite = 0.03 if ensemble is dense else 0.0  # what is of order 1/N
            apart = np.abs(values.mean(axis=0) - expected) - finite * np.abs(expected)
            assert (apart < 5 * error).all(), (name, ensemble.features)


def test_step_0_knows_the_first_loss_only_and_the_others_the_second() -> None:
    """The labelled fit is that of its loss; a step from the same state is that of the other
    loss.
    """
    run = solve(PROBLEM, RECIPE)
    labeled = solve(PROBLEM.replace(pseudo_loss=None, steps=0), RECIPE)
    other = solve(PROBLEM.replace(loss="logistic", pseudo_loss=None), RECIPE)
    assert run.q[0] == labeled.q[0]
    assert abs(run.q[1] / other.q[1] - 1) > 0.1


@pytest.mark.parametrize("problem", [PROBLEM, SWAPPED], ids=["squared first", "logistic first"])
def test_losses_of_a_users_own_give_the_same(
    problem: Problem, plain_squared: Any, plain_logistic: Any
) -> None:
    own = {"squared": plain_squared, "logistic": plain_logistic}
    short = problem.replace(steps=1)
    run = solve(short, RECIPE)
    mixed = short.replace(loss=own[short.loss], pseudo_loss=own[short.pseudo_loss])  # type: ignore[index]
    general = solve(mixed, RECIPE)
    for name in ("q", "m", "bias", "chi", "train_loss"):
        np.testing.assert_allclose(getattr(general, name), getattr(run, name), rtol=1e-9)


@pytest.mark.parametrize("problem", [PROBLEM, SWAPPED], ids=["squared first", "logistic first"])
def test_gradients_are_those_of_differences(problem: Problem) -> None:
    recipe = RECIPE.replace(sharpness=1.4, threshold=0.2)
    slopes = gradient(solve(problem, recipe, 1e-12))
    step = 1e-4

    def error(**changes: float) -> float:
        words: list[Any] = [problem, recipe]
        for i, word in enumerate(words):
            here = {key: value for key, value in changes.items() if hasattr(word, key)}
            words[i] = word.replace(**here) if here else word
        return float(solve(words[0], words[1], 1e-12).error[-1])

    for name in ("lambda_l", "lambda_u", "threshold", "sharpness", "alpha_l", "rho", "delta"):
        value = getattr(recipe if hasattr(recipe, name) else problem, name)
        around = [error(**{name: value * (1 + k * step)}) for k in (-2, -1, 1, 2)]
        slope = (around[0] - 8 * around[1] + 8 * around[2] - around[3]) / (12 * step * value)
        assert np.sum(slopes[name]) == pytest.approx(slope, rel=1e-6), name


def test_the_flow_of_small_ridges_is_that_of_the_second_loss() -> None:
    def gap(ridge: float) -> float:
        problem, recipe = PROBLEM.replace(steps=round(0.1 / ridge)), Recipe(0.05, ridge)
        run, path = solve(problem, recipe), continuum(problem, recipe)
        assert path(0.0).m == pytest.approx(run.m[0], rel=1e-9)
        return float(run.m[-1] / path(0.1).m - 1)

    assert gap(1e-4) == pytest.approx(0.1 * gap(1e-3), rel=0.05)


def test_it_is_stored_and_read(tmp_path: Any) -> None:
    assert Problem.from_json(PROBLEM.to_json()) == PROBLEM
    assert Problem.from_toml(PROBLEM.to_toml()) == PROBLEM
    run = solve(PROBLEM, RECIPE)
    run.save(tmp_path / "run.npz")
    again = Trajectory.load(tmp_path / "run.npz")
    assert again.problem == PROBLEM
    np.testing.assert_array_equal(again.q, run.q)


def test_the_command_line_has_it() -> None:
    flags = (
        "--alpha-l 0.8 --alpha-u 2 --rho 0.35 --delta 0.6 --steps 3 --lambda-u 0.03 --threshold 0.3"
    )
    losses = "--loss squared --pseudo-loss logistic"
    found = CliRunner().invoke(app, ["solve", *flags.split(), *losses.split(), "--json"])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert answer["problem"]["pseudo_loss"] == "logistic"
    run = solve(PROBLEM, RECIPE)
    assert [step["q"] for step in answer["steps"]] == pytest.approx(run.q.tolist(), rel=1e-14)


def test_one_loss_twice_is_one_loss() -> None:
    assert PROBLEM.replace(pseudo_loss="squared") == PROBLEM.replace(pseudo_loss=None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"pseudo_loss": "logistik"}, "pseudo_loss.*logistic"),
        ({"batches": "reused"}, "pseudo_loss.*data reuse"),
        ({"keep_labeled": 1.0}, "pseudo_loss.*data reuse"),
    ],
)
def test_what_is_not_known_is_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        PROBLEM.replace(**changes)
