"""Trajectories that an independent program solved, reproduced to nine digits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from selftrain import Problem, Recipe, Trajectory, solve

CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "reference" / "trajectories.json").read_text()
)["cases"]
QUANTITIES = ("q", "m", "bias", "chi", "overlap", "error")


def words(name: str) -> tuple[Problem, Recipe]:
    params = dict(CASES[name]["params"])
    nature = ("alpha_l", "alpha_u", "rho", "delta", "steps")
    return Problem(**{key: params.pop(key) for key in nature}), Recipe(**params)


def assert_as_stored(run: Trajectory, name: str, relative: float) -> None:
    for row in CASES[name]["steps"]:
        if row["t"] > run.problem.steps:
            break
        for quantity in QUANTITIES:
            found, expected = getattr(run, quantity)[row["t"]], row[quantity]
            if expected is None:
                assert np.isnan(found), (quantity, row["t"])
            else:
                allowed = pytest.approx(expected, rel=relative, abs=1e-12)
                assert found == allowed, (quantity, row["t"])


@pytest.mark.parametrize("name", sorted(CASES))
def test_reference_trajectory(name: str) -> None:
    run = solve(*words(name))
    assert run.collapsed_at is None
    assert run.failure is None
    assert_as_stored(run, name, 1e-9)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_lower_tolerance_is_kept_too(name: str) -> None:
    assert_as_stored(solve(*words(name), tolerance=1e-6), name, 1e-6)


@pytest.mark.parametrize("name", sorted(CASES))
def test_reference_by_the_engine_for_any_loss(name: str, plain_logistic: Any) -> None:
    problem, recipe = words(name)
    run = solve(problem.replace(steps=1, loss=plain_logistic), recipe)
    assert_as_stored(run, name, 1e-9)
