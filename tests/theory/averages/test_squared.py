"""The squared loss on clusters: the closed form of the sphere, and the loss as a user writes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from selftrain import Clusters, Problem, Recipe, Trajectory, solve


def same(one: Trajectory, other: Trajectory, rel: float) -> None:
    for name in ("q", "v", "m", "bias", "chi", "error"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rel)


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"threshold": 0.5},
        {"fix_bias": True, "annealing": 0.1},
        {"sharpness": np.inf, "threshold": 0.3},
        {"sharpness": 7.0, "fix_bias": True},
    ],
    ids=str,
)
def test_one_mode_is_the_closed_form_of_the_sphere(recipe: dict[str, Any]) -> None:
    chosen = Recipe(0.05, 0.03, **recipe)
    data = {"alpha_l": 0.8, "alpha_u": 2.2, "rho": 0.3, "steps": 6, "loss": "squared"}
    sphere = solve(Problem(**data, delta=0.6), chosen)
    mode = solve(Problem(**data, clusters=Clusters([1.0], [0.6])), chosen)
    same(mode, sphere, 1e-12)


@pytest.mark.parametrize(("first", "later"), [("squared", "logistic"), ("logistic", "squared")])
def test_two_losses(first: str, later: str) -> None:
    data = {"alpha_l": 0.8, "alpha_u": 2.2, "rho": 0.3, "steps": 3}
    losses = {"loss": first, "pseudo_loss": later}
    recipe = Recipe(0.05, 0.03, threshold=0.2)
    sphere = solve(Problem(**data, **losses, delta=0.6), recipe)
    mode = solve(Problem(**data, **losses, clusters=Clusters([1.0], [0.6])), recipe)
    same(mode, sphere, 1e-11)


def test_two_covariances_with_the_loss_of_a_user(plain_squared: Any) -> None:
    """Its averages are integrals over panels, which share nothing with the closed form."""
    rng = np.random.default_rng(0)
    mean = rng.standard_normal(4)
    pair = tuple(a @ a.T + 0.3 * np.eye(4) for a in rng.standard_normal((2, 4, 4)) / 2)
    data = {"alpha_l": 2.0, "alpha_u": 3.0, "rho": 0.3, "steps": 1}
    clusters = Clusters(mean / np.linalg.norm(mean), pair)
    recipe = Recipe(0.05, 0.1, threshold=0.4)
    closed = solve(Problem(**data, clusters=clusters, loss="squared"), recipe)
    panels = solve(Problem(**data, clusters=clusters, loss=plain_squared), recipe)
    same(closed, panels, 1e-9)


def test_steep_targets_of_few_samples_take_no_panels() -> None:
    """Integrated over panels this step took gigabytes and minutes."""
    recipe = Recipe(0, 7.73e-11, threshold=0.24446, sharpness=14.711, fix_bias=True)
    data = {"alpha_l": 5.9618, "alpha_u": 0.1678, "rho": 0.000333, "steps": 1, "loss": "squared"}
    sphere = solve(Problem(**data, delta=0.9035), recipe)
    clusters = solve(Problem(**data, clusters=Clusters([1, 0, 0, 0, 0], 0.9035)), recipe)
    same(clusters, sphere, 1e-9)
